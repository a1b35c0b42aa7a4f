"""Rows for exponentials, logarithms, roots and hyperbolic functions."""

from __future__ import annotations

import math

from weft.ops import formula as f, ieee, intervals, single
from weft.ops.formula import Term
from weft.ops.spec import OpSpec, params

# Below this size of x, sinh and tanh follow their series: the difference of exponentials would cancel.
_SERIES_LIMIT = 1 / 16


def _cbrt(x: float) -> float:
    size = abs(x)
    if size == 0 or not math.isfinite(size):
        return x
    root = size ** (1 / 3)
    return math.copysign(root + (size / (root * root) - root) / 3, x)


def _expand_cbrt(x: Term) -> Term:
    """The root of the size by its logarithm, one step of Newton's method for the last digits, and the sign of x."""
    size = f.abs(x)
    root = f.exp(f.log(size) / 3)
    square = root * root
    usable = f.and_(f.gt(square, 0), f.lt(square, math.inf))
    root = f.select(usable, root + (size / square - root) / 3, root)
    return f.select(f.lt(x, 0), -root, root)


def _expand_sinh(x: Term) -> Term:
    square = x * x
    series = x + x * square * (1 / 6 + square * (1 / 120 + square * (1 / 5040)))
    grown = f.exp(x)
    return f.select(f.lt(f.abs(x), _SERIES_LIMIT), series, (grown - 1 / grown) * 0.5)


def _expand_cosh(x: Term) -> Term:
    grown = f.exp(x)
    return (grown + 1 / grown) * 0.5


def _expand_tanh(x: Term) -> Term:
    size = f.abs(x)
    square = x * x
    series = x + x * square * (-1 / 3 + square * (2 / 15 + square * (-17 / 315 + square * (62 / 2835))))
    shrunk = f.exp(size * -2)  # never overflows
    bent = (1 - shrunk) / (1 + shrunk)
    return f.select(f.lt(size, _SERIES_LIMIT), series, f.select(f.lt(x, 0), -bent, bent))


ROWS = (
    OpSpec(
        "exp", "builtin", params("x"), "e to the power of x",
        fold=ieee.exp, vector="exp", native=single.exponential, double="exp",
        clike="exponential", example="exp(-me@x * 4)", cost=10,
    ),
    OpSpec(
        "exp2", "builtin", params("x"), "2 to the power of x",
        fold=ieee.exp2, vector="exp2", native=single.exponential_2, double="exp2", clike="power_of_two",
        example="exp2(me@x * 12)", cost=10,
    ),
    OpSpec(
        "log", "builtin", params("x"), "the natural logarithm of x; -infinity at 0, NaN below",
        fold=ieee.log, vector="log", native=single.logarithm, double="log",
        clike="logarithm", example="log(me@x + 1)", cost=10,
    ),
    OpSpec(
        "log2", "builtin", params("x"), "the logarithm of x to base 2; -infinity at 0, NaN below",
        fold=ieee.log2, vector="log2", native=single.logarithm_2, double="log2",
        clike="octaves", example="log2(me@x + 1)", cost=10,
    ),
    OpSpec(
        "log10", "builtin", params("x"), "the logarithm of x to base 10; -infinity at 0, NaN below",
        # By way of log2 the powers of ten come out whole.
        fold=ieee.log10, expand=lambda x: f.log2(x) * math.log10(2), example="log10(me@x + 1)", cost=11,
    ),
    OpSpec(
        "sqrt", "builtin", params("x"), "the square root of x; NaN below 0",
        fold=ieee.sqrt, vector="sqrt", native="sqrt", clike="sqrt", within=intervals.root,
        example="sqrt(me@x)", cost=6,
    ),
    OpSpec(
        "cbrt", "builtin", params("x"), "the cube root of x, negative for a negative x",
        fold=_cbrt, expand=_expand_cbrt, example="cbrt(me@x - 0.5)", cost=40,
    ),
    OpSpec(
        "sinh", "builtin", params("x"), "the hyperbolic sine of x",
        fold=ieee.sinh, expand=_expand_sinh, example="sinh(me@x)", cost=24,
    ),
    OpSpec(
        "cosh", "builtin", params("x"), "the hyperbolic cosine of x",
        fold=ieee.cosh, expand=_expand_cosh, example="cosh(me@x)", cost=16,
    ),
    OpSpec(
        "tanh", "builtin", params("x"), "the hyperbolic tangent of x, from -1 to 1: a soft limit for sounds",
        fold=math.tanh, expand=_expand_tanh, example="tanh(sin(me@time * tau) * 3)", cost=30,
    ),
)  # fmt: skip
