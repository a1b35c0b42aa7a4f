"""Operations on bits are exact: they are compared with Python's integers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.ops.arrays import ArrayBuilder
from weft.ops import OPS

WORDS = st.integers(0, 2**32 - 1)
EDGES = [
    0.0, -0.0, 1, -1, -2, 2**24, 2**24 + 2, 2**31 - 128, 2**31, -(2**31), -(2**31) - 256, 2**32, -(2**32), 2**32 + 512,
    -(2**32) - 512, 2**33 + 1024, 2**53, 2**53 + 2, -(2**53) - 2, 2**63, -(2**63), 3e9, -3e9, 1e20, -1e20, 1e30, 1e300,
    -1e300, 1.7976931348623157e308, 3.4028234663852886e38, math.nan, math.inf, -math.inf,
]  # fmt: skip


def expected_bits(x: float) -> int:
    return int(x) % 2**32 if math.isfinite(x) else 0


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_bits_of_edges(real):
    with np.errstate(over="ignore"):
        values = np.array(EDGES, real)
    expected = [expected_bits(x) for x in values.tolist()]
    assert [OPS["bits_of"].fold(x) for x in values.tolist()] == expected
    assert ArrayBuilder(real).op("bits_of", values).tolist() == expected
    for x, wanted in zip(values, expected, strict=True):  # alone, each takes the way that is made for its size
        assert ArrayBuilder(real).op("bits_of", np.full((2, 3), x, real)).tolist() == [[wanted] * 3] * 2


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_bits_of_any_whole_number(x):
    whole = float(math.floor(x))
    assert OPS["bits_of"].fold(whole) == expected_bits(whole)
    assert ArrayBuilder(np.float64).op("bits_of", np.array([whole])) == expected_bits(whole)


@pytest.mark.parametrize(
    ("name", "integers"),
    [
        ("bits_add", lambda a, b: (a + b) % 2**32),
        ("bits_mul", lambda a, b: a * b % 2**32),
        ("bits_xor", lambda a, b: a ^ b),
        ("bits_shr", lambda a, b: a >> b % 32),
    ],
)
@given(a=WORDS, b=WORDS)
def test_binary_operations(name, integers, a, b):
    if name == "bits_shr":
        b %= 32
    assert OPS[name].fold(a, b) == integers(a, b)
    column, row = np.array([[a], [b]], np.uint32), np.array([[b, a % 32 if name == "bits_shr" else a]], np.uint32)
    got = ArrayBuilder(np.float32).op(name, column, row)
    assert got.dtype == np.uint32
    assert got.tolist() == [[integers(p, q) for q in row[0].tolist()] for p in column[:, 0].tolist()]
    assert ArrayBuilder(np.float32).op(name, column, np.uint32(b)).tolist() == [[integers(a, b)], [integers(b, b)]]


@pytest.mark.parametrize("real", [np.float32, np.float64])
@given(words=st.lists(WORDS, min_size=1, max_size=20))
def test_top_bits(real, words):
    words += [0, 255, 256, 2**31 - 1, 2**31, 2**32 - 1]
    expected = [n >> 8 for n in words]
    assert [OPS["bits_top"].fold(n) for n in words] == expected
    got = ArrayBuilder(real).op("bits_top", np.array(words, np.uint32))
    assert got.dtype == real
    assert got.tolist() == expected
