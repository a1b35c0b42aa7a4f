"""Rows for whole numbers of 32 bits, hashes and noise. docs/algorithms.md explains the algorithms and their
constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from weft.ops import double, formula as f, ieee, single
from weft.ops.curves import clamp, fade, mix
from weft.ops.formula import Operand, Term
from weft.ops.intervals import Interval
from weft.ops.spec import OpSpec, about, params

# --- bits and the hash ---

MASK = 0xFFFF_FFFF

# The unit of the top 24 bits of a hash: the finest step that single precision has everywhere in 0…1.
UNIT = 2.0**-24


@dataclass(frozen=True, slots=True)
class Axis:
    """How one coordinate enters the hash: as the lattice point times `multiplier`, plus `start`."""

    multiplier: int
    start: int

    def offset(self, step: int) -> int:
        """The number to add to the product for the lattice point `step` further on."""
        return (self.start + step * self.multiplier) & MASK


# The multipliers are the odd numbers nearest to 2³² / g, 2³² / g² and 2³² / g³, where g⁴ = g + 1: multiples of these
# spread evenly over a cube. The start of x is 2³² over the golden ratio, so that the origin does not hash to 0; the
# others have none, so that an axis vanishes at 0.
X = Axis(0xD1B5_4A33, 0x9E37_79B9)
Y = Axis(0xABC9_8389, 0)
Z = Axis(0x8CB9_2BA7, 0)

# The finaliser's constants were found by search: of 6,000 pairs, these multipliers with these shifts come nearest to
# changing each of the top 24 bits in half of all cases when one bit of the input changes (0.492 to 0.508).
FIRST_SHIFT, FIRST_MULTIPLIER = 16, 0x87EB_F2B7
SECOND_SHIFT, SECOND_MULTIPLIER = 14, 0xA26F_4F4D


def axis_part(whole: Term, axis: Axis, step: int = 0) -> Term:
    """The contribution of one coordinate to the hash of a lattice point, `step` further on along the axis.

    Everything that depends on one coordinate only is done here: if x varies only along the row, it is computed once a
    column. That includes the finaliser's first shift, which distributes over the xor of the parts.
    """
    product = f.bits_mul(f.bits_of(whole), axis.multiplier)
    offset = axis.offset(step)
    if offset:
        product = f.bits_add(product, offset)
    return f.bits_xor(product, f.bits_shr(product, FIRST_SHIFT))


def finish(parts: Term) -> Term:
    """The hash of a lattice point from the xor of its axes' parts. Only its top 24 bits are well mixed."""
    mixed = f.bits_mul(parts, FIRST_MULTIPLIER)
    mixed = f.bits_xor(mixed, f.bits_shr(mixed, SECOND_SHIFT))
    return f.bits_mul(mixed, SECOND_MULTIPLIER)


def _expand_hash(x: Term, y: Term, z: Term) -> Term:
    parts = None
    for coordinate, axis in ((z, Z), (y, Y)):
        if f.constant_of(coordinate) != 0:
            part = axis_part(f.floor(coordinate), axis)
            parts = part if parts is None else f.bits_xor(part, parts)
    part = axis_part(f.floor(x), X)
    return f.bits_top(finish(part if parts is None else f.bits_xor(part, parts))) * UNIT


def bits_of(whole: float) -> int:
    return int(whole) & MASK if math.isfinite(whole) else 0


def lattice_hash(i: int, j: int, k: int) -> int:
    """The hash of a lattice point, on Python's integers."""
    bits = 0
    for coordinate, axis in ((i, X), (j, Y), (k, Z)):
        product = (coordinate * axis.multiplier + axis.start) & MASK
        bits ^= product ^ product >> FIRST_SHIFT
    bits = bits * FIRST_MULTIPLIER & MASK
    bits ^= bits >> SECOND_SHIFT
    return bits * SECOND_MULTIPLIER & MASK


def _fold_hash(x: float, y: float, z: float) -> float:
    i, j, k = (bits_of(ieee.floor(coordinate)) for coordinate in (x, y, z))
    return (lattice_hash(i, j, k) >> 8) * UNIT


