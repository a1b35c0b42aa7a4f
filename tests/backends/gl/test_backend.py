"""Pictures and numbers by OpenGL, as a performance has them: what they show, remember, give to others and refuse."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from PIL import Image

from tests.codegen.test_glsl_pictures import MEMORIES
from tests.support.choices import ANYWHERE
from tests.support.exprs import image_slot, number_slot
from tests.support.forks import ran
from tests.support.gl import Graphics, graphics, that_computes
from tests.support.shown import expected_of
from tests.support.together import all_but, examples
from tests.support.tolerances import OFF_SHARE
from tests.test_patches import PICTURES_OF
from weft.backends.base import DeviceLostError, Env, PictureHandle, as_array
from weft.backends.card import ProgramWriter
from weft.backends.cpu import CpuCode
from weft.backends.gl import drawing
from weft.backends.gl.backend import EmbeddedGlVisual, GlVisual
from weft.backends.gl.drawing import GlCompiled
from weft.backends.gl.egl import Context, GraphicsError
from weft.backends.launch import StateMemory, in_size
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.errors import Source, WeftError
from weft.ir.expr import StateSlot
from weft.names import StrandRef
from weft.runtime.compiling.compiler import Compiler, Saved
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.coordinator import pictures_of
from weft.runtime.program.program import LoadedProgram, ProgramLoader, Setup

__all__ = ["graphics", "that_computes"]

pytestmark = pytest.mark.usefixtures("graphics")

SIZE = (32, 18)

MOVING = "display(fract(me@time * 7), me@x, me@y)\n"
REMEMBERING = "t<v> = mix(hash(me@px, me@py, me@absframe), prev(t@v), 0.75)\ndisplay(t@v)\n"
LONG = "display(delay(hash(me@px, me@py, me@absframe), 3, 4))\n"
COUNTING = "n = integrate(1)\nt<v> = prev(t@v) * 0.5 + n * 0.01\ndisplay(t@v)\n"


def loader_of(asked: str) -> ProgramLoader:
    return ProgramLoader(choose(load_registry(), ["visual", "compute"], asked))


def built(text: str) -> CompiledProgram:
    return build(Request(Source("test.weft", text), load_registry().contexts, permissions=ANYWHERE)).compiled


def env_of(loaded: LoadedProgram, number: int, **inputs: float) -> Env:
    return Env(
        *loaded.size, tick=number, abstime=number / 60, dt=1 / 60, inputs={**inputs, **loaded.compiled.starts},
        pictures=loaded.pictures,
    )  # fmt: skip


def frame(loaded: LoadedProgram, number: int, **inputs: float) -> NDArray[Any]:
    shown = pictures_of(loaded.runner.run(env_of(loaded, number, **inputs))).get("")
    assert shown is not None
    return shown.array


def frames(loaded: LoadedProgram, ticks: range) -> list[NDArray[Any]]:
    return [frame(loaded, number).copy() for number in ticks]


def same(found: NDArray[Any], expected: NDArray[Any]) -> bool:
    return float((np.abs(found.astype(int) - expected) > 1).mean()) <= OFF_SHARE


# --- pictures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", all_but(6, PICTURES_OF), ids=lambda path: path.stem)
def test_a_shipped_picture_is_the_same(path: Path) -> None:
    expected = expected_of(path)
    assert not any(GlVisual().unsuitable(unit) for unit in expected.made.units if unit.subgraph.context == "visual")
    assert max(expected.differing(choose(load_registry(), ["visual"], "gl")["visual"])) <= OFF_SHARE


SHARING = ("dancers", "film", "sampler", "scope", "strand")
"""Shipped pictures that share what changes along one axis: samples of pictures and sounds, and values of other
subgraphs, too."""


@pytest.mark.parametrize("path", [path for path in PICTURES_OF if path.stem in SHARING], ids=lambda path: path.stem)
@pytest.mark.usefixtures("that_computes")
def test_by_tiles_a_shipped_picture_is_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[bool] = []
    monkeypatch.setattr(drawing, "tiles_are_faster", lambda graphics, place: chosen.append(True) or True)
    assert max(expected_of(path).differing(choose(load_registry(), ["visual"], "gl")["visual"])) <= OFF_SHARE
    assert chosen


def test_of_what_it_draws_no_machine_code_is_made() -> None:
    drawn, computed = (loader_of(asked).translate_best(built(MOVING)).units for asked in ("gl", "native"))
    assert not any(isinstance(unit.code, CpuCode) for unit in drawn)
    assert all(isinstance(unit.code, CpuCode) for unit in computed)


TILED = {
    "moves": MOVING,
    "remembers": REMEMBERING,
    "remembers more": LONG,
    "counts": COUNTING,
    "grey": "display(me@x * me@y)\n",
    "images of a tick": (
        "i<v> = image(hash(me@px, me@py, me@absframe))\nj<v> = image(i@v(me@x ~ 1 - me@x) * prev(j@v))\n"
        "display(j@v(me@y ~ me@y * 0.7), i@v, me@x)\n"
    ),
    "levels of images": (
        "i<v> = image(hash(me@px, me@py, me@absframe))\nj<v> = image(i@v(me@x ~ 1 - me@x) * 0.5 + prev(k@v), 1)\n"
        "k<v> = image(j@v(me@y ~ me@y * 0.7), 2)\ndisplay(j@v(me@y ~ me@y * 0.7), k@v, i@v(me@x ~ 0.9 * me@x))\n"
    ),
    "seen through": "display(me@x, me@y, 0.5, fract(me@time * 7))\n",
    "no number": "display(0 / floor(me@x * 2), me@y, 2)\n",
    "shares columns and rows": (
        "row = sin(me@y * 40 + me@time) * cos(me@y * 13)\ncolumn = exp(sin(me@x * 50)) / 3\n"
        "checks = if column > 0.4 then hash(floor(me@y * 9), 3) else 0\ndisplay(row * column, checks, column * me@y)\n"
    ),
    "shares loops": (
        "spindle f(a, b) :: <v, w> { v = a\nw = b\nfor i in (0 to 40) { v = sin(v + i / 9)\nw += v / 50\n"
        "for j in (1 to 30) { w = w * 0.9 + v / j } } }\nf(me@x * 3, 0.2)::c<v, w>\nf(0.1, me@y)::r<v, w>\n"
        "display(c@v * me@y, r@w + me@x * c@w, r@v * c@v * 0.5 + 0.5)\n"
    ),
    "has names of what is shared": (
        "lane = sin(me@y * 40) * exp(me@y)\ncolumns_floats = exp(sin(me@x * 50))\nown_rows_floats = lane * 0.5 + me@x\n"
        "at = columns_floats + me@y\nbarrier = sin(own_rows_floats)\ndisplay(at, barrier, lane)\n"
    ),
    "loops too long": (
        "spindle s() :: o { out o = 0\nfor i in (0 to 1e6 * me@y) { o = o + me@x / 1e5 } }\n"
        "s()::n<v>\ndisplay(n@v)\n"
    ),
}


@pytest.mark.parametrize("text", TILED.values(), ids=TILED)
@pytest.mark.usefixtures("that_computes")
def test_by_tiles_a_picture_is_the_same_as_drawn(text: str) -> None:
    compiled = built(text)
    (unit,) = compiled.units
    stopped: dict[bool, list[str]] = {}
    shown: dict[bool, list[NDArray[Any]]] = {}
    for tiled in (False, True):
        runner = loader_of("vm").prepare(compiled, SIZE).runner
        backend = GlVisual(tiled=tiled)
        env = Env(*SIZE, dt=1 / 60, loop_stopped=stopped.setdefault(tiled, []).append)
        drawn = backend.compile_subgraph(unit, env, runner)
        assert ("imageStore(pixel" in drawn.dump()) == tiled
        ticks = (env._replace(tick=tick, abstime=tick / 60) for tick in range(5))
        shown[tiled] = [as_array(backend.execute_subgraph(drawn, tick, runner)).copy() for tick in ticks]
    assert stopped[True] == stopped[False]
    assert all(same(found, expected) for found, expected in zip(shown[True], shown[False], strict=True))


def test_a_picture_stays_on_the_card_until_somebody_reads_it() -> None:
    loaded = loader_of("gl").prepare(built(MOVING), SIZE)
    shown = pictures_of(loaded.runner.run(env_of(loaded, 3))).get("")
    assert shown is not None
    assert isinstance(shown.values, PictureHandle)
    assert shown.values.shape == (SIZE[1], SIZE[0], 4)
    assert same(shown.values.read(), frame(loader_of("vm").prepare(built(MOVING), SIZE), 3))


def test_a_picture_stays_as_it_is_while_the_next_one_is_drawn() -> None:
    loaded = loader_of("gl").prepare(built(MOVING), SIZE)
    kept, other = (pictures_of(loaded.runner.run(env_of(loaded, number))).get("") for number in (1, 2))
    assert kept is not None
    assert other is not None
    assert same(kept.array, frame(loader_of("vm").prepare(built(MOVING), SIZE), 1))
    assert not np.array_equal(kept.array, other.array)


@pytest.mark.parametrize("kept", [0, 3])
def test_pictures_are_lent_while_the_next_ones_are_drawn(kept: int) -> None:
    lends("gl", kept)


def lends(device: str, kept: int) -> None:
    """Draws on a device while some of the pictures before are still looked at."""
    drawing, expected = (loader_of(asked).prepare(built(MOVING), SIZE) for asked in (device, "vm"))
    awaited, begun, addresses = frames(expected, range(12)), deque[Callable[[], NDArray[Any]]](), set[int]()
    lent = deque[NDArray[Any]]()
    for number in range(12):
        shown = pictures_of(drawing.runner.run(env_of(drawing, number))).get("")
        assert shown is not None
        assert isinstance(shown.values, PictureHandle)
        begun.append(shown.values.lending())
        if number:
            lent.append(begun.popleft()())
            addresses.add(lent[-1].ctypes.data)
        if len(lent) > kept:
            assert same(lent.popleft(), awaited[number - 1 - kept])
    # Memory is used again when it has come back: for both pictures that are drawn in turns, what is under way and lent.
    assert len(addresses) <= 4 + kept


def test_a_picture_that_was_lent_outlives_its_program() -> None:
    drawing, expected = (loader_of(asked).prepare(built(MOVING), SIZE) for asked in ("gl", "vm"))
    shown = pictures_of(drawing.runner.run(env_of(drawing, 3))).get("")
    assert shown is not None
    assert isinstance(shown.values, PictureHandle)
    pixels = shown.values.lending()()
    del shown, drawing
    gc.collect()
    other = loader_of("gl").prepare(built(MOVING), (SIZE[0] + 2, SIZE[1]))
    frame(other, 5)
    assert same(pixels, frame(expected, 3))


def test_a_picture_in_which_nothing_moves_is_drawn_once() -> None:
    loaded = loader_of("gl").prepare(built("display(me@x, mouse@x, 0.5)\n"), SIZE)
    first, second, third = (
        pictures_of(loaded.runner.run(env_of(loaded, number, **{"mouse@x": x}))).get("")
        for number, x in ((0, 0.25), (1, 0.25), (2, 0.75))
    )
    assert first is not None
    assert second is not None
    assert third is not None
    assert second.values is first.values
    assert third.values is not first.values
    assert third.array[0, 0, 1] > first.array[0, 0, 1]


def test_a_sampled_picture_is_the_one_that_was_loaded(tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (7, 9, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "grain.png")
    text = f'load("{tmp_path}/grain.png")::img<r, g, b>\ndisplay(img@r(me@x ~ me@y, me@y ~ me@x), img@g, img@b)\n'
    expected, found = (frame(loader_of(asked).prepare(built(text), SIZE), 0) for asked in ("vm", "gl"))
    assert same(found, expected)
    assert found[..., :3].std() > 1


def test_a_loop_that_is_stopped_says_so() -> None:
    text = "spindle f(x) :: o { o = 0\n for i in (0 to 9e9 * x) { o += 0.0001 } }\ndisplay(f(me@x))\n"
    loaded = loader_of("gl").prepare(built(text), (4, 2))
    told: list[str] = []
    loaded.runner.run(env_of(loaded, 0)._replace(loop_stopped=told.append))
    assert len(told) == 1


def test_outputs_are_given_as_they_are_if_asked_for() -> None:
    text = "display(me@x * 7 - 3)\n"
    loaded = loader_of("gl").prepare(built(text), SIZE)
    ((_, planes),) = loaded.runner.try_out(env_of(loaded, 0), raw=True)
    assert planes is not None
    centres = (np.arange(SIZE[0]) + 0.5) / SIZE[0]
    np.testing.assert_allclose(as_array(planes)[0, 0], centres * 7 - 3, rtol=1e-6)


# --- what is remembered -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [REMEMBERING, LONG, COUNTING], ids=["feedback", "a delay", "a number"])
@pytest.mark.parametrize("asked", [("gl", "vm"), ("vm", "gl"), ("gl", "gl")], ids=" to ".join)
def test_memory_goes_on_from_one_backend_to_another(text: str, asked: tuple[str, str]) -> None:
    whole = frames(loader_of("vm").prepare(built(text), SIZE), range(8))
    old, new = (loader_of(name).prepare(built(text), SIZE) for name in asked)
    frames(old, range(5))
    for part, other in zip(new.runner.parts, old.runner.parts, strict=True):
        old_memory = other.backend.remembered(other.compiled) if asked[0] != asked[1] else other.compiled.memory
        part.compiled.memory.adopt(old_memory)
    for found, expected in zip(frames(new, range(5, 8)), whole[5:], strict=True):
        assert same(found, expected)


@pytest.mark.parametrize("text", [REMEMBERING, LONG], ids=["feedback", "a delay"])
def test_memory_goes_on_in_another_size(text: str) -> None:
    larger = (48, 30)
    found = []
    for asked in ("vm", "gl"):
        loader = loader_of(asked)
        before = loader.prepare(built(text), SIZE)
        frames(before, range(5))
        after = loader.prepare(built(text), larger, before)
        loader.take_over(after, before)
        found.append(frames(after, range(5, 8)))
    for expected, drawn in zip(*found, strict=True):
        assert same(drawn, expected)


def test_a_copy_leaves_the_program_before_running_on() -> None:
    loader = loader_of("gl")
    before = loader.prepare(built(REMEMBERING), SIZE)
    frames(before, range(5))
    after = loader.prepare(built(REMEMBERING + "// another text\n"), SIZE)
    assert loader.take_over(after, before, copy=True)
    ((leaving,), (entering,)) = (frames(loaded, range(5, 6)) for loaded in (before, after))
    assert np.array_equal(leaving, entering)
    ((leaving,), (entering,)) = (frames(loaded, range(6, 7)) for loaded in (before, after))
    assert np.array_equal(leaving, entering)


def test_what_the_card_remembers_can_be_read(graphics: Graphics) -> None:
    loaded = loader_of("gl").prepare(built(LONG), SIZE)
    expected = loader_of("vm").prepare(built(LONG), SIZE)
    for each in (loaded, expected):
        frames(each, range(6))
    (part,), (other,) = loaded.runner.parts, expected.runner.parts
    memory = part.backend.remembered(part.compiled)
    assert type(memory) is StateMemory
    for key, slot in memory.slots.items():
        for ticks_ago in range(1, slot.depth + 1):
            np.testing.assert_allclose(
                memory.planes(key, ticks_ago), other.compiled.memory.planes(key, ticks_ago), atol=1e-6
            )


def test_images_are_resampled_as_the_processor_does_it(graphics: Graphics) -> None:
    from weft.backends.gl.memory import GlMemory

    loaded = loader_of("vm").prepare(built(REMEMBERING), SIZE)
    (slot,) = loaded.runner.parts[0].unit.kernel.slots
    old = StateMemory((slot,), SIZE)
    old.ring(slot.key)[...] = np.random.default_rng(2).random(old.ring(slot.key).shape)
    for shape in ((7, 5), (SIZE[0] * 2, SIZE[1] * 3), SIZE):
        with graphics.drawing():
            there, resized = (GlMemory(graphics, (slot,), each) for each in (SIZE, shape))
        there.adopt(old)
        resized.adopt(there, copy=True)
        np.testing.assert_allclose(
            resized.planes(slot.key, 1), in_size(old.planes(slot.key, 1), shape), atol=1e-5, strict=True
        )


def test_what_was_one_number_goes_on_at_every_pixel(graphics: Graphics) -> None:
    from weft.backends.gl.memory import GlMemory

    with graphics.drawing():
        old, new = (GlMemory(graphics, (slot,), SIZE) for slot in (number_slot("n", 3), image_slot("n", 2)))
    for tick in range(5):
        old.ring("n")[old.cell("n")] = tick
        old.advance()
    new.allocate([old])
    assert new.adopt(old) == ["n"]
    assert [(new.planes("n", ticks_ago) == 5 - ticks_ago).all() for ticks_ago in (1, 2, 3)] == [True] * 3


def test_state_goes_to_a_card_and_back_by_what_was_allocated(graphics: Graphics) -> None:
    from weft.backends.gl.memory import GlMemory

    (slot,) = loader_of("vm").prepare(built(REMEMBERING), SIZE).runner.parts[0].unit.kernel.slots
    first, second, back = (StateMemory((slot,), SIZE) for _ in range(3))
    for seed, each in enumerate((first, second)):
        each.ring(slot.key)[...] = np.random.default_rng(seed).random(each.ring(slot.key).shape)
        each.advance(3)
    with graphics.drawing():
        there = GlMemory(graphics, (slot,), SIZE)
    there.allocate([first])
    there.adopt(first)
    back.allocate([there])
    there.adopt(second)  # what is read is what it remembers then, not when it was made ready
    ring = back.ring(slot.key)
    back.adopt(there.read(back))
    assert back.ring(slot.key) is ring
    for ticks_ago in range(1, slot.depth + 2):
        for found in (there, back):
            np.testing.assert_array_equal(found.planes(slot.key, ticks_ago), second.planes(slot.key, ticks_ago))


def test_a_memory_that_will_continue_a_lost_card_is_allocated() -> None:
    """That the card is lost is told when it is read, or when it draws."""
    from weft.backends.gl.egl import Egl
    from weft.backends.gl.memory import GlMemory

    egl = Egl()
    lost = Graphics(egl.context(), egl.context())
    (slot,) = loader_of("vm").prepare(built(REMEMBERING), SIZE).runner.parts[0].unit.kernel.slots
    with lost.drawing():
        there = GlMemory(lost, (slot,), SIZE)
        there.complete()
    lost.close()
    here = StateMemory((slot,), SIZE)
    here.allocate([there])
    assert not here.ring(slot.key).any()


@pytest.mark.timeout(20)
def test_a_driver_that_answers_nothing_is_not_waited_for(graphics: Graphics) -> None:
    """So it is with a context that is lost."""
    from weft.backends.gl import programs

    asked: list[object] = []
    with graphics.drawing():
        if not programs.parallel.glMaxShaderCompilerThreadsKHR:
            pytest.skip("this driver does not compile in threads of its own")
        programs._wait_for(lambda *given: asked.append(given), 1)
    assert len(asked) == 1


# Each remembers, and reads what the one before it is now, and what it was elsewhere.
ROW = "r0<v> = hash(me@px, me@py, me@absframe)\n" + "".join(
    f"r{at}<v> = prev(r{at}@v) * 0.5 + r{at - 1}@v * {at % 3 / 3} + prev(r{at - 1}@v)(me@x ~ 1 - me@x) * 0.2\n"
    for at in range(1, 21)
)  # fmt: skip


@pytest.mark.parametrize("tiled", [False, True], ids=["drawn", "tiled"])
@pytest.mark.usefixtures("that_computes")
def test_a_large_picture_is_cut_into_programs_and_a_change_reaches_few(tiled: bool) -> None:
    texts = [f"// {at}\n" * at + ROW.replace("* 0.5 + r18", change) + "display(r20@v, r10@v, r1@v)\n"
             for at, change in enumerate(("* 0.5 + r18", "/ 2 - r18"))]  # fmt: skip
    backend = GlVisual(tiled=tiled)
    programs = []
    for text in texts:
        (unit,) = (compiled := built(text)).units
        runner = loader_of("vm").prepare(compiled, SIZE).runner
        drawn = backend.compile_subgraph(unit, Env(*SIZE, dt=1 / 60), runner)
        assert isinstance(drawn, GlCompiled)
        programs.append([each._program.number for each in (*drawn.grid.before, drawn.grid)])
        for tick in range(5):
            env = Env(*SIZE, tick=tick, abstime=tick / 60, dt=1 / 60)
            shown = as_array(backend.execute_subgraph(drawn, env, runner))
            (result,) = runner.run(env)
            assert same(shown, result.array)
    assert len(programs[0]) > 4
    changed = sum(one != other for one, other in zip(*programs, strict=True))
    assert 0 < changed <= 2, "the one with the value, and perhaps one for which it was stored"


@pytest.mark.parametrize("text", all_but(6, [*MEMORIES.values(), *TILED.values()]))
@pytest.mark.usefixtures("that_computes")
def test_what_is_cut_shows_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.codegen.clike.pieces._WHOLE", 0)
    monkeypatch.setattr("weft.codegen.clike.pieces._STORES", 1)
    compiled = built(text)
    found, expected = (frames(loader_of(asked).prepare(compiled, SIZE), range(5)) for asked in ("gl", "vm"))
    assert all(map(same, found, expected))


def a_slot(key: str, depth: int = 1) -> StateSlot:
    return StateSlot(key, "prev", depth, 1, True)


def test_what_is_remembered_stays_where_it_is_while_there_is_room(graphics: Graphics) -> None:
    from weft.backends.gl.memory import GlMemory

    def memory_of(*keys: str, before: GlMemory | None = None) -> GlMemory:
        with graphics.drawing():
            made = GlMemory(graphics, map(a_slot, keys), SIZE)
        made.allocate([before] if before is not None else [])
        if before is not None:
            made.adopt(before)
        with graphics.drawing():
            made.complete()
        return made

    def places(memory: GlMemory) -> dict[str, tuple[int, int]]:
        with graphics.drawing():
            return {key: (int(memory.layers(key).number), memory.first_layer(key)) for key in memory.slots}

    first = memory_of("a", "b")
    second = memory_of("a", "b", "c", before=first)
    assert places(first).items() <= places(second).items()
    assert len({number for number, _ in places(second).values()}) == 1
    many = memory_of("a", "b", "c", *map(str, range(30)), before=second)
    assert not places(second).items() & places(many).items()
    assert len({*places(many).values()}) == 33
    assert len({number for number, _ in places(many).values()}) == 1


STEPS = st.lists(
    st.tuples(st.sets(st.sampled_from("abcdefghij")), st.sampled_from([SIZE, (7, 5)]), st.booleans(), st.booleans()),
    min_size=2, max_size=8,
)  # fmt: skip


@given(STEPS, st.integers(0, 3))
@settings(max_examples=examples(60))
def test_images_move_as_in_the_memory_of_the_processor(
    graphics: Graphics, steps: list[tuple[set[str], tuple[int, int], bool, bool]], seed: int
) -> None:
    """Programs that remember other strands follow one another; some play on beside their copy, or come back."""
    from weft.backends.gl.memory import GlMemory

    chance = np.random.default_rng(seed)
    past: list[tuple[GlMemory, StateMemory]] = []
    for names, shape, copy, is_back in steps:
        if is_back and len(past) > 1:
            now, before = past[-2], past[-1]
        else:
            numbers = ((name, "abcdefghij".index(name)) for name in sorted(names))
            slots = [a_slot(name, depth=at % 4 + 1) for name, at in numbers]
            with graphics.drawing():
                now = GlMemory(graphics, slots, shape), StateMemory(slots, shape)
            before = past[-1] if past else None
            now[0].allocate([before[0]] if before else [])
        if before is not None:
            assert now[0].adopt(before[0], copy) == now[1].adopt(before[1], copy)
        past.append(now)
        own, there = now
        for _ in range(2):
            for key in own.slots:
                image = chance.random(there.ring(key).shape[1:], np.float32)
                there.ring(key)[there.cell(key)] = image
                with graphics.drawing():
                    own.layers(key).fill(int(own.cell(key)), image)
            own.advance()
            there.advance()
        for key, slot in own.slots.items():
            for ticks_ago in range(1, slot.depth + 2):
                expected = there.planes(key, ticks_ago)
                np.testing.assert_allclose(own.planes(key, ticks_ago), expected, atol=1e-5, strict=True)


@pytest.mark.parametrize("lost", [np.nan, np.inf, -np.inf, 3e38, 0.0])
def test_a_card_finds_what_is_not_finite_in_what_it_remembers(graphics: Graphics, lost: float) -> None:
    from weft.backends.gl.memory import Surveyor
    from weft.backends.gl.textures import TextureArray

    images = np.zeros((4, 90, 150), np.float32)
    images[2, 89, 149] = lost
    with graphics.drawing():
        array = TextureArray(graphics, images.shape[1:], 3 + len(images))
        _, layers = array.take([3, len(images)])
        layers.fill(0, images)
        surveys = [graphics.own(Surveyor).begin(layers, *each) for each in ((0, 2), (2, 1), (1, 3), (3, 1))]
        np.testing.assert_array_equal(layers.read(), images)
        assert [survey.is_finite() for survey in surveys] == [True, *[bool(np.isfinite(lost))] * 2, True]


# --- between subgraphs --------------------------------------------------------------------------------------------


def test_numbers_read_the_picture_of_the_same_tick() -> None:
    text = "ramp<v> = prev(ramp@v) + me@x\ndisplay(ramp@v)\ncompute(ramp@v(me@x ~ mouse@x), ramp@v(me@x ~ 0.25))\n"
    loaded = loader_of("gl").prepare(built(text), SIZE)
    for number in range(3):
        results = loaded.runner.run(env_of(loaded, number, **{"mouse@x": 0.5}))
        (values,) = (result.array.reshape(-1) for result in results if result.context == "compute")
        assert values == pytest.approx([0.5 * (number + 1), 0.25 * (number + 1)], rel=1e-5)


@pytest.mark.parametrize("count", [1, 5000])
def test_points_of_a_picture_are_read_at_once(count: int) -> None:
    text = "t<v> = prev(t@v) * 0.5 + me@x * me@y\n"
    places = np.random.default_rng(3).uniform(-0.2, 1.2, (2, count))
    found = []
    for asked in ("vm", "gl"):
        compiled = built(text + "display(t@v)\ncompute(t@v(me@x ~ mouse@x, me@y ~ 0.5))\n")
        loaded = loader_of(asked).prepare(compiled, SIZE)
        frames(loaded, range(3))
        asked_for = {StrandRef("t", "v"): {"x": places[0], "y": places[1]}}
        found.append(loaded.runner.values(asked_for, env_of(loaded, 2))[StrandRef("t", "v")])
    np.testing.assert_allclose(found[1], found[0], atol=1e-5)


def test_a_picture_is_given_numbers() -> None:
    text = "n = sin(me@time) * 0.5 + 0.5\ncompute(n)\nload_ = n\ndisplay(n * me@x, prev(n), 0)\n"
    expected, found = (frames(loader_of(asked).prepare(built(text), SIZE), range(3)) for asked in ("vm", "gl"))
    for each, other in zip(found, expected, strict=True):
        assert same(each, other)


# --- numbers that are turned ----------------------------------------------------------------------------------------

TURNED = """\
spindle ring(d, w) :: v {{ out v = smoothstep(w, 0.0{0}, abs(d - 0.{0})) }}
soft = image(me@x * 0.{0} + sin(me@y * {0}))
trail<v> = max(ring(hypot(me@x - 0.5, me@y - 0.{0}), 0.2), prev(trail@v)(me@x ~ me@x * 0.9{0}) * 0.{0})
display(trail@v, soft(me@x ~ 1 - me@x), delay(trail@v * 0.{0}, 2, 4))
compute(trail@v(me@x ~ 0.{0}, me@y ~ mouse@y))
"""


def test_a_number_that_is_turned_links_no_program_and_shows_what_a_new_build_shows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from weft.backends.gl import programs as gl_programs

    def made_of(*numbers: int) -> list[CompiledProgram]:
        compiler = Compiler.of(Setup("p.weft", asked="gl"))
        made = [compiler.compile(Saved(TURNED.format(n).encode(), 0.0)).compiled for n in numbers]
        return [each for each in made if each is not None]

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first, *others = made_of(3, 4, 7, 5, 8)
    (alone,) = made_of(8)
    linked, programs = gl_programs.linked, list[object]()

    def linking(*given: Any, **more: Any) -> Any:
        programs.append(given)
        return linked(*given, **more)

    monkeypatch.setattr(gl_programs, "linked", linking)
    # What plays does not write programs, which would hold up its frames: the process that compiles has written them.
    monkeypatch.setattr(ProgramWriter, "code", None)
    loader = loader_of("gl")
    loaded = loader.prepare(first, SIZE)
    assert (count := len(programs)) > 0
    for each in others:
        loaded = loader.prepare(each, SIZE, loaded)
    assert len(programs) == count
    expected = frames(loader_of("gl").prepare(alone, SIZE), range(4))
    for mine, its in zip(frames(loaded, range(4)), expected, strict=True):
        np.testing.assert_array_equal(mine, its)


def test_a_number_that_is_turned_keeps_the_machine_code_of_the_prologue() -> None:
    text = "a = sin(me@time * {0}) + cos(me@time) * {0}\nb = fract(a * 3) - sqrt(abs(a * {0}))\ndisplay(me@x * b)\n"
    first, other = (built(text.format(number)) for number in ("0.3", "0.4"))
    loader = loader_of("gl")
    before = loader.prepare(first, SIZE)
    assert before.tier() == 1
    codes, _ = loader.improve(before.improvable)
    before.upgrade(codes)
    loaded, alone = loader.prepare(other, SIZE, before), loader_of("gl").prepare(other, SIZE)
    assert (loaded.tier(), alone.tier()) == (2, 1)
    for mine, its in zip(frames(loaded, range(4)), frames(alone, range(4)), strict=True):
        np.testing.assert_array_equal(mine, its)


# --- what it refuses, and failures ----------------------------------------------------------------------------------


def test_a_picture_that_is_too_large_is_refused(graphics: Graphics) -> None:
    (unit,) = built(MOVING).units
    runner = loader_of("vm").prepare(built(MOVING), SIZE).runner
    with pytest.raises(WeftError) as refused:
        GlVisual(graphics).compile_subgraph(unit, Env(graphics.about.side + 1, 4), runner)
    assert refused.value.diagnostics[0].code == "picture-too-large"


def test_a_text_that_the_driver_refuses_names_the_line_of_the_patch(graphics: Graphics) -> None:
    from weft.backends.gl.programs import ShaderProgram
    from weft.codegen.glsl import fragment

    plasma = next(path for path in PICTURES_OF if path.stem == "plasma")
    (unit,) = expected_of(plasma).made.units
    shader = fragment(unit.kernel)
    at = next(at for at, place in enumerate(shader.places) if place)
    lines = shader.text.splitlines()
    lines[at] = f"oops {lines[at]}"
    with graphics.drawing(), pytest.raises(WeftError) as refused:
        ShaderProgram(graphics, replace(shader, text="\n".join(lines)))
    (problem,) = refused.value.diagnostics
    assert problem.code == "driver-refused"
    assert shader.places[at] in problem.message


@pytest.mark.parametrize("kind", [GlVisual, EmbeddedGlVisual])
def test_a_context_that_is_lost_is_told_as_a_device_that_is_lost(kind: type[GlVisual | EmbeddedGlVisual]) -> None:
    from weft.backends.gl.egl import Egl
    from weft.backends.gl.graphics import Graphics

    egl = Egl(api=kind.api)
    preparing, drawing = egl.context(), egl.context()
    lost = False

    def enter() -> None:
        if lost:
            raise GraphicsError("the card was pulled out")
        drawing.enter()

    backend = kind(Graphics(Context(enter, drawing.leave), preparing))
    (unit,) = built(MOVING).units
    runner = loader_of("vm").prepare(built(MOVING), SIZE).runner
    compiled = backend.compile_subgraph(unit, Env(*SIZE), runner)
    shown = backend.execute_subgraph(compiled, Env(*SIZE), runner)
    lost = True
    later = Env(*SIZE, tick=1, abstime=0.5)
    for call in (lambda: backend.execute_subgraph(compiled, later, runner), lambda: as_array(shown)):
        with pytest.raises(DeviceLostError, match="pulled out") as failure:
            call()
        assert failure.value.context == "visual"


@pytest.mark.parametrize("function", ["glGenVertexArrays", "glGenFramebuffers", "glDeleteTextures", "glActiveTexture"])
def test_a_call_that_fails_leaves_the_context(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its lock: another thread may enter."""
    from weft.backends.gl.egl import Egl
    from weft.backends.gl.graphics import GL, DriverError, Graphics

    egl = Egl()
    within, (first, second) = list[str](), (egl.context(), egl.context())
    graphics = Graphics(first)

    def enter() -> None:
        within.append("context")
        second.enter()

    def leave() -> None:
        within.pop()
        second.leave()

    graphics.draw_in(Context(enter, leave))
    graphics.discard("texture", 2**20)

    def fails(*given: object) -> None:
        raise DriverError("it lacks the function")

    with monkeypatch.context() as patch:
        patch.setattr(GL, function, fails)
        with pytest.raises((DriverError, GraphicsError), match="it lacks"), graphics.drawing():
            pass
    assert within == []
    entered = list[object]()

    def draw() -> None:
        with graphics.drawing() as place:
            entered.append(place)

    other = threading.Thread(target=draw, daemon=True)
    other.start()
    other.join(20)
    assert len(entered) == 1


