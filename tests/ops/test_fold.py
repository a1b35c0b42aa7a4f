"""What each row means, by examples: known values, and the edges that IEEE-754 and docs/language.md settle."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import example, given, strategies as st

from tests.support.tolerances import DOUBLE
from weft.ops import OPS

NAN, INF, PI, HUGE = math.nan, math.inf, math.pi, 1.7e308

# For each row, operands and what they give.
CASES: dict[str, list[tuple[tuple[float, ...], float]]] = {
    "add": [((1, 2), 3), ((HUGE, HUGE), INF), ((INF, -INF), NAN), ((NAN, 1), NAN)],
    "sub": [((1, 2), -1), ((INF, INF), NAN), ((-HUGE, HUGE), -INF)],
    "mul": [((3, -2), -6), ((1e200, 1e200), INF), ((0, INF), NAN), ((-1e200, 1e200), -INF)],
    "div": [
        ((1, 4), 0.25), ((1, 0), INF), ((-1, 0), -INF), ((1, -0.0), -INF), ((0, 0), NAN), ((NAN, 0), NAN),
        ((INF, 0), INF), ((1, INF), 0), ((INF, INF), NAN), ((1, 1e-320), INF),
    ],
    "mod": [
        ((7, 3), 1), ((-7, 3), 2), ((7, -3), -2), ((-7, -3), -1), ((5.5, 2), 1.5), ((-0.25, 1), 0.75), ((6, 3), 0),
        ((-6, 3), 0), ((5, 0), NAN), ((0, 0), NAN), ((5, INF), 5), ((-5, INF), INF), ((5, -INF), -INF),
        ((-5, -INF), -5), ((0, INF), 0), ((INF, 5), NAN), ((INF, INF), NAN), ((NAN, 1), NAN), ((1, NAN), NAN),
        ((0.3, 0.1), 0.3 - 2 * 0.1), ((1e6 + 0.25, 1), 0.25), ((123456789, 10), 9),
    ],
    "neg": [((2,), -2), ((-INF,), INF), ((NAN,), NAN)],
    "pow": [
        ((2, 10), 1024), ((2, 0.5), math.sqrt(2)), ((0, 0), 1), ((NAN, 0), 1), ((INF, 0), 1), ((-2, 3), -8),
        ((-3, 4), 81), ((-2, -1), -0.5), ((-7, 15), -(7.0**15)), ((-8, 1 / 3), NAN), ((-INF, 0.5), NAN),
        ((-INF, 3), -INF), ((-INF, 2), INF), ((0, -1), INF), ((-0.0, -1), -INF), ((0, -2), INF), ((0, -0.5), INF),
        ((1e200, 2), INF), ((-1e200, 3), -INF), ((-10, 309), -INF), ((-10, 310), INF), ((10, -400), 0), ((2, NAN), NAN),
        ((-2, INF), INF), ((0.5, INF), 0), ((-2, NAN), NAN), ((4, 1.5), 8), ((10, 15), 1e15), ((-10, -INF), 0),
    ],
    "power": [((2, 0.5), math.sqrt(2)), ((-2, 3), -8), ((-2, 0.5), NAN), ((-INF, 0.5), NAN)],
    "abs": [((-3,), 3), ((-INF,), INF), ((NAN,), NAN)],
    "sign": [((5,), 1), ((-5,), -1), ((0,), 0), ((-0.0,), 0), ((INF,), 1), ((-INF,), -1), ((NAN,), NAN)],
    "min": [((1, 2), 1), ((3, 1, 2), 1), ((NAN, 2), 2), ((2, NAN), 2), ((NAN, NAN), NAN), ((NAN, 5, -INF), -INF)],
    "max": [((1, 2), 2), ((3, 1, 4, 2), 4), ((NAN, 2), 2), ((2, NAN), 2), ((NAN, NAN), NAN), ((-INF, NAN), -INF)],
    "or": [((0, 0), 0), ((0, 2), 1), ((NAN, 0), 1), ((-0.0, 0), 0)],
    "and": [((1, 1), 1), ((1, 0), 0), ((NAN, 2), 1)],
    "not": [((0,), 1), ((-0.0,), 1), ((2,), 0), ((NAN,), 0)],
    "eq": [((1, 1), 1), ((1, 2), 0), ((NAN, NAN), 0), ((0, -0.0), 1), ((INF, INF), 1)],
    "ne": [((1, 1), 0), ((1, 2), 1), ((NAN, NAN), 1), ((NAN, 1), 1)],
    "differs": [
        ((1, 1), 0), ((1, 2), 1), ((0.1, 0.1 + 1e-9), 0),
        ((0.1, 0.1 + 1e-7), 1), ((1e300, 2e300), 0), ((1e300, -1e300), 1), ((NAN, NAN), 1), ((INF, INF), 0),
    ],
    "lt": [((1, 2), 1), ((2, 2), 0), ((NAN, 1), 0), ((1, NAN), 0), ((-INF, INF), 1)],
    "gt": [((2, 1), 1), ((2, 2), 0), ((NAN, 1), 0), ((1, NAN), 0)],
    "le": [((2, 2), 1), ((3, 2), 0), ((NAN, NAN), 0)],
    "ge": [((2, 2), 1), ((1, 2), 0), ((NAN, NAN), 0)],
    "select": [((1, 2, 3), 2), ((0, 2, 3), 3), ((NAN, 2, 3), 2), ((0, NAN, 3), 3), ((1, 2, NAN), 2)],
    "to_float": [((0,), 0), ((1,), 1)],
    "floor": [((1.5,), 1), ((-1.5,), -2), ((-0.0,), 0), ((1e300,), 1e300), ((-INF,), -INF), ((NAN,), NAN)],
    "ceil": [((1.5,), 2), ((-1.5,), -1), ((2,), 2), ((INF,), INF), ((NAN,), NAN)],
    "round": [
        ((0.5,), 1), ((-0.5,), -1), ((1.5,), 2), ((2.5,), 3), ((-2.5,), -3), ((2.4,), 2), ((0.49999999999999994,), 0),
        ((4503599627370497.0,), 4503599627370497.0), ((-INF,), -INF), ((NAN,), NAN),
    ],
    "trunc": [((1.9,), 1), ((-1.9,), -1), ((-0.5,), 0), ((-INF,), -INF), ((NAN,), NAN)],
    "fract": [((1.25,), 0.25), ((-0.25,), 0.75), ((3,), 0), ((INF,), NAN), ((NAN,), NAN)],
    "clamp": [((2, 0, 1), 1), ((-2, 0, 1), 0), ((NAN, 0, 1), 0), ((5, NAN, 1), 1), ((5, 0, NAN), 5), ((5, 9, 1), 1)],
    "saturate": [((2,), 1), ((-2,), 0), ((0.5,), 0.5), ((NAN,), 0), ((INF,), 1)],
    "mix": [((2, 4, 0), 2), ((2, 4, 0.5), 3), ((2, 4, 1), 4), ((2, 4, 2), 6), ((2, 4, NAN), NAN)],
    "held": [((1,), 1), ((0.5,), 1), ((0,), 0), ((-1,), 0), ((INF,), 1), ((NAN,), 0)],
    "step": [((0.5, 0.4), 0), ((0.5, 0.5), 1), ((0.5, INF), 1), ((0.5, NAN), 0), ((NAN, 1), 0)],
    "smoothstep": [
        ((0, 1, -1), 0), ((0, 1, 0.5), 0.5), ((0, 1, 2), 1), ((0, 1, 0.25), 0.15625), ((1, 0, 0.25), 0.84375),
        ((1, 0, 2), 0), ((1, 1, 0), 0), ((1, 1, 2), 1), ((0, 1, NAN), 0), ((0, 1, INF), 1),
    ],
    "normalize": [((3, 2, 4), 0.5), ((6, 2, 4), 2), ((1, 1, 1), NAN), ((2, 1, 1), INF), ((0.3, 0, 1), 0.3)],
    "hypot": [((3, 4), 5), ((0, -2), 2), ((INF, 1), INF), ((NAN, 1), NAN)],
    "length": [((3, 4), 5), ((-2,), 2), ((2, 3, 6), 7), ((1, 1, 1, 1), 2)],
    "distance": [((1, 1, 4, 5), 5), ((0, 0, 0, 0), 0), ((0, 0, INF, 0), INF)],
    "deg": [((PI,), 180), ((INF,), INF)],
    "rad": [((180,), PI)],
    "sin": [((0,), 0), ((PI / 2,), 1), ((-PI / 6,), -0.5), ((INF,), NAN), ((-INF,), NAN), ((NAN,), NAN)],
    "cos": [((0,), 1), ((PI,), -1), ((INF,), NAN)],
    "sinpi": [((0.5,), 1), ((-1.5,), 1), ((2.0**60 + 256,), 0), ((1e15 + 0.5,), 1), ((INF,), NAN)],
    "cospi": [((1,), -1), ((2.0**60,), 1), ((1e15 + 1,), -1), ((-INF,), NAN)],
    "tan": [((0,), 0), ((PI / 4,), 1), ((INF,), NAN)],
    "asin": [((1,), PI / 2), ((-0.5,), -PI / 6), ((1.5,), NAN), ((INF,), NAN), ((NAN,), NAN)],
    "acos": [((1,), 0), ((-1,), PI), ((0,), PI / 2), ((-1.5,), NAN), ((NAN,), NAN)],
    "atan": [((1,), PI / 4), ((INF,), PI / 2), ((-INF,), -PI / 2), ((NAN,), NAN)],
    "atan2": [
        ((0, 1), 0), ((1, 0), PI / 2), ((0, -1), PI), ((-1, -1), -3 * PI / 4), ((0, 0), 0), ((-0.0, -1), -PI),
        ((INF, INF), PI / 4), ((1, NAN), NAN),
    ],
    "exp": [((0,), 1), ((1,), math.e), ((1000,), INF), ((-1000,), 0), ((INF,), INF), ((-INF,), 0), ((NAN,), NAN)],
    "exp2": [((0,), 1), ((10,), 1024), ((-1,), 0.5), ((5000,), INF), ((-5000,), 0), ((-INF,), 0), ((NAN,), NAN)],
    "log": [((1,), 0), ((math.e,), 1), ((0,), -INF), ((-0.0,), -INF), ((-1,), NAN), ((INF,), INF), ((NAN,), NAN)],
    "log2": [((8,), 3), ((0.25,), -2), ((0,), -INF), ((-1,), NAN), ((INF,), INF)],
    "log10": [((1000,), 3), ((0.01,), -2), ((0,), -INF), ((-1,), NAN), ((INF,), INF)],
    "sqrt": [((9,), 3), ((0,), 0), ((-1,), NAN), ((INF,), INF), ((-INF,), NAN), ((NAN,), NAN)],
    "cbrt": [((27,), 3), ((-8,), -2), ((0,), 0), ((1e-300,), 1e-100), ((-INF,), -INF), ((NAN,), NAN)],
    "sinh": [((0,), 0), ((1,), (math.e - 1 / math.e) / 2), ((1e-9,), 1e-9), ((1000,), INF), ((-1000,), -INF)],
    "cosh": [((0,), 1), ((1,), (math.e + 1 / math.e) / 2), ((-1000,), INF), ((NAN,), NAN)],
    "tanh": [((0,), 0), ((1e-9,), 1e-9), ((0.5,), (math.e - 1) / (math.e + 1)), ((-INF,), -1), ((NAN,), NAN)],
    "hash": [((NAN, INF, 0), OPS["hash"].fold(0, 0, 0)), ((2.0**32 + 3.5, -1, 0), OPS["hash"].fold(3, 2.0**32 - 1, 0))],
    "noise": [((NAN, 0, 0), NAN), ((0, INF, 0), NAN), ((2, 3, 4), OPS["hash"].fold(2, 3, 4))],
    "simplex": [((NAN, 0, 0), NAN), ((0, 0, INF), NAN), ((0, 0, 0), 0)],
    "fbm": [((0, 0, NAN, 3), NAN), ((2, 3, 4, 1), OPS["hash"].fold(2, 3, 4))],
    "voronoi": [((NAN, 0, 0), NAN), ((0, 0, INF), NAN)],
}  # fmt: skip


def _named(cases):
    return [pytest.param(name, *case, id=f"{name}{case[0]}") for name, rows in cases.items() for case in rows]


REALS = [name for name in OPS if not name.startswith("bits_")]


def test_operators_have_cases():
    """A builtin needs none: its other forms, which have to agree with its fold, say the same a second time."""
    assert {name for name in REALS if OPS[name].kind == "operator"} <= set(CASES) <= set(REALS)


@pytest.mark.parametrize(("name", "operands", "expected"), _named(CASES))
def test_known_values(name, operands, expected):
    got = OPS[name].fold(*map(float, operands))
    assert isinstance(got, float)
    assert DOUBLE.allows(got, expected), got


ANYTHING = st.floats(allow_nan=True, allow_infinity=True)


@pytest.mark.parametrize("name", REALS)
@given(data=st.data())
def test_folds_never_raise(name, data):
    row = OPS[name]
    count = len(row.params) + data.draw(st.integers(0, 2)) * row.variadic
    got = row.fold(*(data.draw(ANYTHING) for _ in range(count)))
    assert isinstance(got, float)


def test_whole_powers_are_exact_where_a_float_can_be():
    exact = [(base, exponent) for exponent in range(41) for base in range(-9, 10) if 0 < abs(base) ** exponent <= 2**53]
    assert len(exact) > 400
    assert [pair for pair in exact if OPS["pow"].fold(*map(float, pair)) != pair[0] ** pair[1]] == []


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(a=FINITE, b=FINITE.filter(bool))
@example(a=-1e-20, b=7.0)
@example(a=5e-324, b=-1.0)
def test_remainder_is_exact_and_within_the_period(a, b):
    rest = OPS["mod"].fold(a, b)
    assert 0 <= rest < b if b > 0 else b < rest <= 0
    exact = float(Fraction(a) % Fraction(b))
    assert rest == (math.nextafter(b, 0) if exact == b else exact)
    assert math.copysign(1, rest) == math.copysign(1, b)


@given(x=FINITE)
def test_fract_is_a_remainder(x):
    assert OPS["fract"].fold(x) == OPS["mod"].fold(x, 1.0)


@given(a=st.integers(-(2**24), 2**24), b=st.integers(-5000, 5000).filter(bool))
def test_remainder_of_whole_numbers_is_exact(a, b):
    assert OPS["mod"].fold(float(a), float(b)) == a % b


@pytest.mark.parametrize("name", ["min", "max"])
def test_of_two_zeros_the_second_is_given(name):
    for zeros in itertools.product((0.0, -0.0), repeat=3):
        for operands in (zeros[1:], zeros):
            assert math.copysign(1, OPS[name].fold(*operands)) == math.copysign(1, operands[-1]), operands


def test_whole_zeros_keep_their_signs():
    """As they do in every machine: a quotient tells them apart."""
    assert [math.copysign(1, OPS[name].fold(-0.0)) for name in ("floor", "ceil", "round", "trunc")] == [-1, -1, 1, 1]
    assert [math.copysign(1, OPS[name].fold(-0.3)) for name in ("ceil", "round", "trunc")] == [-1] * 3
    assert math.copysign(1, OPS["ceil"].fold(0.0)) == 1
