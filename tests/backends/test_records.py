"""Frames by a record: machine code computes the numbers and makes the calls. They are what other launches draw."""

from __future__ import annotations

import ctypes
import gc
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.cuda import stand_in
from tests.support.gl import Graphics, embedded_graphics, graphics
from weft.backends.base import Coordinator, DeviceLostError, Env
from weft.backends.card import CardBackend
from weft.backends.compute.interface import ComputeDevice
from weft.backends.cuda.backend import CudaVisual
from weft.backends.gl.backend import EmbeddedGlVisual, GlVisual
from weft.backends.prologue import nowhere, prologue_code, tick as launch_of
from weft.backends.records import VARIES, CallList
from weft.codegen.kernel import Unit
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.coordinator import ProgramRunner

__all__ = ["embedded_graphics", "graphics"]

Open = Callable[[], CardBackend]

WIDE, HIGH = 31, 17


class CudaHere(CudaVisual):
    """On this processor."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.device_here, self.library = stand_in(folder)

    def opened(self, index: int) -> ComputeDevice:
        return self.device_here


@pytest.fixture(params=["cuda", "gl drawn", "gl tiled", "gles"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens a backend whose frames have records."""
    asked = request.param
    if asked == "cuda":
        return lambda: CudaHere(tmp_path)
    found: Graphics = request.getfixturevalue("embedded_graphics" if asked == "gles" else "graphics")
    if asked == "gles":
        return lambda: EmbeddedGlVisual(found)
    if asked == "gl tiled" and not found.about.able.computes:
        pytest.skip("this OpenGL has no compute shaders")
    return lambda: GlVisual(found, tiled=asked == "gl tiled")


@pytest.fixture(autouse=True)
def _every_prologue_is_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.backends.prologue._WORTH_CODE", 0)


TURNED = "#slider a<v> = 0, 1, 0.4\ndisplay(me@x * a@v, sin(a@v * 2 + me@time), 0)\n"
RECORDED = {
    "the time": "display(me@x * fract(me@time * 3), sin(me@time), hash(me@x, me@absframe))\n",
    "turned": TURNED,
    "what divides exactly": (
        "#slider a<v> = 0, 1, 0.4\nb = sin(me@time * 9)\n"
        "display(floor(me@px / a@v) / 9, floor(me@px / b) / 9, floor(me@px / 3) / 9)\n"
    ),
    "what divides": "#slider a<v> = 0, 1, 0.4\ndisplay(me@x / a@v, me@y / sin(me@time * 9), me@x * (me@y - 0.5) / 3)\n",
    "feedback": (
        "trail<v> = max(hash(me@px, me@py, me@absframe), prev(trail@v) * (0.9 + 0.01 * sin(me@time)))\n"
        "display(trail@v)\n"
    ),
    "images and their places": (
        "a<v> = mix(hash(me@px, me@py, me@absframe), prev(a@v)(me@x ~ me@x * 0.9), 0.75)\n"
        "b<v> = delay(a@v, 2, 3) * fract(me@time * 5)\ndisplay(a@v, b@v, prev(b@v))\n"
    ),
    "a number that is remembered": "display(phasor(3) * me@x)\n",
    "seen through": "display(me@x, me@y, 0.5, fract(me@time * 7))\n",
}  # fmt: skip


def unit_of(text: str) -> Unit:
    (unit,) = build(Request(Source("p.weft", text), ContextTable(), {"width": WIDE, "height": HIGH})).units
    return unit


def moment(tick: int) -> Env:
    return Env(WIDE, HIGH, tick, tick / 60, 1 / 60, {"a@v": tick / 5})


def ready(backend: CardBackend, unit: Unit, runner: Coordinator, is_code: bool = True) -> Any:
    made: Any = backend.compile_subgraph(unit, moment(0), runner)
    if is_code:
        backend.upgrade(made, prologue_code(unit.kernel))
    return made


def pixels(backend: CardBackend, compiled: Any, env: Env, runner: Coordinator) -> bytes:
    shown: Any = backend.execute_subgraph(compiled, env, runner)
    return np.asarray(shown.read()).tobytes()


def frames(backend: CardBackend, text: str, is_code: bool) -> tuple[list[bytes], bool]:
    """Some frames of a picture, and whether they were drawn by a record."""
    unit, runner = unit_of(text), ProgramRunner(ContextTable())
    compiled = ready(backend, unit, runner, is_code)
    return [pixels(backend, compiled, moment(tick), runner) for tick in range(5)], compiled._record is not None


