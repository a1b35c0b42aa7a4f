"""GLSL ES 3.00, for WebGL 2: fragment shaders for pictures and for lists of points.

There are neither images to write to, nor buffers, nor compute shaders. Rows of numbers are textures of one channel. The
ring of a slot continues in the next row of its texture when a row is full. Points are pixels, row after row, and each
coordinate is a texture of their size, `all_NAME`; so is an external read that changes from point to point, or from
pixel to pixel. One that changes by column or by row only is a single row. Targets of floats need
`EXT_color_buffer_float`.

A shader draws to at most four targets. A kernel that needs more is drawn in several passes, in any order, since all of
them read the state before the tick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

from weft.codegen import glsl
from weft.codegen.clike.emission import emit
from weft.codegen.clike.fields import NumberedKernel
from weft.codegen.clike.language import CodeLine, ProgramParts
from weft.codegen.clike.pieces import split
from weft.codegen.clike.prelude import EXACT, HALF_TURNS, functions_in
from weft.codegen.clike.shader import Bound, Forms, Shader
from weft.codegen.clike.texture_functions import survey
from weft.codegen.glsl import VERTEX as DESKTOP_VERTEX, Glsl
from weft.codegen.kernel import Kernel
from weft.ir.expr import StateSlot
from weft.ir.rates import Rate

TARGETS = 4
"""The number of targets that every browser can draw to at once, and every driver of OpenGL ES."""

ROW = 2048
"""The numbers in a row of a texture that every driver of OpenGL ES has."""

_VERSION = "#version 300 es"

_DESKTOP_VERSION = b"#version 330 core"

VERTEX = DESKTOP_VERTEX.replace(_DESKTOP_VERSION.decode(), _VERSION)
"""The vertex shader that goes with every fragment shader: three vertices, without attributes."""

_FUNCTIONS = """\
// A number of a ring, whose texture continues in the next row where one is full.
float remembered(sampler2D ring, int at) {
    int width = textureSize(ring, 0).x;
    return texelFetch(ring, ivec2(at % width, at / width), 0).r;
}

// A number of a row that is cut into rows of a texture.
float numbered(sampler2D row, int at) {
    return texelFetch(row, ivec2(at & ROW_1, at >> ROW_BITS), 0).r;
}""".replace("ROW_1", str(ROW - 1)).replace("ROW_BITS", str(ROW.bit_length() - 1))


@dataclass(frozen=True)
class Essl(Glsl):
    """Version 3.00 ES."""

    name: ClassVar[str] = "essl"
    targets: ClassVar[int] = TARGETS
    exact_waves: ClassVar[bool] = False
    by_reciprocal: ClassVar[bool] = False
    # Its waves are polynomials, which are.
    exact: ClassVar[Mapping[str, str]] = EXACT
    newer: ClassVar[Mapping[str, str]] = MappingProxyType({})
    fused: ClassVar[Mapping[str, str]] = MappingProxyType({})
    row_sampler: ClassVar[str] = "sampler2D"
    precisions: ClassVar[tuple[str, ...]] = tuple(
        f"precision highp {kind};" for kind in ("float", "int", "sampler2D", "sampler2DArray")
    )
    reserved: ClassVar[frozenset[str]] = Glsl.reserved | {"remembered", "numbered"}
    helpers: ClassVar[Mapping[str, str]] = MappingProxyType({**Glsl.helpers, **HALF_TURNS, **functions_in(_FUNCTIONS)})

    def array(self, slot: StateSlot) -> str:
        return slot.key

    def remembered(self, parts: ProgramParts, history: Bound, index: str) -> str:
        parts.helpers.add("remembered")
        return f"remembered({history.name}, {index})"

    def external_read(self, parts: ProgramParts, read: Bound, over: frozenset[Rate]) -> str:
        if len(over) > 1 or Rate.ELEMENT in over:
            return f"texelFetch({read.name}, at, 0).r"
        number = "at.x" if Rate.COLUMN in over else "at.y" if over else "0"
        return f"texelFetch({read.name}, ivec2({number}, 0), 0).r"

    def program(self, parts: ProgramParts) -> Shader:
        return self.drawn(parts, [_VERSION, *self.precisions])

    def coordinates(self, parts: ProgramParts, ends: Sequence[str]) -> list[CodeLine]:
        if parts.kernel.sweep == "grid":
            return super().coordinates(parts, ends)
        places = [f"float me_{name} = texelFetch(all_{name}, at, 0).r;" for name in parts.coords]
        return [*super().coordinates(replace(parts, coords=[]), [*ends, *places]), *map(CodeLine, places)]

    def more_samplers(self, parts: ProgramParts) -> list[str]:
        names = parts.coords if parts.kernel.sweep == "points" else []
        return [f"uniform sampler2D all_{name};" for name in names]


@dataclass(frozen=True)
class DriverEssl(Essl):
    """The same for drivers of OpenGL ES: slots share textures as on the desktop, and every row of numbers is cut into
    rows of `ROW` numbers."""

    array = Glsl.array
    remembered = Glsl.remembered
    external_read = Glsl.external_read

    def coordinates(self, parts: ProgramParts, ends: Sequence[str]) -> list[CodeLine]:
        if parts.kernel.sweep == "grid":
            return super().coordinates(parts, ends)
        point = f"int point = at.y * {ROW} + at.x;"
        first, *others = super().coordinates(parts, [*ends, point])
        return [first, CodeLine(point), *others]

    def in_row(self, parts: ProgramParts, row: str, index: str) -> str:
        parts.helpers.add("numbered")
        return f"numbered({row}, {index})"


def over_picture(kernel: Kernel, packed: bool, numbered: NumberedKernel | None = None) -> Forms:
    """The shaders of a kernel over a picture, for drivers. Raises UnsuitableError with the reason if it has none."""
    return glsl.over_picture(kernel, packed, numbered, DriverEssl())


def over_points(kernel: Kernel, numbered: NumberedKernel | None = None) -> Shader:
    """The shader that draws a pixel for each point, in rows of `ROW`. Raises UnsuitableError with the reason if it has
    none."""
    return emit(kernel, DriverEssl(), numbered=numbered)


def from_desktop(text: bytes) -> bytes:
    """A shader of version 3.30 that has nothing which is missing here, such as weft's own; others are unchanged."""
    head = "\n".join([_VERSION, *Essl.precisions]).encode()
    return text.replace(_DESKTOP_VERSION, head, 1) if text.startswith(_DESKTOP_VERSION) else text


def surveying(side: int) -> str:
    """The fragment shader that looks for values that are not finite or greater than `most`; see `survey`."""
    return survey(Essl(), [_VERSION, *Essl.precisions], side, bounded=True)


def passes(kernel: Kernel, packed: bool, macros: frozenset[str] = frozenset()) -> list[Shader]:
    """The shaders of a kernel, with its outputs as floats, or `packed` as the pixels of a picture; `macros` are those
    of the text that they are part of. Raises UnsuitableError with the reason if it has none."""
    return [emit(each, Essl(macros=macros), packed and bool(each.outputs)) for each in split(kernel, packed, TARGETS)]
