"""Memory on a card: state whose images are there, and arrays for any other purpose."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import MemoryPool
from weft.backends.launch import Array, Floats, StateMemory, in_size
from weft.ir.expr import StateSlot


class CardState(StateMemory):
    """State with images on a card, and single numbers in the memory of the computer."""

    def __init__(self, slots: Iterable[StateSlot], shape: tuple[int, int]) -> None:
        super().__init__(slots, shape)
        self.read_back: tuple[tuple[int, int], StateMemory] | None = None
        """The last copy that was read back, and when."""

    def here(self) -> StateMemory:
        known = self.moment
        if self.read_back is None or self.read_back[0] != known:
            self.read_back = known, self.read()
        return self.read_back[1]

    def numbers(self) -> StateMemory:
        """A copy of the single numbers alone, which can be read even if the card is lost."""
        slots = [slot for slot in self.slots.values() if not slot.image]
        found = StateMemory(slots, self.shape, borrowed=self.borrowed)
        found.ticks = self.ticks
        for key in found.slots:
            found._offsets[key] = self._offsets[key]
            found.ring(key)[...] = StateMemory.ring(self, key)
        return found

    def finished(self, into: StateMemory | None = None) -> StateMemory:
        """A memory with the same values, from which another device can continue; `into` has arrays for them."""
        return self.read(into)

    def _is_here(self, slot: StateSlot) -> bool:
        return not slot.image

    def bytes_of(self, key: str) -> int:
        """The bytes of a ring."""
        shape, dtype = self._form(key)
        return math.prod(shape) * dtype.itemsize

    def arriving(self, key: str, old: StateMemory, shape: tuple[int, int]) -> Iterator[tuple[int, Floats]]:
        """The images of a slot [planes, height, width] that continue those of another memory, in a shape, each with its
        cell. That memory is read before the first of them."""
        its = old.ring(key)
        return (
            (int(self.cell(key, ticks_ago)), in_size(np.asarray(its[old.cell(key, ticks_ago)]), shape))
            for ticks_ago in range(1, 1 + self._common(key, old))
        )


class CardPool(MemoryPool):
    """One buffer of a card, allocated piece by piece. Places are counted in bytes."""

    buffer: Any
    """That buffer."""

    def __init__(self, size: int) -> None:
        super().__init__(np.zeros(0, np.uint8))
        self.size = size

    def take(self, shape: Sequence[int], dtype: npt.DTypeLike) -> CardArray:
        start = self.place(shape, dtype)
        return CardArray(self, start, tuple(shape), np.dtype(dtype))

    @abstractmethod
    def write(self, start: int, data: Array) -> None:
        """Overwrites bytes with those of an array without gaps."""

    @abstractmethod
    def fetch(self, start: int, into: npt.NDArray[np.uint8]) -> None:
        """Reads bytes; waits until they have been written."""

    @abstractmethod
    def copy(self, source: CardArray, target: CardArray) -> None:
        """Copies an array of this card, of any pool, to another."""


@dataclass(frozen=True, eq=False, slots=True)
class CardArray:
    """An array in a pool of a card, from a byte on."""

    pool: CardPool
    start: int
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def fill(self, data: Array) -> None:
        """Uploads an array of this shape."""
        self.pool.write(self.start, np.ascontiguousarray(np.broadcast_to(data, self.shape), self.dtype))

    def read(self) -> Array:
        """A copy of the array; waits until it has been written."""
        found = np.empty(self.nbytes, np.uint8)
        self.pool.fetch(self.start, found)
        return found.view(self.dtype).reshape(self.shape)
