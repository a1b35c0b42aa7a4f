"""`weft export`: a patch as a page that plays it in any browser."""

from __future__ import annotations

from pathlib import Path

import click

from weft.cli.arguments import ALLOW, FILE, compile_file
from weft.cli.console import output, show, write_file
from weft.codes.rows import DONE, ERRORS
from weft.names import is_live
from weft.permissions import Permissions
from weft.syntax.includes import open_source
from weft.web.embedded import LIMIT
from weft.web.limits import nothing_plays
from weft.web.page import page_of
from weft.web.reference import reference, small_size


@click.command("export")
@FILE
@click.option("-o", "out", required=True, type=click.Path(path_type=Path), metavar="PAGE",
              help="The page that is written, such as page.html.")
@click.option("--media", "limit", type=click.IntRange(0), default=LIMIT, show_default=True, metavar="BYTES",
              help="The most bytes of pictures and sounds that the page holds.")
@click.option("--no-check", "unchecked", is_flag=True,
              help="Leave out the values with which page.html?check compares what it plays.")
@ALLOW
def command(file: str, out: Path, limit: int, unchecked: bool, permissions: Permissions) -> int:
    """Write FILE as one page of HTML that plays it in a browser, offline, from a disk or a link."""
    build = compile_file(file, permissions=permissions)
    values = None
    # What moves by itself is not the same in a browser.
    moves = any(is_live(name) for unit in build.units for name in unit.pictures)
    if not unchecked and not moves:
        values = reference(compile_file(file, settings=small_size(build), permissions=permissions))
    page = page_of(build, Path(file).stem, open_source(file).text, values, limit)
    if not page.plays:
        show([*build.warnings, *page.refused, nothing_plays(build)])
        return ERRORS
    show([*build.warnings, *page.refused])
    write_file(out, page.text.encode())
    output(str(out))
    return DONE
