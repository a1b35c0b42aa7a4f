"""The vector forms compute what the folds say, in both real types and for any shapes that broadcast."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.arrays import ArrayBuilder
from tests.ops.operands import arity, disagreements, is_about_bits, table_for, types, vector_tolerance
from weft.ops import OPS

ROWS = [row for row in OPS.values() if not is_about_bits(row)]
REALS = (np.float32, np.float64)


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_vector_is_the_fold(row, real):
    operands = table_for(row, real)
    got = ArrayBuilder(real).op(row.name, *operands)
    assert got.dtype == {"float": real, "bool": np.bool_}[row.gives]
    assert not list(disagreements(row, operands, got, real, vector_tolerance(row, real)))[:5]


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows_and_columns_broadcast(row, real):
    rng = np.random.default_rng(5)
    count = arity(row)
    shapes = [((6, 1), (1, 4), (1, 1), ())[i % 4] for i in range(count)]
    if count == 1:
        shapes = [(6, 4)]
    operands = [
        np.asarray(rng.uniform(0.1, 0.9, s), real) if t == "float" else np.asarray(rng.random(s) < 0.5)
        for s, t in zip(shapes, types(row), strict=True)
    ]
    full = [np.broadcast_to(x, np.broadcast_shapes(*shapes)).copy() for x in operands]
    builder = ArrayBuilder(real)
    np.testing.assert_array_equal(builder.op(row.name, *operands), builder.op(row.name, *full))


@pytest.mark.parametrize("real", REALS)
def test_constants_as_operands(real):
    builder = ArrayBuilder(real)
    x = np.linspace(-2, 2, 9).astype(real)
    np.testing.assert_array_equal(builder.op("select", x > 0, builder.const(3), x), np.where(x > 0, real(3), x))
    np.testing.assert_array_equal(builder.op("max", x, builder.const(0)), np.maximum(x, 0))
    np.testing.assert_array_equal(builder.op("pow", x, builder.const(3)), x * x * x)
    np.testing.assert_array_equal(builder.op("lt", builder.const(0), x), x > 0)


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize(
    ("name", "constant"),
    [("pow", n) for n in (-17, -3, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 7, 16, 17)]
    + [("mod", b) for b in (1, 2, -4, 0.25, 3, -3, 0.1, 0, np.inf, -np.inf)],
)
def test_short_cuts_for_constants_are_the_fold(name, constant, real):
    row = OPS[name]
    x = np.array([-np.inf, -9, -2, -1, -0.3, -0.0, 0, 0.7, 1, 3, 8.5, 40, np.inf, np.nan], real)
    builder = ArrayBuilder(real)
    got = np.broadcast_to(builder.op(name, x, builder.const(constant)), x.shape)
    operands = [x, np.full_like(x, constant)]
    assert not list(disagreements(row, operands, got, real, vector_tolerance(row, real)))


@pytest.mark.parametrize("real", REALS)
def test_whole_powers_of_two_are_exact(real):
    whole = np.arange(-30, 31).astype(real)
    builder = ArrayBuilder(real)
    np.testing.assert_array_equal(builder.op("pow", builder.const(2), whole), np.ldexp(real(1), np.arange(-30, 31)))


@pytest.mark.parametrize("real", REALS)
def test_truths_where_reals_are_taken_and_reals_where_truths_are(real):
    builder = ArrayBuilder(real)
    x = np.array([-1, 0, 2, np.nan], real)
    np.testing.assert_array_equal(builder.op("add", x > 0, x > 1), [0, 0, 2, 0])
    np.testing.assert_array_equal(builder.op("not", x), [False, True, False, False])
    np.testing.assert_array_equal(builder.op("select", x, builder.const(1), builder.const(2)), [1, 2, 1, 1])


@pytest.mark.parametrize("real", REALS)
def test_select_never_leaks_the_other_side(real):
    builder = ArrayBuilder(real)
    c = np.array([True, False, True, False])
    a = np.array([1, np.nan, 2, np.inf], real)
    b = np.array([np.nan, 3, -np.inf, 4], real)
    np.testing.assert_array_equal(builder.op("select", c, a, b), [1, 3, 2, 4])
