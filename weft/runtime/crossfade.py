"""One picture fading into the next, while both go on moving."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import Env
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

    def is_over(self, now: float) -> bool:
        """Whether nothing is left to be seen of it."""
        return self._leaving is None or not 0 <= now - self._began < self._seconds

    def picture(self, env: Env, done: Mapping[int, Pixels]) -> Pixels | None:
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
            return None if shown is None else shown.values
        self._leaving = None
        return None

    def mixed(self, before: Pixels, after: Pixels, now: float) -> Pixels:
        """Both pictures [height, width, 4], each by its share at this moment. Pictures of different sizes cannot be
        mixed: then it is the latter."""
        if before.shape != after.shape:
            return after
        share = round(256 * (now - self._began) / self._seconds)
        total = before.astype(np.uint16) * (256 - share) + after.astype(np.uint16) * share
        mixed: Pixels = np.right_shift(total, 8).astype(np.uint8)
        return mixed
