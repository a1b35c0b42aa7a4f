"""Listings of kernels."""

from __future__ import annotations

from tests.support.exprs import Exprs, image_slot, lowered
from tests.support.kernels import compiled
from weft.codegen.bytecode import assemble, disassemble, instruction_text


def test_a_plain_listing():
    kernel = compiled(lowered((Exprs().number(5) + 3) * 2), optimise=False)
    assert disassemble(kernel).splitlines() == [
        "kernel test · visual · grid → 0",
        "",
        "element section · at every element · stack 2",
        "     0  PUSH 5",
        "     1  PUSH 3",
        "     2  ADD",
        "     3  PUSH 2",
        "     4  MUL",
        "     5  RETURN",
    ]


def test_a_listing_says_what_there_is():
    e = Exprs()
    wave = e("sin", e.coord("x") * 9 + e.uniform("time"))
    past = e.state("v/p", 1)
    kernel = compiled(lowered(wave * e.coord("y"), slots=[image_slot("v/p", depth=2)], updates={"v/p": past + wave}))
    text = disassemble(kernel, shape=(90, 160))
    assert text.splitlines() == [
        "kernel test · visual · grid → 0",
        "coordinates: x (column), y (row)",
        "uniforms: time",
        "state: v/p · prev · 1 × image · 2 back",
        "state advances after every launch",
        "locals, with their bytes in a picture of 160×90:",
        "     0  column   float       640  t5",
        "",
        "column section · once a column: varies with x only · stack 2",
        "     0  LOAD_COORD x",
        "     1  PUSH 9",
        "     2  MUL",
        "     3  LOAD_UNIFORM time",
        "     4  ADD",
        "     5  CALL sin",
        "     6  STORE_LOCAL 0                   ; t5",
        "",
        "element section · at every element · stack 2",
        "     0  PUSH 1",
        "     1  LOAD_STATE v/p[0]",
        "     2  LOAD_LOCAL 0                    ; t5",
        "     3  ADD",
        "     4  STORE_STATE v/p[0]",
        "     5  LOAD_LOCAL 0                    ; t5",
        "     6  LOAD_COORD y",
        "     7  MUL",
        "     8  RETURN",
    ]


def test_loops_are_indented():
    e = Exprs()
    (total,) = e.loop(0, (1, 3), [0], [e.carried(0) + e.index(0)])
    lines = disassemble(compiled(lowered(total))).splitlines()
    assert "     4    LOAD_CARRIED loop0.0" in lines
    assert "     7  NEXT loop0 1" in lines


def test_every_instruction_has_a_text():
    from tests.backends.test_opcodes import CASES

    for case in CASES.values():
        assert all(instruction_text(i).startswith(i.op) for i in assemble(case.kernel).walk())
