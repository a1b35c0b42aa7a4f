"""IR reads well as text."""

from __future__ import annotations

import pytest

from tests.support.exprs import Exprs, lowered, number_slot
from weft.contexts import VISUAL
from weft.ir.dump import to_text
from weft.syntax.ast import number_text


def test_the_text_shows_rates_and_groups():
    e = Exprs()
    x, time = e.coord("x"), e.uniform("time")
    wave = e("sin", x * 10 + time)
    text = to_text(
        lowered(wave, slots=[number_slot("v/n")], updates={"v/n": e.state("v/n", 1) + time}, exposed={"a@b": wave}),
        VISUAL,
    )
    assert text.splitlines() == [
        "subgraph test · visual",
        "outputs:",
        "  %3 = mul x 10  · column",
        "  %4 = add %3 time  · column",
        "  %5 = sin %4  · column",
        "  0 = %5",
        "state:",
        "  %7 = state v/n[0] 1  · frame",
        "  %8 = add %7 time  · frame",
        "  v/n[0] (prev, number, 1 back) = %8",
        "exposed:",
        "  a@b = %5",
    ]


def test_loops_in_text():
    e = Exprs()
    (total,) = e.loop(0, (1, 9), [0], [e.carried(0) + e.index(0)])
    assert "loop0 from 1 to 9 carrying 0 → %" in to_text(lowered(total), VISUAL)


@pytest.mark.parametrize(
    ("value", "text"), [(5.0, "5"), (0.1, "0.1"), (1e300, "1e+300"), (-0.0, "-0"), (1e22, "1e+22")]
)
def test_numbers_read_as_people_write_them(value, text):
    assert number_text(value) == text
