"""Which operands each operator and builtin is worth trying with, as its row says, so that most values of a generated
program vary and are numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import NamedTuple

from weft.ops import OPS, OpSpec
from weft.ops.spec import StateSpec


class Interval(NamedTuple):
    """About where the values of an expression lie."""

    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low

    def contains(self, other: Interval) -> bool:
        return self.low <= other.low and other.high <= self.high

    def covers_much_of(self, other: Interval) -> bool:
        """Whether `other` overlaps it, and is not so wide that most of it is outside."""
        return other.low < self.high and self.low < other.high and other.width <= 4 * self.width

    def joined(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))


UNIT = Interval(0, 1)


WRITTEN: Mapping[str, OpSpec] = {name: row for name, row in OPS.items() if row.kind != "internal"}
"""The rows that a program can write."""


def operand(spec: OpSpec | StateSpec, index: int) -> Interval:
    """Where an operand usually lies."""
    return Interval(*spec.usual.interval(index))


def _result(name: str) -> Interval:
    """About where the results lie for operands in their intervals, from some of them."""
    row, rng = WRITTEN[name], random.Random(name)
    if row.gives == "bool":
        return UNIT
    found = [row.fold(*(rng.uniform(*operand(row, k)) for k in range(len(row.params)))) for _ in range(60)]
    finite = [min(max(value, -1e3), 1e3) for value in found if math.isfinite(value)]
    return Interval(min(finite), max(finite))


RESULTS: Mapping[str, Interval] = {name: _result(name) for name in WRITTEN}
"""About where the results of each row lie."""
