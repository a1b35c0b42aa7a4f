"""Which operands each operator and builtin is worth trying with, so that most values of a generated program vary and
are numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from weft.ops import OPS, STATE, OpSpec


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


@dataclass(frozen=True, slots=True)
class Recipe:
    """Where the operands of a row should lie, one interval each; the last one serves all further ones.

    `strict`: beyond them the result is no number, or infinite. `whole`: operands are worth comparing only when they
    are whole numbers. Truths have no interval of their own.
    """

    operands: tuple[Interval, ...]
    strict: bool = False
    whole: bool = False

    def operand(self, index: int) -> Interval:
        return self.operands[min(index, len(self.operands) - 1)]


def _r(*ends: float, strict: bool = False, whole: bool = False) -> Recipe:
    """A recipe from the ends of its intervals: low, high, low, high, …"""
    return Recipe(tuple(map(Interval, ends[::2], ends[1::2])), strict, whole)


RECIPES: Mapping[str, Recipe] = {
    "add": _r(-2, 2), "sub": _r(-2, 2), "mul": _r(-2, 2), "div": _r(-2, 2, 0.25, 4), "mod": _r(-6, 6, 0.3, 3),
    "neg": _r(-4, 4), "pow": _r(0.05, 3, -2, 3, strict=True), "abs": _r(-2, 2), "sign": _r(-2, 2),
    "min": _r(-2, 2), "max": _r(-2, 2),
    "or": _r(0, 1), "and": _r(0, 1), "not": _r(0, 1), "select": _r(0, 1, -2, 2),
    "eq": _r(0, 3, whole=True), "ne": _r(0, 3, whole=True), "lt": _r(-1, 1), "gt": _r(-1, 1), "le": _r(-1, 1),
    "ge": _r(-1, 1), "held": _r(-1, 1),
    "floor": _r(-6, 6), "ceil": _r(-6, 6), "round": _r(-6, 6), "trunc": _r(-6, 6), "fract": _r(-6, 6),
    "clamp": _r(-2, 2, -1, 0.2, 0.3, 1), "saturate": _r(-0.5, 1.5), "mix": _r(-2, 2, -2, 2, 0, 1), "step": _r(0, 1),
    "smoothstep": _r(-1, 0.4, 0.5, 1.5, -1, 2), "normalize": _r(-2, 2, -1, 0, 0.5, 2),
    "hypot": _r(-2, 2), "length": _r(-2, 2), "distance": _r(-2, 2), "deg": _r(-3.2, 3.2), "rad": _r(-180, 180),
    "sin": _r(-9, 9), "cos": _r(-9, 9), "tan": _r(-1.3, 1.3), "asin": _r(-1, 1, strict=True),
    "acos": _r(-1, 1, strict=True), "atan": _r(-6, 6), "atan2": _r(-2, 2),
    "exp": _r(-4, 2), "exp2": _r(-5, 3), "log": _r(0.01, 8, strict=True), "log2": _r(0.01, 8, strict=True),
    "log10": _r(0.01, 8, strict=True), "sqrt": _r(0, 4, strict=True), "cbrt": _r(-4, 4), "sinh": _r(-3, 3),
    "cosh": _r(-3, 3), "tanh": _r(-3, 3),
    "hash": _r(-40, 40), "noise": _r(-9, 9), "simplex": _r(-6, 6), "fbm": _r(-5, 5, -5, 5, -5, 5, 1, 3),
    "voronoi": _r(-6, 6),
}  # fmt: skip

# The stateful builtins, by the form of their calls: operands in their intervals. `cache` has a statement of its own.
STATE_RECIPES: Mapping[str, Recipe] = {
    "prev": _r(-2, 2), "delay": _r(-2, 2, 0, 3), "integrate": _r(-2, 2), "phasor": _r(-3, 3), "hold": _r(-2, 2, 0, 3),
    "rises": _r(-2, 2), "cache": _r(0, 3), "image": _r(-2, 2),
}  # fmt: skip

WRITTEN: Mapping[str, OpSpec] = {name: row for name, row in OPS.items() if row.kind != "internal"}
"""The rows that a program can write."""


def check_complete(rows: Iterable[str], recipes: Iterable[str]) -> None:
    """Raises KeyError for a row that has no recipe, and for a recipe that has no row."""
    if odd := set(rows) ^ set(recipes):
        raise KeyError(f"a row without a recipe, or a recipe without a row: {', '.join(sorted(odd))}")


def _result(name: str) -> Interval:
    """About where the results lie for operands in their intervals, from some of them."""
    row, recipe, rng = WRITTEN[name], RECIPES[name], random.Random(name)
    if row.gives == "bool":
        return UNIT
    found = [row.fold(*(rng.uniform(*recipe.operand(k)) for k in range(len(row.params)))) for _ in range(60)]
    finite = [min(max(value, -1e3), 1e3) for value in found if math.isfinite(value)]
    return Interval(min(finite), max(finite))


check_complete(WRITTEN, RECIPES)
check_complete(STATE, STATE_RECIPES)

RESULTS: Mapping[str, Interval] = {name: _result(name) for name in RECIPES}
"""About where the results of each row lie."""
