"""What a participant is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.launch import aligned_zeros

# A picture: [height, width, 4], bytes: red, green, blue, alpha.
Picture: TypeAlias = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Prepared:
    """A kernel, ready to be drawn. `draw` writes the picture of a time, in seconds, into memory and comes back when all
    of it is there; `picture` says what was drawn last, and is not measured."""

    draw: Callable[[float], None]
    picture: Callable[[], Picture]


class Peer(Protocol):
    """A way to draw the kernels. A process uses one peer, with one number of threads, so a peer may set up its library
    for the whole process."""

    @property
    def name(self) -> str: ...

    def available(self) -> str | None:
        """Why it cannot be measured here, with the command that would help; None if it can. Imports nothing large."""
        ...

    def version(self) -> str:
        """What has drawn, in words. Asked after `prepare`."""
        ...

    def prepare(self, kernel: str, width: int, height: int, threads: int) -> Prepared:
        """Compiles a kernel (`v1`, …) from its text, without anything left of earlier calls."""
        ...


def blank(width: int, height: int) -> Picture:
    """A picture to draw into, opaque. For all of them it begins with a line of the cache."""
    picture = aligned_zeros((height, width, 4), np.uint8)
    picture.fill(255)
    return picture