def _vector_bits_of(np: Any, out: Any, x: Any) -> None:
    if np.min(x) >= -(2.0**31) and np.max(x) < 2.0**31:
        np.copyto(out.view(np.int32), x, casting="unsafe")
        return
    # All steps are exact in double precision: powers of two, and a remainder that x has the digits for.
    wide = np.asarray(x, np.float64)
    rest = wide - np.floor(wide * 2.0**-32) * 2.0**32
    np.copyto(out, np.where(np.isfinite(rest), rest, 0.0), casting="unsafe")


def _vector_bits_top(np: Any, out: Any, n: Any) -> None:
    # Signed numbers are converted faster, and 24 bits fit.
    np.copyto(out, np.right_shift(n, np.uint32(8)).view(np.int32), casting="unsafe")


HASHING = (
    OpSpec(
        "bits_of", "internal", params("x"), "a whole number x modulo 2³²; 0 if it is not finite",
        fold=bits_of, vector=_vector_bits_of, native=single.bits_of, double=double.bits_of,
        clike="bits_of", gives="u32",
        example="bits_of(floor(x))",
    ),
    OpSpec(
        "bits_add", "internal", params("a", "b"), "the sum modulo 2³²",
        fold=lambda a, b: (a + b) & MASK, vector="add", native="bits_add", clike="+",
        takes="u32", gives="u32", example="bits_add(a, b)",
    ),
    OpSpec(
        "bits_mul", "internal", params("a", "b"), "the product modulo 2³²",
        fold=lambda a, b: a * b & MASK, vector="multiply", native="bits_mul", clike="*",
        takes="u32", gives="u32", example="bits_mul(a, b)", cost=2,
    ),
    OpSpec(
        "bits_xor", "internal", params("a", "b"), "the bits in which a and b differ",
        fold=lambda a, b: a ^ b, vector="bitwise_xor", native="bits_xor", clike="^",
        takes="u32", gives="u32", example="bits_xor(a, b)",
    ),
    OpSpec(
        "bits_shr", "internal", params("a", "n"), "a, shifted right by n bits (0 to 31)",
        fold=lambda a, n: a >> n, vector="right_shift", native="bits_shr", clike=">>",
        takes="u32", gives="u32", example="bits_shr(a, 16)",
    ),
    OpSpec(
        "bits_top", "internal", params("a"), "the top 24 bits of a as a float from 0 to 2²⁴ - 1",
        fold=lambda a: float(a >> 8), vector=_vector_bits_top, native=single.bits_top, clike="bits_top",
        takes="u32", interval=lambda _bits: Interval(0.0, 2.0**24 - 1), example="bits_top(a)", cost=2,
    ),
    OpSpec(
        "hash", "builtin", params("x", y=0, z=0), "a random-looking number from 0 up to 1 for each whole x, y, z",
        fold=_fold_hash, expand=_expand_hash, usual=about(-40, 40), example="hash(floor(me@x * 8), me@beat)", cost=20,
    ),
)  # fmt: skip


# --- the meaning of the noise rows, on plain numbers ---

OCTAVES_MAX = 8

# Every octave but the first is shifted by half a cell in x and y: since 2ⁿ · (k + ½) is never k′ + ½, no lattice lines
# of two octaves coincide. In z a fraction would cost the plane z = 0 its short cut, so the frequencies there differ
# slightly from doublings, and the octaves are kept apart by whole planes.
OCTAVE_SHIFT = 0.5
LACUNARITY_Z = 2.125
OCTAVE_PLANES = 31

# 1 / 76.881 is the greatest sum that the four corners of a simplex can reach with the best gradients.
SIMPLEX_SCALE = 76.8

# The distance that a point keeps from the border of its cell: just enough that the nearest point is never outside of
# the 3 × 3 cells around, since then (1 − margin) · √2 < 1 + margin.
CELL_MARGIN = 3 / 16

# The turns of the second coordinate of a point for each turn of the first, so that paths are not fixed ellipses.
SECOND_DRIFT = 13 / 16


def fraction(x: float) -> float:
    return x - ieee.floor(x)


def octave_count(octaves: float) -> float:
    return ieee.minimum(ieee.maximum(octaves, 1.0), float(OCTAVES_MAX))


