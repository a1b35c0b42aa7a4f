"""Sounds with state on the vector machine: rows, loops of feedback and the functions written for them, and memories."""

from __future__ import annotations

import ast
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from tests.support.exprs import Exprs, lowered, number_slot
from tests.support.kernels import compiled, kernel, local
from tests.support.series import LOOPS, PROGRAMS, assert_same, kernel_of, launch, looping, played
from tests.support.together import all_but
from tests.support.tolerances import DOUBLE, SERIES
from weft.backends.launch import Launch, StateMemory
from weft.backends.native.executor import NativeExecutor
from weft.backends.vector.feedback import INLINE, OneByOneError, RecurrenceWriter, SerialRecurrence
from weft.backends.vector.machine import VectorExecutor, VectorSeries, series_of
from weft.backends.vm import ReferenceExecutable, ReferenceExecutor
from weft.codegen.bytecode import StrandCall
from weft.codegen.kernel import Kernel
from weft.codegen.values import Line, Node
from weft.contexts import ContextTable
from weft.errors import Source
from weft.ir.expr import SlotPlane
from weft.ir.rates import Rate
from weft.ops import OPS
from weft.runtime.compiling.stages import Request, build

# Around a block, and several.
SIZES = (100, 1, 2, 511, 512, 513, 1500, 31)

FILTER = "y<v> = prev(y@v) * 0.9 + sin(me@time * 300) * 0.1\nplay(y@v)"


def turns(made: Kernel) -> list[SerialRecurrence]:
    """The loops of feedback of a kernel."""
    series = series_of(made)
    assert series is not None
    return [part for part in series.parts if isinstance(part, SerialRecurrence)]


def as_series(made: Kernel) -> VectorSeries:
    executable = VectorExecutor().load(made)
    assert isinstance(executable, VectorSeries)
    return executable


# --- what is heard ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimise", [True, False], ids=["", "as it stands"])
@pytest.mark.parametrize("text", all_but(9, PROGRAMS.values()), ids=PROGRAMS)
def test_sounds_are_those_of_the_reference(text, optimise):
    (unit,) = build(Request(Source("test.weft", text), ContextTable()), optimise=optimise).units
    assert not unit.kernel.slots or series_of(unit.kernel)
    assert_same(played(VectorExecutor(), unit.kernel), played(ReferenceExecutor(), unit.kernel))


@pytest.mark.parametrize("loop", all_but(5, [(loop,) for loop in LOOPS.values()]), ids=LOOPS)
def test_loops(loop):
    (unit,) = build(Request(Source("test.weft", looping(*loop)), ContextTable()), optimise=False).units
    sizes = (70, 3, 600)
    assert_same(played(VectorExecutor(), unit.kernel, sizes), played(ReferenceExecutor(), unit.kernel, sizes))


DELAYS = {
    "ahead of a block": "e<v> = sin(me@time * 999) + 0.5 * delay(e@v, {}, 2000)\nplay(e@v)",
    "twice": "e<v> = sin(me@time * 999) + 0.5 * delay(e@v, {0}, 2000) - 0.2 * delay(e@v, {0} + 7, 2000)\nplay(e@v)",
    "beside a loop": (
        "e<v> = sin(me@time * 999) + 0.5 * prev(e@v)\n"
        "play(e@v, delay(e@v, {0}, 700), delay(e@v, {0} * me@time * 300, 700), prev(prev(e@v)))"
    ),
    "without a loop": "play(delay(sin(me@time * 999), {0}, 2000), delay(me@time, {0} * me@time * 300 - 2, 700))",
}


@pytest.mark.parametrize("ticks", all_but(3, [1, 512, 1100, 2, 400, 511, 513]))
@pytest.mark.parametrize("text", DELAYS.values(), ids=DELAYS)
def test_delays(text, ticks):
    made = kernel_of(text.format(ticks))
    assert_same(played(VectorExecutor(), made, SIZES), played(ReferenceExecutor(), made, SIZES))


