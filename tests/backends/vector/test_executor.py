"""The vector machine: tiles and threads, what it computes how often, and how many registers that takes."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections import Counter

import numpy as np
import pytest

from tests.support.exprs import Exprs, image_slot, lowered, number_slot
from tests.support.kernels import compiled, launch_of
from tests.support.tolerances import DOUBLE, SINGLE
from weft.backends import hardware
from weft.backends.executors import BandPool
from weft.backends.hardware import cores
from weft.backends.launch import Launch, StateMemory
from weft.backends.vector.lists import CALLS, ListReader
from weft.backends.vector.machine import VectorExecutor
from weft.backends.vector.steps import Extent, Register
from weft.backends.vm import ReferenceExecutable, ReferenceExecutor
from weft.codegen.compilation import compile_points
from weft.codegen.native.tiles import emit_tiles
from weft.codegen.native.writer import ELEMENTS
from weft.contexts import AUDIO, VISUAL
from weft.ir.expr import StrandRef


def plasma(e):
    x, y, time = e.coord("x"), e.coord("y"), e.uniform("time")
    v = e("sin", x * 10 + time) + e("sin", y * 10 + time * 1.3) + e("sin", e("hypot", x - 0.5, y - 0.5) * 20)
    return [e("sin", v * 3.14159 + phase) * 0.5 + 0.5 for phase in (0, 2.094, 4.188)]


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (90, 161), (2, 5000)])
def test_single_precision_is_close(shape):
    made = compiled(lowered(*plasma(Exprs())))
    launch = launch_of(shape, uniforms={"time": 1.7})
    got = VectorExecutor().load(made).planes(StateMemory(()), launch)
    assert got.dtype == np.float32
    expected = ReferenceExecutor().load(made).planes(StateMemory(()), launch)
    assert SINGLE.scaled(20).agreement(got, expected).all()


@pytest.mark.parametrize("shape", [(3, 5), (40, 333), (64, 4096)])
def test_threads_and_tiles_change_nothing(shape):
    e = Exprs()
    made = compiled(lowered(*plasma(e), slots=[image_slot("v/i")], updates={"v/i": e.state("v/i", 1) + e.coord("x")}))
    results = []
    for tile_elements, threads in [(None, 1), (None, 2), (1000, 1), (1000, 2), (1000, 3), (5, 2)]:
        if tile_elements == 5 and shape[0] * shape[1] > 100:
            continue
        executable = VectorExecutor(tile_elements=tile_elements).load(made)
        memory, out = StateMemory(made.slots, shape), np.empty((*shape, 4), np.uint8)
        for tick in range(3):
            launch = launch_of(shape, uniforms={"time": tick / 60}, threads=threads)
            executable.rgba8(memory, launch, out)
        results.append((out.copy(), memory.ring("v/i").copy(), executable.planes(memory, launch)))
    for result in results[1:]:
        for got, expected in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(got, expected)


def test_the_rarer_sections_are_computed_in_double_precision():
    e = Exprs()
    made = compiled(
        lowered(e("sin", e.coord("x") * 62.8 + e.uniform("time")), e("sin", e.coord("y") + e.uniform("time")))
    )
    launch = launch_of((4, 300), uniforms={"time": 86400.25})
    expected = ReferenceExecutor().load(made).planes(StateMemory(()), launch)
    got = VectorExecutor().load(made).planes(StateMemory(()), launch)
    np.testing.assert_allclose(got, expected, atol=1e-7)


def test_sizes_may_change_from_launch_to_launch():
    e = Exprs()
    made = compiled(lowered(e.coord("x") * e.coord("y") + e.uniform("time")))
    executable = VectorExecutor().load(made)
    for size in (*range(1, 12), 5, 3):
        launch = launch_of((size, 13 - size), uniforms={"time": float(size)})
        expected = ReferenceExecutor().load(made).planes(StateMemory(()), launch)
        np.testing.assert_allclose(executable.planes(StateMemory(()), launch), expected, rtol=1e-6)


def test_inputs_may_change_from_launch_to_launch():
    e = Exprs()
    made = compiled(lowered(e.coord("x") + e.uniform("time"), e.coord("abstime") + e.coord("y")))
    executable = VectorExecutor(np.float64).load(made)
    for tick in range(3):
        launch = launch_of((2, 3), abstime=tick, uniforms={"time": tick * 10.0})
        launch.coords["x"] = np.array([0.0, 1, 2]) + tick
        got = executable.planes(StateMemory(()), launch)
        np.testing.assert_allclose(got[0, 0], np.array([0, 1, 2]) + tick * 11)
        np.testing.assert_allclose(got[1, :, 0], np.array([0.25, 0.75]) + tick)


def test_sound_without_state_is_computed_at_once():
    e = Exprs()
    wave = e("sin", e.coord("abstime") * 440) * e.coord("channel") + e.coord("x")
    made = compiled(lowered(wave, context="audio"))
    seconds = np.arange(1000) / 48000
    launch = Launch((1, 1000), {"abstime": seconds, "channel": 1.0, "x": seconds * 220 % 1})
    executable = VectorExecutor(np.float64, tile_elements=64).load(made)
    assert not isinstance(executable, ReferenceExecutable)
    expected = np.sin(seconds * 440) + seconds * 220 % 1
    np.testing.assert_allclose(executable.planes(StateMemory(()), launch)[0, 0], expected, rtol=1e-13)


def test_points_take_numbers_and_arrays():
    e = Exprs()
    ir = lowered(context="audio", exposed={"a@b": e.coord("abstime") * 2 + e.coord("x")})
    executable = VectorExecutor(np.float64).load(compile_points(ir, StrandRef("a", "b"), AUDIO))
    for count in (1, 5, 4, 70):
        launch = Launch((1, count), {"abstime": np.arange(count, dtype=float), "x": 0.5})
        got = executable.planes(StateMemory(()), launch)
        np.testing.assert_array_equal(got[0, 0], np.arange(count) * 2 + 0.5)


def test_between_ticks_state_is_read_from_the_last_one_on():
    """A read at points goes back by 0 ticks at least, and by 1 for NaN."""
    e = Exprs()
    x, y, time = e.coord("x"), e.coord("y"), e.coord("abstime")
    slots = [image_slot("v/i", 3), number_slot("v/n", 3)]
    ticks = (0, 0.5, 1, 2, 9, -1, math.nan, time, time + x)
    reads = [*(e.state("v/i", k, x, y) for k in ticks), *(e.state("v/n", k) for k in ticks[:-1])]
    kept = {"v/i": x + time, "v/n": time}
    for read in reads:
        ir = lowered(context="visual", slots=slots, updates=kept, exposed={"a@b": read})
        made = compile_points(ir, StrandRef("a", "b"), VISUAL)
        memory = StateMemory(made.slots, (4, 5), np.float64)
        for key in memory.slots:
            memory.ring(key)[...] = np.random.default_rng(3).random(memory.ring(key).shape)
        launch = Launch((1, 6), {"x": np.linspace(0, 1, 6), "y": np.linspace(1, 0, 6), "abstime": np.full(6, 2.0)})
        expected = ReferenceExecutor().load(made).planes(memory, launch)
        assert DOUBLE.agreement(VectorExecutor(np.float64).load(made).planes(memory, launch), expected).all()


def test_registers_are_used_again():
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    chain = x * y
    for _ in range(100):
        chain = e("sin", chain * 2 + x) - y
    assert registers(compiled(lowered(chain))) == {("float", Extent.ALL): 1}
    both = e("sin", x * y) * e("cos", x + y)
    assert registers(compiled(lowered(both))) == {("float", Extent.ALL): 2}


def test_what_a_loop_needs_lasts_through_all_its_steps():
    """The register of a value from outside is not another's within the body, though its last use there comes early."""
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    first = e("sin", x * y) + e.index(1)
    second = e("cos", first * 3 + y) - e("sin", first + x)
    (found,) = e.loop(1, (1, 5 + x * 3), [x], [e.carried(1) * 0.5 + second])
    made, launch = compiled(lowered(found)), launch_of((7, 9))
    expected = ReferenceExecutor().load(made).planes(StateMemory(()), launch)
    got = VectorExecutor(np.float64).load(made).planes(StateMemory(()), launch)
    assert DOUBLE.scaled(10).agreement(got, expected).all()


