"""`weft help`: what a name of the language means, how it is written, and an example."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace

import click
from click.shell_completion import CompletionItem

from weft.cli import COMMANDS
from weft.cli.topics import KINDS, Topic, all_names, all_topics, find
from weft.errors import did_you_mean, error
from weft.sources import NOT_READABLE
from weft.wording import visible, visible_lines

# Longer lines are hard to read, however wide the terminal is.
_WIDEST = 100


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Names as they would be typed: signs are left out, which a shell takes for its own."""
    topics = all_topics()
    known = {name: topic.meaning for topic in topics for name in (*topic.words, topic.name)}
    known |= {name: entry.summary for name, entry in COMMANDS.items()}
    usable = sorted(name for name in known if name.startswith(incomplete) and name.replace("@", "").isidentifier())
    usable += sorted(name for name in known if name.startswith(incomplete) and name.startswith("std."))
    hidden = "" if "@" in incomplete else "@"  # me@x is found as x, and there are a hundred keys
    return [CompletionItem(name, help=known[name]) for name in usable if not hidden or hidden not in name]


# "-=" is a name to look up, not an option.
@click.command("help", context_settings={"ignore_unknown_options": True})
@click.argument("name", required=False, shell_complete=_complete)
@click.pass_context
def command(ctx: click.Context, name: str | None) -> None:
    """Say what NAME means, how it is written, and show an example; without NAME, list what there is.

    NAME is a builtin, an operator (in quotes), a coordinate, a source, an output statement, a pragma, a library or
    a spindle of one, or a command.
    """
    if name is None:
        _print("\n".join(_overview()))
        return
    name = _as_typed(name)
    topics = [_seen(topic) for topic in find(name)]
    parts = ["\n".join(_entry(topic)) for topic in topics]
    if name in COMMANDS:
        parts.append(_of_command(ctx, name))
    if not parts:
        hint = did_you_mean(name, [*all_names(all_topics()), *COMMANDS]) or "weft help lists all names"
        raise error("unknown-name", f'there is no "{name}" to tell of', hint=hint)
    _print("\n\n".join(parts))


def _print(text: str) -> None:
    click.echo(text, color=False if os.environ.get("NO_COLOR") else None)


def _as_typed(name: str) -> str:
    """What was typed before the shell made a folder of it: `~` outside quotes is the home folder."""
    return "~" if name == os.path.expanduser("~") else name.strip()


def _of_command(ctx: click.Context, name: str) -> str:
    group = ctx.find_root().command
    assert isinstance(group, click.Group)
    found = group.get_command(ctx, name)
    assert found is not None
    return found.get_help(click.Context(found, info_name=name, parent=ctx.parent))


def _entry(topic: Topic) -> Iterator[str]:
    """How a topic is written, its meaning, its facts and its examples, line by line."""
    first, *others = topic.shown
    yield click.style(first, bold=True) + click.style(f"   {topic.kind}", dim=True)
    yield from (click.style(shown, bold=True) for shown in others)
    yield from _wrapped(topic.meaning, "  ", "  ")
    if topic.facts:
        yield ""
        yield from _facts(topic)
    if topic.lacks:
        yield ""
        yield from _wrapped(topic.lacks, "  Note: ", "  ")
    if topic.examples:
        yield ""
        yield f"  Example{'s' * (len(topic.examples) > 1)}:"
    for number, example in enumerate(topic.examples):
        if number:
            yield ""
        yield from ("    " + click.style(line, fg="cyan") for line in example.split("\n"))


def _seen(topic: Topic) -> Topic:
    """The topic as a terminal may show it, whatever a package wrote into it."""
    return replace(
        topic,
        name=visible(topic.name),
        shown=tuple(map(visible, topic.shown)),
        meaning=visible_lines(topic.meaning),
        examples=tuple(map(visible_lines, topic.examples)),
        facts=tuple((visible(heading), visible_lines(text)) for heading, text in topic.facts),
    )


def _facts(topic: Topic) -> Iterator[str]:
    column = min(max(len(heading) for heading, _ in topic.facts), 28)
    for heading, text in topic.facts:
        if len(heading) > column:
            yield f"  {heading}"
            yield from _wrapped(text, " " * (column + 4), " " * (column + 4))
        else:
            yield from _wrapped(text, f"  {heading:{column}}  ", " " * (column + 4))


def _overview() -> Iterator[str]:
    """All names, kind by kind."""
    topics = [_seen(topic) for topic in all_topics()]
    headings = max(map(len, KINDS.values()))
    yield "weft help NAME says what a name means, with an example: weft help smoothstep"
    yield ""
    for kind, heading in KINDS.items():
        shown = ((topic, "*" * (topic.lacks != "" and kind == "source")) for topic in topics if topic.kind == kind)
        names = list(dict.fromkeys(topic.name + mark for topic, mark in shown))
        if names and kind != "library spindle":  # each library lists its own
            names = [name.removeprefix("me@") if kind in ("coordinate", "setting") else name for name in names]
            yield from _wrapped("  ".join(names), f"{heading:{headings}}  ", " " * (headings + 2))
    yield ""
    yield f"* {NOT_READABLE}"
    yield "Signs stand in quotes:    weft help '<<'"
    yield "The options of a command: weft help run"


def _wrapped(text: str, first: str, others: str) -> list[str]:
    return textwrap.wrap(
        text, width(), initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )


def width() -> int:
    """Columns of the terminal; where the output goes into a pipe, a usual number of them."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return 80
    return min(shutil.get_terminal_size().columns, _WIDEST)
