"""What a session does when a program fails that had compiled."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.support.together import all_but
from weft.backends.base import Env, as_array
from weft.errors import Diagnostic
from weft.runtime.compiling.compiler import Compiler, Saved
from weft.runtime.compiling.worker import CompileWorker
from weft.runtime.hands.inputs import Inputs
from weft.runtime.live.events import EventLog, Reporter, Screenshots
from weft.runtime.live.session import Limits, Session
from weft.runtime.program.coordinator import ProgramRunner, TickResult
from weft.runtime.program.files import SetList
from weft.runtime.program.program import LoadedProgram, ProgramLoader, Setup
from weft.runtime.screens.screen import Picture, Screen, Shown
from weft.runtime.sound.player import Sound
from weft.runtime.sound.renderer import SoundOptions

TEXT = "me<width> = 8\nme<height> = 4\ncount = prev(count) + 1\ncompute(count)\n"


class SavingScreen(Screen):
    """Saves another text as soon as the first frame is over, and notes which keys a patch wants."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__()
        self._path, self._text = path, text
        self.keys: list[frozenset[str]] = []
        self._polls = 0

    def poll(self) -> None:
        self._polls += 1
        if self._polls == 2:
            self._path.write_text(self._text)

    def set_patch_keys(self, names: frozenset[str]) -> None:
        self.keys.append(names)


def _session(path: Path, told: list[Diagnostic], frames: int | None = None) -> Session:
    setup = Setup(str(path))
    sound = Sound(setup, SoundOptions(is_silent=True))
    return Session(SetList([path]), Compiler.of(setup), Reporter(EventLog(None), told.extend), Inputs(), sound,
                   limits=Limits(20.0, frames))  # fmt: skip


def _stop_when_told(session: Session, told: list[Diagnostic]) -> None:
    def tell(diagnostics: Sequence[Diagnostic]) -> None:
        told.extend(diagnostics)
        session.stop("told")

    session.reporter.show = tell


@pytest.mark.long
def test_a_program_that_cannot_take_over_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(
        loader: ProgramLoader, loaded: LoadedProgram, before: LoadedProgram | None, copy: bool = False
    ) -> list[str]:
        raise MemoryError("no room")

    path, told = tmp_path / "patch.weft", list[Diagnostic]()
    path.write_text(TEXT)
    session = _session(path, told)
    _stop_when_told(session, told)
    session.begin()
    first = session.programs.running
    monkeypatch.setattr(ProgramLoader, "take_over", fail)
    session.run(SavingScreen(path, TEXT + "// changed"))
    assert [d.message for d in told] == ["the program could not take over: it ran out of memory (no room)"]
    assert session.programs.running is first


@pytest.mark.long
@pytest.mark.parametrize("waits", all_but(1, ["", "me<bpm> = 120\n#quantize 2\n"]))
def test_what_is_heard_of_a_program_is_said_over_its_picture(tmp_path: Path, waits: str) -> None:
    """Not before it plays, even if it waits for a beat."""
    path, told, playing = tmp_path / "patch.weft", list[Diagnostic](), list[bool]()
    path.write_text(waits + TEXT)
    session = _session(path, told)

    def tell(diagnostics: Sequence[Diagnostic]) -> None:
        told.extend(diagnostics)
        running = session.programs.running
        playing.append(running is not None and bool(running.compiled.streaming.units))
        session.stop("told")

    session.reporter.show = tell
    session.begin()
    session.run(SavingScreen(path, f"{waits}{TEXT}audio(0.7)\n"))
    assert [(warning.severity, warning.code) for warning in told] == [("warning", "steady-sound")]
    assert playing == [True]
    assert session.reporter.notices.overlay().errors == tuple(told)


class BreakingScreen(SavingScreen):
    """Saves a text, a broken one as soon as the first waits for its beat, and ends when the first plays and the mistake
    is told."""

    def __init__(self, path: Path, text: str, broken: str, session: Session, told: list[Diagnostic]) -> None:
        super().__init__(path, text)
        self._broken, self._session, self._told = broken, session, told
        self._before = session.programs.running

    def poll(self) -> None:
        super().poll()
        if self._session._transitions._waiting is not None and self._text != self._broken:
            self._text = self._broken
            self._path.write_text(self._text)
        if self._session.programs.running is not self._before and self._told:
            self._session.stop("it plays")


@pytest.mark.long
def test_a_version_that_waited_does_not_hide_the_errors_of_a_later_save(tmp_path: Path) -> None:
    path, told = tmp_path / "patch.weft", list[Diagnostic]()
    head = "me<bpm> = 240\n#quantize 8\n"
    path.write_text(head + TEXT)
    session = _session(path, told)
    session.begin()
    screen = BreakingScreen(path, f"{head}{TEXT}// changed\n", f"{head}display(zz)\n", session, told)
    session.run(screen)
    assert session.stopping == "it plays"
    assert [d.code for d in told] == ["unknown-strand"]
    assert [d.code for d in session.reporter.notices.overlay().errors] == ["unknown-strand"]