def test_each_step_is_no_wider_than_it_must_be():
    e = Exprs()
    made = compiled(lowered(e("sin", e.coord("x")) * e("cos", e.coord("y"))), optimise=False)
    assert sorted(registers(made)) == [("float", extent) for extent in (1, 2, 3)]


def registers(made):
    """How many registers of each kind and extent the elements of a kernel need."""
    code = emit_tiles(made, False, CALLS)
    operands = ListReader(made, code, ELEMENTS).program().operands
    return Counter((each.kind, each.extent) for each in operands if isinstance(each, Register))


@pytest.mark.long
def test_tiles_of_deep_expressions_stay_small():
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    deep = x * y
    for n in range(3000):
        deep = e("sin", x * y * n) + e("neg", deep)
        deep = e("cos", y * x - n) * deep
    made = compiled(lowered(deep))
    executable = VectorExecutor().load(made)
    launch = launch_of((2, 40))
    expected = ReferenceExecutor().load(made).planes(StateMemory(()), launch)
    assert SINGLE.scaled(1e3).agreement(executable.planes(StateMemory(()), launch), expected).all()


def test_strands_are_read_at_any_number_of_coordinates():
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    places = [x * n + y for n in range(12)]
    made = compiled(lowered(e.strand("a@b", *places), e.strand("a@b"), e.strand("a@b", x)))
    given = {StrandRef("a", "b"): lambda *args: sum((k + 1) * arg for k, arg in enumerate(args)) + 0.5}
    launch = launch_of((5, 7), strands=given)
    expected = ReferenceExecutor().load(made).planes(StateMemory(()), launch)
    got = VectorExecutor(np.float64).load(made).planes(StateMemory(()), launch)
    assert DOUBLE.scaled(100).agreement(got, expected).all()


