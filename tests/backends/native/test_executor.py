"""Machine code on this processor: vectors and their ends, threads, tiers, and the boundary to it."""

from __future__ import annotations

import ctypes
import gc
import json
import pickle
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from llvmlite.binding import ffi

from tests.support.exprs import Exprs, image_slot, lowered
from tests.support.kernels import agree, compiled, launch_of, run
from tests.support.parity.cases import case_of
from tests.support.parity.rule import compare
from tests.support.sound import eventually
from tests.support.together import examples
from tests.support.tolerances import LEVELS
from weft.backends.executors import Pictures
from weft.backends.launch import Launch, StateMemory, picture_coords
from weft.backends.native import executor as native_executor, llvm
from weft.backends.native.executor import NativeExecutor
from weft.backends.native.llvm import ArgumentBlock, NativeCode
from weft.backends.vm import ReferenceExecutor
from weft.codegen.kernel import Kernel
from weft.codegen.native.target import ISAS, TIERS, Layout, Word
from weft.codegen.native.tiles import TileProgram
from weft.contexts import ContextTable
from weft.errors import Source
from weft.ir.expr import Lowered
from weft.runtime.compiling.stages import Request, build

HERE = [isa for isa in ISAS.values() if llvm.runs_here(isa)]


def kernel_of(text: str) -> Kernel:
    (unit,) = build(Request(Source("test.weft", text), ContextTable())).units
    return unit.kernel


def waves() -> Lowered:
    """Channels of every rate, and memory."""
    e = Exprs()
    x, y, t = e.coord("x"), e.coord("y"), e.coord("abstime")
    both = e("sin", x * 9 + y * 7 + t)
    slots, updates = [image_slot("v/i")], {"v/i": both}
    sampled = both * 0.5 + e.state("v/i", 1, y, x) * 0.5
    return lowered(sampled, e("sin", x * 5) + y, e("cos", y), slots=slots, updates=updates)


def pixels(executor, made, shape, ticks=2, threads=1, codes=None):
    executable = executor.load(made, codes or {})
    memory = StateMemory(made.slots, shape, executor.widest)
    out = np.zeros((*shape, 4), np.uint8)
    for tick in range(ticks):
        executable.rgba8(memory, launch_of(shape, tick / 3, threads=threads), out)
    return out


def differ(a, b):
    """By how many levels two pictures differ at most."""
    return int(np.abs(a.astype(int) - b.astype(int)).max())


@pytest.mark.parametrize("lanes", [4, 16])
def test_vectors_of_any_end(lanes):
    made, executor = compiled(waves()), NativeExecutor(lanes=lanes)
    codes = {True: executor.translate(made, packed=True)}
    for width in (*range(1, 20), 31, 32, 33, 63, 64, 65, 100):
        for height in (1, 3):
            shape = height, width
            expected = pixels(ReferenceExecutor(), made, shape)
            assert differ(pixels(executor, made, shape, codes=codes), expected) <= LEVELS, shape


@pytest.mark.parametrize("threads", [2, 3, 50])
def test_threads_make_the_same_picture(threads):
    made, shape = compiled(waves()), (600, 800)
    alone, shared = (pixels(NativeExecutor(), made, shape, threads=count) for count in (1, threads))
    np.testing.assert_array_equal(shared, alone)


@pytest.mark.parametrize("isa", HERE, ids=[isa.name for isa in HERE])
@pytest.mark.parametrize("tier", TIERS)
def test_each_family_of_processors_that_this_one_belongs_to(isa, tier):
    made, shape = compiled(waves()), (7, 61)
    executor = NativeExecutor(llvm.plainest(isa))
    code = executor.translate(made, True, tier)
    got = pixels(executor, made, shape, codes={True: code})
    assert differ(got, pixels(ReferenceExecutor(), made, shape)) <= LEVELS


