"""How closely two ways to compute the same must agree. All bounds are here, so that none is loosened in passing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A bound on the difference: `absolute + relative · |expected|`."""

    relative: float
    absolute: float

    def allows(self, got: float, expected: float) -> bool:
        """NaN agrees with NaN, an infinity with itself, and 0 with -0."""
        return bool(self.agreement(got, expected))

    def agreement(self, got: ArrayLike, expected: ArrayLike) -> NDArray[np.bool_]:
        """`allows`, for each element."""
        got, expected = np.broadcast_arrays(np.asarray(got, np.float64), np.asarray(expected, np.float64))
        with np.errstate(all="ignore"):
            near = np.abs(got - expected) <= self.absolute + self.relative * np.abs(expected)
        finite = np.isfinite(got) & np.isfinite(expected)
        same = (got == expected) | (np.isnan(got) & np.isnan(expected))
        return np.asarray(np.where(finite, near, same))

    def scaled(self, factor: float) -> Tolerance:
        """For what computes on from such a result."""
        return Tolerance(self.relative * factor, self.absolute * factor)


EXACT = Tolerance(0, 0)

# Both in double precision: the order of a few operations, and different but good libraries.
DOUBLE = Tolerance(relative=1e-13, absolute=1e-15)

# Single against double precision, with the same operands.
SINGLE = Tolerance(relative=2e-6, absolute=2e-7)

# Noise blends values with weights that depend on the digits of its coordinates behind the point.
NOISE_DOUBLE = Tolerance(relative=0, absolute=1e-8)
NOISE_SINGLE = Tolerance(relative=0, absolute=2e-4)


def wrapped_difference(got: float, expected: float, turn: float) -> float:
    """How far apart two numbers are on a circle: 0 and `turn` are the same place."""
    return abs(math.remainder(got - expected, turn))

# Of the 8-bit values of a small picture, how many may differ by more than a level between single and double precision:
# a hard edge can fall on either side of a pixel's centre, and in so few pixels one edge counts for much.
EDGE_SHARE = 0.005
