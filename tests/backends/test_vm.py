"""The reference machine: what a trace shows, and when the constant section runs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.exprs import Exprs, lowered
from tests.support.kernels import compiled, kernel, launch_of
from tests.support.parity.cases import case_of, case_of_seed, sound_case_of_seed
from weft.backends.launch import StateMemory
from weft.backends.stretches import stretches
from weft.backends.vm import ReferenceExecutor
from weft.codegen.bytecode import Instruction, instruction_text
from weft.ir.expr import LoopShape, SlotPlane


def traced(made, *launches):
    events = []
    executable = ReferenceExecutor(events.append).load(made)
    for launch in launches:
        executable.planes(StateMemory(made.slots), launch)
    return events


def test_a_trace_shows_every_instruction_and_the_stack():
    events = traced(compiled(lowered((Exprs().number(5) + 3) * 2), optimise=False), launch_of((1, 1)))
    assert [(event.at, instruction_text(event.instruction), event.stack) for event in events] == [
        (0, "PUSH 5", (5,)),
        (1, "PUSH 3", (5, 3)),
        (2, "ADD", (8,)),
        (3, "PUSH 2", (8, 2)),
        (4, "MUL", (16,)),
        (5, "RETURN", (16,)),
    ]


def test_a_trace_says_where_it_is():
    e = Exprs()
    events = traced(compiled(lowered(e("sin", e.coord("x")) + e.coord("y"))), launch_of((2, 3)))
    assert [event.rate.title for event in events].count("column") == 3 * 3
    elements = [event.element for event in events if event.instruction.op == "RETURN"]
    assert elements == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


@pytest.mark.parametrize(("last", "places"), [(2.0, [0, 1, 2, 3, 4, 5, 4, 5, 6]), (0.0, [0, 1, 2, 3, 6])])
def test_a_trace_follows_loops(last, places):
    loop = LoopShape(0, 1)
    code = [
        ("PUSH", 1.0),
        ("PUSH", last),
        ("PUSH", 7.0),
        ("LOOP", loop),
        ("LOAD_INDEX", 0),
        ("NEXT", loop),
        ("RETURN",),
    ]
    assert [event.at for event in traced(kernel(code), launch_of((1, 1)))] == places


def test_constants_are_computed_once():
    e = Exprs()
    made = compiled(lowered(e("sin", e.number(1)) * e.coord("x"), e("cos", e.coord("channel")) * e.coord("x")))
    launch, other = launch_of((1, 1)), launch_of((1, 1))
    other.coords["channel"] = 1.0
    events = traced(made, launch, launch, other)
    assert [event.instruction.operand for event in events if event.rate.title == "constant"].count("sin") == 2


# --- many elements ----------------------------------------------------------------------------------------------------

# More than it takes for their section to be written out, stretch by stretch.
SHAPE = (5, 20)

DEEP = "display(" + "cos(" * 90 + "me@x" + ")" * 90 + " + " + " - ".join(f"me@y * {n}" for n in range(90)) + ")\n"
LOOPS = """\
spindle f(x) :: <o, p> { out o = x
  for i in (0 to me@px) { p = o; o = if i > 2 and p < 3 then o * 0.7 + i else x
    for j in (i to 3) { o += hash(i, j) * p } } }
f(me@x * me@y + prev(s))::r<o, p>
s = fract(r@o * 0.3 + r@p)
display(s, 1 / (me@px - 3), me@py % 0)
"""


@pytest.mark.parametrize(
    "case",
    [case_of(DEEP), case_of(LOOPS, shape=SHAPE), *map(case_of_seed, range(1, 9)), *map(sound_case_of_seed, range(4))],
    ids=lambda case: "sound" if case.is_sound else "picture",
)  # fmt: skip
def test_stretches_are_their_instructions_one_by_one(case):
    """What is traced is run instruction by instruction, and else nothing is when there are many elements."""
    executed = []
    one_by_one = played(case, ReferenceExecutor(lambda event: executed.append(event.at)).load(case.kernel))
    assert executed
    written = ReferenceExecutor().load(case.kernel)
    np.testing.assert_array_equal(played(case, written), one_by_one)
    # Once it has been written, it stays so.
    np.testing.assert_array_equal(played(case, written), one_by_one)


def played(case, executable):
    memory = StateMemory(case.kernel.slots, (1, 1) if case.is_sound else case.launches[0].shape, np.float64)
    return np.stack([executable.planes(memory, launch) for launch in case.launches])


def test_a_section_is_as_few_steps_as_it_has_stretches():
    """What only computes is one step, and so is each instruction that does more."""
    code = [
        Instruction("LOAD_COORD", "x"), Instruction("PUSH", 2.0), Instruction("MUL"),
        Instruction("LOAD_STATE", SlotPlane("v/s", 0)),
        Instruction("PUSH", 1.0), Instruction("ADD"),
        Instruction("RETURN"),
    ]  # fmt: skip
    assert [[*stretch] for stretch in stretches(code)] == [[0, 1, 2], [4, 5]]
