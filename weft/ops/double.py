"""Functions of real numbers in double precision, as instructions on lanes: those that sound needs at every sample, and
those that differ from C's library. docs/algorithms.md explains them."""

from __future__ import annotations

import math
from typing import TypeVar

from weft.ops.lanes import SINE_OF_TURN, Lanes, polynomial

V = TypeVar("V")

_TURN = 2.0**32


def sine_of_half_turns(lanes: Lanes[V], x: V) -> V:
    """sin πx, within 5e-16; NaN if x is not finite. The reduction of x is exact however large x is."""
    return sine_of_turn(lanes, _turns_within(lanes, x))


def cosine_of_half_turns(lanes: Lanes[V], x: V) -> V:
    """cos πx, within 5e-16; NaN if x is not finite."""
    rest = lanes.abs(_turns_within(lanes, x))
    return sine_of_turn(lanes, lanes.sub(lanes.real(0.25), rest))


def _turns_within(lanes: Lanes[V], x: V) -> V:
    """x half turns as turns, without whole ones: −½…½."""
    turns = lanes.mul(x, lanes.real(0.5))
    return lanes.sub(turns, lanes.nearest(turns))


def within_turn(lanes: Lanes[V], x: V) -> V:
    """x without whole turns of 2: −1…1."""
    turns = lanes.nearest(lanes.mul(x, lanes.real(0.5)))
    return lanes.fma(turns, lanes.real(-2), x)


# With x in half turns, `SINE_OF_TURN` has the digits of these.
_COEFFICIENTS = tuple(math.ldexp(coefficient, 3 + 2 * k) for k, coefficient in enumerate(SINE_OF_TURN))


def sine_of_turn(lanes: Lanes[V], x: V) -> V:
    """sin 2πx for x from −½ to ½. Its zeros there are factors of their own."""
    total = polynomial(lanes, lanes.mul(x, x), _COEFFICIENTS)
    return lanes.mul(lanes.mul(x, lanes.fma(lanes.neg(x), x, lanes.real(0.25))), total)


def power(lanes: Lanes[V], a: V, b: V) -> V:
    """`a ^ b`. Unlike in C, not even −∞ has a fractional power."""
    fractional = lanes.ne(b, lanes.floor(b))
    has_none = lanes.both(lanes.eq(a, lanes.real(-math.inf)), fractional)
    return lanes.select(has_none, lanes.real(math.nan), lanes.library("pow", a, b))


def bits_of(lanes: Lanes[V], x: V) -> V:
    """A whole x modulo 2³²; 0 if it is not finite. All steps are exact."""
    turns = lanes.floor(lanes.mul(x, lanes.real(1 / _TURN)))
    rest = lanes.fma(turns, lanes.real(-_TURN), x)
    signed = lanes.select(lanes.lt(rest, lanes.real(_TURN / 2)), rest, lanes.sub(rest, lanes.real(_TURN)))
    # If x is not finite, the rest is NaN.
    return lanes.whole(lanes.select(lanes.eq(rest, rest), signed, lanes.real(0)))
