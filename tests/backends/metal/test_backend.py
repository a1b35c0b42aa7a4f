"""Pictures and numbers by Metal, through metalcompute and through pyobjc. Without a Mac, a device that runs kernels on
the processor is in place of both."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.backends.test_card_sound import CUTS, SINE, Player, unit_of as sound_of
from tests.support.choices import on_processor
from tests.support.metal.device import CpuDevice
from tests.support.metal.executor import device
from tests.support.metal.library import DEVICE, either, hide
from tests.support.shown import expected_of
from tests.support.small import SIZE, alone, built, env_of, unit_of
from tests.support.together import all_but
from tests.support.tolerances import OFF_SHARE
from tests.test_patches import PICTURES_OF
from weft.backends.base import DeviceLostError, PictureHandle
from weft.backends.compute.arrays import MappedMemory
from weft.backends.compute.subgraph import ComputeProgram
from weft.backends.launch import StateMemory
from weft.backends.metal import libraries as library
from weft.backends.metal.backend import MetalAudio, MetalBackend, MetalCompute, MetalVisual
from weft.backends.registry import load_registry
from weft.backends.select import choose, contexts_of
from weft.codegen.msl import Msl
from weft.errors import Source, WeftError
from weft.names import StrandRef
from weft.runtime.compiling.stages import Request, build
from weft.runtime.films.offline import Offline
from weft.runtime.inspect.measure import find_cards, measure_card

__all__ = ["device", "either"]

TRAIL = "trail<v> = max(hash(me@px, me@py, me@absframe), prev(trail@v) * 0.9)\n"


@pytest.fixture(autouse=True)
def _by_either(either: Any) -> None:
    """All of it by both libraries."""


def test_it_says_what_there_is(device: Any) -> None:
    for backend in (MetalVisual, MetalAudio, MetalCompute):
        (found, *_) = backend.probe()
        assert found.available
        assert (found.memory_total > 0, found.platform) == (True, "Metal")
    if isinstance(device, CpuDevice):
        assert (found.name, found.memory_total, found.unified) == (DEVICE.deviceName, 2**30, True)


def test_where_it_is_not_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    hide("metalcompute", monkeypatch)
    hide("pyobjc", monkeypatch)
    (found,) = MetalVisual.probe()
    assert not found.available
    missing = "neither pyobjc's Metal nor metalcompute is installed"
    assert found.reason == (missing if sys.platform == "darwin" else "Metal exists only on Macs")
    with pytest.raises(DeviceLostError, match="visual cannot continue"):
        MetalVisual().open()


TEXTS = {
    "a picture": "display(sin(me@x * 9 + me@time), me@y, 0.5)\n",
    "feedback": f"{TRAIL}display(trail@v)\n",
    "a number that is remembered": "display(phasor(3) * me@x)\n",
    "read across": f"{TRAIL}display(trail@v)\ncompute(trail@v(me@x ~ 0.3, me@y ~ 0.4))\n",
    "numbers in a picture": "a = me@time * 3\ncompute(a)\ndisplay(a * me@x)\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_patch_shows_the_same(text: str) -> None:
    made = built(text)
    expected = Offline(made, on_processor("vector", "visual", "compute"))
    shown = Offline(made, choose(load_registry(), ["visual", "compute"], "metal"))
    for time in (0.05, 0.1):
        assert np.abs(shown.at(time).astype(int) - expected.at(time)).max() <= 1


@pytest.mark.parametrize("path", all_but(6, PICTURES_OF), ids=lambda path: path.stem)
def test_a_shipped_picture_is_the_same(path: Path) -> None:
    expected = expected_of(path)
    assert not any(MetalVisual().unsuitable(unit) for unit in expected.made.units if unit.subgraph.context == "visual")
    assert max(expected.differing(choose(load_registry(), ["visual"], "metal")["visual"])) <= OFF_SHARE


def test_a_picture_is_read_when_it_is_wanted() -> None:
    backend, unit = MetalVisual(), unit_of(f"{TRAIL}display(trail@v)\n")
    coordinator = alone()
    compiled = backend.compile_subgraph(unit, env_of(), coordinator)
    shown = [backend.execute_subgraph(compiled, env_of(tick), coordinator) for tick in range(2)]
    assert all(isinstance(picture, PictureHandle) for picture in shown)
    first, second = (picture.read() for picture in shown if isinstance(picture, PictureHandle))
    assert first.shape == (17, 31, 4)
    assert (first != second).any()


def test_what_it_costs_is_measured() -> None:
    text = "trail = prev(trail) * 0.9 + me@x\ndisplay(trail)\naudio(sin(me@time * 440 * tau))\ncompute(me@time)\n"
    registry = load_registry()
    cards = {card.context: card for card in find_cards(registry)[0] if card.backend.name.startswith("metal_")}
    assert set(cards) == {"visual", "audio", "compute"}
    for card in cards.values():
        program = build(Request(Source("p.weft", text), contexts_of(registry, {card.context: card}), SIZE))
        cost = measure_card(program, card, 0.01)
        assert cost is not None
        assert cost.timing.p50 > 0


def test_whoever_waits_for_the_device_waits_for_all_of_it(either: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "open_device", lambda index: Late(either))
    backend = MetalVisual()
    compiled: Any = backend.compile_subgraph(unit_of("display(me@x * me@time, 1, 1)\n"), env_of(), alone())
    (buffer, _) = compiled._buffers
    backend.execute_subgraph(compiled, env_of(1), alone())
    backend.sync()
    assert np.frombuffer(buffer, np.uint8)[-1] == 255


def test_what_does_not_move_is_drawn_once() -> None:
    backend, unit = MetalVisual(), unit_of("display(me@x)\n")
    compiled = backend.compile_subgraph(unit, env_of(), alone())
    first, second = (backend.execute_subgraph(compiled, env_of(tick), alone()) for tick in range(2))
    assert first is second


def test_code_is_made_beforehand_and_can_be_sent() -> None:
    unit = unit_of("display(me@x * me@time)\n")
    code = MetalVisual().translate(unit)
    compiled = MetalVisual().compile_subgraph(replace(unit, code=code), env_of(), alone())
    assert "kernel void visual_display(" in compiled.dump()
    assert MetalVisual().translate(unit, tier=2) is None


def test_what_it_cannot_do_is_told_beforehand() -> None:
    lines = [f"t{k} = prev(t{k}) * 0.5 + me@x * {k}" for k in range(Msl.most_buffers)]
    unit = unit_of("\n".join([*lines, f"display(({' + '.join(f't{k}' for k in range(Msl.most_buffers))}) / 99)\n"]))
    assert MetalVisual().translate(unit) is None
    problem = "Metal cannot compute visual/display: it needs 33 buffers, and 31 is the limit"
    with pytest.raises(WeftError, match=problem):
        MetalVisual().compile_subgraph(unit, env_of(), alone())


# --- memory -------------------------------------------------------------------------------------------------------


def ticked(backend: MetalBackend, text: str, ticks: int, **size: int) -> Any:
    compiled = backend.compile_subgraph(unit_of(text), env_of(**size), alone())
    for tick in range(ticks):
        backend.execute_subgraph(compiled, env_of(tick, **size), alone())
    return compiled


@pytest.mark.parametrize("copy", [False, True])
def test_memory_goes_on_over_a_save(copy: bool) -> None:
    backend = MetalVisual()
    old = ticked(backend, f"{TRAIL}display(trail@v)\n", 3)
    (key,) = old.memory.slots
    remembered = np.array(old.memory.planes(key, 1))
    new = backend.compile_subgraph(unit_of(f"{TRAIL}display(1 - trail@v)\n"), env_of(), alone())
    assert backend.adopt(new, [old], copy) == [key]
    np.testing.assert_array_equal(new.memory.planes(key, 1), remembered)
    backend.execute_subgraph(new, env_of(3), alone())
    assert (new.memory.planes(key, 1) >= 0.9 * remembered - 1e-6).all()
    if copy:
        np.testing.assert_array_equal(old.memory.planes(key, 1), remembered)


def test_memory_goes_on_in_another_size() -> None:
    backend = MetalVisual()
    old = ticked(backend, f"{TRAIL}display(trail@v)\n", 3)
    (key,) = old.memory.slots
    new = ticked(backend, f"{TRAIL}display(trail@v)\n", 0, width=20, height=9)
    backend.adopt(new, [old])
    assert new.memory.planes(key, 1).shape == (1, 9, 20)
    assert new.memory.planes(key, 1).mean() == pytest.approx(old.memory.planes(key, 1).mean(), abs=0.05)


def test_processor_and_device_take_each_others_place() -> None:
    backend = MetalVisual()
    old = ticked(backend, f"{TRAIL}display(trail@v)\n", 3)
    (key,) = old.memory.slots
    here = StateMemory(old.unit.kernel.slots, (17, 31))
    here.adopt(backend.remembered(old))
    np.testing.assert_array_equal(here.planes(key, 1), old.memory.planes(key, 1))
    new = ticked(backend, f"{TRAIL}display(trail@v)\n", 0)
    assert new.memory.adopt(here) == [key]
    assert isinstance(new.memory, MappedMemory)
    np.testing.assert_array_equal(np.frombuffer(new.memory.buffers[key], np.float32), new.memory.ring(key).reshape(-1))
    np.testing.assert_array_equal(new.memory.planes(key, 1), here.planes(key, 1))


@pytest.mark.parametrize("count", [1, 50, 5000])
def test_a_strand_at_any_number_of_points(count: int) -> None:
    backend = MetalVisual()
    old = ticked(backend, f"{TRAIL}display(trail@v)\ncompute(trail@v(me@x ~ 0.25, me@y ~ 0.75))\n", 3)
    (ref,) = old.unit.points
    assert ref == StrandRef("trail", "v")
    x = np.linspace(0.01, 0.99, count)
    values = backend.get_value_at(ref, old, {"x": x, "y": 0.5}, env_of(2), alone())
    assert values.shape == (count,)
    here = StateMemory(old.unit.kernel.slots, (17, 31))
    here.adopt(old.memory, copy=True)
    one_by_one = [backend.get_value_at(ref, old, {"x": at, "y": 0.5}, env_of(2), alone()) for at in x[:20]]
    np.testing.assert_allclose(values[:20], one_by_one, atol=1e-5)


# --- sound --------------------------------------------------------------------------------------------------------


class Late:
    """A device whose launches are done later on, by a thread; who forgets a run waits for it."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self.buffer = device.buffer

    def kernel(self, text: str) -> Any:
        made = self._device.kernel(text)
        return SimpleNamespace(function=lambda name: self._late(made.function(name)))

    @staticmethod
    def _late(function: Callable[..., object]) -> Callable[..., object]:
        def launched(count: int, *buffers: Any) -> object:
            return LateRun(lambda: function(count, *buffers))

        return launched


