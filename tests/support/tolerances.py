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
        """The bound for computations with such results."""
        return Tolerance(self.relative * factor, self.absolute * factor)


EXACT = Tolerance(0, 0)

# Both in double precision: the order of a few operations, and different but good libraries.
DOUBLE = Tolerance(relative=1e-13, absolute=1e-15)

# Single against double precision, with the same operands.
SINGLE = Tolerance(relative=2e-6, absolute=2e-7)

# As many digits as the comments of programs have.
WRITTEN = Tolerance(relative=2e-6, absolute=2e-6)

# Functions made of instructions in single precision: two or three units in the last place, of which each is at most
# 2⁻²³. What is below the normal numbers may be 0.
FUNCTION = Tolerance(relative=3e-7, absolute=2.0**-125)

# Sine and cosine come from an angle of up to π/2, which has a unit of 2⁻²³ itself. Where the result is near 0, that
# counts in full.
ANGLE = Tolerance(relative=0, absolute=2.5e-7)

# By how much a power in single precision may be off, in parts of it, for each octave between 1 and the power: its
# logarithm, of which each octave is one, has units in the last place as well.
POWER_OCTAVE = 3 * 2.0**-24
POWER = Tolerance(relative=POWER_OCTAVE * (1 + 128), absolute=2.0**-124)

# Sines of half turns in double precision: a polynomial of ten terms against π times the rest, both rounded.
HALF_TURNS = Tolerance(relative=0, absolute=1e-15)

# Sounds in double precision, sample by sample: some thousand roundings that may all go the same way.
SERIES = Tolerance(relative=1e-9, absolute=1e-9)

# A wave of which each vector of a chunk follows from the two before it.
WAVES = Tolerance(relative=0, absolute=1e-11)

# Noise blends values with weights that depend on the fractional digits of its coordinates.
NOISE_DOUBLE = Tolerance(relative=0, absolute=1e-8)
NOISE_SINGLE = Tolerance(relative=0, absolute=2e-4)


# Sums in double precision whose terms were put into another order, for each unit of their size and of the slope of what
# is made of them.
PHASE = Tolerance(relative=0, absolute=2e-14)

# Less than a level of the 256 that a screen shows.
PIXEL = Tolerance(relative=0, absolute=1 / 255)


def wrapped_difference(got: float, expected: float, turn: float) -> float:
    """How far apart two numbers are on a circle: 0 and `turn` are the same place."""
    return abs(math.remainder(got - expected, turn))

# Of the 8-bit values of a small picture, how many may differ by more than a level between single and double precision:
# a hard edge can fall on either side of a pixel's centre, and in so few pixels one edge counts for much.
EDGE_SHARE = 0.005

# A generated program in single against double precision: some dozens of operations that are each right to a unit in the
# last place. What is further off has to be explained by the reference itself (`tests.support.parity.rule`).
GENERATED = Tolerance(relative=2e-5, absolute=2e-6)

# The same of sounds, in double precision on both sides: a wave may be off by what the time is, an hour or a day on.
HEARD = Tolerance(relative=1e-9, absolute=1e-9)

# How many of the 255 levels of a pixel a value may be off: rounding puts some on the other side of a half.
LEVELS = 1

# Of the bytes of a picture, how many may be more than a level off; and of generated programs, how many may show a first
# picture of which more are off, if that is explained: some ask for digits that single precision does not have.
OFF_SHARE = 0.001
BEYOND_SHARE = 0.05
