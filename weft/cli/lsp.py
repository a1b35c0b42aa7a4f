"""`weft lsp`: the language server, for editors."""

from __future__ import annotations

import importlib.util

import click

from weft.cli.arguments import ALLOW
from weft.cli.console import Missing
from weft.errors import installs
from weft.permissions import Permissions

_NEEDS = "pygls"


@click.command("lsp")
@click.option("--stdio", is_flag=True, help="Speak over stdin and stdout, which is the only way; some editors say it.")
@ALLOW
def command(stdio: bool, permissions: Permissions) -> None:
    """Serve an editor that speaks the Language Server Protocol, over stdin and stdout: diagnostics as one types,
    completion, help, renaming and more. Editors start it; docs/editors.md says how each is told."""
    if importlib.util.find_spec(_NEEDS) is None:
        raise Missing(f"the language server needs {_NEEDS} ({installs('editor')})")
    from weft.editor.protocol import serve  # needs what may not be installed

    serve(permissions)
