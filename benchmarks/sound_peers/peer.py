"""What a participant is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

# Samples a second.
RATE = 48_000

# Samples that a participant computes at once, where it computes in blocks.
BLOCK = 256

# Samples: [channels, samples]. A mono sound has one channel.
Samples: TypeAlias = npt.NDArray[np.floating[Any]]


def channels(kernel: str) -> int:
    return 2 if kernel == "a1" else 1


@dataclass(frozen=True)
class Prepared:
    """A kernel, ready to be heard from its first sample on. `play` computes so many more samples and comes back when
    all of them are there; `heard` says what was computed last, and is not measured."""

    play: Callable[[int], object]
    heard: Callable[[], Samples]


class Peer(Protocol):
    """A way to compute the kernels, on one core."""

    @property
    def name(self) -> str: ...

    @property
    def tolerance(self) -> float:
        """How far samples of the first second may be off."""
        ...

    @property
    def drifts(self) -> bool:
        """Whether its phases are sums that grow wrong with time, so that later samples cannot be compared."""
        ...

    def available(self) -> str | None:
        """Why it cannot be measured here, with the command that would help; None if it can. Imports nothing large."""
        ...

    def version(self) -> str:
        """What computes, in words."""
        ...

    def tuned(self, kernel: str) -> Peer:
        """The same with the settings that are the fastest for a kernel. Most have one setting."""
        ...

    def prepare(self, kernel: str) -> Prepared:
        """Compiles a kernel from its text, without anything left of earlier calls."""
        ...


@dataclass
class Room:
    """Samples in single precision that compiled code writes to."""

    samples: npt.NDArray[np.float32]
    count: int = 0
    """How many of them were written last."""

    def heard(self) -> Samples:
        return self.samples[:, : self.count]


def room(kernel: str) -> Room:
    """Room for a second."""
    return Room(np.zeros((channels(kernel), RATE), np.float32))
