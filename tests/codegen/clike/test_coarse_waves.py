"""`weft.codegen.clike.coarse_waves`: a sine of which pixels show no more than a level may be the card's own."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.codegen.clike.test_numbers import unit_of
from weft.backends.card import ProgramWriter
from weft.backends.cuda.backend import CudaVisual
from weft.backends.gl.backend import GlVisual

SPINDLE = "spindle f(x) :: v { v = x\nfor i in (1 to 1000) { v = sin(v * 3 + i) } }\n"

# Texts, and whether a sine of them has to be right to its last digits.
TEXTS: Mapping[str, tuple[str, bool]] = {
    "a level": ("display(sin(me@x * me@y * 9) * 0.5 + 0.5)", False),
    "many turns": ("display(sin(me@x * me@y * 900) * 0.5 + 0.5)", False),
    "a sum of sines in a sine": ("v = sin(me@x * 9) + sin(me@y * 7)\ndisplay(sin(v * 3) * 0.5 + 0.5)", False),
    "a choice": ("display(if me@x > 0.5 then sin(me@x * me@y * 9) else 0)", False),
    "a factor of a known size": ("display(sin(me@x * me@y * 9) * clamp(me@y * 3, lo: 0, hi: 2))", False),
    "a large factor": ("display(sin(me@x * me@y * 9) * 3000)", True),
    "a factor of an unknown size": ("display(sin(me@x * me@y * 9) * tan(me@x * me@y))", True),
    "a divisor": ("display(0.001 / sin(me@x * me@y * 9))", True),
    "a small divisor of it": ("display(sin(me@x * me@y * 9) / 0.0003)", True),
    "an edge": ("display(if sin(me@x * me@y * 9) > 0.3 then 1 else 0)", True),
    "steps": ("display(floor(sin(me@x * me@y * 9) * 8) / 8)", True),
    "what is remembered": ("a = sin(me@x * me@y * 9) * 0.5\ndisplay(a + prev(a))", True),
    "a loop": (f"{SPINDLE}display(f(sin(me@x * me@y * 9)))", True),
    "one of two uses": ("s = sin(me@x * me@y * 9)\ndisplay(s, if s > 0.3 then 1 else 0, 0)", True),
}


def has_exact_sine(text: str) -> bool:
    return "near_sine" in text or "exact_sine" in text


@pytest.mark.parametrize(("text", "is_exact"), TEXTS.values(), ids=TEXTS.keys())
def test_which_sines_are_exact(text: str, is_exact: bool) -> None:
    unit = unit_of(f"{text}\n")
    program = ProgramWriter(CudaVisual.dialect).code(unit, packed=True).grid.drawn
    assert has_exact_sine(program.text) == is_exact
    # Numbers that are no pixels are always computed to their last digits, and so is everything elsewhere.
    assert has_exact_sine(ProgramWriter(CudaVisual.dialect).code(unit, packed=False).grid.drawn.text)
    assert "coarse" not in ProgramWriter(GlVisual.dialect).code(unit, packed=True).grid.drawn.text


def test_a_number_may_be_turned_until_its_size_matters() -> None:
    writer = ProgramWriter(CudaVisual.dialect)
    units = [unit_of(f"display(sin(me@x * me@y * 9) * {factor} + 0.5)\n") for factor in (100.5, 150.5, 900.5)]
    assert [writer.knows(unit, packed=True) for unit in units] == [False] * 3
    first = writer.code(units[0], packed=True).grid.drawn
    assert [writer.knows(unit, packed=True) for unit in units] == [True, True, False]
    assert writer.code(units[1], packed=True).grid.drawn.text == first.text
    assert "near_sine" not in first.text
    assert "near_sine" in writer.code(units[2], packed=True).grid.drawn.text


@pytest.mark.parametrize(("text", "serves"), [("{} * {{}} + 0.5", True), ("{} / {{}} + 0.5", False)])
def test_a_factor_may_be_turned_through_0_and_a_divisor_may_not(text: str, serves: bool) -> None:
    writer = ProgramWriter(CudaVisual.dialect)
    text = text.format("sin(me@x * me@y * 9)")
    units = [unit_of(f"display({text.format(number)})\n") for number in (2.5, 0.01, -2.5)]
    writer.code(units[0], packed=True)
    assert [writer.knows(unit, packed=True) for unit in units] == [True, serves, serves]
