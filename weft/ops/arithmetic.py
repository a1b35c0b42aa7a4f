"""Rows for arithmetic: the operators `+ - * / % ^`, and what needs nothing but them and a comparison."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

from weft.ops import double, ieee, intervals, single
from weft.ops import formula as f
from weft.ops.formula import Term
from weft.ops.spec import OpSpec, params

# Up to this exponent a chain of products is cheaper than a power, and its rounding still cannot be seen.
_LONGEST_CHAIN = 16

# Reciprocals of powers of two are exact; within these exponents they are so in single precision too.
_SAFE_EXPONENT = 100


def _mod(a: float, b: float) -> float:
    turns = ieee.floor(ieee.divide(a, b))
    rest = a - (b * turns if turns != 0 else 0.0)
    return rest + b if rest * b < 0 else rest


def _expand_mod(a: Term, b: Term) -> Term:
    """`a − b·floor(a / b)`, each step rounded, and moved by b where rounding gave it the wrong sign.

    Without turns b is left out of the product, so that an infinite b leaves a as it is, or moves it by b if the
    signs differ.
    """
    known = f.constant_of(b)
    if known == 1:
        return a - f.floor(a)
    if known is not None and _is_power_of_two(known):
        return a - f.floor(a * (1 / known)) * b
    turns = f.floor(a / b)
    if known is None or known == 0 or not math.isfinite(known):
        rest = a - f.select(f.eq(turns, 0), 0, b * turns)
        return f.select(f.lt(rest * b, 0), rest + b, rest)
    rest = a - b * turns
    return f.select(f.lt(rest, 0) if known > 0 else f.gt(rest, 0), rest + b, rest)


def _is_power_of_two(x: float) -> bool:
    mantissa, exponent = math.frexp(x)
    return abs(mantissa) == 0.5 and abs(exponent) < _SAFE_EXPONENT


def _expand_pow(base: Term, exponent: Term) -> Term:
    """Products for small whole exponents, with a square root for the half ones in between."""
    known = f.constant_of(exponent)
    if known is None or not (2 * known).is_integer() or abs(known) > _LONGEST_CHAIN:
        return f.exp2(exponent) if f.constant_of(base) == 2 else f.power(base, exponent)
    if known == 0:
        return base.const(1)
    if known.is_integer():
        product = _product(base, int(abs(known)))
        return product if known > 0 else 1 / product
    if known < 0:
        return f.power(base, exponent)
    root = f.sqrt(base)
    return root if known == 0.5 else _product(base, int(known)) * root


def _product(x: Term, count: int) -> Term:
    """x · x · … with `count` factors, by repeated squaring."""
    if count == 1:
        return x
    half = _product(x, count // 2)
    square = half * half
    return square * x if count % 2 else square


def _vector_power(np: Any, out: Any, base: Any, exponent: Any) -> None:
    np.power(base, exponent, out=out)
    if np.fmin.reduce(base, axis=None) == -math.inf:
        # C's pow takes −∞ to fractional powers; here no negative base has one.
        fractional = np.not_equal(exponent, np.floor(exponent))
        np.copyto(out, math.nan, where=np.logical_and(np.equal(base, -math.inf), fractional))


def _sign(x: float) -> float:
    return 1.0 if x > 0 else -1.0 if x < 0 else x


ROWS = (
    OpSpec(
        "add", "operator", params("a", "b"), "the sum of a and b",
        fold=lambda a, b: a + b, vector="add", native="add", clike="+", within=intervals.total, keeps_finite=True,
        symbols=("+",), level=6, example="me@x + 0.1",
    ),
    OpSpec(
        "sub", "operator", params("a", "b"), "a less b",
        fold=lambda a, b: a - b, vector="subtract", native="sub", clike="-",
        within=intervals.difference, keeps_finite=True,
        symbols=("-",), level=6, example="me@x - 0.5",
    ),
    OpSpec(
        "mul", "operator", params("a", "b"), "the product of a and b",
        fold=lambda a, b: a * b, vector="multiply", native="mul", clike="*",
        within=intervals.product, keeps_finite=True,
        symbols=("*",), level=7, example="me@x * 10",
    ),
    OpSpec(
        "div", "operator", params("a", "b"), "a divided by b; infinite or NaN when b is 0",
        fold=ieee.divide, vector="divide", native="div", clike="/",
        symbols=("/",), level=7, example="me@x / 2", cost=4,
    ),
    OpSpec(
        "mod", "operator", params("a", "b"), "what is left of a after whole turns of b, with the sign of b",
        fold=_mod, expand=_expand_mod,
        symbols=("%",), level=7, aliases=("mod",), example="me@beat % 4", cost=10,
    ),
    OpSpec(
        "neg", "operator", params("a"), "a with the other sign",
        fold=lambda a: -a, vector="negative", native="neg", clike="-", within=intervals.opposite, keeps_finite=True,
        symbols=("-",), level=8, example="-me@x",
    ),
    OpSpec(
        "pow", "operator", params("a", "b"), "a to the power of b; a negative a has whole powers only, and x^0 is 1",
        fold=ieee.power, expand=_expand_pow,
        symbols=("^",), level=9, right=True, aliases=("pow",), example="me@x ^ 2", cost=30,
    ),
    OpSpec(
        "power", "internal", params("a", "b"), "`a ^ b` where no product or root will do",
        fold=ieee.power, vector=_vector_power, native=single.power, double=double.power, clike="power",
        example="power(a, b)", cost=30,
    ),
    OpSpec(
        "abs", "builtin", params("x"), "x without its sign",
        fold=abs, vector="absolute", native="abs", clike="abs", within=intervals.size, keeps_finite=True,
        example="abs(me@x - 0.5)",
    ),
    OpSpec(
        "sign", "builtin", params("x"), "1 if x is positive, -1 if it is negative, 0 at 0",
        fold=_sign, expand=lambda x: f.select(f.gt(x, 0), 1, f.select(f.lt(x, 0), -1, x)),
        example="sign(sin(me@time))", cost=4,
    ),
    OpSpec(
        "min", "builtin", params("a", "b"), "the smallest operand; NaN only if all are",
        fold=lambda *xs: reduce(ieee.minimum, xs), vector="fmin", native=single.minimum, clike="minimum",
        within=intervals.either, keeps_finite=True, variadic=True, example="min(me@x, me@y)",
    ),
    OpSpec(
        "max", "builtin", params("a", "b"), "the largest operand; NaN only if all are",
        fold=lambda *xs: reduce(ieee.maximum, xs), vector="fmax", native=single.maximum, clike="maximum",
        within=intervals.either, keeps_finite=True, variadic=True, example="max(me@x, me@y)",
    ),
)  # fmt: skip
