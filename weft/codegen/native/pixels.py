"""Writes packed pixels: four bytes, red first; NaN is 0, the rest is clamped to 0…1, a half rounds up.

A channel is packed as rarely as it changes: once a launch (by whoever launches), once a column or row, or here at every
element; the pixel is the bits of these parts together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft.codegen.native.layout import Line, Scalar
from weft.codegen.native.nodes import Node
from weft.codegen.native.types import Value
from weft.codegen.native.writer import Writer
from weft.ir.rates import Rate

LEVELS = 255
_OPAQUE = LEVELS << 24
_BYTE = 8


@dataclass(slots=True)
class Channels:
    """The channels of a picture by where they are packed, each with its factor in a pixel: outputs that are numbers,
    that lie in lines, and that the element section computes. `base` is what is known already: an opaque alpha."""

    base: int
    levels: list[tuple[int, Scalar | float]] = field(default_factory=list)
    lines: dict[Rate, list[tuple[int, Line]]] = field(default_factory=dict)
    elements: list[tuple[int, Node]] = field(default_factory=list)

    def line(self, rate: Rate) -> Line | None:
        """The packed part of the pixels that changes by column or by row, if there is one."""
        return Line("pixels", rate.name, rate, "bits") if rate in self.lines else None


def plan_channels(outputs: Sequence[Node]) -> Channels:
    """Where each output of a picture is packed. One output is a gray, three are red, green and blue, a fourth is alpha.
    Raises ValueError if a picture cannot have so many."""
    if len(outputs) not in (1, 3, 4):
        raise ValueError(f"a picture has 1, 3 or 4 outputs, not {len(outputs)}")
    plan = Channels(0 if len(outputs) == 4 else _OPAQUE)
    for at, node in enumerate(outputs):
        factor = 0x010101 if len(outputs) == 1 else 1 << _BYTE * at
        match node.op:
            case "const":
                plan.levels.append((factor, float(node.attr)))
            case "scalar":
                plan.levels.append((factor, node.attr))
            case "line":
                plan.lines.setdefault(node.attr.rate, []).append((factor, node.attr))
            case _:
                plan.elements.append((factor, node))
    return plan


def pack(w: Writer, channels: Sequence[tuple[int, Value]]) -> Value | None:
    """The bits of some channels together."""
    packed: Value | None = None
    for factor, given in channels:
        shown = w.lesser(w.greater(w.as_real(given), w.real(0)), w.real(1))
        level = w.whole(w.fma(shown, w.real(LEVELS), w.real(0.5)))
        bits = _scaled(w, level, factor)
        packed = bits if packed is None else w.bits_or(packed, bits)
    return packed


def _scaled(w: Writer, level: Value, factor: int) -> Value:
    if factor.bit_count() > 1:
        return w.bits_mul(level, w.bits(factor))
    return w.bits_shl(level, w.bits(factor.bit_length() - 1)) if factor > 1 else level
