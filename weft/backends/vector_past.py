"""What slots remember, as rows of samples: read and stored for a whole block at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from weft.backends.interpreter import Machine
from weft.backends.launch import Reals
from weft.backends.memory import StateMemory, ticks_back
from weft.backends.vector_nodes import Array, Call, Values
from weft.codegen.base import Kernel
from weft.codegen.values import Node
from weft.ir.expr import SlotPlane


class PastBlock(Values):
    """The values of `count` samples, and what slots remembered before them."""

    def __init__(
        self, machine: Machine, lines: Mapping[str, Array], known: Mapping[Node, Any], kept: Iterable[str], count: int
    ) -> None:
        """Slots in `kept` are copied; the others do not change before the block is over."""
        super().__init__(machine, lines, known)
        self.count = count
        self._rings = {key: machine.memory.ring(key).copy() for key in kept}

    def past(self, place: SlotPlane, samples: Any) -> Any:
        """A number as it was at samples that are counted from the beginning of the block: all below 0."""
        memory = self.machine.memory
        ring = self._rings[place.slot] if place.slot in self._rings else memory.ring(place.slot)
        return ring[memory.cell(place.slot, -samples), place.plane]

    def row(self, node: Node) -> Reals:
        """A value at all samples."""
        return np.broadcast_to(self[node], (self.count,))


class Reads:
    """How rows of state are computed: from the past, and from the rows of what is stored."""

    def __init__(self, kernel: Kernel, stored: Mapping[SlotPlane, Node]) -> None:
        self._kernel = kernel
        self._stored = stored

    def __call__(self, state: Node) -> Call:
        (ticks,), place = state.args, state.attr
        depth, source = self._kernel.slot(place.slot).depth, self._stored[place]

        def read(values: Values) -> Reals:
            assert isinstance(values, PastBlock)
            k = values[ticks]
            if np.ndim(k) == 0:
                return _shifted(values, place, source, ticks_back(float(k), depth))
            # A comparison that fails for NaN, as `ticks_back` has it.
            back = np.where(k >= 1, np.minimum(k, depth), 1).astype(np.intp)
            at = np.arange(values.count) - back
            past, row = values.past(place, np.minimum(at, -1)), values.row(source)
            return np.asarray(np.where(at < 0, past, row[np.maximum(at, 0)]))

        return read


def _shifted(values: PastBlock, place: SlotPlane, source: Node, back: int) -> Reals:
    """A row as it was so many ticks before."""
    before = min(back, values.count)
    row = np.empty(values.count)
    row[:before] = values.past(place, np.arange(before) - back)
    if before < values.count:
        row[before:] = values.row(source)[: values.count - before]
    return row


def store(memory: StateMemory, place: SlotPlane, row: Reals) -> None:
    """Stores a row of samples, of which the first is what this tick writes."""
    ring, count = memory.ring(place.slot), len(row)
    last = np.arange(max(0, count - len(ring)), count)
    ring[memory.cell(place.slot, -last), place.plane] = row[last]
