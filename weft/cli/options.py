"""Types of options that several commands share."""

from __future__ import annotations

import re
from typing import Any

import click


class Size(click.ParamType):
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
