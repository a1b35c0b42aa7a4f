"""The page of a program: HTML with its description, the modules that play it, and a style."""

from __future__ import annotations

import html
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote, urljoin

from weft.codegen.kernel import number_to_json
from weft.errors import Diagnostic
from weft.runtime.compiling.stages import Build
from weft.web.description import Description
from weft.web.embedded import LIMIT, embedded
from weft.web.limits import told
from weft.web.packed import packed
from weft.web.poster import MOMENT, Poster
from weft.web.reference import ReferenceValues, moving_picture

Json: TypeAlias = Any

MODULES = (
    "kernels.js", "packed.js", "card.js", "launch.js", "strands.js", "subgraphs.js", "pictures.js", "player.js",
    "media.js", "inputs.js", "panel.js", "screen.js", "offline.js", "still.js", "watch.js", "main.js",
)  # fmt: skip
"""The modules of every page, in JavaScript, each after those that it imports."""

SOUND_MODULES = ("fourier.js", "analyses.js", "hearing.js", "mixer.js", "worklet.js", "sound.js")
"""Those of a page with sound."""

CHECK_MODULES = ("check.js",)
"""Those of a page that can compare itself."""

TEMPO_MODULES = ("tempo.js", "midi_ports.js", "midi_clock.js")
"""Those of a page whose patch reads the beat, which a clock of MIDI may lead."""

DEVICE_MODULES = ("devices.js",)
"""Those of a page whose patch reads devices."""

FILM_MODULES = ("films.js",)
"""Those of a page with films."""

MIDI_MODULES = ("midi_ports.js", "midi.js")
"""Those of a page whose patch reads MIDI."""

KNOB_MODULES = ("midi_ports.js", "knobs.js")
"""Those of a page with parameters, which knobs may move."""

# Nothing that a page holds may ask anything of a network.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' data:; style-src 'unsafe-inline'; "
    "img-src data: blob:; media-src data: blob: mediastream:; connect-src data:; worker-src data: blob:"
)


class Page(NamedTuple):
    """A page as text, and what it cannot play of the program."""

    text: str
    refused: tuple[Diagnostic, ...]
    plays: bool
    """Whether anything is left that is seen or heard."""


def page_of(
    build: Build, title: str, source: str, check: ReferenceValues | None = None, limit: int = LIMIT,
    poster: Poster | None = None, address: str = "",
) -> Page:
    """The page of a program, whose text is `source`, with at most `limit` bytes of media. `address` is where it will be
    published, if that is known. Raises PictureError for a file that cannot be read."""
    description, about = Description(build), about_of(source)
    program = description.program()
    media = embedded(description.pictures, limit)
    refused = (*told(build), *description.refused, *media.left_out)
    program |= {"title": title, "about": about, "media": media.records, "notes": [each.message for each in refused]}
    program |= {"cameras": media.cameras, "films": media.films}
    program["moment"] = MOMENT if poster is None else poster.seconds
    moving = moving_picture(build)
    program["unchecked"] = (
        "the page was made without values to compare" if moving is None else f"{moving} is never the same twice"
    )
    program["check"] = None if check is None else check.to_json()
    program = without_folders(program, build.media)
    program["source"] = source
    plays = any(each["shown"] for each in (*program["subgraphs"], *program["sounds"]))
    return Page(html_of(program, title, about, poster, address), refused, plays)


def without_folders(value: Json, paths: Iterable[str]) -> Json:
    """A value whose texts name files as they are called, and not where they are on this machine."""
    folders = sorted({path.removesuffix(Path(path).name) for path in paths} - {""}, key=len, reverse=True)
    if not folders:
        return value
    pattern = re.compile("|".join(map(re.escape, folders)))

    def renamed(each: Json) -> Json:
        match each:
            case str():
                return pattern.sub("", each)
            case dict():
                return {renamed(key): renamed(inner) for key, inner in each.items()}
            case list() | tuple():
                return [renamed(inner) for inner in each]
        return each

    return renamed(value)


def about_of(source: str) -> str:
    """What a patch says about itself: the comment with which it begins, as one line."""
    lines = itertools.takewhile(lambda line: line.startswith("//"), source.lstrip().splitlines())
    return " ".join(line.lstrip("/").strip() for line in lines)


def html_of(program: Json, title: str, about: str, poster: Poster | None = None, address: str = "") -> str:
    """The page with a description, which is data in it, never markup: packed, it has no character that could be."""
    folder = files("weft.web")
    scripts = "\n".join(
        f'<script type="text/plain" data-module="{name}">\n{folder.joinpath(name).read_text("utf-8")}</script>'
        for name in _modules(program)
    )
    return _PAGE.format(
        policy=_POLICY, title=html.escape(title), about=html.escape(about),
        preview="\n".join(_preview(poster, address)),
        poster="" if poster is None else f'<img id="poster" alt="" src="{poster.preview}">',
        style=folder.joinpath("page.css").read_text("utf-8"),
        program=packed(as_data(program).encode()),
        scripts=scripts,
        loader=folder.joinpath("loader.js").read_text("utf-8"),
    )  # fmt: skip


def _preview(poster: Poster | None, address: str) -> Iterator[str]:
    """What programs that show links read of a page, besides its title. They take addresses of pictures, but not what is
    in the page, and most take whole addresses only."""
    if address:
        yield _META.format("og:url", html.escape(address))
    if poster is not None:
        yield _META.format("og:image", html.escape(urljoin(address, quote(poster.name))))
        for name, side in zip(("width", "height"), poster.size, strict=True):
            yield _META.format(f"og:image:{name}", side)
        yield '<meta name="twitter:card" content="summary_large_image">'


_META = '<meta property="{}" content="{}">'


def _modules(program: Json) -> tuple[str, ...]:
    """The modules that a program needs."""
    reads = program["uniforms"]
    needed = (
        (MODULES, True),
        (CHECK_MODULES, program["check"] is not None),
        (SOUND_MODULES, bool(program["sounds"])),
        (TEMPO_MODULES, program["beats"]),
        (DEVICE_MODULES, bool(program["cameras"]) or any(name.startswith(("sent:", "mic:")) for name in reads)),
        (FILM_MODULES, bool(program["films"])),
        (MIDI_MODULES, any(name.startswith('sent:["midi_') for name in reads)),
        (KNOB_MODULES, bool(program["parameters"])),
    )
    return tuple(dict.fromkeys(name for names, is_needed in needed if is_needed for name in names))


def as_data(value: Json) -> str:
    """A value as JSON, in ASCII."""
    return json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)


def _finite(value: Json) -> Json:
    """A value in which numbers that are not finite are texts."""
    match value:
        case float():
            # Whole numbers are shorter without their point.
            is_whole = value.is_integer() and abs(value) < 2**53 and math.copysign(1, value) > 0
            return int(value) if is_whole else number_to_json(value)
        case dict():
            return {key: _finite(each) for key, each in value.items()}
        case list() | tuple():
            return [_finite(each) for each in value]
    return value


_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="weft">
<meta name="description" content="{about}">
<meta property="og:type" content="website">
<meta property="og:title" content="{title}">
<meta property="og:description" content="{about}">
{preview}
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main id="stage">{poster}</main>
<button id="begin" hidden>play</button>
<form id="panel" aria-label="parameters" hidden></form>
<pre id="source" aria-label="the patch" tabindex="0" hidden></pre>
<p id="words" role="status" hidden></p>
<p id="note" role="status" hidden></p>
<noscript>This page needs JavaScript, with which it draws and plays.</noscript>
<script type="text/plain" id="program">{program}</script>
{scripts}
<script>
{loader}</script>
</body>
</html>
"""
