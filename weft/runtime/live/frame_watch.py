"""Tells when the picture stands still, because a frame does not come to its end."""

from __future__ import annotations

import threading
import time

from weft.backends.cpu import CpuBackend
from weft.runtime.live.events import Reporter
from weft.runtime.program.program import Programs

# The seconds between two looks, and the looks in one frame after which the picture stands still. A process that is
# stopped meanwhile, as by Ctrl+Z, does not look.
_EVERY, _LOOKS = 0.5, 6


class FrameWatch:
    """Looks at the thread that draws, from another one: a device that hangs is waited for within a frame. `with` it, a
    frame is drawn. Of frames that are all slow, only the first is told."""

    def __init__(self, reporter: Reporter, programs: Programs) -> None:
        self._reporter = reporter
        self._programs = programs
        self._lock = threading.Lock()
        self._frame = 0
        self._since = 0.0
        """When the frame began that is being drawn; 0 if none is."""
        self._is_told = self._was_slow = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="weft-frames", daemon=True)

    def __enter__(self) -> None:
        if self._thread.ident is None:
            self._thread.start()
        self._frame += 1
        self._since = time.monotonic()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            since, self._since = self._since, 0.0
        took = time.monotonic() - since
        if self._is_told:
            self._reporter.moves_again(took)
        self._is_told, self._was_slow = False, took > _EVERY * _LOOKS

    def close(self) -> None:
        """Ends the thread. May be called twice."""
        self._ended.set()

    def _run(self) -> None:
        frame = looks = 0
        while not self._ended.wait(_EVERY):
            looks = looks + 1 if self._frame == frame else 0
            frame = self._frame
            with self._lock:
                if self._since and looks >= _LOOKS and not (self._is_told or self._was_slow):
                    self._is_told = True
                    self._reporter.stands_still(time.monotonic() - self._since, self._awaited())

    def _awaited(self) -> str:
        """The name of the device that draws, if that is not the processor."""
        running = self._programs.running
        at = None if running is None else running.runner.at
        return "" if at is None or isinstance(at.backend, CpuBackend) else at.backend.name
