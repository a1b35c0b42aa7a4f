"""Arguments and options that commands share, and how every command reads and compiles FILE."""

from __future__ import annotations

import gc
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import weft
from weft.cli.console import Missing
from weft.contexts import ContextTable, context_table
from weft.errors import visible
from weft.graph.domain import SETTINGS
from weft.media.sampled import header_of
from weft.permissions import DEFAULT_PERMISSIONS, NETWORK, Permissions, real_path
from weft.runtime.compiling.stages import Build, Request, build
from weft.syntax.includes import open_source

if TYPE_CHECKING:
    _SizeType = click.ParamType[tuple[int, int]]
    _TextType = click.ParamType[str]
else:
    _SizeType = _TextType = click.ParamType  # not generic in every version of click that is allowed


class _Size(_SizeType):
    """`640x360`: a width and a height in pixels."""

    name = "WxH"

    def __init__(self, example: str = "640x360") -> None:
        self._example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value[0], value[1]
        match = re.fullmatch(r"(\d+)[x×](\d+)", str(value))
        if match is None:
            self.fail(f"{value!r} is not a size; write it like {self._example}", param, ctx)
        width, height = int(match[1]), int(match[2])
        for name, pixels in (("width", width), ("height", height)):
            if not SETTINGS[name].accepts(pixels):
                self.fail(f"the {name} of a picture is {SETTINGS[name].range}, not {pixels}", param, ctx)
        return width, height


SIZE, CELLS = _Size(), _Size("5x4")


def _bounds(least: float | None, most: float | None) -> str:
    """Inclusive bounds, in words that follow what is bounded; empty if there are none."""
    low, high = (None if each is None else f"{each:,.12g}" for each in (least, most))
    if low is not None and high is not None:
        return f" from {low} to {high}"
    return f" from {low} on" if low is not None else f" up to {high}" if high is not None else ""


class NumberRange(click.FloatRange):
    """A number between inclusive bounds; neither nan, which bounds do not exclude, nor inf."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = super().convert(value, param, ctx)
        except click.BadParameter:
            number = math.nan
        if not math.isfinite(number):
            self.fail(f"{value!r} is not {self.words}", param, ctx)
        return number

    @property
    def words(self) -> str:
        """What it takes."""
        return f"a number{_bounds(self.min, self.max)}"


class WholeRange(click.IntRange):
    """A whole number between inclusive bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a whole number{_bounds(self.min, self.max)}", param, ctx)


class _Allowed(_TextType):
    """`net`, or the path of a folder."""

    name = f"{NETWORK}|FOLDER"
    envvar_list_splitter = os.pathsep

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value != NETWORK and not os.path.isdir(value):
            self.fail(f"{value!r} is neither {NETWORK} nor a folder", param, ctx)
        return str(value)


def _permitted(_ctx: click.Context, _param: click.Parameter, words: Sequence[str]) -> Permissions:
    return Permissions.of(words)


ALLOW = click.option("--allow", "permissions", type=_Allowed(), metavar=_Allowed.name, multiple=True,
                     callback=_permitted, envvar="WEFT_ALLOW",
                     help="Let patches open streams of the network, or the files below FOLDER, besides their own; "
                     "WEFT_ALLOW says it too.")  # fmt: skip

# Read by weft itself, which reports problems of a file in its own words and with its own exit code.
FILE = click.argument("file", type=click.Path(readable=False))


SAMPLES = click.option("--samples", type=WholeRange(1, 8), metavar="N",
                       help="N × N samples a pixel, for smooth edges, instead of the patch's.")  # fmt: skip


def setting_overrides(
    size: tuple[int, int] | None = None, fps: float | None = None, rate: float | None = None,
    samples: int | None = None,
) -> dict[str, float]:
    """The settings that options override."""
    width, height = size or (None, None)
    options = {"width": width, "height": height, "fps": fps, "rate": rate, "samples": samples}
    return {name: float(value) for name, value in options.items() if value is not None}


@contextmanager
def compiling() -> Iterator[None]:
    """What a command compiles is not searched for garbage: it lives as long as the command, or nearly so."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def compile_file(
    file: str, contexts: ContextTable | None = None, settings: Mapping[str, float] | None = None, optimise: bool = True,
    permissions: Permissions = DEFAULT_PERMISSIONS,
) -> Build:  # fmt: skip
    """FILE, compiled; `settings` override those of the patch. Raises WeftError if it cannot be read or has errors."""
    contexts = contexts or context_table()
    with compiling():
        return build(Request(open_source(file), contexts, settings, probe=header_of, permissions=permissions), optimise)


def check_windows(names: Iterable[str], known: Sequence[str]) -> None:
    """Raises UsageError for a name that is not among those of the pictures of a patch."""
    for name in names:
        if name not in known:
            there = f"it has {', '.join(map(visible, known))}" if known else "its pictures have no names"
            raise click.UsageError(f'no display(…, to: "{visible(name)}") is in the patch; {there}')


def check_written(option: str, path: str | os.PathLike[str], patches: Iterable[str | os.PathLike[str]]) -> None:
    """Raises UsageError if what an option writes would take the place of a patch, given or not."""
    is_patch = os.fspath(path).lower().endswith(".weft")
    for patch in patches:
        with suppress(OSError):  # one of them is not there
            is_patch = is_patch or os.path.samefile(path, patch)
    if is_patch:
        raise click.UsageError(f"{option} would write over a patch: {visible(os.fspath(path))} (choose another name)")


def comes_with_weft(path: Path) -> bool:
    """Whether a patch is one of those that come with weft. Nothing should be written to their folders."""
    try:
        return Path(real_path(shipped_patches())) in Path(real_path(path)).parents
    except Missing:
        return False


def shipped_patches() -> Path:
    """The folder of the patches that come with weft: inside the package in a wheel, next to it in a checkout.

    Raises Missing if there is neither.
    """
    package = Path(os.path.abspath(weft.__file__)).parent
    for folder in (package / "patches", package.parent / "patches"):
        if folder.is_dir():
            return folder
    raise Missing("the patches that come with weft are not installed")
