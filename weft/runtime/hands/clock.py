"""The time of a performance: a clock that can pause, restart and follow another, and has a tempo."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from weft.runtime.hands.tempo import Tempo

# How much faster or slower than real time the clock may run to catch up with the one that it follows: 2 % is not
# visible, and a difference of 50 ms at the start is gone in 2.5 s.
_SLEW = 0.02


@dataclass(frozen=True, slots=True)
class Tick:
    """One frame's time: its number from 0, the seconds since the start, and the seconds since the frame before."""

    number: int
    time: float
    dt: float


@dataclass(frozen=True)
class Moment:
    """A moment of a performance: the number of the frame, the seconds since the start and since the frame before, and
    the values of mouse, keys and parameters."""

    tick: int = 0
    abstime: float = 0.0
    dt: float = 0.0
    inputs: Mapping[str, float] = field(default_factory=dict)


class Clock:
    """Seconds since the start, in real time. Never goes back, except to 0 at a restart.

    Every method may be called from any thread. `source` gives seconds and must never go back.
    """

    def __init__(self, source: Callable[[], float] = time.monotonic) -> None:
        self.latest = Tick(0, 0.0, 0.0)
        """The latest tick."""
        self.tempo = Tempo()
        self._source = source
        self._lock = threading.Lock()
        self._seen = source()
        self._time = 0.0
        self._paused = False
        self._lag = 0.0
        self._ticks = 0
        self._ticked = 0.0

    @property
    def paused(self) -> bool:
        return self._paused

    def now(self) -> float:
        """Seconds since the start, without those spent in a pause."""
        with self._lock:
            return self._advance()

    def tick(self) -> Tick:
        """Begins the next frame. The first frame, and the first after a restart, have a `dt` of 0."""
        with self._lock:
            now = self._advance()
            self.latest = Tick(self._ticks, now, now - self._ticked if self._ticks else 0.0)
            self._ticks += 1
            self._ticked = now
            return self.latest

    def pause(self) -> None:
        """Stops the time until `resume`."""
        with self._lock:
            self._advance()
            self._paused = True

    def resume(self) -> None:
        with self._lock:
            self._advance()
            self._paused = False

    def restart(self) -> None:
        """Goes back to 0, and to frame 0, and the beat with it. A paused clock stays paused."""
        with self._lock:
            self._advance()
            self._time = self._lag = self._ticked = 0.0
            self._ticks = 0
            self.tempo.restart()

    def follow(self, leader: float) -> None:
        """Approaches a leading clock (the audio stream's) that shows `leader` seconds now.

        The clock runs a little faster or slower until the difference is gone, and never jumps: call this whenever the
        time of the leader is known.
        """
        with self._lock:
            self._lag = leader - self._advance()

    def _advance(self) -> float:
        """Updates the time and returns it. The lock must be held."""
        seen = self._source()
        elapsed = seen - self._seen
        self._seen = seen
        if not self._paused:
            most = _SLEW * elapsed
            correction = min(max(self._lag, -most), most)
            self._lag -= correction
            self._time += elapsed + correction
        return self._time
