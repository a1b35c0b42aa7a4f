"""How often expressions change, in each context."""

from __future__ import annotations

import pytest

from tests.support.exprs import Exprs, image_slot, number_slot
from tests.support.kernels import CONTEXTS
from weft.ir.rates import Rate, rates

SLOTS = {slot.key: slot for slot in (number_slot("n"), image_slot("i"))}


def rate(term, context="visual", points=False):
    return rates([term.value], CONTEXTS[context], SLOTS, points)[term.value]


@pytest.fixture
def e():
    return Exprs()


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ("visual", {"x": "column", "y": "row", "abstime": "frame", "channel": "constant"}),
        ("audio", {"x": "element", "y": "element", "abstime": "element", "channel": "frame", "mouse@x": "element"}),
        ("compute", {"x": "constant", "y": "constant", "abstime": "frame", "channel": "constant"}),
    ],
)
def test_coordinates(e, context, expected):
    assert {name: rate(e.coord(name), context).title for name in expected} == expected


def test_what_is_made_of_several(e):
    x, y, time = e.coord("x"), e.coord("y"), e.uniform("time")
    assert rate(e.number(1) + 2) == Rate.CONSTANT
    assert rate(time + 1) == Rate.FRAME
    assert rate(x + time) == Rate.COLUMN
    assert rate(y + time) == Rate.ROW
    assert rate(x + y) == Rate.ELEMENT


def test_state(e):
    x = e.coord("x")
    assert rate(e.state("n", 1)) == Rate.FRAME
    assert rate(e.state("n", x * 4)) == Rate.COLUMN
    assert rate(e.state("i", 1)) == Rate.ELEMENT
    assert rate(e.state("i", 1, 0.5, 0.5)) == Rate.FRAME
    assert rate(e.state("i", 1, x, 0.5)) == Rate.COLUMN
    assert rate(e.state("n", 1), "audio") == Rate.ELEMENT


def test_what_comes_from_outside(e):
    y = e.coord("y")
    assert rate(e.strand("a@b")) == Rate.FRAME
    assert rate(e.strand("a@b", y)) == Rate.ROW
    assert rate(e.picture("a.png", 0.5, y)) == Rate.ROW


def test_points_have_coordinates_of_their_own(e):
    assert rate(e.coord("abstime"), points=True) == Rate.ELEMENT
    assert rate(e.state("n", 1), points=True) == Rate.FRAME
    assert rate(e.state("i", 1), points=True) == Rate.ELEMENT


def test_a_loop_changes_with_all_its_parts(e):
    x, y = e.coord("x"), e.coord("y")
    (total,) = e.loop(0, (1, x), [0], [e.carried(0) + e.index(0) * 2])
    assert rate(total) == Rate.COLUMN
    (total,) = e.loop(0, (1, x), [0], [e.carried(0) + y])
    assert rate(total) == Rate.ELEMENT
