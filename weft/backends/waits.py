"""Waits for devices. Each of them has an end, after which a device counts as lost."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
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
        """`finish` waits without an end, and raises what has failed. May be called by another thread."""
        self._waits = waits
        self.is_over = is_over
        """Whether it is done, or has failed."""
        self._finish = finish

    def wait(self) -> None:
        """Waits until it is done. May be called again."""
        self._waits.until(self.is_over, self._finish)
        self._finish()
        self._waits.tidy()


class _Helper(threading.Thread):
    """Waits without an end for those who have one."""

    def __init__(self) -> None:
        super().__init__(name="weft-wait", daemon=True)
        self.calls: SimpleQueue[tuple[Callable[[], object], threading.Event] | None] = SimpleQueue()
        self.start()

    def run(self) -> None:
        while (given := self.calls.get()) is not None:
            call, over = given
            with suppress(Exception):  # it is called again by those who wait
                call()
            del given, call  # they may belong to a device that is gone by the next one
            over.set()


class DeviceWaits:
    """The waits for one device. One that has not answered in time is not waited for any more."""

    def __init__(self, failure: type[Exception]) -> None:
        """`failure` is what the waits raise."""
        self._failure = failure
        self.most = MOST_SECONDS
        self.is_processor = False
        """Whether the device needs the processor to come to an end: to ask it often would hold it up."""
        self._helpers: list[_Helper] = []
        """Those that have nothing to do."""
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

    def until(self, is_over: Callable[[], bool], finish: Callable[[], object] | None = None) -> None:
        """Waits until something is over. May be called from any thread. Raises the failure if the device hangs.
        `finish` is the library's own wait, if it has one that has no end."""
        if is_over():
            return
        if self.is_processor and finish is not None and not self.is_hung:
            if not self._comes(is_over, _SOON):
                self._helped(finish)
            return
        self.within(partial(self._comes, is_over))

    def _helped(self, finish: Callable[[], object]) -> None:
        """Has a thread wait, which is left if the device hangs."""
        try:
            helper = self._helpers.pop()
        except IndexError:
            helper = _Helper()
        over = threading.Event()
        helper.calls.put((finish, over))
        self.within(over.wait)
        self._helpers.append(helper)

    def __del__(self) -> None:
        for each in self._helpers:
            each.calls.put(None)

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
