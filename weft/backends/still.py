"""Where pictures go, and whether the next one would be the last one again."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.launch import Launch
from weft.codegen.base import Kernel

Pixels = npt.NDArray[np.uint8]


class Stillness:
    """Whether a kernel would draw the same as the last time: one that remembers nothing, reads no other strands, and is
    given the same."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._may_stand_still = not (kernel.slots or kernel.strands)
        self._given: tuple[Any, ...] | None = None

    def lasts(self, launch: Launch) -> bool:
        """Whether this launch would draw the same as the last one that drew."""
        given = self._given
        return given is not None and all(map(_is_same, given, self._inputs(launch)))

    def drew(self, launch: Launch) -> None:
        """A launch has drawn."""
        self._given = self._inputs(launch) if self._may_stand_still else None

    def _inputs(self, launch: Launch) -> tuple[Any, ...]:
        kernel = self._kernel
        return (
            launch.shape,
            *(launch.coords[name] for name, _ in kernel.coords),
            *(launch.uniforms[name] for name in kernel.uniforms),
            *(launch.pictures[path] for path in kernel.pictures),
        )


class Pictures:
    """The pictures that a kernel draws, in two arrays by turns: memory that is given back is slow to get anew. A
    picture stays as it is while the next one is drawn, and until the one behind it is begun. A picture in which nothing
    moves is drawn once.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._stillness = Stillness(kernel)
        self._drawn: Pixels | None = None
        self._other: Pixels | None = None

    def still(self, launch: Launch) -> Pixels | None:
        """The last picture, if this launch would draw the same."""
        return self._drawn if self._stillness.lasts(launch) else None

    def place(self, launch: Launch) -> Pixels:
        """An array for the next picture, [height, width, 4]."""
        shape = (*launch.shape, 4)
        if self._other is None or self._other.shape != shape:
            self._other = np.empty(shape, np.uint8)
        return self._other

    def drew(self, launch: Launch, picture: Pixels) -> None:
        """The picture is finished."""
        self._drawn, self._other = picture, self._drawn
        self._stillness.drew(launch)


def _is_same(a: object, b: object) -> bool:
    return a is b or (not isinstance(a, np.ndarray) and a == b)
