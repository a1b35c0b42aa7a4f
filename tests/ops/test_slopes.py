"""Each row that is no step has its derivatives: those that differences of its `fold` show."""

from __future__ import annotations

import math
import random

import pytest

from weft.ops import OPS

SMOOTH = [row for row in OPS.values() if row.slopes is not None]

# What follows its operands in steps: comparisons, whole numbers, and the bits of hashes.
STEPS = {"floor", "to_float", "bits_of", "bits_top"}

DISTANCE = 1e-6


def test_what_has_no_derivative_is_a_step():
    primitives = [row for row in OPS.values() if row.expand is None]
    assert [row.name for row in primitives if (row.slopes is None) != _is_step(row)] == []
    assert [row.name for row in OPS.values() if row.expand is not None and row.slopes is not None] == []


def _is_step(row):
    return row.name in STEPS or row.gives != "float" or row.takes in ("bool", "u32")


@pytest.mark.parametrize("row", SMOOTH, ids=lambda row: row.name)
def test_slopes_are_those_of_differences(row):
    rng, tried = random.Random(row.name), 0
    for _ in range(60):
        args = [_operand(row, at, rng) for at in range(len(row.params))]
        slopes = row.slopes(*args)
        assert len(slopes) == len(args)
        for at in range(len(args)):
            if row.type_of_operand(at) != "float":
                continue
            below, here, above = (
                row.fold(*[each + (k == at) * shift for k, each in enumerate(args)])
                for shift in (-DISTANCE, 0, DISTANCE)
            )
            left, right = (here - below) / DISTANCE, (above - here) / DISTANCE
            if not math.isclose(left, right, rel_tol=1e-2, abs_tol=1e-2):
                continue  # a bend or a jump between them
            assert slopes[at] == pytest.approx((left + right) / 2, rel=1e-4, abs=1e-4), (args, at)
            tried += 1
    assert tried > 50


def _operand(row, at, rng):
    if row.type_of_operand(at) == "bool":
        return float(rng.randrange(2))
    usual = row.usual.interval(at)
    if row.name == "power":
        usual = OPS["pow"].usual.interval(at)
    return rng.uniform(usual.low, usual.high)


def test_where_there_is_no_derivative_it_is_not_finite():
    assert not math.isfinite(OPS["sqrt"].slopes(0.0)[0])
    assert math.isnan(OPS["log"].slopes(-1.0)[0])
    base, exponent = OPS["power"].slopes(-2.0, 3.0)
    assert base == 12
    assert math.isnan(exponent)
    assert not all(map(math.isfinite, OPS["div"].slopes(1.0, 0.0)))
