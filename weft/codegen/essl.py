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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

from weft.codegen.clike.body import emit
from weft.codegen.clike.language import CodeLine, ProgramParts
from weft.codegen.clike.prelude import HALF_TURNS, functions_in
from weft.codegen.clike.shader import Bound, Shader
from weft.codegen.glsl import VERTEX as DESKTOP_VERTEX, Glsl, survey
from weft.codegen.kernel import Kernel
from weft.codegen.values import Section
from weft.ir.expr import StateSlot
from weft.ir.rates import Rate

TARGETS = 4
"""The number of targets that every browser can draw to at once."""

_VERSION = "#version 300 es"

VERTEX = DESKTOP_VERTEX.replace("#version 330 core", _VERSION)
"""The vertex shader that goes with every fragment shader: three vertices, without attributes."""

_FUNCTIONS = """\
// A number of a ring, whose texture continues in the next row where one is full.
float remembered(sampler2D ring, int at) {
    int width = textureSize(ring, 0).x;
    return texelFetch(ring, ivec2(at % width, at / width), 0).r;
}"""


@dataclass(frozen=True)
class Essl(Glsl):
    """Version 3.00 ES."""

    name: ClassVar[str] = "essl"
    targets: ClassVar[int] = TARGETS
    exact_waves: ClassVar[bool] = False
    row_sampler: ClassVar[str] = "sampler2D"
    precisions: ClassVar[tuple[str, ...]] = tuple(
        f"precision highp {kind};" for kind in ("float", "int", "sampler2D", "sampler2DArray")
    )
    reserved: ClassVar[frozenset[str]] = Glsl.reserved | {"remembered"}
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


def surveying(side: int) -> str:
    """The fragment shader that looks for values that are not finite or greater than `most`; see `survey`."""
    return survey(Essl(), [_VERSION, *Essl.precisions], side, bounded=True)


def passes(kernel: Kernel, packed: bool, macros: frozenset[str] = frozenset()) -> list[Shader]:
    """The shaders of a kernel, with its outputs as floats, or `packed` as the pixels of a picture; `macros` are those
    of the text that they are part of. Raises UnsuitableError with the reason if it has none."""
    return [emit(each, Essl(macros=macros), packed and bool(each.outputs)) for each in _split(kernel, packed)]


def _split(kernel: Kernel, packed: bool) -> Iterator[Kernel]:
    """A kernel as several, none of which needs more targets than there are: the outputs first, then the new values of
    slots."""
    section = kernel.section(Rate.ELEMENT)
    room = TARGETS - any(node.op == "loop" for _, node in kernel.walk())
    outputs, stores = len(section.outputs), len(section.stores)
    per_target = max(1, outputs) if packed else 4
    targets = [*range(0, outputs, per_target)]
    # Stores for which there is room are drawn together with the last outputs.
    while targets or stores:
        taken, targets = targets[:room], targets[room:]
        first, end = (taken[0], taken[-1] + per_target) if taken else (0, 0)
        count = min(stores, room - len(taken))
        start = len(section.stores) - stores
        stores -= count
        part = Section(
            section.rate, section.nodes, section.outputs[first:end], section.stores[start : start + count],
            section.locals, section.notes,
        )  # fmt: skip
        sections = tuple(part if each is section else each for each in kernel.sections)
        yield replace(kernel, outputs=kernel.outputs[first:end], sections=sections)
