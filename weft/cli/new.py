"""`weft new`: a patch to begin with."""

from __future__ import annotations

from importlib import resources

import click
from click.shell_completion import CompletionItem

from weft.cli.console import call, named, new_path, output, write_file
from weft.errors import visible_lines


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Folders only: a new patch cannot have the name of a file that exists."""
    return [CompletionItem(incomplete, type="dir")]


@click.command("new")
@click.argument("wanted", metavar="FILE", shell_complete=_complete)
def command(wanted: str) -> None:
    """Write FILE, a commented patch to begin with. The ending .weft may be left out."""
    path = new_path(wanted)
    write_file(path, starter())
    words = f"{path} is written. Now play it, and change it while it plays:\n\n    {call('run', named(path))}\n"
    output(visible_lines(words))


def starter() -> bytes:
    """The text of a patch to begin with."""
    return resources.files("weft").joinpath("cli", "starter.weft").read_bytes()
