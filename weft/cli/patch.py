"""Arguments and options that commands share, and what every command does with FILE."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import weft
from weft.cli.console import Missing
from weft.contexts import ContextTable
from weft.graph.domain import SETTINGS
from weft.plugins import context_table
from weft.runtime.build import Build, build
from weft.syntax.includes import open_source

# Arguments and options that several commands share.

if TYPE_CHECKING:
    _SizeType = click.ParamType[tuple[int, int]]
else:
    _SizeType = click.ParamType  # not generic in every version of click that will do


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
        for name, pixels in (("width", width), ("height", height)):
            if not SETTINGS[name].accepts(pixels):
                self.fail(f"the {name} of a picture is {SETTINGS[name].range}, not {pixels}", param, ctx)
        return width, height


SIZE = _Size()


class NumberRange(click.FloatRange):
    """A number between bounds that are part of it; neither nan, which no bound keeps out, nor inf."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


# Read by weft itself, which says what is wrong with a file in its own words and with its own exit code.
FILE = click.argument("file", type=click.Path())


def probe(path: str) -> str | None:
    """What is wrong with a picture file, from its header; None for one that is fine."""
    from weft.media.pictures import picture_problem  # Pillow: only for patches with pictures

    return picture_problem(path)


# What every command does with FILE: reading, compiling, warning.


def compile_file(
    file: str,
    contexts: ContextTable | None = None,
    settings: Mapping[str, float] | None = None,
    optimise: bool = True,
) -> Build:
    """FILE, compiled; `settings` override those of the patch. Raises WeftError if it cannot be read or has errors."""
    return build(open_source(file), contexts or context_table(), settings, optimise, probe)


def comes_with_weft(path: Path) -> bool:
    """Whether a patch is one of those that come with weft, beside which nothing should be written."""
    try:
        return shipped_patches().resolve() in path.resolve().parents
    except Missing:
        return False


def shipped_patches() -> Path:
    """The folder of the patches that come with weft: in a wheel inside the package, in a checkout beside it.

    Raises Missing if there is neither.
    """
    package = Path(os.path.abspath(weft.__file__)).parent
    for folder in (package / "patches", package.parent / "patches"):
        if folder.is_dir():
            return folder
    raise Missing("the patches that come with weft are not installed")
