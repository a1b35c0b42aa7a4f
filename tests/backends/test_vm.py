"""The reference machine: what a trace shows, and when the constant section runs."""

from __future__ import annotations

import pytest

from tests.support.exprs import Exprs, lowered
from tests.support.kernels import compiled, kernel, launch_of
from weft.backends.launch import StateMemory
from weft.backends.vm import ReferenceExecutor
from weft.codegen.bytecode import instruction_text
from weft.ir.expr import LoopShape


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
