"""Stalls of the machine itself, as on one that is shared with others, and the flaws that they excuse."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# It only asks to be woken every millisecond, with priority over all others, and notes the times during which it was
# not. It is bound to one processor: if it could move to another, it would not notice a stall.
_WATCH = """
import os, sys, time
try:
    os.sched_setaffinity(0, {int(sys.argv[1])})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(9))
except (OSError, AttributeError):
    pass
while True:
    due = time.monotonic() + 0.001
    time.sleep(0.001)
    now = time.monotonic()
    if now - due > 0.001:
        print(due, now, flush=True)
"""

# A player has two blocks in hand, 21 ms. Several processes have to run one after another before the next block is
# heard: the loudspeaker, its client, the player and the recorder. So stalls add up. A flaw is explained only by the
# time lost from _BEFORE seconds before it on, and only if that is at least _ENOUGH seconds.
_BEFORE = 0.05
_ENOUGH = 0.01


@dataclass(frozen=True)
class Stalls:
    """The times (of `time.monotonic`) at which any processor stood still: [stalls, 2], from and to, apart from each
    other, in their order."""

    times: NDArray[np.float64]

    def lost(self, begin: float, end: float) -> float:
        """The seconds that the machine stood still between these moments."""
        until_begin, until_end = self._lost_until(np.array([begin, end]))
        return float(until_end - until_begin)

    def lost_around(self, begin: float, end: float) -> float:
        """The seconds that it stood still when this may have caused a flaw between these moments."""
        return self.lost(begin - _BEFORE, end)

    def explain(self, begin: float, end: float) -> bool:
        """Whether stalls can explain a flaw between these moments."""
        return self.lost_around(begin, end) >= _ENOUGH

    def chance(self, begin: float, end: float) -> float:
        """The share of these moments at which any flaw would be explained: the probability of a coincidence."""
        moments = np.arange(begin, end, _ENOUGH)
        return float(np.mean(self._lost_until(moments) - self._lost_until(moments - _BEFORE) >= _ENOUGH))

    def _lost_until(self, moments: NDArray[np.float64]) -> NDArray[np.float64]:
        """The seconds that the machine stood still before each of these moments."""
        if not len(self.times):
            return np.zeros_like(moments)
        lengths = self.times[:, 1] - self.times[:, 0]
        sums = np.cumsum(lengths)
        return np.interp(moments, self.times.ravel(), np.column_stack([sums - lengths, sums]).ravel())


class Watch:
    """One process for each processor that notes when it stood still."""

    def __init__(self) -> None:
        self.stalls = Stalls(np.zeros((0, 2)))
        """Known when it is over."""

    @contextmanager
    def _on(self, processor: int) -> Iterator[None]:
        with tempfile.TemporaryFile() as notes:
            with subprocess.Popen([sys.executable, "-c", _WATCH, str(processor)], stdout=notes) as process:
                try:
                    yield
                finally:
                    process.kill()
            notes.seek(0)
            lines = [line.split() for line in notes if line.endswith(b"\n")]
        found = np.array(lines, np.float64).reshape(-1, 2)
        self.stalls = _joined(np.concatenate([self.stalls.times, found]))


def _joined(times: NDArray[np.float64]) -> Stalls:
    """Stalls without overlaps."""
    joined: list[list[float]] = []
    for begin, end in times[np.argsort(times[:, 0])].tolist():
        if joined and begin <= joined[-1][1]:
            joined[-1][1] = max(end, joined[-1][1])
        else:
            joined.append([begin, end])
    return Stalls(np.array(joined).reshape(-1, 2))


@contextmanager
def watched() -> Iterator[Watch]:
    """Watches the machine within this context."""
    watch = Watch()
    processors = os.sched_getaffinity(0) if sys.platform == "linux" else {0}
    with ExitStack() as watches:
        for processor in processors:
            watches.enter_context(watch._on(processor))
        yield watch
