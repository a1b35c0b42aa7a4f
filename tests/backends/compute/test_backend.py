"""Pictures and numbers by OpenCL and WebGPU, and by CUDA where there is a card: what they show, remember, hand over and
refuse."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.backends.test_card_sound import SINE, Player, unit_of as sound_of
from tests.support.choices import on_processor
from tests.support.compute import nvidia, opencl, wgpu
from tests.support.shown import expected_of
from tests.support.small import alone, built, env_of, unit_of
from tests.support.together import all_but
from tests.support.tolerances import OFF_SHARE
from tests.test_patches import PICTURES_OF
from weft.backends.base import DeviceLostError, PictureHandle
from weft.backends.card import CardAudio
from weft.backends.compute.backend import ComputeBackend
from weft.backends.compute.subgraph import ComputeProgram
from weft.backends.cuda.backend import CudaAudio, CudaCompute, CudaVisual
from weft.backends.launch import StateMemory
from weft.backends.opencl.backend import ClAudio, ClCompute, ClVisual
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.backends.wgpu.backend import WgpuAudio, WgpuCompute, WgpuVisual
from weft.errors import WeftError
from weft.names import StrandRef
from weft.runtime.films.offline import Offline
from weft.runtime.program.fallback import recover
from weft.runtime.program.program import ProgramLoader

__all__ = ["nvidia", "opencl", "wgpu"]


class Family(NamedTuple):
    """The backends of a device, by the name that means all of them, and the fixture that opens it."""

    name: str
    device: str
    visual: type[ComputeBackend]
    audio: type[CardAudio]
    compute: type[ComputeBackend]


FAMILIES = (
    Family("opencl", "opencl", ClVisual, ClAudio, ClCompute),
    Family("wgpu", "wgpu", WgpuVisual, WgpuAudio, WgpuCompute),
    Family("cuda", "nvidia", CudaVisual, CudaAudio, CudaCompute),
)  # fmt: skip


@pytest.fixture(params=FAMILIES, ids=lambda family: family.name)
def family(request: pytest.FixtureRequest) -> Family:
    """Backends whose device is there."""
    found: Family = request.param
    request.getfixturevalue(found.device)
    return found


TRAIL = "trail<v> = max(hash(me@px, me@py, me@absframe), prev(trail@v) * 0.9)\n"
SHOWN = f"{TRAIL}display(trail@v)\n"


def ticked(backend: ComputeBackend, text: str, ticks: int, **size: int) -> Any:
    compiled = backend.compile_subgraph(unit_of(text), env_of(**size), alone())
    for tick in range(ticks):
        backend.execute_subgraph(compiled, env_of(tick, **size), alone())
    return compiled


# --- devices ----------------------------------------------------------------------------------------------------------


def test_it_says_what_there_is(family: Family) -> None:
    for backend in (family.visual, family.audio, family.compute):
        (found, *_) = backend.probe()
        assert (found.available, found.platform) == (True, family.visual.library)
        assert 0 <= found.memory_free <= found.memory_total


def test_a_device_that_is_not_there_is_a_loss(family: Family) -> None:
    with pytest.raises(DeviceLostError, match="visual cannot continue: the device 97 cannot be opened"):
        family.visual(97).open()


def test_the_processors_own_code_comes_before_a_device_on_the_processor(family: Family) -> None:
    if all(device.software for device in family.visual.probe()):
        found = choose(load_registry(), ["visual", "audio", "compute"])
        assert not any(choice.name.startswith(family.name) for choice in found.values())


# --- pictures and numbers ---------------------------------------------------------------------------------------------

TEXTS = {
    "feedback": SHOWN,
    "a number that is remembered": "display(phasor(3) * me@x)\n",
    "read across": f"{SHOWN}compute(trail@v(me@x ~ 0.3, me@y ~ 0.4))\n",
    "a stage": "blurred = image(sin(me@x * 30 + me@time))\ndisplay(blurred(me@x ~ me@x + 0.01), blurred, 0)\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_patch_shows_the_same(text: str, family: Family) -> None:
    made = built(text)
    expected = Offline(made, on_processor("vector", "visual", "compute"))
    shown = Offline(made, choose(load_registry(), ["visual", "compute"], family.name))
    for time in (0.05, 0.1, 0.15):
        assert np.abs(shown.at(time).astype(int) - expected.at(time)).max() <= 1


# A driver takes up to a second for each program. All pictures are compared where all tests look for what is new.
SOME = PICTURES_OF if os.environ.get("WEFT_PARITY") else PICTURES_OF[::3]


@pytest.mark.parametrize("path", all_but(1, SOME), ids=lambda path: path.stem)
def test_a_shipped_picture_is_the_same(path: Path, family: Family) -> None:
    expected = expected_of(path)
    drawn = [unit for unit in expected.made.units if unit.subgraph.context == "visual"]
    assert not any(map(family.visual().unsuitable, drawn))
    assert max(expected.differing(choose(load_registry(), ["visual"], family.name)["visual"])) <= OFF_SHARE


@pytest.mark.parametrize("kept", [0, 3])
def test_pictures_are_lent_while_the_next_ones_are_drawn(kept: int, family: Family) -> None:
    backend, coordinator = family.visual(), alone()
    compiled = backend.compile_subgraph(unit_of(SHOWN), env_of(), coordinator)
    offline = Offline(built(SHOWN), on_processor("vector", "visual"))
    awaited, begun, addresses = deque[Any](), deque[Callable[[], Any]](), set[int]()
    lent = deque[Any]()
    for tick in range(12):
        picture = backend.execute_subgraph(compiled, env_of(tick), coordinator)
        assert isinstance(picture, PictureHandle)
        awaited.append(offline.at(tick / 60).astype(int))
        begun.append(picture.lending())
        if tick:
            lent.append(begun.popleft()())
            addresses.add(lent[-1].ctypes.data)
        if len(lent) > kept:
            assert np.abs(lent.popleft() - awaited.popleft()).max() <= 1
    # Memory is used again when it has come back: for both pictures that are drawn in turns, what is under way and lent.
    assert len(addresses) <= 4 + kept or family.name == "opencl"


def test_a_picture_can_be_copied_where_others_want_it(family: Family) -> None:
    backend, coordinator = family.visual(), alone()
    compiled = backend.compile_subgraph(unit_of(SHOWN), env_of(), coordinator)
    picture = backend.execute_subgraph(compiled, env_of(), coordinator)
    assert isinstance(picture, PictureHandle)
    copied, larger = picture.copier(), np.zeros((18, 32, 4), np.uint8)
    copied(larger[:-1, :-1])
    np.testing.assert_array_equal(larger[:-1, :-1], picture.read())


def test_a_loop_that_is_stopped_says_so(family: Family) -> None:
    text = "spindle f(x) :: o { o = 0; for i in (0 to 9e9 * x) { o += 1 } }\ndisplay(f(me@x) * me@time)\n"
    backend, told = family.visual(), list[str]()
    compiled = backend.compile_subgraph(unit_of(text), env_of(width=4, height=2), alone())
    for tick in range(3):
        backend.execute_subgraph(compiled, env_of(tick, 4, 2, loop_stopped=told.append), alone())
    assert set(told) == {"visual/display"}


@pytest.mark.parametrize("count", [1, 50, 5000])
def test_a_strand_at_any_number_of_points(count: int, family: Family) -> None:
    backend = family.visual()
    old = ticked(backend, f"{SHOWN}compute(trail@v(me@x ~ 0.25, me@y ~ 0.75))\n", 3)
    x = np.linspace(0.01, 0.99, count)
    values = backend.get_value_at(StrandRef("trail", "v"), old, {"x": x, "y": 0.5}, env_of(2), alone())
    here = on_processor("vector", "visual")["visual"].make()
    same = here.compile_subgraph(old.unit, env_of(), alone())
    here.adopt(same, [old], copy=True)
    expected = here.get_value_at(StrandRef("trail", "v"), same, {"x": x, "y": 0.5}, env_of(2), alone())
    np.testing.assert_allclose(values, expected, atol=1e-5)


@pytest.mark.parametrize("count", [1, 5000])
def test_no_program_is_made_while_a_picture_plays(
    monkeypatch: pytest.MonkeyPatch, count: int, family: Family
) -> None:
    backend = family.visual()
    compiled = backend.compile_subgraph(unit_of(TEXTS["read across"]), env_of(), alone())

    def refuse(*_: object) -> None:
        raise AssertionError("a frame waits for a driver")

    monkeypatch.setattr(type(backend.device()[0]), "compile", refuse)
    backend.execute_subgraph(compiled, env_of(), alone())
    coords = {"x": np.linspace(0.01, 0.99, count), "y": 0.5}
    assert np.isfinite(backend.get_value_at(StrandRef("trail", "v"), compiled, coords, env_of(), alone())).all()


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("copy", [False, True])
def test_memory_goes_on_over_a_save(copy: bool, family: Family) -> None:
    backend = family.visual()
    old = ticked(backend, SHOWN, 3)
    (key,) = old.memory.slots
    remembered = old.memory.planes(key, 1)
    new = backend.compile_subgraph(unit_of(f"{TRAIL}display(1 - trail@v)\n"), env_of(), alone())
    assert backend.adopt(new, [old], copy) == [key]
    np.testing.assert_array_equal(new.memory.planes(key, 1), remembered)
    backend.execute_subgraph(new, env_of(3), alone())
    assert (new.memory.planes(key, 1) >= 0.9 * remembered - 1e-6).all()
    if copy:
        np.testing.assert_array_equal(old.memory.planes(key, 1), remembered)
    else:  # and back, as after a text that failed
        assert backend.adopt(old, [new]) == [key]
        np.testing.assert_array_equal(old.memory.planes(key, 1), new.memory.planes(key, 1))


def test_memory_goes_on_in_another_size_as_on_the_processor(family: Family) -> None:
    backend = family.visual()
    old = ticked(backend, SHOWN, 3)
    (key,) = old.memory.slots
    new = ticked(backend, SHOWN, 0, width=20, height=9)
    here = StateMemory(new.unit.kernel.slots, (9, 20))
    here.adopt(old.memory.read())
    backend.adopt(new, [old])
    np.testing.assert_array_equal(new.memory.planes(key, 1), here.planes(key, 1))


def test_what_was_one_number_goes_on_at_every_pixel(family: Family) -> None:
    backend = family.visual()
    old = ticked(backend, "n<v> = prev(n@v) + 1\ndisplay(n@v * me@x)\n", 3)
    new = backend.compile_subgraph(unit_of("n<v> = prev(n@v) + me@x\ndisplay(n@v)\n"), env_of(), alone())
    (key,) = old.memory.slots
    backend.allocate(new, [old])
    assert backend.adopt(new, [old]) == [key]
    assert (new.memory.planes(key, 1) == 3).all()


def test_processor_and_device_take_each_others_place(family: Family) -> None:
    backend = family.visual()
    old = ticked(backend, SHOWN, 3)
    (key,) = old.memory.slots
    here = StateMemory(old.unit.kernel.slots, (17, 31))
    here.adopt(backend.remembered(old))
    np.testing.assert_array_equal(here.planes(key, 1), old.memory.planes(key, 1))
    new = ticked(backend, SHOWN, 0)
    assert new.memory.adopt(here) == [key]
    np.testing.assert_array_equal(new.memory.planes(key, 1), here.planes(key, 1))


def test_what_is_not_finite_is_found_and_begins_again(family: Family) -> None:
    backend = family.visual()
    text = "n<v> = prev(n@v) + me@x / (me@absframe - 1)\ndisplay(n@v)\n"
    compiled = ticked(backend, text, 1)
    (key,) = compiled.memory.slots
    assert [backend.is_finite(compiled, key) for _ in range(2)] == [True, True]
    backend.execute_subgraph(compiled, env_of(1), alone())
    # The answer is that of the look before.
    assert [backend.is_finite(compiled, key) for _ in range(2)] == [True, False]
    assert backend.begin_again(compiled, [key]) == [key]
    assert not compiled.memory.planes(key, 1).any()
    assert backend.begin_again(compiled, [key]) == []


def test_copies_of_arrays_are_waited_for(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    """`weft bench` measures them so."""
    backend = family.visual()
    device, waits = backend.device()[0], list[int]()
    wait = type(device).wait
    monkeypatch.setattr(type(device), "wait", lambda self: (waits.append(1), wait(self))[1])
    pool = backend.pool(4096)
    source, target = (pool.take((8,), np.float32) for _ in range(2))
    backend.upload(np.arange(8, dtype=np.float32), source)
    pool.copy(source, target)
    backend.sync()
    assert waits
    np.testing.assert_array_equal(backend.download(target), np.arange(8))


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_refused_kernel_names_the_line_of_the_patch(family: Family) -> None:
    unit = unit_of("a = sin(me@x * 4) + me@y\ndisplay(a * a)\n")
    code: Any = family.visual().translate(unit)
    drawn = code.grid.drawn
    broken = replace(drawn, text=re.sub(r"(float a|let a: f32) = ", r"\1 = nowhere + ", drawn.text))
    backend = family.visual()
    with pytest.raises(WeftError, match=rf"{backend.library} refuses the program for p\.weft:1: .*nowhere"):
        ComputeProgram(backend.device()[0], unit.kernel, broken)


def test_a_picture_that_no_device_has_room_for_is_a_loss_in_words(family: Family) -> None:
    with pytest.raises(DeviceLostError, match="there is no memory for a picture of 1048576×1048576"):
        family.visual().compile_subgraph(unit_of("display(me@x)\n"), env_of(width=1 << 20, height=1 << 20), alone())


@pytest.mark.parametrize("name", ["feedback", "a stage"])
def test_a_picture_with_images_is_not_drawn_in_another_size_than_it_has_memory_for(name: str, family: Family) -> None:
    """As is asked of a program that fades out while another of another size plays."""
    backend = family.visual()
    compiled = ticked(backend, TEXTS[name], 1)
    for width, height in ((33, 17), (9, 5)):
        for raw in (False, True):
            with pytest.raises(ValueError, match=f"{width}×{height} on memory for 31×17"):
                backend.try_out(compiled, env_of(1, width, height), alone(), raw)
    shown: Any = backend.execute_subgraph(compiled, env_of(1), alone())
    assert shown.read().shape == (17, 31, 4)


def test_a_picture_that_remembers_none_is_drawn_in_any_size(family: Family) -> None:
    text = "n = prev(n) + 1\ndisplay(me@x, n / 9, min(me@y, me@frame))\n"
    backend = family.visual()
    compiled = ticked(backend, text, 1)
    for tick, (width, height) in enumerate(((64, 48), (5, 3), (31, 17)), 1):
        shown: Any = backend.try_out(compiled, env_of(tick, width, height), alone())
        x, y = (np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height
        expected = np.broadcast_to(x, (height, width)), np.full((height, width), (tick + 1) / 9), y[:, np.newaxis]
        for channel, wanted in enumerate(expected):
            assert np.abs(shown.read()[..., channel] / 255 - wanted).max() < 0.004


def test_a_sound_whose_launch_fails_is_a_loss(family: Family) -> None:
    player = Player(family.audio(), sound_of(SINE))
    player.play(512)
    player.compiled.sounding._program._kernel = None
    with pytest.raises(DeviceLostError, match="audio cannot continue: a launch fails"):
        player.play(4096)


def test_the_show_goes_on_without_a_device_that_is_lost(family: Family) -> None:
    def shown(lost: int | None) -> list[np.ndarray[Any, Any]]:
        loader = ProgramLoader(choose(load_registry(), ["visual"], family.name))
        loaded = loader.prepare(built("n<v> = prev(n@v) + me@x / 8\ndisplay(n@v)\n").compiled, (31, 17))
        found = []
        for tick in range(4):
            env = env_of(tick)
            if tick == lost:
                (running,) = loaded.runner.parts
                compiled: Any = running.compiled
                compiled.grid._kernel = None
                with pytest.raises(DeviceLostError) as failure:
                    loaded.runner.run(env)
                assert recover(loader, loaded, failure.value, env, {})
            found += [result.array.copy() for result in loaded.runner.run(env)]
        origins = [change.origin for change in loader.assignment.changes()]
        assert origins == ([] if lost is None else [f"{family.name}_visual"])
        return found

    for whole, mended in zip(shown(None), shown(2), strict=True):
        assert np.abs(whole.astype(int) - mended).max() <= 1