@pytest.mark.parametrize("text", RECORDED.values(), ids=RECORDED.keys())
def test_a_record_draws_the_same(text: str, opened: Open) -> None:
    expected, by_record = frames(opened(), text, is_code=False)
    assert not by_record
    assert len(set(expected)) > 1
    assert frames(opened(), text, is_code=True) == (expected, True)


@pytest.mark.parametrize(
    "text",
    [
        "blurred = image(sin(me@x * 30 + me@time))\ndisplay(blurred(me@x ~ me@x + 0.01), blurred, 0)\n",
        (
            "spindle s() :: o { out o = 0\nfor i in (0 to 3 + 5 * me@y) { o = o + me@x * fract(me@time) } }\n"
            "s()::n<v>\ndisplay(n@v / 8)\n"
        ),
    ],
    ids=["a stage", "a loop"],
)
def test_what_needs_more_than_numbers_shows_the_same(text: str, opened: Open) -> None:
    expected, _ = frames(opened(), text, is_code=False)
    assert frames(opened(), text, is_code=True) == (expected, False)


def test_a_record_has_its_own_inputs_after_a_launch_without_it(opened: Open) -> None:
    unit, runner, backend = unit_of(TURNED), ProgramRunner(ContextTable()), opened()
    compiled = ready(backend, unit, runner)

    def at(time: float, turned: float) -> Env:
        return Env(WIDE, HIGH, abstime=time, inputs={"a@v": turned})

    first = pixels(backend, compiled, at(0.5, 0.25), runner)
    assert compiled._record is not None
    # Such a launch computes its numbers in the same place.
    env = at(0.6, 0.75)
    compiled.draw(launch_of(unit.kernel, env, runner, (HIGH, WIDE), nowhere(env)))
    assert pixels(backend, compiled, at(0.5, 0.25), runner) == first


def test_records_of_several_programs_take_turns(opened: Open) -> None:
    """What one leaves bound, attached or written does not show in another."""
    backend, runner = opened(), ProgramRunner(ContextTable())
    alone = {name: frames(opened(), text, is_code=False)[0] for name, text in RECORDED.items()}
    compiled = {name: ready(backend, unit_of(text), runner) for name, text in RECORDED.items()}
    for tick in range(5):
        shown = {name: pixels(backend, each, moment(tick), runner) for name, each in compiled.items()}
        assert shown == {name: found[tick] for name, found in alone.items()}


@pytest.mark.parametrize("is_copy", [False, True], ids=["handed on", "copied"])
def test_a_frame_that_is_ready_follows_what_is_remembered(is_copy: bool, opened: Open) -> None:
    """What a picture remembers is handed on to another one between frames, and back."""

    def shown(is_code: bool) -> list[bytes]:
        backend, runner, unit = opened(), ProgramRunner(ContextTable()), unit_of(RECORDED["images and their places"])
        own, other = (ready(backend, unit, runner, is_code) for _ in range(2))
        found, tick = [], 0
        for compiled, before, ticks in ((own, None, 3), (other, own, 2), (own, other, 2), (other, own, 1)):
            if before is not None:
                backend.adopt(compiled, [before], is_copy)
            for _ in range(ticks):
                found.append(pixels(backend, compiled, moment(tick), runner))
                tick += 1
        assert (own._record is not None) == is_code
        return found

    assert shown(True) == shown(False)


@pytest.mark.parametrize("is_code", [True, False], ids=["by a record", "without one"])
def test_a_frame_is_the_same_where_images_need_another_place(is_code: bool, opened: Open) -> None:
    """Some of them would have room where those of the program before are."""

    def shown(follows: bool) -> list[bytes]:
        backend, runner, unit = opened(), ProgramRunner(ContextTable()), unit_of(RECORDED["images and their places"])
        before, compiled = (ready(backend, unit, runner, is_code) for _ in range(2))
        pixels(backend, before, moment(0), runner)
        if follows:
            backend.allocate(compiled, [before])
        return [pixels(backend, compiled, moment(tick), runner) for tick in range(3)]

    assert shown(True) == shown(False)


def test_a_still_picture_is_drawn_once(opened: Open) -> None:
    backend, runner = opened(), ProgramRunner(ContextTable())
    compiled = ready(backend, unit_of(RECORDED["the time"]), runner)
    shown = [backend.execute_subgraph(compiled, Env(WIDE, HIGH, 1, at), runner) for at in (1.0, 1.0, 2.0)]
    assert shown[0] is shown[1]
    assert shown[1] is not shown[2]


def test_a_picture_without_the_time_stands_still(opened: Open) -> None:
    backend, runner = opened(), ProgramRunner(ContextTable())
    compiled = ready(backend, unit_of(TURNED.replace(" + me@time", "")), runner)
    shown = [
        backend.execute_subgraph(compiled, Env(WIDE, HIGH, tick, tick / 60, inputs={"a@v": turned}), runner)
        for tick, turned in enumerate((0.5, 0.5, 0.75))
    ]
    assert compiled._record is not None
    assert shown[0] is shown[1]
    assert shown[1] is not shown[2]