def test_planes_are_neither_clamped_nor_freed_of_nan():
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    ir = lowered(x * y * 8 - 3, e("sqrt", x * y - 0.2), x / (y - y))
    for machine in ("vm", "native"):
        got = run(compiled(ir), machine, (3, 9))
        assert got[0].min() < -2
        assert np.isnan(got[1]).any()
        assert np.isposinf(got[2]).all()
    assert agree("native", run(compiled(ir), "native", (3, 9)), run(compiled(ir), "vm", (3, 9)))


def test_what_is_not_a_number_is_black():
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    for nan in (e("sqrt", -1 - x * y), e("sqrt", -1 - x), e("sqrt", -1 - y), e("sqrt", e.uniform("u") - 1)):
        made = compiled(lowered(nan, x * y * 0 + 2, x * y - 5, x * y * 0 + 1))
        out = np.zeros((5, 9, 4), np.uint8)
        NativeExecutor(lanes=4).load(made).rgba8(StateMemory(()), launch_of((5, 9), uniforms={"u": 0.0}), out)
        assert (out == [0, 255, 0, 255]).all()


LONG = (
    "sin(me@x*20 + me@time)", "cos(me@y*3 - 2*me@time) * me@x", "fract(me@x*4 + me@time*0.7)",
    "noise(me@x*4 + me@time, me@y*4)", "simplex(me@x*4 + me@time, me@y*4)", "(me@x + me@y + me@time*3) % 0.8",
)  # fmt: skip


@pytest.mark.parametrize("text", LONG)
@pytest.mark.parametrize("seconds", [3600.4, 86400.0, 86400.0 * 7])
def test_a_long_session_keeps_its_phases(text, seconds):
    """A day or a week on, no picture is more than a level off."""
    kernel = kernel_of(f"display({text})\n")
    shape = (9, 64)
    launch = Launch(shape, picture_coords(64, 9, seconds), dict.fromkeys(kernel.uniforms, 0.0))
    pictures = []
    for executor in (ReferenceExecutor(), NativeExecutor()):
        out = np.zeros((*shape, 4), np.uint8)
        executor.load(kernel).rgba8(StateMemory(()), launch, out)
        pictures.append(out)
    assert differ(*pictures) <= LEVELS


def test_nan_as_a_constant_is_left_out_of_a_minimum():
    e = Exprs()
    x, nan = e.coord("x") * e.coord("y"), e("acos", 2)
    ir = lowered(e("min", x, nan), e("max", nan, x), e("min", nan, x))
    expected = run(compiled(ir), "vm", (3, 9))
    assert agree("native", run(compiled(ir), "native", (3, 9)), expected)
    assert not np.isnan(expected).any()


def test_what_is_too_large_for_single_precision_is_infinite():
    e = Exprs()
    made = compiled(lowered(e.coord("x") * e.coord("y") + e("exp", e.uniform("u"))))
    assert np.isposinf(run(made, "native", (3, 9), uniforms={"u": 300.0})).all()


WAVES = (
    "sin(d * 9)", "cos(d * 9 + me@time)", "sin(log(d - 0.3))", "sqrt(d - 0.5)", "d", "1.5", "acos(2)", "(1 / 0)",
    "0.25", "d * 1e37",
)  # fmt: skip
SHAPES = (
    "{} * 0.5 + 0.5", "max({}, {})", "min({}, {} * 2 + 1)", "({} - 0.1) * 1e37", "{} * (1 / 0)", "({} + {}) / 2",
    "{} / 1e-37", "clamp({} + {}, 0, 1)", "if d > 0.2 then {} else {}", "-{}", "0.5 - {} * {}",
)  # fmt: skip


