"""The interface for native forms of rows: arithmetic on vectors of numbers, in single or double precision.

A native form is a function `(lanes, *operands) -> result`. It asks `lanes` for instructions and never looks into the
values, so that one form serves every processor, and the tests can run it without one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

# Coefficients of the polynomials for sine, exponential, logarithm and arctangent, from the constant one upwards.
# scripts/polynomials.py computes and prints them; tests/ops/test_polynomials.py compares them with its results.

# sin x = x + x³·P(x²), |x| ≤ π/2
SINE = (-0.16666657, 0.008333008, -0.00019805925, 2.598537e-06)
# cos x = 1 + x²·P(x²), |x| ≤ π/2
COSINE = (-0.4999993, 0.04166392, -0.0013855278, 2.3178778e-05)
# sin πx = x·P(x²), |x| ≤ ½
SINE_OF_HALF_TURNS = (3.1415925, -5.1677065, 2.5500314, -0.5980451, 0.07722012)
# cos πx = 1 + x²·P(x²), |x| ≤ ½
COSINE_OF_HALF_TURNS = (-4.9347954, 4.0584507, -1.3320941, 0.22008039)
# 2^x = 1 + x·P(x), |x| ≤ ½
POWER_OF_2 = (0.693147, 0.24022242, 0.055507213, 0.009671613, 0.001326453)
# e^x = 1 + x·P(x), |x| ≤ ln 2 / 2
POWER_OF_E = (0.9999997, 0.49999145, 0.16667645, 0.041898616, 0.008290287)
# ln(1 + x) = x + x²·P(x), |x| ≤ 1/3
LOGARITHM = (-0.49999934, 0.33333197, -0.25007838, 0.20011178, -0.16415969, 0.13995822, -0.15388547, 0.14026366)
# arctan x = x + x³·P(x²), |x| ≤ 1
ARCTANGENT = (-0.3333239, 0.19974212, -0.14041328, 0.09968474, -0.060203135, 0.024734063, -0.0048225354)
# sin πx = x·(1 − x²)·P(x²), |x| ≤ 1; in double precision
SINE_OF_TURN = (
    3.141592653589793, -2.026120126460173, 0.5240439134170486, -0.07522061590208608, 0.006925270697499447,
    -0.00044516020078506175, 2.1142482257621263e-05, -7.726653626528434e-07, 2.2316263150901134e-08,
    -4.795585299774921e-10,
)  # fmt: skip


V = TypeVar("V")


class Lanes(Protocol[V]):
    """Emits instructions on values. A value is, in every lane, a real, a truth or bits (32)."""

    @property
    def fused(self) -> bool:
        """Whether `fma` rounds once. If not, it is a product and a sum."""

    @property
    def waits(self) -> bool:
        """Whether a sum waits long for the one before it, since a product and a sum are two steps and lanes are few."""

    @property
    def digits(self) -> int:
        """The number of binary digits of reals: 24 or 53."""

    def real(self, value: float, /) -> V:
        """A constant, rounded to the precision of reals."""

    def bits(self, value: int, /) -> V:
        """A constant of 32 bits; negative ones as their complement."""

    def known(self, x: V, /) -> float | None:
        """The number of a real constant; None for other values and NaN."""

    # Reals.

    def add(self, a: V, b: V, /) -> V: ...
    def sub(self, a: V, b: V, /) -> V: ...
    def mul(self, a: V, b: V, /) -> V: ...
    def div(self, a: V, b: V, /) -> V: ...
    def neg(self, x: V, /) -> V: ...
    def abs(self, x: V, /) -> V: ...
    def sqrt(self, x: V, /) -> V: ...

    def fma(self, a: V, b: V, c: V, /) -> V:
        """`a · b + c`."""

    def library(self, function: str, /, *args: V) -> V:
        """A function of C's library, called for each lane. Only if reals are doubles."""

    def floor(self, x: V, /) -> V: ...

    def nearest(self, x: V, /) -> V:
        """The nearest whole number; of two the even one."""

    def lesser(self, a: V, b: V, /) -> V:
        """`a if a < b else b`: b if either is NaN."""

    def greater(self, a: V, b: V, /) -> V:
        """`a if a > b else b`: b if either is NaN."""

    # Truths.

    def eq(self, a: V, b: V, /) -> V: ...
    def ne(self, a: V, b: V, /) -> V:
        """Also true if either is NaN."""

    def lt(self, a: V, b: V, /) -> V: ...
    def le(self, a: V, b: V, /) -> V: ...
    def both(self, a: V, b: V, /) -> V: ...
    def either(self, a: V, b: V, /) -> V: ...
    def negation(self, a: V, /) -> V: ...

    def select(self, c: V, a: V, b: V, /) -> V:
        """Reals or bits: a where the truth c holds, else b."""

    # Control flow.

    def where(self, c: V, make: Callable[[], V], otherwise: V, /) -> V:
        """Reals: `make()` where the truth c holds, else `otherwise`. If c holds in no lane, the code that `make` emits
        is skipped."""

    def repeat(self, x: V, goes_on: Callable[[V], V], step: Callable[[V], V], /) -> V:
        """A real to which `step` is applied in all lanes, as long as `goes_on` of it holds in any lane."""

    # Bits.

    def bits_add(self, a: V, b: V, /) -> V: ...
    def bits_sub(self, a: V, b: V, /) -> V: ...
    def bits_mul(self, a: V, b: V, /) -> V: ...
    def bits_and(self, a: V, b: V, /) -> V: ...
    def bits_or(self, a: V, b: V, /) -> V: ...
    def bits_xor(self, a: V, b: V, /) -> V: ...
    def bits_shl(self, a: V, n: V, /) -> V: ...
    def bits_shr(self, a: V, n: V, /) -> V:
        """A shift that fills with zeros."""

    # Conversions.

    def single(self, x: V, /) -> V:
        """The nearest real of single precision."""

    def bits_in(self, x: V, /) -> V:
        """The bits that represent a real. Only if reals are singles."""

    def real_in(self, a: V, /) -> V:
        """The real that bits represent. Only if reals are singles."""

    def whole(self, x: V, /) -> V:
        """A real without its fraction as a signed number of 32 bits; any bits if x is NaN or does not fit."""

    def real_of(self, a: V, /) -> V:
        """Bits, read as a signed number, as the nearest real."""


def polynomial(lanes: Lanes[V], x: V, coefficients: tuple[float, ...]) -> V:
    """c₀ + c₁·x + c₂·x² + …"""
    if lanes.waits:
        return _pairwise(lanes, x, coefficients)
    *others, last = coefficients
    total = lanes.real(last)
    for coefficient in reversed(others):
        total = lanes.fma(total, x, lanes.real(coefficient))
    return total


def _pairwise(lanes: Lanes[V], x: V, coefficients: tuple[float, ...]) -> V:
    """The same as a tree, whose branches do not wait for each other: (c₀ + c₁·x) + (c₂ + c₃·x)·x² + …"""
    terms = [lanes.real(coefficient) for coefficient in coefficients]
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        terms = [*(lanes.fma(odd, x, even) for even, odd in pairs), *terms[len(terms) // 2 * 2 :]]
        x = lanes.mul(x, x)
    return terms[0]
