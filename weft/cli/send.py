"""`weft send`: a text for a performance that runs, without saving it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from weft.cli.console import Missing, call, exit_code_of, say, show, summary
from weft.errors import Diagnostic, Source, Span, path_of
from weft.performances import FoundPerformance, PerformanceLink, UnreachableError, fits, running
from weft.syntax.includes import PIPED, open_source, stdin_source
from weft.syntax.scanner import UnreadableError, read_text

# As the name of a file: the standard input.
_STDIN = "-"

# Seconds after which it is said what is being waited for, and after which there is no answer.
_LONG, _PATIENCE = 1.0, 60.0


@click.command("send")
@click.argument("file", type=click.Path(readable=False, allow_dash=True))
@click.option("--to", type=click.IntRange(1), metavar="PROCESS",
              help="The performance with this process, if several run.")
@click.option("--as", "stands_for", type=click.Path(readable=False), metavar="FILE",
              help="What is piped in is FILE as it would be saved: its performance plays it.")
def command(file: str, to: int | None, stands_for: str | None) -> int:
    """Have the performance of FILE play it as it is now, without a save; - is what is piped in. If nobody plays FILE,
    the only performance that runs plays it. Its errors and warnings are shown as by weft check."""
    if stands_for and file != _STDIN:
        raise click.UsageError("--as is for what is piped in: weft send - --as FILE")
    source = stdin_source() if file == _STDIN else open_source(file)
    if stands_for:
        source = Source(stands_for, source.text)
    meant = (stands_for or None) if file == _STDIN else file
    try:
        found = _chosen(meant, to, running())
        answer = _sent(found, source.text)
    except UnreachableError as failure:
        raise Missing(str(failure)) from failure
    diagnostics = _diagnostics_of(answer, source, found)
    show(diagnostics)
    if "diagnostics" not in answer:
        say(f"{found.shown} has not taken it: {answer.get('problem')}")
    elif not diagnostics:
        click.echo(f"{path_of(source.name)}: {summary(diagnostics)}; {found.shown} plays it", err=True)
    return exit_code_of(diagnostics)


def _chosen(file: str | None, to: int | None, found: Sequence[FoundPerformance]) -> FoundPerformance:
    """The performance that is meant. Raises Missing if there is none, and UsageError if it is not clear which."""
    if to is not None:
        wanted = [each for each in found if each.process == to]
        if not wanted:
            raise Missing(f"no performance has process {to}{_listed(found)}")
    else:
        playing = [each for each in found if file is not None and fits(file, each)]
        wanted = playing or [each for each in found if each.problem is None] or list(found)
    if not wanted:
        raise Missing(f"nothing plays, so nobody takes it ({call('run', file or 'hello.weft')} plays a patch)")
    if len(wanted) > 1:
        raise click.UsageError(f"several performances run; say with --to which is meant{_listed(wanted)}")
    if wanted[0].problem is not None:
        raise Missing(wanted[0].problem)
    return wanted[0]


def _listed(found: Sequence[FoundPerformance]) -> str:
    """The performances that can be named, as the rest of a sentence."""
    able = [f"--to {each.process} is {each.file or 'one from a pipe'}" for each in found if each.problem is None]
    return f": {', '.join(able)}" if able else ""


def _sent(found: FoundPerformance, text: str) -> Mapping[str, Any]:
    """The answer of a performance to a text. Raises UnreachableError."""
    try:
        with PerformanceLink.open(found.path) as link:
            link.say("text", text=text)
            began, is_told = time.monotonic(), False
            while time.monotonic() - began < _PATIENCE:
                heard = link.hear(_LONG)
                if heard is not None and heard.get("event") == "answer":
                    return heard
                if not is_told and time.monotonic() - began >= _LONG:
                    is_told = True
                    say(f"waiting for {found.shown}")
    except OSError as failure:
        raise UnreachableError(f"{found.shown} has ended before it answered") from failure
    raise UnreachableError(f"{found.shown} has not answered within {_PATIENCE:.0f} s")


def _diagnostics_of(answer: Mapping[str, Any], source: Source, found: FoundPerformance) -> list[Diagnostic]:
    """The diagnostics of an answer about a text. Raises UnreachableError for what is none."""
    sources = {found.file: source, source.name: source, PIPED: source}
    try:
        return [
            Diagnostic(
                each["severity"], each["code"], each["message"], _span(each, sources), each["hint"],
                tuple((span, words["message"]) for words in each["related"] if (span := _span(words, sources))),
            )
            for each in answer.get("diagnostics", ())
        ]  # fmt: skip
    except (KeyError, TypeError) as failure:
        raise UnreachableError(f"{found.shown} has answered what cannot be read ({failure})") from failure


def _span(place: Mapping[str, Any], sources: dict[str | None, Source]) -> Span | None:
    """The place that JSON names; a file of another folder is read."""
    name = place["file"]
    if name is None:
        return None
    if name not in sources:
        try:
            text = read_text(name)
        except UnreadableError:
            text = "\n" * place["end_line"]
        relative = os.path.relpath(name) if os.path.isabs(name) else name
        sources[name] = Source(name if relative.startswith("..") else relative, text)
    source = sources[name]
    return Span(
        source, source.offset(place["line"], place["column"]), source.offset(place["end_line"], place["end_column"])
    )
