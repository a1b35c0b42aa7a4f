"""`weft fmt`: patches in one style."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path

import click

from weft.cli.console import exit_code_of, output, say, show, write_file
from weft.codes.rows import DONE, ERRORS
from weft.contexts import context_table
from weft.errors import Diagnostic, Source, WeftError, path_of
from weft.syntax.formatting import formatted
from weft.syntax.includes import open_source, stdin_source

# As the name of a file: the standard input, whose formatted text goes to stdout.
_STDIN = "-"

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@click.command("fmt")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(readable=False, allow_dash=True))
@click.option("--check", "is_check", is_flag=True, help="Write nothing; end with 1 if a file would change.")
@click.option("--diff", "is_diff", is_flag=True, help="Write nothing; show what would change.")
def command(files: Sequence[str], is_check: bool, is_diff: bool) -> int:
    """Write each FILE in one style, which changes nothing but white space; - formats what is piped in, to stdout. Lines
    end where they did. A file with mistakes stays as it is, and so does one that is in style."""
    codes = [_format(file, is_check, is_diff) for file in files]
    return ERRORS if ERRORS in codes else max(codes)


def _format(file: str, is_check: bool, is_diff: bool) -> int:
    """Formats one file, and returns the exit code for it."""
    is_read_only = is_check or is_diff
    source = None
    try:
        source = stdin_source() if file == _STDIN else open_source(file)
        text = formatted(source, context_table().statements)
    except WeftError as failure:
        if source is not None and file == _STDIN and not is_read_only:
            output(source.text, end="")  # an editor may put in place of its text whatever comes out
        return _refused(failure.diagnostics)
    if is_diff:
        output(_difference(source, text), end="")
    if is_check:
        if text != source.text:
            click.echo(f"{path_of(source.name)}: not in style", err=True)
        return ERRORS if text != source.text else DONE
    if file == _STDIN and not is_read_only:
        output(text, end="")
    elif text != source.text and not is_read_only:
        write_file(Path(file).resolve(), text.encode())
        say(f"{path_of(file)} is formatted")
    return DONE


def _refused(diagnostics: Sequence[Diagnostic]) -> int:
    show(diagnostics)
    return exit_code_of(diagnostics)


def _difference(source: Source, text: str) -> str:
    """What would change, as `patch` reads it; empty if nothing does."""
    before, after = _LINE.findall(source.text), _LINE.findall(text)
    lines = difflib.unified_diff(before, after, source.name, f"{source.name} (formatted)")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