def _mix(a: float, b: float, t: float) -> float:
    return a + (b - a) * t


def fold_noise(x: float, y: float, z: float) -> float:
    i, j, k = (bits_of(ieee.floor(coordinate)) for coordinate in (x, y, z))
    u, v, w = (t * t * (3 - 2 * t) for t in map(fraction, (x, y, z)))

    def edge(dj: int, dk: int) -> float:
        a, b = (lattice_hash(i + di, j + dj, k + dk) >> 8 for di in (0, 1))
        return _mix(a, b, u)

    def plane(dk: int) -> float:
        return _mix(edge(0, dk), edge(1, dk), v)

    return _mix(plane(0), plane(1), w) * UNIT


def fold_fbm(x: float, y: float, z: float, octaves: float) -> float:
    count = octave_count(octaves)
    total = weights = 0.0
    for i in range(math.ceil(count)):
        weight = min(count - i, 1.0) * 0.5**i
        shift = OCTAVE_SHIFT if i else 0.0
        total += weight * fold_noise(x * 2**i + shift, y * 2**i + shift, z * LACUNARITY_Z**i + OCTAVE_PLANES * i)
        weights += weight
    return total / weights


def fold_simplex(x: float, y: float, z: float) -> float:
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
        total += _fold_simplex_corner(lattice_hash(i, j, k), distance)
    return total * SIMPLEX_SCALE


def _fold_simplex_corner(bits: int, distance: list[float]) -> float:
    dx, dy, dz = distance
    near = max(0.5 - (dx * dx + dy * dy + dz * dz), 0.0)
    missing, sign = divmod((bits >> 8) * 3 * UNIT, 1)
    a, b = ((dy, dz), (dx, dz), (dx, dy))[int(missing)]
    return near**4 * ((a if sign < 0.5 else -a) + (b if abs(sign - 0.5) < 0.25 else -b))


def fold_voronoi(x: float, y: float, z: float) -> float:
    if not all(map(math.isfinite, (x, y, z))):
        return math.nan
    i, j = ieee.floor(x), ieee.floor(y)
    squares = []
    for dj in (-1, 0, 1):
        for di in (-1, 0, 1):
            bits = lattice_hash(bits_of(i) + di, bits_of(j) + dj, 0)
            px = di + 0.5 + _fold_wander(bits, z)
            py = dj + 0.5 + _fold_wander(bits << 16 & MASK, z * SECOND_DRIFT)
            squares.append((px - (x - i)) ** 2 + (py - (y - j)) ** 2)
    return math.sqrt(min(squares))


def _fold_wander(bits: int, turns: float) -> float:
    phase = fraction((bits >> 8) * UNIT + fraction(turns))
    swing = 2 * phase - 1
    return swing * (1 - abs(swing)) * 4 * (0.5 - CELL_MARGIN)


# --- the expansions of the noise rows ---


@dataclass(frozen=True, slots=True)
class _LatticeCell:
    """The place of a coordinate on its axis of the lattice."""

    parts: tuple[Term | None, ...]
    """The contribution to the hash of the lattice point below, and of the one above unless the coordinate is known to
    be whole; None for no contribution."""
    fade: Operand
    """The share of the point above."""

    def blend(self, values: list[Term]) -> Term:
        return mix(values[0], values[1], self.fade) if len(values) > 1 else values[0]


def _cell(coordinate: Term, axis: Axis) -> _LatticeCell:
    known = f.constant_of(coordinate)
    if known is not None and known.is_integer():
        vanishes = known == 0 and axis.start == 0
        return _LatticeCell((None if vanishes else axis_part(coordinate, axis),), 0)
    below = f.floor(coordinate)
    return _LatticeCell((axis_part(below, axis), axis_part(below, axis, 1)), fade(coordinate - below))


def _combine(a: Term | None, b: Term | None) -> Term | None:
    if a is None or b is None:
        return b if a is None else a
    return f.bits_xor(a, b)


