"""`weft help`: what a name of the language means, how it is written, and an example; and what the code of an error
or a warning means."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace

import click
from click.shell_completion import CompletionItem

from weft.cli import COMMANDS
from weft.codes.rows import CodeSpec
from weft.codes.table import CODES
from weft.editor.topics import KINDS, Topic, all_names, find, tabled_topics, topics
from weft.errors import did_you_mean, error, visible, visible_lines
from weft.syntax.includes import libraries

# The signs within a name that have no meaning to a shell.
_JOINTS = str.maketrans("", "", "@-")

# Longer lines are hard to read even on a wide terminal.
_WIDEST = 100


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Names that can be typed, without those whose signs mean something to a shell."""
    known = {name: topic.meaning for topic in topics(incomplete) for name in (*topic.words, topic.name)}
    known |= {name: entry.summary for name, entry in COMMANDS.items()}
    known |= {code: row.meaning for code, row in CODES.items() if code not in known}
    usable = sorted(name for name in known if name.startswith(incomplete) and name.translate(_JOINTS).isidentifier())
    usable += sorted(name for name in known if name.startswith(incomplete) and name.startswith("std."))
    hidden = "" if "@" in incomplete else "@"  # x finds me@x, and there are a hundred keys
    return [CompletionItem(name, help=known[name]) for name in usable if not hidden or hidden not in name]


# "-=" is a name to look up, not an option.
@click.command("help", context_settings={"ignore_unknown_options": True})
@click.argument("name", required=False, shell_complete=_complete)
@click.pass_context
def command(ctx: click.Context, name: str | None) -> None:
    """Say what NAME means, how it is written, and show an example; without NAME, list what there is.

    NAME is a builtin, an operator (in quotes), a coordinate, a source, an output statement, a pragma, a library or
    a spindle of one, a command, an option, or the code of an error or warning.
    """
    if name is None:
        parts = ["\n".join(_overview())]
    else:
        # Of `~` outside quotes, the shell makes the home folder.
        name = "~" if name == os.path.expanduser("~") else name.strip()
        parts = ["\n".join(_entry(_seen(topic))) for topic in find(name)]
        group = ctx.find_root().command
        assert isinstance(group, click.Group)
        if name in COMMANDS and (found := group.get_command(ctx, name)):
            parts.append(found.get_help(click.Context(found, info_name=name, parent=ctx.parent)))
        # A message shows its code in brackets.
        if (code := name.removeprefix("[").removesuffix("]")) in CODES:
            parts.append("\n".join(entry_of_code(CODES[code])))
        if not parts and name.startswith("-"):
            parts = list(_option(name))
        if not parts:
            hint = did_you_mean(name, [*all_names(), *COMMANDS, *CODES]) or "weft help lists all names"
            raise error("unknown-name", f'nothing is called "{name}"', hint=hint)
    click.echo("\n\n".join(parts), color=False if os.environ.get("NO_COLOR") else None)


def _entry(topic: Topic) -> Iterator[str]:
    """How a topic is written, its meaning, its facts and its examples, line by line."""
    first, *others = topic.shown
    yield click.style(first, bold=True) + click.style(f"   {topic.kind}", dim=True)
    yield from (click.style(shown, bold=True) for shown in others)
    yield from _wrapped(topic.meaning, "  ", "  ")
    if topic.facts:
        yield ""
        yield from _facts(topic)
    if topic.examples:
        yield ""
        yield f"  Example{'s' * (len(topic.examples) > 1)}:"
    for number, example in enumerate(topic.examples):
        if number:
            yield ""
        yield from ("    " + click.style(line, fg="cyan") for line in example.split("\n"))


def _option(name: str) -> Iterator[str]:
    """What an option means to each command that has it. Raises WeftError if none has."""
    known: set[str] = set()
    found: dict[tuple[str, str], list[str]] = {}
    for command, entry in COMMANDS.items():
        options = importlib.import_module(entry.module).command
        for option in options.params:
            names = {*option.opts, *option.secondary_opts}
            record = option.get_help_record(click.Context(options))
            if record is None or isinstance(option, click.Argument):
                continue
            known |= names
            if name in names:
                found.setdefault(record, []).append(command)
    if not found:
        hint = did_you_mean(name, known) or "weft help run lists those of weft run"
        raise error("unknown-name", f'no command has an option "{name}"', hint=hint)
    for (shown, meaning), commands in found.items():
        yield "\n".join([
            click.style(shown, bold=True) + click.style(f"   option of weft {', '.join(commands)}", dim=True),
            *_wrapped(meaning, "  ", "  "),
        ])


def entry_of_code(row: CodeSpec) -> Iterator[str]:
    """The meaning of a code of an error or warning, line by line."""
    yield click.style(row.code, bold=True) + click.style(f"   {row.consequence}", dim=True)
    yield from _wrapped(row.explanation, "  ", "  ")
    yield ""
    if row.arises:
        yield from _wrapped(f"For example: {row.arises}", "  ", "  ")
        return
    for heading, text, colour in (("Wrong", row.wrong, "red"), ("Right", row.right, "cyan")):
        yield f"  {heading}:"
        yield from ("    " + click.style(line, fg=colour) for line in text.split("\n"))


def _seen(topic: Topic) -> Topic:
    """The topic, with escapes for characters that a terminal should not show. A package may have written them."""
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
    seen = [_seen(topic) for topic in tabled_topics()]
    headings = max(map(len, KINDS.values()))
    yield "weft help NAME says what a name means, with an example: weft help smoothstep"
    yield ""
    for kind, heading in KINDS.items():
        names = list(dict.fromkeys(topic.name for topic in seen if topic.kind == kind))
        names += libraries() if kind == "library" else ()  # each lists its own spindles
        if names:
            names = [name.removeprefix("me@") if kind in ("coordinate", "setting") else name for name in names]
            yield from _wrapped("  ".join(names), f"{heading:{headings}}  ", " " * (headings + 2))
    yield ""
    yield "Put signs in quotes:      weft help '<<'"
    yield "The options of a command: weft help run"
    yield "One option:               weft help --fps"
    yield "The code of a message:    weft help cycle"


def _wrapped(text: str, first: str, others: str) -> list[str]:
    return textwrap.wrap(
        text, width(), initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )


def width() -> int:
    """The columns of the terminal, at most 100; 80 for output into a pipe."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return 80
    return min(shutil.get_terminal_size().columns, _WIDEST)
