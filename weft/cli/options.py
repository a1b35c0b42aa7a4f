"""Arguments and options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from weft.cli.console import Missing
from weft.errors import did_you_mean
from weft.graph.settings import SETTINGS

if TYPE_CHECKING:
    _SizeType = click.ParamType[tuple[int, int]]
else:
    _SizeType = click.ParamType  # not generic in every version of click that will do

# Named by the interface, and not in this version.
_LATER = frozenset({"native", "gl", "metal"})


class _Size(_SizeType):
    """`640x360`: a width and a height in pixels."""

    name = "WxH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value[0], value[1]
        match = re.fullmatch(r"(\d+)[x×](\d+)", str(value))
        if match is None:
            self.fail(f"{value!r} is no size; write it like 640x360", param, ctx)
        width, height = int(match[1]), int(match[2])
        for name, value in (("width", width), ("height", height)):
            if not SETTINGS[name].accepts(value):
                self.fail(f"the {name} of a picture is {SETTINGS[name].range}, not {value}", param, ctx)
        return width, height


SIZE = _Size()

# Read by weft itself, which says what is wrong with a file in its own words and with its own exit code.
FILE = click.argument("file", type=click.Path())


def probe(path: str) -> str | None:
    """What is wrong with a picture file, from its header; None for one that is fine."""
    from weft.media.pictures import picture_problem  # Pillow: only for patches with pictures

    return picture_problem(path)


def refused_backend(name: str, known: Iterable[str]) -> Exception:
    """What to raise for a backend that cannot be used: one that this version lacks, or a name that means nothing."""
    if name in _LATER:
        return Missing(f'this version has no backend "{name}" yet; there are {" and ".join(known)}')
    hint = did_you_mean(name, known) or f"there are {' and '.join(known)}"
    return click.UsageError(f'there is no backend "{name}" ({hint})')