def _value_noise(x: Term, y: Term, z: Term) -> Term:
    """Noise in units of 2⁻²⁴: the values at the corners of a cell, blended.

    y and z are combined before x, since together they often vary more slowly than x. Then the weights of four corners
    do so as well, and blending these takes as many products.
    """
    along_x, along_y, along_z = _cell(x, X), _cell(y, Y), _cell(z, Z)
    edges = [_combine(part_y, part_z) for part_z in along_z.parts for part_y in along_y.parts]

    def corner(part: Term | None, others: Term | None) -> Term:
        parts = _combine(part, others)
        assert parts is not None  # x always has a part: it does not start at 0
        return f.bits_top(finish(parts))

    if len(edges) < 4:
        blended = [along_x.blend([corner(part, edge) for part in along_x.parts]) for edge in edges]
        return (along_y if len(along_y.parts) > 1 else along_z).blend(blended)
    weights = [down * deep for deep in (1 - along_z.fade, along_z.fade) for down in (1 - along_y.fade, along_y.fade)]

    def side(part: Term | None) -> Term:
        shares = [corner(part, edge) * weight for edge, weight in zip(edges, weights, strict=True)]
        return reduce(add, shares)

    return along_x.blend([side(part) for part in along_x.parts])


def _scaled(x: Term, factor: float, shift: float) -> Term:
    """`x · factor + shift`, known if x is known."""
    known = f.constant_of(x)
    if known is not None:
        return x.const(known * factor + shift)
    if factor != 1:
        x = x * factor
    return x + shift if shift else x


def _expand_fbm(x: Term, y: Term, z: Term, octaves: Term) -> Term:
    known = f.constant_of(octaves)
    count: Operand = clamp(octaves, 1, OCTAVES_MAX)
    layers = OCTAVES_MAX
    if known is not None:
        count = octave_count(known)
        layers = math.ceil(count)

    def layer(i: int) -> Term:
        shift = OCTAVE_SHIFT if i else 0
        return _value_noise(
            _scaled(x, 2**i, shift), _scaled(y, 2**i, shift), _scaled(z, LACUNARITY_Z**i, OCTAVE_PLANES * i)
        )

    def weight(i: int) -> Operand:
        if isinstance(count, Term):
            return clamp(count - i, 0, 1) * 0.5**i
        return min(count - i, 1.0) * 0.5**i

    weights = [weight(i) for i in range(layers)]
    whole = weights[0]
    for each in weights[1:]:
        whole = whole + each
    scale = UNIT / whole
    total = layer(0) * (weights[0] * scale)
    for i in range(1, layers):
        total = total + layer(i) * (weights[i] * scale)
    return total


def _expand_simplex(x: Term, y: Term, z: Term) -> Term:
    skew = (x + y + z) * (1 / 3)
    i, j, k = f.floor(x + skew), f.floor(y + skew), f.floor(z + skew)
    # The same as x − i + (i + j + k) / 6, but from remainders, which are exact however far away the cell is.
    rest_x, rest_y, rest_z = x + skew - i, y + skew - j, z + skew - k
    unskew = (rest_x + rest_y + rest_z) * (1 / 6)
    dx, dy, dz = rest_x - unskew, rest_y - unskew, rest_z - unskew

    # The way from the first corner to the last goes along the largest distance first, along the smallest last.
    x_over_y, x_over_z, y_over_z = f.ge(dx, dy), f.ge(dx, dz), f.ge(dy, dz)
    largest = (
        f.to_float(f.and_(x_over_y, x_over_z)),
        f.to_float(f.and_(f.not_(x_over_y), y_over_z)),
        f.to_float(f.not_(f.or_(x_over_z, y_over_z))),
    )
    not_smallest = (
        f.to_float(f.or_(x_over_y, x_over_z)),
        f.to_float(f.or_(f.not_(x_over_y), y_over_z)),
        f.to_float(f.not_(f.and_(x_over_z, y_over_z))),
    )

    steps: tuple[tuple[Operand, Operand, Operand], ...] = (largest, not_smallest, (1, 1, 1))
    total = _simplex_corner((i, j, k), (dx, dy, dz))
    for number, (si, sj, sk) in enumerate(steps, 1):
        back = number / 6
        total = total + _simplex_corner((i + si, j + sj, k + sk), (dx - si + back, dy - sj + back, dz - sk + back))
    return total * SIMPLEX_SCALE


