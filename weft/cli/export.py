"""`weft export`: a patch as a page that plays it in any browser."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import click

from weft.backends.hardware import cores
from weft.backends.registry import load_registry
from weft.backends.select import choose, contexts_of
from weft.cli.arguments import ALLOW, FILE, NumberRange, WholeRange, check_written, compile_file
from weft.cli.console import output, say, show, write_file
from weft.codes.rows import DONE, ERRORS
from weft.permissions import Permissions
from weft.runtime.films.offline import Offline
from weft.syntax.includes import open_source
from weft.web.embedded import LIMIT
from weft.web.limits import nothing_plays
from weft.web.page import page_of
from weft.web.poster import Poster, poster_of
from weft.web.reference import moving_picture, reference, small_size


def _published(context: click.Context, option: click.Parameter, value: str) -> str:
    if value and not re.fullmatch(r"https?://[^\s/]+/\S*", value):
        raise click.BadParameter(f"{value!r} is not an address such as https://example.org/page.html")
    return value


@click.command("export")
@FILE
@click.option("-o", "out", required=True, type=click.Path(path_type=Path), metavar="PAGE",
              help="The page that is written, such as page.html; - is stdout.")
@click.option("--media", "limit", type=WholeRange(0), default=LIMIT, show_default=True, metavar="BYTES",
              help="The most bytes of pictures and sounds that the page holds.")
@click.option("--no-check", "unchecked", is_flag=True,
              help="Leave out the values with which page.html?check compares what it plays.")
@click.option("--poster", "moment", type=NumberRange(0), metavar="S",
              help="Write the picture of this second next to the page, as PAGE with .png, for previews of links.")
@click.option("--address", default="", callback=_published, metavar="URL",
              help="Where the page will be published. Most previews of links need it to find the poster.")
@ALLOW
def command(file: str, out: Path, limit: int, unchecked: bool, moment: float | None, address: str,
            permissions: Permissions) -> int:
    """Write FILE as one page of HTML that plays it in a browser, offline, from a disk or a link."""
    is_piped = str(out) == "-"
    if is_piped and moment is not None:
        raise click.UsageError("--poster is next to a page, so -o needs a file")
    if is_piped and sys.stdout.isatty():
        raise click.UsageError("-o - writes the page for another program, and stdout is a terminal")
    check_written("-o", out, [file])
    build = compile_file(file, permissions=permissions)
    values = None
    if not unchecked and moving_picture(build) is None:
        values = reference(compile_file(file, settings=small_size(build), permissions=permissions))
    poster = None if moment is None else _poster(file, moment, out.with_suffix(".png"), permissions)
    page = page_of(build, Path(file).stem, open_source(file).text, values, limit, poster, address)
    if not page.plays:
        show([*build.warnings, *page.refused, nothing_plays(build)])
        return ERRORS
    show([*build.warnings, *page.refused])
    if is_piped:
        output(page.text, end="")
        return DONE
    write_file(out, page.text.encode())
    output(str(out))
    if poster is not None:
        write_file(out.with_suffix(".png"), poster.png)
        output(str(out.with_suffix(".png")))
    return DONE


def _poster(file: str, moment: float, path: Path, permissions: Permissions) -> Poster | None:
    """The poster with the picture of FILE's first window at a moment, which `path` will hold."""
    registry = load_registry()
    choices = choose(registry, [spec.name for spec in registry.contexts], None, os.environ.get("WEFT_BACKEND"))
    build = compile_file(file, contexts_of(registry, choices), permissions=permissions)
    offline = Offline(build, choices, cores())
    if not offline.shows:
        say("there is no picture, and so no poster")
        return None
    return poster_of(offline.at(moment), moment, path.name)
