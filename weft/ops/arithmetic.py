"""Rows for the operators, and for rounding, exponentials, logarithms and roots."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

from weft.ops import double, formula as f, ieee, intervals, single
from weft.ops.formula import Term
from weft.ops.spec import OpSpec, about, params

# Up to this exponent a chain of products is cheaper than a power, and its rounding stays invisible.
_LONGEST_CHAIN = 16


def _vector_remainder(np: Any, out: Any, a: Any, b: Any) -> None:
    if np.ndim(b) == 0 and _is_power_of_two_from_1(float(b)):
        np.floor(np.multiply(a, 1 / b, out=out), out=out)
        np.subtract(a, np.multiply(out, b, out=out), out=out)
        if np.fmin.reduce(out, axis=None, initial=0) < 0:  # the quotient of a tiny negative a was rounded to 0
            np.copyto(out, b, where=out < 0)
    elif out.dtype != np.float32 or not _remainder_of_singles(np, out, a, b):
        np.remainder(a, b, out=out)
    # The remainder of a small negative number may have been rounded to b.
    limit = np.multiply(b, 1 - np.finfo(out.dtype).epsneg, dtype=out.dtype)
    if np.ndim(b) == 0:
        (np.minimum if b > 0 else np.maximum)(out, limit, out=out)
    else:
        np.copyto(out, limit, where=np.equal(out, b) & np.isfinite(b))


def _is_power_of_two_from_1(x: float) -> bool:
    """Whether x is a power of two, by which quotients and products are exact, from 1 to 2¹⁰⁰."""
    return 1 <= x <= 2.0**100 and math.frexp(x)[0] == 0.5


# From this number of turns on, their product with a single need not be exact in double precision.
_MOST_TURNS = 2.0**29


def _remainder_of_singles(np: Any, out: Any, a: Any, b: Any) -> bool:
    """Computes the remainder in double precision, where each step is exact; several times as fast as numpy's own.
    Returns False if it would not be exact: for too many turns, or operands that are not finite."""
    a, b = (np.asarray(x, np.float32).astype(np.float64) for x in (a, b))
    turns = np.asarray(np.floor(np.divide(a, b)))
    if not (np.min(turns, initial=0) > -_MOST_TURNS and np.max(turns, initial=0) < _MOST_TURNS):
        return False
    rest = np.subtract(a, np.multiply(turns, b, out=turns), out=turns)
    if b.ndim == 0 and b > 0 and np.min(rest, initial=0) >= 0:
        pass  # the common case: no quotient was rounded up
    elif np.isnan(rest).any():
        return False
    else:
        rest = np.copysign(np.where(rest * b < 0, rest + b, rest), b)
    np.copyto(out, rest, casting="same_kind")
    return True


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
        # C's pow has fractional powers of −∞; here no negative base has one.
        fractional = np.not_equal(exponent, np.floor(exponent))
        np.copyto(out, math.nan, where=np.logical_and(np.equal(base, -math.inf), fractional))


def _vector_minimum(np: Any, out: Any, a: Any, b: Any) -> None:
    np.fmin(a, b, out=out)
    _take_second_zero(np, out, a, b)


def _vector_maximum(np: Any, out: Any, a: Any, b: Any) -> None:
    np.fmax(a, b, out=out)
    _take_second_zero(np, out, a, b)


def _take_second_zero(np: Any, out: Any, a: Any, b: Any) -> None:
    """Makes the second of two zeros the result: numpy returns either."""
    if any(np.ndim(x) == 0 and x != 0 for x in (a, b)) or out.all():
        return
    np.copyto(out, b, where=np.equal(a, b))


def _sign(x: float) -> float:
    return 1.0 if x > 0 else -1.0 if x < 0 else x


def _slopes_of_power(base: float, exponent: float) -> tuple[float, float]:
    """A negative base has powers for whole exponents only, so there is no derivative by the exponent."""
    by_base = exponent * ieee.power(base, exponent - 1) if exponent else 0.0
    if base == 0:
        return by_base, 0.0 if exponent > 0 else math.nan
    return by_base, ieee.power(base, exponent) * ieee.log(base)


ARITHMETIC = (
    OpSpec(
        "add", "operator", params("a", "b"), "the sum of a and b",
        fold=lambda a, b: a + b, vector="add", native="add", clike="+", interval=intervals.total, keeps_finite=True,
        slopes=lambda a, b: (1.0, 1.0),
        symbols=("+",), level=6, example="me@x + 0.1",
    ),
    OpSpec(
        "sub", "operator", params("a", "b"), "a less b",
        fold=lambda a, b: a - b, vector="subtract", native="sub", clike="-",
        slopes=lambda a, b: (1.0, -1.0),
        interval=intervals.difference, keeps_finite=True,
        symbols=("-",), level=6, example="me@x - 0.5",
    ),
    OpSpec(
        "mul", "operator", params("a", "b"), "the product of a and b",
        fold=lambda a, b: a * b, vector="multiply", native="mul", clike="*",
        slopes=lambda a, b: (b, a),
        interval=intervals.product, keeps_finite=True,
        symbols=("*",), level=7, example="me@x * 10",
    ),
    OpSpec(
        "div", "operator", params("a", "b"), "a divided by b; infinite or NaN when b is 0",
        fold=ieee.divide, vector="divide", native="div", clike="/",
        slopes=lambda a, b: (ieee.divide(1.0, b), ieee.divide(-a, b * b)),
        interval=intervals.quotient,
        symbols=("/",), level=7, usual=about(-2, 2, 0.25, 4), example="me@x / 2", cost=4,
    ),
    OpSpec(
        "mod", "operator", params("a", "b"), "the remainder of a divided by b, with the sign of b",
        fold=ieee.remainder, vector=_vector_remainder, native=single.remainder, clike="modulo",
        slopes=lambda a, b: (1.0, -ieee.floor(ieee.divide(a, b))),
        interval=intervals.remainder,
        symbols=("%",), level=7, aliases=("mod",), usual=about(-6, 6, 0.3, 3), example="me@beat % 4", cost=10,
    ),
    OpSpec(
        "neg", "operator", params("a"), "a with the other sign",
        fold=lambda a: -a, vector="negative", native="neg", clike="-", interval=intervals.opposite, keeps_finite=True,
        slopes=lambda a: (-1.0,),
        symbols=("-",), level=8, usual=about(-4, 4), example="-me@x",
    ),
    OpSpec(
        "pow", "operator", params("a", "b"), "a to the power of b; a negative a has whole powers only, and x^0 is 1",
        fold=ieee.power, expand=_expand_pow,
        symbols=("^",), level=9, right=True, aliases=("pow",),
        usual=about(0.05, 3, -2, 3, strict=True), example="me@x ^ 2", cost=30,
    ),
    OpSpec(
        "power", "internal", params("a", "b"), "`a ^ b` if it cannot be computed by products and roots",
        fold=ieee.power, vector=_vector_power, native=single.power, double=double.power, clike="power",
        slopes=_slopes_of_power,
        example="power(a, b)", cost=30,
    ),
    OpSpec(
        "abs", "builtin", params("x"), "x without its sign",
        fold=abs, vector="absolute", native="abs", clike="abs", interval=intervals.size, keeps_finite=True,
        slopes=lambda x: (_sign(x),),
        example="abs(me@x - 0.5)",
    ),
    OpSpec(
        "sign", "builtin", params("x"), "1 if x is positive, -1 if it is negative, 0 at 0",
        fold=_sign, expand=lambda x: f.select(f.gt(x, 0), 1, f.select(f.lt(x, 0), -1, x)),
        example="sign(sin(me@time))", cost=4,
    ),
    OpSpec(
        "min", "builtin", params("a", "b"), "the smallest operand; NaN only if all are",
        fold=lambda *xs: reduce(ieee.minimum, xs), vector=_vector_minimum, native=single.minimum, clike="minimum",
        slopes=lambda a, b: (1.0, 0.0) if math.isnan(b) or a < b else (0.0, 1.0),
        interval=intervals.either, keeps_finite=True, variadic=True, example="min(me@x, me@y)",
    ),
    OpSpec(
        "max", "builtin", params("a", "b"), "the largest operand; NaN only if all are",
        fold=lambda *xs: reduce(ieee.maximum, xs), vector=_vector_maximum, native=single.maximum, clike="maximum",
        slopes=lambda a, b: (1.0, 0.0) if math.isnan(b) or a > b else (0.0, 1.0),
        interval=intervals.either, keeps_finite=True, variadic=True, example="max(me@x, me@y)",
    ),
)  # fmt: skip


# --- comparisons, bools, and the choice between two values ---


def _vector_select(np: Any, out: Any, c: Any, a: Any, b: Any) -> None:
    # On the bits, b ^ ((a ^ b) · c) with c of 1 or 0: no branches, no scratch memory, and NaN passes unchanged.
    integer = np.int32 if out.itemsize == 4 else np.int64
    a, b = (np.asarray(x, out.dtype).view(integer) for x in (a, b))
    chosen = out.view(integer)
    np.bitwise_xor(a, b, out=chosen)
    np.multiply(chosen, c, out=chosen)
    np.bitwise_xor(chosen, b, out=chosen)


def _vector_differs(np: Any, out: Any, a: Any, b: Any) -> None:
    np.not_equal(np.asarray(a).astype(np.float32), np.asarray(b).astype(np.float32), out=out)


def _vector_to_float(np: Any, out: Any, c: Any) -> None:
    np.copyto(out, c)


LOGIC = (
    OpSpec(
        "held", "builtin", params("trigger"), "1 while a trigger is above 0, else 0; a count never is",
        fold=lambda trigger: float(trigger > 0), expand=lambda trigger: f.gt(trigger, 0),
        gives="bool", usual=about(-1, 1), example="held(mouse@left)",
    ),
    OpSpec(
        "or", "operator", params("a", "b"), "1 if a or b is true, else 0",
        fold=lambda a, b: float(a != 0 or b != 0), vector="logical_or", native="either", clike="||",
        takes="bool", gives="bool", symbols=("or",), level=2, example="key@a or mouse@down",
    ),
    OpSpec(
        "and", "operator", params("a", "b"), "1 if a and b are true, else 0",
        fold=lambda a, b: float(a != 0 and b != 0), vector="logical_and", native="both", clike="&&",
        takes="bool", gives="bool", symbols=("and",), level=3, example="me@x > 0.2 and me@x < 0.8",
    ),
    OpSpec(
        "not", "operator", params("a"), "1 if a is 0, else 0",
        fold=lambda a: float(a == 0), vector="logical_not", native="negation", clike="!",
        takes="bool", gives="bool", symbols=("not",), level=4, example="not key@space",
    ),
    OpSpec(
        "eq", "operator", params("a", "b"), "1 if a equals b, else 0",
        fold=lambda a, b: float(a == b), vector="equal", native="eq", clike="==",
        gives="bool", symbols=("==", "==="), level=5, usual=about(0, 3, whole=True), example="me@beat == 0",
    ),
    OpSpec(
        "ne", "operator", params("a", "b"), "1 if a differs from b, else 0; NaN differs from everything",
        fold=lambda a, b: float(a != b), vector="not_equal", native="ne", clike="!=",
        gives="bool", symbols=("!=",), level=5, usual=about(0, 3, whole=True), example="me@beat != 0",
    ),
    OpSpec(
        "differs", "internal", params("a", "b"), "1 if a differs from b in single precision, that of images",
        fold=lambda a, b: float(ieee.single(a) != ieee.single(b)), vector=_vector_differs, native=single.differs,
        clike="!=", gives="bool", example="differs(a, b)",
    ),
    OpSpec(
        "lt", "operator", params("a", "b"), "1 if a is less than b, else 0",
        fold=lambda a, b: float(a < b), vector="less", native="lt", clike="<",
        gives="bool", symbols=("<", "<<"), level=5, usual=about(-1, 1), example="me@x < 0.5",
    ),
    OpSpec(
        "gt", "operator", params("a", "b"), "1 if a is greater than b, else 0",
        fold=lambda a, b: float(a > b), expand=f.gt,
        gives="bool", symbols=(">", ">>"), level=5, usual=about(-1, 1), example="me@x > 0.5",
    ),
    OpSpec(
        "le", "operator", params("a", "b"), "1 if a is at most b, else 0",
        fold=lambda a, b: float(a <= b), vector="less_equal", native="le", clike="<=",
        gives="bool", symbols=("<=", "<<="), level=5, usual=about(-1, 1), example="me@x <= 0.5",
    ),
    OpSpec(
        "ge", "operator", params("a", "b"), "1 if a is at least b, else 0",
        fold=lambda a, b: float(a >= b), expand=f.ge,
        gives="bool", symbols=(">=", ">>="), level=5, usual=about(-1, 1), example="me@x >= 0.5",
    ),
    OpSpec(
        "select", "builtin", params("c", "a", "b"), "a if c is true, else b; what the other side computes never leaks",
        fold=lambda c, a, b: a if c != 0 else b, vector=_vector_select, native="select", clike="?:",
        slopes=lambda c, a, b: (0.0, 1.0, 0.0) if c != 0 else (0.0, 0.0, 1.0),
        takes=("bool", "float", "float"), interval=intervals.choice, keeps_finite=True,
        usual=about(0, 1, -2, 2), example="select(me@x < 0.5, 0.2, 0.8)",
    ),
    OpSpec(
        "to_float", "internal", params("c"), "a bool as the float 1 or 0",
        fold=lambda c: float(c != 0), vector=_vector_to_float, native=single.bool_as_float, clike="float",
        takes="bool", interval=intervals.truth, example="to_float(a < b)",
    ),
)  # fmt: skip


# --- rounding ---


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
    """Uses the exact fraction, since `x + 0.5` would itself be rounded."""
    size = f.abs(x)
    whole = f.floor(size)
    nearest = f.select(f.ge(size - whole, 0.5), whole + 1, whole)
    return f.select(f.lt(x, 0), -nearest, nearest)


ROUNDING = (
    OpSpec(
        "floor", "builtin", params("x"), "the next whole number downwards",
        fold=ieee.floor, vector="floor", native="floor", clike="floor", keeps_finite=True,
        interval=intervals.whole_below, usual=about(-6, 6), example="floor(me@x * 8) / 8",
    ),
    OpSpec(
        "ceil", "builtin", params("x"), "the next whole number upwards",
        fold=_ceil, expand=lambda x: -f.floor(-x), usual=about(-6, 6), example="ceil(me@x * 8) / 8", cost=3,
    ),
    OpSpec(
        "round", "builtin", params("x"), "the nearest whole number; a half goes away from zero",
        fold=_round, expand=_expand_round, usual=about(-6, 6), example="round(me@x * 8) / 8", cost=8,
    ),
    OpSpec(
        "trunc", "builtin", params("x"), "x without its fraction: the next whole number towards zero",
        fold=_trunc, expand=_expand_trunc, usual=about(-6, 6), example="trunc(me@x * 8 - 4)", cost=5,
    ),
    OpSpec(
        "fract", "builtin", params("x"), "x - floor(x): a ramp from 0 to 1",
        fold=lambda x: ieee.remainder(x, 1.0), expand=lambda x: x % 1,
        usual=about(-6, 6), example="fract(me@x * 4)", cost=3,
    ),
)  # fmt: skip


# --- exponentials, logarithms, roots and hyperbolic functions ---

# Below this size of x, sinh and tanh use their series: the difference of exponentials would cancel.
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


EXPONENTIAL = (
    OpSpec(
        "exp", "builtin", params("x"), "e to the power of x",
        fold=ieee.exp, vector="exp", native=single.exponential, double="exp",
        slopes=lambda x: (ieee.exp(x),),
        clike="exponential", usual=about(-4, 2), example="exp(-me@x * 4)", cost=10,
    ),
    OpSpec(
        "exp2", "builtin", params("x"), "2 to the power of x",
        fold=ieee.exp2, vector="exp2", native=single.exponential_2, double="exp2", clike="power_of_two",
        slopes=lambda x: (ieee.exp2(x) * math.log(2),),
        usual=about(-5, 3), example="exp2(me@x * 12)", cost=10,
    ),
    OpSpec(
        "log", "builtin", params("x"), "the natural logarithm of x; -infinity at 0, NaN below",
        fold=ieee.log, vector="log", native=single.logarithm, double="log",
        slopes=lambda x: (ieee.divide(1.0, x) if x >= 0 else math.nan,),
        clike="logarithm", usual=about(0.01, 8, strict=True), example="log(me@x + 1)", cost=10,
    ),
    OpSpec(
        "log2", "builtin", params("x"), "the logarithm of x to base 2; -infinity at 0, NaN below",
        fold=ieee.log2, vector="log2", native=single.logarithm_2, double="log2",
        slopes=lambda x: (ieee.divide(1 / math.log(2), x) if x >= 0 else math.nan,),
        clike="octaves", usual=about(0.01, 8, strict=True), example="log2(me@x + 1)", cost=10,
    ),
    OpSpec(
        "log10", "builtin", params("x"), "the logarithm of x to base 10; -infinity at 0, NaN below",
        # Computed from log2, the powers of ten come out whole.
        fold=ieee.log10, expand=lambda x: f.log2(x) * math.log10(2),
        usual=about(0.01, 8, strict=True), example="log10(me@x + 1)", cost=11,
    ),
    OpSpec(
        "sqrt", "builtin", params("x"), "the square root of x; NaN below 0",
        fold=ieee.sqrt, vector="sqrt", native="sqrt", clike="sqrt", interval=intervals.root,
        slopes=lambda x: (ieee.divide(0.5, ieee.sqrt(x)),),
        usual=about(0, 4, strict=True), example="sqrt(me@x)", cost=6,
    ),
    OpSpec(
        "cbrt", "builtin", params("x"), "the cube root of x, negative for a negative x",
        fold=_cbrt, expand=_expand_cbrt, usual=about(-4, 4), example="cbrt(me@x - 0.5)", cost=40,
    ),
    OpSpec(
        "sinh", "builtin", params("x"), "the hyperbolic sine of x",
        fold=ieee.sinh, expand=_expand_sinh, usual=about(-3, 3), example="sinh(me@x)", cost=24,
    ),
    OpSpec(
        "cosh", "builtin", params("x"), "the hyperbolic cosine of x",
        fold=ieee.cosh, expand=_expand_cosh, usual=about(-3, 3), example="cosh(me@x)", cost=16,
    ),
    OpSpec(
        "tanh", "builtin", params("x"), "the hyperbolic tangent of x, from -1 to 1: a soft limit for sounds",
        fold=math.tanh, expand=_expand_tanh, usual=about(-3, 3), example="tanh(sin(me@time * tau) * 3)", cost=30,
    ),
)  # fmt: skip
