"""The memory of state slots: rings of the last ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.launch import Floats
from weft.backends.sampling import resample
from weft.codegen.kernel import Kernel
from weft.ir.expr import StateSlot

# What remembers one number a tick is integrated over hours: always in double precision.
_NUMBER = np.float64


def bytes_needed(kernel: Kernel, shape: tuple[int, int], dtype: npt.DTypeLike = np.float32) -> int:
    """What the state of a kernel takes for a picture of this shape (height, width), before any of it is allocated."""
    return sum(slot_bytes(slot, shape, dtype) for slot in kernel.slots)


def slot_bytes(slot: StateSlot, shape: tuple[int, int], dtype: npt.DTypeLike = np.float32) -> int:
    """The same of one slot."""
    return math.prod(_shape(slot, shape)) * _dtype(slot, dtype).itemsize


class StateMemory:
    """The values of some slots at the last ticks.

    A slot of depth d is a ring of d + 1 cells: what the tick in progress writes goes into a cell that this tick cannot
    read, so that the order of reads and writes does not matter. The same cell serves readers *between* ticks: a strand
    that another subgraph reads is the strand as it was in the tick finished last, so it sees every slot one tick
    further back than the next tick will, for which the memory keeps the d + 1 last values.
    """

    def __init__(
        self, slots: Iterable[StateSlot], shape: tuple[int, int] = (1, 1), dtype: npt.DTypeLike = np.float32
    ) -> None:
        """Zeroed memory. Images have `shape` (height, width) and `dtype`; single numbers are always doubles."""
        self.shape = shape
        self.slots = {slot.key: slot for slot in slots}
        self.ticks = 0
        """How many ticks have been finished."""
        self.takeovers = 0
        """How often it took over what another one remembers."""
        self._rings: dict[str, Floats] = {
            slot.key: np.zeros(_shape(slot, shape), _dtype(slot, dtype))
            for slot in self.slots.values()
            if self._is_here(slot)
        }
        # A ring that was taken over goes on where it was, not where this memory's own count of ticks would have it.
        self._offsets: dict[str, int] = dict.fromkeys(self.slots, 0)
        self._ahead: dict[str, tuple[Floats, int]] = {}
        """What has been copied ahead: the ring it was copied from, and how many ticks had been finished by then."""

    def ring(self, key: str) -> Floats:
        """All cells of a slot: [depth + 1, planes] or [depth + 1, planes, height, width]."""
        return self._rings[key]

    def cell(self, key: str, ticks_ago: Any = 0) -> Any:
        """Which cell of a ring holds what was written so many ticks ago; 0: what this tick writes. Between ticks, add
        one to what the tick finished last read."""
        return (self.ticks + self._offsets[key] - ticks_ago) % (self.slots[key].depth + 1)

    def planes(self, key: str, ticks_ago: int) -> Floats:
        """What a slot was so many ticks ago: [planes] or [planes, height, width]."""
        found: Floats = self.ring(key)[self.cell(key, ticks_ago)]
        return found

    def read(self) -> StateMemory:
        """A copy of it in the memory of this computer."""
        copy = StateMemory(self.slots.values(), self.shape)
        copy.ticks = self.ticks
        copy._offsets.update(self._offsets)
        for key in self.slots:
            copy.ring(key)[...] = self.ring(key)
        return copy

    def here(self) -> StateMemory:
        """It, as the processor can read it until the next tick, and nobody may change."""
        return self

    def advance(self, ticks: int = 1) -> None:
        """Ends a tick, or several: what the last one wrote is now one tick ago."""
        self.ticks += ticks

    def copy_ahead(self, old: StateMemory) -> None:
        """Copies of `old`, which may run meanwhile, what takes long to copy. An `adopt` that copies then has but the
        rest to do."""
        for key, slot in self.slots.items():
            if not slot.image and continues(slot, old.slots.get(key)):
                self._ahead[key] = (old._rings[key], old.ticks)
                self._copy_latest(key, old, self._common(key, old))

    def adopt(self, old: StateMemory, copy: bool = False) -> list[str]:
        """Takes over what `old` remembers, as far as key, kind and planes agree; gives the keys of these slots.

        Where the depths differ, the latest ticks are kept. Images of another size are resampled. What fits as it is
        is not copied, which takes seconds for a long delay of pictures: `old` must not run any more, unless it takes it
        back, or a `copy` is asked for.
        """
        self.takeovers += 1
        kept = [key for key, slot in self.slots.items() if continues(slot, old.slots.get(key))]
        for key in kept:
            self._adopt_slot(key, old, copy)
        return kept

    def _is_here(self, slot: StateSlot) -> bool:
        """Whether a slot is an array; else it is on a device."""
        return True

    def _adopt_slot(self, key: str, old: StateMemory, copy: bool) -> None:
        mine, its = self._rings[key], old.ring(key)
        if not copy and (mine.shape, mine.dtype) == (its.shape, its.dtype):
            self._rings[key] = its
            self._offsets[key] = old.ticks + old._offsets[key] - self.ticks
        elif its.ndim == 2:
            self._copy_rest(key, old)
        else:
            for ticks_ago in range(1, 1 + self._common(key, old)):
                mine[self.cell(key, ticks_ago)] = in_size(its[old.cell(key, ticks_ago)], self.shape)

    def _common(self, key: str, old: StateMemory) -> int:
        """How many ticks both have room for."""
        return 1 + min(self.slots[key].depth, old.slots[key].depth)

    def _copy_rest(self, key: str, old: StateMemory) -> None:
        """Copies what has not been copied ahead."""
        if self._rings[key] is old._rings[key]:
            # It was taken over in the other direction before.
            self._rings[key] = np.zeros_like(old._rings[key])
        count = self._common(key, old)
        copied, ticks = self._ahead.pop(key, (None, 0))
        since = old.ticks - ticks
        if copied is old._rings[key] and 0 <= since < count:
            self._offsets[key] += since
            # One tick more, which may have been written while it was copied.
            count = min(since + 1, count)
        self._copy_latest(key, old, count)

    def _copy_latest(self, key: str, old: StateMemory, count: int) -> None:
        """Copies so many of the latest ticks: stretches of cells that lie side by side in both rings."""
        mine, its = self._rings[key], old._rings[key]
        to, of = self.cell(key, 1), old.cell(key, 1)
        while count > 0:
            length = min(count, to + 1, of + 1)
            mine[to + 1 - length : to + 1] = its[of + 1 - length : of + 1]
            to, of, count = (to - length) % len(mine), (of - length) % len(its), count - length


def in_size(planes: Floats, shape: tuple[int, int]) -> Floats:
    """Images [planes, height, width] in the size of this shape (height, width)."""
    return planes if planes.shape[1:] == shape else np.stack([resample(plane, shape) for plane in planes])


def ticks_back(k: float, depth: int, least: int = 1) -> int:
    """How many whole ticks a read goes back: k rounded down and clamped to least…depth; 1 for NaN."""
    return int(min(k, depth)) if k >= least else 1


def continues(slot: StateSlot, old: StateSlot | None) -> bool:
    """Whether a slot goes on with what another one remembers."""
    return old is not None and (slot.kind, slot.planes, slot.image) == (old.kind, old.planes, old.image)


def _shape(slot: StateSlot, shape: tuple[int, int]) -> tuple[int, ...]:
    return (slot.depth + 1, slot.planes, *(shape if slot.image else ()))


def _dtype(slot: StateSlot, dtype: npt.DTypeLike) -> np.dtype[Any]:
    return np.dtype(dtype if slot.image else _NUMBER)
