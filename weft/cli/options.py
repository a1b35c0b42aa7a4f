"""Types of options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from weft.cli.console import Missing
from weft.errors import did_you_mean

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
        if not (1 <= width <= 16384 and 1 <= height <= 16384):
            self.fail(f"a picture of {width}×{height} is not possible; 1x1 to 16384x16384 is", param, ctx)
        return width, height


SIZE = _Size()


def refused_backend(name: str, known: Iterable[str]) -> Exception:
    """What to raise for a backend that cannot be used: one that this version lacks, or a name that means nothing."""
    if name in _LATER:
        return Missing(f'this version has no backend "{name}" yet; there are {" and ".join(known)}')
    hint = did_you_mean(name, known) or f"there are {' and '.join(known)}"
    return click.UsageError(f'there is no backend "{name}" ({hint})')
