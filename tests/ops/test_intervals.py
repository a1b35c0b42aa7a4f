"""Where results lie is what the table says, for every row of which it says anything."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings, strategies as st

from tests.support.together import examples
from weft.ops import OPS
from weft.ops.intervals import ANYWHERE, Interval, number, product, total

KNOWN = [row for row in OPS.values() if row.interval is not None]
FINITE = [row for row in OPS.values() if row.keeps_finite]

numbers = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([0.0, -0.0, 1.0, math.inf, -math.inf]))


def operand(data: st.DataObject, kind: str) -> tuple[Interval, float]:
    """An interval, and a number within."""
    if kind == "bool":
        return Interval(0, 1), data.draw(st.sampled_from([0.0, 1.0]))
    if kind == "u32":
        return Interval(0, 2**32 - 1), data.draw(st.integers(0, 2**32 - 1))
    low, value, high = sorted(data.draw(numbers) for _ in range(3))
    return Interval(low, high), value


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: row.name)
@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_results_lie_where_the_table_says(row, data):
    given_in = [operand(data, row.type_of_operand(k)) for k in range(len(row.params))]
    low, high = row.interval_of(*(interval for interval, _ in given_in))
    value = row.fold(*(value for _, value in given_in))
    # In the range of these numbers, this is more than any of the rows rounds.
    assert math.isnan(value) or low - 1e-9 <= value <= high + 1e-9


@pytest.mark.parametrize("row", FINITE, ids=lambda row: row.name)
@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_finite_operands_give_finite_results(row, data):
    kinds = [row.type_of_operand(k) for k in range(len(row.params))]
    values = [data.draw(st.sampled_from([0.0, 1.0]) if kind == "bool" else st.floats(-1e100, 1e100)) for kind in kinds]
    assert math.isfinite(row.fold(*values))


def test_what_has_no_ends():
    half = Interval(0, math.inf)
    assert product(half, Interval(0, 0)) == Interval(0, 0)
    assert total(half, ANYWHERE) == ANYWHERE
    assert number(math.nan) == ANYWHERE
    assert OPS["lt"].interval_of(ANYWHERE, ANYWHERE) == Interval(0, 1)
