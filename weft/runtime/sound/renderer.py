"""What computes the sound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.runtime.sound.messages import SoundEvent, SoundSetup
from weft.runtime.sound.shared import Controls, Rings


class Renderer(Protocol):
    """Fills blocks of sound, one after another, with whatever program it was given last."""

    def render(self, out: NDArray[np.float32], seconds: float) -> None:
        """Fills a block, [frames, channels], whose first sample is at `seconds` of the performance.

        Called by the thread of the sound card: it allocates little, takes no lock and writes no file. The controls have
        been refreshed before. If it raises, the block is silent.
        """
        ...

    def take(self, message: object) -> None:
        """Takes what the player sent, such as a program. Called by another thread than `render`, also while that
        runs."""
        ...

    def news(self) -> list[SoundEvent]:
        """What has happened in here that the performer is to be told, since this was asked last. Called by the thread
        that calls `take`."""
        ...


RendererFactory: TypeAlias = Callable[[SoundSetup, Controls, Rings], Renderer]
"""Makes the renderer, in the sound process."""
