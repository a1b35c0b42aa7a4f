"""What commands say to people, the codes with which they end, and files that are written whole or not at all."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from weft.errors import Diagnostic, foremost, visible, visible_lines

# How the user calls weft, so that what a message tells to type next works as it stands.


def call(*args: str | os.PathLike[str]) -> str:
    """A command line of weft for the user's shell: `weft run hello.weft`."""
    return " ".join([_program(), *(shlex.quote(str(arg)) for arg in args)])


def _program() -> str:
    typed = sys.argv[0]
    name = os.path.basename(typed)
    if name == "__main__.py":
        python = os.path.basename(sys.executable)
        return f"{python if shutil.which(python) == sys.executable else shlex.quote(sys.executable)} -m weft"
    found = shutil.which(name)
    if found is not None and os.path.realpath(found) == os.path.realpath(typed):
        return name
    return shlex.quote(typed)


# What the commands say to people, and the codes with which they end.

# What scripts rely on; see INTERFACES. An error of weft itself is none of the user's, and has a code of its own.
ERRORS = 1
USAGE = 2
MISSING = 3
INTERNAL = 70
INTERRUPTED = 130

# Diagnostics that speak of FILE itself or of a device, not of what the patch says.
_MISSING_CODES = frozenset(
    {
        "unreadable-file",
        "backend-not-available",
        "device-lost",
        "not-enough-memory",
        "no-display",
        "no-monitor",
        "no-sound-device",
        "no-terminal",
        "display-lost",
        "picture-too-large",
        "sound-device-failed",
        "events-file",
    }
)

# Words on the command line that mean nothing here.
_USAGE_CODES = frozenset({"unknown-backend", "unknown-context", "unknown-name", "too-far"})

_COLOURS = {"error": "red", "warning": "yellow"}


class Missing(Exception):  # noqa: N818 -- named for its exit code
    """FILE itself, a device or a package is missing; the message is one line for people."""


def say(message: str) -> None:
    """One line for people."""
    click.echo(f"weft: {visible(message)}", err=True)


def output(text: str, end: str = "\n") -> None:
    """What a command was called for, on stdout: as it is for a program, and for a terminal with escapes in the place of
    what cannot be seen. Raises OSError where it cannot be written."""
    shown = visible_lines(text) if sys.stdout.isatty() else text
    # A file's name may have bytes that are no text.
    click.echo((shown + end).encode(errors="surrogateescape"), nl=False)


def show(diagnostics: Iterable[Diagnostic]) -> None:
    """Diagnostics for people, the foremost if they are many, with a line that counts them; nothing if there are none.
    """
    found = list(diagnostics)
    if not found:
        return
    if len(found) == 1 and found[0].span is None and found[0].severity == "error":
        # It is about the command, a file or a device, and has no line to show.
        say(found[0].message + (f" ({found[0].hint})" if found[0].hint else ""))
        return
    colour = _colourful()
    shown, left_out = foremost(found)
    click.echo("\n\n".join(_painted(d) if colour else d.render() for d in shown), err=True, color=colour)
    only = f"; {len(shown)} of them are shown, and weft check --json lists all" if left_out else ""
    click.echo(f"\n{summary(found)}{only}", err=True)


def summary(diagnostics: Iterable[Diagnostic]) -> str:
    """How many errors and warnings there are: `2 errors, 1 warning`."""
    severities = [d.severity for d in diagnostics]
    counts = [(severities.count("error"), "error"), (severities.count("warning"), "warning")]
    return ", ".join(f"{count} {word}{'s' * (count != 1)}" for count, word in counts if count) or "no errors"


def exit_code_of(diagnostics: Iterable[Diagnostic]) -> int:
    """The code of a command that ended with these diagnostics."""
    errors = {d.code for d in diagnostics if d.severity == "error"}
    if not errors:
        return 0
    if errors <= _USAGE_CODES:
        return USAGE
    return MISSING if errors <= _MISSING_CODES else ERRORS


def _colourful() -> bool:
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")


def _painted(diagnostic: Diagnostic) -> str:
    """The text of a diagnostic, with its severity and the carets in the colour of the severity."""
    colour = _COLOURS[diagnostic.severity]
    first, *rest = diagnostic.render().split("\n")
    word = f"{diagnostic.severity}: "
    lines = [first.replace(word, click.style(word, fg=colour, bold=True), 1)]
    for line in rest:
        gutter, bar, marks = line.partition(" | ")
        is_caret = bar and not gutter.strip() and set(marks.strip()) == {"^"}
        lines.append(gutter + bar + click.style(marks, fg=colour) if is_caret else line)
    return "\n".join(lines)


# Files that are there as a whole or not at all.


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to, which takes its place when the block ends, and is gone if the block fails.

    Raises Missing if the folder cannot be written to.
    """
    try:
        # Of the same ending, which says to a writer what to write.
        descriptor, name = tempfile.mkstemp(prefix=f".{path.stem[:40]}-", suffix=path.suffix, dir=path.parent)
        os.close(descriptor)
    except OSError as problem:
        raise Missing(f"{path} cannot be written: {problem.strerror}") from problem
    beside = Path(name)
    try:
        yield beside
        # As a file made the usual way would have it; a temporary one is closed to others.
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, path)
    except OSError as problem:
        raise Missing(f"{path} cannot be written: {problem.strerror}") from problem
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()


def write_file(path: Path, data: bytes) -> None:
    """Writes a file as a whole. Raises Missing if that cannot be done."""
    with replacing_file(path) as beside:
        beside.write_bytes(data)


def make_folder(path: Path) -> None:
    """A folder, with those above it. Raises Missing if it cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise Missing(f"{path} cannot be made: {problem.strerror}") from problem


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
