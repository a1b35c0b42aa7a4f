"""Sounds as lists of calls: the same samples and state as of the reference machine, on each family of processors."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from tests.support.exprs import Exprs, lowered, number_slot
from tests.support.kernels import compiled
from tests.support.series import LOOPS, LOOPS_OF_SEVERAL, PROGRAMS, assert_same, kernel_of, looping, played
from weft.backends.native import llvm
from weft.backends.native.executor import NativeExecutor
from weft.backends.vm import ReferenceExecutor
from weft.codegen.native.chunks import decides_chunks, emit_chunks
from weft.codegen.native.handlers import ONE, RECORD, TILE, handler_names, handlers
from weft.codegen.native.plan import Form
from weft.codegen.native.target import DOUBLE, ISAS, SINGLE
from weft.codegen.native.tiles import TileProgram
from weft.codegen.open_numbers import OpenKernel
from weft.ops import OPS

HERE = [isa for isa in ISAS.values() if llvm.runs_here(isa)]

TEXTS = {
    "an echo of more than a chunk": "e<v> = sin(me@time * 999) + 0.5 * delay(e@v, 300, 300)\nplay(e@v)",
    "an echo of a chunk": "e<v> = sin(me@time * 999) + 0.5 * delay(e@v, 256, 256)\nplay(e@v)",
    "an echo of less than a chunk": "e<v> = sin(me@time * 999) + 0.5 * delay(e@v, 255, 256)\nplay(e@v)",
    "the past": (
        "w<v> = sin(me@time * 99)\n"
        "play(prev(w@v), delay(w@v, 2, 300), delay(w@v, 255, 300), delay(w@v, 256, 256), delay(w@v, 300, 300))"
    ),
    "a past that varies": "w<v> = sin(me@time * 99)\nplay(delay(w@v, 2 + 3 * sin(me@time * 9), 9), w@v)",
    "filters one after another": (
        "a<v> = prev(a@v) * 0.9 + sin(me@time * 999)\nb<v> = prev(b@v) * 0.8 + a@v * a@v\n"
        "c<v> = abs(b@v) - prev(b@v)\nplay(c@v, prev(c@v), delay(a@v, 290, 300))"
    ),
    "what is stored is always the same": "c<v> = 0.25\nplay(prev(c@v), prev(me@rate))",
    "several values of a slot": (
        "f<a, b> = <sin(me@time * 9), cos(me@time * 99)>\ncache(f, 5)::p<a, b>\n"
        "play(p@a(p@k ~ 2), p@b(p@k ~ 3), p@a(p@k ~ mouse@x * 4))"
    ),
    "several values that need each other": (
        "f<a, b> = <prev(f@b) * 0.9 + 0.1, prev(f@a) * 0.8 + sin(me@time)>\nplay(f@a, f@b, delay(f@a, 300, 500))"
    ),
    "bools": (
        "play(if me@channel > 0.5 then me@time else 1, me@time > 0.001, prev(me@time) > 0.001,"
        " (me@time > 0.001 and prev(mouse@x) > 0.6))"
    ),
    "numbers": "play(0.5, me@rate, floor(me@rate / 7) % 1000, mouse@x)",
    "a loop that is always the same": (
        "spindle f(n) :: o { o = 0\n for i in (1 to n) { o += sqrt(i) } }\nplay(f(me@rate / 9000) * me@time)"
    ),
    "whole numbers between samples": "n<v> = hash(me@abssample)\nplay(noise(prev(n@v) * 9), prev(hash(n@v * 99)))",
}  # fmt: skip


def program_of(made, isa=None):
    executor = NativeExecutor(isa and llvm.plainest(isa))
    code = executor.translate(made, False)
    assert isinstance(code, TileProgram)
    return executor, {False: code}


@pytest.mark.parametrize("name", TEXTS)
def test_a_list_of_calls_plays_what_the_reference_machine_plays(name):
    made = kernel_of(TEXTS[name])
    for sizes in ((100, 1, 2, 255, 256, 257, 600), (1,) * 9 + (700, 1)):
        expected = played(ReferenceExecutor(), made, sizes)
        for isa in HERE:
            executor, codes = program_of(made, isa)
            assert_same(played(executor, made, sizes, codes=codes), expected)


NOTE = "w<v> = sin(me@time * {0}) * 0.25\nf<v> = prev(f@v) * {1} + w@v * 0.25 + {1}\nplay(f@v, w@v * 0.25)"


def test_a_list_of_calls_serves_again_for_other_constants():
    executor = NativeExecutor()
    texts = [NOTE.format(*numbers) for numbers in ((99, 0.5), (98, 0.5), (97, 0.4), (97, 0.25), (97, -0.1), (97, 0.1))]
    codes = [executor.translate(kernel_of(text), False) for text in texts]
    assert len({code.programs for code in codes}) == 1
    for text, code in zip(texts, codes, strict=True):
        made = kernel_of(text)
        assert_same(played(executor, made, codes={False: code}), played(ReferenceExecutor(), made))


def names_of(made):
    """The functions that the program of a kernel calls."""
    ((_, words),) = emit_chunks(OpenKernel.of(made, decides_chunks).kernel).programs
    return [handler_names(DOUBLE)[place] for place in np.frombuffer(words, np.int64).reshape(-1, RECORD)[1:, 0]]


def test_the_texts_need_every_kind_of_function():
    texts = (TEXTS | PROGRAMS | LOOPS_OF_SEVERAL | {name: looping(*loop) for name, loop in LOOPS.items()}).values()
    used = set().union(*(names_of(kernel_of(text)) for text in texts))
    rows = {f"{prefix}{name}" for prefix in ("", ONE) for name in OPS}
    assert {name for name in handler_names(DOUBLE) if "_fused" not in name} - used - rows == set()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("w<v> = sin(me@time * 99)\nplay(prev(w@v), delay(w@v, 300, 300))", 0),
        ("e<v> = sin(me@time * 999) + 0.5 * delay(e@v, 256, 300)\nplay(e@v)", 0),
        ("e<v> = sin(me@time * 999) + 0.5 * delay(e@v, 255, 300)\nplay(e@v)", 1),
        ("a<v> = prev(a@v) * 0.9 + me@time\nb<v> = prev(b@v) * 0.8 + me@time\nplay(a@v, b@v)", 1),
        ("a<v> = prev(a@v) * 0.9 + me@time\nb<v> = prev(b@v) * 0.8 + sin(a@v)\nplay(b@v)", 2),
        ("w<v> = sin(me@time * 99)\nplay(delay(w@v, me@time, 9))", 1),
    ],
)
def test_only_what_feedback_needs_is_computed_sample_by_sample(text, count):
    names = names_of(kernel_of(text))
    assert names.count("_samples") == count
    assert not {f"{ONE}sin", f"{ONE}sinpi"}.intersection(names)


def test_a_slot_is_read_at_several_times():
    """Of one slot: before a chunk, within one, and by feedback."""
    e = Exprs()
    slots = [number_slot("v/n", 300), number_slot("v/m", 300)]
    now, reads = e("sin", e.coord("abstime") * 99), [e.state("v/n", ticks) for ticks in (1, 3, 255, 256, 300)]
    feedback = now + e.state("v/m", 1) * 0.5
    reads += [e.state("v/m", ticks) for ticks in (2, 300)]
    made = compiled(lowered(*reads, context="audio", slots=slots, updates={"v/n": now, "v/m": feedback}))
    executor, codes = program_of(made)
    sizes = (100, 300, 1, TILE, 700)
    assert_same(played(executor, made, sizes, codes=codes), played(ReferenceExecutor(), made, sizes))


@pytest.mark.long
@pytest.mark.parametrize("floats", [SINGLE, DOUBLE], ids=lambda floats: floats.name)
def test_functions_assemble_for_processors_of_others(floats):
    for isa in ISAS.values():
        if isa not in HERE:
            assert llvm.machine_code(handlers(isa, floats), llvm.plainest(isa), 2)


def test_a_sound_too_large_for_llvm_is_a_list_of_calls():
    e = Exprs()
    total = reduce(lambda total, n: e("exp", total * -1 / n) + n, range(1, 500), e.coord("abstime"))
    made = compiled(lowered(total, context="audio"))
    executor, codes = program_of(made)
    how = executor.plan(made)
    assert (how.first, how.second) == (Form.LIST, None)
    assert "too large for LLVM" in how.reason
    assert executor.translate(made, False, 2) is None
    assert "runs as a list of calls" in executor.listing(made, packed=False).llvm
    assert_same(played(executor, made, (70, 300), codes=codes), played(ReferenceExecutor(), made, (70, 300)))
