"""The native forms compute what the folds say, with fused products and sums and without."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tests.ops.lanes import NumpyLanes, native
from tests.ops.operands import EDGES, disagreements, is_about_bits, table_for, vector_tolerance
from tests.support.tolerances import ANGLE, EXACT, FUNCTION, POWER, POWER_OCTAVE
from weft.ops import OPS, OpSpec, single

ROWS = [row for row in OPS.values() if row.native is not None and not is_about_bits(row)]
FINITE_MAX = float(np.finfo(np.float32).max)
WORDS = np.random.default_rng(32).integers(0, 2**32, 1000, dtype=np.uint32)

fused_and_not = pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])


def reals(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def any_reals(count: int, seed: int) -> np.ndarray:
    """Of all exponents and signs, with denormal numbers, infinities, and NaN of any bits among them."""
    words = np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32)
    return np.concatenate([words.view(np.float32), reals(*EDGES, FINITE_MAX, -FINITE_MAX, 2.0**-149, 2.0**-126)])


def folded(row: OpSpec, *operands: np.ndarray) -> np.ndarray:
    return np.array([row.fold(*xs) for xs in zip(*(x.tolist() for x in operands), strict=True)])


def single_of(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


@fused_and_not
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_native_is_the_fold(row, fused):
    operands = table_for(row, np.float32)
    got = native(row, fused, *operands)
    assert got.dtype == {"float": np.float32, "bool": np.bool_}[row.gives]
    tolerance = POWER if row.name == "power" else vector_tolerance(row, np.float32)
    assert not list(disagreements(row, operands, got, np.float32, tolerance))[:5]


@fused_and_not
@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.parametrize("limit", [1, 2, 100, 1e4])
def test_angles(name, limit, fused):
    x = np.random.default_rng(1).uniform(-limit, limit, 20_000).astype(np.float32)
    quarters = (np.arange(-limit, limit + 1)[:2000] * (math.pi / 2)).astype(np.float32)  # extremes and zeros
    x = np.concatenate([x, quarters[np.abs(quarters) <= limit]])
    assert ANGLE.agreement(native(OPS[name], fused, x), folded(OPS[name], x)).all()


@fused_and_not
def test_small_angles_keep_their_digits(fused):
    x = np.geomspace(2.0**-149, 0.5, 5000).astype(np.float32)
    x = np.concatenate([x, -x])
    got = native(OPS["sin"], fused, x)
    assert FUNCTION.agreement(got, folded(OPS["sin"], x)).all()
    np.testing.assert_array_equal(native(OPS["cos"], fused, reals(0, -0.0, 1e-10)), 1)
    np.testing.assert_array_equal(native(OPS["sin"], fused, reals(0, -0.0)), 0)


@fused_and_not
@pytest.mark.parametrize("name", ["sinpi", "cospi"])
def test_half_turns_of_any_number(name, fused):
    x = any_reals(20_000, 6)
    x = np.concatenate([x, np.random.default_rng(7).uniform(-1e5, 1e5, 20_000).astype(np.float32)])
    # Beyond this, half turns are not counted.
    x = x[~(np.abs(x) >= 2.0**31) | np.isinf(x)]
    assert ANGLE.agreement(native(OPS[name], fused, x), folded(OPS[name], x)).all()


@fused_and_not
@pytest.mark.parametrize("name", ["sin", "cos", "sinpi", "cospi"])
def test_angles_of_any_size_stay_within_one(name, fused):
    x = any_reals(100_000, 2)
    x = np.concatenate([x, np.random.default_rng(3).uniform(-1e8, 1e8, 100_000).astype(np.float32)])
    got = native(OPS[name], fused, x)
    finite = np.isfinite(x)
    assert np.isnan(got[~finite]).all()
    assert np.abs(got[finite]).max() <= 1 + 1e-6


@fused_and_not
@pytest.mark.parametrize("name", ["exp", "exp2", "log", "log2"])
def test_exponentials_and_logarithms_of_any_real(name, fused):
    rng = np.random.default_rng(4)
    near = [rng.uniform(-130, 130, 20_000), rng.uniform(0.5, 2, 20_000), rng.uniform(-1e-3, 1e-3, 1000)]
    edges = [math.log(2) * 128, math.log(2) * -126, 128, 127.99999, 127.5, -126.5, -150, 1, 1 + 2.0**-23, 1 - 2.0**-24]
    x = np.concatenate([any_reals(40_000, 5), np.concatenate([*near, edges]).astype(np.float32)])
    expected = single_of(folded(OPS[name], x))
    assert FUNCTION.agreement(native(OPS[name], fused, x), expected).all()


@fused_and_not
def test_powers_of_two_are_exact(fused):
    n = np.arange(-125, 132).astype(np.float32)
    expected = single_of(np.exp2(n.astype(np.float64)))
    np.testing.assert_array_equal(native(OPS["exp2"], fused, n), expected)
    np.testing.assert_array_equal(native(OPS["power"], fused, reals(2), n), expected)
    of_minus_four = native(OPS["power"], fused, reals(-4), reals(3, -3, 2, 7, 0.5))
    np.testing.assert_array_equal(of_minus_four, reals(-(2**6), -(2.0**-6), 2**4, -(2**14), math.nan))
    exponents = np.arange(-149, 128)
    np.testing.assert_array_equal(native(OPS["log2"], fused, np.ldexp(np.float32(1), exponents)), exponents)


@fused_and_not
def test_nothing_is_left_far_below_the_normal_numbers(fused):
    for name in ("exp", "exp2"):
        np.testing.assert_array_equal(native(OPS[name], fused, reals(-150, -1e30, -math.inf)), 0)
    np.testing.assert_array_equal(native(OPS["power"], fused, reals(0.5, 2, 1e-10), reals(150, -1e30, 16)), 0)


@fused_and_not
def test_powers(fused):
    rng = np.random.default_rng(6)
    bases = [rng.uniform(0, 10, 20_000), rng.uniform(0.9, 1.1, 20_000), rng.uniform(-10, 0, 5000)]
    exponents = [rng.uniform(-20, 20, 20_000), rng.uniform(-900, 900, 20_000), rng.integers(-50, 50, 5000)]
    a, b = (np.concatenate(x).astype(np.float32) for x in (bases, exponents))
    a, b = np.concatenate([a, any_reals(20_000, 7)]), np.concatenate([b, any_reals(20_000, 8)])
    got, expected = native(OPS["power"], fused, a, b), folded(OPS["power"], a, b)

    with np.errstate(all="ignore"):
        octaves = np.abs(np.log2(np.abs(expected)))
        allowed = POWER_OCTAVE * (1 + octaves) * np.abs(expected)
        near = np.abs(got - expected) <= np.maximum(allowed, POWER.absolute)
    assert (near | EXACT.agreement(got, single_of(expected))).all()


@fused_and_not
def test_powers_of_edges(fused):
    huge = [2.0**24, 2.0**24 - 1, -(2.0**31), 2e9, 1e30, -1e30, 1 - 2.0**-24, 1 + 2.0**-23, 2.0**-149, FINITE_MAX]
    values = single_of(np.array(list(itertools.product([*EDGES, *huge, -0.25], repeat=2)))).T
    a, b = values
    expected = single_of(folded(OPS["power"], a, b))
    got = native(OPS["power"], fused, a, b)
    settled = ~np.isfinite(expected) | np.isin(a, (0, 1, -1)) | (b == 0)
    assert EXACT.agreement(got, expected)[settled].all()
    zeros = (got == 0) & (a == 0)
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(expected[zeros]))
    assert POWER.agreement(got, expected).all()


@fused_and_not
def test_angles_of_directions(fused):
    rng = np.random.default_rng(9)
    y, x = (np.concatenate([rng.uniform(-10, 10, 20_000).astype(np.float32), any_reals(20_000, s)]) for s in (1, 2))
    assert FUNCTION.agreement(native(OPS["atan2"], fused, y, x), folded(OPS["atan2"], y, x)).all()


@fused_and_not
def test_angles_of_directions_at_edges(fused):
    values = [*EDGES, FINITE_MAX, -FINITE_MAX, 2.0**-149, -(2.0**-149), 2.0**-126]
    y, x = np.array(list(itertools.product(values, repeat=2)), np.float32).T
    got, expected = native(OPS["atan2"], fused, y, x), folded(OPS["atan2"], y, x)
    assert FUNCTION.agreement(got, expected).all()
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(y[numbers]))


@fused_and_not
def test_bits_of_any_real(fused):
    turns = np.array([n * 2.0**k for n in (-3, -1, 1, 3) for k in range(24, 126)], np.float32)
    near = np.concatenate([np.nextafter(turns, np.float32(s)) for s in (-np.inf, np.inf)])
    x = np.concatenate([any_reals(50_000, 10), turns, near])
    np.testing.assert_array_equal(native(OPS["bits_of"], fused, x), folded(OPS["bits_of"], x))


@pytest.mark.parametrize("name", ["bits_add", "bits_mul", "bits_xor", "bits_shr"])
def test_operations_on_bits(name):
    a, b = WORDS[:500], WORDS[500:] % 32 if name == "bits_shr" else WORDS[500:]
    np.testing.assert_array_equal(native(OPS[name], True, a, b), folded(OPS[name], a, b))


def test_top_bits():
    words = np.concatenate([WORDS, np.array([0, 255, 256, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)])
    np.testing.assert_array_equal(native(OPS["bits_top"], True, words), folded(OPS["bits_top"], words))


def test_reductions_use_parts_that_add_up():
    for parts, whole in ((single._PI_FUSED, math.pi), (single._PI_UNFUSED, math.pi), (single._LN_2_PARTS, math.log(2))):
        assert sum(parts) == pytest.approx(whole, rel=1e-11)
        assert [float(np.float32(part)) for part in parts] == list(parts)


def test_lanes_of_the_tests_do_not_take_one_type_for_another():
    lanes = NumpyLanes(True)
    with pytest.raises(AssertionError):
        lanes.add(lanes.real(1), lanes.bits(1))
    with pytest.raises(AssertionError):
        lanes.select(lanes.real(1), lanes.real(1), lanes.real(0))