@pytest.mark.long
@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_levels_are_those_of_the_reference_whatever_they_end_in(data):
    """Sums and products at the end of a value join the scale of its levels, and what lies within 0…1 is not clamped."""

    def value(depth):
        if depth == 0:
            return f"({data.draw(st.sampled_from(WAVES))})"
        shape = data.draw(st.sampled_from(SHAPES))
        return f"({shape.format(*(value(depth - 1) for _ in range(shape.count('{}'))))})"

    channels = ", ".join(value(data.draw(st.integers(1, 2))) for _ in range(data.draw(st.sampled_from([1, 3, 4]))))
    text = f"d = me@x * me@y\ndisplay({channels})\n"
    kernel = kernel_of(text)
    launch = Launch((3, 17), picture_coords(17, 3, 0.7), dict.fromkeys(kernel.uniforms, 0.0))
    pictures = []
    for executor in (ReferenceExecutor(), NativeExecutor(lanes=8)):
        out = np.zeros((3, 17, 4), np.uint8)
        executor.load(kernel).rgba8(StateMemory(()), launch, out)
        pictures.append(out)
    if (np.abs(pictures[0].astype(int) - pictures[1]) > LEVELS).any():
        # At a hard edge single precision may fall on the other side, and it overflows earlier.
        assert compare(case_of(text, (0.7, 0.8), (3, 17)), NativeExecutor(lanes=8)).unexplained == (), channels


def test_all_loops_of_a_nest_share_their_steps_lane_by_lane():
    """Also an inner one whose own bounds are the same in all lanes."""
    text = """
        spindle steps(n, m) :: v {
          v = 0
          for i in (1 to n) { for j in (1 to m) { v += 1 } v += 0.001 }
        }
        display(steps(select(me@x * me@y < 0.2, 2, 70), mouse@x), 0, 0)
    """
    kernel = kernel_of(text)
    launch = Launch((1, 17), picture_coords(17, 1), dict.fromkeys(kernel.uniforms, 1000.0))
    machines = ReferenceExecutor(), NativeExecutor(lanes=8)
    expected, got = (machine.load(kernel).planes(StateMemory(()), launch) for machine in machines)
    assert np.abs(got - expected).max() < 0.5


# The boundary.


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(12, np.float64), np.zeros(12, np.uint32), np.zeros(24, np.float32)[::2], np.zeros(11, np.float32),
        np.zeros(13, np.float32), np.zeros(49, np.uint8)[1:].view(np.float32),
    ],
    ids=["doubles", "bits", "gaps", "short", "long", "not aligned"],
)  # fmt: skip
def test_no_other_array_gets_through(array):
    block = ArgumentBlock(Layout(tuple(Word), (), (), ()))
    place = block.place(Word.OUT)
    block.set_array(place, np.zeros(12, np.float32), np.float32, 12)
    for _ in range(2):
        with pytest.raises(ValueError, match="machine code cannot be given"):
            block.set_array(place, array, np.float32, 12)


def test_what_is_written_must_be_writable():
    made = compiled(lowered(Exprs().coord("x")))
    executable, memory = NativeExecutor().load(made), StateMemory(())
    known, unknown = np.zeros((2, 3, 9, 4), np.uint8)
    executable.rgba8(memory, launch_of((3, 9)), known)
    for out in (known, unknown):
        out.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            executable.rgba8(memory, launch_of((3, 9)), out)


def test_a_picture_of_another_shape_is_refused_at_any_time():
    made = compiled(lowered(Exprs().coord("x")))
    executable, memory, good = NativeExecutor().load(made), StateMemory(()), np.zeros((3, 9, 4), np.uint8)
    for _ in range(2):
        executable.rgba8(memory, launch_of((3, 9)), good)
        for bad in (np.zeros((9, 3, 4), np.uint8), np.zeros((3, 9), np.uint32), np.zeros((3, 18, 4), np.uint8)[:, ::2]):
            with pytest.raises(ValueError, match="is no picture"):
                executable.rgba8(memory, launch_of((3, 9)), bad)