@pytest.mark.parametrize("depth", [1, 2, 5, 600])
def test_a_slot_that_a_loop_writes_and_others_read(depth):
    """Two numbers in one slot: one of them feeds back, the other does not; both are read at any tick."""
    e = Exprs()
    time = e.coord("abstime")
    sine, turning = e("sin", time * 999), e("mod", time * 9e5, 800)
    fed = sine + e.state("v/n", 1) * 0.5 + e("sin", e.state("v/n", e.state("v/n", depth) * depth)) * 0.1
    endless = time * math.inf
    read = [e.state("v/n", k, plane=p) for k in (1, depth, turning, endless, endless - endless) for p in (0, 1)]
    updates = {"v/n[0]": fed, "v/n[1]": sine * 3}
    ir = lowered(*read, fed, context="audio", slots=[number_slot("v/n", depth, planes=2)], updates=updates)
    for optimise in (True, False):
        made = compiled(ir, optimise)
        assert_same(played(VectorExecutor(), made, SIZES), played(ReferenceExecutor(), made, SIZES))
        (turn,) = turns(made)
        assert "v/n" in turn.text


ENDLESS = {
    "overflow": "y<v> = prev(y@v) * 1e200 + 1e200\nplay(y@v, -y@v, y@v - y@v)",
    "division": "n<v> = 1 + prev(n@v)\ny<v> = n@v / (prev(n@v) - 3) + prev(y@v) * 0.5\nplay(y@v, 1 / (n@v - 9))",
    "remainders": "n<v> = prev(n@v) * -3 + 1\nplay(n@v % 7, fract(n@v), floor(n@v), round(n@v), n@v % (n@v - n@v))",
    "roots": "y<v> = sqrt(prev(y@v) - 0.5) + log(prev(y@v) + 1) + 2\nplay(y@v, (prev(y@v) - 9) ^ 0.5)",
    "extremes": (
        "y<v> = max(prev(y@v) * 2, 0 / (prev(y@v) - prev(y@v))) + 1\nz<v> = min(prev(z@v) - 1, 1 / prev(z@v))\n"
        "play(y@v, z@v, min(y@v, z@v / 0))"
    ),
    "powers": "y<v> = exp(prev(y@v)) ^ 2 - 1.5\nz<v> = prev(z@v) ^ prev(y@v) - 0.5\nplay(y@v, z@v)",
    "truths": (
        "y<v> = if not (prev(y@v) > 0.5 or prev(y@v) == 0) then 0.9 else (prev(y@v) < 2 and me@time > 0) * 0.3\n"
        "play(y@v)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_what_is_endless_or_no_number_feeds_back(text):
    made = kernel_of(text)
    assert turns(made)
    sizes = (60, 600)
    assert_same(played(VectorExecutor(), made, sizes), played(ReferenceExecutor(), made, sizes))


def test_how_a_sound_is_cut_into_launches_does_not_matter():
    made = kernel_of(PROGRAMS["echo that moves"])
    whole = played(VectorExecutor(), made, (5000,))
    assert_same(played(VectorExecutor(), made, (1,) * 50 + (512,) * 9 + (342,)), whole)


def test_samples_in_rows_are_one_after_another():
    made = kernel_of("n<v> = prev(n@v) + 1\nplay(n@v)")
    found = as_series(made).planes(StateMemory(made.slots), Launch((3, 200), {}))
    assert np.array_equal(found, np.arange(1, 601).reshape(1, 3, 200))


def test_pixels_of_a_sound():
    made = kernel_of(FILTER)
    pictures = []
    for executor in (VectorExecutor(), ReferenceExecutor()):
        out = np.zeros((1, 300, 4), np.uint8)
        executor.load(made).rgba8(StateMemory(made.slots), launch(made, 0, 300), out)
        pictures.append(out)
    assert np.array_equal(*pictures)


# --- what is computed sample by sample --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("play(delay(me@time, 2, 3), prev(me@time) + hold(me@time, 1))", [{"hold"}]),
        ("e<v> = me@time + 0.5 * delay(e@v, 600, 1000)\nplay(e@v)", []),
        ("e<v> = me@time + 0.5 * delay(e@v, 500, 1000)\nplay(e@v)", [{"delay"}]),
        ("play(sin(phasor(440) * 7), cos(phasor(3)))", [{"phasor"}]),
        ("y<v> = prev(y@v) * 0.5 + sin(exp(phasor(440)))\nplay(y@v)", [{"phasor"}, {"prev"}]),
        ("a<v> = prev(b@v) * 0.7 + 0.1\nb<v> = cos(prev(a@v) + me@time)\nplay(a@v, b@v)", [{"prev"}]),
    ],
)
def test_only_feedback_is(text, loops):
    made = kernel_of(text)
    found = [{made.slot(place.slot).kind for place in turn.registers} | {made.slot(key).kind for key in turn.rings}
             for turn in turns(made)]  # fmt: skip
    assert found == loops
    assert not any("sin(" in turn.text or "exp(" in turn.text for turn in turns(made))


