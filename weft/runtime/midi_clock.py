"""The clock of MIDI: from 24 ticks a beat to a tempo and a beat.

Ticks come with jitter: a cable takes a third of a millisecond for a byte, USB hands on what has come once a
millisecond, and a program on a busy machine is late by many. The tempo is the slope of the line that fits the last
ticks best: ordinary least squares of their numbers over their moments, with the standard error of the slope, as in any
textbook of statistics. A tempo stays as it is while it differs from that slope by no more than chance explains.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from weft.media.midi import MidiMessage

TICKS = 24
"""Ticks a beat."""

# Ticks a sixteenth, in which positions are sent.
_SIXTEENTH = TICKS // 4
# The most ticks of a line, and the fewest that make one: four beats, and half a beat.
_MOST = 4 * TICKS
_FEWEST = TICKS // 2
# Seconds between two ticks after which a clock begins again: 10 beats a minute.
_GAP = 0.25
# By how many standard errors, and by which share, the tempo of the last beat may differ from that of all ticks, unless
# the tempo was changed; for how many ticks it has to differ, since what is late catches up; and by how many errors and
# which share a tempo may be off before it is corrected.
_CHANGED_ERRORS, _CHANGED, _LASTING = 5.0, 0.02, TICKS // 2
_OFF_ERRORS, _OFF = 3.0, 2e-4


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The tempo, and the beat at a moment in seconds. If the position `is_known`, beat 0 is the beginning of the
    piece."""

    bpm: float
    beat: float
    moment: float
    is_known: bool


class ClockDecoder:
    """Follows the clock of one device."""

    def __init__(self) -> None:
        self._moments: deque[float] = deque(maxlen=_MOST)
        self._ticks = 0
        """The number of the next tick since the beginning of the piece."""
        self._is_known = False
        self._way = self._lasting = 0
        """Whether the last ticks are faster (1) or slower (-1) than all of them, and for how many ticks."""
        self._rate = 0.0
        """The tempo that was given last, in ticks a second."""

    def take(self, message: MidiMessage, moment: float) -> None:
        """Takes a message of a clock, which came at a moment in seconds."""
        match message.kind:
            case "clock":
                if self._moments and not 0 <= moment - self._moments[-1] <= _GAP:
                    self._moments.clear()
                self._moments.append(moment)
                self._ticks += 1
                self._lasting += 1
            case "start":
                # Beat 0 is at the next tick.
                self._ticks, self._is_known = 0, True
            case "position":
                self._ticks, self._is_known = message.value * _SIXTEENTH, True

    def reading(self) -> ClockReading | None:
        """The tempo and the beat at the last tick; None before there were enough."""
        line = self._fitted()
        if line is None:
            return None
        if abs(line.slope - self._rate) > max(_OFF_ERRORS * line.error, _OFF * line.slope):
            self._rate = line.slope
        beat = (self._ticks - 1 + line.last) / TICKS
        return ClockReading(60 * self._rate / TICKS, beat, self._moments[-1], self._is_known)

    def _fitted(self) -> _Line | None:
        """The line through the last ticks. If their tempo has changed, it is that of the last beat."""
        moments = list(self._moments)
        if len(moments) < _FEWEST:
            return None
        line = _Line.through(moments)
        if line is None or len(moments) < 2 * TICKS:
            return line
        recent = _Line.through(moments[-TICKS:])
        if recent is None:
            return line
        apart = recent.slope - line.slope
        way = 0 if abs(apart) <= max(_CHANGED_ERRORS * recent.error, _CHANGED * line.slope) else 1 if apart > 0 else -1
        if way != self._way:
            self._way, self._lasting = way, 0
        if way and self._lasting >= _LASTING:
            self._moments, self._way = deque(moments[-TICKS:], maxlen=_MOST), 0
            return recent
        return line


@dataclass(frozen=True, slots=True)
class _Line:
    """A line through the numbers of ticks over their moments: ticks a second, the standard error of that, and the value
    at the last moment, in ticks after the last one."""

    slope: float
    error: float
    last: float

    @classmethod
    def through(cls, moments: list[float]) -> _Line | None:
        """The line that fits best; None if all ticks came at once."""
        count, end = len(moments), moments[-1]
        times = [moment - end for moment in moments]
        mean_time, mean_tick = sum(times) / count, (1 - count) / 2
        spread = sum((time - mean_time) ** 2 for time in times)
        if spread == 0:
            return None
        pairs = list(zip(times, range(1 - count, 1), strict=True))
        slope = sum((time - mean_time) * (tick - mean_tick) for time, tick in pairs) / spread
        last = mean_tick - slope * mean_time
        rest = sum((tick - last - slope * time) ** 2 for time, tick in pairs)
        return cls(slope, math.sqrt(rest / (count - 2) / spread), last)
