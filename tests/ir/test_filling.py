"""Open numbers are constants of their own, unless costly expressions are equal because of them."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.kernels import closed_units
from weft.contexts import ContextTable
from weft.errors import Source
from weft.ir.expr import Lowered
from weft.ir.rates import Rate
from weft.ir.tunable import Tunable, current
from weft.runtime.compiling.kept import KeptBuild
from weft.runtime.compiling.stages import Build, Request, build


def built(text: str, kept: KeptBuild | None = None) -> Build:
    return build(Request(Source("p.weft", text), ContextTable()), kept=kept)


def tunable(lowered: Lowered) -> list[float]:
    """The values of the constants that may be tuned; the others are plain."""
    return sorted(current(node.attr) for node in lowered.nodes if isinstance(node.attr, Tunable))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("me@x * 3.25 + me@y * 2.25", [2.25, 3.25]),
        ("me@x * 3.25 + me@y * 3.25", [3.25, 3.25]),
        ("sqrt(a * 3.25) + abs(a * 3.25)", [3.25]),  # one product
        ("sqrt(a * 3.25) + abs(3.25 * a)", [3.25]),
        ("sqrt(a * 3.25) + abs(a * 3.25) + me@y * 3.25", [3.25, 3.25]),
        ("sqrt(me@x * 3.25) + abs(me@x * 3.25)", [3.25, 3.25]),  # two products for each column
        ("sqrt(me@x * 3.25 + me@y) + abs(me@x * 3.25 + me@y)", [3.25]),  # one sum for each pixel
        ("sqrt(me@x * 3.25 + me@y) + abs(me@x * 3.25 - me@y)", [3.25, 3.25]),
        ("sqrt(sin(me@time * 3.25) * a) + abs(cos(me@time * 3.25) * a)", [3.25, 3.25]),
        ("sqrt(sin(me@time * 3.25) * a) + abs(sin(me@time * 3.25) * a)", [3.25]),
        ("max(a * 3.25, a * 3.25 + me@y * 3.25)", [3.25, 3.25]),
        ("max(a * 3.25, 0.5) * me@y * (a * 3.25 + 0.5)", [0.5, 0.5, 3.25]),
        ("(a * 2.25 + 0.5) * (a * 3.25 + 0.5)", [0.5, 0.5, 2.25, 3.25]),
        ("me@x * (1.25 - 3.5)", [-2.25]),
        ("(me@x + 0.5) / (me@width + 3.25)", [0.5, 3.25]),
    ],
)
def test_numbers_that_make_the_same_are_one(value: str, expected: list[float]) -> None:
    """In a text that says `value` in one statement, and nothing else with numbers."""
    (lowered,) = built(f"a = me@x + me@y\nshown = {value}\nb = me@y\ndisplay(shown * b)\n", KeptBuild()).lowered
    assert tunable(lowered) == expected


def test_a_number_that_makes_what_others_make_is_plain() -> None:
    """What others make is made with one that is not open, such as the turns of a loop; or the number is an output."""
    shown, others = "display(shown * b + sum(<me@x * i for i in (2 to 3)>))\n", "a = 1.25\nb = me@y + 3.5\n"
    (lowered,) = built(f"shown = me@x * 2 + me@y * 0.75\n{others}{shown}", KeptBuild()).lowered
    assert tunable(lowered) == [0.75, 3.5]
    (lowered,) = built(f"shown = me@x\n{others}display(a)\n", KeptBuild()).lowered
    assert tunable(lowered) == []



TEXTS = [
    "r = sin(me@x * 9 + me@y)\ng = sin(me@x * 9 + me@y + 2)\nb = sin(9 * me@x + me@y)\ndisplay(<r, g, b>)\n",
    "a = noise(me@x * 4, me@y)\nb = noise(me@x * 4, me@y) + noise(me@x * 4, 0.25)\ndisplay(a + b)\n",
    "y = me@x * 7 + me@y\na = y - floor(y / 4) * 4\nb = y % 4\ndisplay(a + b)\n",
    "r = sqrt((me@x * 9 + me@y) * 3)\ng = sqrt(3 * (me@y + 9 * me@x))\ndisplay(r * g)\n",
    "spindle f(x) :: v { v = sin(x * 3) * 0.5 + 0.5 }\na = f(me@x) + f(me@x)\nb = f(me@y) + 0.5\ndisplay(a * b)\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_nothing_is_computed_twice_for_each_pixel(text: str) -> None:
    """The operations are those with plain constants."""
    (one,), (other,) = ([unit.kernel for unit in units] for units in (built(text).units, closed_units(text)))
    assert not other.numbers
    found = [Counter(node.op for node in each.section(Rate.ELEMENT).nodes) for each in (one, other)]
    assert found[0] == found[1]