@pytest.mark.parametrize("name", ["over state", "of state, bounds too"])
def test_what_does_not_suit_is_computed_as_by_the_reference(name):
    (unit,) = build(Request(Source("test.weft", looping(*LOOPS[name])), ContextTable()), optimise=False).units
    assert isinstance(VectorExecutor().load(unit.kernel), ReferenceExecutable)


def test_strands_of_others_are_read_in_rows():
    place, call = SlotPlane("v/n", 0), StrandCall("a", "b", 1)
    made = kernel(
        [
            ("PUSH", 1.0), ("LOAD_STATE", place), ("PUSH", 0.5), ("MUL",),
            ("LOAD_COORD", "abstime"), ("LOAD_STRAND", call), ("ADD",), ("STORE_LOCAL", 0),
            ("LOAD_LOCAL", 0), ("STORE_STATE", place), ("LOAD_LOCAL", 0), ("RETURN",),
        ],
        tick="element", context="audio", coords=(("abstime", Rate.ELEMENT),), slots=(number_slot("v/n"),),
        strands=(call.ref,), locals=(local(),),
    )  # fmt: skip
    given = Launch((1, 600), {"abstime": np.arange(600.0)}, strands={call.ref: np.sin})
    found = as_series(made).planes(StateMemory(made.slots), given)
    assert DOUBLE.agreement(found, ReferenceExecutable(made).planes(StateMemory(made.slots), given)).all()


# --- the functions ----------------------------------------------------------------------------------------------------


NUMBERS = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1 - 2**-53, -1e-300, 5e-324, 2.5, -7.0, 1e17, -1e17 - 16, 4503599627370497.5,
    1.7e308, -1.7e308, math.inf, -math.inf, math.nan,
)  # fmt: skip
VALUES = {"float": NUMBERS, "bool": (True, False), "u32": (0, 1, 12, 31, 0x9E37_79B9, 0xFFFF_FFFF)}


@pytest.mark.parametrize("constants", [False, True], ids=["rows", "constants"])
@pytest.mark.parametrize("name", INLINE)
def test_what_is_written_out_means_what_the_row_means(name, constants):
    row = OPS[name]
    kinds = [row.type_of_operand(at) for at in range(len(row.params))]
    operands = list(itertools.product(*(VALUES[kind] for kind in kinds)))
    if name == "bits_shr":
        operands = [(a, n) for a, n in operands if n < 32]
    if constants:
        operands = [args for args in operands if "bool" not in kinds]
        found = [computed(row, [constant(arg, kind) for arg, kind in zip(args, kinds, strict=True)])[0]
                 for args in operands]  # fmt: skip
    else:
        given = [Node("line", (), kind, Line("coord", f"a{at}", Rate.ELEMENT, kind))
                 for at, kind in enumerate(kinds)]  # fmt: skip
        found = computed(row, given, list(zip(*operands, strict=True)))
    expected = [row.fold(*args) for args in operands]
    assert [*map(repr, map(float, found))] == [*map(repr, map(float, expected))]


