"""Pictures in numpy: bilinear sampling, resampling, and packing into bytes."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.launch import Floats

# Bilinear sampling, clamped at the edge, with pixel centres at (i + ½) / width, for single places and for arrays of
# them. A NaN coordinate reads the first row or column.


def sample(plane: Floats, x: float, y: float) -> float:
    """The value of a plane [height, width] at a place."""
    height, width = plane.shape
    column, across = _locate(x, width)
    row, down = _locate(y, height)
    right, below = min(column + 1, width - 1), min(row + 1, height - 1)
    a, b, c, d = (float(plane[place]) for place in ((row, column), (row, right), (below, column), (below, right)))
    upper, lower = a + (b - a) * across, c + (d - c) * across
    return upper + (lower - upper) * down


def _locate(coordinate: float, size: int) -> tuple[int, float]:
    """The pixel at or before a coordinate, and how far the coordinate is on the way to the next, 0…1."""
    position = coordinate * size - 0.5
    if not position > 0:
        return 0, 0.0
    position = min(position, size - 1.0)
    return int(position), position - int(position)


# Arrays of one shape that `locate` fills for many coordinates along an axis: the index in memory of the pixel at or
# before each, the index of the next one, how far the coordinate is on the way to it (0…1), and a scratch array.
Located: TypeAlias = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Floats, Floats]


def locate(coordinate: npt.ArrayLike, size: int, stride: int, offset: npt.ArrayLike, found: Located) -> None:
    """Locates many coordinates along an axis of `size` pixels, which are `stride` apart in memory from `offset` on."""
    near, far, across, scratch = found
    np.multiply(coordinate, size, out=across)
    np.subtract(across, 0.5, out=across)
    np.fmax(across, 0.0, out=across)
    np.fmin(across, size - 1.0, out=across)
    np.floor(across, out=scratch)
    np.subtract(across, scratch, out=across)
    np.copyto(near, scratch, casting="unsafe")
    np.add(near, 1, out=far)
    np.minimum(far, size - 1, out=far)
    for place in (near, far):
        np.multiply(place, stride, out=place)
        np.add(place, offset, out=place)


def gather(
    pixels: npt.NDArray[Any], columns: Located, rows: Located, out: Floats,
    scratch: tuple[npt.NDArray[np.intp], Floats, Floats],
) -> None:
    """Interpolates between four neighbours in flat memory, for each element of `out`. The shapes of `columns` and
    `rows` broadcast to that of `out` and the scratch arrays."""
    left, right, across, _ = columns
    upper, lower, down, _ = rows
    index, below, other = scratch
    for row, value in ((upper, out), (lower, below)):
        np.add(row, left, out=index)
        _take(pixels, index, value)
        np.add(row, right, out=index)
        _take(pixels, index, other)
        np.subtract(other, value, out=other)
        np.multiply(other, across, out=other)
        np.add(value, other, out=value)
    np.subtract(below, out, out=below)
    np.multiply(below, down, out=below)
    np.add(out, below, out=out)


def _take(pixels: npt.NDArray[Any], index: npt.NDArray[np.intp], out: Floats) -> None:
    if pixels.dtype == out.dtype:
        np.take(pixels, index, out=out, mode="clip")  # any other mode buffers the output
    else:
        np.copyto(out, pixels[index])


def resample(plane: Floats, shape: tuple[int, int]) -> Floats:
    """A plane [height, width] in another size."""
    height, width = shape
    x = (np.arange(width, dtype=plane.dtype)[None, :] + 0.5) / width
    y = (np.arange(height, dtype=plane.dtype)[:, None] + 0.5) / height
    columns, rows = located_arrays(x.shape, plane.dtype), located_arrays(y.shape, plane.dtype)
    locate(x, plane.shape[1], 1, 0, columns)
    locate(y, plane.shape[0], plane.shape[1], 0, rows)
    out, below, other = (np.empty(shape, plane.dtype) for _ in range(3))
    gather(plane.reshape(-1), columns, rows, out, (np.empty(shape, np.intp), below, other))
    return out


def located_arrays(shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> Located:
    """Arrays for `locate` to fill."""
    return np.empty(shape, np.intp), np.empty(shape, np.intp), np.empty(shape, dtype), np.empty(shape, dtype)


# Packing into pixels of four bytes, red first: NaN becomes 0, all else is clamped to 0…1, halves round up.

OPAQUE = 255


def channels(outputs: int) -> tuple[int, ...]:
    """Which output each channel of a pixel shows, for red, green, blue and, if the kernel gives it, alpha.

    Raises ValueError if a picture cannot have this number of outputs.
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


def pack(planes: Floats, out: npt.NDArray[np.uint8]) -> None:
    """Packs outputs [outputs, height, width] into `out` [height, width, 4]."""
    shown = channels(len(planes))
    levels = np.floor(np.fmin(np.fmax(planes, 0.0), 1.0) * 255 + 0.5).astype(np.uint8)
    for channel, output in enumerate(shown):
        out[..., channel] = levels[output]
    if len(shown) < 4:
        out[..., 3] = OPAQUE
