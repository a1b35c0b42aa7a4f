"""`weft new`: a patch to begin with."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from weft.cli.console import Missing, call, output, write_file
from weft.errors import visible_lines
from weft.syntax.scanner import ENDING


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Folders only: a new patch cannot have the name of a file that exists."""
    return [CompletionItem(incomplete, type="dir")]


@click.command("new")
@click.argument("wanted", metavar="FILE", shell_complete=_complete)
def command(wanted: str) -> None:
    """Write FILE, a commented patch to begin with. The ending .weft may be left out."""
    path = new_path(wanted)
    write_file(path, starter())
    words = f"{path} is written. Now play it, and change it while it plays:\n\n    {call('run', path)}\n"
    output(visible_lines(words))


def starter() -> bytes:
    """The text of a patch to begin with."""
    return resources.files("weft").joinpath("cli", "starter.weft").read_bytes()


def new_path(file: str) -> Path:
    """Where a patch that is to be called `file` goes. Raises Missing if it cannot: nothing is ever overwritten."""
    if os.path.isdir(file) or not os.path.basename(file):
        example = os.path.join(file, "hello" + ENDING)
        raise Missing(f"{file or 'the empty name'} is not the name of a file (name one, such as {example})")
    path = Path(file if file.endswith(ENDING) else file + ENDING)
    if not path.parent.is_dir():
        hint = f"make it with: mkdir -p {path.parent}" if not os.path.lexists(path.parent) else "it is a file"
        raise Missing(f"there is no folder {path.parent} ({hint})")
    if os.path.lexists(path):
        raise Missing(f"{path} is there already, and stays as it is (choose another name)")
    return path
