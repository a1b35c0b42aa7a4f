"""What the pictures must be: the formulas of patches/bench in double precision, and the comparison with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.peers.figures import (
    AXES, CLOUD_TURNS, FIRST_MULTIPLIER, FIRST_SHIFT, OCTAVES, PLASMA_ANGLES, SECOND_MULTIPLIER, SECOND_SHIFT
)
from benchmarks.peers.peer import Picture

KERNELS = ("v1", "v2", "v3")

# Single against double precision and one more rounding to a byte is off by a level, rarely by two. A pixel whose place
# in the lattice of the noise falls on the other side of a line still gets the same value, for noise is continuous.
LEVELS = 2
RARE = 1e-4

_Plane = npt.NDArray[Any]


def picture(kernel: str, width: int, height: int, time: float) -> Picture:
    """A kernel at a time, in seconds."""
    x = (np.arange(width) + 0.5)[None, :] / width
    y = (np.arange(height) + 0.5)[:, None] / height
    out = np.full((height, width, 4), 255, np.uint8)
    for channel, value in enumerate({"v1": _stripes, "v2": _plasma, "v3": _clouds}[kernel](x, y, time)):
        out[..., channel] = np.floor(np.clip(value, 0, 1) * 255 + 0.5)
    return out


def wrong(got: Picture, expected: Picture) -> str | None:
    """What is wrong with a picture; None if it shows what is expected."""
    if got.shape != expected.shape or got.dtype != np.uint8:
        return f"{got.dtype} {got.shape} instead of {expected.dtype} {expected.shape}"
    apart = np.abs(np.subtract(got, expected, dtype=np.int16)).max(axis=2)
    share = float(np.mean(apart > LEVELS))
    if share <= RARE:
        return None
    return f"a wrong picture: {share:.2%} of all pixels are more than {LEVELS} levels off, by up to {apart.max()}"


def _stripes(x: _Plane, y: _Plane, time: float) -> list[Any]:
    return [np.sin(x * 10 * 2 * np.pi + time) / 2 + 0.5, y, 0.2]


def _plasma(x: _Plane, y: _Plane, time: float) -> list[Any]:
    d = np.hypot(x - 0.5, y - 0.5)
    v = np.sin(10 * x + time) + np.sin(10 * y + 1.3 * time) + np.sin(10 * (x + y) + 0.7 * time)
    v = v + np.sin(20 * d - 2 * time)
    return [np.sin(np.pi * v + angle) / 2 + 0.5 for angle in PLASMA_ANGLES]


def _clouds(x: _Plane, y: _Plane, time: float) -> list[Any]:
    height: Any = 0.0
    for octave in OCTAVES:
        z = np.full((1, 1), time * octave.scale_z + octave.shift_z)
        height = height + octave.weight * _noise(x * octave.scale + octave.shift, y * octave.scale + octave.shift, z)
    return [0.5 + 0.5 * np.cos(2 * np.pi * (height + turn)) for turn in CLOUD_TURNS]


def _noise(x: _Plane, y: _Plane, z: _Plane) -> Any:
    """Value noise, in units of 2⁻²⁴."""
    (x_parts, u), (y_parts, v), (z_parts, w) = (_cell(at, axis) for at, axis in ((x, "x"), (y, "y"), (z, "z")))

    def edge(y_part: _Plane, z_part: _Plane) -> Any:
        a, b = (_top(x_part ^ y_part ^ z_part) for x_part in x_parts)
        return a + (b - a) * u

    def plane(z_part: _Plane) -> Any:
        a, b = (edge(y_part, z_part) for y_part in y_parts)
        return a + (b - a) * v

    a, b = (plane(z_part) for z_part in z_parts)
    return a + (b - a) * w


def _cell(at: _Plane, name: str) -> tuple[list[_Plane], _Plane]:
    """Along one axis: the parts of the hash of the lattice points around, and how much of the upper is blended in."""
    axis, below = AXES[name], np.floor(at)
    products = [
        below.astype(np.int64).astype(np.uint32) * np.uint32(axis.multiplier) + np.uint32(axis.offset(step))
        for step in (0, 1)
    ]
    rest = at - below
    return [product ^ (product >> np.uint32(FIRST_SHIFT)) for product in products], rest * rest * (3 - 2 * rest)


def _top(parts: _Plane) -> _Plane:
    mixed = parts * np.uint32(FIRST_MULTIPLIER)
    mixed = (mixed ^ (mixed >> np.uint32(SECOND_SHIFT))) * np.uint32(SECOND_MULTIPLIER)
    return (mixed >> np.uint32(8)).astype(np.float64)
