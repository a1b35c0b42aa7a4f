"""Broken IR is found, and the message says what is wrong where."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.exprs import Exprs, image_slot, lowered, number_slot
from tests.support.verify_ir import verify
from weft.ir.expr import Expr, LoopShape, LoopValue, MalformedError, SlotPlane, Update


def fails(ir, words):
    with pytest.raises(MalformedError, match=words):
        verify(ir)


def test_sound_ir_passes():
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    (total,) = e.loop(0, (1, x * 4), [0], [e.carried(0) + e.index(0) * y])
    past = e.state("v/p", 1, 1 - x, y)
    verify(
        lowered(
            e("noise", x * 4, y * 4, 0), total, e("lt", x, y), past,
            slots=[image_slot("v/p"), number_slot("v/n", depth=9)],
            updates={"v/p": total, "v/n": e.uniform("time") + e.state("v/n", 9)},
            exposed={"a@b": past + 1},
        )
    )  # fmt: skip


def test_a_deep_expression_passes():
    e = Exprs()
    deep = e.coord("x")
    for _ in range(10_000):
        deep = e("sin", deep) + 1
    verify(lowered(deep))


def node(op, *args, attr=None, index=1000, free=0):
    return Expr(op, args, attr, index, index, free)


def test_operands_come_first():
    late = node("const", attr=1.0, index=5)
    fails(lowered(node("neg", late, index=5)), "made after its user")


def test_equal_structure_is_one_object():
    twins = [node("coord", attr="x", index=at) for at in (1, 2)]
    fails(lowered(node("add", *twins)), "equal to %1")


def test_constants_differ_by_their_bits():
    zeros = [node("const", attr=zero, index=at) for at, zero in enumerate((0.0, -0.0))]
    verify(lowered(node("add", *zeros)))


@pytest.mark.parametrize(
    ("op", "count", "words"),
    [("nonsense", 1, "unknown operation"), ("add", 1, "takes 2"), ("noise", 3, "expanded"), ("sin", 2, "takes 1")],
)
def test_operations(op, count, words):
    x = node("coord", attr="x", index=0)
    fails(lowered(node(op, *[x] * count)), words)


@pytest.mark.parametrize(
    ("op", "attr", "words"),
    [
        ("const", 1, "not a float"),
        ("coord", "time", "not a base coordinate"),
        ("u32", 1 << 32, "32 bits"),
        ("uniform", None, "not a str"),
        ("state", SlotPlane("v/p", 0), "operands"),
    ],
)
def test_attributes(op, attr, words):
    fails(lowered(node(op, attr=attr)), words)


def test_bits_are_no_reals():
    number = node("u32", attr=3, index=0)
    fails(lowered(node("sin", number)), "is u32, not float")
    fails(lowered(node("bits_of", node("u32", attr=4, index=1))), "is u32, not float")
    fails(lowered(node("bits_add", number, node("coord", attr="x", index=2))), "is float, not u32")
    fails(lowered(number), "bits cannot leave")


def test_a_loops_variables_stay_inside():
    e = Exprs()
    fails(lowered(e.index(0) + 1), "outside its loop")


def test_a_loop_is_read_by_its_values_only():
    e = Exprs()
    loop = e.node("loop", (1, 2, 0, e.carried(0)), LoopShape(0, 1))
    fails(lowered(loop), "loop_out")
    fails(lowered(node("neg", loop.value)), "loop_out")
    fails(lowered(node("loop_out", loop.value, attr=1)), "fewer values")
    fails(lowered(node("loop_out", e.expr(1), attr=0)), "not a loop")


def test_levels_grow_inwards():
    e = Exprs()
    (inner,) = e.loop(0, (1, e.index(1)), [0], [e.carried(0) + e.index(1)])
    (outer,) = e.loop(1, (1, 2), [0], [e.carried(1) + inner])
    fails(lowered(outer), "deeper")


def test_a_loop_needs_all_its_parts():
    one = node("const", attr=1.0, index=0)
    fails(lowered(node("loop_out", node("loop", one, one, one, attr=LoopShape(0, 1), index=1), attr=0)), "two bounds")


def test_a_body_mentions_only_what_is_carried():
    e = Exprs()
    (wrong,) = e.loop(0, (1, 2), [0], [e.node("loop_value", (), LoopValue(0, 1))])
    fails(lowered(wrong), "does not carry")


def sound_state():
    e = Exprs()
    past = e.state("v/p", 1)
    return e, lowered(past, slots=[image_slot("v/p", depth=3, planes=1)], updates={"v/p": past + 1})


def test_slots_exist():
    _, ir = sound_state()
    fails(replace(ir, slots=()), "no such state slot")


@pytest.mark.parametrize(("plane", "ticks", "words"), [(1, 1, "planes"), (0, 0, "remembers"), (0, 4, "remembers")])
def test_reads_are_in_range(plane, ticks, words):
    e, ir = sound_state()
    fails(replace(ir, outputs=lowered(e.state("v/p", ticks, plane=plane)).outputs), words)


def test_only_images_have_places():
    e = Exprs()
    past = e.state("v/p", 1, 0.5, 0.5)
    fails(lowered(past, slots=[number_slot("v/p")], updates={"v/p": past}), "only an image")


def test_every_plane_is_updated_once():
    _, ir = sound_state()
    fails(replace(ir, updates=()), "never updated")
    fails(replace(ir, updates=ir.updates * 2), "updated twice")
    fails(replace(ir, updates=(Update("v/q", 0, ir.updates[0].value),)), "no such state slot")


def test_slots_are_sorted_and_unique():
    _, ir = sound_state()
    fails(replace(ir, slots=ir.slots * 2), "unique and sorted")


def test_a_strand_is_exposed_once():
    e = Exprs()
    ir = lowered(exposed={"a@b": e.coord("x")})
    fails(replace(ir, exposed=ir.exposed * 2), "exposed twice")