# Threads.


def test_a_strand_may_be_computed_by_the_same_pool():
    e = Exprs()
    there = lowered(exposed={"a@b": e("sin", e.coord("x")) * e.coord("y")})
    executor = VectorExecutor(np.float64, tile_elements=64)
    points = executor.load(compile_points(there, StrandRef("a", "b"), VISUAL))

    def getter(x, y):
        shape = np.broadcast_shapes(np.shape(x), np.shape(y))
        coords = {name: np.broadcast_to(c, shape).reshape(-1) for name, c in (("x", x), ("y", y))}
        count = coords["x"].size
        launch = Launch((1, count), coords, threads=2)
        return points.planes(StateMemory(()), launch).reshape(shape)

    f = Exprs()
    x, y = f.coord("x"), f.coord("y")
    made = compiled(lowered(sum((f("sin", x * y * n) for n in range(200)), f.strand("a@b", 1 - x, y))))
    launches = [
        launch_of((64, 100), strands={StrandRef("a", "b"): getter}, threads=threads) for threads in (1, 2, 3)
    ]  # fmt: skip
    results = [executor.load(made).planes(StateMemory(()), launch) for launch in launches]
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])


def test_what_a_thread_raises_arrives():
    pool = BandPool()

    def fail(number):
        if number == 1:
            raise RuntimeError("number 1")

    for _ in range(3):
        with pytest.raises(RuntimeError, match="number 1"):
            pool.run(fail, 2)
    seen = []
    pool.run(seen.append, 3)
    assert sorted(seen) == [0, 1, 2]


@pytest.mark.skipif(not sys.platform.startswith("linux") or cores() < 2, reason="there is no other core to be told of")
def test_threads_are_kept_off_the_core_that_shares_the_work():
    """Where the system wakes them, they would wait for it to be done."""
    pool, allowed, seen = BandPool(), os.sched_getaffinity(0), {}
    pool.run(lambda number: seen.update({number: os.sched_getaffinity(0)}), 3)
    assert seen[0] == allowed
    assert seen[1] == seen[2] < allowed
    assert len(seen[1]) == len(allowed) - 1


