"""Interval arithmetic: bounds for the results of rows, for operands within intervals; NaN and rounding aside."""

from __future__ import annotations

import math
from typing import NamedTuple


class Interval(NamedTuple):
    """All numbers from `low` to `high`, both included."""

    low: float
    high: float

    @property
    def size(self) -> float:
        """The largest size of such a number."""
        return max(abs(self.low), abs(self.high))


ANYWHERE = Interval(-math.inf, math.inf)
UNIT = Interval(0.0, 1.0)
WAVE = Interval(-1.0, 1.0)
HALF_TURNS = Interval(-math.pi, math.pi)


def number(value: float) -> Interval:
    """The interval of one number; `ANYWHERE` for NaN."""
    return ANYWHERE if math.isnan(value) else Interval(value, value)


def total(a: Interval, b: Interval) -> Interval:
    return Interval(_sum(a.low, b.low, -math.inf), _sum(a.high, b.high, math.inf))


def difference(a: Interval, b: Interval) -> Interval:
    return total(a, opposite(b))


def opposite(a: Interval) -> Interval:
    return Interval(-a.high, -a.low)


def product(a: Interval, b: Interval) -> Interval:
    ends = [x * y if x and y else 0.0 for x in a for y in b]  # 0 times an infinity is NaN
    return Interval(min(ends), max(ends))


def quotient(a: Interval, b: Interval) -> Interval:
    if b.low <= 0 <= b.high:
        return ANYWHERE
    ends = [x / y if math.isfinite(x) or math.isfinite(y) else 0.0 for x in a for y in b]
    return Interval(min(ends), max(ends))


def remainder(a: Interval, b: Interval) -> Interval:
    if b.low > 0:
        return Interval(0.0, min(a.high, b.high) if a.low >= 0 else b.high)
    if b.high < 0:
        return Interval(max(a.low, b.low) if a.high <= 0 else b.low, 0.0)
    return ANYWHERE


def size(a: Interval) -> Interval:
    least = 0.0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
    return Interval(least, a.size)


def whole_below(a: Interval) -> Interval:
    low, high = (float(math.floor(end)) if math.isfinite(end) else end for end in a)
    return Interval(low, high)


def root(a: Interval) -> Interval:
    return Interval(math.sqrt(max(0.0, a.low)), math.sqrt(max(0.0, a.high)))


def either(*operands: Interval) -> Interval:
    """The interval of the smallest or the largest of some operands. It may be any of them, since others may be NaN."""
    return Interval(min(each.low for each in operands), max(each.high for each in operands))


def choice(_condition: Interval, a: Interval, b: Interval) -> Interval:
    return either(a, b)


def wave(_angle: Interval) -> Interval:
    return WAVE


def angle(_y: Interval, _x: Interval) -> Interval:
    return HALF_TURNS


def truth(*_operands: Interval) -> Interval:
    return UNIT


def _sum(a: float, b: float, unknown: float) -> float:
    """An end of a sum; `unknown` for opposite infinities."""
    made = a + b
    return unknown if math.isnan(made) else made
