"""`weft examples`: the patches that come with weft, to be listed, played and copied."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from weft.cli.arguments import shipped_patches
from weft.cli.console import Missing, call, make_folder, named, new_path, output, say, write_file
from weft.cli.help import width
from weft.contexts import context_table
from weft.errors import did_you_mean, visible, visible_lines
from weft.syntax.docs import first_sentence, opening_line
from weft.syntax.includes import open_source
from weft.syntax.scanner import ENDING, is_patch_name

# Folders of patches that are measured or included, not played.
_NOT_TO_PLAY = ("bench", "lib")


def shipped() -> Mapping[str, Path]:
    """The patches to play by name, in alphabetical order. Raises Missing if none are installed."""
    folder = shipped_patches()
    paths = [path.relative_to(folder) for path in folder.rglob("*" + ENDING) if is_patch_name(path.name)]
    return {p.with_suffix("").as_posix(): folder / p for p in sorted(paths) if p.parts[0] not in _NOT_TO_PLAY}


def headline(path: Path) -> str:
    """A description of a patch, from the comment that it begins with."""
    return first_sentence(opening_line(path.read_text(encoding="utf-8")))


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    return [CompletionItem(n, help=headline(p)) for n, p in shipped().items() if n.startswith(incomplete)]


@click.command("examples")
@click.argument("name", required=False, shell_complete=_complete)
@click.option("--copy", is_flag=False, flag_value="", metavar="[FILE]",
              help="Copy it and the files that it reads instead; without FILE, here, under its own name.")  # fmt: skip
@click.option("--path", "show_path", is_flag=True, help="Print the path of its file instead.")
@click.pass_context
def command(ctx: click.Context, name: str | None, copy: str | None, show_path: bool) -> int:
    """Play the example NAME; without NAME, list the patches that come with weft."""
    patches = shipped()
    if name is None:
        if copy is not None or show_path:
            raise click.UsageError("name the example: weft examples lists them", ctx)
        output("\n".join(_listed(patches)))
        return 0
    path = patches.get(name.removesuffix(ENDING))
    if path is None:
        hint = did_you_mean(name, patches) or f"examples: {', '.join(patches)}"
        raise click.UsageError(f'there is no example "{name}" ({hint})', ctx)
    if show_path:
        output(str(path))
        return 0
    if copy is not None:
        _copy(path, new_path(copy or path.name))
        return 0
    say(f"to have a copy of your own: {call('examples', name, '--copy', path.name)}")
    return _play(ctx, path)


def _listed(patches: Mapping[str, Path]) -> Iterator[str]:
    column = max(map(len, patches), default=0)
    line = width() if sys.stdout.isatty() else sys.maxsize  # a program that reads this finds one patch a line
    for name, path in patches.items():
        yield from textwrap.wrap(
            visible(headline(path)), line, initial_indent=f"{name:{column}}  ", subsequent_indent=" " * (column + 2)
        )
    if patches:
        name = next(iter(patches))
        yield f"\nPlay one:  {call('examples', name)}"
        yield f"Copy it:   {call('examples', name, '--copy', 'mine' + ENDING)}"


def _play(ctx: click.Context, path: Path) -> int:
    """Does what `weft run PATH` does."""
    run: Any = ctx.find_root().command
    play = run.get_command(ctx, "run")
    here = os.path.relpath(path)
    shortest = str(path) if here.startswith(os.pardir) else here
    with play.make_context("run", [shortest], parent=ctx.parent) as inner:
        result = play.invoke(inner)
    return result if isinstance(result, int) else 0


def _copy(path: Path, target: Path) -> None:
    """Copies a patch and the files that it reads, which keep their places relative to it. Raises Missing if that would
    overwrite a file."""
    from weft.runtime.compiling.stages import Request, analyse  # the compiler, which a list does not need

    contents = {target: path.read_bytes()}
    found = analyse(Request(open_source(str(path)), context_table()))
    for file in (*found.files[1:], *found.media):
        place = target.parent / Path(file).relative_to(path.parent)
        data = Path(file).read_bytes()
        if not os.path.lexists(place):
            contents[place] = data
        elif not place.is_file() or place.read_bytes() != data:
            raise Missing(f"{place} is there already, and is another file (copy into a folder of its own)")
    for place in reversed(contents):  # the patch last: it never exists without what it reads
        make_folder(place.parent)
        write_file(place, contents[place])
    read = [str(place) for place in contents if place != target]
    others = f", with {', '.join(read)}" if read else ""
    output(visible_lines(f"{target} is copied{others}. Now play it:\n\n    {call('run', named(target))}\n"))


