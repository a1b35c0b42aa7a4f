"""Sections as lists of values: what the builder makes, their numbers, rewriting, and what the verifier finds."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from tests.support.exprs import Exprs, image_slot, lowered
from tests.support.kernels import compiled, kernel
from tests.support.verify_bytecode import verify, verify_values
from weft.codegen.kernel import content_hash
from weft.codegen.values import IMPLIED, Line, Node, Rewriter, Scalar, Section, SectionBuilder, Store, joined
from weft.ir.expr import LoopValue, MalformedError, PicturePlane, SlotPlane, StrandRef
from weft.ir.rates import Rate


@pytest.fixture
def e():
    return Exprs()


def element(made):
    return made.section(Rate.ELEMENT)


def ops(nodes):
    return [node.op for node in nodes]


# --- what is made of expressions ----------------------------------------------------------------------------------


def test_operands_come_before_their_users_each_once(e):
    wave = e("sin", e.coord("x") * e.coord("y"))
    section = element(compiled(lowered(wave * wave), optimise=False))
    assert ops(section.nodes) == ["mul", "sin", "mul"]
    product, sine, square = section.nodes
    assert sine.args == (product,)
    assert square.args == (sine, sine)
    assert section.outputs == (square,)


def test_what_is_given_is_there_where_it_is_used(e):
    section = element(compiled(lowered(e.coord("x") + e.uniform("time"), e.coord("x") * 0.0), optimise=False))
    (x, time), (same, zero) = (node.args for node in section.nodes)
    assert x is same
    assert x.attr == Line("coord", "x", Rate.COLUMN, "float")
    assert time.attr == Scalar("uniform", "time", "float")
    assert (zero.op, zero.attr) == ("const", 0.0)


def test_zeros_are_told_apart():
    builder = SectionBuilder()
    assert builder.leaf("const", 0.0) is builder.leaf("const", 0.0)
    assert builder.leaf("const", 0.0) is not builder.leaf("const", -0.0)


def test_a_truth_that_stands_for_a_real_is_converted(e):
    less = e("lt", e.coord("x"), e.coord("y"))
    section = element(compiled(lowered(less * 2, e("not", e.coord("x"))), optimise=False))
    assert ops(section.nodes) == ["lt", "to_float", "mul", "ne", "not"]
    assert [node.attr for node in section.nodes] == [None, IMPLIED, None, IMPLIED, None]


def test_a_section_reads_the_locals_of_rarer_ones(e):
    made = compiled(lowered(e("sin", e.coord("x") * 9) * e.coord("y")))
    (sine,) = made.section(Rate.COLUMN).locals.values()
    assert sine.op == "sin"
    (product,) = element(made).nodes
    assert product.args[0].attr == Line("local", 0, Rate.COLUMN, "float")


def loop_of(e, bounds=(1, 9)):
    """A loop that carries three values: the second needs the first, and nothing needs the third."""
    step = e.carried(0) + e.carried(0, 1)
    _, second, _ = e.loop(0, bounds, [0, 1, 2], [e.carried(0) + e.index(0), step, e.carried(0, 2)])
    return second


@pytest.mark.parametrize("optimise", [True, False])
def test_what_a_loop_carries_for_nothing_is_left_out(e, optimise):
    made = compiled(lowered(loop_of(e, (1, e.coord("x") * e.coord("y")))), optimise)
    (loop,) = (node for node in element(made).nodes if node.op == "loop")
    body = loop.attr
    assert [each.attr for each in body.carried] == [LoopValue(0, 0), LoopValue(0, 1)]
    assert len(body.following) == 2
    assert len(loop.args) == 4
    (result,) = element(made).outputs
    assert (result.op, result.attr, result.args) == ("loop_out", 1, (loop,))


def test_nests_are_marked(e):
    (inner,) = e.loop(1, (1, e.index(0)), [0], [e.carried(1) + e.index(1)])
    (outer,) = e.loop(0, (1, e.coord("x") * e.coord("y")), [0], [e.carried(0) + inner])
    (alone,) = e.loop(0, (1, e.coord("y") * e.coord("x")), [2], [e.carried(0) * 2])
    loops = [node.attr for node in element(compiled(lowered(outer, alone))).walk() if node.op == "loop"]
    assert sorted((body.outermost, body.nested) for body in loops) == [(False, True), (True, False), (True, True)]


# --- by numbers ---------------------------------------------------------------------------------------------------


def deep(e, depth):
    value = e.coord("x") * e.coord("y")
    for n in range(depth):
        value = e("sin", value) + n
    return value


def test_depth_is_no_limit_for_pickles_and_hashes(e):
    made = compiled(lowered(deep(e, 20_000)))
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    assert content_hash(again) == content_hash(made)


def test_a_section_that_was_sent_is_sent_on_as_it_is(e):
    section = element(compiled(lowered(loop_of(e))))
    data = pickle.dumps(section)
    again = pickle.loads(data)
    assert pickle.dumps(again) == data
    assert again == section
    assert (len(again), bool(again), again.digest) == (len(section), bool(section), section.digest)
    assert not pickle.loads(pickle.dumps(Section(Rate.ROW)))


def test_kernels_are_equal_if_their_values_are():
    first, second = (compiled(lowered(loop_of(Exprs()))) for _ in range(2))
    assert first == second
    assert hash(first.sections) == hash(second.sections)
    assert first != compiled(lowered(loop_of(Exprs(), (1, 8))))


# --- rewriting ----------------------------------------------------------------------------------------------------


def test_only_what_is_made_of_something_replaced_is_copied(e):
    x, y = e.coord("x"), e.coord("y")
    section = element(compiled(lowered(e("sin", x * y) + e("cos", y)), optimise=False))
    product, sine, cosine, total = section.nodes
    number = Node("const", (), "float", 3.0)
    changed = Rewriter({product.args[0]: number}).section(section)
    assert changed.nodes[0].args == (number, product.args[1])
    assert changed.nodes[1].args == (changed.nodes[0],)
    assert changed.nodes[2] is cosine
    assert changed.nodes[3] is changed.outputs[0]
    assert sine.args == (product,)
    assert section.outputs == (total,)


def test_loops_are_copied_with_their_bodies(e):
    section = element(compiled(lowered(loop_of(e, (1, e.coord("x")))), optimise=False))
    (x,) = (leaf for leaf in section.leaves() if leaf.op == "line")
    changed = Rewriter({x: Node("const", (), "float", 5.0)}).section(section)
    assert not any(leaf.op == "line" for leaf in changed.leaves())
    verify_values(replace(kernel([("PUSH", 1.0), ("RETURN",)]), sections=(changed,)))


def test_joined_sections_have_values_for_locals(e):
    made = compiled(lowered(e("sin", e.coord("x") * 9) * e("cos", e.coord("y"))))
    whole = joined(Rate.ELEMENT, made.sections)
    assert ops(whole.nodes) == ["mul", "sin", "cos", "mul"]
    assert {leaf.attr.source for leaf in whole.leaves() if leaf.op == "line"} == {"coord"}


# --- the verifier -------------------------------------------------------------------------------------------------


ONE = Node("const", (), "float", 1.0)
X = Node("line", (), "float", Line("coord", "x", Rate.COLUMN, "float"))


def section_of(*nodes, rate=Rate.ELEMENT, outputs=None, **fields):
    return Section(rate, nodes, nodes[-1:] if outputs is None else outputs, **fields)


def fails(words, section, **fields):
    made = replace(kernel([("PUSH", 1.0), ("RETURN",)]), sections=(section,), **fields)
    with pytest.raises(MalformedError, match=words):
        verify(made)


@pytest.mark.parametrize(
    ("words", "node"),
    [
        ("before it is computed", Node("neg", (Node("neg", (X,), "float"),), "float")),
        ("is given", Node("neg", (Node("u32", (), "u32", 1),), "float")),
        ("is given", Node("add", (X,), "float")),
        ("another type", Node("lt", (X, X), "float")),
        ("no attribute", Node("neg", (X,), "float", 3)),
        ("unknown operation", Node("fract", (X,), "float")),
        ("no uniform", Node("neg", (Node("scalar", (), "float", Scalar("uniform", "t", "float")),), "float")),
        ("is not there", Node("neg", (Node("line", (), "float", X.attr._replace(key="z")),), "float")),
        ("is no scalar", Node("neg", (Node("scalar", (), "float", Scalar("coord", "x", "float")),), "float")),
        ("changes with", Node("neg", (Node("line", (), "float", X.attr._replace(rate=Rate.ROW)),), "float")),
        ("no local", Node("neg", (Node("line", (), "float", Line("local", 7, Rate.ROW, "float")),), "float")),
        ("no strand", Node("strand", (X,), "float", StrandRef("a", "b"))),
        ("no plane of its pictures", Node("picture", (X, X), "float", PicturePlane("q", 1))),
        ("its attribute", Node("state", (ONE,), "float", "s")),
        ("no such plane", Node("state", (ONE,), "float", SlotPlane("s", 0))),
        ("before it is computed", Node("neg", (Node("loop_value", (), "float", LoopValue(0, 0)),), "float")),
    ],
)  # fmt: skip
def test_values_that_are_wrong(words, node):
    fails(words, section_of(node), pictures=("p",))


def test_the_outputs_are_counted_and_real():
    fails("2 values as 1 outputs", section_of(outputs=(ONE, ONE)))
    fails("bits cannot leave", section_of(outputs=(Node("u32", (), "u32", 1),)))
    fails("0 values as 1 outputs", section_of(outputs=()))


def test_slots_are_stored_once_and_where_they_belong():
    store = Store(SlotPlane("i", 0), ONE)
    slots = (image_slot("i"),)
    fails("instead of", section_of(outputs=(ONE,)), slots=slots)
    fails("instead of", section_of(outputs=(ONE,), stores=(store, store)), slots=slots)
    made = replace(kernel([("PUSH", 1.0), ("RETURN",)]), slots=slots)
    frame = Section(Rate.FRAME, (), (), (store,))
    with pytest.raises(MalformedError, match="wrong rate"):
        verify(replace(made, sections=(frame, section_of(outputs=(ONE,)))))


def test_what_a_loop_computes_is_not_there_after_it(e):
    section = element(compiled(lowered(loop_of(e)), optimise=False))
    (loop,) = (node for node in section.nodes if node.op == "loop")
    inside = loop.attr.nodes[0]
    fails("before it is computed", section_of(*section.nodes, Node("neg", (inside,), "float")))
