"""What can be made of a subgraph for OpenGL without having any: its programs' texts, and why it has none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from weft.codegen import glsl
from weft.codegen.base import Kernel
from weft.codegen.clike.shader import Shader, UnsuitableError
from weft.codegen.unit import Unit
from weft.names import StrandRef


@dataclass(frozen=True, slots=True)
class GlCode:
    """The programs of a unit: over its sweep, and over points for the strands that others read, as far as they have
    any."""

    grid: Shader
    points: Mapping[StrandRef, Shader] = field(default_factory=dict)

    def wide(self, kernel: Kernel) -> Shader:
        """The program over the sweep that gives its outputs as they are."""
        return self.grid if not self.grid.packed else over_picture(kernel, packed=False)


def translated(unit: Unit, packed: bool) -> GlCode:
    """The code of a unit. Raises UnsuitableError with the reason if it has none."""
    packs = packed and bool(unit.kernel.outputs)
    points = {}
    for ref, kernel in unit.points.items():
        with suppress(UnsuitableError):  # the processor computes it
            points[ref] = glsl.points(kernel)
    return GlCode(over_picture(unit.kernel, packs), points)


def over_picture(kernel: Kernel, packed: bool) -> Shader:
    """The program of a kernel over a picture. Raises UnsuitableError."""
    return glsl.fragment(kernel, packed, glsl.needs_modern(kernel))


def problem(unit: Unit, packed: bool) -> str | None:
    """Why a unit has no programs; None if it has."""
    try:
        translated(unit, packed)
    except UnsuitableError as failure:
        return str(failure)
    return None
