"""What code expressions become: the plain listing of -O0, the sections, sharing, and what moves out of loops."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.exprs import Exprs, image_slot, lowered, number_slot
from tests.support.kernels import compiled
from tests.support.verify_bytecode import verify
from weft.codegen.bytecode import Instruction, assemble, instruction_text
from weft.codegen.compilation import compile_kernel, compile_points
from weft.codegen.values import Note
from weft.contexts import AUDIO, COMPUTE, VISUAL
from weft.errors import Source, Span
from weft.ir.expr import MalformedError, StrandRef
from weft.ir.rates import Rate


@pytest.fixture
def e():
    return Exprs()


def listing(kernel, rate=Rate.ELEMENT):
    return [instruction_text(instruction) for instruction in assemble(kernel).code(rate)]


def places(kernel, text):
    """In which sections an instruction stands, and how often."""
    return {s.rate.title: n for s in kernel.sections if (n := listing(kernel, s.rate).count(text))}


def test_plain_code_is_as_written(e):
    kernel = compiled(lowered((e.number(5) + 3) * 2), optimise=False)
    assert listing(kernel) == ["PUSH 5", "PUSH 3", "ADD", "PUSH 2", "MUL", "RETURN"]
    assert [section.rate for section in kernel.sections] == [Rate.ELEMENT]


def test_plain_code_repeats_what_is_cheap_to_load(e):
    x = e.coord("x")
    assert listing(compiled(lowered(x * x), optimise=False)) == ["LOAD_COORD x", "LOAD_COORD x", "MUL", "RETURN"]


def test_plain_code_shares_by_locals(e):
    wave = e("sin", e.coord("x"))
    assert listing(compiled(lowered(wave * wave), optimise=False)) == [
        "LOAD_COORD x", "CALL sin", "STORE_LOCAL 0", "LOAD_LOCAL 0", "LOAD_LOCAL 0", "MUL", "RETURN",
    ]  # fmt: skip


def test_plain_code_stays_at_the_element(e):
    kernel = compiled(lowered(e("sin", e.uniform("time")) + e.coord("x")), optimise=False)
    assert places(kernel, "CALL sin") == {"element": 1}


@pytest.mark.parametrize(
    ("name", "section"), [("time", "frame"), ("x", "column"), ("y", "row"), ("both", "element"), ("none", "constant")]
)
def test_each_value_is_computed_as_rarely_as_it_changes(e, name, section):
    x, y, time = e.coord("x"), e.coord("y"), e.uniform("time")
    inside = {"time": time, "x": x * 9, "y": y + time, "both": x * y, "none": e.number(2)}[name]
    kernel = compiled(lowered(e("sin", inside) * (x + y)))
    assert places(kernel, "CALL sin") == {section: 1}
    assert places(kernel, "STORE_LOCAL 0") == ({section: 1} if section != "element" else {})


def test_outputs_need_no_locals_of_their_own(e):
    kernel = compiled(lowered(e.coord("x"), e.uniform("time"), e.number(1)))
    assert listing(kernel) == ["LOAD_COORD x", "LOAD_UNIFORM time", "PUSH 1", "RETURN"]
    assert kernel.locals == ()
    assert kernel.coords == (("x", Rate.COLUMN),)
    assert kernel.uniforms == ("time",)


def test_a_strand_that_is_used_twice_is_read_once(e):
    there = e.strand("osc@v", e.coord("x") * e.coord("y"))
    kernel = compiled(lowered(there, there * 2))
    assert places(kernel, "LOAD_STRAND osc@v 1") == {"element": 1}
    assert kernel.strands == (StrandRef("osc", "v"),)


def test_common_parts_are_computed_once_whatever_uses_them(e):
    x, y = e.coord("x"), e.coord("y")
    wave = e("sin", x * y)
    kernel = compiled(lowered(wave, wave + 1, e("cos", wave)))
    assert Counter(listing(kernel))["CALL sin"] == 1


def test_bits_have_locals_of_their_type(e):
    column = e("bits_of", e("floor", e.coord("x") * 8))
    kernel = compiled(lowered(e("bits_top", e("bits_xor", column, e("bits_of", e.coord("y"))))))
    assert sorted((local.rate.title, local.type) for local in kernel.locals) == [("column", "u32"), ("row", "u32")]


def test_what_a_loop_does_not_change_comes_before_it(e):
    y, time = e.coord("y"), e.uniform("time")
    fixed = e("sin", y * e.coord("x"))
    (total,) = e.loop(0, (1, time), [0], [e.carried(0) + fixed * e("cos", time) * e.index(0)])
    code = listing(compiled(lowered(total)))
    assert code.index("CALL sin") < code.index("LOOP loop0 1")
    assert places(compiled(lowered(total)), "CALL cos") == {"frame": 1}


def test_plain_code_leaves_it_in_the_loop(e):
    (total,) = e.loop(0, (1, 3), [0], [e.carried(0) + e("sin", e.coord("x")) * e.index(0)])
    assert listing(compiled(lowered(total), optimise=False)) == [
        "PUSH 1", "PUSH 3", "PUSH 0", "LOOP loop0 1", "LOAD_CARRIED loop0.0", "LOAD_COORD x", "CALL sin",
        "LOAD_INDEX loop0", "MUL", "ADD", "NEXT loop0 1", "RETURN",
    ]  # fmt: skip


def test_plain_code_shares_across_a_loop_before_it(e):
    wave = e("sin", e.coord("x"))
    (total,) = e.loop(0, (1, 3), [0], [e.carried(0) + wave])
    code = listing(compiled(lowered(wave, total), optimise=False))
    assert code.count("CALL sin") == 1
    assert code.index("CALL sin") < code.index("LOOP loop0 1")


def nested(e):
    x, y = e.coord("x"), e.coord("y")
    i, j = e.index(0), e.index(1)
    of_i = e("sin", i * x * y)
    (inner,) = e.loop(1, (1, i), [0], [e.carried(1) + of_i * e("cos", j * x * y)])
    (outer,) = e.loop(0, (1, 5), [0], [e.carried(0) + inner + of_i])
    return outer


@pytest.mark.parametrize("optimise", [True, False])
def test_each_loop_has_what_changes_in_it(e, optimise):
    code = listing(compiled(lowered(nested(e)), optimise))
    outer, inner = code.index("LOOP loop0 1"), code.index("LOOP loop1 1")
    assert code.count("CALL sin") == code.count("CALL cos") == 1
    assert outer < code.index("CALL sin") < inner < code.index("CALL cos") < code.index("NEXT loop1 1")


@pytest.mark.parametrize("optimise", [True, False])
def test_loops_of_one_level_each_compute_what_they_share(e, optimise):
    wave = e("sin", e.index(0))
    (first,) = e.loop(0, (1, e.coord("x")), [0], [e.carried(0) + wave * wave])
    (second,) = e.loop(0, (1, e.coord("x") * 2), [1], [e.carried(0) * wave - wave])
    kernel = compiled(lowered(first + second), optimise)
    assert sum(places(kernel, "CALL sin").values()) == 2


@pytest.mark.parametrize("optimise", [True, False])
def test_a_loop_that_reads_nothing_of_the_one_around_it_is_not_in_it(e, optimise):
    (apart,) = e.loop(0, (1, e.coord("x")), [0], [e.carried(0) + e.index(0)])
    (total,) = e.loop(0, (1, 3), [0], [e.carried(0) + apart])
    code = list(map(instruction_text, assemble(compiled(lowered(total), optimise)).walk()))
    assert [text.split()[0] for text in code if "loop0 1" in text] == ["LOOP", "NEXT", "LOOP", "NEXT"]


def test_a_loop_runs_where_its_parts_change(e):
    (total,) = e.loop(0, (1, 9), [0], [e.carried(0) + e.index(0) * e.coord("x")])
    assert places(compiled(lowered(total)), "NEXT loop0 1") == {"column": 1}


def test_values_of_a_loop_that_nobody_uses_are_dropped(e):
    step = e.carried(0) + e.carried(0, 1)
    _, second, _ = e.loop(0, (1, 9), [0, 1, 2], [step, step, e.carried(0, 2)])
    code = listing(compiled(lowered(second * second), optimise=False))
    # The first is needed in the steps, the third nowhere.
    assert code[code.index("NEXT loop0 2") + 1 :][:2] == ["STORE_LOCAL 0", "DROP"]


def test_images_are_stored_by_element_and_numbers_by_frame(e):
    time = e.uniform("time")
    kernel = compiled(
        lowered(
            e.coord("x"),
            slots=[image_slot("v/i"), number_slot("v/n")],
            updates={"v/i": e.coord("x") * e.coord("y"), "v/n": e.state("v/n", 1) + time},
        )
    )
    assert places(kernel, "STORE_STATE v/i[0]") == {"element": 1}
    assert places(kernel, "STORE_STATE v/n[0]") == {"frame": 1}
    assert kernel.tick == "launch"


@pytest.mark.parametrize("optimise", [True, False])
def test_a_number_that_would_change_within_a_frame_is_refused(e, optimise):
    ir = lowered(slots=[number_slot("v/n")], updates={"v/n": e.coord("x")})
    with pytest.raises(MalformedError, match="v/n is one number, but its value is a column's"):
        compile_kernel(ir, VISUAL, optimise)


def test_sound_ticks_by_element(e):
    kernel = compiled(
        lowered(e.state("a/n", 1), context="audio", slots=[number_slot("a/n")], updates={"a/n": e.number(1)})
    )
    assert kernel.tick == "element"
    assert places(kernel, "STORE_STATE a/n[0]") == {"element": 1}


def test_a_context_without_a_sweep_computes_by_frame(e):
    kernel = compile_kernel(lowered(e("sin", e.coord("abstime") + e.coord("x")), context="compute"), COMPUTE)
    assert places(kernel, "CALL sin") == {"frame": 1}
    assert kernel.coords == (("abstime", Rate.FRAME), ("x", Rate.CONSTANT))


def test_points_read_one_strand(e):
    x, time = e.coord("x"), e.uniform("time")
    ir = lowered(
        e("cos", x),
        slots=[image_slot("v/i"), image_slot("v/j")],
        updates={"v/i": x, "v/j": x},
        exposed={"a@b": e("sin", time) * e.state("v/i", 1), "a@c": x},
    )
    kernel = compile_points(ir, StrandRef("a", "b"), VISUAL)
    verify(kernel)
    assert kernel.outputs == ("a@b",)
    assert (kernel.sweep, [slot.key for slot in kernel.slots]) == ("points", ["v/i"])
    assert places(kernel, "CALL sin") == {"frame": 1}
    assert listing(kernel) == [
        "LOAD_LOCAL 0", "PUSH 1", "LOAD_COORD x", "LOAD_COORD y", "SAMPLE_STATE v/i[0]", "MUL", "RETURN",
    ]  # fmt: skip
    with pytest.raises(KeyError):
        compile_points(ir, StrandRef("a", "z"), VISUAL)


def test_points_of_sound_have_coordinates_of_their_own(e):
    kernel = compile_points(lowered(context="audio", exposed={"a@b": e.coord("abstime")}), StrandRef("a", "b"), AUDIO)
    assert kernel.coords == (("abstime", Rate.ELEMENT),)


def wave_of(e, n, text):
    """The sine of n · x, from this text, times y, so that it becomes a local of the column section."""
    source = Source("p.weft", text)
    span = Span(source, text.index("sin"), len(text))
    wave = e.pool.make("sin", (e.expr(e.coord("x") * n),), None, span)
    return wave, e("mul", wave, e.coord("y"))


def test_locals_carry_the_text(e):
    products = [wave_of(e, n, text)[1] for n, text in ((9, "sin( me@x\n * 9 )"), (3, "sin(me@x * 3.14159265358979)"))]
    kernel = compile_kernel(lowered(*products), VISUAL, pool=e.pool)
    assert [local.name for local in kernel.locals] == ["sin( me@x * 9 )", "sin(me@x * 3.1415926535…"]
    assert not kernel.section(Rate.COLUMN).notes


def test_what_has_a_name_carries_it(e):
    (first, a), (second, b) = (wave_of(e, n, text) for n, text in ((9, "\n  a = sin(me@x * 9)"), (3, "sin(me@x)")))
    e.pool.annotate(first, "blue", local=True)
    e.pool.annotate(first, "light", local=True)
    e.pool.annotate(second, "tide", local=False)
    e.pool.annotate(second, "moon", local=False)
    e.pool.annotate(second, "water", local=True)
    kernel = compile_kernel(lowered(a, b), VISUAL, pool=e.pool)
    assert [local.name for local in kernel.locals] == ["light", "tide"]
    column = kernel.section(Rate.COLUMN)
    assert column.notes[column.locals[0]] == Note("light", "p.weft", 2, "a = sin(me@x * 9)")
    assert list(column.notes) == [column.locals[n] for n in (0, 1)]


def test_depth_is_no_limit(e):
    left = right = e.coord("x")
    for n in range(10_000):
        left = e("sin", left) + n
        right = n + e("sin", right)
    kernel = compiled(lowered(left, right))
    assert Counter(node.op for _, node in kernel.walk())["sin"] == 19_999  # both begin with the sine of x


def test_the_same_ir_gives_the_same_code(e):
    first, second = (compiled(lowered(nested(Exprs()))) for _ in range(2))
    assert first == second
    assert Instruction("RETURN") in assemble(first).code(Rate.ELEMENT)