@pytest.mark.parametrize("is_code", [True, False], ids=["by a record", "without one"])
@pytest.mark.parametrize("moving", ["me@time", "1"], ids=["in time", "still"])
def test_a_zero_with_another_sign_is_another_input(moving: str, is_code: bool, opened: Open) -> None:
    text = (
        "#slider a<v> = -1, 1, 0.4\n#slider b<v> = -1, 1, 0.4\n"
        f"display(me@x / a@v, (1 / b@v) * me@x, fract({moving} * 0.3 + a@v + b@v))\n"
    )
    backend, runner = opened(), ProgramRunner(ContextTable())
    compiled = ready(backend, unit_of(text), runner, is_code)
    shown = []
    for tick, signs in enumerate([(1, 1), (-1, 1), (-1, -1), (1, 1)]):
        inputs = {name: sign * 0.0 for name, sign in zip(("a@v", "b@v"), signs, strict=True)}
        found = np.frombuffer(pixels(backend, compiled, Env(WIDE, HIGH, 1, tick, inputs=inputs), runner), np.uint8)
        shown.append(tuple(found.reshape(-1, 4)[0, :2].tolist()))
    assert (compiled._record is not None) == is_code
    assert shown == [(255, 255), (0, 255), (0, 0), (255, 255)]


def test_the_time_may_be_a_zero_with_another_sign(opened: Open) -> None:
    backend, runner = opened(), ProgramRunner(ContextTable())
    compiled = ready(backend, unit_of("display(me@x / sin(me@time), 0, 0)\n"), runner)
    shown = [pixels(backend, compiled, Env(WIDE, HIGH, 1, at), runner)[0] for at in (0.0, -0.0, 0.0)]
    assert compiled._record is not None
    assert shown == [255, 0, 255]


def test_a_frame_that_fails_is_drawn_again(tmp_path: Path) -> None:
    backend, runner = CudaHere(tmp_path), ProgramRunner(ContextTable())
    compiled = ready(backend, unit_of(TURNED), runner)
    shown = [pixels(backend, compiled, moment(tick), runner) for tick in (0, 1)]
    assert shown[0] != shown[1]
    backend.library.broken.add("cuLaunchKernel")
    with pytest.raises(DeviceLostError):
        backend.execute_subgraph(compiled, moment(0), runner)
    backend.library.broken.clear()
    assert [pixels(backend, compiled, moment(tick), runner) for tick in (0, 1)] == shown


@pytest.mark.parametrize("value", [1e300, -1e300, 1e-320, math.inf, math.nan], ids=str)
def test_a_number_may_have_any_size(value: float, opened: Open) -> None:
    text = (
        "#slider a<v> = 0, 1, 0.4\n"
        "display(a@v * me@x > 0, (1 / a@v) * me@x > 0, fract(me@time) + me@absframe * a@v > 1, floor(me@px / a@v))\n"
    )

    def drawn(is_code: bool) -> bytes:
        backend, runner = opened(), ProgramRunner(ContextTable())
        compiled = ready(backend, unit_of(text), runner, is_code)
        shown = pixels(backend, compiled, Env(WIDE, HIGH, 3, 0.5, inputs={"a@v": value}), runner)
        assert (compiled._record is not None) == is_code
        return shown

    assert drawn(True) == drawn(False)


def test_a_prologue_that_is_stopped_says_so(opened: Open) -> None:
    text = (
        "#slider a<v> = 0, 2e9, 0\nspindle s() :: o { out o = 0\nfor i in (0 to a@v) { o = o + 1 } }\n"
        "s()::n<v>\ndisplay(n@v * me@x)\n"
    )  # fmt: skip
    backend, runner = opened(), ProgramRunner(ContextTable())
    compiled, stopped = ready(backend, unit_of(text), runner), list[str]()
    for count in (1.0, 1e9, 1.0, 2.0, 3.0):  # some devices say so when the frame is waited for
        env = Env(WIDE, HIGH, 1, inputs={"a@v": count}, loop_stopped=stopped.append)
        backend.execute_subgraph(compiled, env, runner)
    assert compiled._record is not None
    assert len(stopped) == 1


