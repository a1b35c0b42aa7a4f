"""Rows for noise. The algorithms, with the reasons for their figures, are told in docs/algorithms.md; what is here are
their expansions, and `weft.ops.noise_fold` has their meaning on plain numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from weft.ops import formula as f, noise_fold
from weft.ops.formula import Operand, Term
from weft.ops.hashing import UNIT, Axis, X, Y, Z, axis_part, finish
from weft.ops.noise_fold import (
    CELL_MARGIN, LACUNARITY_Z, OCTAVE_PLANES, OCTAVE_SHIFT, OCTAVES_MAX, SECOND_DRIFT, SIMPLEX_SCALE
)
from weft.ops.shaping import clamp, fade, mix
from weft.ops.spec import OpSpec, params


@dataclass(frozen=True, slots=True)
class _Cell:
    """Where a coordinate lies on its axis of the lattice."""

    parts: tuple[Term | None, ...]
    """The contribution to the hash of the lattice point below, and of the one above unless the coordinate is known to
    be whole; None where it contributes nothing."""
    fade: Operand
    """How much of the point above is blended in."""

    def blend(self, values: list[Term]) -> Term:
        return mix(values[0], values[1], self.fade) if len(values) > 1 else values[0]


def _cell(coordinate: Term, axis: Axis) -> _Cell:
    known = f.constant_of(coordinate)
    if known is not None and known.is_integer():
        vanishes = known == 0 and axis.start == 0
        return _Cell((None if vanishes else axis_part(coordinate, axis),), 0)
    below = f.floor(coordinate)
    return _Cell((axis_part(below, axis), axis_part(below, axis, 1)), fade(coordinate - below))


def _combine(a: Term | None, b: Term | None) -> Term | None:
    if a is None or b is None:
        return b if a is None else a
    return f.bits_xor(a, b)


def _value_noise(x: Term, y: Term, z: Term) -> Term:
    """Noise in units of 2⁻²⁴: the values at the corners of a cell, blended along x, then y, then z.

    y and z are combined before x, since together they often vary more slowly than x does.
    """
    along_x, along_y, along_z = _cell(x, X), _cell(y, Y), _cell(z, Z)

    def corner(part: Term | None, others: Term | None) -> Term:
        parts = _combine(part, others)
        assert parts is not None  # x always has a part: it does not start at 0
        return f.bits_top(finish(parts))

    def plane(part_z: Term | None) -> Term:
        edges = [_combine(part_y, part_z) for part_y in along_y.parts]
        return along_y.blend([along_x.blend([corner(part, edge) for part in along_x.parts]) for edge in edges])

    return along_z.blend([plane(part_z) for part_z in along_z.parts])


def _expand_noise(x: Term, y: Term, z: Term) -> Term:
    return _value_noise(x, y, z) * UNIT


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
        count = noise_fold.octave_count(known)
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
    # The same as x − i + (i + j + k) / 6, from remainders, which are exact however far away the cell is.
    rest_x, rest_y, rest_z = x + skew - i, y + skew - j, z + skew - k
    unskew = (rest_x + rest_y + rest_z) * (1 / 6)
    dx, dy, dz = rest_x - unskew, rest_y - unskew, rest_z - unskew

    # The way from the first corner to the last goes along the largest distance first, along the smallest last.
    x_over_y, x_over_z, y_over_z = f.ge(dx, dy), f.ge(dx, dz), f.ge(dy, dz)
    largest = (
        f.to_real(f.and_(x_over_y, x_over_z)),
        f.to_real(f.and_(f.not_(x_over_y), y_over_z)),
        f.to_real(f.not_(f.or_(x_over_z, y_over_z))),
    )
    not_smallest = (
        f.to_real(f.or_(x_over_y, x_over_z)),
        f.to_real(f.or_(f.not_(x_over_y), y_over_z)),
        f.to_real(f.not_(f.and_(x_over_z, y_over_z))),
    )

    steps: tuple[tuple[Operand, Operand, Operand], ...] = (largest, not_smallest, (1, 1, 1))
    total = _simplex_corner((i, j, k), (dx, dy, dz))
    for number, (si, sj, sk) in enumerate(steps, 1):
        back = number / 6
        total = total + _simplex_corner((i + si, j + sj, k + sk), (dx - si + back, dy - sj + back, dz - sk + back))
    return total * SIMPLEX_SCALE


def _simplex_corner(point: tuple[Term, Term, Term], distance: tuple[Term, Term, Term]) -> Term:
    """What one corner gives: a ramp along its gradient, one of the twelve (±1, ±1, 0), faded out by the distance."""
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
            # Two phases from one hash: its upper half and, moved up, its lower half.
            dx = _wander(f.bits_top(bits), drift_x) + (step_x + 0.5 - across)
            dy = _wander(f.bits_top(f.bits_mul(bits, 1 << 16)), drift_y) + (step_y + 0.5 - down)
            square = dx * dx + dy * dy
            nearest = square if nearest is None else f.min(nearest, square)
    assert nearest is not None
    return f.sqrt(nearest)


def _turns(z: Term) -> Term:
    """The fraction of z: how far a point has come on its way round."""
    known = f.constant_of(z)
    return z - f.floor(z) if known is None else z.const(noise_fold.fraction(known))


def _wander(top: Term, drift: Term) -> Term:
    """Where a point is, from the middle of its cell: a parabolic sine of its phase."""
    if f.constant_of(drift) == 0:
        swing = top * (2 * UNIT) - 1
    else:
        phase = top * UNIT + drift
        swing = (phase - f.floor(phase)) * 2 - 1
    return swing * (1 - f.abs(swing)) * (4 * (0.5 - CELL_MARGIN))


ROWS = (
    OpSpec(
        "noise", "builtin", params("x", y=0, z=0), "smooth noise from 0 to 1, with one random value a whole x, y, z",
        fold=noise_fold.noise, expand=_expand_noise, example="noise(me@x * 8, me@y * 8, me@time)", cost=110,
    ),
    OpSpec(
        "simplex", "builtin", params("x", y=0, z=0), "smooth noise from -1 to 1 without visible axes",
        fold=noise_fold.simplex, expand=_expand_simplex, example="simplex(me@x * 4, me@y * 4, me@time)", cost=200,
    ),
    OpSpec(
        "fbm", "builtin", params("x", y=0, z=0, octaves=5), "clouds from 0 to 1: octaves (1 to 8) of ever finer noise",
        fold=noise_fold.fbm, expand=_expand_fbm, example="fbm(me@x * 4, me@y * 4, me@time)", cost=560,
    ),
    OpSpec(
        "voronoi", "builtin", params("x", y=0, z=0),
        "the distance in the plane to the nearest of one point a cell; z lets the points wander",
        fold=noise_fold.voronoi, expand=_expand_voronoi, example="voronoi(me@x * 8, me@y * 8, me@time)", cost=250,
    ),
)  # fmt: skip
