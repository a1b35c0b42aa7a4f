"""One picture fading into the next, while both go on moving."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import Env, Values
from weft.runtime.coordinator import main_picture
from weft.runtime.program import Swap

Pixels = npt.NDArray[Any]


class PictureFade:
    """The picture of the program before, which gives way to another within `seconds` from a moment of the performance
    on. What it has in common with the program that plays is computed once."""

    def __init__(self, leaving: Swap | Pixels, began: float, seconds: float) -> None:
        """What leaves is a program, or a picture that stands still: that of a fade which was interrupted."""
        self._leaving: Swap | Pixels | None = leaving
        self._began = began
        self._seconds = seconds
        self._mix: _Mix | None = None

    def is_over(self, now: float) -> bool:
        """Whether nothing is left to be seen of it."""
        return self._leaving is None or not 0 <= now - self._began < self._seconds

    def picture(self, env: Env, done: Mapping[int, Values]) -> Pixels | None:
        """What leaves, at this tick; None if it cannot be drawn any more. `done` is what the program that plays has
        computed."""
        leaving = self._leaving
        if not isinstance(leaving, Swap):
            return leaving
        with suppress(Exception):  # then it is gone at once
            own = replace(
                env, inputs={**env.inputs, **leaving.playable.parameters}, pictures=leaving.pictures
            )  # fmt: skip
            shown = main_picture(leaving.runner.run_beside(own, done))
            return None if shown is None else shown.array
        self._leaving = None
        return None

    def mixed(self, before: Pixels, after: Pixels, now: float) -> Pixels:
        """Both pictures [height, width, 4], each by its share at this moment. Pictures of different sizes cannot be
        mixed: then it is the latter."""
        if before.shape != after.shape:
            return after
        self._mix = self._mix if self._mix and self._mix.shape == after.shape else _Mix(after.shape)
        return self._mix.of(before, after, round(256 * (now - self._began) / self._seconds))


# Bytes that are mixed at once: so few that they stay near the core, and enough for the calls to weigh little.
_BAND = 1 << 18


class _Mix:
    """Mixes pictures of one shape, band by band and without new memory. What it gives stays for a tick, as other
    pictures do."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._rows = max(1, _BAND // max(1, math.prod(shape[1:])))
        self._out, self._last = np.empty(shape, np.uint8), np.empty(shape, np.uint8)
        self._sums = np.empty((2, min(self._rows, shape[0]), *shape[1:]), np.uint16)

    def of(self, before: Pixels, after: Pixels, share: int) -> Pixels:
        """`share` of 256 parts of the latter."""
        self._out, self._last = self._last, self._out
        for start in range(0, self.shape[0], self._rows):
            band = slice(start, start + self._rows)
            out = self._out[band]
            total, more = self._sums[:, : len(out)]
            np.multiply(before[band], 256 - share, out=total, dtype=np.uint16)
            np.multiply(after[band], share, out=more, dtype=np.uint16)
            total += more
            total >>= 8
            np.copyto(out, total, casting="unsafe")
        return self._out
