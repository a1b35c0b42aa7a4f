"""`weft check`: all errors and warnings of a patch."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from weft.cli.console import exit_code_of, show, summary
from weft.cli.options import FILE, probe
from weft.errors import Diagnostic, WeftError
from weft.plugins import context_table
from weft.runtime.analysis import check
from weft.syntax.includes import open_source


@click.command("check")
@FILE
@click.option("--json", "as_json", is_flag=True, help="Diagnostics as JSON on stdout.")
def command(file: str, as_json: bool) -> int:
    """List all errors and warnings of FILE. Opens no device, and reads no more of a picture than its header."""
    diagnostics: Sequence[Diagnostic]
    try:
        diagnostics = check(open_source(file), context_table(), probe)
    except WeftError as failure:
        diagnostics = failure.diagnostics
    if as_json:
        click.echo(json.dumps({"diagnostics": [d.to_json() for d in diagnostics]}))
    elif diagnostics:
        show(diagnostics)
    else:
        click.echo(f"{file}: {summary(diagnostics)}", err=True)
    return exit_code_of(diagnostics)
