"""Strands of a card that others read at points: where they are computed, on the card or with the processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.launch import Launch
from weft.backends.memory import StateMemory
from weft.backends.vector import VectorExecutor
from weft.backends.vm import ReferenceExecutor
from weft.codegen.base import Kernel

Fetch: TypeAlias = Callable[[], npt.NDArray[Any]]
"""Waits for what was asked for, and gives it."""

Ask: TypeAlias = Callable[[], Fetch]
"""Asks a card, and waits for nothing."""

# From so many points on it is worth while to wait for the card.
_MANY = 2048

# So few points take the vector machine longer than the reference.
_FEW = 4


class PointReads:
    """A strand that others read. What remembers no pictures is computed by the processor if it is little: without a
    wait. So is all that is little where both share their memory."""

    def __init__(self, kernel: Kernel, shared: bool) -> None:
        self._needs_card = not shared and any(slot.image for slot in kernel.slots)
        self._many = VectorExecutor().load(kernel)
        self._few = ReferenceExecutor().load(kernel)

    def ask(self, launch: Launch, on_card: Ask | None, memory: StateMemory) -> Fetch:
        """Asks for a value for each point: for the outputs [outputs, points] that the card gives, if it can, else from
        memory that the processor reads, for which pictures may have to be read back. Gives what fetches the values."""
        count = launch.shape[1]
        if on_card is not None and (self._needs_card or count >= _MANY):
            fetch = on_card()
            return lambda: np.asarray(fetch()[0])
        executable = self._few if count <= _FEW else self._many
        values = np.asarray(executable.planes(memory.here() if self._needs_card else memory, launch)[0, 0])
        return lambda: values
