"""Recording by itself: the numbers of frames, and an encoder that is slow or not there. Whole performances are recorded
in tests/cli/test_run_record.py."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.performance import PATIENCE
from weft.backends.base import DeviceLostError, PictureHandle, Values
from weft.backends.lent_memory import lent
from weft.runtime.hands.clock import Clock
from weft.runtime.live.events import EventLog, Reporter
from weft.runtime.live.record import FilmTimeline, Recorder
from weft.runtime.program.program import Setup
from weft.runtime.sound.player import Sound
from weft.runtime.sound.renderer import SoundOptions

SIZE, FPS, RATE = (32, 16), 50.0, 48000


class Stage:
    """A recorder, and what it says."""

    def __init__(self, folder: Path) -> None:
        self.said: list[str] = []
        self.sound = Sound(Setup("patch.weft"), SoundOptions(is_silent=True))
        self.recorder = Recorder(Reporter(EventLog(None), echo=self.said.append), self.sound, folder / "take")
        self.clock = Clock()

    def close(self) -> None:
        self.recorder.close()
        self.sound.close()

    def follow(self, picture: Values | None = None) -> None:
        """A frame with this picture, or one of its own."""
        self.clock.tick()
        if picture is None:
            picture = np.full((SIZE[1], SIZE[0], 4), 200, np.uint8)
        self.recorder.follow(picture, self.clock, SIZE, FPS, RATE)

    @property
    def take(self) -> Any:
        return self.recorder._take


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with closing(Stage(tmp_path)) as stage:
        stage.recorder.start(SIZE, FPS, RATE)
        stage.recorder.begin()
        yield stage


def test_frames_are_numbered_by_their_time_though_they_are_uneven() -> None:
    timeline = FilmTimeline(FPS, RATE)
    random = np.random.default_rng(1)
    for number in range(200):
        seconds = (number + 0.5 + random.uniform(-0.6, 0.6)) / FPS
        assert timeline.number(seconds) == number
        timeline.count = number + 1
    # One that comes twice is left out, and after a break the number is that of the time.
    assert timeline.number(199.5 / FPS) is None
    assert timeline.number(300.5 / FPS) == 300


def test_an_encoder_that_cannot_follow_drops_frames_and_says_how_many(stage: Stage, tmp_path: Path) -> None:
    stage.follow()
    encoder = stage.take.encoder._child.pid
    os.kill(encoder, signal.SIGSTOP)
    try:
        while not stage.take.dropped:
            stage.follow()
    finally:
        os.kill(encoder, signal.SIGCONT)
    assert stage.recorder._reporter.notices.overlay().recording.endswith(" · 1 frame dropped")
    stage.recorder.close()
    assert stage.said[-1].endswith(", 1 frame dropped")
    with av.open(str(tmp_path / "take-001.mp4")) as film:
        times = [float(frame.time) for frame in film.decode(video=0)]
    assert np.diff(times) == pytest.approx(1 / FPS)


def test_an_encoder_that_dies_ends_the_film(stage: Stage, tmp_path: Path) -> None:
    stage.follow()
    os.kill(stage.take.encoder._child.pid, signal.SIGKILL)
    while stage.take is not None:
        stage.follow()
    assert "the process that encodes ended (SIGKILL)" in stage.said[-1]
    assert not (tmp_path / "take-001.mp4").exists()
    stage.recorder.close()


def test_an_encoder_that_takes_nothing_is_ended_while_a_message_is_on_its_way(stage: Stage) -> None:
    stage.follow()
    encoder = stage.take.encoder
    os.kill(encoder._child.pid, signal.SIGSTOP)
    given = threading.Event()

    def large() -> tuple[Any, ...]:
        given.set()
        return "sound", bytes(50_000_000)

    encoder._messages.put(large)
    assert given.wait(PATIENCE)
    encoder.close()
    # What fails in a thread fails the test.
    encoder._sending.join(PATIENCE)
    assert not encoder._sending.is_alive()


class OnCard(PictureHandle):
    """A picture in memory that a device lends."""

    def __init__(self) -> None:
        self._pixels = np.full((SIZE[1], SIZE[0], 4), 200, np.uint8)
        self.is_lent = False
        self.is_back = threading.Event()

    @property
    def shape(self) -> tuple[int, int, int]:
        return (SIZE[1], SIZE[0], 4)

    def read(self) -> NDArray[np.uint8]:
        raise AssertionError("it would wait for the device")

    def lending(self) -> Callable[[], NDArray[np.uint8]]:
        def lend() -> NDArray[np.uint8]:
            self.is_lent = True
            return lent(self._pixels.ctypes.data, self.shape, self.is_back.set)

        return lend


def test_the_thread_that_draws_does_not_wait_for_the_copy_of_a_picture(stage: Stage, tmp_path: Path) -> None:
    encoder, is_busy, go_on = stage.take.encoder, threading.Event(), threading.Event()

    def waits() -> tuple[Any, ...]:
        is_busy.set()
        go_on.wait()
        return "repeat", 0

    encoder._messages.put(waits)
    assert is_busy.wait(PATIENCE)
    shown = OnCard()
    while not shown.is_lent:
        stage.follow(shown)
    assert not shown.is_back.is_set()
    go_on.set()
    # It goes back as soon as it is copied: nothing else has to happen.
    assert shown.is_back.wait(PATIENCE)
    stage.recorder.close()
    with av.open(str(tmp_path / "take-001.mp4")) as film:
        frames = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    assert frames[-1].mean() == pytest.approx(200, abs=3)


def test_memory_of_a_device_goes_back_if_the_encoder_dies(stage: Stage) -> None:
    encoder, shown = stage.take.encoder, list[OnCard]()
    while stage.take is not None:
        shown.append(OnCard())
        stage.follow(shown[-1])
        if sum(each.is_lent for each in shown) == 3:
            encoder._child.kill()
    stage.recorder.close()
    assert not encoder._sending.is_alive()
    assert [each.is_back.is_set() for each in shown] == [each.is_lent for each in shown]


def test_a_picture_of_a_device_that_is_lost_is_left_out(stage: Stage) -> None:
    class Lost(OnCard):
        def lending(self) -> Callable[[], NDArray[np.uint8]]:
            def lend() -> NDArray[np.uint8]:
                self.is_lent = True
                raise DeviceLostError("visual", "it was reset")

            return lend

    lost, room = Lost(), len(stage.take.encoder._free)
    while not lost.is_lent:
        stage.follow(lost)
    assert len(stage.take.encoder._free) == room
    stage.follow()
    stage.recorder.close()
    assert stage.said[-1].startswith("recorded ")


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    with closing(Stage(tmp_path / "gone")) as stage:
        stage.recorder.toggle(SIZE, FPS, RATE)
    assert stage.said == [f"no recording: {tmp_path / 'gone'} cannot be written: No such file or directory"]
    assert stage.take is None


def test_a_name_that_is_taken_meanwhile_is_not_overwritten(stage: Stage, tmp_path: Path) -> None:
    stage.follow()
    (tmp_path / "take-001.mp4").write_text("mine")
    stage.recorder.close()
    assert (tmp_path / "take-001.mp4").read_text() == "mine"
    assert (tmp_path / "take-002.mp4").stat().st_size > 100
    assert len(list(tmp_path.iterdir())) == 2


def test_a_buffer_that_is_used_again_is_another_picture(stage: Stage, tmp_path: Path) -> None:
    buffers = [np.zeros((SIZE[1], SIZE[0], 4), np.uint8) for _ in range(2)]
    # The encoder has no room for the second picture, which is in the other buffer.
    for shown, buffer in enumerate((buffers[0], buffers[1], buffers[0])):
        buffer[...] = 100 * shown
        room, stage.take.encoder._free = stage.take.encoder._free, [] if shown == 1 else stage.take.encoder._free
        count = stage.take.timeline.count
        while stage.take.timeline.count == count:
            stage.recorder.follow(buffer, stage.clock, SIZE, FPS, RATE)
        if shown == 1:
            stage.take.encoder._free = room
    stage.recorder.close()
    with av.open(str(tmp_path / "take-001.mp4")) as film:
        frames = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    assert frames[-1].mean() == pytest.approx(200, abs=3)
