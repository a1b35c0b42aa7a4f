"""One block of sound after another: its place in the performance, the pause, the restart, and the figures about it."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weft.errors import Diagnostic, WeftError, fault
from weft.runtime.sound.messages import ProgramFailure, SoundSetup
from weft.runtime.sound.renderer import Renderer
from weft.runtime.sound.shared import Controls, Figures, FiguresReader, FiguresWriter, State

# Seconds in which sound comes and goes at a pause, so that it does not click.
_RAMP = 0.005
# How much of a new block's moment counts: blocks are begun in bursts, and are heard evenly.
_NEW = 0.02
# A moment that is further off, in seconds, tells of a gap, and is believed at once.
_GAP = 0.1


class Blocks:
    """Fills blocks. Made, begun and ended by the main thread; `fill` is for the thread of the sound card.

    The first sample of a stream is at the time that the player's clock will show when it is heard, so that a stream
    that starts in the middle of a performance carries on with it. From then on samples are counted: sample n of the
    performance is at n / rate seconds.
    """

    def __init__(
        self, setup: SoundSetup, controls: Controls, memory: NDArray[np.uint8], renderer: Renderer
    ) -> None:
        """`memory` is for the figures; counts go on from those that are there."""
        self._rate = setup.rate
        self._controls = controls
        self._renderer = renderer
        self._writer = FiguresWriter(memory)
        before = FiguresReader(memory).read()
        self.count, self._underruns = before.blocks, before.underruns
        self._load = _Load()
        # A fade that a short block cuts off would click: it is as short as that.
        steps = min(round(_RAMP * setup.rate), setup.frames)
        self._ramp = np.linspace(0, 1, steps, endpoint=False, dtype=np.float32)[:, np.newaxis]
        self._has_failed = False
        self._untold: Exception | None = None
        self._figures = before
        self.begin()
        self._writer.write(replace(before, state=State.STARTING))

    def begin(self, is_heard: bool = True) -> None:
        """A stream is about to start, and has a place yet to be found; or blocks that are not heard by anybody."""
        self._is_heard = is_heard
        self._sample: int | None = None
        self._restarts = 0
        self._sounds = False
        self._leaving = False
        self._heard = _Evened()

    @property
    def is_placed(self) -> bool:
        """Whether the stream has its place in the performance: from its first block on."""
        return self._sample is not None

    def lose(self) -> None:
        """There is no stream any more."""
        self._writer.write(replace(self._figures, state=State.LOST, load=0.0))

    def leave(self) -> None:
        """Sound fades away, and stays away until `begin`."""
        self._leaving = True

    def failure(self) -> Exception | None:
        """What the renderer failed with, for `what_failed`; told once, until `forgive`."""
        failure, self._untold = self._untold, None
        return failure

    def forgive(self) -> None:
        """The renderer has something else to play, and may fail anew."""
        self._has_failed = False

    def fill(self, block: NDArray[np.float32], latency: float, underflow: bool) -> None:
        """Fills a block, [frames, channels], that is heard after `latency` seconds. Never raises."""
        began = time.monotonic()
        self.count += 1
        # What is missing in silence is not missed.
        self._underruns += underflow and self._sounds
        self._controls.refresh()
        if not self._controls.known:
            block[:] = 0
            return
        sample = self._place(began + latency)
        state = self._play(block, sample)
        heard = began + latency
        if state is State.PLAYING:
            heard = self._heard.at(sample / self._rate, heard)
        state = state if self._is_heard else State.LOST
        self._load.add(time.monotonic() - began, len(block) / self._rate)
        self._figures = Figures(
            sample, sample / self._rate, began, latency, heard, self.count, self._underruns, self._load.share, state,
            self._restarts,
        )  # fmt: skip
        self._writer.write(self._figures)

    def _place(self, heard: float) -> int:
        """The number of the block's first sample, which is heard at that moment."""
        controls = self._controls
        if self._sample is None:
            self._restarts = controls.restarts
            self._sample = max(0, round(controls.now(heard) * self._rate))
        elif controls.restarts != self._restarts and not self._sounds:
            # What sounded before has faded away. The new beginning is played from its first sample on.
            self._restarts = controls.restarts
            self._sample = 0
        return self._sample

    def _play(self, block: NDArray[np.float32], sample: int) -> State:
        controls = self._controls
        ends = controls.paused or self._leaving or controls.restarts != self._restarts
        if ends and not self._sounds:
            block[:] = 0
            self._heard = _Evened()
            return State.PAUSED
        self._render(block, sample / self._rate)
        # A performance begins as it is: a drum on the first beat would lose its stroke.
        if not self._sounds and sample > 0:
            self._fade(block)
        if ends:
            self._fade(block[::-1])
        self._sounds = not ends
        self._sample = sample + len(block)
        return State.PLAYING

    def _render(self, block: NDArray[np.float32], seconds: float) -> None:
        try:
            self._renderer.render(block, seconds)
        except Exception as failure:
            block[:] = 0
            if not self._has_failed:
                self._has_failed = True
                self._untold = failure

    def _fade(self, block: NDArray[np.float32]) -> None:
        """The beginning of a block fades in."""
        ramp = self._ramp[: len(block)]
        block[: len(ramp)] *= ramp


def what_failed(failure: BaseException) -> Diagnostic:
    """What to say when the renderer fails, or cannot be had."""
    if isinstance(failure, ProgramFailure) and failure.__cause__ is not None:
        return what_failed(failure.__cause__)
    return failure.diagnostics[0] if isinstance(failure, WeftError) else fault("the sound fails", failure)


class _Evened:
    """The moments at which blocks are heard, as even as they are."""

    def __init__(self) -> None:
        self._count = 0
        self._offset = 0.0

    def at(self, seconds: float, moment: float) -> float:
        """When the block of this time is heard: one that is said to be heard at this moment."""
        error = moment - seconds - self._offset
        self._count = 1 if abs(error) > _GAP else self._count + 1
        self._offset += error * max(1 / self._count, _NEW)
        return seconds + self._offset


class _Load:
    """Share of the time, over a second, that rendering takes."""

    def __init__(self) -> None:
        self.share = 0.0
        self._busy = self._passed = 0.0

    def add(self, busy: float, passed: float) -> None:
        self._busy += busy
        self._passed += passed
        if self._passed >= 1:
            self.share = self._busy / self._passed
            self._busy = self._passed = 0.0