def test_threads_that_make_programs_ready_do_not_change_contexts() -> None:
    from weft.backends.gl.egl import Egl
    from weft.backends.gl.graphics import Graphics

    egl = Egl()
    preparing, moments = egl.context(), list[str]()

    def enter() -> None:
        moments.append("enter")
        preparing.enter()

    def leave() -> None:
        moments.append("leave")
        preparing.leave()

    graphics = Graphics(egl.context(), Context(enter, leave))
    backend = GlVisual(graphics)
    (unit,) = built(MOVING).units
    runner = loader_of("vm").prepare(built(MOVING), SIZE).runner
    for _ in range(3):
        with ThreadPoolExecutor(1) as thread:
            compiled = thread.submit(backend.compile_subgraph, unit, Env(*SIZE), runner).result()
        backend.execute_subgraph(compiled, Env(*SIZE), runner)
    assert moments == ["enter"]
    graphics.close()
    assert moments == ["enter", "leave"]
    with pytest.raises(DeviceLostError, match="closed"):
        backend.compile_subgraph(unit, Env(*SIZE), runner)
    assert graphics._preparing is not None
    with pytest.raises(GraphicsError, match="closed"):  # what came a moment too late
        graphics._preparing.do(lambda _: None)


def test_errors_of_the_driver_are_told(graphics: Graphics) -> None:
    from weft.backends.gl.graphics import GL

    with pytest.raises(GraphicsError, match="error"), graphics.drawing():
        GL.glEnable(0xFFFF)
    with graphics.drawing():
        pass


