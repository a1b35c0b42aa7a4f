"""What can be made of a subgraph for a graphics card without having any: its programs' texts, and why it has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.codegen.base import Kernel
from weft.codegen.clike.shader import Shader, UnsuitableError
from weft.codegen.unit import Unit
from weft.errors import WeftError, error
from weft.names import StrandRef


class Dialect(NamedTuple):
    """What makes programs in a language: of kernels over a picture (`packed` as pixels, or not), and over points. Both
    raise UnsuitableError."""

    over_picture: Callable[[Kernel, bool], Shader]
    over_points: Callable[[Kernel], Shader]


@dataclass(frozen=True, slots=True)
class ShaderCode:
    """The programs of a unit: over its sweep, and over points for the strands that others read, as far as they have
    any."""

    grid: Shader
    points: Mapping[StrandRef, Shader] = field(default_factory=dict)


def translated(unit: Unit, packed: bool, dialect: Dialect) -> ShaderCode:
    """The code of a unit. Raises UnsuitableError with the reason if it has none."""
    packs = packed and bool(unit.kernel.outputs)
    points = {}
    for ref, kernel in unit.points.items():
        with suppress(UnsuitableError):  # the processor computes it
            points[ref] = dialect.over_points(kernel)
    return ShaderCode(dialect.over_picture(unit.kernel, packs), points)


def refused(shader: Shader, library: str, words: str, line: int, dump: str) -> WeftError:
    """What to raise for a text that a compiler does not take: its words, and which of the lines (from 1; 0 where it
    does not say) they are about. `dump` is the option that shows the text."""
    place = shader.places[line - 1] if 0 < line <= len(shader.places) else ""
    where = f" for {place}" if place else ""
    first = next((text.strip() for text in words.splitlines() if text.strip()), "it does not say why")
    hint = f"weft compile {dump} shows the program; --backend native draws with the processor"
    return error("driver-refused", f"{library} refuses the program{where}: {first}", hint=hint)


def problem(unit: Unit, packed: bool, dialect: Dialect) -> str | None:
    """Why a unit has no programs; None if it has."""
    try:
        translated(unit, packed, dialect)
    except UnsuitableError as failure:
        return str(failure)
    return None
