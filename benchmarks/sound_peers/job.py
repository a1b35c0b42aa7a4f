"""What a process does that computes one kernel with one participant."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.beside.worker import Begun, median_step
from benchmarks.sound_peers.peer import RATE, Samples
from benchmarks.sound_peers.reference import KERNELS
from benchmarks.sound_peers.registry import PEERS

# Samples that are asked for at once as a sound card would.
ASKED = 512


@dataclass(frozen=True, slots=True)
class Job:
    """A kernel, a participant, and how many samples are asked for at once; see `benchmarks.beside.worker.Job`. A step
    takes what a second of sound takes."""

    # A compiler tries many settings.
    patience: ClassVar[float] = 1200

    peer: str
    kernel: str
    asked: int = RATE

    @property
    def name(self) -> str:
        return self.peer + (f" by {self.asked}" if self.asked != RATE else "")

    def __str__(self) -> str:
        return f"{self.kernel}: {self.name}"

    def unavailable(self) -> str | None:
        return PEERS[self.peer].available()

    def begin(self) -> Begun:
        """Computes the first block with a tool that has already computed another sound."""
        peer = PEERS[self.peer].tuned(self.kernel)
        other = next(kernel for kernel in KERNELS if kernel != self.kernel)
        peer.prepare(other).play(ASKED)
        before = time.perf_counter()
        prepared = peer.prepare(self.kernel)
        prepared.play(ASKED)
        took = time.perf_counter() - before
        start = prepared.heard().copy()
        prepared.play(RATE - ASKED)
        first_second = np.hstack([start, prepared.heard()])
        played = RATE

        def play() -> None:
            nonlocal played
            prepared.play(self.asked)
            played += self.asked

        def show(at: float) -> tuple[int, Samples]:
            """The samples up to now, with the number of the first of them; of the first second, if that is asked."""
            return (0, first_second) if at == 0 else (played - self.asked, prepared.heard())

        def turn(seconds: float) -> float:
            return median_step(play, seconds) * RATE / self.asked

        return Begun(peer.version(), took * 1e3, show, turn)
