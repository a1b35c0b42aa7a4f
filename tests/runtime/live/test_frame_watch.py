"""What is said while the picture stands still, since its device hangs (`weft.runtime.live.frame_watch`)."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.compute import opencl
from weft.backends.opencl.backend import ClVisual
from weft.runtime.compiling.compiler import Compiler
from weft.runtime.hands.inputs import Inputs
from weft.runtime.live import frame_watch
from weft.runtime.live.events import EventLog, Reporter
from weft.runtime.live.session import Limits, Session
from weft.runtime.program.files import SetList
from weft.runtime.program.program import Setup
from weft.runtime.screens.screen import Screen
from weft.runtime.sound.player import Sound
from weft.runtime.sound.renderer import SoundOptions

__all__ = ["opencl"]

STILL = re.compile(
    r"the picture has stood still for \d+ seconds: it waits for opencl_visual\. "
    "If it can be left, another device draws after 30 seconds"
)


class Hanging(Screen):
    """Has the device of the picture do nothing more once it draws, and ends a few frames after that was told."""

    def __init__(self, session: Session, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._session = session
        self._seconds = seconds
        self._monkeypatch = monkeypatch
        self._last: int | None = None
        self.said: list[str] = []
        self.ends = ExitStack()
        """Has the device answer again."""

    def hear(self, line: str) -> None:
        """Is told what is said to the performer, from any thread."""
        self.said.append(line)
        if STILL.fullmatch(line):
            self.told()

    def told(self) -> None:
        """The performer was told. Frames that are slow on a busy machine are not, neither before nor from now on."""
        self._monkeypatch.undo()

    def poll(self) -> None:
        running = self._session.programs.running
        assert running is not None
        (part,) = [part for part in running.runner.parts if part.unit.subgraph.context == "visual"]
        if self._last is None and isinstance(part.backend, ClVisual) and self._session.frames > 3:
            self._hang(part.backend)
            self._last = self._session.frames + 8
        if self._last is not None and self._session.frames >= self._last:
            self._session.stop("end")

    def _hang(self, backend: Any) -> None:
        import pyopencl

        device = backend.device()[0]
        event = pyopencl.UserEvent(device._context)
        self.ends.callback(lambda: event.set_status(pyopencl.command_execution_status.COMPLETE))
        pyopencl.enqueue_barrier(device._queue, wait_for=[event])
        device.waits.most = self._seconds
        self._monkeypatch.setattr(frame_watch, "_EVERY", 0.05)


class Answering(Hanging):
    """The device answers again as soon as the performer was told."""

    def told(self) -> None:
        super().told()
        self.ends.close()


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize(("kind", "seconds"), [(Hanging, 2.0), (Answering, 60.0)])
def test_a_performer_is_told_once_that_the_device_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Hanging], seconds: float
) -> None:
    patch, events = tmp_path / "patch.weft", tmp_path / "events"
    patch.write_text("me<width> = 16\nme<height> = 9\nn = prev(n) + 1 / 255\ndisplay(n * me@x)\n")
    setup = Setup(str(patch), "visual=opencl,audio=native,compute=native")
    log = EventLog(events)
    session = Session(
        SetList([patch]), Compiler.of(setup), Reporter(log), Inputs(), Sound(setup, SoundOptions(is_silent=True)),
        limits=Limits(60.0),
    )  # fmt: skip
    session.begin()
    screen = kind(session, seconds, monkeypatch)
    session.reporter.echo = screen.hear
    with screen.ends:
        session.run(screen)
    log.close()
    assert session.stopping == "end"
    (told,) = [number for number, line in enumerate(screen.said) if STILL.fullmatch(line)]
    assert screen.said[told + 1].startswith("the picture moves again after ")
    emitted = [json.loads(line) for line in events.read_text().splitlines()]
    stalls = [event for event in emitted if event["event"] == "stall"]
    assert [(each["state"], each.get("device")) for each in stalls] == [("still", "opencl_visual"), ("over", None)]
    left = [event["from"] for event in emitted if event["event"] == "backend"]
    assert left == ([] if kind is Answering else ["opencl_visual"])
