"""`weft check`: all errors and warnings of patches."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from weft.cli.console import ERRORS, exit_code_of, output, show, summary
from weft.cli.patch import probe
from weft.contexts import context_table
from weft.errors import Diagnostic, WeftError, path_of
from weft.runtime.forecast import check
from weft.syntax.includes import open_source, stdin_source

# As the name of a file: the standard input.
_STDIN = "-"


@click.command("check")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Diagnostics as JSON on stdout.")
def command(files: Sequence[str], as_json: bool) -> int:
    """List all errors and warnings of each FILE; - is what is piped in. Opens no device, and reads no more of a picture
    than its header."""
    found = {file: _diagnostics(file) for file in files}
    if as_json:
        output(json.dumps({"diagnostics": [d.to_json() for each in found.values() for d in each]}))
    else:
        for file, diagnostics in found.items():
            show(diagnostics)
            if not diagnostics:
                click.echo(f"{path_of(file)}: {summary(diagnostics)}", err=True)
    codes = set(map(exit_code_of, found.values()))
    return ERRORS if ERRORS in codes else max(codes)


def _diagnostics(file: str) -> Sequence[Diagnostic]:
    try:
        return check(stdin_source() if file == _STDIN else open_source(file), context_table(), probe)
    except WeftError as failure:
        return failure.diagnostics
