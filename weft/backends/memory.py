"""The memory of state slots: ring buffers of the last ticks."""

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

# A slot of single numbers may integrate over hours, so it is always in double precision.
_NUMBER = np.float64


def bytes_needed(kernel: Kernel, shape: tuple[int, int], dtype: npt.DTypeLike = np.float32) -> int:
    """How many bytes the state of a kernel takes for a picture of this shape (height, width). Allocates nothing."""
    return sum(slot_bytes(slot, shape, dtype) for slot in kernel.slots)


def slot_bytes(slot: StateSlot, shape: tuple[int, int], dtype: npt.DTypeLike = np.float32) -> int:
    """How many bytes one slot takes."""
    return math.prod(_shape(slot, shape)) * _dtype(slot, dtype).itemsize


class StateMemory:
    """The values of slots at the last ticks.

    A slot of depth d is a ring of d + 1 cells. The tick in progress writes into a cell that it cannot read, so the
    order of reads and writes does not matter. The same cell serves readers *between* ticks: another subgraph reads a
    strand as it was in the last finished tick, which sees every slot one tick further back than the next tick will.
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
        """How often it took over the state of another memory."""
        self._rings: dict[str, Floats] = {
            slot.key: np.zeros(_shape(slot, shape), _dtype(slot, dtype))
            for slot in self.slots.values()
            if self._is_here(slot)
        }
        # A ring that was taken over continues at its own position, not at the one for this memory's count of ticks.
        self._offsets: dict[str, int] = dict.fromkeys(self.slots, 0)
        self._ahead: dict[str, tuple[Floats, int]] = {}
        """What was copied ahead: the ring that it came from, and how many ticks had been finished at that time."""

    def ring(self, key: str) -> Floats:
        """All cells of a slot: [depth + 1, planes] or [depth + 1, planes, height, width]."""
        return self._rings[key]

    def cell(self, key: str, ticks_ago: Any = 0) -> Any:
        """The cell of a ring that was written `ticks_ago` ticks ago; 0 is the cell that this tick writes. Between
        ticks, add one to what the last finished tick read."""
        return (self.ticks + self._offsets[key] - ticks_ago) % (self.slots[key].depth + 1)

    def planes(self, key: str, ticks_ago: int) -> Floats:
        """The values of a slot `ticks_ago` ticks ago: [planes] or [planes, height, width]."""
        found: Floats = self.ring(key)[self.cell(key, ticks_ago)]
        return found

    def read(self) -> StateMemory:
        """A copy in the memory of the computer."""
        copy = StateMemory(self.slots.values(), self.shape)
        copy.ticks = self.ticks
        copy._offsets.update(self._offsets)
        for key in self.slots:
            copy.ring(key)[...] = self.ring(key)
        return copy

    def here(self) -> StateMemory:
        """A memory with the same values that the CPU can read until the next tick. Read-only."""
        return self

    def advance(self, ticks: int = 1) -> None:
        """Ends one or more ticks: what the last one wrote is now one tick ago."""
        self.ticks += ticks

    def copy_ahead(self, old: StateMemory) -> None:
        """Copies the rings of numbers of `old`, which may be running. A later `adopt` that copies then has only the
        rest to do."""
        for key, slot in self.slots.items():
            if not slot.image and continues(slot, old.slots.get(key)):
                self._ahead[key] = (old._rings[key], old.ticks)
                self._copy_latest(key, old, self._common(key, old))

    def adopt(self, old: StateMemory, copy: bool = False) -> list[str]:
        """Takes over the slots of `old` whose key, kind and planes agree; gives their keys.

        Where the depths differ, the latest ticks are kept. Images of another size are resampled. Rings of the same form
        are shared instead of copied, since copying a long delay of pictures takes seconds. So `old` must not run again
        before it has taken its state back, unless this is a `copy`.
        """
        self.takeovers += 1
        kept = [key for key, slot in self.slots.items() if continues(slot, old.slots.get(key))]
        for key in kept:
            self._adopt_slot(key, old, copy)
        return kept

    def _is_here(self, slot: StateSlot) -> bool:
        """Whether a slot is an array of the computer; else it is on a device."""
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
        return 1 + min(self.slots[key].depth, old.slots[key].depth)

    def _copy_rest(self, key: str, old: StateMemory) -> None:
        if self._rings[key] is old._rings[key]:
            # It was taken over in the other direction earlier.
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
        """Copies the `count` latest ticks, in runs of cells that are contiguous in both rings."""
        mine, its = self._rings[key], old._rings[key]
        to, of = self.cell(key, 1), old.cell(key, 1)
        while count > 0:
            length = min(count, to + 1, of + 1)
            mine[to + 1 - length : to + 1] = its[of + 1 - length : of + 1]
            to, of, count = (to - length) % len(mine), (of - length) % len(its), count - length


def in_size(planes: Floats, shape: tuple[int, int]) -> Floats:
    """Images [planes, height, width], resampled to a shape (height, width)."""
    return planes if planes.shape[1:] == shape else np.stack([resample(plane, shape) for plane in planes])


def ticks_back(k: float, depth: int, least: int = 1) -> int:
    """How many whole ticks a read goes back: k rounded down and clamped to least…depth; 1 for NaN."""
    return int(min(k, depth)) if k >= least else 1


def continues(slot: StateSlot, old: StateSlot | None) -> bool:
    """Whether a slot can take over the state of another one."""
    return old is not None and (slot.kind, slot.planes, slot.image) == (old.kind, old.planes, old.image)


def _shape(slot: StateSlot, shape: tuple[int, int]) -> tuple[int, ...]:
    return (slot.depth + 1, slot.planes, *(shape if slot.image else ()))


def _dtype(slot: StateSlot, dtype: npt.DTypeLike) -> np.dtype[Any]:
    return np.dtype(dtype if slot.image else _NUMBER)
