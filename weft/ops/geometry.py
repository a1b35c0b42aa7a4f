"""Rows for lengths and for units of angles."""

from __future__ import annotations

import math

from weft.ops import formula as f, ieee
from weft.ops.formula import Term
from weft.ops.spec import OpSpec, params


def length(*xs: Term) -> Term:
    """√(x₁² + x₂² + …), plainly: a square that overflows makes the length infinite."""
    first, *others = xs
    if not others:
        return f.abs(first)
    total = first * first
    for x in others:
        total = total + x * x
    return f.sqrt(total)


def _fold_length(*xs: float) -> float:
    return ieee.sqrt(sum(x * x for x in xs)) if len(xs) > 1 else abs(xs[0])


ROWS = (
    OpSpec(
        "hypot", "builtin", params("x", "y"), "the length of (x, y)",
        fold=_fold_length, expand=length, example="hypot(me@x - 0.5, me@y - 0.5)", cost=9,
    ),
    OpSpec(
        "length", "builtin", params("x"), "the length of a vector with any number of parts",
        fold=_fold_length, expand=length, variadic=True, example="length(me@x - 0.5, me@y - 0.5, 0.1)", cost=9,
    ),
    OpSpec(
        "distance", "builtin", params("x1", "y1", "x2", "y2"), "how far (x1, y1) is from (x2, y2)",
        fold=lambda x1, y1, x2, y2: _fold_length(x2 - x1, y2 - y1),
        expand=lambda x1, y1, x2, y2: length(x2 - x1, y2 - y1),
        example="distance(me@x, me@y, mouse@x, mouse@y)", cost=11,
    ),
    OpSpec(
        "deg", "builtin", params("x"), "x radians in degrees",
        fold=lambda x: x * (180 / math.pi), expand=lambda x: x * (180 / math.pi), example="deg(pi / 2)",
    ),
    OpSpec(
        "rad", "builtin", params("x"), "x degrees in radians",
        fold=lambda x: x * (math.pi / 180), expand=lambda x: x * (math.pi / 180), example="rad(90)",
    ),
)  # fmt: skip
