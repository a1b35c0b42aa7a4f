"""Sound without a device: nobody hears it, but what reads it goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from weft.runtime.sound.device import Fill

# A thread that was held up for longer does not make up for it.
_GAP = 0.5


class Unheard:
    """A thread that takes blocks at the pace of a device."""

    def __init__(self, rate: int, channels: int, frames: int, fill: Fill, anew: Callable[[], None]) -> None:
        """`anew` is called, by that thread, before a block that does not follow the one before in time."""
        self._block = np.zeros((frames, channels), np.float32)
        self._seconds = frames / rate
        self._fill = fill
        self._anew = anew
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="weft-unheard", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends it, with the block that it is at."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ending.wait(max(0.0, due - time.monotonic())):
            if time.monotonic() - due > _GAP:
                self._anew()
                due = time.monotonic()
            self._fill(self._block, 0.0, False)
            due += self._seconds
