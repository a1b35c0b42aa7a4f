"""Packing of values into pixels of four bytes, red first: NaN is 0, the rest is clamped to 0…1, a half rounds up."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from weft.backends.launch import Reals

OPAQUE = 255


def channels(outputs: int) -> tuple[int, ...]:
    """Which output each channel of a pixel shows, for red, green, blue and, if the kernel gives it, alpha.

    Raises ValueError if a picture cannot have so many outputs.
    """
    if outputs not in (1, 3, 4):
        raise ValueError(f"a picture has 1, 3 or 4 outputs, not {outputs}")
    return (0, 0, 0) if outputs == 1 else tuple(range(outputs))


def check_picture(out: npt.NDArray[np.uint8], shape: tuple[int, int]) -> None:
    """Raises ValueError if `out` cannot take the pixels of a launch of this shape (height, width)."""
    if out.shape != (*shape, 4) or out.dtype != np.uint8 or not out.flags.c_contiguous:
        raise ValueError(f"{out.dtype} {out.shape} is no picture of {shape} pixels, four bytes each, without gaps")


def level(value: float) -> int:
    """The byte that shows a value."""
    return 0 if math.isnan(value) else math.floor(min(max(value, 0.0), 1.0) * 255 + 0.5)


def pack(planes: Reals, out: npt.NDArray[np.uint8]) -> None:
    """Packs outputs [outputs, height, width] into `out` [height, width, 4]."""
    shown = channels(len(planes))
    levels = np.floor(np.fmin(np.fmax(planes, 0.0), 1.0) * 255 + 0.5).astype(np.uint8)
    for channel, output in enumerate(shown):
        out[..., channel] = levels[output]
    if len(shown) < 4:
        out[..., 3] = OPAQUE
