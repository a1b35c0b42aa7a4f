"""The domain in which the render graph is built: what a value depends on, and which number it is if it is constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntFlag

from weft.errors import Span
from weft.graph.domain import SlotRequest
from weft.graph.fields import Coordinates
from weft.names import StrandRef
from weft.ops import OPS
from weft.sources import SourceSpec
from weft.syntax.ast import Call


class Over(IntFlag):
    """The coordinates and other things that a value depends on. `UNKNOWN` marks what came from an argument that was
    never given."""

    NOTHING = 0
    X = 1
    Y = 2
    TIME = 4
    CHANNEL = 8
    UNIFORM = 16
    UNKNOWN = 32


PLANE = Over.X | Over.Y


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of a value: what it depends on, and its number if it is the same everywhere."""

    over: Over
    number: float | None = None


OWN: Coordinates[Shape] = Coordinates(Shape(Over.X), Shape(Over.Y), Shape(Over.TIME), Shape(Over.CHANNEL))


@dataclass(slots=True)
class ShapeLoop:
    """Starts from what the carried values depend on at first, and goes on until no step adds anything."""

    index: Shape
    carried: list[Shape]

    def close(self, nexts: Sequence[Shape]) -> bool:
        joined = [Shape(a.over | b.over) for a, b in zip(self.carried, nexts, strict=True)]
        done = joined == self.carried
        self.carried = joined
        return done

    @property
    def results(self) -> Sequence[Shape]:
        return self.carried


@dataclass(slots=True)
class ShapeDomain:
    """`slots` holds what each state slot depends on, as far as earlier rounds found out."""

    slots: dict[str, Over] = field(default_factory=dict)

    def const(self, value: float, span: Span | None = None) -> Shape:
        return Shape(Over.NOTHING, float(value))

    def op(self, name: str, *args: Shape, span: Span | None = None) -> Shape:
        over = Over.NOTHING
        for arg in args:
            over |= arg.over
        numbers = [a.number for a in args if a.number is not None]
        if len(numbers) == len(args):
            return Shape(over, OPS[name].fold(*numbers))
        return Shape(over)

    def uniform(self, name: str) -> Shape:
        return Shape(Over.UNIFORM)

    def unknown(self) -> Shape:
        return Shape(Over.UNKNOWN)

    def constant(self, value: Shape) -> float | None:
        return value.number

    def is_unknown(self, value: Shape) -> bool:
        return bool(value.over & Over.UNKNOWN)

    def loop_level(self, value: Shape) -> int:
        return -1

    def loop(self, level: int, first: Shape, last: Shape, inits: Sequence[Shape], span: Span) -> ShapeLoop:
        ends = first.over | last.over
        return ShapeLoop(Shape(ends | Over.UNIFORM), [Shape(i.over | ends) for i in inits])

    def state(self, slot: SlotRequest, plane: int, ticks: Shape, at: Coordinates[Shape], span: Span) -> Shape:
        kept = self.slots.get(slot.key, Over.NOTHING)
        sampled = at.x.over | at.y.over if kept & PLANE else Over.NOTHING
        return Shape(Over.UNIFORM | ticks.over | sampled)

    def source(self, call: Call, spec: SourceSpec, plane: int, axis: Shape | None, at: Coordinates[Shape]) -> Shape:
        over = Over.UNIFORM if axis is None else axis.over | Over.UNIFORM
        return Shape(over | at.x.over | at.y.over | at.abstime.over)

    def external(self, ref: StrandRef, at: Coordinates[Shape], span: Span) -> Shape | None:
        return None