@pytest.mark.skipif(not sys.platform.startswith("linux") or cores() < 2, reason="there is no other core to be told of")
def test_threads_that_are_held_up_go_on_where_the_rest_is_done(monkeypatch):
    """What runs on their cores may hold them up for longer than the whole work takes."""
    pool, allowed, seen = BandPool(), os.sched_getaffinity(0), {}
    core = min(allowed)
    monkeypatch.setattr(hardware, "current_core", lambda: core)

    def work(number):
        deadline = time.monotonic() + 30
        while number and os.sched_getaffinity(0) != {core} and time.monotonic() < deadline:
            time.sleep(0.001)
        seen[number] = os.sched_getaffinity(0)

    pool.run(work, 3)
    assert seen == {0: allowed, 1: {core}, 2: {core}}
    seen.clear()

    def together(number):
        seen[number] = os.sched_getaffinity(0)
        deadline = time.monotonic() + 30
        while not number and len(seen) < 3 and time.monotonic() < deadline:  # so that nobody is held up
            time.sleep(0.001)

    pool.run(together, 3)
    assert seen == {0: allowed, 1: allowed - {core}, 2: allowed - {core}}


@pytest.mark.parametrize("given", [0, 1])
def test_where_no_more_threads_can_be_had_those_that_there_are_do_all(given, monkeypatch):
    """A thread needs memory for its stack."""
    pool, seen, start, left = BandPool(), [], threading.Thread.start, [given]

    def limited(thread):
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    for _ in range(2):
        pool.run(seen.append, 4)
    assert sorted(seen) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_threads_end_with_their_pool():
    before = set(threading.enumerate())
    pool = BandPool()
    pool.run(lambda number: None, 4)
    own = set(threading.enumerate()) - before
    assert len(own) == 3
    del pool
    for thread in own:
        thread.join(5)
        assert not thread.is_alive()


# What does not fit.


@pytest.mark.parametrize("executor", [ReferenceExecutor(), VectorExecutor()], ids=["vm", "vector"])
def test_a_launch_has_to_fit(executor):
    e = Exprs()
    made = compiled(
        lowered(
            e.coord("x") + e.coord("y") + e.uniform("time") + e.strand("a@b") + e.picture("p", 0, 0),
            slots=[image_slot("v/i"), number_slot("v/n")],
            updates={"v/i": e.coord("x"), "v/n": e.uniform("time")},
        )
    )
    executable, memory = executor.load(made), StateMemory(made.slots, (2, 3))
    with pytest.raises(ValueError, match="lacks time, a@b, p"):
        executable.planes(memory, launch_of((2, 3)))
    inputs = {
        "uniforms": {"time": 0.0}, "strands": {StrandRef("a", "b"): lambda: 1.0},
        "pictures": {"p": np.zeros((1, 1, 4), np.float32)},
    }  # fmt: skip
    executable.planes(memory, launch_of((2, 3), **inputs))
    with pytest.raises(ValueError, match="on state of"):
        executable.planes(memory, launch_of((3, 3), **inputs))
    with pytest.raises(ValueError, match="lacks v/i, v/n"):
        executable.planes(StateMemory(()), launch_of((2, 3), **inputs))
    wrong = launch_of((2, 3), **inputs)
    wrong.coords["x"] = np.zeros(2)
    with pytest.raises(ValueError, match="the coordinate x has the shape"):
        executable.planes(memory, wrong)
    with pytest.raises(ValueError, match="0×2 elements"):
        executable.planes(memory, Launch((2, 0), {**wrong.coords}, **inputs))


def test_an_interruption_waits_for_the_threads():
    """What they work on is theirs until then."""
    finished = threading.Event()

    def work(number):
        if number:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            threading.Event().wait(0.3)  # long enough for the other one to be interrupted meanwhile
            finished.set()

    with pytest.raises(KeyboardInterrupt):
        BandPool().run(work, 2)
    assert finished.is_set()
