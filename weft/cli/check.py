"""`weft check`: all errors and warnings of patches, and fixes for those that are known for sure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from weft.cli.arguments import ALLOW, compile_file, compiling
from weft.cli.console import exit_code_of, output, say, show, summary, write_file
from weft.codes.rows import ERRORS
from weft.contexts import context_table
from weft.errors import Diagnostic, Source, Span, WeftError, path_of
from weft.media.sampled import header_if_whole
from weft.permissions import Permissions
from weft.runtime.compiling.stages import Build
from weft.runtime.inspect.forecast import Additions, check
from weft.syntax.includes import PIPED, open_source, stdin_source

# As the name of a file: the standard input.
_STDIN = "-"

# What a patch may be checked for, besides playing it here.
_WEB = "web"

# A mistake may hide others, which are fixed in the next round.
_ROUNDS = 10


@click.command("check")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(readable=False, allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Diagnostics as JSON on stdout.")
@click.option("--fix", is_flag=True, help="First mend what is known for sure, such as a missing #use.")
@click.option("--for", "target", type=click.Choice([_WEB]), help="Also what a page in a browser cannot do of it.")
@ALLOW
def command(
    files: Sequence[str], as_json: bool, fix: bool, target: str | None, permissions: Permissions
) -> int:
    """List all errors and warnings of each FILE; - is what is piped in. Opens no device. Pictures are decoded; of films
    and sounds, what they begin with is read."""
    if fix and _STDIN in files:
        raise click.UsageError("--fix writes files, so it needs the name of one")
    found = {file: (_fixed if fix else _diagnostics)(file, permissions) for file in files}
    if target == _WEB:
        found = {file: [*known, *_for_web(file, known, permissions)] for file, known in found.items()}
    if as_json:
        output(json.dumps({"diagnostics": [_as_json(file, each) for file, all_ in found.items() for each in all_]}))
    else:
        for file, diagnostics in found.items():
            show(diagnostics)
            if not diagnostics:
                click.echo(f"{path_of(file)}: {summary(diagnostics)}", err=True)
    codes = set(map(exit_code_of, found.values()))
    return ERRORS if ERRORS in codes else max(codes)


def _as_json(file: str, diagnostic: Diagnostic) -> Mapping[str, object]:
    """A diagnostic of a file, whose name it has even if it is about none of its lines."""
    made = diagnostic.to_json()
    return made if made["file"] is not None else {**made, "file": PIPED if file == _STDIN else file}


def _diagnostics(file: str, permissions: Permissions) -> Sequence[Diagnostic]:
    try:
        source = stdin_source() if file == _STDIN else open_source(file)
        with compiling():
            return check(source, context_table(), header_if_whole, permissions, _measure)
    except WeftError as failure:
        return failure.diagnostics


def _for_web(file: str, known: Sequence[Diagnostic], permissions: Permissions) -> Sequence[Diagnostic]:
    """What a page cannot do of a file without errors."""
    from weft.web.limits import limits  # it takes as long to import as most patches take to check

    if file == _STDIN or any(each.severity == "error" for each in known):
        return ()
    return limits(compile_file(file, permissions=permissions))


def _measure(program: Build, source: Source, additions: Additions) -> Sequence[Diagnostic]:
    from weft.runtime.inspect.pace import too_slow  # importing what draws takes as long as checking most patches

    return too_slow(program, source, additions)


def _fixed(file: str, permissions: Permissions) -> Sequence[Diagnostic]:
    """Corrects a file, and reports each change. Returns the diagnostics that are left."""
    found = _diagnostics(file, permissions)
    for _ in range(_ROUNDS):
        fixes = dict.fromkeys(d.fix for d in found if d.fix is not None and d.fix[0].source.name == file)
        if not fixes:
            break
        _apply(file, list(fixes))
        found = _diagnostics(file, permissions)
    return found


def _apply(file: str, fixes: Sequence[tuple[Span, str]]) -> None:
    """Puts the texts in their places, the last first, so that the others stay. New text has the file's line ends."""
    text = fixes[0][0].source.text
    ending = "\r\n" if "\r\n" in text else "\n"
    in_order = sorted(fixes, key=lambda each: each[0].start)
    for place, new in reversed(in_order):
        text = text[: place.start] + new.replace("\n", ending) + text[place.end :]
    write_file(Path(file).resolve(), text.encode())
    for place, new in fixes:
        was = f"`{place.text}` is now " if place.text else "added "
        say(f"{place}: {was}`{new.strip()}`")
