"""Rows that split numbers into whole parts and rests."""

from __future__ import annotations

from weft.ops import formula as f, ieee
from weft.ops.formula import Term
from weft.ops.spec import OpSpec, params


def _ceil(x: float) -> float:
    return -ieee.floor(-x)


def _trunc(x: float) -> float:
    whole = ieee.floor(abs(x))
    return -whole if x < 0 else whole


def _round(x: float) -> float:
    size = abs(x)
    whole = ieee.floor(size)
    nearest = whole + 1 if size - whole >= 0.5 else whole
    return -nearest if x < 0 else nearest


def _expand_trunc(x: Term) -> Term:
    whole = f.floor(f.abs(x))
    return f.select(f.lt(x, 0), -whole, whole)


def _expand_round(x: Term) -> Term:
    """Looks at the exact rest, since `x + 0.5` would itself be rounded."""
    size = f.abs(x)
    whole = f.floor(size)
    nearest = f.select(f.ge(size - whole, 0.5), whole + 1, whole)
    return f.select(f.lt(x, 0), -nearest, nearest)


ROWS = (
    OpSpec(
        "floor", "builtin", params("x"), "the next whole number downwards",
        fold=ieee.floor, vector="floor", native="floor", clike="floor", keeps_finite=True,
        example="floor(me@x * 8) / 8",
    ),
    OpSpec(
        "ceil", "builtin", params("x"), "the next whole number upwards",
        fold=_ceil, expand=lambda x: -f.floor(-x), example="ceil(me@x * 8) / 8", cost=3,
    ),
    OpSpec(
        "round", "builtin", params("x"), "the nearest whole number; a half goes away from zero",
        fold=_round, expand=_expand_round, example="round(me@x * 8) / 8", cost=8,
    ),
    OpSpec(
        "trunc", "builtin", params("x"), "x without its fraction: the next whole number towards zero",
        fold=_trunc, expand=_expand_trunc, example="trunc(me@x * 8 - 4)", cost=5,
    ),
    OpSpec(
        "fract", "builtin", params("x"), "x - floor(x): a ramp from 0 to 1",
        fold=lambda x: ieee.remainder(x, 1.0), expand=lambda x: x % 1, example="fract(me@x * 4)", cost=3,
    ),
)  # fmt: skip
