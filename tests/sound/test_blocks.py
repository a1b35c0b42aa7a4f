"""Blocks of sound, without a device: their place in the performance, pause, restart and failure."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from weft.runtime.sound.messages import SoundSetup
from weft.runtime.sound.server import Blocks, what_failed
from weft.runtime.sound.shared import Controls, ControlsWriter, Figures, FiguresReader, Memory, State

RATE, FRAMES, LATENCY = 48000, 512, 0.02


class Ones:
    """As loud as can be, and remembers where."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.failure: Exception | None = None

    def render(self, out: NDArray[np.float32], seconds: float) -> None:
        self.times.append(seconds)
        out[:] = 1
        if self.failure is not None:
            raise self.failure

    def take(self, message: object) -> None:
        pass


class Stage:
    """Both sides of the memory, and the blocks."""

    def __init__(self) -> None:
        self._controls, self._figures = Memory(Controls.SIZE), Memory(FiguresReader.SIZE)
        self.writer = ControlsWriter(self._controls)
        self._reader = FiguresReader(self._figures.bytes)
        self.ones = Ones()
        self.follow()
        for memory in (self._controls, self._figures):
            memory.close()

    def follow(self) -> None:
        """A sound process takes the place of the one before."""
        setup = SoundSetup(None, RATE, 2, FRAMES, -1, -1, -1)
        self.blocks = Blocks(setup, Controls(self._controls.bytes), self._figures.bytes, self.ones)

    def block(self, underflow: bool = False) -> NDArray[np.float32]:
        """The next block, one channel of it."""
        block = np.full((FRAMES, 2), np.nan, np.float32)
        self.blocks.fill(block, LATENCY, underflow)
        assert np.array_equal(block[:, 0], block[:, 1])
        return block[:, 0]

    @property
    def figures(self) -> Figures:
        return self._reader.read()


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_nothing_sounds_before_the_time_is_known(stage: Stage) -> None:
    assert not stage.block().any()
    assert stage.ones.times == []
    assert stage.figures.state is State.STARTING


def test_the_first_sample_is_at_the_time_at_which_it_is_heard(stage: Stage) -> None:
    before = time.monotonic()
    stage.writer.write(10.0, {}, moment=before)
    stage.block()
    after = time.monotonic()
    (seconds,) = stage.ones.times
    assert 10 + LATENCY - 1 / RATE <= seconds <= 10 + LATENCY + (after - before) + 1 / RATE
    assert stage.figures.seconds == seconds == stage.figures.sample / RATE


def test_blocks_follow_each_other_whatever_the_clock_shows(stage: Stage) -> None:
    for seconds in (10.0, 10.1, 12.0, 3.0):
        stage.writer.write(seconds, {})
        stage.block()
    samples = np.round(np.array(stage.ones.times) * RATE)
    assert np.diff(samples).tolist() == [FRAMES] * 3


def test_a_stream_that_begins_anew_is_where_the_clock_is(stage: Stage) -> None:
    stage.writer.write(10.0, {})
    stage.block()
    stage.blocks.lose()
    assert stage.figures.state is State.LOST
    stage.writer.write(20.0, {})
    stage.blocks.begin()
    stage.block()
    assert stage.ones.times[1] == pytest.approx(20 + LATENCY, abs=1)
    assert stage.figures.blocks == 2


def test_what_starts_in_the_middle_fades_in(stage: Stage) -> None:
    stage.writer.write(10.0, {})
    block = stage.block()
    assert block[0] == 0
    assert (np.diff(block) >= 0).all()
    assert block[-1] == 1
    assert (stage.block() == 1).all()


def test_a_pause(stage: Stage) -> None:
    stage.writer.write(10.0, {})
    stage.block()
    stage.writer.write(10.1, {}, paused=True)
    leaving = stage.block()
    assert leaving[0] == 1
    assert (np.diff(leaving) <= 0).all()
    assert leaving[-1] == 0
    for _ in range(3):
        assert not stage.block().any()
    assert stage.figures.state is State.PAUSED
    stage.writer.write(10.1, {})
    coming = stage.block()
    assert coming[0] == 0
    assert coming[-1] == 1
    assert np.diff(np.round(np.array(stage.ones.times) * RATE)).tolist() == [FRAMES] * 2


def test_a_restart_begins_at_0_with_its_first_stroke(stage: Stage) -> None:
    stage.writer.write(10.0, {})
    stage.block()
    stage.writer.write(0.0, {}, restarts=1)
    assert stage.block()[-1] == 0
    assert stage.figures.restarts == 0
    assert (stage.block() == 1).all()
    assert stage.ones.times[-1] == 0
    assert stage.figures.restarts == 1
    assert stage.figures.sample == 0


def test_a_restart_in_a_pause(stage: Stage) -> None:
    stage.writer.write(10.0, {})
    stage.block()
    stage.writer.write(10.1, {}, paused=True)
    stage.block()
    stage.writer.write(0.0, {}, paused=True, restarts=1)
    assert not stage.block().any()
    assert stage.figures.seconds == 0
    stage.writer.write(0.0, {}, restarts=1)
    assert (stage.block() == 1).all()
    assert stage.ones.times[-1] == 0


def test_leaving_fades_away_for_good(stage: Stage) -> None:
    stage.writer.write(10.0, {})
    stage.block()
    stage.blocks.leave()
    assert stage.block()[-1] == 0
    assert not stage.block().any()


def test_a_failure_is_silent_and_told_once_for_each_program(stage: Stage) -> None:
    stage.writer.write(10.0, {})
    stage.ones.failure = ArithmeticError("no such number")
    for _ in range(2):
        for _ in range(2):
            assert not stage.block().any()
        failure = stage.blocks.failure()
        assert failure is not None
        assert "no such number" in what_failed(failure).message
        assert stage.blocks.failure() is None
        stage.blocks.forgive()
    stage.ones.failure = None
    assert stage.block().any()
    assert len(stage.ones.times) == 5


def test_underruns_count_where_they_are_heard(stage: Stage) -> None:
    stage.writer.write(10.0, {}, paused=True)
    for paused, underflow in ((True, True), (False, False), (False, True), (True, True), (True, True)):
        stage.writer.write(10.0, {}, paused=paused)
        stage.block(underflow)
    assert stage.figures.underruns == 2


def test_counts_go_on_in_the_process_that_follows(stage: Stage) -> None:
    stage.writer.write(10.0, {})
    for underflow in (False, True):
        stage.block(underflow)
    stage.follow()
    assert stage.figures.state is State.STARTING
    for underflow in (False, True):
        stage.block(underflow)
    assert (stage.figures.blocks, stage.figures.underruns) == (4, 2)
    assert stage.ones.times[2] == pytest.approx(stage.ones.times[0], abs=1)


def test_load_is_the_share_of_a_second(stage: Stage) -> None:
    stage.writer.write(10.0, {})
    for _ in range(RATE // FRAMES + 2):
        stage.block()
    assert 0 < stage.figures.load < 1


def test_moments_are_evened_out(stage: Stage) -> None:
    """Blocks here are begun as fast as can be, and would be heard evenly."""
    stage.writer.write(10.0, {})
    stage.block()
    for _ in range(3):
        stage.block()
    heard = stage.figures.heard - stage.figures.moment
    assert heard > LATENCY
