"""What a process does that draws one kernel with one participant."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

from benchmarks.beside.worker import Begun, median_step
from benchmarks.peers.peer import Picture
from benchmarks.peers.reference import KERNELS
from benchmarks.peers.registry import PEERS

# The picture that a tool draws before it is measured, so that it has done all that it does only once.
_SMALL = (64, 36)

# The time of the first frame, in seconds. The others follow at 60 a second.
START = 1.7


@dataclass(frozen=True, slots=True)
class Job:
    """A kernel, a participant, the size of the picture, and how many there are a second, or 0 for one behind the other;
    see `benchmarks.beside.worker.Job`."""

    patience: ClassVar[float] = 120

    peer: str
    kernel: str
    width: int
    height: int
    threads: int
    fps: float = 0.0

    def __str__(self) -> str:
        return f"{self.kernel}: {self.peer} × {self.threads}"

    def unavailable(self) -> str | None:
        return PEERS[self.peer].available()

    def begin(self) -> Begun:
        """Draws the first frame with a tool that has already drawn another one."""
        peer = PEERS[self.peer]
        other = next(kernel for kernel in KERNELS if kernel != self.kernel)
        peer.prepare(other, *_SMALL, self.threads).draw(START)
        before = time.perf_counter()
        prepared = peer.prepare(self.kernel, self.width, self.height, self.threads)
        prepared.draw(START)
        took = time.perf_counter() - before
        numbers = count()

        def picture(at: float) -> Picture:
            prepared.draw(at)
            return prepared.picture()

        def turn(seconds: float) -> float:
            apart = 1 / self.fps if self.fps else 0.0
            return median_step(lambda: prepared.draw(START + next(numbers) / 60), seconds, apart)

        return Begun(peer.version(), took * 1e3, picture, turn)
