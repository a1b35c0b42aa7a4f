"""Flaws in the recording of a tone: their times, and whether stalls of the machine explain them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from tests.support.sound import RATE, Samples, SoundServer, breaks, read, stretches
from tests.support.stalls import Stalls, Watch, watched

# The interval between notes about the length of the recording, in seconds; and the samples among whose notes the best
# is chosen.
_GLANCE = 0.005
_NOTES = 2 * RATE
# Two breaks that are this many samples apart are two.
_APART = RATE // 200


class Timeline:
    """The time at which each sample was recorded, as by `time.monotonic`. Notes may be late, so the earliest of several
    is the right one."""

    def __init__(self) -> None:
        self._notes: list[tuple[float, int]] = []

    def note(self, samples: int) -> None:
        """Notes that this many samples have been recorded by now."""
        self._notes.append((time.monotonic(), samples))

    def moment(self, sample: int) -> float:
        """The time at which a sample was recorded."""
        moments, counts = np.array(self._notes).T
        late = (moments - counts / RATE)[(counts > sample) & (counts <= sample + _NOTES)]
        return sample / RATE + float(late.min() if len(late) else moments[-1] - counts[-1] / RATE)


@contextmanager
def _timed(recording: Path) -> Iterator[Timeline]:
    """Keeps the timeline of a recording while it grows."""
    timeline = Timeline()
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(_GLANCE):
            timeline.note(recording.stat().st_size // 8)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield timeline
    finally:
        is_over.set()
        watching.join()


@dataclass(frozen=True)
class Flaw:
    """A gap, or a break, where the tone does not continue: its time in the recording, its duration, and how long the
    machine stood still around it, in seconds."""

    kind: str
    at: float
    lasts: float
    lost: float
    is_explained: bool

    def __str__(self) -> str:
        still = f"the machine stood still for {self.lost * 1e3:.1f} ms around it"
        return f"{self.kind} of {self.lasts * 1e3:.1f} ms at {self.at:.3f} s: {still}"


class Listening:
    """A recording with its timeline and a watch over the machine. Its methods may be called once it is over."""

    def __init__(self, file: Path, timeline: Timeline, watch: Watch, edge: int) -> None:
        self._file = file
        self._timeline = timeline
        self._watch = watch
        self._edge = edge

    @property
    def stalls(self) -> Stalls:
        return self._watch.stalls

    def heard(self, channel: int = 0) -> tuple[int, Samples]:
        """One channel from the first sound to the last, without its fades; and the number of its first sample."""
        samples = read(self._file)[:, channel]
        loud = np.flatnonzero(samples)
        first, last = int(loud[0]) + self._edge, int(loud[-1]) + 1 - self._edge
        return first, samples[first:last]

    def chance(self) -> float:
        """The probability that a flaw is explained by coincidence."""
        first, samples = self.heard()
        return self.stalls.chance(self._timeline.moment(first), self._timeline.moment(first + len(samples)))

    def flaws(self, hertz: float) -> list[Flaw]:
        """All flaws of a tone of this frequency in the first channel."""
        first, samples = self.heard()
        parts = stretches(samples)
        found = [self._flaw("gap", first, one.stop, other.start) for one, other in pairwise(parts)]
        for part in parts:
            places = part.start + breaks(samples[part], hertz)
            groups = np.split(places, np.flatnonzero(np.diff(places) > _APART) + 1)
            found += [self._flaw("break", first, group[0], group[-1]) for group in groups if len(group)]
        return sorted(found, key=lambda flaw: flaw.at)

    def _flaw(self, kind: str, first: int, start: int, stop: int) -> Flaw:
        begin, end = (self._timeline.moment(first + int(sample)) for sample in (start, stop))
        lost = self.stalls.lost_around(begin, end)
        return Flaw(kind, (first + int(start)) / RATE, (stop - start) / RATE, lost, self.stalls.explain(begin, end))


@contextmanager
def listened(loudspeaker: SoundServer, file: Path, edge: int) -> Iterator[Listening]:
    """Records what is heard within this context. Sound fades in and out within `edge` samples."""
    with loudspeaker.recorded(file), _timed(file) as timeline, watched() as watch:
        yield Listening(file, timeline, watch, edge)
