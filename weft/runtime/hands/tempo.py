"""The tempo of a performance, which the text, taps of a key and outside clocks may change at any moment.

A change never makes the beat jump. It is planned a little ahead of the sound, so that pictures and sounds know it
before it is due. To meet a beat that was tapped, or that of another clock, the beat runs a little faster or slower for
a while.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from dataclasses import dataclass

from weft.beats import USUAL, Beats

# The share of the tempo by which the beat runs faster or slower to meet another one, and the least seconds for it. A
# player does not notice the difference.
_GLIDE = 0.05
_SHORTEST = 1.0

# After this many seconds without a tap, the next tap is a first one. And the least seconds between two movements of one
# finger.
_AGAIN = 2.0
_BOUNCE = 0.12
# The most intervals that are averaged, and the fewest, since a single one is too inexact.
_MOST_INTERVALS = 8
_FEWEST_INTERVALS = 2
# The bounds of an interval relative to the mean of those before it. Outside them, a tap was missed, or a new series
# begins. A tap takes effect when a frame begins, so intervals are uneven if frames are slow.
_SHORTER, _LONGER = 0.55, 1.7

# Differences from an outside clock that are ignored: a share of the tempo, and seconds of the beat.
_SAME_TEMPO = 5e-4
_SAME_TIME = 0.004

# A change is announced once it is this close, in seconds, beyond what the sound has computed ahead.
_SOON = 0.1

LOWEST, HIGHEST = 0.1, 10000.0
"""The range of a tempo, which is that of `me<bpm>`."""


@dataclass(frozen=True)
class _Goal:
    """A tempo, and a beat that is to be met: `beat` at the time `moment` of the performance; None: any."""

    bpm: float
    moment: float = 0.0
    beat: float | None = None


class Tempo:
    """The tempo, and the beats that follow from it. Every method may be called from any thread. Times are those of the
    performance, in seconds."""

    def __init__(self, bpm: float = USUAL) -> None:
        self.beats = Beats.steady(bpm)
        """The beats as a function of time. It never changes: a new one replaces it."""
        self.source = "text"
        """The origin of the tempo."""
        self._lock = threading.Lock()
        self._bpm = bpm
        self._goal: _Goal | None = None
        """The goal for which no change is planned yet."""
        self._aimed: _Goal | None = None
        """The goal that was set last."""
        self._planned: deque[tuple[float, float]] = deque()
        """The next changes, each with its time and its tempo."""
        self._taps: deque[float] = deque(maxlen=_MOST_INTERVALS + 1)

    @property
    def bpm(self) -> float:
        """The tempo that was set last. While the beat catches up, it runs at a slightly different one."""
        return self._bpm

    def begin(self, bpm: float, source: str = "text") -> None:
        """Counts all beats since the start in one tempo, at the beginning of a performance."""
        with self._lock:
            self._bpm, self.source = bpm, source
            self._forget()

    def restart(self) -> None:
        """Counts from 0, like the time. The tempo stays, and series of taps end."""
        with self._lock:
            self._forget()

    def set(self, bpm: float, source: str = "text") -> None:
        """Changes the tempo as soon as possible. The beat continues from its place."""
        with self._lock:
            self._aim(_Goal(_within(bpm)), source)

    def tap(self, moment: float) -> float | None:
        """Notes a beat that was tapped at this time. From the third tap on, the tempo is the mean of the last taps, and
        the nearest beat moves to the last one. Returns the tempo; None if there is none yet."""
        with self._lock:
            taps = self._taps
            passed = moment - taps[-1] if taps else math.inf
            if 0 <= passed < _BOUNCE:
                return None
            if not 0 <= passed <= _AGAIN:
                taps.clear()
            elif len(taps) > 1:
                mean = (taps[-1] - taps[0]) / (len(taps) - 1)
                if not _SHORTER < passed / mean < _LONGER:
                    while len(taps) > 1:
                        taps.popleft()
            taps.append(moment)
            count = len(taps) - 1
            if count < _FEWEST_INTERVALS:
                return None
            bpm = 60 * count / (taps[-1] - taps[0])
            self._aim(_Goal(bpm, moment, math.floor(self.beats.at(moment) + 0.5)), "tap")
            return bpm

    def follow(self, bpm: float, beat: float, moment: float, source: str, every: float = 1.0) -> None:
        """Follows an outside clock, which has this tempo, and this beat at this time. The own beat moves to the nearest
        one that agrees with it up to multiples of `every` beats: 1 for the beat, 4 for measures of four. May be called
        often, since small differences are ignored."""
        with self._lock:
            bpm = _within(bpm)
            own = self.beats.at(moment)
            apart = math.remainder(beat - own, every)
            is_same = abs(bpm / self._bpm - 1) < _SAME_TEMPO and abs(apart) * 60 / bpm < _SAME_TIME
            if not (is_same or self._is_under_way(bpm)):
                self._aim(_Goal(bpm, moment, own + apart), source)

    def advance(self, now: float, ahead: float, heard: tuple[float, float] | None = None) -> bool:
        """Plans changes; for the thread that draws, once a frame. Sounds are known `ahead` seconds from `now` on. The
        last change is `heard` at another time than planned if the sound learned of it too late: after how many beats,
        and when. Returns whether the `beats` have changed, which the sound has to know at once."""
        with self._lock:
            if heard is not None and heard[1] > self.beats.start:
                self.beats = self.beats._replace(then=heard[0], start=heard[1])
                # What is planned next would miss it.
                self._goal = self._aimed
            beats, earliest = self.beats, now + ahead
            # Only the last change is known, so the next one has to wait until it has taken place.
            if now < beats.start:
                return False
            if self._goal is not None:
                self._plan(self._goal, beats, earliest)
                self._goal = None
            if not self._planned or self._planned[0][0] > earliest + _SOON:
                return False
            start, bpm = self._planned.popleft()
            self.beats = beats.changed(max(start, earliest), bpm)
            return True

    def _aim(self, goal: _Goal, source: str) -> None:
        self._goal = self._aimed = goal
        self._bpm, self.source = goal.bpm, source

    def _plan(self, goal: _Goal, beats: Beats, earliest: float) -> None:
        """Plans the changes that lead to a goal."""
        self._planned.clear()
        missing = 0.0
        if goal.beat is not None:
            missing = goal.beat + (earliest - goal.moment) * goal.bpm / 60 - beats.at(earliest)
        lasts = max(_SHORTEST, abs(missing) * 60 / (goal.bpm * _GLIDE))
        if abs(missing) * 60 / goal.bpm > _SAME_TIME / 4:
            self._planned.append((earliest, goal.bpm + 60 * missing / lasts))
            self._planned.append((earliest + lasts, goal.bpm))
        elif goal.bpm != beats.bpm:
            self._planned.append((earliest, goal.bpm))

    def _is_under_way(self, bpm: float) -> bool:
        """Whether the beat is on its way to a goal of this tempo."""
        moves = self._goal is not None or bool(self._planned)
        return moves and abs(bpm / self._bpm - 1) < _SAME_TEMPO

    def _forget(self) -> None:
        self.beats = Beats.steady(self._bpm)
        self._goal = self._aimed = None
        self._planned.clear()
        self._taps.clear()


def _within(bpm: float) -> float:
    """A tempo within the range."""
    return min(max(bpm, LOWEST), HIGHEST)


class TextTempo:
    """The tempo of the text that plays. It is the tempo of the performance until something else sets that."""

    def __init__(self, tempo: Tempo) -> None:
        """`tempo` is that of the performance."""
        self._tempo = tempo
        self._file, self._bpm = "", 0.0

    def begin(self, file: str, bpm: float) -> None:
        """Begins to count beats in the tempo of the first program. `file` is the file of its text."""
        self._file, self._bpm = file, bpm
        self._tempo.begin(bpm)

    def follow(self, file: str, bpm: float) -> None:
        """Takes over the tempo of another program, if a save has changed it there. The tempo of another patch does not
        replace one that was set by hand or from outside."""
        is_same_file, before, self._file, self._bpm = file == self._file, self._bpm, file, bpm
        if bpm != before and (is_same_file or self._tempo.source == "text"):
            self._tempo.set(bpm)
