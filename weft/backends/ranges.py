"""Which parts of something in a row are free, such as the layers of a texture."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable


class FreeRanges:
    """The numbers below a count that nobody has. May be used from any thread."""

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._free = [(0, count)]
        """The first number of each range, and the one after its last."""
        self._given_back: deque[tuple[int, int]] = deque()

    def take(self, counts: Iterable[int]) -> list[tuple[int, int]] | None:
        """As many numbers in a row as each count says: the first, and the count. None if there is no room for all."""
        with self._lock:
            while self._given_back:
                self._free.append(self._given_back.popleft())
            free, found = _joined(self._free), list[tuple[int, int]]()
            for count in counts:
                at = next((at for at, (first, end) in enumerate(free) if end - first >= count), None)
                if at is None:
                    return None
                first, end = free[at]
                free[at] = first + count, end
                found.append((first, count))
            self._free = free
            return found

    def give_back(self, first: int, count: int) -> None:
        """Gives back what was taken. Waits for nothing, so it may be called whenever garbage is collected."""
        self._given_back.append((first, first + count))


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of numbers in order, without those that are empty; what touches becomes one."""
    made: list[tuple[int, int]] = []
    for first, end in sorted(ranges):
        if made and made[-1][1] == first:
            made[-1] = made[-1][0], end
        elif first < end:
            made.append((first, end))
    return made
