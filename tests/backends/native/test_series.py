"""Sounds as machine code: chunks and what crosses them, state, waves, memories, and the boundary."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal, getcontext
from functools import cache, reduce

import numpy as np
import pytest

from tests.support.exprs import Exprs, lowered, number_slot
from tests.support.kernels import compiled, kernel
from tests.support.series import (  # fmt: skip
    LOOPS, LOOPS_OF_SEVERAL, PROGRAMS, RATE, SIZES, assert_same, kernel_of, launch, looping, played
)
from tests.support.together import all_but
from tests.support.tolerances import SERIES, WAVES
from weft.backends.launch import Even, Launch, StateMemory, StreamCoords
from weft.backends.native import llvm
from weft.backends.native.executor import NativeExecutor
from weft.backends.native.llvm import NativeCode
from weft.backends.native.samples import SeriesExecutable
from weft.backends.vector.machine import VectorExecutable
from weft.backends.vm import ReferenceExecutor
from weft.codegen.bytecode import StrandCall
from weft.codegen.native.plan import KernelDomain, domain_of
from weft.codegen.native.series import emit_series
from weft.codegen.native.target import DOUBLE, ISAS, TIERS
from weft.codegen.native.tiles import TileProgram
from weft.contexts import ContextTable
from weft.errors import Source
from weft.ir.rates import Rate
from weft.names import StrandRef
from weft.runtime.compiling.stages import Request, build

HERE = [isa for isa in ISAS.values() if llvm.runs_here(isa)]


@pytest.fixture(params=[None, 4], ids=["list of calls", "machine code"])
def executor(request):
    return NativeExecutor(lanes=request.param)


@cache
def code_of(text: str, tier: int) -> object:
    """The code of a program at a tier, as this processor prefers it."""
    return NativeExecutor().translate(kernel_of(text), False, tier)


@pytest.mark.parametrize("text", all_but(9, (PROGRAMS | LOOPS_OF_SEVERAL).values()), ids=PROGRAMS | LOOPS_OF_SEVERAL)
def test_sounds_are_those_of_the_reference(text):
    made = kernel_of(text)
    expected = played(ReferenceExecutor(), made)
    for isa in HERE:
        for lanes, tier in ((None, 1), (None, 2), (1, 1), (16, 1)):
            executor = NativeExecutor(llvm.plainest(isa), lanes)
            code = executor.translate(made, False, tier)
            assert isinstance(code, TileProgram if (lanes, tier) == (None, 1) else NativeCode)
            assert_same(played(executor, made, codes={False: code}), expected)


@pytest.mark.parametrize("text", all_but(9, [*PROGRAMS.values(), *(looping(*loop) for loop in LOOPS.values())]))
def test_what_nobody_has_optimised_is_right_as_well(text, executor):
    (unit,) = build(Request(Source("test.weft", text), ContextTable()), optimise=False).units
    sizes = (70, 300)
    expected = played(ReferenceExecutor(), unit.kernel, sizes)
    assert domain_of(unit.kernel) is KernelDomain.SOUND
    assert_same(played(executor, unit.kernel, sizes), expected)


def test_a_long_sum_of_what_is_always_the_same(executor):
    e = Exprs()
    total = reduce(lambda total, n: e("sin", total * n), range(1, 1200), e.uniform("dt"))
    made = compiled(lowered(total * e.coord("abstime"), context="audio"), optimise=False)
    assert_same(played(executor, made, (9,)), played(ReferenceExecutor(), made, (9,)))


def test_what_only_others_read_has_no_outputs(executor):
    e = Exprs()
    sine = e("sin", e.coord("abstime") * 99)
    made = compiled(lowered(context="audio", slots=[number_slot("v/n")], updates={"v/n": sine}))
    assert_same(played(executor, made, (9, 300)), played(ReferenceExecutor(), made, (9, 300)))


@pytest.mark.parametrize("loop", all_but(5, [(loop,) for loop in LOOPS.values()]), ids=LOOPS)
def test_loops(loop):
    made = kernel_of(looping(*loop))
    sizes = (70, 3, 300)
    expected = played(ReferenceExecutor(), made, sizes)
    for lanes, tier in ((None, 1), (None, 2), (4, 1)):
        executor = NativeExecutor(lanes=lanes)
        codes = {False: executor.translate(made, False, tier)}
        assert_same(played(executor, made, sizes, codes=codes), expected)


def test_how_a_sound_is_cut_into_launches_does_not_matter(executor):
    made = kernel_of(PROGRAMS["echo that moves"])
    whole = played(executor, made, (5000,))
    assert_same(played(executor, made, (1,) * 50 + (512,) * 9 + (342,)), whole)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y<v> = me@time + prev(y@v) * 0.999\nplay(y@v)", True),
        ("y<v> = -0.9 * prev(y@v) + me@time\nplay(y@v, y@v * 2)", True),
        ("y<v> = prev(y@v) * 0.9 + me@time\nz<v> = prev(z@v) * 0.8 + abs(y@v)\nplay(z@v)", True),
        ("y<v> = prev(y@v) + me@time\nplay(y@v)", False),
        ("play(integrate(sin(me@time)))", False),
        ("y<v> = prev(y@v) * 1.1 + me@time\nplay(y@v)", False),
        ("y<v> = prev(y@v) * 1e-30 + me@time\nplay(y@v)", False),
        ("y<v> = prev(y@v) * mouse@x + me@time\nplay(y@v)", False),
        ("y<v> = prev(y@v) * prev(y@v) + me@time\nplay(y@v)", False),
        ("y<v> = prev(y@v) * 0.5 + (me@time - prev(y@v)) * 0.1\nplay(y@v)", False),
        ("y<v> = prev(y@v) * 0.5 + me@time\nplay(y@v, prev(y@v))", False),
        ("y<v> = prev(y@v) * 0.5 + me@time\nplay(y@v, prev(y@v) * 0.5)", False),
        ("y<v> = prev(y@v) * 0.5 + delay(y@v, 3, 9)\nplay(y@v)", False),
        ("a<v> = prev(b@v) * 0.5 + me@time\nb<v> = prev(a@v) * 0.5 + 1\nplay(a@v, b@v)", False),
        ("y<v> = prev(y@v) * 0.5 + me@time\nw<v> = me@time\nplay(y@v, prev(w@v))", False),
    ],
)
def test_what_is_only_added_to_what_was_goes_in_vectors(text, expected):
    made = kernel_of(text)
    executor = NativeExecutor()
    assert ("@scan" in executor.listing(made, False, 2).llvm) == expected
    wanted = {sizes: played(ReferenceExecutor(), made, sizes) for sizes in (SIZES, (1,) * 9 + (300, 4, 5))}
    for isa in HERE:
        executor = NativeExecutor(llvm.plainest(isa))
        codes = {False: executor.translate(made, False, 2)}
        for sizes, reference in wanted.items():
            assert_same(played(executor, made, sizes, codes=codes), reference)


@pytest.mark.parametrize("name", ["no state", "noise", "picture"])
def test_a_kernel_says_how_it_becomes_machine_code(name):
    listing = NativeExecutor().listing(kernel_of(PROGRAMS[name]), packed=False)
    assert "@series" in listing.llvm
    assert "series" in listing.assembly()


# Waves.


@pytest.mark.parametrize("start", [0.0, 3600.0])
@pytest.mark.parametrize("frequency", [0.001, 0.1, 440.0, 15_000.3, 47_999.0, 100_000.0])
@pytest.mark.parametrize("lanes", all_but(2, [2, 16, 4, 8, 32]))
def test_waves_stay_right_over_a_chunk(lanes, frequency, start):
    """As they are restarted in each chunk, no error grows."""
    made, sizes = kernel_of(f"play(sin(me@time * {frequency} * tau + 0.3), cos(me@time * {frequency}))"), (256, 1000, 3)
    assert "@cospi." in NativeExecutor(lanes=lanes).listing(made, False, 2).llvm
    expected, _ = played(ReferenceExecutor(), made, sizes, start)
    # The time itself is rounded, and so is the angle: to half a unit in the last place, by both.
    rounding = math.pi * (2 * frequency * np.spacing(start + 1) + np.spacing(2 * frequency * (start + 1)))
    for executor, tier in ((NativeExecutor(lanes=lanes), 2), (NativeExecutor(), 1)):
        sound, _ = played(executor, made, sizes, start, {False: executor.translate(made, False, tier)})
        assert np.abs(sound - expected).max() <= WAVES.absolute + rounding


def test_waves_of_uneven_times():
    """Where the time leaps, a chunk ends; where it is anything at all, each sample is one."""
    text = "play(sin(me@time * 440 * tau), cos(me@time * 3))"
    made, rng = kernel_of(text), np.random.default_rng(1)
    for times in (
        np.concatenate([np.arange(100), 5000 + np.arange(400), 80 - np.arange(30)]) / RATE,
        rng.uniform(0, 9, 300), np.full(300, 2.5), np.sort(rng.uniform(0, 1, 40)), np.arange(300)[::-1] / RATE,
        np.array([0.0, 1.0, math.inf, 2.0, math.nan, 3.0, 4.0]),
    ):  # fmt: skip
        given = Launch((1, len(times)), {"abstime": times})
        executable = NativeExecutor().load(made, {False: code_of(text, 2)})
        expected = ReferenceExecutor().load(made).planes(StateMemory(()), given)
        assert WAVES.agreement(executable.planes(StateMemory(()), given), expected).all()


@pytest.mark.parametrize(
    "text",
    [
        "play(me@time, sin(me@time * 440 * tau) * fract(me@time))",
        "y<v> = prev(y@v) * 0.9 + fract(me@time) * 0.1\nplay(me@time, y@v)",
        "spindle f(t) :: o { o = t\n for i in (1 to 9) { o += sin(t * i) } }\nplay(me@time, f(me@time + me@channel))",
    ],
    ids=["wave", "in turn", "loop"],
)
@pytest.mark.parametrize("rate", all_but(1, [44_100.0, RATE, 1000 / 3]))
def test_times_by_their_number_are_those_of_the_list(text, rate):
    """To the bit, however late it is, and however a stream is cut."""
    made = kernel_of(text)
    # After a day, a wave is as exact as its angle.
    for first, within in ((0, 1e-9), (3, 1e-9), (round(86_400 * rate), 1e-6)):
        even = Even(first, rate)
        for tier in TIERS:
            executor, sounds, codes = NativeExecutor(), [], {False: code_of(text, tier)}
            for cut in (700, 1):
                executable, memory, parts = executor.load(made, codes), StateMemory(made.slots), []
                for start in range(0, 700, cut):
                    given = launch(made, start, cut)
                    here = Even(first + start, rate)
                    coords = StreamCoords(here, cut, {"channel": 1.0})
                    parts.append(executable.planes(memory, replace(given, coords=coords, even=here)))
                sounds.append(np.concatenate(parts, axis=2)[:, 0])
            for sound in sounds:
                np.testing.assert_array_equal(sound[0], even.times(700))
            np.testing.assert_allclose(*sounds, rtol=0, atol=within)


def test_what_is_refused_is_tried_once():
    made, asked = kernel_of("play(me@time)"), []

    class Refusing(NativeExecutor):
        def first(self, *given):
            asked.append(1)
            raise llvm.LlvmFailure("no")

    executable = SeriesExecutable(made, Refusing(), {})
    for first in (0, 9):
        given = launch(made, first, 9)
        np.testing.assert_array_equal(executable.planes(StateMemory(()), given)[0, 0], given.coords["abstime"])
    assert asked == [1]


def decimal_sine(turns: Decimal) -> float:
    """The sine of this many turns, by its series."""
    getcontext().prec = 40
    pi = Decimal("3.141592653589793238462643383279502884197")
    angle = (turns - turns.to_integral_value()) * 2 * pi
    total, term = Decimal(0), angle
    for n in range(1, 40):
        total, term = total + term, -term * angle * angle / (2 * n) / (2 * n + 1)
    return float(total)


@pytest.mark.parametrize("text", ["sin(me@time * 440 * tau)", "sin(me@abssample / 48000 * 440 * tau)"])
@pytest.mark.parametrize("tier", TIERS)
def test_a_sine_is_exact_after_an_hour(tier, text):
    made = kernel_of(f"me<rate> = 48000\nplay({text})")
    first = 3600 * RATE
    times = (first + np.arange(5000)) / RATE
    given = Launch((1, 5000), {"abstime": times}, dict.fromkeys(made.uniforms, 1 / RATE))
    executor = NativeExecutor()
    executable = executor.load(made, {False: executor.translate(made, False, tier)})
    sound = executable.planes(StateMemory(()), given)[0, 0]
    expected = [decimal_sine(Decimal(first + n) * 440 / RATE) for n in range(0, 5000, 37)]
    assert np.abs(sound[::37] - expected).max() < 1e-6


# Memories, codes, threads of a performance.


def test_memories_take_turns(executor):
    """As those of two channels do."""
    made = kernel_of(PROGRAMS["echo"])
    expected, _ = played(ReferenceExecutor(), made, (40,) * 8)
    executable, memories = executor.load(made), [StateMemory(made.slots) for _ in range(12)]
    for first in range(0, 320, 40):
        for memory in memories:
            got = executable.planes(memory, launch(made, first, 40))[:, 0]
            assert SERIES.agreement(got, expected[:, first : first + 40]).all()


@pytest.mark.parametrize("name", ["one tick", "echo"])
def test_what_is_remembered_is_taken_over_and_back(name, executor):
    made = kernel_of(PROGRAMS[name])
    expected, _ = played(ReferenceExecutor(), made, (50,) * 6)
    executables = [executor.load(made) for _ in range(2)]
    memories = [StateMemory(made.slots) for _ in range(2)]
    found = []
    for step, which in enumerate((0, 1, 0, 1, 1, 0)):
        if step and which != (0, 1, 0, 1, 1, 0)[step - 1]:
            memories[which].adopt(memories[1 - which])
        found.append(executables[which].planes(memories[which], launch(made, step * 50, 50))[:, 0])
    assert SERIES.agreement(np.concatenate(found, axis=1), expected).all()


@pytest.mark.parametrize("name", ["one tick", "echo", "held"])
def test_between_ticks_state_is_read_as_by_the_reference(name, executor):
    made = kernel_of(PROGRAMS[name])
    for sizes in ((1,), (2,), (1, 1, 1), (700, 1)):
        (_, memory), (_, expected) = (played(e, made, sizes) for e in (executor, ReferenceExecutor()))
        for key, slot in made.slots and memory.slots.items():
            for ago in range(1, slot.depth + 2):
                cells = (m.ring(key)[m.cell(key, ago)] for m in (memory, expected))
                assert SERIES.agreement(*cells).all(), (key, ago, sizes)


def test_better_code_goes_on_where_the_other_was():
    made = kernel_of(PROGRAMS["echo that moves"])
    expected, _ = played(ReferenceExecutor(), made, (300,) * 4)
    executor = NativeExecutor()
    executable, memory = executor.load(made, {False: executor.translate(made, False, 1)}), StateMemory(made.slots)
    assert isinstance(executable, SeriesExecutable)
    found = []
    for step in range(4):
        if step == 2:
            executable.upgrade(executor.translate(made, False, 2))
        assert executable.tier == (1 if step < 2 else 2)
        found.append(executable.planes(memory, launch(made, step * 300, 300))[:, 0])
    assert SERIES.agreement(np.concatenate(found, axis=1), expected).all()


IN_ANOTHER = """
import pickle, sys
from weft.backends.native.executor import NativeExecutor
kernel = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(pickle.dumps(NativeExecutor().translate(kernel, False, 2), 5))
"""


def test_code_comes_from_another_process():
    made = kernel_of("play(exp2(sin(me@time * 99)) + prev(pow(me@time, 0.3)))")
    done = subprocess.run([sys.executable, "-c", IN_ANOTHER], input=pickle.dumps(made), capture_output=True, check=True)
    code = pickle.loads(done.stdout)
    assert_same(played(NativeExecutor(), made, codes={False: code}), played(ReferenceExecutor(), made))


def test_a_result_is_the_callers(executor):
    made = kernel_of(PROGRAMS["one tick"])
    executable, memory = executor.load(made), StateMemory(made.slots)
    first = executable.planes(memory, launch(made, 0, 64))
    before = first.copy()
    executable.planes(memory, launch(made, 64, 64))
    np.testing.assert_array_equal(first, before)


# The boundary.


def test_a_loop_without_an_end_is_stopped_and_told(executor):
    text = "spindle f(n) :: o { o = 0\n for i in (0 to n) { o += 1 } }\n"
    for bounds in ("mouse@x * 1e9", "me@time * 1e12 + 5000"):
        made = kernel_of(f"{text}play(f({bounds}))")
        executable, told = executor.load(made), []
        memory = StateMemory(made.slots)
        sound = executable.planes(memory, launch(made, 0, 3, loop_stopped=lambda told=told: told.append(1)))
        assert (sound == 4096).all()
        assert told == [1]
    made = kernel_of(f"{text}play(f(if mouse@x < 0.5 then 1e9 else 2))")
    executable, memory = executor.load(made), StateMemory(())
    for mouse, count in ((0.0, 1), (1.0, 1), (0.1, 2)):
        given = Launch((1, 9), {"abstime": np.arange(9.0), "mouse@x": mouse}, loop_stopped=lambda: told.append(2))
        executable.planes(memory, given)
        assert told.count(2) == count


def test_a_launch_that_does_not_fit_is_refused_in_words(executor):
    made = kernel_of(PROGRAMS["integral"])
    executable, memory = executor.load(made), StateMemory(made.slots)
    good = launch(made, 0, 9)
    executable.planes(memory, good)
    no_time, no_step = Launch((1, 9), {}, good.uniforms), Launch((1, 9), good.coords)
    short = Launch((1, 9), {**good.coords, "abstime": np.zeros(8)}, good.uniforms)
    for bad, words in ((no_time, "lacks abstime"), (no_step, "lacks dt"), (short, "the shape")):
        with pytest.raises(ValueError, match=words):
            executable.planes(memory, bad)
    with pytest.raises(ValueError, match="lacks audio"):
        executable.planes(StateMemory(()), good)
    nothing = {**good.coords, "abstime": np.zeros(0), "mouse@x": 0.0}
    with pytest.raises(ValueError, match="0×1"):
        executable.planes(memory, Launch((1, 0), nothing, good.uniforms))


def test_who_calls_others_goes_to_the_vector_machine():
    call = [("LOAD_COORD", "abstime"), ("LOAD_STRAND", StrandCall("a", "b", 1)), ("RETURN",)]
    coords, strands = (("abstime", Rate.ELEMENT),), (StrandRef("a", "b"),)
    made = kernel(call, tick="element", coords=coords, strands=strands, context="audio")
    assert domain_of(made) is None
    assert isinstance(NativeExecutor().load(made), VectorExecutable)


FAMILIES = {f"tier {number}-{name}": (isa, tier) for number, tier in TIERS.items() for name, isa in ISAS.items()}


@pytest.mark.parametrize(("isa", "tier"), all_but(len(ISAS), FAMILIES.values()), ids=FAMILIES)
def test_it_assembles_for_every_family(isa, tier):
    for text in (*PROGRAMS.values(), *(looping(*loop) for loop in LOOPS.values())):
        made = kernel_of(text)
        lanes = tier.lanes(isa, len(made.section(Rate.ELEMENT)), DOUBLE)
        module = emit_series(made, isa, lanes)
        assert llvm.machine_code(module.text, llvm.plainest(isa), tier.level)