class LateRun:
    def __init__(self, work: Callable[[], object]) -> None:
        self._timer = Timer(0.003, work)
        self._timer.start()

    def __del__(self) -> None:
        self._timer.join()


def test_samples_that_take_a_while_are_waited_for(either: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "audio(sin(me@time * (440 + me@channel) * tau), 0.25)"
    wanted = Player(MetalAudio(), sound_of(text)).play(*CUTS)
    monkeypatch.setattr(library, "open_device", lambda index: Late(either))
    np.testing.assert_array_equal(Player(MetalAudio(), sound_of(text)).play(*CUTS), wanted)


# --- failures -----------------------------------------------------------------------------------------------------


def test_a_refused_kernel_names_the_line_of_the_patch() -> None:
    unit = unit_of("a = sin(me@x * 4) + me@y\ndisplay(a * a)\n")
    code: Any = MetalVisual().translate(unit)
    drawn = code.grid.drawn
    broken = replace(drawn, text=drawn.text.replace("float a = ", "float a = nowhere + "))
    with pytest.raises(WeftError, match=r"Metal refuses the program for p\.weft:1: .*nowhere"):
        ComputeProgram(library.MetalDevice(0), unit.kernel, broken)


def test_a_launch_that_fails_is_a_loss() -> None:
    backend = MetalVisual()
    compiled: Any = backend.compile_subgraph(unit_of("display(me@x * me@time)\n"), env_of(), alone())
    compiled._buffers[0] = None
    with pytest.raises(DeviceLostError, match="visual cannot continue: a launch fails"):
        backend.execute_subgraph(compiled, env_of(), alone())


def test_a_sound_whose_launch_fails_is_a_loss() -> None:
    player = Player(MetalAudio(), sound_of(SINE))
    player.play(512)
    player.compiled.sounding._program._kernel = None
    with pytest.raises(DeviceLostError, match="audio cannot continue: a launch fails"):
        player.play(4096)


def test_memory_that_is_lacking_for_a_sound_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(given: Any) -> Any:
        raise MemoryError("full")

    player = Player(MetalAudio(), sound_of(SINE))
    monkeypatch.setattr(player.compiled.sounding._device, "own", SimpleNamespace(buffer=refuse))
    with pytest.raises(DeviceLostError, match=r"audio cannot continue: there is no memory for \d+ samples \(full\)"):
        player.play(512)


def test_a_loop_that_is_stopped_says_so() -> None:
    text = "spindle f(x) :: o { o = 0; for i in (0 to 9e9 * x) { o += 1 } }\ndisplay(f(me@x) * me@time)\n"
    backend = MetalVisual()
    told: list[str] = []
    compiled = backend.compile_subgraph(unit_of(text), env_of(), alone())
    for tick in range(2):
        backend.execute_subgraph(compiled, env_of(tick, loop_stopped=told.append), alone())
    assert told == ["visual/display"]


def test_there_are_devices_only_where_there_is_a_mac() -> None:
    assert MetalVisual.may_have_hardware() == (sys.platform == "darwin")