def constant(value, kind):
    return Node("u32" if kind == "u32" else "const", (), kind, value)


def computed(row, operands, rows=()):
    node = Node(row.name, tuple(operands), row.gives)
    varying = {node, *(each for each in operands if each.op == "line")}
    turn = RecurrenceWriter(kernel([("RETURN",)]), [node], {}, [node], varying).recurrence()
    (found,), _ = turn.function(len(rows[0]) if rows else 1, [], rows, [], [], [])
    return found


def test_loops_are_not_written():
    with pytest.raises(OneByOneError):
        RecurrenceWriter(kernel([("RETURN",)]), [node := Node("loop", (), "float")], {}, [node]).recurrence()


def test_a_function_finds_nothing_but_what_it_needs():
    made = kernel_of("y<v> = exp(prev(y@v) * 0.5 - 1)\nplay(y@v)")
    (turn,) = turns(made)
    names = turn.function.__globals__
    assert names["__builtins__"] == {}
    assert "exp" in names
    assert "sin" not in names


@pytest.mark.parametrize("name", ["two that need each other", "echo that moves", "choice", "picture", "hash"])
def test_a_function_can_be_read(name):
    made = kernel_of(PROGRAMS[name])
    for turn in turns(made):
        assert max(map(len, turn.text.splitlines())) <= 120
        ast.parse(turn.text)
        for key in (*(place.slot for place in turn.registers), *turn.rings):
            assert f"# {key!r}" in turn.text


def test_names_of_files_and_slots_are_no_code():
    e, path, slot = Exprs(), 'a"\n  raise\r\n\0{0}.png', number_slot("v/\n  raise/n", 3)
    value = e.picture(path, e.state(slot.key, 1), 0.2) + e.state(slot.key, 2)
    made = compiled(lowered(value, context="audio", slots=[slot], updates={slot.key: value}))
    assert_same(played(VectorExecutor(), made, (60,)), played(ReferenceExecutor(), made, (60,)))


def test_functions_with_much_to_do_can_be_read_as_well():
    lines = [f"y{n}<v> = prev(y{n}@v) * 0.5 + {' + '.join(f'y{k}@v' for k in range(n))} + sin(me@time * {n})"
             for n in range(1, 40)]  # fmt: skip
    text = "\n".join(["y0<v> = prev(y39@v) * 0.001", *lines, "play(y39@v)"])
    made = kernel_of(text)
    (turn,) = turns(made)
    assert max(map(len, turn.text.splitlines())) <= 200
    assert_same(played(VectorExecutor(), made, (40,)), played(ReferenceExecutor(), made, (40,)))


# --- memories ---------------------------------------------------------------------------------------------------------


def test_memories_take_turns():
    made = kernel_of(PROGRAMS["echo"])
    expected, _ = played(ReferenceExecutor(), made, (40,) * 8)
    executable, memories = as_series(made), [StateMemory(made.slots) for _ in range(3)]
    for first in range(0, 320, 40):
        for memory in memories:
            got = executable.planes(memory, launch(made, first, 40))[:, 0]
            assert SERIES.agreement(got, expected[:, first : first + 40]).all()


