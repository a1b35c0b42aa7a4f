"""What commands print for people, their exit codes, and files that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from weft.codes.rows import DONE, ERRORS, InternalError
from weft.codes.table import CODES, spec_of
from weft.disk import replacing
from weft.errors import Diagnostic, Role, foremost, visible, visible_lines
from weft.platform import system


def call(*args: str | os.PathLike[str]) -> str:
    """A command line of weft that the user can type as it is: `weft run hello.weft`."""
    typed = os.environ.get("_WEFT_LAUNCHER") or sys.argv[0]
    name = os.path.basename(typed)
    program = system.quoted(typed)
    if name == "__main__.py":
        python = os.path.basename(sys.executable)
        program = f"{python if shutil.which(python) == sys.executable else system.quoted(sys.executable)} -m weft"
    elif (found := shutil.which(name)) is not None and os.path.realpath(found) == os.path.realpath(typed):
        program = name
    return " ".join([program, *(system.quoted(str(arg)) for arg in args)])


def named(path: str | os.PathLike[str]) -> str:
    """A path as a command line takes it: what begins like an option is preceded by its folder."""
    name = os.fspath(path)
    return os.path.join(os.curdir, name) if name.startswith("-") else name


_COLOURS = {"error": "red", "warning": "yellow"}


class Missing(InternalError):  # noqa: N818 -- named for its exit code
    """FILE itself, a device or a package is missing; the message is one line for people."""


def say(message: str) -> None:
    """Prints one line for people."""
    click.echo(f"weft: {visible(message)}", sys.stderr)


def mention(message: str) -> None:
    """The same for what goes on without it: a terminal that is closed, or the log on a full disk, must not end it."""
    with suppress(OSError, ValueError):
        say(message)


def output(text: str, end: str = "\n") -> None:
    """Prints the result of a command on stdout: unchanged for a program, and for a terminal with escapes for invisible
    characters. Raises OSError if it cannot be written."""
    shown = visible_lines(text) if sys.stdout.isatty() else text
    # The name of a file may hold bytes that are not text.
    click.echo((shown + end).encode(errors="surrogateescape"), nl=False)


def show(diagnostics: Iterable[Diagnostic]) -> None:
    """Prints diagnostics for people, the foremost if they are many, and a line that counts them and leads to the help;
    nothing if there are none."""
    found = list(diagnostics)
    if not found:
        return
    if len(found) == 1 and found[0].span is None and found[0].severity == "error":
        # It is about the command, a file or a device: there is no line of a patch to show.
        say(found[0].message + (f" ({found[0].hint})" if found[0].hint else ""))
        return
    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    shown, left_out = foremost(found)
    click.echo("\n\n".join(_painted(d) if colour else d.render() for d in shown), sys.stderr, color=colour)
    only = f"; {len(shown)} of them are shown, and weft check --json lists all" if left_out else ""
    click.echo(f"\n{summary(found)}{only}{_more(shown)}", sys.stderr)


def mention_all(diagnostics: Iterable[Diagnostic]) -> None:
    """What `mention` is to `say`, this is to `show`."""
    with suppress(OSError, ValueError):
        show(diagnostics)


def _more(shown: Sequence[Diagnostic]) -> str:
    """The command that says more about the first error, or else the first warning, for a user at a terminal."""
    first = min(shown, key=lambda d: d.severity != "error").code
    return f"; {call('help', first)} says more" if sys.stderr.isatty() and first in CODES else ""


def summary(diagnostics: Iterable[Diagnostic]) -> str:
    """The number of errors and warnings: `2 errors, 1 warning`."""
    severities = [d.severity for d in diagnostics]
    counts = [(severities.count("error"), "error"), (severities.count("warning"), "warning")]
    return ", ".join(f"{count} {word}{'s' * (count != 1)}" for count, word in counts if count) or "no errors"


def exit_code_of(diagnostics: Iterable[Diagnostic]) -> int:
    """The code of a command that ended with these diagnostics."""
    found = {spec_of(d.code).exit_code for d in diagnostics if d.severity == "error"}
    if not found:
        return DONE
    return found.pop() if len(found) == 1 else ERRORS


def _painted(diagnostic: Diagnostic) -> str:
    """The text of a diagnostic, with its severity and the carets in the colour of the severity."""
    colour = _COLOURS[diagnostic.severity]
    styles: dict[Role, dict[str, Any]] = {"severity": {"fg": colour, "bold": True}, "mark": {"fg": colour}}
    return "\n".join(
        "".join(click.style(text, **styles[role]) if role in styles else text for role, text in line)
        for line in diagnostic.text_lines()
    )


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """A temporary file in the folder of `path`. It replaces `path` when the block ends, and is deleted if the block
    fails. Raises Missing if the folder cannot be written to."""
    try:
        with replacing(path) as temporary:
            yield temporary
    except OSError as problem:
        raise Missing(f"{path} cannot be written: {problem.strerror}") from problem


def write_file(path: Path, data: bytes) -> None:
    """Writes a file as a whole. Raises Missing if that cannot be done."""
    with replacing_file(path) as temporary:
        temporary.write_bytes(data)


def make_folder(path: Path) -> None:
    """Makes a folder, and those above it. Raises Missing if that cannot be done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise Missing(f"{path} cannot be made: {problem.strerror}") from problem


def no_folder(folder: Path) -> str:
    """The words for a folder that is missing, and what to do."""
    hint = "it is a file" if os.path.lexists(folder) else f"make it with: mkdir -p {system.quoted(str(folder))}"
    return f"there is no folder {folder} ({hint})"


def new_path(file: str) -> Path:
    """The path of a patch that is to be called `file`. Raises Missing if it is taken: nothing is ever overwritten."""
    from weft.syntax.scanner import ENDING  # and with it all operators, which most of what is told does not need

    if os.path.isdir(file) or os.path.basename(file) in ("", "-"):  # elsewhere, - is what is piped in
        folder = os.path.dirname(file) if os.path.basename(file) == "-" else file
        example = os.path.join(folder, "hello" + ENDING)
        raise Missing(f"{file or 'the empty name'} is not the name of a file (name one, such as {example})")
    path = Path(file if file.endswith(ENDING) else file + ENDING)
    if not os.path.isdir(path.parent):
        raise Missing(no_folder(path.parent))
    if os.path.lexists(path):
        raise Missing(f"{path} is there already, and stays as it is (choose another name)")
    return path