def _simplex_corner(point: tuple[Term, Term, Term], distance: tuple[Term, Term, Term]) -> Term:
    """The share of one corner: a ramp along its gradient, one of the twelve (±1, ±1, 0), faded out by the distance."""
    parts = f.bits_xor(axis_part(point[0], X), f.bits_xor(axis_part(point[1], Y), axis_part(point[2], Z)))
    pick = f.bits_top(finish(parts)) * (3 * UNIT)
    dx, dy, dz = distance
    along_a = f.select(f.lt(pick, 1), dy, dx)
    along_b = f.select(f.lt(pick, 2), dz, dy)
    sign = pick - f.floor(pick)
    ramp = f.select(f.lt(sign, 0.5), along_a, -along_a) + f.select(f.lt(f.abs(sign - 0.5), 0.25), along_b, -along_b)
    near = f.max(0.5 - (dx * dx + dy * dy + dz * dz), 0)
    near = near * near
    return near * near * ramp


def _expand_voronoi(x: Term, y: Term, z: Term) -> Term:
    i, j = f.floor(x), f.floor(y)
    across, down = x - i, y - j
    drift_x, drift_y = _turns(z), _turns(_scaled(z, SECOND_DRIFT, 0))

    nearest = None
    for step_y in (-1, 0, 1):
        part_y = axis_part(j, Y, step_y)
        for step_x in (-1, 0, 1):
            bits = finish(f.bits_xor(axis_part(i, X, step_x), part_y))
            # Two phases from one hash: its upper half and its lower half.
            dx = _wander(f.bits_top(bits), drift_x) + (step_x + 0.5 - across)
            dy = _wander(f.bits_top(f.bits_mul(bits, 1 << 16)), drift_y) + (step_y + 0.5 - down)
            square = dx * dx + dy * dy
            nearest = square if nearest is None else f.min(nearest, square)
    assert nearest is not None
    return f.sqrt(nearest)


def _turns(z: Term) -> Term:
    """The fraction of z: the phase of the points on their paths."""
    known = f.constant_of(z)
    return z - f.floor(z) if known is None else z.const(fraction(known))


def _wander(top: Term, drift: Term) -> Term:
    """The offset of a point from the middle of its cell: a parabolic sine of its phase."""
    if f.constant_of(drift) == 0:
        swing = top * (2 * UNIT) - 1
    else:
        phase = top * UNIT + drift
        swing = (phase - f.floor(phase)) * 2 - 1
    return swing * (1 - f.abs(swing)) * (4 * (0.5 - CELL_MARGIN))


NOISE = (
    OpSpec(
        "noise", "builtin", params("x", y=0, z=0), "smooth noise from 0 to 1, with one random value a whole x, y, z",
        fold=fold_noise, expand=lambda x, y, z: _value_noise(x, y, z) * UNIT,
        usual=about(-9, 9), example="noise(me@x * 8, me@y * 8, me@time)", cost=110,
    ),
    OpSpec(
        "simplex", "builtin", params("x", y=0, z=0), "smooth noise from -1 to 1 without visible axes",
        fold=fold_simplex, expand=_expand_simplex,
        usual=about(-6, 6), example="simplex(me@x * 4, me@y * 4, me@time)", cost=200,
    ),
    OpSpec(
        "fbm", "builtin", params("x", y=0, z=0, octaves=5), "clouds from 0 to 1: octaves (1 to 8) of ever finer noise",
        fold=fold_fbm, expand=_expand_fbm,
        usual=about(-5, 5, -5, 5, -5, 5, 1, 3), example="fbm(me@x * 4, me@y * 4, me@time)", cost=560,
    ),
    OpSpec(
        "voronoi", "builtin", params("x", y=0, z=0),
        "the distance in the plane to the nearest of one point a cell; z lets the points wander",
        fold=fold_voronoi, expand=_expand_voronoi,
        usual=about(-6, 6), example="voronoi(me@x * 8, me@y * 8, me@time)", cost=250,
    ),
)  # fmt: skip
