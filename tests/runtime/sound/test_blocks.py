"""Blocks of sound, without a device: their place in the performance, pause, restart and failure."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from weft.runtime.sound.renderer import SoundOptions
from weft.runtime.sound.server import Blocks, what_failed
from weft.runtime.sound.shared import (
    Controls, ControlsWriter, Figures, FiguresMemory, SharedMemory, SoundState, SoundTape
)

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
        sizes = Controls.SIZE, FiguresMemory.SIZE, SoundTape.SIZE
        self._controls, self._figures, self._recorded = map(SharedMemory, sizes)
        self.tape = SoundTape(self._recorded.bytes)
        self.writer = ControlsWriter(self._controls)
        self._reader = FiguresMemory(self._figures.bytes)
        self.ones = Ones()
        self.follow()
        for memory in (self._controls, self._figures, self._recorded):
            memory.close()

    def follow(self) -> None:
        """A sound process takes the place of the one before."""
        options = SoundOptions(None, RATE, 2, FRAMES)
        controls, figures = Controls(self._controls.bytes), FiguresMemory(self._figures.bytes)
        self.blocks = Blocks(options, controls, figures, self.tape, self.ones)

    def block(self, underflow: bool = False, waited: float = 0.0) -> NDArray[np.float32]:
        """The next block, one channel of it."""
        block = np.full((FRAMES, 2), np.nan, np.float32)
        self.blocks.fill(block, LATENCY, underflow, waited)
        assert np.array_equal(block[:, 0], block[:, 1])
        return block[:, 0]

    @property
    def figures(self) -> Figures:
        return self._reader.read()


@pytest.fixture
def loader() -> Stage:
    return Stage()


def test_nothing_sounds_before_the_time_is_known(loader: Stage) -> None:
    assert not loader.block().any()
    assert loader.ones.times == []
    assert loader.figures.state is SoundState.STARTING


def test_the_first_sample_is_at_the_time_at_which_it_is_heard(loader: Stage) -> None:
    before = time.monotonic()
    loader.writer.write(10.0, {}, moment=before)
    loader.block()
    after = time.monotonic()
    (seconds,) = loader.ones.times
    assert 10 + LATENCY - 1 / RATE <= seconds <= 10 + LATENCY + (after - before) + 1 / RATE
    assert loader.figures.seconds == seconds == loader.figures.sample / RATE


def test_blocks_follow_each_other_whatever_the_clock_shows(loader: Stage) -> None:
    for seconds in (10.0, 10.1, 12.0, 3.0):
        loader.writer.write(seconds, {})
        loader.block()
    samples = np.round(np.array(loader.ones.times) * RATE)
    assert np.diff(samples).tolist() == [FRAMES] * 3


def test_a_stream_that_begins_anew_is_where_the_clock_is(loader: Stage) -> None:
    loader.writer.write(10.0, {})
    loader.block()
    loader.blocks.lose()
    assert loader.figures.state is SoundState.LOST
    loader.writer.write(20.0, {})
    loader.blocks.begin()
    loader.block()
    assert loader.ones.times[1] == pytest.approx(20 + LATENCY, abs=1)
    assert loader.figures.blocks == 2


@pytest.mark.parametrize("restarts", [0, 1])
def test_after_an_interruption_it_is_where_the_clock_is(
    loader: Stage, monkeypatch: pytest.MonkeyPatch, restarts: int
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    loader.writer.write(10.0, {})
    loader.block()
    now += 1.5
    # The sound was a little late before.
    seconds = 0.5 if restarts else 11.55
    loader.writer.write(seconds, {}, restarts=restarts)
    block = loader.block()
    assert loader.figures.heard == pytest.approx(now + LATENCY, abs=1 / RATE)
    assert loader.ones.times[1] == pytest.approx(0 if restarts else seconds + LATENCY, abs=1 / RATE)
    assert block[0] == restarts
    assert block[-1] == 1
    now += FRAMES / RATE
    loader.block()
    assert loader.ones.times[2] - loader.ones.times[1] == pytest.approx(FRAMES / RATE)


def test_what_starts_in_the_middle_fades_in(loader: Stage) -> None:
    loader.writer.write(10.0, {})
    block = loader.block()
    assert block[0] == 0
    assert (np.diff(block) >= 0).all()
    assert block[-1] == 1
    assert (loader.block() == 1).all()


def test_a_pause(loader: Stage) -> None:
    loader.writer.write(10.0, {})
    loader.block()
    loader.writer.write(10.1, {}, paused=True)
    leaving = loader.block()
    assert leaving[0] == 1
    assert (np.diff(leaving) <= 0).all()
    assert leaving[-1] == 0
    for _ in range(3):
        assert not loader.block().any()
    assert loader.figures.state is SoundState.PAUSED
    loader.writer.write(10.1, {})
    coming = loader.block()
    assert coming[0] == 0
    assert coming[-1] == 1
    assert np.diff(np.round(np.array(loader.ones.times) * RATE)).tolist() == [FRAMES] * 2


def test_a_restart_begins_at_0_with_its_first_stroke(loader: Stage) -> None:
    loader.writer.write(10.0, {})
    loader.block()
    loader.writer.write(0.0, {}, restarts=1)
    assert loader.block()[-1] == 0
    assert loader.figures.restarts == 0
    assert (loader.block() == 1).all()
    assert loader.ones.times[-1] == 0
    assert loader.figures.restarts == 1
    assert loader.figures.sample == 0


def test_a_restart_in_a_pause(loader: Stage) -> None:
    loader.writer.write(10.0, {})
    loader.block()
    loader.writer.write(10.1, {}, paused=True)
    loader.block()
    loader.writer.write(0.0, {}, paused=True, restarts=1)
    assert not loader.block().any()
    assert loader.figures.seconds == 0
    loader.writer.write(0.0, {}, restarts=1)
    assert (loader.block() == 1).all()
    assert loader.ones.times[-1] == 0


def test_leaving_fades_away_for_good(loader: Stage) -> None:
    loader.writer.write(10.0, {})
    loader.block()
    loader.blocks.is_leaving = True
    assert loader.block()[-1] == 0
    assert not loader.block().any()


def test_a_failure_is_silent_and_told_once_for_each_program(loader: Stage) -> None:
    loader.writer.write(10.0, {})
    loader.ones.failure = ArithmeticError("no such number")
    for _ in range(2):
        for _ in range(2):
            assert not loader.block().any()
        failure, loader.blocks.failure = loader.blocks.failure, None
        assert failure is not None
        assert "no such number" in what_failed(failure).message
        assert loader.blocks.failure is None
        loader.blocks.reset_failure()
    loader.ones.failure = None
    assert loader.block().any()
    assert len(loader.ones.times) == 5


def test_underruns_count_where_they_are_heard(loader: Stage) -> None:
    loader.writer.write(10.0, {}, paused=True)
    for paused, underflow in ((True, True), (False, False), (False, True), (True, True), (True, True)):
        loader.writer.write(10.0, {}, paused=paused)
        loader.block(underflow)
    assert loader.figures.underruns == 2


def test_a_block_that_the_device_waits_long_for_is_late(loader: Stage) -> None:
    loader.writer.write(10.0, {})
    for share in (0.0, 0.5, 1.01, 1.5):
        loader.block(waited=share * FRAMES / RATE)
    assert loader.figures.late == 2


def test_counts_go_on_in_the_process_that_follows(loader: Stage) -> None:
    loader.writer.write(10.0, {})
    for underflow in (False, True):
        loader.block(underflow, waited=1.0)
    loader.follow()
    assert loader.figures.state is SoundState.STARTING
    for underflow in (False, True):
        loader.block(underflow, waited=1.0)
    assert (loader.figures.blocks, loader.figures.underruns, loader.figures.late) == (4, 2, 4)
    assert loader.ones.times[2] == pytest.approx(loader.ones.times[0], abs=1)


def test_load_is_the_share_of_a_second(loader: Stage) -> None:
    loader.writer.write(10.0, {})
    for _ in range(RATE // FRAMES + 2):
        loader.block()
    assert 0 < loader.figures.load < 1


def test_moments_are_evened_out(loader: Stage) -> None:
    """Blocks here are begun as fast as can be, and would be heard evenly."""
    loader.writer.write(10.0, {})
    loader.block()
    for _ in range(3):
        loader.block()
    heard = loader.figures.heard - loader.figures.moment
    assert heard > LATENCY


def test_the_tape_has_what_the_device_is_given(loader: Stage) -> None:
    loader.writer.write(10.0, {})
    blocks = [loader.block()]
    loader.writer.write(10.1, {}, paused=True)
    blocks += [loader.block(), loader.block()]
    loader.writer.write(10.1, {})
    blocks += [loader.block()]
    assert loader.figures.taped == 3 * FRAMES
    taped = loader.tape.read(0, 4 * FRAMES)
    assert np.array_equal(taped[:, 0], np.concatenate(blocks))
    assert np.array_equal(taped[:, 0], taped[:, 1])


def test_the_tape_is_silent_while_nothing_takes_blocks(loader: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    loader.writer.write(10.0, {})
    loader.block()
    gone = 1.0
    now += FRAMES / RATE + gone
    # A process that replaces another one continues its tape.
    loader.follow()
    loader.block()
    assert loader.figures.taped == FRAMES + round(gone * RATE)
    assert not loader.tape.read(FRAMES, loader.figures.taped).any()


def test_a_tape_of_more_channels_than_two_is_folded_and_goes_round() -> None:
    memory = SharedMemory(SoundTape.SIZE)
    memory.close()
    tape = SoundTape(memory.bytes)
    block = np.arange(4 * 8, dtype=np.float32).reshape(8, 4)
    first = SoundTape.LENGTH - 3
    tape.write(first, block)
    sides = np.stack([block[:, side::2].mean(axis=1) for side in (0, 1)], axis=1)
    assert np.array_equal(tape.read(first, first + len(block)), sides)
