"""Rows for whole numbers of 32 bits, and the hash that is made of them. Its figures are explained in
docs/algorithms.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from weft.ops import double, formula as f, ieee, single
from weft.ops.formula import Term
from weft.ops.spec import OpSpec, params

MASK = 0xFFFF_FFFF

# What the top 24 bits of a hash are counted in: the finest step that single precision holds all over 0…1.
UNIT = 2.0**-24


@dataclass(frozen=True, slots=True)
class Axis:
    """How one coordinate enters the hash: as the lattice point times `multiplier`, plus `start`."""

    multiplier: int
    start: int

    def offset(self, step: int) -> int:
        """What is added to the product for the lattice point `step` further on."""
        return (self.start + step * self.multiplier) & MASK


# The multipliers are the odd numbers nearest to 2³² / g, 2³² / g² and 2³² / g³, where g⁴ = g + 1: multiples of these
# spread evenly over a cube. The start of x is 2³² over the golden ratio, so that the origin does not hash to 0; the
# others have none, so that an axis vanishes at 0.
X = Axis(0xD1B5_4A33, 0x9E37_79B9)
Y = Axis(0xABC9_8389, 0)
Z = Axis(0x8CB9_2BA7, 0)

# The finaliser's figures were searched for: of 6,000 pairs these, with these shifts, come nearest to changing each of
# the top 24 bits in half of all cases when any one bit of the input changes (0.492 to 0.508).
_FIRST_SHIFT, _FIRST_MULTIPLIER = 16, 0x87EB_F2B7
_SECOND_SHIFT, _SECOND_MULTIPLIER = 14, 0xA26F_4F4D


def axis_part(whole: Term, axis: Axis, step: int = 0) -> Term:
    """What one coordinate contributes to the hash of a lattice point, `step` further on along the axis.

    Everything that can be done for one coordinate alone is done here: where x varies along the row only, it is
    computed once a column. That includes the finaliser's first shift, which distributes over the xor of the parts.
    """
    product = f.bits_mul(f.bits_of(whole), axis.multiplier)
    offset = axis.offset(step)
    if offset:
        product = f.bits_add(product, offset)
    return f.bits_xor(product, f.bits_shr(product, _FIRST_SHIFT))


def finish(parts: Term) -> Term:
    """The hash of a lattice point from the xor of its axes' parts. Only its top 24 bits are well mixed."""
    mixed = f.bits_mul(parts, _FIRST_MULTIPLIER)
    mixed = f.bits_xor(mixed, f.bits_shr(mixed, _SECOND_SHIFT))
    return f.bits_mul(mixed, _SECOND_MULTIPLIER)


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
        bits ^= product ^ product >> _FIRST_SHIFT
    bits = bits * _FIRST_MULTIPLIER & MASK
    bits ^= bits >> _SECOND_SHIFT
    return bits * _SECOND_MULTIPLIER & MASK


def _fold_hash(x: float, y: float, z: float) -> float:
    i, j, k = (bits_of(ieee.floor(coordinate)) for coordinate in (x, y, z))
    return (lattice_hash(i, j, k) >> 8) * UNIT


def _vector_bits_of(np: Any, out: Any, x: Any) -> None:
    if np.min(x) >= -(2.0**31) and np.max(x) < 2.0**31:
        np.copyto(out.view(np.int32), x, casting="unsafe")
        return
    # All steps are exact in double precision: powers of two, and a rest that x has the digits for.
    wide = np.asarray(x, np.float64)
    rest = wide - np.floor(wide * 2.0**-32) * 2.0**32
    np.copyto(out, np.where(np.isfinite(rest), rest, 0.0), casting="unsafe")


def _vector_bits_top(np: Any, out: Any, n: Any) -> None:
    # As signed numbers, which are converted faster; they have 24 bits.
    np.copyto(out, np.right_shift(n, np.uint32(8)).view(np.int32), casting="unsafe")


ROWS = (
    OpSpec(
        "bits_of", "internal", params("x"), "a whole number x modulo 2³²; 0 if it is not finite",
        fold=bits_of, vector=_vector_bits_of, native=single.bits_of, double=double.bits_of,
        clike="bits_of", gives="bits",
        example="bits_of(floor(x))",
    ),
    OpSpec(
        "bits_add", "internal", params("a", "b"), "the sum modulo 2³²",
        fold=lambda a, b: (a + b) & MASK, vector="add", native="bits_add", clike="+",
        takes="bits", gives="bits", example="bits_add(a, b)",
    ),
    OpSpec(
        "bits_mul", "internal", params("a", "b"), "the product modulo 2³²",
        fold=lambda a, b: a * b & MASK, vector="multiply", native="bits_mul", clike="*",
        takes="bits", gives="bits", example="bits_mul(a, b)", cost=2,
    ),
    OpSpec(
        "bits_xor", "internal", params("a", "b"), "the bits in which a and b differ",
        fold=lambda a, b: a ^ b, vector="bitwise_xor", native="bits_xor", clike="^",
        takes="bits", gives="bits", example="bits_xor(a, b)",
    ),
    OpSpec(
        "bits_shr", "internal", params("a", "n"), "a, shifted right by n bits (0 to 31)",
        fold=lambda a, n: a >> n, vector="right_shift", native="bits_shr", clike=">>",
        takes="bits", gives="bits", example="bits_shr(a, 16)",
    ),
    OpSpec(
        "bits_top", "internal", params("a"), "the top 24 bits of a as a real from 0 to 2²⁴ - 1",
        fold=lambda a: float(a >> 8), vector=_vector_bits_top, native=single.bits_top, clike="bits_top",
        takes="bits", example="bits_top(a)", cost=2,
    ),
    OpSpec(
        "hash", "builtin", params("x", y=0, z=0), "a random-looking number from 0 up to 1 for each whole x, y, z",
        fold=_fold_hash, expand=_expand_hash, example="hash(floor(me@x * 8), me@beat)", cost=20,
    ),
)  # fmt: skip
