"""Strands of a card that others read at points: where they are computed, on the card or with the processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.launch import Launch, Reals
from weft.backends.memory import StateMemory
from weft.backends.vector import VectorExecutor
from weft.backends.vm import ReferenceExecutor
from weft.codegen.base import Kernel

# From so many points on it is worth while to wait for the card.
_MANY = 2048

# So few points take the vector machine longer than the reference.
_FEW = 4


class AskedPoints:
    """A strand that others read. What remembers no pictures is computed by the processor if it is little: without a
    wait. So is all that is little where both share their memory."""

    def __init__(self, kernel: Kernel, shared: bool) -> None:
        self._needs_card = not shared and any(slot.image for slot in kernel.slots)
        self._read: tuple[int, StateMemory] | None = None
        """What was read back of the memory last, and at which of its ticks."""
        self._many = VectorExecutor().load(kernel)
        self._few = ReferenceExecutor().load(kernel)

    def values(
        self, launch: Launch, on_card: Callable[[], Reals] | None, memory: StateMemory
    ) -> npt.NDArray[Any]:
        """A value for each point: from the outputs [outputs, points] that the card gives, if it can, or from memory
        that the processor reads, for which pictures may have to be read back."""
        count = launch.shape[1]
        if on_card is not None and (self._needs_card or count >= _MANY):
            return np.asarray(on_card()[0])
        executable = self._few if count <= _FEW else self._many
        return np.asarray(executable.planes(self._here(memory), launch)[0, 0])

    def _here(self, memory: StateMemory) -> StateMemory:
        if not self._needs_card:
            return memory
        if self._read is None or self._read[0] != memory.ticks:
            self._read = memory.ticks, memory.read()
        return self._read[1]
