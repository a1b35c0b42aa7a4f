"""Waits for devices. Each of them has an end, after which a device counts as lost."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

MOST_SECONDS = 30.0
"""A device that takes longer for a frame is considered to hang: before an audience, a frame that takes half a minute is
as good as none. A system that resets a card which hangs does so within ten seconds, and that is told in its words."""

FILM_SECONDS = min(1e6, threading.TIMEOUT_MAX)
"""The same for films: while they are drawn nobody watches, and a frame may take as long as it takes."""

# For this many seconds it is asked again and again whether a device is done. After that there is a sleep between two
# questions, by this share of the time until then, and within these bounds: a wait may last that much too long.
_SOON = 0.001
_SHARE, _SHORTEST, _LONGEST = 1 / 128, 0.00002, 0.002

_let_others_run: Callable[[], object] = getattr(os, "sched_yield", partial(time.sleep, 0))


class DeviceCommand:
    """Something that a device was asked for."""

    __slots__ = ("_finish", "_waits", "is_over")

    def __init__(self, waits: DeviceWaits, is_over: Callable[[], bool], finish: Callable[[], object]) -> None:
        """`finish` raises what has failed. It is called once the command is over."""
        self._waits = waits
        self.is_over = is_over
        """Whether it is done, or has failed."""
        self._finish = finish

    def wait(self) -> None:
        """Waits until it is done. May be called again."""
        self._waits.until(self.is_over)
        self._finish()
        self._waits.tidy()


class DeviceWaits:
    """The waits for one device. One that has not answered in time is not waited for any more."""

    def __init__(self, failure: type[Exception]) -> None:
        """`failure` is what the waits raise."""
        self._failure = failure
        self.most = MOST_SECONDS
        self.is_processor = False
        """Whether the device needs the processor to come to an end."""
        self.is_hung = False
        """Whether a wait has come to its end. What is on the device cannot be read, nor freed."""
        self._lock = threading.Lock()
        self._commands: deque[DeviceCommand] = deque()
        """In the order in which they were asked for."""
        self.kept: list[Any] = [self._commands]
        """What must not be freed if the device hangs, since that would wait for it."""

    def keep(self, command: DeviceCommand) -> None:
        """Keeps a command until it and those before it are over, since to forget it would wait for it."""
        self.tidy()
        self._commands.append(command)

    def tidy(self) -> None:
        """Forgets commands that are over."""
        with self._lock:
            while self._commands and self._commands[0].is_over():
                self._commands.popleft()

    def until(self, is_over: Callable[[], bool]) -> None:
        """Waits until something is over. May be called from any thread. Raises the failure if the device hangs."""
        if not is_over():
            self.within(partial(self._comes, is_over))

    def within(self, passes: Callable[[float], bool]) -> None:
        """The same for a wait that a library has: `passes` waits for some seconds at most, and says whether it is
        over. It is called again if there are seconds left."""
        left = 0.0 if self.is_hung else self.most
        # Second by second: a process that is stopped meanwhile, as by Ctrl+Z, has then waited for one of them.
        while not passes(min(left, 1.0)):
            left -= 1.0
            if left <= 0.0:
                break
        else:
            return
        if not self.is_hung:
            self.is_hung = True
            # Not even when Python ends, which would wait as well.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.kept))
        raise self.failure()

    def failure(self) -> Exception:
        """What is raised where the device hangs."""
        return self._failure(f"its device has not answered for {self.most:g} seconds")

    def _comes(self, is_over: Callable[[], bool], most: float) -> bool:
        """Whether something is over within some seconds."""
        began = now = time.perf_counter()
        while now < began + most:
            if now > began + _SOON:
                time.sleep(min(max(_SHORTEST, (now - began) * _SHARE), _LONGEST))
            elif self.is_processor:
                _let_others_run()
            if is_over():
                return True
            now = time.perf_counter()
        return False


# Frames, of devices whose waits are for fences.


class Fences(Protocol):
    """The fences of a driver, which are numbers."""

    delete: Callable[[int], None]

    def made(self) -> int:
        """One behind all that was asked for; 0 if the driver makes none."""

    def is_passed(self, fence: int) -> bool:
        """Whether all before a fence is done, or has failed, which is noticed elsewhere."""

    def passes(self, fence: int, most: float) -> bool:
        """The same within some seconds, which are waited for."""


# The frames that are asked for before the first wait. More would only add latency.
_AHEAD = 2


class FramesUnderWay:
    """Keeps the frames that are under way few. Each has a fence behind it."""

    def __init__(
        self, waits: DeviceWaits, fences: Fences, ended: Callable[[int], None], discard: Callable[[int], None]
    ) -> None:
        """`ended` is told the fence of each frame, and `discard` takes those of no use, from any thread."""
        self._waits = waits
        self._calls = fences
        self._ended = ended
        self._discard = discard
        self._fences: deque[int] = deque()

    def begin(self) -> None:
        """Waits until few enough frames are under way for another one. In the context that draws."""
        calls = self._calls
        while len(self._fences) >= _AHEAD:
            fence = self._fences[0]
            if not calls.is_passed(fence):
                self._waits.within(partial(calls.passes, fence))
            calls.delete(self._fences.popleft())

    def end(self, fence: int = 0) -> None:
        """A frame has been asked for; without its fence, one is made. In the context that draws."""
        fences, calls = self._fences, self._calls
        # The next frame need not ask about those that are done.
        while fences and calls.is_passed(fences[0]):
            calls.delete(fences.popleft())
        fence = fence or calls.made()
        fences.append(fence)
        self._ended(fence)

    def __del__(self) -> None:
        for fence in self._fences:
            self._discard(fence)
