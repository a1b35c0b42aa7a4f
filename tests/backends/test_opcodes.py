"""Every opcode on its own, on each machine that executes bytecode."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.support.exprs import image_slot, number_slot
from tests.support.kernels import MACHINES, agree, kernel, launch_of, local
from tests.support.verify_bytecode import verify
from weft.backends.launch import StateMemory
from weft.codegen.bytecode import OPCODES, StrandCall, assemble
from weft.codegen.kernel import Kernel
from weft.ir.expr import LoopShape, LoopValue, PicturePlane, SlotPlane, StrandRef
from weft.ir.rates import Rate

SHAPE = (2, 3)


@dataclass(frozen=True)
class Case:
    """A kernel, the values that it should return (in a picture of 2×3 elements), and what it is launched with."""

    kernel: Kernel
    expected: Sequence[Any]
    inputs: Mapping[str, Any] = field(default_factory=dict)


def case(
    code: Sequence[tuple[Any, ...]], *expected: Any, inputs: Mapping[str, Any] | None = None, **fields: Any
) -> Case:
    return Case(kernel([*code, ("RETURN",)], len(expected), **fields), expected, inputs or {})


def of_row(op: str, *operands: float, expected: float) -> Case:
    return case([*(("PUSH", float(operand)) for operand in operands), (op,)], expected)


PICTURE = np.arange(2 * 2 * 4, dtype=np.float32).reshape(2, 2, 4)
SAMPLES = np.arange(8, dtype=np.float32).reshape(1, 4, 2)
LOOP = LoopShape(0, 2)

CASES = {
    "PUSH": case([("PUSH", -0.1)], -0.1),
    "PUSH_BITS": case([("PUSH_BITS", 0xFFFF_FF00), ("CALL", "bits_top")], 0xFFFFFF),
    "LOAD_NUMBER": case([("LOAD_NUMBER", 1)], 0.25, numbers=(3.0, 0.25)),
    "LOAD_COORD": case([("LOAD_COORD", "x"), ("LOAD_COORD", "y")], [[1 / 6, 0.5, 5 / 6]], [[0.25], [0.75]]),
    "LOAD_UNIFORM": case([("LOAD_UNIFORM", "t")], 7.5, uniforms=("t",), inputs={"uniforms": {"t": 7.5}}),
    "LOAD_LOCAL": case(
        [("LOAD_COORD", "y"), ("NEG",), ("STORE_LOCAL", 0), ("LOAD_LOCAL", 0), ("LOAD_LOCAL", 0), ("ADD",)],
        [[-0.5], [-1.5]], locals=(local(),),
    ),
    "STORE_LOCAL": case(
        [("PUSH", 3.0), ("PUSH", 0.0), ("EQ",), ("STORE_LOCAL", 0), ("LOAD_LOCAL", 0), ("NOT",), ("LOAD_LOCAL", 0)],
        1, 0, locals=(local(Rate.ELEMENT, "bool"),),
    ),
    "DROP": case(
        [("PUSH", 1.0), ("PUSH", 3.0), ("PUSH", 0.0), ("PUSH", 1.0), ("LOOP", LOOP), ("LOAD_CARRIED", LoopValue(0, 1)),
         ("LOAD_INDEX", 0), ("NEXT", LOOP), ("DROP",)],
        2,
    ),
    "CALL": case([("PUSH", 3.0), ("LOAD_COORD", "y"), ("CALL", "min")], [[0.25], [0.75]]),
    "SELECT": case(
        [("LOAD_COORD", "y"), ("PUSH", 0.5), ("LT",), ("PUSH", 1.0), ("PUSH", math.nan), ("SELECT",)],
        [[1], [math.nan]],
    ),
    "LOAD_STATE": case([("PUSH", 1.0), ("LOAD_STATE", SlotPlane("n", 0))], 4, slots=(number_slot("n"),), tick="element",
                       sweep="points"),
    "SAMPLE_STATE": case(
        [("PUSH", 1.0), ("PUSH", 0.5), ("LOAD_COORD", "y"), ("SAMPLE_STATE", SlotPlane("i", 0))],
        [[1], [4]], slots=(image_slot("i"),), sweep="points",
    ),
    "STORE_STATE": case([("PUSH", 9.0), ("STORE_STATE", SlotPlane("i", 0))], slots=(image_slot("i"),)),
    "SAMPLE_PICTURE": case(
        [("LOAD_COORD", "x"), ("PUSH", 0.25), ("SAMPLE_PICTURE", PicturePlane("p.png", 2))],
        [[2, 4, 6]], pictures=("p.png",), inputs={"pictures": {"p.png": PICTURE}},
    ),
    "FETCH": case(
        [("LOAD_COORD", "x"), ("PUSH", 3.0), ("MUL",), ("FETCH", PicturePlane("sound:1:k", 1)), ("PUSH", 4.0),
         ("FETCH", PicturePlane("sound:1:k", 0))],
        [[1, 3, 5]], 0, pictures=("sound:1:k",), inputs={"pictures": {"sound:1:k": SAMPLES}},
    ),
    "LOAD_STRAND": case(
        [("LOAD_COORD", "x"), ("LOAD_COORD", "y"), ("LOAD_STRAND", StrandCall("a", "b", 2))],
        [[1 / 6 + 2.5, 3, 5 / 6 + 2.5], [1 / 6 + 7.5, 8, 5 / 6 + 7.5]],
        strands=(StrandRef("a", "b"),), inputs={"strands": {StrandRef("a", "b"): lambda x, y: x + 10 * y}},
    ),
    "LOOP": case([("PUSH", 1.0), ("PUSH", 0.0), ("PUSH", 5.0), ("LOOP", LoopShape(0, 1)), ("PUSH", 6.0),
                  ("NEXT", LoopShape(0, 1))], 5),
    "LOAD_INDEX": case([("PUSH", 0.5), ("PUSH", 2.6), ("PUSH", 0.0), ("LOOP", LoopShape(0, 1)), ("LOAD_INDEX", 0),
                        ("NEXT", LoopShape(0, 1))], 2.5),
    "LOAD_CARRIED": case(  # the Fibonacci numbers: both values are exchanged at once
        [("PUSH", 1.0), ("PUSH", 6.0), ("PUSH", 0.0), ("PUSH", 1.0), ("LOOP", LOOP), ("LOAD_CARRIED", LoopValue(0, 1)),
         ("LOAD_CARRIED", LoopValue(0, 0)), ("LOAD_CARRIED", LoopValue(0, 1)), ("ADD",), ("NEXT", LOOP)],
        8, 13,
    ),
    "NEXT": case(
        [("PUSH", 1.0), ("LOAD_COORD", "y"), ("PUSH", 4.0), ("MUL",), ("PUSH", 0.0), ("LOOP", LoopShape(0, 1)),
         ("LOAD_CARRIED", LoopValue(0, 0)), ("LOAD_INDEX", 0), ("ADD",), ("NEXT", LoopShape(0, 1))],
        [[1], [6]],
    ),
    "RETURN": case([("PUSH", 1.0), ("LOAD_COORD", "x"), ("PUSH", 3.0)], 1, [[1 / 6, 0.5, 5 / 6]], 3),
    "OR": of_row("OR", 0, math.nan, expected=1),
    "AND": of_row("AND", 2, 0, expected=0),
    "NOT": of_row("NOT", 0, expected=1),
    "EQ": of_row("EQ", 2, 2, expected=1),
    "NE": of_row("NE", math.nan, math.nan, expected=1),
    "LT": of_row("LT", 1, 2, expected=1),
    "LE": of_row("LE", math.nan, 2, expected=0),
    "ADD": of_row("ADD", 1, 2.5, expected=3.5),
    "SUB": of_row("SUB", 1, 2.5, expected=-1.5),
    "MUL": of_row("MUL", 3, -2, expected=-6),
    "DIV": of_row("DIV", -1, 0, expected=-math.inf),
    "MOD": of_row("MOD", -7, 3, expected=2),
    "NEG": of_row("NEG", 3, expected=-3),
}  # fmt: skip


def test_every_opcode_has_its_case():
    assert set(CASES) == set(OPCODES)
    for op, each in CASES.items():
        assert any(instruction.op == op for instruction in assemble(each.kernel, op == "LOAD_NUMBER").walk())


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("op", CASES)
def test_opcode(op, machine):
    made, expected, inputs = CASES[op].kernel, CASES[op].expected, CASES[op].inputs
    verify(made)
    memory = memory_with_values(made, MACHINES[machine].widest)
    launch = launch_of(SHAPE, **inputs)
    if op == "STORE_STATE":
        MACHINES[machine].load(made).planes(memory, launch)
        assert (memory.ring("i")[memory.cell("i", 1), 0] == 9).all()
        return
    got = MACHINES[machine].load(made).planes(memory, launch)
    assert got.shape == (len(expected), *SHAPE)
    for plane, wanted in zip(got, expected, strict=True):
        assert agree(machine, plane, np.broadcast_to(wanted, SHAPE)), plane


def memory_with_values(made, real):
    """State after two ticks: what a reader sees between ticks as one tick ago are the numbers 4, or 0 … 5."""
    memory = StateMemory(made.slots, SHAPE, real)
    for slot in made.slots:
        memory.ring(slot.key)[memory.cell(slot.key)] = np.arange(6).reshape(SHAPE) if slot.image else 4
    memory.advance()
    memory.advance()
    return memory
