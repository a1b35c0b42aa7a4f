"""The memory of state slots: rings of the last ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.launch import Reals
from weft.backends.sampling import resample
from weft.codegen.base import Kernel
from weft.ir.program import StateSlot

# Numbers that are copied in no time.
_LARGE = 10_000

# What remembers one number a tick is integrated over hours: always in double precision.
_NUMBER = np.float64


def bytes_needed(kernel: Kernel, shape: tuple[int, int], dtype: npt.DTypeLike = np.float32) -> int:
    """What the state of a kernel takes for a picture of this shape (height, width), before any of it is allocated."""
    return sum(math.prod(_shape(slot, shape)) * _dtype(slot, dtype).itemsize for slot in kernel.slots)


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
        self._rings: dict[str, Reals] = {
            slot.key: np.zeros(_shape(slot, shape), _dtype(slot, dtype)) for slot in self.slots.values()
        }
        # A ring that was taken over goes on where it was, not where this memory's own count of ticks would have it.
        self._offsets: dict[str, int] = dict.fromkeys(self.slots, 0)
        self._ahead: dict[str, tuple[Reals, int]] = {}
        """What has been copied ahead: the ring that it was copied from, and how many ticks had been finished by then."""

    def ring(self, key: str) -> Reals:
        """All cells of a slot: [depth + 1, planes] or [depth + 1, planes, height, width]."""
        return self._rings[key]

    def cell(self, key: str, ticks_ago: Any = 0) -> Any:
        """Which cell of a ring holds what was written so many ticks ago; 0: what this tick writes. Between ticks, add
        one to what the tick finished last read."""
        return (self.ticks + self._offsets[key] - ticks_ago) % len(self._rings[key])

    def advance(self, ticks: int = 1) -> None:
        """Ends a tick, or several: what the last one wrote is now one tick ago."""
        self.ticks += ticks

    def copy_ahead(self, old: StateMemory) -> None:
        """Copies of `old`, which may run meanwhile, what takes long to copy. An `adopt` that copies then has but the
        rest to do."""
        for key, slot in self.slots.items():
            if slot.image or not _continues(slot, old.slots.get(key)):
                continue
            mine, its = self._rings[key], old._rings[key]
            if mine.shape == its.shape and its.size > _LARGE:
                self._ahead[key] = (its, old.ticks)
                np.copyto(mine, its)

    def adopt(self, old: StateMemory, copy: bool = False) -> list[str]:
        """Takes over what `old` remembers, as far as key, kind and planes agree; gives the keys of these slots.

        Where the depths differ, the latest ticks are kept. Images of another size are resampled. What fits as it is
        is not copied, which takes seconds for a long delay of pictures: `old` must not run any more, unless it takes it
        back, or a `copy` is asked for.
        """
        self.takeovers += 1
        kept = [key for key, slot in self.slots.items() if _continues(slot, old.slots.get(key))]
        for key in kept:
            mine, its = self._rings[key], old._rings[key]
            if (mine.shape, mine.dtype) == (its.shape, its.dtype):
                self._rings[key] = self._copied(key, old) if copy else its
                self._offsets[key] = old.ticks + old._offsets[key] - self.ticks
                continue
            ticks = range(1, 1 + min(len(mine), len(its)))
            if its.ndim == 2:
                mine[self.cell(key, np.array(ticks))] = its[old.cell(key, np.array(ticks))]
                continue
            for ticks_ago in ticks:
                mine[self.cell(key, ticks_ago)] = self._resized(its[old.cell(key, ticks_ago)])
        return kept

    def _copied(self, key: str, old: StateMemory) -> Reals:
        """A ring of its own with what another memory has in it, cell by cell."""
        its = old._rings[key]
        copied, ticks = self._ahead.pop(key, (None, 0))
        since = old.ticks - ticks
        if copied is not its or not 0 <= since < len(its):
            return its.copy()
        mine = self._rings[key]
        cells = old.cell(key, np.arange(since + 1))
        mine[cells] = its[cells]
        return mine

    def _resized(self, cell: Reals) -> Reals:
        if cell.shape[1:] == self.shape:
            return cell
        return np.stack([resample(plane, self.shape) for plane in cell])


def ticks_back(k: float, depth: int) -> int:
    """How many whole ticks a read goes back: k rounded down and clamped to 1…depth; 1 for NaN."""
    return int(min(k, depth)) if k >= 1 else 1


def _continues(slot: StateSlot, old: StateSlot | None) -> bool:
    return old is not None and (slot.kind, slot.planes, slot.image) == (old.kind, old.planes, old.image)


def _shape(slot: StateSlot, shape: tuple[int, int]) -> tuple[int, ...]:
    return (slot.depth + 1, slot.planes, *(shape if slot.image else ()))


def _dtype(slot: StateSlot, dtype: npt.DTypeLike) -> np.dtype[Any]:
    return np.dtype(dtype if slot.image else _NUMBER)