@pytest.mark.parametrize("name", ["one tick", "echo", "short echo", "held"])
@pytest.mark.parametrize("other", [VectorExecutor, ReferenceExecutor, NativeExecutor])
def test_what_is_remembered_is_taken_over_and_back(name, other):
    made = kernel_of(PROGRAMS[name])
    expected, _ = played(ReferenceExecutor(), made, (50,) * 6)
    executables = [VectorExecutor().load(made), other().load(made)]
    memories = [StateMemory(made.slots) for _ in range(2)]
    found, before = [], 0
    for step, which in enumerate((0, 1, 0, 1, 1, 0)):
        if which != before:
            memories[which].adopt(memories[before])
        found.append(executables[which].planes(memories[which], launch(made, step * 50, 50))[:, 0])
        before = which
    assert SERIES.agreement(np.concatenate(found, axis=1), expected).all()


def test_a_longer_memory_goes_on_with_a_shorter_one():
    short, long = (kernel_of(f"e<v> = me@time + 0.5 * delay(e@v, 90, {depth})\nplay(e@v)") for depth in (90, 700))
    memories = []
    for executor in (VectorExecutor(), ReferenceExecutor()):
        _, memory = played(executor, short, (300,))
        after = StateMemory(long.slots)
        assert after.adopt(memory)
        executor.load(long).planes(after, launch(long, 300, 600))
        memories.append(after)
    (key,) = memories[0].slots
    assert SERIES.agreement(*(memory.ring(key) for memory in memories)).all()


@pytest.mark.parametrize("name", ["one tick", "echo", "held", "integral"])
def test_between_ticks_state_is_read_as_by_the_reference(name):
    made = kernel_of(PROGRAMS[name])
    for sizes in ((1,), (2,), (1, 1, 1), (700, 1)):
        (_, memory), (_, expected) = (played(e, made, sizes) for e in (VectorExecutor(), ReferenceExecutor()))
        for key, slot in memory.slots.items():
            for ago in range(1, slot.depth + 2):
                cells = (m.ring(key)[m.cell(key, ago)] for m in (memory, expected))
                assert SERIES.agreement(*cells).all(), (key, ago, sizes)


def test_a_result_is_the_callers():
    made = kernel_of(FILTER)
    executable, memory = as_series(made), StateMemory(made.slots)
    first = executable.planes(memory, launch(made, 0, 64))
    before = first.copy()
    executable.planes(memory, launch(made, 64, 64))
    np.testing.assert_array_equal(first, before)


# --- the boundary -----------------------------------------------------------------------------------------------------


def test_a_loop_without_an_end_is_stopped_and_told():
    e = Exprs()
    (steps,) = e.loop(0, (0, e.uniform("dt") * 1e9), [e.state("v/n", 1)], [e.carried(0) + e.coord("abstime")])
    made = compiled(lowered(steps, context="audio", slots=[number_slot("v/n")], updates={"v/n": e.coord("abstime")}))
    told = []
    given = replace(launch(made, 0, 40), loop_stopped=lambda: told.append(1))
    sound = as_series(made).planes(StateMemory(made.slots), given)
    assert SERIES.agreement(sound, ReferenceExecutable(made).planes(StateMemory(made.slots), given)).all()
    assert told == [1, 1]


def test_a_launch_that_does_not_fit_is_refused_in_words():
    made = kernel_of(PROGRAMS["integral"])
    executable, memory = as_series(made), StateMemory(made.slots)
    good = launch(made, 0, 9)
    short = Launch((1, 9), {**good.coords, "abstime": np.zeros(8)}, good.uniforms)
    for bad, words in (
        (Launch((1, 9), {}, good.uniforms), "lacks abstime"), (Launch((1, 9), good.coords), "lacks dt"),
        (short, "the shape"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            executable.planes(memory, bad)
    with pytest.raises(ValueError, match="lacks audio"):
        executable.planes(StateMemory(()), good)
    assert memory.ticks == 0


def test_a_number_stands_for_a_coordinate_that_does_not_change():
    made = kernel_of(FILTER)
    sounds = []
    for time in (0.3, np.full(600, 0.3)):
        given = Launch((1, 600), {"abstime": time})
        sounds.append(as_series(made).planes(StateMemory(made.slots), given))
    assert np.array_equal(*sounds)
