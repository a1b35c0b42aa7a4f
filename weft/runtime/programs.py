"""The program that plays, and what it can go back to."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from weft.runtime.program import Stage, Swap

# Seconds for which a program has to play well before the one that it replaced is let go.
_PROBATION = 10.0


class Programs:
    """The program that plays now, and for some seconds the one before it. `now` gives seconds."""

    def __init__(self, stage: Stage, now: Callable[[], float] = time.monotonic) -> None:
        self.stage = stage
        self._now = now
        self._running: Swap | None = None
        self._before: Swap | None = None
        self._entered = 0.0
        self._has_drawn = False

    @property
    def running(self) -> Swap | None:
        """The program that plays; None before the first that could."""
        return self._running

    def enter(self, swap: Swap, fades: bool = False) -> None:
        """From now on this program plays, with what the one before remembers, which runs on for a while if it `fades`.
        Raises whatever goes wrong with that."""
        if self._running is not None:
            self.stage.take_over(swap, self._running, copy=fades)
        if self._has_drawn:
            # What has not drawn a frame is nothing to go back to.
            self._before = self._running
        self._running, self._has_drawn, self._entered = swap, False, self._now()

    def drew(self) -> None:
        """The program has drawn a frame."""
        self._has_drawn = True
        if self._before is not None and self._now() - self._entered > _PROBATION:
            self._before = None

    def withdraw(self) -> bool:
        """Goes back to the program before; False if there is none, so that the one that failed has to go on."""
        if self._before is None:
            return False
        failed, self._running, self._before = self._running, self._before, None
        self._has_drawn = True
        with suppress(Exception):  # what cannot be handed back starts from nothing
            self.stage.take_over(self._running, failed)
        return True
