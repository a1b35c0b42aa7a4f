"""Functions of real numbers in single precision, as instructions on lanes. docs/algorithms.md explains them.

They use no tables, branches or calls: each reduces its operand to a small interval, evaluates a polynomial there, and
undoes the reduction. The polynomials are in `weft.ops.lanes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from weft.ops.lanes import (
    ARCTANGENT, COSINE, COSINE_OF_HALF_TURNS, LOGARITHM, POWER_OF_2, POWER_OF_E, SINE, SINE_OF_HALF_TURNS, Lanes,
    polynomial
)

V = TypeVar("V")

# Added to a number of size up to 2²², it leaves the nearest whole number in the lowest bits of the sum.
_SHIFTER = 1.5 * 2.0**23

# The polynomials of sine and cosine hold up to here: π/2, and an allowance for rounding in the reduction.
_LARGEST_ANGLE = math.pi / 2 * 1.005

# With it, the lowest bits of the sum are the exponent bits of half the power of two.
_EXPONENT_SHIFTER = _SHIFTER + 126

_LN_2 = math.log(2)
_SMALLEST_NORMAL = 2.0**-126
_SMALLEST = 2.0**-149
_SIGN_BIT = 0x8000_0000
_EXPONENT_BITS = 0xFF80_0000
_BITS_OF_TWO_THIRDS = 0x3F2A_AAAB


def split(value: float, *digits: int) -> tuple[float, ...]:
    """Numbers with these counts of binary digits, each smaller than the one before, that add up to the value."""
    parts = []
    for count in digits:
        mantissa, exponent = math.frexp(value)
        parts.append(math.ldexp(round(math.ldexp(mantissa, count)), exponent - count))
        value -= parts[-1]
    return tuple(parts)


# Products with whole numbers of up to 13 digits are exact in all parts but the last, fused or not.
_PI_FUSED = split(math.pi, 24, 24)
_PI_UNFUSED = split(math.pi, 11, 11, 24)

_LN_2_PARTS = split(_LN_2, 15, 24)  # for whole numbers of up to 9 digits


def sine(lanes: Lanes[V], x: V) -> V:
    """Within 2e-7 if |x| is at most 10⁴; between −1 and 1 for every finite x, NaN for others."""
    rest, sign = _half_turns(lanes, x)
    # The reduction of a huge x is inexact, but its sine must stay within −1…1.
    rest = _flip(lanes, _between(lanes, -_LARGEST_ANGLE, rest, _LARGEST_ANGLE), sign)
    square = lanes.mul(rest, rest)
    return lanes.fma(lanes.mul(rest, square), polynomial(lanes, square, SINE), rest)


def cosine(lanes: Lanes[V], x: V) -> V:
    """Within 2.5e-7 if |x| is at most 10⁴; between −1 and 1 for every finite x, NaN for others."""
    rest, sign = _half_turns(lanes, x)
    square = lanes.lesser(lanes.real(_LARGEST_ANGLE**2), lanes.mul(rest, rest))  # NaN passes: the second operand
    value = lanes.fma(square, polynomial(lanes, square, COSINE), lanes.real(1))
    return _flip(lanes, value, sign)


def sine_of_half_turns(lanes: Lanes[V], x: V) -> V:
    """sin πx, within 2e-7; NaN if x is not finite. The reduction is exact however large x is; it is 0 for whole x."""
    rest, square, sign = _within_half_turn(lanes, x)
    return lanes.mul(_flip(lanes, rest, sign), polynomial(lanes, square, SINE_OF_HALF_TURNS))


def cosine_of_half_turns(lanes: Lanes[V], x: V) -> V:
    """cos πx, within 3e-7; NaN if x is not finite."""
    _, square, sign = _within_half_turn(lanes, x)
    value = lanes.fma(square, polynomial(lanes, square, COSINE_OF_HALF_TURNS), lanes.real(1))
    return _flip(lanes, value, sign)


def _within_half_turn(lanes: Lanes[V], x: V) -> tuple[V, V, V]:
    """x without whole half turns, −½…½; its square; and in the highest bit whether the number of half turns is odd. If
    there are too many to count them, the first is 0, and their number does not matter."""
    turns = lanes.nearest(x)
    rest = lanes.sub(x, turns)
    sign = lanes.bits_shl(lanes.whole(turns), lanes.bits(31))
    return rest, lanes.mul(rest, rest), sign


def _half_turns(lanes: Lanes[V], x: V) -> tuple[V, V]:
    """x without multiples of π, within −π/2…π/2 unless x is huge; and in the highest bit whether their number is
    odd."""
    shifted = lanes.fma(x, lanes.real(1 / math.pi), lanes.real(_SHIFTER))
    turns = lanes.sub(shifted, lanes.real(_SHIFTER))
    rest = x
    for part in _PI_FUSED if lanes.fused else _PI_UNFUSED:
        rest = lanes.fma(turns, lanes.real(-part), rest)
    return rest, lanes.bits_shl(lanes.bits_in(shifted), lanes.bits(31))


def _between(lanes: Lanes[V], low: float, x: V, high: float) -> V:
    """x, clamped to two constants. NaN passes: it is the second operand."""
    return lanes.greater(lanes.real(low), lanes.lesser(lanes.real(high), x))


def _flip(lanes: Lanes[V], x: V, sign: V) -> V:
    """x with the other sign if the highest bit of `sign` is set; its other bits are 0."""
    return lanes.real_in(lanes.bits_xor(lanes.bits_in(x), sign))


def exponential(lanes: Lanes[V], x: V) -> V:
    """Within 2.5 units in the last place; 0 below 2⁻¹²⁵."""
    x = _between(lanes, -87.4, x, 89)
    shifted = lanes.fma(x, lanes.real(1 / _LN_2), lanes.real(_EXPONENT_SHIFTER))
    octaves = lanes.sub(shifted, lanes.real(_EXPONENT_SHIFTER))
    rest = x
    for part in _LN_2_PARTS:
        rest = lanes.fma(octaves, lanes.real(-part), rest)
    return _scaled(lanes, rest, POWER_OF_E, shifted)


def exponential_2(lanes: Lanes[V], x: V) -> V:
    """Within 2.5 units in the last place, exact for whole x; 0 below 2⁻¹²⁵."""
    x = _between(lanes, -126, x, 128)
    shifted = lanes.add(x, lanes.real(_EXPONENT_SHIFTER))
    rest = lanes.sub(x, lanes.sub(shifted, lanes.real(_EXPONENT_SHIFTER)))
    return _scaled(lanes, rest, POWER_OF_2, shifted)


def _scaled(lanes: Lanes[V], rest: V, coefficients: tuple[float, ...], shifted: V) -> V:
    """`(1 + rest·P(rest)) · 2ⁿ`, where `shifted` is n plus the shifter for exponents, and n is from −126 to 129.

    It is computed as twice the value times half the power, since single precision has no 2¹²⁸ to multiply a value
    below 1 with. For n = −126 half the power is 0, for n = 129 it is infinite.
    """
    doubled = lanes.fma(rest, polynomial(lanes, rest, tuple(2 * c for c in coefficients)), lanes.real(2))
    return lanes.mul(doubled, lanes.real_in(lanes.bits_shl(lanes.bits_in(shifted), lanes.bits(23))))


def logarithm(lanes: Lanes[V], x: V) -> V:
    """Within 2 units in the last place."""
    octaves, rest = _logarithm_parts(lanes, x)
    return _logarithm_of_any(lanes, x, lanes.fma(octaves, lanes.real(_LN_2), rest))


def logarithm_2(lanes: Lanes[V], x: V) -> V:
    """Within 3 units in the last place, exact for powers of two."""
    octaves, rest = _logarithm_parts(lanes, x)
    return _logarithm_of_any(lanes, x, lanes.fma(rest, lanes.real(1 / _LN_2), octaves))


def _logarithm_parts(lanes: Lanes[V], x: V) -> tuple[V, V]:
    """n and ln m, where x = m · 2ⁿ with m from 2/3 to 4/3. If x is not positive and finite, both are finite and
    meaningless."""
    is_small = lanes.lt(x, lanes.real(_SMALLEST_NORMAL))
    bits = lanes.bits_in(lanes.select(is_small, lanes.mul(x, lanes.real(2.0**23)), x))
    exponent = lanes.bits_and(lanes.bits_sub(bits, lanes.bits(_BITS_OF_TWO_THIRDS)), lanes.bits(_EXPONENT_BITS))
    moved = lanes.select(is_small, lanes.real(-23), lanes.real(0))
    octaves = lanes.fma(lanes.real_of(exponent), lanes.real(2.0**-23), moved)
    rest = lanes.sub(lanes.real_in(lanes.bits_sub(bits, exponent)), lanes.real(1))
    square = lanes.mul(rest, rest)
    return octaves, lanes.fma(square, polynomial(lanes, rest, LOGARITHM), rest)


def _logarithm_of_any(lanes: Lanes[V], x: V, value: V) -> V:
    """The value if x is positive and finite, otherwise the logarithm of 0, infinity, or NaN."""
    infinity, zero = lanes.real(math.inf), lanes.real(0)
    value = lanes.select(lanes.lt(x, infinity), value, infinity)
    other = lanes.select(lanes.eq(x, zero), lanes.real(-math.inf), lanes.real(math.nan))
    return lanes.select(lanes.lt(zero, x), value, other)


def power(lanes: Lanes[V], a: V, b: V) -> V:
    """`a ^ b`: exact if |a| is a power of two and b is whole; otherwise with a relative error of (n + 1)·3·2⁻²⁴, where
    n is the number of octaves between the result and 1; 0 below 2⁻¹²⁵."""
    zero, one = lanes.real(0), lanes.real(1)
    # Beyond these limits every power except that of 1 is 0 or infinite. Such numbers are even, like the limits, which
    # fit into 32 bits.
    limited = _between(lanes, -2e9, b, 2e9)
    integer = lanes.whole(limited)
    is_whole = lanes.eq(lanes.real_of(integer), limited)
    exponent = lanes.select(lanes.either(is_whole, lanes.le(zero, a)), limited, lanes.real(math.nan))

    value = _power_of_positive(lanes, lanes.abs(a), exponent)
    odd = lanes.select(is_whole, lanes.bits_shl(integer, lanes.bits(31)), lanes.bits(0))
    value = _flip(lanes, value, lanes.bits_and(lanes.bits_in(a), odd))
    return lanes.select(lanes.either(lanes.eq(b, zero), lanes.eq(a, one)), one, value)


def _power_of_positive(lanes: Lanes[V], a: V, b: V) -> V:
    """`a ^ b` for a ≥ 0 and finite b, except where b is 0."""
    octaves, rest = _logarithm_parts(lanes, a)
    logarithm = lanes.fma(rest, lanes.real(1 / _LN_2), octaves)
    logarithm = lanes.select(lanes.lt(a, lanes.real(math.inf)), logarithm, a)  # a is infinite, or NaN
    logarithm = lanes.select(lanes.eq(a, lanes.real(0)), lanes.real(-math.inf), logarithm)

    # The logarithm has too few digits for a large power. It decides by how many octaves to scale; the rest comes from
    # its two parts.
    shifted = lanes.add(_between(lanes, -126, lanes.mul(b, logarithm), 129), lanes.real(_EXPONENT_SHIFTER))
    left = lanes.fma(b, octaves, lanes.sub(lanes.real(_EXPONENT_SHIFTER), shifted))
    left = lanes.fma(lanes.mul(b, rest), lanes.real(1 / _LN_2), left)
    # Beyond the limits of the octaves `left` is arbitrary. There the polynomial only has to be finite or positive.
    return _scaled(lanes, lanes.greater(lanes.real(-1), left), POWER_OF_2, shifted)


def arctangent(lanes: Lanes[V], y: V, x: V) -> V:
    """The angle of (x, y), within 3.5 units in the last place."""
    width, height = lanes.abs(x), lanes.abs(y)
    # For a NaN and a number, the two give different operands.
    larger, smaller = lanes.greater(width, height), lanes.lesser(height, width)
    larger = lanes.greater(lanes.real(_SMALLEST), larger)  # so that 0 / 0 is 0
    ratio = lanes.select(lanes.eq(smaller, larger), lanes.real(1), lanes.div(smaller, larger))  # and ∞ / ∞ is 1

    square = lanes.mul(ratio, ratio)
    angle = lanes.fma(lanes.mul(ratio, square), polynomial(lanes, square, ARCTANGENT), ratio)
    angle = lanes.select(lanes.lt(width, height), lanes.sub(lanes.real(math.pi / 2), angle), angle)
    points_left = lanes.lt(lanes.real_of(lanes.bits_in(x)), lanes.real(0))  # also if x is −0
    angle = lanes.select(points_left, lanes.sub(lanes.real(math.pi), angle), angle)
    return _flip(lanes, angle, lanes.bits_and(lanes.bits_in(y), lanes.bits(_SIGN_BIT)))


def minimum(lanes: Lanes[V], a: V, b: V) -> V:
    """The smaller number; of a number and a NaN the number; of two zeros the second one."""
    return _extreme(lanes, lanes.lesser, math.inf, a, b)


def maximum(lanes: Lanes[V], a: V, b: V) -> V:
    """The larger number; of a number and a NaN the number; of two zeros the second one."""
    return _extreme(lanes, lanes.greater, -math.inf, a, b)


def _extreme(lanes: Lanes[V], better: Callable[[V, V], V], worst: float, a: V, b: V) -> V:
    """The minimum or maximum. `better` is the processor's, which returns its second operand if either is NaN, or if
    both are equal; so a constant is put there. Of equal numbers only zeros differ, by their signs."""
    if lanes.known(b) is not None:
        return better(a, b)
    known = lanes.known(a)
    if known is not None:
        return better(b, a) if known != 0 else better(a, better(b, lanes.real(worst)))
    return lanes.select(lanes.ne(b, b), a, better(a, b))


def remainder(lanes: Lanes[V], a: V, b: V) -> V:
    """The exact remainder of a divided by b, in either precision; see `weft.ops.ieee.remainder`.

    If the number of turns is nearly right, `a − turns · b`, rounded once, is exact. If there are too many turns to
    count them, they are taken off in exact steps until they can be counted.
    """
    known = lanes.known(b)
    if known == 1:
        # The product keeps the sum from being fused with the operations that make a.
        return below(lanes, lanes.real(1), lanes.fma(lanes.floor(a), lanes.real(-1), a))
    if known is None or not LEAST_PERIOD <= abs(known) <= LARGEST_PERIOD:
        is_negative = lanes.lt(b, lanes.real(0))
        rest = _rest(lanes, lanes.select(is_negative, lanes.neg(a), a), lanes.abs(b), None)
        return lanes.select(is_negative, lanes.neg(rest), rest)
    rest = _rest(lanes, a if known > 0 else lanes.neg(a), lanes.real(abs(known)), abs(known))
    return rest if known > 0 else lanes.neg(rest)


# A division by constant periods in this range can be a product.
LEAST_PERIOD, LARGEST_PERIOD = 2.0**-100, 2.0**100

# The turns that are taken at a time if their number might be too large, by the digits of reals.
_MANY_TURNS: Mapping[int, float] = MappingProxyType({24: 2.0**100, 53: 2.0**800})


def _rest(lanes: Lanes[V], x: V, size: V, known: float | None) -> V:
    """The remainder for a period that is not negative."""
    zero = lanes.real(0)
    if known is not None and known >= 1 and math.frexp(known)[0] == 0.5:
        turns = lanes.floor(lanes.mul(x, lanes.real(1 / known)))
        # Exact whether fused or not; it keeps the operations that make x from being fused with the sum.
        rest = lanes.fma(lanes.neg(turns), size, x)
        # A negative number may be so small that its quotient is 0.
        return below(lanes, size, lanes.select(lanes.lt(rest, zero), size, rest))
    if known is not None:
        return remainder_by(lanes, x, size, lanes.real(1 / known))
    turns = lanes.nearest(lanes.div(x, size))
    # The size may be infinite; the sum turns -0 into 0.
    rest = lanes.select(lanes.eq(turns, zero), lanes.add(x, zero), less_turns(lanes, x, turns, size))
    return _completed(lanes, x, size, turns, rest)


def remainder_by(lanes: Lanes[V], x: V, size: V, reciprocal: V) -> V:
    """The exact remainder for a period from `LEAST_PERIOD` to `LARGEST_PERIOD`, whose reciprocal is known."""
    turns = lanes.nearest(lanes.mul(x, reciprocal))
    return _completed(lanes, x, size, turns, less_turns(lanes, x, turns, size))


def _completed(lanes: Lanes[V], x: V, size: V, turns: V, rest: V) -> V:
    """The remainder, from the rest after that many turns, which may be negative. There may be too many turns."""
    zero = lanes.real(0)
    too_many = lanes.le(lanes.real(2.0 ** (lanes.digits - 4)), lanes.abs(turns))
    rest = lanes.where(too_many, lambda: _rest_of_many(lanes, x, size), rest)
    if not lanes.fused:
        overflowed = lanes.both(lanes.ne(rest, rest), lanes.lt(lanes.abs(x), lanes.real(math.inf)))
        rest = lanes.select(lanes.both(overflowed, lanes.lt(zero, size)), zero, lanes.add(rest, zero))
    return below(lanes, size, lanes.select(lanes.lt(rest, zero), lanes.add(rest, size), rest))


def _rest_of_many(lanes: Lanes[V], x: V, size: V) -> V:
    """The remainder after any number of turns, within one turn in either direction. If their number is too large for a
    real, many turns are taken at a time."""
    many = _MANY_TURNS[lanes.digits]

    def step(rest: V) -> V:
        taken = size
        part = lanes.abs(rest)
        group = size
        for _ in range(2):
            part, group = lanes.mul(part, lanes.real(1 / many)), lanes.mul(group, lanes.real(many))
            taken = lanes.select(lanes.lt(part, size), taken, group)
        return less_turns(lanes, rest, lanes.nearest(lanes.div(rest, taken)), taken)

    return lanes.repeat(x, lambda rest: lanes.le(size, lanes.abs(rest)), step)


def less_turns(lanes: Lanes[V], x: V, turns: V, size: V) -> V:
    """`x − turns · size`; exact if `turns · size` is close to x."""
    if lanes.fused:
        return lanes.fma(lanes.neg(turns), size, x)
    product = lanes.mul(turns, size)
    (a, b), (c, d) = _halves(lanes, turns), _halves(lanes, size)
    error = lanes.sub(lanes.mul(a, c), product)
    for parts in ((a, d), (b, c), (b, d)):
        error = lanes.add(error, lanes.mul(*parts))
    return lanes.sub(lanes.sub(x, product), error)


def _halves(lanes: Lanes[V], x: V) -> tuple[V, V]:
    """Two numbers of half as many digits, whose sum is x."""
    moved = lanes.mul(x, lanes.real(2.0 ** ((lanes.digits + 1) // 2) + 1))
    upper = lanes.sub(moved, lanes.sub(moved, x))
    return upper, lanes.sub(x, upper)


def below(lanes: Lanes[V], size: V, x: V) -> V:
    """x, but at most the number next to a size. NaN passes: it is the second operand."""
    return lanes.lesser(lanes.mul(size, lanes.real(1 - 2.0**-lanes.digits)), x)


def differs(lanes: Lanes[V], a: V, b: V) -> V:
    return lanes.ne(lanes.single(a), lanes.single(b))


def bool_as_float(lanes: Lanes[V], c: V) -> V:
    return lanes.select(c, lanes.real(1), lanes.real(0))


def bits_of(lanes: Lanes[V], x: V) -> V:
    """x modulo 2³²: the exact remainder after whole turns of 2³², from −2³¹ up to 2³¹.

    The number just below 2³¹ is so close to half a turn that adding a half would round it up to a whole turn. Less 64,
    it loses one more digit and is rounded down; the result for other numbers does not change.
    """
    turns = lanes.floor(lanes.fma(lanes.sub(x, lanes.real(64)), lanes.real(2.0**-32), lanes.real(0.5)))
    rest = lanes.fma(turns, lanes.real(-(2.0**32)), x)
    # Excluded are NaN, if x is not finite, and −2³², if `turns` had no digit for the half and was rounded up.
    usable = lanes.le(lanes.real(-(2.0**31)), rest)
    return lanes.whole(lanes.select(usable, rest, lanes.real(0)))


def bits_top(lanes: Lanes[V], a: V) -> V:
    return lanes.real_of(lanes.bits_shr(a, lanes.bits(8)))