def test_memory_of_other_slots_is_refused():
    e = Exprs()
    x, deep, shallow = e.coord("x"), image_slot("v/i", depth=7), image_slot("v/i", depth=1)
    made = compiled(lowered(e.state("v/i", 1 + x * 9), slots=[deep], updates={"v/i": x}))
    with pytest.raises(ValueError, match="lacks v/i"):
        NativeExecutor().load(made).planes(StateMemory([shallow], (3, 9)), launch_of((3, 9)))


def test_an_empty_picture_is_refused():
    e = Exprs()
    made = compiled(lowered(e.picture("p", e.coord("x"), e.coord("y"))))
    launch = launch_of((3, 9), pictures={"p": np.zeros((0, 3, 4), np.float32)})
    with pytest.raises(ValueError, match="lacks p"):
        NativeExecutor().load(made).planes(StateMemory(()), launch)


def test_memory_of_another_size_is_refused():
    made = compiled(waves())
    executable = NativeExecutor().load(made)
    with pytest.raises(ValueError, match="on state of"):
        executable.planes(StateMemory(made.slots, (4, 40)), launch_of((4, 41)))
    with pytest.raises(ValueError, match="machine code cannot be given"):
        executable.planes(StateMemory(made.slots, (4, 40), np.float64), launch_of((4, 40)))


def test_a_picture_without_alpha_is_refused():
    e = Exprs()
    made = compiled(lowered(e.picture("p", e.coord("x"), e.coord("y"))))
    for picture in (np.zeros((3, 3, 3), np.float32), np.zeros((3, 3, 4))):
        with pytest.raises(ValueError, match="machine code cannot be given"):
            NativeExecutor().load(made).planes(StateMemory(()), launch_of((3, 9), pictures={"p": picture}))


# Tiers.


def test_better_code_is_taken_into_use_under_running_launches():
    """Code is exchanged again and again while threads are inside of it."""
    made, executor, shape = compiled(waves()), NativeExecutor(), (360, 640)
    codes = {tier: executor.translate(made, True, tier) for tier in TIERS}
    assert [type(code) for code in codes.values()] == [TileProgram, NativeCode]
    assert [code.tier for code in codes.values()] == list(TIERS)
    executable = executor.load(made, {True: codes[1]})
    memory, out = StateMemory(made.slots, shape), np.zeros((*shape, 4), np.uint8)
    executable.rgba8(memory, launch_of(shape), out)
    expected, worst, failures = out.copy(), 0, []
    done = threading.Event()

    def upgrade():
        try:
            for count in range(40):
                executable.upgrade(codes[2 - count % 2])
        except Exception as failure:
            failures.append(failure)
        done.set()

    thread = threading.Thread(target=upgrade)
    thread.start()
    while not done.is_set():
        executable.rgba8(memory, launch_of(shape, threads=2), out)
        # The remembered picture is that of the first tick again and again.
        worst = max(worst, differ(out[:, :, 2], expected[:, :, 2]))
    thread.join()
    assert not failures
    assert worst <= LEVELS
    assert executable.tier == 1


def test_code_means_the_same_in_another_process():
    made, shape = compiled(waves()), (5, 40)
    executor = NativeExecutor()
    code = pickle.loads(pickle.dumps(executor.translate(made, True)))
    np.testing.assert_array_equal(pixels(executor, made, shape, codes={True: code}), pixels(executor, made, shape))


def test_what_llvm_does_not_take_runs_on_the_vector_machine(monkeypatch):
    """No program is known that LLVM refuses: it is handed one that it must."""
    made, shape = compiled(waves()), (5, 40)
    expected = pixels(NativeExecutor(), made, shape)
    emitted = native_executor.emit
    nonsense = "this is no language of LLVM's"
    monkeypatch.setattr(native_executor, "emit", lambda *args: replace(emitted(*args), text=nonsense))
    executor = NativeExecutor()
    assert differ(pixels(executor, made, shape, codes={True: executor.translate(made, True)}), expected) <= LEVELS
    assert differ(pixels(executor, made, shape), expected) <= LEVELS


