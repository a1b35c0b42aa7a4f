"""The verifier of kernels accepts what the compiler makes, and finds what would make a machine stumble."""

from __future__ import annotations

import pytest

from tests.support.exprs import image_slot, number_slot
from tests.support.kernels import bytecode, instructions, kernel, kernel_of, local
from tests.support.verify_bytecode import verify, verify_bytecode
from weft.codegen.bytecode import SectionCode, StrandCall, stack_depth
from weft.ir.expr import LoopShape, LoopValue, MalformedError, PicturePlane, SlotPlane, StrandRef
from weft.ir.rates import Rate

LOOP = [("PUSH", 1.0), ("PUSH", 3.0), ("PUSH", 0.0), ("LOOP", LoopShape(0, 1))]
NEXT = [("NEXT", LoopShape(0, 1)), ("RETURN",)]


def fails(words, code, **fields):
    with pytest.raises(MalformedError, match=words):
        verify_bytecode(bytecode(code, **fields))


def test_sound_code_passes():
    verify(kernel([*LOOP, ("LOAD_CARRIED", LoopValue(0, 0)), ("LOAD_INDEX", 0), ("ADD",), *NEXT]))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("pops 2 values, 1 are there", [("PUSH", 1.0), ("ADD",), ("RETURN",)]),
        ("returns 2 values as 1", [("PUSH", 1.0), ("PUSH", 1.0), ("RETURN",)]),
        ("returns 0 values as 1", [("RETURN",)]),
        ("does not end with RETURN", [("PUSH", 1.0)]),
        ("before the end", [("PUSH", 1.0), ("RETURN",), ("PUSH", 1.0), ("RETURN",)]),
        ("unknown opcode", [("NOP",)]),
        ("operand is no", [("PUSH", 1)]),
        ("operand is no", [("RETURN", 3)]),
        ("cannot be called", [("PUSH", 1.0), ("CALL", "fract"), ("RETURN",)]),
        ("pops u32 as float", [("PUSH_BITS", 1), ("NEG",), ("RETURN",)]),
        ("pops float as u32", [("PUSH", 1.0), ("CALL", "bits_top"), ("RETURN",)]),
        ("pops u32 as float", [("PUSH_BITS", 1), ("RETURN",)]),
        ("no uniform", [("LOAD_UNIFORM", "time"), ("RETURN",)]),
        ("not there in this section", [("LOAD_COORD", "abstime"), ("RETURN",)]),
        ("no strand", [("LOAD_STRAND", StrandCall("a", "b", 0)), ("RETURN",)]),
        ("no plane of its pictures", [*[("PUSH", 0.0)] * 2, ("SAMPLE_PICTURE", PicturePlane("p", 0)), ("RETURN",)]),
        ("no such plane", [("PUSH", 1.0), ("LOAD_STATE", SlotPlane("s", 0)), ("RETURN",)]),
    ],
)  # fmt: skip
def test_plain_mistakes(words, code):
    fails(words, code)


def test_the_message_names_the_place():
    fails(r"test, element section, 1: Instruction\(op='ADD'", [("PUSH", 1.0), ("ADD",), ("RETURN",)])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("a loop is left open", [*LOOP, ("PUSH", 1.0)]),
        ("ends no such loop", [("PUSH", 1.0), *NEXT]),
        ("ends no such loop", [*LOOP, ("PUSH", 1.0), ("PUSH", 1.0), ("NEXT", LoopShape(0, 2)), ("RETURN",)]),
        ("leaves values on the stack at each step", [*LOOP, ("PUSH", 1.0), ("PUSH", 1.0), *NEXT]),
        ("pops 1 values", [*LOOP, *NEXT]),
        ("pops 2 values, 2 are there", [("PUSH", 9.0), *LOOP, ("PUSH", 1.0), ("ADD",), *NEXT]),
        ("outside such a loop", [("LOAD_INDEX", 0), ("RETURN",)]),
        ("outside such a loop", [*LOOP, ("LOAD_INDEX", 1), *NEXT]),
        ("outside such a loop", [*LOOP, ("LOAD_CARRIED", LoopValue(0, 1)), *NEXT]),
        ("not the deepest", [*LOOP, *LOOP, ("PUSH", 1.0), NEXT[0], *NEXT]),
        ("returns before the end", [*LOOP, ("RETURN",)]),
    ],
)
def test_loops(words, code):
    fails(words, code)


