"""The processor draws a new picture until the driver of a card has made its program, and memory continues."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gl import graphics
from tests.support.performance import Performance
from weft.backends import hardware
from weft.backends.base import Env, as_array
from weft.backends.card import ShaderCode
from weft.backends.gl.textures import Buffer, Layers
from weft.codegen.kernel import Unit
from weft.runtime.compiling.compiler import Compiler, Saved
from weft.runtime.compiling.worker import CompileWorker
from weft.runtime.hands.clock import Clock
from weft.runtime.hands.inputs import Inputs
from weft.runtime.live.events import EventLog, Reporter
from weft.runtime.live.session import Limits, Session
from weft.runtime.program.coordinator import pictures_of
from weft.runtime.program.fallback import grow, moves, settle
from weft.runtime.program.files import SetList
from weft.runtime.program.program import LoadedProgram, ProgramLoader, Programs, Setup
from weft.runtime.screens.screen import Screen, Shown
from weft.runtime.sound.player import Sound
from weft.runtime.sound.renderer import SoundOptions

__all__ = ["graphics"]

pytestmark = pytest.mark.usefixtures("graphics")

SIZE = (24, 16)
COUNTING = """\
n = integrate(1)
trail<v> = max(prev(trail@v)(me@x ~ me@x * 0.9) * 0.95, me@x * {0} + n * 0.01)
display(trail@v, me@x{1}, fract(n * 0.1))
"""
REMEMBERS_MUCH = "".join(f"m{n}<v> = delay(me@x * me@time * 0.{n}, 9, 9)\n" for n in range(11, 31)) + (
    f"display({' + '.join(f'm{n}@v' for n in range(11, 31))}, me@time, 0)\n"
)


class Stage:
    """A compiler and a loader, as the two processes of a performance have them."""

    def __init__(self, bridges: bool = True, asked: str = "visual=gl", size: tuple[int, int] = SIZE) -> None:
        self.size = size
        self.setup = Setup("p.weft", asked=asked, settings={"width": size[0], "height": size[1]}, bridges=bridges)
        self.compiler = Compiler.of(self.setup)
        self.loader: ProgramLoader = self.setup.open()[1]
        self.loaded: LoadedProgram | None = None
        self.ticks = 0

    def save(self, text: str) -> None:
        compiled = self.compiler.compile(Saved(text.encode(), 0.0)).compiled
        assert compiled is not None
        before, self.loaded = self.loaded, self.loader.prepare(compiled, self.size, self.loaded)
        self.loader.take_over(self.loaded, before)

    def move(self, number: int = 1) -> list[bool]:
        """Makes what is bridged ready on the card, and moves it there; whether that went well."""
        units = self.compiler.translate_bridged(self.playing.bridged, number)
        moved = [settle(self.loader, move) for move in moves(self.loader, self.playing, units)]
        self.compiler.arrived(number)
        return moved

    @property
    def playing(self) -> LoadedProgram:
        assert self.loaded is not None
        return self.loaded

    @property
    def draws(self) -> str:
        (part,) = self.playing.runner.parts
        slot = self.loader.assignment.candidate_of(part.backend)
        assert slot is not None
        return slot.choice.name

    def frames(self, count: int) -> list[NDArray[np.uint8]]:
        found = []
        for tick in range(self.ticks, self.ticks + count):
            env = Env(*self.size, tick=tick, abstime=tick / 60, dt=1 / 60, pictures=self.playing.pictures)
            shown = pictures_of(self.playing.runner.run(env))[""]
            assert shown is not None
            found.append(np.array(shown.array))
        self.ticks += count
        return found


def assert_alike(found: Iterable[NDArray[np.uint8]], expected: Iterable[NDArray[np.uint8]]) -> None:
    for mine, its in zip(found, expected, strict=True):
        assert np.abs(mine.astype(int) - its).max() <= 1


def test_what_is_remembered_goes_to_the_card_and_back() -> None:
    bridged, alone = Stage(), Stage(bridges=False)
    for stage in (bridged, alone):
        stage.save(COUNTING.format(0.3, ""))
    assert (bridged.draws, bridged.playing.bridging) == ("native", ("visual/display",))
    assert (alone.draws, alone.playing.bridging) == ("gl_visual", ())
    assert_alike(bridged.frames(4), alone.frames(4))
    assert bridged.move() == [True]
    assert (bridged.draws, bridged.playing.bridging) == ("gl_visual", ())
    assert_alike(bridged.frames(4), alone.frames(4))
    for stage in (bridged, alone):
        stage.save(COUNTING.format(0.3, " * me@y"))
    assert bridged.draws == "native", "another program has to be made"
    assert_alike(bridged.frames(4), alone.frames(4))


def test_what_will_be_uploaded_has_its_room_before_the_frame_that_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    stage.save(COUNTING.format(0.3, ""))
    units = stage.compiler.translate_bridged(stage.playing.bridged, 1)
    (move,) = moves(stage.loader, stage.playing, units)
    rooms: list[Buffer | None] = []
    fill = Layers.fill

    def noting(layers: Layers, first: int, images: NDArray[np.float32], by_way_of: Buffer | None = None) -> None:
        rooms.append(by_way_of)
        fill(layers, first, images, by_way_of)

    monkeypatch.setattr(Layers, "fill", noting)
    assert settle(stage.loader, move)
    assert len(rooms) > 0
    assert None not in rooms, "a driver takes a while to find memory"


def test_a_number_is_turned_on_the_card_once_the_driver_is_ready() -> None:
    stage = Stage()
    stage.save(COUNTING.format(0.3, ""))
    units = stage.compiler.translate_bridged(stage.playing.bridged, 1)
    stage.save(COUNTING.format(0.4, ""))
    assert stage.draws == "native", "the driver is still at it"
    stage.compiler.arrived(1)
    stage.save(COUNTING.format(0.5, ""))
    assert stage.draws == "gl_visual"
    assert [type(unit.code) for unit in units] == [ShaderCode]


def test_what_the_card_cannot_run_stays_where_it_is() -> None:
    stage = Stage()
    stage.save(REMEMBERS_MUCH)
    before = stage.frames(2)
    assert stage.move() == [False]
    assert (stage.draws, stage.playing.bridging) == ("native", ())
    assert any(change.subgraph == "visual/display" for change in stage.loader.assignment.changes())
    assert not np.array_equal(stage.frames(1)[0], before[0])


def test_what_is_bridged_again_after_a_failure_is_made_ready_again() -> None:
    stage = Stage()
    stage.save(COUNTING.format(0.3, ""))
    worker = CompileWorker(stage.setup, Programs(stage.loader), Clock(), Inputs(), threading.Event())
    worker._moved = stage.playing
    assert worker._bridged_by(stage.playing).units == (), "it was handed to the driver"
    worker.improve("a hash", stage.playing)
    assert [unit.subgraph.name for unit in worker._bridged_by(stage.playing).units] == ["visual/display"]


NOT_BRIDGED = {
    "a loop of any length": "spindle f(x) :: v { v = x\nfor i in (1 to x * 99) { v = v * 0.9 } }\ndisplay(f(me@x))\n",
    "a picture that takes long": "me<width> = 8000\nme<height> = 8000\ndisplay(noise(me@x * 9, me@y * 9, me@time))\n",
    "much that is remembered": (
        "me<width> = 2500\nme<height> = 1400\nn<v, w> = <prev(n@v) + me@x, prev(n@w) + me@y>\ndisplay(n@v * n@w)\n"
    ),
}


@pytest.mark.parametrize("text", NOT_BRIDGED.values(), ids=NOT_BRIDGED.keys())
def test_the_card_is_waited_for_where_the_processor_would_be_too_slow(text: str) -> None:
    compiler = Compiler.of(Setup("p.weft", asked="visual=gl", bridges=True))
    compiled = compiler.compile(Saved(text.encode(), 0.0)).compiled
    assert compiled is not None
    assert [_told(unit) for unit in compiled.units if unit.subgraph.context == "visual"] == [("gl_visual", False)]


def _told(unit: Unit) -> tuple[str, bool]:
    return unit.code_of, unit.bridges


def test_a_performance_tells_what_draws(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(COUNTING.format(0.3, ""))
    with Performance(patch, "--headless", "--no-audio", "--size", "48x32", "--backend", "visual=gl") as performance:
        performance.wait_for("tier", when=lambda event: event["bridged"] == [])
        performance.save(COUNTING.format(0.3, " * 0.5 + me@y"))
        swap = performance.wait_for("swap")
        assert swap["bridged"] == ["visual/display"]
        # The processor may have better code before the card has a program.
        performance.wait_for("tier", when=lambda event: event["bridged"] == [] and event["t"] > swap["t"])
        moved = [event for event in performance.events if event["event"] in ("swap", "tier")]
        performance.save(COUNTING.format(0.4, " * 0.5 + me@y"))
        assert performance.wait_for("swap", 2)["bridged"] == []
        assert {"error", "backend"}.isdisjoint(event["event"] for event in performance.events), json.dumps(moved)


def test_without_a_stand_in_the_card_alone_draws(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(COUNTING.format(0.3, ""))
    asked = ("--headless", "--no-audio", "--size", "48x32", "--backend", "visual=gl", "--no-stand-in")
    with Performance(patch, *asked) as performance:
        performance.wait_for("frames")
        performance.save(COUNTING.format(0.3, " * 0.5 + me@y"))
        assert performance.wait_for("swap")["bridged"] == []


# --- fewer pixels -----------------------------------------------------------------------------------------------------

LARGE = (320, 180)
HEAVY = (
    "me<width> = 320\nme<height> = 180\nme<fps> = 240\nn = prev(n) + 1\n"
    + "".join(f"c{n} = noise(me@x * {n + 2}, me@y * 3, me@time * 0.{n + 1})\n" for n in range(15))
    + f"display(me@x, fract(n * 0.2), {' + '.join(f'c{n}' for n in range(15))} > 7)\n"
)


@pytest.fixture
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "cores", lambda: 1)


@pytest.mark.usefixtures("one_core")
@pytest.mark.parametrize("asked", ["visual=gl", "native"])
def test_what_is_too_much_at_first_has_fewer_pixels(asked: str) -> None:
    stage = Stage(asked=asked, size=LARGE)
    stage.save(HEAVY)
    assert (stage.draws, stage.playing.reduced) == ("native", ("visual/display",))
    for number, found in enumerate(stage.frames(2), 1):
        assert found.shape == (180, 320, 4)
        assert np.array_equal(found[::2, ::2], found[1::2, 1::2])
        assert np.array_equal(found[0, ::2, 0], np.floor((np.arange(160) + 0.5) / 160 * 255 + 0.5))
        assert found[0, 0, 1] == 51 * number
    (part,) = stage.playing.runner.parts
    grow(stage.playing.runner, part, Env(*LARGE))
    assert (stage.draws, stage.playing.reduced) == ("native", ())
    (found,) = stage.frames(1)
    assert np.array_equal(found[0, :, 0], np.floor((np.arange(320) + 0.5) / 320 * 255 + 0.5))
    assert found[0, 0, 1] == 153, "what is remembered goes on"
    if asked == "visual=gl":
        assert stage.move() == [True]
        assert stage.draws == "gl_visual"
        assert stage.frames(1)[0][0, 0, 1] == pytest.approx(204, abs=1)


@pytest.mark.usefixtures("one_core")
def test_the_card_takes_over_from_fewer_pixels_with_all() -> None:
    stage, alone = Stage(size=LARGE), Stage(bridges=False, size=LARGE)
    for each in (stage, alone):
        each.save(HEAVY)
        each.frames(2)
    assert stage.move() == [True]
    assert (stage.draws, stage.playing.reduced) == ("gl_visual", ())
    assert_alike(stage.frames(1), alone.frames(1))


@pytest.mark.usefixtures("one_core")
def test_images_that_are_remembered_keep_their_size() -> None:
    stage = Stage(asked="native", size=LARGE)
    stage.save(HEAVY.replace("display(me@x", "t<v> = max(prev(t@v) * 0.9, c1)\ndisplay(t@v"))
    assert stage.playing.reduced == ()


def test_a_moment_later_all_pixels_are_there(tmp_path: Path, one_core: None) -> None:
    path = tmp_path / "patch.weft"
    path.write_text(HEAVY)
    setup = Setup(str(path), bridges=True, asked="native")
    sound = Sound(setup, SoundOptions(is_silent=True))
    session = Session(SetList([path]), Compiler.of(setup), Reporter(EventLog(None), lambda told: None), Inputs(), sound,
                      limits=Limits(20.0, None))  # fmt: skip
    screen = Counting(session)
    session.begin()
    session.run(screen)
    assert screen.coarse > 0
    assert not screen.is_coarse


class Counting(Screen):
    """Counts pictures of blocks of two by two pixels, and ends with the first of others."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.coarse, self.is_coarse = 0, True
        self._session = session

    def present(self, picture: Shown) -> None:
        pixels = as_array(picture)
        self.is_coarse = bool((pixels[::2, ::2] == pixels[1::2, 1::2]).all())
        self.coarse += self.is_coarse
        if not self.is_coarse:
            self._session.stop("closed")
