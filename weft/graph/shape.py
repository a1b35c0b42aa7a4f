"""The domain in which the render graph is built: what a value depends on, and which number it is if it is constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.errors import Span
from weft.graph.domain import SlotRequest
from weft.graph.fields import Coordinates
from weft.names import StrandRef
from weft.ops import OPS
from weft.sources import SourceSpec
from weft.syntax.ast import Call

# What a value depends on, one bit each; `UNKNOWN` marks what came from an argument that was never given. They are plain
# numbers, because flags take many times as long to combine, and every expression is made of some.
NOTHING = 0
X = 1
Y = 2
TIME = 4
CHANNEL = 8
UNIFORM = 16
UNKNOWN = 32

PLANE = X | Y


class Shape(NamedTuple):
    """What is known of a value: the bits of what it depends on, and its number if it is the same everywhere."""

    over: int
    number: float | None = None


OWN: Coordinates[Shape] = Coordinates(Shape(X), Shape(Y), Shape(TIME), Shape(CHANNEL))


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
    """`planar` holds the state slots that keep something over x or y, as far as earlier rounds found out."""

    planar: set[str] = field(default_factory=set)

    def const(self, value: float, span: Span | None = None) -> Shape:
        return Shape(NOTHING, float(value))

    def op(self, name: str, *args: Shape, span: Span | None = None) -> Shape:
        over = NOTHING
        numbers: list[float] = []
        for arg_over, number in args:
            over |= arg_over
            if number is not None:
                numbers.append(number)
        if len(numbers) == len(args):
            return Shape(over, OPS[name].fold(*numbers))
        return Shape(over)

    def uniform(self, name: str) -> Shape:
        return Shape(UNIFORM)

    def unknown(self) -> Shape:
        return Shape(UNKNOWN)

    def constant(self, value: Shape) -> float | None:
        return value.number

    def call(self, value: Shape, name: str, local: bool) -> None:
        """Nobody asks."""

    def is_unknown(self, value: Shape) -> bool:
        return bool(value.over & UNKNOWN)

    def loop_level(self, value: Shape) -> int:
        return -1

    def loop(self, level: int, first: Shape, last: Shape, inits: Sequence[Shape], span: Span) -> ShapeLoop:
        ends = first.over | last.over
        return ShapeLoop(Shape(ends | UNIFORM), [Shape(i.over | ends) for i in inits])

    def state(self, slot: SlotRequest, plane: int, ticks: Shape, at: Coordinates[Shape], span: Span) -> Shape:
        sampled = at.x.over | at.y.over if slot.key in self.planar else NOTHING
        return Shape(UNIFORM | ticks.over | sampled)

    def source(self, call: Call, spec: SourceSpec, plane: int, axis: Shape | None, at: Coordinates[Shape]) -> Shape:
        over = UNIFORM if axis is None else axis.over | UNIFORM
        return Shape(over | at.x.over | at.y.over | at.abstime.over)

    def external(self, ref: StrandRef, at: Coordinates[Shape], span: Span) -> Shape | None:
        return None
