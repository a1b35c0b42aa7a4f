"""Writes packed pixels: four bytes, red first; NaN is 0, the rest is clamped to 0…1, a half rounds up.

A channel is packed as rarely as it changes: once a launch (by whoever launches), once a column or row, or here at every
element; the pixel is the bits of these parts together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft.codegen.native.ranges import affine, interval
from weft.codegen.native.types import LlvmValue
from weft.codegen.native.writer import FunctionWriter
from weft.codegen.values import Line, Node, Scalar
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
    elements: list[Level] = field(default_factory=list)

    @property
    def opaque(self) -> bool:
        return bool(self.base)

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
                plan.elements.append(Level.of(factor, node, plan.opaque))
    return plan


@dataclass(frozen=True, slots=True)
class Level:
    """A channel on its way into a pixel: `scale · base + offset`, rounded down, is its level of 0…255. It has to be
    clamped unless it lies there anyway."""

    factor: int
    base: Node
    scale: float
    offset: float
    clamped: bool

    @classmethod
    def of(cls, factor: int, node: Node, opaque: bool) -> Level:
        """The level of a value. What a value ends in joins the scale of the levels."""
        found = affine(node)
        low, high = interval(node)
        # NaN becomes a number with nothing but its highest bit set, where it is not clamped: only alpha could see that.
        clamped = not (opaque and low > _LOWEST and high < _HIGHEST)
        return cls(factor, found.base, found.scale * LEVELS, found.offset * LEVELS + 0.5, clamped)


# Values whose levels are rounded to 0 and to 255, with some room for what was rounded before.
_LOWEST, _HIGHEST = -0.001, 1.001


def pack(w: FunctionWriter, levels: Sequence[Level]) -> LlvmValue | None:
    """The bits of some channels together. Their bases have been computed."""
    packed: LlvmValue | None = None
    for each in levels:
        level = w.fma(w.as_real(w.value(each.base)), w.real(each.scale), w.real(each.offset))
        if each.clamped:
            level = w.lesser(w.greater(level, w.real(0)), w.real(LEVELS))
        bits = _scaled(w, w.whole(level), each.factor)
        packed = bits if packed is None else w.bits_or(packed, bits)
    return packed


def _scaled(w: FunctionWriter, level: LlvmValue, factor: int) -> LlvmValue:
    if factor.bit_count() > 1:
        return w.bits_mul(level, w.bits(factor))
    return w.bits_shl(level, w.bits(factor.bit_length() - 1)) if factor > 1 else level