def test_a_driver_that_fails_is_a_device_that_is_lost(tmp_path: Path) -> None:
    backend, runner = CudaHere(tmp_path), ProgramRunner(ContextTable())
    compiled = ready(backend, unit_of(RECORDED["the time"]), runner)
    backend.execute_subgraph(compiled, moment(1), runner)
    backend.library.broken.add("cuLaunchKernel")
    with pytest.raises(DeviceLostError, match=r"a launch fails \(invalid value\)"):
        backend.execute_subgraph(compiled, moment(2), runner)


def test_an_error_of_opengl_is_told_at_the_end_of_the_frame(graphics: Graphics) -> None:
    backend, runner = GlVisual(graphics), ProgramRunner(ContextTable())
    compiled = ready(backend, unit_of(RECORDED["the time"]), runner)
    backend.execute_subgraph(compiled, moment(1), runner)
    assert compiled._record is not None
    compiled._record.calls.words[1] = 10**6  # there is no such program
    with pytest.raises(DeviceLostError, match="it answers with the error 0x501"):
        backend.execute_subgraph(compiled, moment(2), runner)


def test_a_frame_that_fails_is_not_remembered(graphics: Graphics) -> None:
    def shown(fails: bool) -> list[bytes]:
        backend, runner = GlVisual(graphics), ProgramRunner(ContextTable())
        compiled = ready(backend, unit_of(RECORDED["images and their places"]), runner)
        found = [pixels(backend, compiled, moment(tick), runner) for tick in (0, 1)]
        if fails:
            words = compiled._record.calls.words
            program, words[1] = words[1], 10**6  # there is no such program
            with pytest.raises(DeviceLostError):
                backend.execute_subgraph(compiled, moment(2), runner)
            words[1] = program
        return found + [pixels(backend, compiled, moment(tick), runner) for tick in (2, 3)]

    assert shown(True) == shown(False)


def test_a_card_is_asked_for_the_fence_of_the_last_frame(graphics: Graphics, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphics, "about", replace(graphics.about, renderer="a card"))
    backend, runner = GlVisual(graphics), ProgramRunner(ContextTable())
    compiled = ready(backend, unit_of(RECORDED["the time"]), runner)
    for tick in range(1, 5):
        backend.execute_subgraph(compiled, moment(tick), runner)
        if tick == 3:  # something else follows
            graphics.barrier()
        backend.sync()
        with graphics.drawing():
            assert graphics.fences.is_passed(compiled._under_way._fences[-1])


def test_few_frames_are_under_way_and_their_fences_go_with_them(graphics: Graphics) -> None:
    from weft.backends.gl.graphics import GL

    backend, runner = GlVisual(graphics), ProgramRunner(ContextTable())
    compiled = ready(backend, unit_of(RECORDED["the time"]), runner)
    for tick in range(1, 4):
        backend.execute_subgraph(compiled, moment(tick), runner)
        backend.sync()
        assert len(compiled._under_way._fences) == 1
    for tick in range(4, 9):
        backend.execute_subgraph(compiled, moment(tick), runner)
        assert len(compiled._under_way._fences) <= 2
    fences = [*compiled._under_way._fences]
    del compiled
    gc.collect()
    backend.sync()
    with graphics.drawing():
        assert not any(GL.glIsSync(ctypes.cast(each, GL.GLsync)) for each in fences)


@pytest.mark.parametrize("renderer", ["a card", ""], ids=["as on a card", "in software"])
def test_all_that_follows_a_frame_is_waited_for_too(
    renderer: str, graphics: Graphics, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What draws here needs the processor, so it is waited for in another way.
    monkeypatch.setattr(graphics, "about", replace(graphics.about, renderer=renderer or graphics.about.renderer))
    assert graphics.about.software == (not renderer)
    backend, runner = GlVisual(graphics), ProgramRunner(ContextTable())
    compiled = ready(backend, unit_of(RECORDED["the time"]), runner)
    answers = list[bool]()
    for follows in (False, True, False):
        backend.execute_subgraph(compiled, moment(1 + len(answers)), runner)
        if follows:
            with graphics.drawing():
                later = graphics.fences.made()
        fence = later if follows else compiled._under_way._fences[-1]
        backend.sync()
        with graphics.drawing():
            answers.append(graphics.fences.is_passed(fence))
    assert answers == [True] * 3


def test_what_varies_is_given_in_its_order() -> None:
    calls = CallList([(10, 1, VARIES), (20, VARIES, 2, VARIES), (30,)])
    calls.give([7, 8, 9])
    assert [list(calls.words[at : at + 4]) for at in (0, 13, 26)] == [[10, 1, 7, 0], [20, 8, 2, 9], [30, 0, 0, 0]]
    calls.words[12], calls.words[38] = 5, 6
    assert calls.results() == [5, 0, 6]
    with pytest.raises(ValueError, match="zip"):
        calls.give([7, 8])
