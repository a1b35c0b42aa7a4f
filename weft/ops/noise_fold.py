"""The meaning of the noise rows, on plain numbers: what their expansions are held against.

The figures of the algorithms are here too; docs/algorithms.md explains them.
"""

from __future__ import annotations

import math

from weft.ops import ieee
from weft.ops.hashing import MASK, UNIT, bits_of, lattice_hash

OCTAVES_MAX = 8

# Every octave but the first is shifted by half a cell in x and y: since 2ⁿ · (k + ½) is never k′ + ½, no lattice lines
# of two octaves coincide. In z a fraction would cost the plane z = 0 its short cut, so there the frequencies differ a
# little from doublings, and the octaves are kept apart by whole planes.
OCTAVE_SHIFT = 0.5
LACUNARITY_Z = 2.125
OCTAVE_PLANES = 31

# 1 / 76.881 is the greatest sum that the four corners of a simplex can reach with the best gradients.
SIMPLEX_SCALE = 76.8

# A point of a cell keeps this far from the cell's border: just enough that the nearest point of all is never outside
# the 3 × 3 cells around, since then (1 − margin) · √2 < 1 + margin.
CELL_MARGIN = 3 / 16

# The second coordinate of a point turns this often while the first turns once, so that paths are no fixed ellipses.
SECOND_DRIFT = 13 / 16


def fraction(x: float) -> float:
    return x - ieee.floor(x)


def octave_count(octaves: float) -> float:
    return ieee.minimum(ieee.maximum(octaves, 1.0), float(OCTAVES_MAX))


def _mix(a: float, b: float, t: float) -> float:
    return a + (b - a) * t


def noise(x: float, y: float, z: float) -> float:
    i, j, k = (bits_of(ieee.floor(coordinate)) for coordinate in (x, y, z))
    u, v, w = (t * t * (3 - 2 * t) for t in map(fraction, (x, y, z)))

    def edge(dj: int, dk: int) -> float:
        a, b = (lattice_hash(i + di, j + dj, k + dk) >> 8 for di in (0, 1))
        return _mix(a, b, u)

    def plane(dk: int) -> float:
        return _mix(edge(0, dk), edge(1, dk), v)

    return _mix(plane(0), plane(1), w) * UNIT


def fbm(x: float, y: float, z: float, octaves: float) -> float:
    count = octave_count(octaves)
    total = weights = 0.0
    for i in range(math.ceil(count)):
        weight = min(count - i, 1.0) * 0.5**i
        shift = OCTAVE_SHIFT if i else 0.0
        total += weight * noise(x * 2**i + shift, y * 2**i + shift, z * LACUNARITY_Z**i + OCTAVE_PLANES * i)
        weights += weight
    return total / weights


def simplex(x: float, y: float, z: float) -> float:
    skew = (x + y + z) / 3
    cell = [ieee.floor(coordinate + skew) for coordinate in (x, y, z)]
    if not all(map(math.isfinite, cell)):
        return math.nan
    unskew = sum(cell) / 6
    rest = [coordinate - whole + unskew for coordinate, whole in zip((x, y, z), cell, strict=True)]
    # Stable: of equal distances that of the earlier axis counts as the larger.
    order = sorted(range(3), key=lambda axis: -rest[axis])
    step = [0, 0, 0]
    total = 0.0
    for corner in range(4):
        if corner:
            step[order[corner - 1]] = 1
        distance = [r - s + corner / 6 for r, s in zip(rest, step, strict=True)]
        i, j, k = (bits_of(whole + s) for whole, s in zip(cell, step, strict=True))
        total += _simplex_corner(lattice_hash(i, j, k), distance)
    return total * SIMPLEX_SCALE


def _simplex_corner(bits: int, distance: list[float]) -> float:
    dx, dy, dz = distance
    near = max(0.5 - (dx * dx + dy * dy + dz * dz), 0.0)
    missing, sign = divmod((bits >> 8) * 3 * UNIT, 1)
    a, b = ((dy, dz), (dx, dz), (dx, dy))[int(missing)]
    return near**4 * ((a if sign < 0.5 else -a) + (b if abs(sign - 0.5) < 0.25 else -b))


def voronoi(x: float, y: float, z: float) -> float:
    if not all(map(math.isfinite, (x, y, z))):
        return math.nan
    i, j = ieee.floor(x), ieee.floor(y)
    squares = []
    for dj in (-1, 0, 1):
        for di in (-1, 0, 1):
            bits = lattice_hash(bits_of(i) + di, bits_of(j) + dj, 0)
            px = di + 0.5 + _wander(bits, z)
            py = dj + 0.5 + _wander(bits << 16 & MASK, z * SECOND_DRIFT)
            squares.append((px - (x - i)) ** 2 + (py - (y - j)) ** 2)
    return math.sqrt(min(squares))


def _wander(bits: int, turns: float) -> float:
    phase = fraction((bits >> 8) * UNIT + fraction(turns))
    swing = 2 * phase - 1
    return swing * (1 - abs(swing)) * 4 * (0.5 - CELL_MARGIN)
