"""What a subgraph remembers: images in buffers that the device and the processor share, single numbers as ever."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from weft.backends.launch import Reals
from weft.backends.memory import StateMemory
from weft.ir.expr import StateSlot


class MetalMemory(StateMemory):
    """Rings of images in buffers of a device. Whoever reads one waits for the launch made last."""

    def __init__(self, device: Any, slots: Iterable[StateSlot], shape: tuple[int, int]) -> None:
        """Zeroed. Raises whatever the device raises for what it cannot hold."""
        super().__init__(slots, shape)
        self.buffers: dict[str, Any] = {}
        self.running: Any = None
        """The launch made last, until it is waited for."""
        for slot in self.slots.values():
            if slot.image:
                wanted = (slot.depth + 1, slot.planes, *shape)
                self.buffers[slot.key] = device.buffer(4 * int(np.prod(wanted)))
                ring = np.frombuffer(self.buffers[slot.key], np.float32).reshape(wanted)
                ring[...] = 0.0
                self._rings[slot.key] = ring

    def _is_here(self, slot: StateSlot) -> bool:
        return not slot.image

    def ring(self, key: str) -> Reals:
        self.wait()
        return super().ring(key)

    def wait(self) -> None:
        """Waits until what was launched is done: a run is over when it is forgotten."""
        self.running = None

    def _adopt_slot(self, key: str, old: StateMemory, copy: bool) -> None:
        self.wait()
        shares = isinstance(old, MetalMemory)
        super()._adopt_slot(key, old, copy or (key in self.buffers and not shares))
        if isinstance(old, MetalMemory) and key in self.buffers and self._rings[key] is old._rings[key]:
            self.buffers[key] = old.buffers[key]