@pytest.fixture
def failing_b(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that read `key@b` fail when they run."""
    run = ProgramRunner.run

    def fail(runner: ProgramRunner, env: Env, done: dict[int, NDArray[Any]] | None = None) -> list[TickResult]:
        if any("key@b" in part.unit.kernel.uniforms for part in runner.parts):
            raise ZeroDivisionError("a bug")
        return run(runner, env, done)

    monkeypatch.setattr(ProgramRunner, "run", fail)


@pytest.mark.long
@pytest.mark.usefixtures("failing_b")
def test_a_program_that_fails_while_it_runs_gives_the_keys_back(tmp_path: Path) -> None:
    path, told = tmp_path / "patch.weft", list[Diagnostic]()
    path.write_text(TEXT + "compute(key@a)\n")
    session = _session(path, told)
    _stop_when_told(session, told)
    screen = SavingScreen(path, TEXT + "compute(key@b)\n")
    session.begin()
    session.run(screen)
    assert [d.code for d in told] == ["internal"]
    assert screen.keys == [frozenset({"a"}), frozenset({"b"}), frozenset({"a"})]


@pytest.mark.long
@pytest.mark.usefixtures("failing_b")
def test_after_a_failure_it_is_the_program_before_that_is_improved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    improved = list[tuple[str, LoadedProgram]]()

    def improve(worker: CompileWorker, text: str, loaded: LoadedProgram) -> None:
        improved.append((text, loaded))
        if len(improved) == 2:
            session.stop("done")

    monkeypatch.setattr(CompileWorker, "improve", improve)
    path, told = tmp_path / "patch.weft", list[Diagnostic]()
    path.write_text(TEXT + "compute(key@a)\n")
    session = _session(path, told)
    first, program = session.begin(), session.programs.running
    session.run(SavingScreen(path, TEXT + "compute(key@b)\n"))
    assert [d.code for d in told] == ["internal"]
    assert [text for text, _ in improved] == [first.saved.hash] * 2
    assert all(loaded is program for _, loaded in improved)


class Steering(Screen):
    """Gives commands at certain frames, and notes the pictures that it was shown in between."""

    def __init__(self, commands: dict[int, str]) -> None:
        super().__init__()
        self.session: Session | None = None
        self.shown: list[bytes] = []
        self.redrawn = 0
        self._commands = commands
        self._polls = 0

    def poll(self) -> None:
        assert self.session is not None
        self._polls += 1
        if self._polls in self._commands:
            self.session.command(self._commands[self._polls])

    def present(self, picture: Picture) -> None:
        self.shown.append(picture.tobytes())

    def redraw(self) -> None:
        self.redrawn += 1


class Looking(Screen):
    """Saves another text after some frames, and notes what all windows show in each."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__()
        self._path, self._text = path, text
        self.shown: list[dict[str, int]] = [{}]

    def poll(self) -> None:
        if len(self.shown) == 5:
            self._path.write_text(self._text)

    def show_others(self, pictures: Mapping[str, Shown]) -> None:
        self.shown[-1] |= {name: int(as_array(picture)[0, 0, 0]) for name, picture in pictures.items()}

    def present(self, picture: Shown) -> None:
        self.shown[-1][""] = int(as_array(picture)[0, 0, 0])
        self.shown.append({})


def test_all_windows_take_over_between_two_frames_with_what_is_remembered(tmp_path: Path) -> None:
    text = "me<width> = 8; me<height> = 4; me<fps> = 200\nn = prev(n) + 1 + me@x * 0\ndisplay({}n / 255)\n"
    path, told = tmp_path / "patch.weft", list[Diagnostic]()
    before, after = (text.format(sign) + f'display({sign}n / 255, to: "side")\n' for sign in ("", "1 - "))
    path.write_text(before)
    session = _session(path, told, frames=120)
    screen = Looking(path, after)
    session.begin()
    session.run(screen)
    assert not [each for each in told if each.code != "late"]  # a busy machine
    counted = []
    for number, shown in enumerate(screen.shown[:-1], 1):
        assert shown[""] == shown["side"]
        counted.append(shown[""] == number)
        assert shown[""] in (number, 255 - number)
    assert counted == sorted(counted, reverse=True)
    assert len(set(counted)) == 2, "it was updated"


def test_in_a_pause_all_stands_still(tmp_path: Path) -> None:
    path = tmp_path / "patch.weft"
    path.write_text("me<width> = 4\nme<height> = 2\nn = prev(n) + 1\ndisplay(fract(n / 64))\n")
    screen = Steering({4: "pause", 8: "pause"})
    screen.session = session = _session(path, [], frames=12)
    session.begin()
    session.run(screen)
    assert screen.redrawn == 4
    assert len(screen.shown) == 8
    assert len(set(screen.shown)) == 8, "it counts on where it stopped, and no picture comes twice"


@pytest.mark.long
def test_a_signal_ends_it_whatever_it_interrupts(tmp_path: Path) -> None:
    """A handler runs between two instructions of the loop, which may hold the lock that tells of finished programs."""
    path = tmp_path / "patch.weft"
    path.write_text(TEXT)
    session = _session(path, [])
    session.begin()
    locking = (threading.Event.clear.__code__, threading.Event.wait.__code__)
    interrupted: list[int] = []

    def interrupt(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if frame.f_code not in locking:
            return None
        if event == "line":
            interrupted.append(frame.f_lineno)
            session.stop("interrupted")
        return interrupt

    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        session.run(SavingScreen(path, TEXT))
    finally:
        sys.settrace(before)
    assert session.stopping == "interrupted"
    assert len(set(interrupted)) > 1


def test_a_duration_is_that_of_the_performance_also_in_a_pause(tmp_path: Path) -> None:
    path = tmp_path / "patch.weft"
    path.write_text(TEXT)
    screen = Steering({2: "pause"})
    screen.session = session = _session(path, [])
    session.limits = Limits(0.3)
    session.begin()
    session.run(screen)
    assert session.stopping == "duration"


def test_screenshots_of_two_performances_have_names_of_their_own(tmp_path: Path) -> None:
    said, pictures = list[str](), np.random.default_rng(7).integers(0, 256, (8, 72, 128, 4), np.uint8)
    reporter = Reporter(EventLog(None), echo=said.append)
    both = [Screenshots(tmp_path / "patch", reporter) for _ in range(2)]
    for picture in pictures:
        for each in both:
            each.take(picture)
    for thread in threading.enumerate():
        if thread.name == "weft-screenshot":
            thread.join()
    names = sorted(f"patch-{number:03}.png" for number in range(1, 17))
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert all(line.startswith("screenshot: ") for line in said)
    found = sorted(np.asarray(Image.open(path))[..., :3].tobytes() for path in tmp_path.iterdir())
    assert found == sorted(picture[..., :3].tobytes() for picture in pictures for _ in both)


@pytest.mark.long
def test_a_screenshot_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250 + ".weft")
    path.write_text("me<width> = 4\nme<height> = 2\ndisplay(me@x)\n")
    said: list[str] = []
    screen = Steering({3: "screenshot"})
    screen.session = session = _session(path, [], frames=10)
    session.reporter.echo = said.append
    session.begin()
    session.run(screen)
    for thread in threading.enumerate():
        if thread.name == "weft-screenshot":
            thread.join()
    assert any(line.startswith("no screenshot: ") for line in said)


def test_a_screenshot_says_where_it_is_and_how_large_and_that_there_is_none_yet(tmp_path: Path) -> None:
    path = tmp_path / "patch.weft"
    path.write_text("me<width> = 4\nme<height> = 2\ndisplay(me@x)\n")
    said: list[str] = []
    screen = Steering({1: "screenshot", 3: "screenshot"})
    screen.session = session = _session(path, [], frames=10)
    session.reporter.echo = said.append
    session.begin()
    session.run(screen)
    for thread in threading.enumerate():
        if thread.name == "weft-screenshot":
            thread.join()
    told = [line for line in said if "screenshot" in line]
    assert told == ["no screenshot: there is no picture yet", f"screenshot: {tmp_path / 'patch-001.png'}, 4×2"]


class Waiting(Steering):
    """Takes its time over a frame, so that several saves are finished within it."""

    def __init__(self, path: Path, texts: list[str]) -> None:
        super().__init__({})
        self._path, self._texts = path, texts
        self.answered = 0

    def poll(self) -> None:
        super().poll()
        assert self.session is not None
        if self._polls == 2:
            for number, text in enumerate(self._texts, 1):
                self._path.write_text(text)
                deadline = time.monotonic() + 20
                while len(self.session._worker._finished.results) < number:
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
        if self._polls == 5:
            self.session.stop("seen")


def test_of_several_saves_within_a_frame_the_latest_good_one_plays(tmp_path: Path) -> None:
    path, told = tmp_path / "patch.weft", list[Diagnostic]()
    path.write_text(TEXT)
    good = TEXT.replace("+ 1", "+ 20")
    screen = Waiting(path, [TEXT.replace("+ 1", "+ 10"), good, TEXT + "display("])
    screen.session = session = _session(path, told)
    session.begin()
    session.run(screen)
    assert told
    assert session.programs.running is not None
    compiled = Compiler.of(Setup(str(path))).compile(Saved(good.encode(), 0.0))
    assert [unit.hash for unit in session.programs.running.compiled.units] == [u.hash for u in compiled.compiled.units]


def test_a_loop_that_is_stopped_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "loop.weft"
    path.write_text(
        "me<width> = 8\nme<height> = 4\nspindle long(n) :: v {\n  v = 0\n  for i in (1 to n) { v += i }\n}\n"
        "display(long(me@x * 3000) + long(9000 - mouse@x))\n"
    )
    told: list[Diagnostic] = []
    session = _session(path, told, frames=3)
    session.begin()
    session.run(Screen())
    (warning,) = told
    assert (warning.code, str(warning.span)) == ("loop-stopped", f"{path}:5:13")
    assert warning in session.reporter.notices.overlay().errors
