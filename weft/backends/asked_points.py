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
        self.remembers_pictures = any(slot.image for slot in kernel.slots)
        self._needs_card = self.remembers_pictures and not shared
        self._many = VectorExecutor().load(kernel)
        self._few = ReferenceExecutor().load(kernel)

    def values(
        self, launch: Launch, on_card: Callable[[], Reals] | None, here: Callable[[], StateMemory]
    ) -> npt.NDArray[Any]:
        """A value for each point: from the outputs [outputs, points] that the card gives, if it can, or from memory
        that the processor reads."""
        count = launch.shape[1]
        if on_card is not None and (self._needs_card or count >= _MANY):
            return np.asarray(on_card()[0])
        executable = self._few if count <= _FEW else self._many
        return np.asarray(executable.planes(here(), launch)[0, 0])