def test_locals_are_stored_before_they_are_loaded():
    fails("loaded before it is stored", [("LOAD_LOCAL", 0), ("RETURN",)], locals=(local(),))
    fails("no such local", [("LOAD_LOCAL", 1), ("RETURN",)], locals=(local(),))
    fails("belongs to the row", [("PUSH", 1.0), ("STORE_LOCAL", 0), ("RETURN",)], outputs=0, locals=(local(Rate.ROW),))


def test_what_a_body_stores_is_gone_behind_it():
    body = [("PUSH", 1.0), ("STORE_LOCAL", 0), ("LOAD_LOCAL", 0), NEXT[0]]
    fails("loaded before it is stored", [*LOOP, *body, ("LOAD_LOCAL", 0), ("ADD",), ("RETURN",)], locals=(local(),))


def with_sections(*sections, **fields):
    made = tuple(SectionCode(rate, instructions(code)) for rate, code in sections)
    return {"code": [], "sections": made, **fields}


def test_sections_see_what_is_rarer():
    frame = (Rate.FRAME, [("PUSH", 1.0), ("STORE_LOCAL", 0)])
    load = [("LOAD_LOCAL", 0)]
    end = (Rate.ELEMENT, [*load, ("RETURN",)])
    verify(kernel_of(bytecode(**with_sections(frame, end, locals=(local(Rate.FRAME),)))))
    column = (Rate.COLUMN, [("PUSH", 1.0), ("STORE_LOCAL", 0)])
    row = (Rate.ROW, [*load, ("STORE_LOCAL", 1)])
    fails("is a column's", **with_sections(column, row, end, locals=(local(Rate.COLUMN), local(Rate.ROW))))
    fails("not there", **with_sections((Rate.COLUMN, [("LOAD_COORD", "y"), ("STORE_LOCAL", 0)]), end))
    fails("sections", **with_sections(end, frame))
    fails("sections", **with_sections(frame))
    fails("leaves 1 values", **with_sections((Rate.FRAME, [("PUSH", 1.0)]), end))


def test_state_is_stored_once_and_where_it_belongs():
    image, number = image_slot("i"), number_slot("n")
    store = [("PUSH", 1.0), ("STORE_STATE", SlotPlane("i", 0))]
    verify(kernel([*store, ("RETURN",)], outputs=0, slots=(image,)))
    fails("updates", [("RETURN",)], outputs=0, slots=(image,))
    fails("updates", [*store, *store, ("RETURN",)], outputs=0, slots=(image,))
    fails("updates", [*store, ("RETURN",)], outputs=0, slots=(image,), sweep="points")
    by_element = [("PUSH", 1.0), ("STORE_STATE", SlotPlane("n", 0)), ("RETURN",)]
    fails("at the wrong rate", by_element, outputs=0, slots=(number,))
    verify(kernel(by_element, outputs=0, slots=(number,), tick="element"))
    fails("at the wrong rate", [*LOOP, *store, ("PUSH", 1.0), *NEXT], slots=(image,))


def test_state_is_read_where_there_is_an_element():
    read = [("PUSH", 1.0), ("LOAD_STATE", SlotPlane("i", 0))]
    frame = (Rate.FRAME, [*read, ("STORE_LOCAL", 0)])
    fails("no element here", **with_sections(frame, (Rate.ELEMENT, [("RETURN",)]), slots=(image_slot("i"),),
                                             locals=(local(Rate.FRAME),)))  # fmt: skip
    fails("no element here", [*read, ("RETURN",)], slots=(image_slot("i"),), sweep="points")
    sample = [("PUSH", 1.0)] * 3 + [("SAMPLE_STATE", SlotPlane("n", 0)), ("RETURN",)]
    fails("is no image", sample, slots=(number_slot("n"),))


def test_strands_are_called_with_what_they_take():
    code = [("PUSH", 1.0), ("LOAD_STRAND", StrandCall("a", "b", 2)), ("RETURN",)]
    fails("pops 2 values", code, strands=(StrandRef("a", "b"),))


def test_stack_depth():
    made = bytecode([("PUSH", 1.0), ("PUSH", 2.0), ("PUSH", 3.0), ("ADD",), ("ADD",), ("RETURN",)])
    assert stack_depth(made, made.sections[0].code) == 3
