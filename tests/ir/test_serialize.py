"""IR survives JSON to the bit, and reads well as text."""

from __future__ import annotations

import json
import math
import struct

import pytest
from hypothesis import given, strategies as st

from tests.support.exprs import Exprs, image_slot, lowered, number_slot
from weft.contexts import VISUAL
from weft.ir.serialize import from_json, number_from_json, number_text, number_to_json, to_json, to_text
from weft.ir.verify import verify


def through_text(data):
    return json.loads(json.dumps(data, allow_nan=False))


@given(st.integers(0, 2**64 - 1))
def test_every_double_survives(bits):
    (value,) = struct.unpack("<d", struct.pack("<Q", bits))
    again = number_from_json(through_text(number_to_json(value)))
    assert struct.pack("<d", again) == struct.pack("<d", value)


def everything():
    e = Exprs()
    x, y, time = e.coord("x"), e.coord("y"), e.uniform("time")
    (inner,) = e.loop(1, (1, e.index(0)), [0], [e.carried(1) + e.index(1) * x])
    a, b = e.loop(0, (1, x * 4), [0, -0.0], [e.carried(0) + inner, e.carried(0, 1) + 1])
    special = [e.number(n) for n in (math.nan, -math.inf, -0.0, 0.1, 5e-324)]
    past = e.state("v/p", 2, 1 - x, y)
    return lowered(
        a + b, e("hash", x * 8, 0, 0), e("select", e("lt", x, y), special[0], special[1]), *special[2:],
        e.picture("a.png", x, y, 3), e.strand("osc@v", time - x * 0.02), past, e.strand("slow@v"),
        slots=[image_slot("v/p", 2), number_slot("v/q", planes=2)],
        updates={"v/p": past * 0.5, "v/q[0]": time, "v/q[1]": e.state("v/q", 1, plane=1) + 1},
        exposed={"a@b": past + 1},
    )  # fmt: skip


def test_the_round_trip_changes_nothing():
    data = to_json(everything())
    again = from_json(through_text(data))
    verify(again)
    assert to_json(again) == data
    assert to_text(again, VISUAL).splitlines()[0] == "subgraph test · visual"


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
