"""The figures that all participants compute with. Sines are written as waves; see `benchmarks.beside.sine`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from weft.ops.noise import LACUNARITY_Z, MASK, OCTAVE_PLANES, OCTAVE_SHIFT, UNIT, X, Y, Z

# What patches/bench/v2.weft and v3.weft add to the phases of red, green and blue: as angles, and in turns.
PLASMA_ANGLES = (0.0, 2.094, 4.188)
CLOUD_TURNS = (0.0, 0.33, 0.67)

# The finaliser of the hash, as docs/algorithms.md tells it. Multipliers and starts of the axes come from weft.
FIRST_SHIFT, FIRST_MULTIPLIER = 16, 0x87EB_F2B7
SECOND_SHIFT, SECOND_MULTIPLIER = 14, 0xA26F_4F4D
AXES = {"x": X, "y": Y, "z": Z}


@dataclass(frozen=True, slots=True)
class Octave:
    """A layer of v3: noise at `scale · x + shift`, times `weight`. Hashes count in units of 2⁻²⁴, so weights do too."""

    scale: float
    shift: float
    weight: float
    scale_z: float
    shift_z: float


def _octaves(count: int, across: float, time: float) -> tuple[Octave, ...]:
    whole = sum(0.5**i for i in range(count))
    return tuple(
        Octave(
            scale=across * 2**i,
            shift=OCTAVE_SHIFT if i else 0.0,
            weight=0.5**i / whole * UNIT,
            scale_z=time * LACUNARITY_Z**i,
            shift_z=OCTAVE_PLANES * i,
        )
        for i in range(count)
    )


OCTAVES = _octaves(5, across=4, time=0.5)


def turns(angle: float) -> float:
    """Which wave is the sine of an angle, in turns from 0 to 1: reduced in double precision, so that it stays exact
    however late it is."""
    at = angle / math.tau - 0.25
    return at - math.floor(at)


def depth(time: float) -> list[tuple[int, int, float]]:
    """Of each octave of v3 at a time: what z contributes to the hash at the planes below and above, and how much of the
    plane above is blended in."""
    found = []
    for octave in OCTAVES:
        z = time * octave.scale_z + octave.shift_z
        below = math.floor(z)
        products = [(below * Z.multiplier + Z.offset(step)) & MASK for step in (0, 1)]
        low, high = (product ^ product >> FIRST_SHIFT for product in products)
        rest = z - below
        found.append((low, high, rest * rest * (3 - 2 * rest)))
    return found
