"""A thread that takes in what others send, and uses no more than a share of a processor for that."""

from __future__ import annotations

import time

# The seconds of a processor that the thread may use at once, and the usual number of messages after which it checks.
_RUSH = 0.005
_LOOK_AFTER = 32


class ThreadPace:
    """Keeps a thread at a share of a processor, by sleeping. Time that it did not use lately can be used at once, so
    that a short rush is read without a pause."""

    def __init__(self, share: float, look_after: int = _LOOK_AFTER) -> None:
        """It checks after every `look_after` messages."""
        self._share = share
        self._look_after = self._left = look_after
        self._budget = _RUSH
        """The seconds that the thread may still use at once."""
        self._since, self._used = time.monotonic(), time.thread_time()

    def keep(self) -> None:
        """To be called after each message, or part of a packet."""
        self._left -= 1
        if self._left:
            return
        self._left = self._look_after
        now, used = time.monotonic(), time.thread_time()
        earned = min(self._budget + (now - self._since) * self._share, _RUSH)
        self._budget = earned - (used - self._used)
        self._since, self._used = now, used
        if self._budget < 0:
            time.sleep(-self._budget / self._share)
