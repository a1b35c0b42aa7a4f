"""The results of analyses, as pictures that kernels sample: a row for each hop of the sound, and a plane for each
output."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.media.analysis import Analyser, analyser
from weft.media.source import LivePicture
from weft.names import HEARD_AHEAD, HEARD_ROWS, HeardName, columns

Picture: TypeAlias = NDArray[np.float32]

MOST_COLUMNS = 64


@dataclass(frozen=True, eq=False)
class HeardMemory:
    """The rows that one analysis writes and others read, perhaps in another process: row n is at n modulo their number.
    `newest` is the number of the last row, -1 for none. They are not protected: a reader may see a row that is being
    written."""

    rows: NDArray[np.float32]
    """[`HEARD_ROWS`, columns, 4]"""
    newest: NDArray[np.int64]
    """[1]"""

    @classmethod
    def new(cls, heard: HeardName) -> HeardMemory:
        memory = cls(np.zeros((HEARD_ROWS, columns(heard), 4), np.float32), np.zeros(1, np.int64))
        memory.clear(heard)
        return memory

    def clear(self, heard: HeardName) -> None:
        """Drops all rows, so that silence was heard."""
        self.newest[0] = -1
        self.rows[:] = _silent_row(heard)

    def arranged(self, later: int = 0) -> Picture:
        """The current picture of the rows, in which the newest row continues for a while. With `later`, everything was
        heard this many hops later."""
        newest = int(self.newest[0])
        found = np.empty((HEARD_ROWS + 2, *self.rows.shape[1:]), np.float32)
        found[1:-1] = np.roll(self.rows, later, axis=0) if later else self.rows
        if newest >= 0:
            ahead = 1 + (newest + later + 1 + np.arange(HEARD_AHEAD)) % HEARD_ROWS
            found[ahead] = self.rows[newest % HEARD_ROWS]
        found[0], found[-1] = found[-2], found[1]
        return found


@cache
def _silent_row(heard: HeardName) -> Picture:
    """The row of silence: [1, columns, 4]."""
    made = analyser(heard, 48000)
    return made.picture(made.feed(np.zeros(made.hop, np.float32)))


def silence(heard: HeardName) -> Picture:
    """The picture of silence."""
    return HeardMemory.new(heard).arranged()


class HeardPicture(LivePicture):
    """What another process, or thread, hears. The memory is looked up each time, since each stream has its own."""

    def __init__(self, heard: HeardName, find: Callable[[HeardName], HeardMemory | None]) -> None:
        self._heard = heard
        self._find = find
        self._memory: HeardMemory | None = None
        self._newest = -1
        self._shown = silence(heard)

    def at(self, seconds: float) -> Picture:
        memory = self._find(self._heard)
        if memory is not None and (memory is not self._memory or memory.newest[0] != self._newest):
            self._memory, self._newest = memory, int(memory.newest[0])
            self._shown = memory.arranged()
        return self._shown

    def close(self) -> None:
        """Does nothing."""


class Listener:
    """Hears one strand, whose samples come in a ring, and keeps the results in memory."""

    def __init__(self, heard: HeardName, rate: float, memory: HeardMemory, longest: int) -> None:
        """A block has at most this many samples."""
        self.heard = heard
        self.memory = memory
        self.picture = silence(heard)
        """The picture that sounds sample, if one reads it (`is_read`); changed in place. While a block is computed, its
        own results are not known yet. So all results are late by the hops of the longest block, and never jump."""
        self.is_read = False
        self._fresh = analyser(heard, rate)
        self._later = -(-longest // self._fresh.hop) + 1
        self._analyser = self._begun()
        self._next = -1

    def _begun(self) -> Analyser:
        self.memory.clear(self.heard)
        self.picture[:] = self.memory.arranged()
        return deepcopy(self._fresh)

    def hear(self, ring: NDArray[np.float32], first: int, end: int) -> None:
        """Takes the samples from number `first` to before `end`. If they do not follow the last ones, begins again at a
        whole hop, so that rows do not depend on when that is."""
        hop = self._fresh.hop
        if first != self._next:
            self._analyser = self._begun()
            self._start = -(-first // hop) * hop
        self._next = end
        start = max(first, self._start)
        if start >= end:
            return
        rows = self._analyser.feed(ring[np.arange(start, end) % len(ring)])
        count = len(rows)
        if count:
            newest = end // hop - 1
            numbers = np.arange(newest - count + 1, newest + 1)[-HEARD_ROWS:]
            self.memory.rows[numbers % HEARD_ROWS] = self._analyser.picture(rows[-HEARD_ROWS:])
            self.memory.newest[0] = newest
            if self.is_read:
                self.picture[:] = self.memory.arranged(self._later)