# --- devices and processes ------------------------------------------------------------------------------------------


def test_the_device_is_named() -> None:
    device, *_ = GlVisual.probe()
    assert device.available
    assert device.name
    assert device.driver
    assert device.compute is not None
    assert device.compute.startswith("OpenGL ")


def test_devices_are_numbered(graphics: Graphics) -> None:
    """EGL opens each of them by its number, and no other one."""
    from weft.backends.gl.egl import Egl

    found = GlVisual.probe()
    assert [device.index for device in found] == list(range(len(found)))
    for device in found:
        assert Egl(device.index).context()
    with pytest.raises(GraphicsError, match="has no device 99"):
        Egl(99)


def test_without_libraries_the_device_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "OpenGL").mkdir()
    (tmp_path / "OpenGL" / "__init__.py").write_text("raise TypeError('libGL is not here')\n")
    code = (
        "from weft.backends.gl.backend import GlVisual\n"
        "(device,) = GlVisual.probe()\nprint(device.available, device.reason, device.remedy)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": f"{tmp_path}:{Path.cwd()}", "PATH": ""},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert ended.stdout.startswith("False OpenGL is missing on this machine (libGL is not here)")
    assert "install" in ended.stdout


@pytest.mark.long
def test_nothing_is_opened_where_programs_are_tried_out() -> None:
    code = (
        "import sys\n"
        "from weft.runtime.program.program import Setup\nfrom weft.runtime.compiling.compiler import Compiler\n"
        "from weft.runtime.hands.clock import Moment\nfrom weft.runtime.compiling.compiler import mistakes\n"
        "from weft.runtime.compiling.worker import Saved\n"
        "from weft.backends.registry import load_registry\nfrom weft.backends.select import choose\n"
        "names = [spec.name for spec in load_registry().contexts]\n"
        "setup = Setup('p.weft', choices=choose(load_registry(), names, 'visual=gl,compute=gl'))\n"
        f"saved = Saved({REMEMBERING.encode()!r} + b'compute(t@v(me@x ~ 0.5, me@y ~ 0.5))', 0.0, None)\n"
        "compiler = Compiler.of(setup)\nmade = compiler.compile(saved)\n"
        "print([type(unit.code).__name__ for unit in made.compiled.units])\n"
        "print(mistakes(made.compiled, compiler.loader, Moment(), made.places), 'OpenGL' in sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    codes, verdict = ended.stdout.splitlines()
    assert codes == "['ShaderCode', 'ShaderCode']"
    assert verdict == "() False"


def test_a_card_can_only_be_there_if_its_driver_shows() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("elsewhere there is always one")
    shows = [*Path("/dev").glob("dri/render*"), *Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("dxg")]
    assert GlVisual.may_have_hardware() == bool(shows)


def test_eval_and_render_draw_by_it(tmp_path: Path) -> None:
    patch = tmp_path / "p.weft"
    patch.write_text("s<v> = me@x * 3 + me@y\nt<v> = prev(t@v) * 0.5 + me@x\ndisplay(s@v / 4, t@v)\n".replace(
        ", t@v)", ", t@v, 0)"))  # fmt: skip

    def weft(*arguments: str) -> str:
        done = ran(arguments, tmp_path, os.environ)
        assert done.returncode == 0, done.stderr
        return done.stdout

    values = json.loads(weft("eval", str(patch), "t", "--grid", "8x2", "--ticks", "2", "--backend", "gl", "--json"))
    centres = (np.arange(8) + 0.5) / 8
    np.testing.assert_allclose(values["values"], np.tile(centres * 1.75, 2), rtol=1e-6)
    for asked in ("gl", "vm"):
        weft("render", str(patch), "-o", str(tmp_path / f"{asked}.npy"), "--duration", "0.05", "--size", "16x9",
             "--backend", f"visual={asked}")  # fmt: skip
    found, expected = (np.load(tmp_path / f"{asked}.npy") for asked in ("gl", "vm"))
    np.testing.assert_allclose(found, expected, atol=1e-6, strict=True)
