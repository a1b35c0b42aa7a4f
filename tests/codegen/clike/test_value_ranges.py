"""`weft.codegen.clike.value_ranges`: what is known of values holds for what the reference computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.clike.test_numbers import unit_of
from tests.support.parity.cases import Case, case_of, case_of_seed
from tests.support.together import all_but
from weft.backends.card import ProgramWriter
from weft.backends.cuda.backend import CudaVisual
from weft.backends.gl.backend import GlVisual
from weft.codegen.clike.fields import NumberedKernel
from weft.codegen.clike.reads import read_program
from weft.codegen.clike.value_ranges import ValueRanges
from weft.codegen.values import Section
from weft.contexts import OWN_CONTEXTS, ContextTable
from weft.errors import Source
from weft.ir.rates import Rate
from weft.runtime.compiling.kept import KeptBuild
from weft.runtime.compiling.stages import Request, build

# Of what the language defines loosely, such as a wave, a card may compute a bit more or less.
MARGIN = 1e-9


def ranges_hold(case: Case) -> int:
    """Checks what is known of all values of a program outside of its loops, and gives how many are never NaN."""
    numbered = NumberedKernel.of(case.kernel).kernel
    program, prologue = read_program(numbered)
    known = ValueRanges(numbered, program, prologue, case.kernel.numbers)
    values = [node for node in program.nodes if node.kind == "float" and node.op != "loop"]
    shown = Section(Rate.ELEMENT, program.nodes, tuple(values), program.stores, program.locals)
    rest = tuple(section for section in numbered.sections if section.rate <= Rate.FRAME)
    labels = tuple(map(str, range(len(values))))
    made = replace(
        case, kernel=replace(numbered, sections=(*rest, shown), outputs=labels, numbers=case.kernel.numbers)
    )  # fmt: skip
    for at, node in enumerate(values):
        found, (low, high) = made.expected[:, at], known.known(node).interval
        assert not (known.are_numbers([node]) and np.isnan(found).any()), node
        assert not (known.is_near(node) and (np.abs(found) > 2.0**30).any()), node
        margin = MARGIN * np.maximum(1.0, np.abs(found))
        assert (np.isnan(found) | ((found >= low - margin) & (found <= high + margin))).all(), (node, low, high)
    return sum(known.are_numbers([node]) for node in values)


@pytest.mark.parametrize("seed", all_but(4, range(120)))
def test_values_of_generated_programs_are_where_they_are_said_to_be(seed: int) -> None:
    case = case_of_seed(seed)
    if not case.kernel.strands:
        ranges_hold(case)


# Texts, and whether the cells of their noise are converted by one instruction.
TEXTS: Mapping[str, tuple[str, bool]] = {
    "coordinates": ("display(noise(me@x * 8, me@y * 8))", True),
    "the time": ("display(noise(me@x * 8 + me@time, me@y))", True),
    "a slider": ('#slider s<v> = 0, 400, 3 "s"\ndisplay(noise(me@x * s + mouse@x, me@y))', True),
    "a wide slider": ('#slider s<v> = 0, 1e30, 3 "s"\ndisplay(noise(me@x * s, me@y))', False),
    "noise of noise": ("f = noise(me@x * 5, me@y * 3)\ndisplay(f(me@x ~ me@x + f * 0.25, me@y ~ me@y - f))", True),
    "polar places": ("r = sqrt(me@x * me@x + me@y * me@y)\na = atan2(me@y, me@x)\ndisplay(noise(r * 5, a * 3))", True),
    "what others send": ('s = osc("/s")\ndisplay(noise(me@x * s, me@y))', False),
    "what others send, limited": ('s = osc("/s")\ndisplay(noise(me@x * clamp(s, 0, 9), me@y))', True),
    "what is remembered": ("a = fract(prev(a) + me@x)\ndisplay(noise(a * 9, me@y))", False),
    "a quotient that may be infinite": ("display(noise(1 / (me@x - mouse@x), me@y))", False),
    "a remainder by what may be 0 on a card": ("display(noise(me@x % 1e-40, me@y))", False),
    "hardly anything, enlarged": ("display(noise(me@x / 1e37 * 1e37 * 1e12, me@y))", False),
    "what is infinite on a card, reduced": ("display(noise(max(me@x * 1e30 * 1e10 / 1e36, 0), me@y))", False),
    "a root of any number": ("display(noise(sqrt(me@x - 0.5), me@y))", False),
    "a large number": ("display(noise(me@x * 1e12, me@y))", False),
    "a loop": (
        "spindle f(x) :: v { v = x\nfor i in (1 to 9) { v = v * 9 + i } }\ndisplay(noise(f(me@x), me@y))", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "is_near"), TEXTS.values(), ids=TEXTS.keys())
def test_which_cells_are_near(text: str, is_near: bool) -> None:
    unit = unit_of(f"{text}\n")
    for backend, general in ((CudaVisual, "folded("), (GlVisual, "bits_of(")):
        program = ProgramWriter(backend.dialect).code(unit, packed=True).grid.drawn
        main = "\n".join(line for line in program.text.split("\n") if line.startswith("    "))
        assert (f"= {general}" not in main and f" {general}" not in main) == is_near
    assert ranges_hold(case_of(f"{text}\n"))


@pytest.mark.parametrize("divisor", ["1e-38", "1e-40"])
def test_quotients_by_what_may_be_0_on_a_card_may_be_nan(divisor: str) -> None:
    case = case_of(f"display(me@x / {divisor})\n")
    numbered = NumberedKernel.of(case.kernel).kernel
    program, prologue = read_program(numbered)
    assert not ValueRanges(numbered, program, prologue, case.kernel.numbers).are_numbers(program.outputs)


def test_a_number_may_be_turned_until_cells_are_far() -> None:
    writer = ProgramWriter(GlVisual.dialect)
    units = [unit_of(f"display(noise(me@x * {scale}, me@y))\n") for scale in (5.5, 80.5, 2000.5, 1e13)]
    assert not writer.knows(units[0], packed=True)
    first = writer.code(units[0], packed=True).grid.drawn
    assert [writer.knows(unit, packed=True) for unit in units] == [True, True, False, False]
    assert writer.code(units[2], packed=True).grid.drawn.text == first.text
    assert "bits_of" not in first.text
    assert "bits_of" in writer.code(units[3], packed=True).grid.drawn.text


@pytest.mark.parametrize("text", ["me@x * {} + me@y", "min(osc(\"/s\"), {})", "me@x / {}"])
def test_a_number_may_be_turned_far_where_nothing_is_near(text: str) -> None:
    """What is shown stays a number."""
    writer = ProgramWriter(GlVisual.dialect)
    units = [unit_of(f"display({text.format(number)})\n") for number in (0.5, 2000.5)]
    first = writer.code(units[0], packed=True).grid.drawn
    assert "number_or" not in first.text
    assert writer.knows(units[1], packed=True)


def test_a_wider_slider_is_another_program() -> None:
    """A range that changes little keeps the program."""
    kept, table = KeptBuild(), ContextTable(OWN_CONTEXTS)
    text = '#slider s<v> = 0, {most}, 3 "s"\ndisplay(noise(me@x * s, me@y))\n'
    hashes = []
    for most in ("9", "12", "300", "1e30", "9"):
        (unit,) = build(Request(Source("p.weft", text.format(most=most)), table), kept=kept).units
        hashes.append(unit.hash)
    assert hashes[0] == hashes[1] == hashes[4]
    assert len({*hashes}) == 3