# What comes once a frame: in the first tier the interpreter computes it, in the second machine code does.

ONCE = {
    "numbers": "display(sin(me@time * 3) * me@x, exp(mouse@x), 0.3)",
    "channels that are no numbers": "display(sqrt(mouse@x - 9), 1 / (mouse@x - 0.3), -mouse@x, 0.4999)",
    "state": "display(phasor(3.7), fract(integrate(mouse@x) * 9 + me@x * me@y), hold(me@time, floor(me@time * 7)))",
    "state some ticks ago": "display(delay(sin(me@time), 2, 5), delay(me@time % 1, 1.5 + mouse@x, 5), me@x)",
    "truths": "display(if mouse@x < me@time then me@x else me@y, me@time > 1, not mouse@x)",
    "noise": "display(noise(me@time * 9, mouse@x), hash(floor(me@time * 99)), tanh(me@time))",
    "pictures": 'load("a.png")::img<r, g, b, a>\ndisplay(img@r(me@x ~ mouse@x, me@y ~ fract(me@time)), img@g, img@b)',
    "a loop": "spindle f(n) :: o { o = 0\n for i in (0 to n) { o += sin(i * me@time) / 9 } }\ndisplay(f(mouse@x * 40))",
    "a remembered picture": (
        "t<v> = max(me@x * mouse@x, prev(t@v) * 0.9)\ndisplay(t@v, prev(t@v)(me@x ~ mouse@x, me@y ~ 0.3), 0)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", ONCE.values(), ids=ONCE)
def test_what_comes_once_a_frame_is_the_same_in_both_tiers(text):
    kernel, shape = kernel_of(text), (5, 40)
    picture = np.random.default_rng(7).random((3, 5, 4), np.float32)
    shown = []
    for executor, tier in ((ReferenceExecutor(), 0), (NativeExecutor(), 1), (NativeExecutor(), 2)):
        code = executor.translate(kernel, True, tier) if tier else None
        assert not isinstance(code, NativeCode) or ("frame" in code.layout.functions) == (tier == 2)
        executable, memory = executor.load(kernel, {True: code}), StateMemory(kernel.slots, shape, executor.widest)
        frames = np.zeros((9, *shape, 4), np.uint8)
        for tick, out in enumerate(frames):
            values = {"dt": 1 / 60, "mouse@x": 0.3 + 0.05 * tick, "width": 40.0, "height": 5.0, "absframe": tick}
            uniforms = {name: float(values[name]) for name in kernel.uniforms}
            pictures = dict.fromkeys(kernel.pictures, picture)
            coords = picture_coords(40, 5, 0.7 + tick / 60)
            executable.rgba8(memory, Launch(shape, coords, uniforms, pictures=pictures), out)
        shown.append(frames)
        rings = [memory.ring(key) for key, slot in memory.slots.items() if not slot.image]
        assert all(ring.any() for ring in rings)
    assert differ(shown[1], shown[0]) <= LEVELS
    assert differ(shown[2], shown[0]) <= LEVELS


def test_a_loop_of_the_frame_without_an_end_is_told():
    kernel = kernel_of("spindle f(n) :: o { o = 0\n for i in (0 to n) { o += 1 } }\ndisplay(f(mouse@x * 1e9) / 4096)")
    executor, told = NativeExecutor(), []
    executable = executor.load(kernel, {True: executor.translate(kernel, True, 2)})
    out = np.zeros((3, 9, 4), np.uint8)
    for mouse, count in ((1.0, 1), (0.0, 1), (2.0, 2)):
        launch = launch_of((3, 9), uniforms={"mouse@x": mouse}, loop_stopped=lambda: told.append(1))
        executable.rgba8(StateMemory(()), launch, out)
        assert len(told) == count


@pytest.mark.parametrize("tier", TIERS)
def test_a_launch_that_lacks_something_is_refused_at_any_time(tier):
    kernel = kernel_of('load("a.png")::img<r, g, b, a>\ndisplay(img@r * mouse@x, me@time, 0)')
    executor, out, shape = NativeExecutor(), np.zeros((3, 40, 4), np.uint8), (3, 40)
    executable = executor.load(kernel, {True: executor.translate(kernel, True, tier)})
    picture, empty = np.ones((2, 2, 4), np.float32), np.ones((0, 2, 4), np.float32)
    good = Launch(shape, picture_coords(40, 3), {"mouse@x": 0.5}, pictures=dict.fromkeys(kernel.pictures, picture))
    memory = StateMemory(())
    executable.rgba8(memory, good, out)
    for bad, words in (
        (replace(good, uniforms={}), "lacks mouse@x"), (replace(good, pictures={}), "lacks"),
        (replace(good, coords={**good.coords, "x": np.zeros(39)}), "the shape"),
        (replace(good, pictures=dict.fromkeys(kernel.pictures, empty)), "lacks"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            executable.rgba8(memory, bad, out)
    executable.rgba8(memory, good, out)


# What stands still.


def test_a_picture_in_which_nothing_moves_is_drawn_once():
    kernel = kernel_of("display(me@x * mouse@x, me@y, 0)\n")
    pictures, shape = Pictures(kernel), (4, 8)
    coords = picture_coords(8, 4)

    def launch(mouse, time):
        return Launch(shape, {**coords, "abstime": time}, {"mouse@x": mouse})

    begun = []
    first = pictures.drawn(launch(0.5, 0), begun.append)
    assert pictures.drawn(launch(0.5, 1), begun.append) is first
    second = pictures.drawn(launch(0.6, 1), begun.append)
    assert second is not first
    assert pictures.drawn(launch(0.6, 2), begun.append) is second
    assert pictures.drawn(launch(0.7, 3), begun.append) is first
    assert list(map(id, begun)) == [id(first), id(second), id(first)]


@pytest.mark.parametrize("text", ["me@x * me@time", "prev(me@x)", "me@x * mouse@x"])
def test_what_moves_is_drawn(text):
    kernel = kernel_of(f"display({text})\n")
    pictures, shape, coords = Pictures(kernel), (4, 8), picture_coords(8, 4)
    launches = [Launch(shape, {**coords, "abstime": n}, {"mouse@x": n}) for n in (0.0, 1.0)]
    first, second = (pictures.drawn(launch, lambda picture: None) for launch in launches)
    assert second is not first


TUNED = "a = {0}\ndisplay(sin(me@x * a + me@time) * 0.4, smoothstep(a, 2, me@y), if me@x < a / 2 then me@y else a)"


# Without fused operations a quotient is divided, and its divisor stays a constant of the code.
FUSES = pytest.mark.skipif(not HERE or not HERE[0].fused, reason="this processor fuses nothing")
PRODUCTS = "a = {0}\ndisplay(sin(me@x * a + me@time) * 0.4, 0.2, if me@x < a / 2 then me@y else a)"


@pytest.mark.parametrize("text", [PRODUCTS, pytest.param(TUNED, marks=FUSES)])
def test_code_serves_again_for_other_constants(text):
    """What it draws is what code of their own draws."""
    executor = NativeExecutor()
    executor.translate(kernel_of(text.format(0.3)), True, 2)
    for number in (0.37, 1.21, 1e-5, 0.4):
        kernel = kernel_of(text.format(number))
        again, own = executor.translate(kernel, True), NativeExecutor().translate(kernel, True, 2)
        assert isinstance(again, NativeCode)
        assert again.tier == 2
        drawn, alone = (pixels(executor, kernel, (9, 130), codes={True: code}) for code in (again, own))
        assert (drawn == alone).all()
        assert differ(drawn, pixels(ReferenceExecutor(), kernel, (9, 130))) <= LEVELS
    assert isinstance(executor.translate(kernel_of(TUNED.format("me@y")), True), TileProgram)


def test_quotients_of_infinity():
    """A reciprocal without a rest is one product: infinity times a rest of 0 would be no number."""
    for divisor in ("2", "3", "0.5"):
        kernel, executor = kernel_of(f"display(me@y * (1 / floor(me@x * 0.5) / {divisor} > 1))"), NativeExecutor()
        code = executor.translate(kernel, True, 2)
        drawn, expected = (pixels(each, kernel, (3, 130), codes=codes) for each, codes in
                           ((executor, {True: code}), (ReferenceExecutor(), {})))  # fmt: skip
        assert (drawn == expected).all()


@contextmanager
def calls_of_llvm():
    """Collects a mark for each call that this thread makes of LLVM. Each waits for those of other threads."""
    calls, here = [], threading.get_ident()

    def acquired():
        if threading.get_ident() == here:
            calls.append("call")

    ffi.register_lock_callback(acquired, int)
    try:
        yield calls
    finally:
        ffi.unregister_lock_callback(acquired, int)


def test_code_that_serves_again_does_not_wait_for_llvm():
    executor = NativeExecutor()
    executor.translate(kernel_of(PRODUCTS.format(0.3)), True, 2)
    kernel = kernel_of(PRODUCTS.format(0.44))
    with calls_of_llvm() as calls:
        code = executor.translate(kernel, True)
        pixels(executor, kernel, (9, 130), codes={True: code})
    assert isinstance(code, NativeCode)
    assert calls == []
    with calls_of_llvm() as calls:
        NativeExecutor().code(kernel_of("display(fract(me@x * 3.25 + me@y))"), True, 1)
    assert calls


class AlarmError(BaseException):
    """Nothing on the way takes it for a mistake."""


def interrupted(work):
    """Whether an alarm ends some work. It comes again and again: one that comes while Python frees an object is
    lost."""
    ended = False

    def interrupt(_number, _frame):
        if not ended:
            raise AlarmError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
            work()
        finally:
            ended = True
    except AlarmError:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False


def test_a_signal_interrupts_the_wait_for_better_code():
    """LLVM itself continues: it still compiles when the caller does something else."""
    e = Exprs()
    total = e.coord("x") * e.coord("y")
    for n in range(600):
        total = total + e("sin", total * (n + 0.5)) * e.coord("x")
    kernel = compiled(lowered(total))
    # It begins to wait, at the latest, when all of it is compiled as text.
    begun = NativeExecutor()._begin(kernel, True, 2)
    eventually(begun._code.running, "LLVM at work")
    assert interrupted(begun.finished)
    assert not llvm._aside().submit(lambda: None).done()
    assert not begun.is_left_out
    assert begun.finished().tier == 2
    assert NativeExecutor().translate(kernel_of("display(me@x)"), True, 2)


def test_code_whose_turn_has_not_come_is_left_out():
    release = threading.Event()
    llvm._aside().submit(release.wait)
    try:
        executor, kernel = NativeExecutor(), kernel_of("display(fract(me@x * 7.5 + me@y))")
        assert interrupted(lambda: executor.translate(kernel, True, 2))
    finally:
        release.set()
    assert executor.translate(kernel, True, 2).tier == 2


# Without LLVM.

WITHOUT = """
import json, sys
sys.modules["llvmlite"] = None
from weft.cli import main
for arguments in json.loads(sys.argv[1]):
    code = main(arguments)
    print(f"\\f{code}", end="\\f", flush=True)
    print("", end="\\f", file=sys.stderr, flush=True)
"""


def weft_without_llvm(*commands, cwd):
    """The exit code, output and errors of each of some command lines, in one process."""
    command = [sys.executable, "-c", WITHOUT, json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, check=True, text=True, cwd=cwd)
    outs, codes, errors = done.stdout.split("\f")[:-1:2], done.stdout.split("\f")[1::2], done.stderr.split("\f")[:-1]
    return list(zip(map(int, codes), outs, errors, strict=True))


@pytest.mark.long
def test_without_llvm_pictures_are_drawn_by_the_vector_machine(tmp_path):
    (tmp_path / "a.weft").write_text("me<width> = 64\nme<height> = 36\ndisplay(sin(me@x * 9 + me@time))\n")
    run = ["run", "a.weft", "--headless", "--frames", "3"]
    (code, _, told), (_, listed, _) = weft_without_llvm(run, ["devices"], cwd=tmp_path)
    assert code == 0
    assert "visual vector" in told
    assert "cpu_visual (vector), the fastest here; native is faster, but llvmlite is not installed" in listed


@pytest.mark.long
def test_without_llvm_machine_code_that_is_asked_for_is_missing(tmp_path):
    (tmp_path / "a.weft").write_text("display(me@x)\n")
    commands = (["eval", "a.weft", "me@x", "--backend", "native"], ["compile", "a.weft", "--dump-asm"],
                ["run", "a.weft", "--headless", "--frames", "1", "--backend", "visual=native"])  # fmt: skip
    for arguments, (code, _, told) in zip(commands, weft_without_llvm(*commands, cwd=tmp_path), strict=True):
        assert (code, "llvmlite" in told) == (3, True), arguments


# --- as on another processor ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("isa", HERE, ids=lambda isa: isa.name)
def test_code_is_made_as_for_the_family_that_is_asked_for(isa, monkeypatch):
    narrower = HERE[HERE.index(isa) :]
    monkeypatch.setenv(llvm.VARIABLE, isa.name)
    assert llvm.problem() is None
    assert llvm.host() == llvm.plainest(isa)
    assert [each for each in ISAS.values() if llvm.runs_here(each)] == narrower


def test_a_family_that_this_processor_lacks_is_named(monkeypatch):
    monkeypatch.delenv(llvm.VARIABLE, raising=False)
    here = [name for name, isa in ISAS.items() if llvm.runs_here(isa)]
    for name in ["avx1024", *(ISAS.keys() - here)]:
        monkeypatch.setenv(llvm.VARIABLE, name)
        assert llvm.host() is None
        assert llvm.problem() == f"WEFT_ISA is {name}, and this processor runs code for {', '.join(here)}"
        assert llvm.isa_problem() == llvm.problem()


SCATTERED = """
import ctypes
from weft.backends.native import llvm
from weft.codegen.native.target import SINGLE

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]

def reserved(size):
    NOWHERE, PRIVATE_ANONYMOUS_NORESERVE = 0, 0x4022
    return libc.mmap(None, size, NOWHERE, PRIVATE_ANONYMOUS_NORESERVE, -1, 0)

llvm._linker()
code = llvm.machine_code(llvm.handlers(llvm.host().isa, SINGLE), llvm.host(), 1)
far = reserved(6 << 30)
while reserved(len(code) // 2) > far:
    pass
llvm._library(code, ["tile_run"])
print("linked")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for places")
def test_code_is_linked_if_gigabytes_lie_between_the_places_that_are_free() -> None:
    """Small ones, for constants, are nearby, but those that take code are all beyond gigabytes of other memory."""
    found = subprocess.run([sys.executable, "-c", SCATTERED], capture_output=True, text=True, check=False)
    assert (found.stdout, found.stderr) == ("linked\n", "")


def test_a_function_of_a_module_stays_while_other_code_comes_and_goes() -> None:
    text = "define void @written(ptr %to) {{\n  store i64 {}, ptr %to\n  ret void\n}}\n"
    call, found = llvm.function_of(text.format(7), "written"), ctypes.c_int64()
    assert call is not None
    for other in range(20, 40):
        llvm._functions(llvm.machine_code(text.format(other), llvm.host(), 2), ("written",))
    gc.collect()
    call(ctypes.addressof(found))
    assert found.value == 7
