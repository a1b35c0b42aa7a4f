"""Flaws in the recording of a tone: their times, and whether they are explained by stalls of the machine itself, as on
one that is shared with others. Time that a slowed processor loses counts as a stall."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.support.ends import tied
from tests.support.sound import RATE, Samples, SoundServer, breaks, read, stretches

# The interval between notes about the length of the recording, in seconds; and the samples among whose notes the best
# is chosen.
_GLANCE = 0.005
_NOTES = 2 * RATE
# Two breaks that are this many samples apart are two.
_APART = RATE // 200
# The samples on both sides of a gap that show whether any are missing.
_EDGE = 20
# The seconds until a late block is in an event at the latest; there is one a second.
_BELATED = 1.5


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
    machine stood still around it, in seconds.

    `is_inserted`: no sample is missing. The tone continues after a gap with the sample that follows the last one before
    it, as when a device has to wait for the next block. Silence that weft plays takes the place of samples.
    """

    kind: str
    at: float
    lasts: float
    lost: float
    is_explained: bool
    is_inserted: bool = False

    def __str__(self) -> str:
        still = f"the machine stood still for {self.lost * 1e3:.1f} ms around it"
        kind = f"inserted {self.kind}" if self.is_inserted else self.kind
        return f"{kind} of {self.lasts * 1e3:.1f} ms at {self.at:.3f} s: {still}"


class Listening:
    """A recording with its timeline and a watch over the machine. Its methods may be called once it is over."""

    def __init__(self, file: Path, timeline: Timeline, watch: Watch, edge: int) -> None:
        self._file = file
        self._timeline = timeline
        self._watch = watch
        self._edge = edge
        self._late: list[tuple[float, int]] = []
        self._noted = 0.0

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

    def note_late(self, blocks: int, moment: float | None = None) -> None:
        """Notes that weft has reported by a moment, now if none is given, that this many blocks were late."""
        moment = time.monotonic() if moment is None else moment
        if not self._late or self._late[-1][1] != blocks:
            self._late.append((moment, blocks))
        self._noted = moment

    def unexplained(self, hertz: float) -> list[Flaw]:
        """The flaws of a tone that weft may be to blame for."""
        return [flaw for flaw in self.flaws(hertz) if not (flaw.is_explained or self._waits_for_others(flaw))]

    def _waits_for_others(self, flaw: Flaw) -> bool:
        """Whether the device had to wait, but not for weft, none of whose blocks was late then."""
        begin = self._timeline.moment(round(flaw.at * RATE))
        known_after = begin + flaw.lasts + _BELATED
        changes = [moment for moment, _ in self._late[1:] if begin - _BEFORE < moment < known_after]
        return flaw.is_inserted and bool(self._late) and known_after < self._noted and not changes

    def flaws(self, hertz: float) -> list[Flaw]:
        """All flaws of a tone of this frequency in the first channel."""
        first, samples = self.heard()
        parts = stretches(samples)
        found = []
        for one, other in pairwise(parts):
            joined = np.concatenate([samples[one][-_EDGE:], samples[other][:_EDGE]])
            gap = self._flaw("gap", first, one.stop, other.start)
            found.append(replace(gap, is_inserted=not len(breaks(joined, hertz))))
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


# It only asks to be woken every half millisecond, with priority over all others, and notes the times during which it
# was not. It is bound to one processor: if it could move to another, it would not notice a stall. A processor may also
# be slowed to a tenth for a while, as by what limits the power of a machine. So every two milliseconds it counts as
# well: if that takes more than three times as long as at best, it notes the time that a quick processor would not need.
_WATCH = """
import os, sys, time
try:
    os.sched_setaffinity(0, {int(sys.argv[1])})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(9))
except (OSError, AttributeError):
    pass
best, before = float("inf"), time.monotonic()
while True:
    for _ in range(4):
        due = time.monotonic() + 0.0005
        time.sleep(0.0005)
        now = time.monotonic()
        if now - due > 0.00025:
            print(due, now, flush=True)
    for _ in range(500):
        pass
    now, woken = time.monotonic(), now
    best = min(best * 1.0001, now - woken)
    if now - woken > 3 * best:
        print(now - (now - before) * (1 - best / (now - woken)), now, flush=True)
    before = now
"""

# A player has two blocks in hand, 21 ms. Several processes have to run one after another before the next block is
# heard: the loudspeaker, its client, the player and the recorder. So stalls add up. A flaw is explained only by the
# time lost from _BEFORE seconds before it on, and only if that is at least _ENOUGH seconds. Where nothing may have
# priority, each of those processes waits for others as the watch does, so a share of that is enough.
_BEFORE = 0.05
_ENOUGH = 0.01
_ENOUGH_EACH = 0.003


@dataclass(frozen=True)
class Stalls:
    """The times (of `time.monotonic`) at which any processor stood still: [stalls, 2], from and to, apart from each
    other, in their order. `enough` seconds of them explain a flaw."""

    times: NDArray[np.float64]
    enough: float = _ENOUGH

    @property
    def total(self) -> float:
        """The seconds that the machine stood still."""
        return float(np.sum(self.times[:, 1] - self.times[:, 0]))

    def lost(self, begin: float, end: float) -> float:
        """The seconds that the machine stood still between these moments."""
        until_begin, until_end = self._lost_until(np.array([begin, end]))
        return float(until_end - until_begin)

    def lost_around(self, begin: float, end: float) -> float:
        """The seconds that it stood still when this may have caused a flaw between these moments."""
        return self.lost(begin - _BEFORE, end)

    def explain(self, begin: float, end: float) -> bool:
        """Whether stalls can explain a flaw between these moments."""
        return self.lost_around(begin, end) >= self.enough

    def chance(self, begin: float, end: float) -> float:
        """The share of these moments at which any flaw would be explained: the probability of a coincidence."""
        moments = np.arange(begin, end, _ENOUGH)
        return float(np.mean(self._lost_until(moments) - self._lost_until(moments - _BEFORE) >= self.enough))

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
            with subprocess.Popen(tied([sys.executable, "-c", _WATCH, str(processor)]), stdout=notes) as process:
                try:
                    yield
                finally:
                    has_priority = sys.platform != "linux" or os.sched_getscheduler(process.pid) == os.SCHED_FIFO
                    process.kill()
            notes.seek(0)
            lines = [line.split() for line in notes if line.endswith(b"\n")]
        found = np.array(lines, np.float64).reshape(-1, 2)
        enough = self.stalls.enough if has_priority else _ENOUGH_EACH
        self.stalls = Stalls(_joined(np.concatenate([self.stalls.times, found])), enough)


def _joined(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Stalls without overlaps."""
    joined: list[list[float]] = []
    for begin, end in times[np.argsort(times[:, 0])].tolist():
        if joined and begin <= joined[-1][1]:
            joined[-1][1] = max(end, joined[-1][1])
        else:
            joined.append([begin, end])
    return np.array(joined).reshape(-1, 2)


@contextmanager
def watched() -> Iterator[Watch]:
    """Watches the machine within this context."""
    watch = Watch()
    processors = os.sched_getaffinity(0) if sys.platform == "linux" else {0}
    with ExitStack() as watches:
        for processor in processors:
            watches.enter_context(watch._on(processor))
        yield watch
