#!/usr/bin/env python3
"""Computes the polynomials of weft/ops/lanes.py and prints them: .venv/bin/python scripts/polynomials.py

Each is the best of its length for a function on an interval: no other has a smaller largest error. It is found by
Remez's exchange: where the errors at one point more than there are coefficients alternate in sign and are equal in
size, the polynomial is the best for these points; then points where the error is larger take their place.

Its coefficients are then rounded to single precision, and moved by single digits as long as that makes the largest
error smaller: what one has lost in rounding, others can make up for.

In double precision there is no arithmetic at hand in which such a search could be made: these take the function's value
at the zeros of a Chebyshev polynomial, which is nearly as good, and are computed in decimal numbers of many digits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, getcontext
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_ROUNDS = 40  # a handful do
_GRID = 4001


@dataclass(frozen=True, slots=True)
class Polynomial:
    """What a table stands for: `function(x) ≈ head(x) + tail(x) · Σ table[i] · step(x)^i` from `low` to `high`."""

    function: Callable[[Array], Array]
    head: Callable[[Array], Array]
    tail: Callable[[Array], Array]
    step: Callable[[Array], Array]
    low: float
    high: float
    count: int
    """How many coefficients."""
    relative: bool
    """Whether the error counts in parts of the function's value, or as it is."""
    bound: float
    """What the error stays below, with the coefficients as they are in the table."""
    doc: str

    def unit(self, x: Array) -> Array:
        """What an error at x is counted in."""
        return np.abs(self.function(x)) if self.relative else np.ones_like(x)

    def value(self, table: Sequence[float], x: Array) -> Array:
        return self.head(x) + self.tail(x) * np.polynomial.polynomial.polyval(self.step(x), np.array(table, float))

    def error(self, table: Sequence[float]) -> float:
        """The largest error with these coefficients, in double precision."""
        x = self.grid()
        return float(np.max(np.abs(self.value(table, x) - self.function(x)) / self.unit(x)))

    def grid(self) -> Array:
        """Points all over the interval, denser at its ends, and none where a relative error has no meaning."""
        turn = np.linspace(0, math.pi, _GRID)
        x = (self.low + self.high) / 2 - (self.high - self.low) / 2 * np.cos(turn)
        return x[np.abs(self.tail(x)) > 1e-9]


def _one(x: Array) -> Array:
    return np.ones_like(x)


def _same(x: Array) -> Array:
    return x


# Beyond π/2 and ln 2 / 2: rounding in the reduction of the argument takes it there.
_ANGLE = math.pi / 2 * 1.005
_HALF_OCTAVE = 0.5 * 1.001

POLYNOMIALS: Mapping[str, Polynomial] = MappingProxyType({
    "SINE": Polynomial(
        np.sin, _same, lambda x: x**3, np.square, 0, _ANGLE, 4, False, 1e-8, "sin x = x + x³·P(x²), |x| ≤ π/2",
    ),
    "COSINE": Polynomial(
        np.cos, _one, np.square, np.square, 0, _ANGLE, 4, False, 1e-7, "cos x = 1 + x²·P(x²), |x| ≤ π/2",
    ),
    "SINE_OF_HALF_TURNS": Polynomial(
        lambda x: np.sin(np.pi * x), np.zeros_like, _same, np.square, 0, 0.5, 5, False, 3e-8,
        "sin πx = x·P(x²), |x| ≤ ½",
    ),
    "COSINE_OF_HALF_TURNS": Polynomial(
        lambda x: np.cos(np.pi * x), _one, np.square, np.square, 0, 0.5, 4, False, 1e-7,
        "cos πx = 1 + x²·P(x²), |x| ≤ ½",
    ),
    "POWER_OF_2": Polynomial(
        np.exp2, _one, _same, _same, -_HALF_OCTAVE, _HALF_OCTAVE, 5, True, 1.2e-7, "2^x = 1 + x·P(x), |x| ≤ ½",
    ),
    "POWER_OF_E": Polynomial(
        np.exp, _one, _same, _same, -_HALF_OCTAVE * math.log(2), _HALF_OCTAVE * math.log(2), 5, True, 1.2e-7,
        "e^x = 1 + x·P(x), |x| ≤ ln 2 / 2",
    ),
    "LOGARITHM": Polynomial(
        np.log1p, _same, np.square, _same, -1 / 3, 1 / 3, 8, True, 4e-8, "ln(1 + x) = x + x²·P(x), |x| ≤ 1/3",
    ),
    "ARCTANGENT": Polynomial(
        np.arctan, _same, lambda x: x**3, np.square, 0, 1, 7, True, 1.5e-7, "arctan x = x + x³·P(x²), |x| ≤ 1",
    ),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class DoublePolynomial:
    """What a table in double precision stands for: `function(u) ≈ Σ table[i] · u^i` from 0 to 1."""

    function: Callable[[Decimal], Decimal]
    count: int
    bound: float
    """What the error stays below between the points."""
    doc: str


_DIGITS = 60


def _series(first: Decimal, next_term: Callable[[Decimal, int], Decimal]) -> Decimal:
    """A sum of terms, each made of the one before it, until they are too small to count."""
    total, term, n = Decimal(0), first, 1
    while abs(term) > Decimal(10) ** -_DIGITS:
        total, term, n = total + term, next_term(term, n), n + 1
    return total


def _arctangent_of_reciprocal(k: int) -> Decimal:
    return _series(Decimal(1) / k, lambda term, n: -term * (2 * n - 1) / (2 * n + 1) / (k * k))


def _pi() -> Decimal:
    return 16 * _arctangent_of_reciprocal(5) - 4 * _arctangent_of_reciprocal(239)


def _sine_of_turn(u: Decimal) -> Decimal:
    """sin πx / (x · (1 − x²)) for u = x² between 0 and 1."""
    x = u.sqrt()
    angle = _pi() * x
    sine = _series(angle, lambda term, n: -term * angle * angle / (2 * n) / (2 * n + 1))
    return sine / (x * (1 - u))


DOUBLE_POLYNOMIALS: Mapping[str, DoublePolynomial] = MappingProxyType(
    {
        "SINE_OF_TURN": DoublePolynomial(_sine_of_turn, 10, 1e-16, "sin πx = x·(1 − x²)·P(x²), |x| ≤ 1"),
    }
)


def double_table(polynomial: DoublePolynomial) -> tuple[float, ...]:
    """Its coefficients, the constant one first."""
    getcontext().prec = _DIGITS
    return tuple(map(float, _coefficients(polynomial)))


def double_error(polynomial: DoublePolynomial) -> float:
    """The largest error at some points between, with coefficients that are not rounded."""
    getcontext().prec = _DIGITS
    coefficients = _coefficients(polynomial)
    points = [(Decimal(k) + Decimal("0.5")) / 500 for k in range(500)]
    return float(max(abs(_value(coefficients, u) - polynomial.function(u)) for u in points))


def _value(coefficients: Sequence[Decimal], u: Decimal) -> Decimal:
    total = Decimal(0)
    for coefficient in reversed(coefficients):
        total = total * u + coefficient
    return total


def _coefficients(polynomial: DoublePolynomial) -> list[Decimal]:
    """Of the polynomial through the function's values at the zeros, by Newton's divided differences."""
    count = polynomial.count
    zeros = [Decimal(0.5 - 0.5 * math.cos(math.pi * (k + 0.5) / count)) for k in range(count)]
    differences = [polynomial.function(zero) for zero in zeros]
    for order in range(1, count):
        for k in range(count - 1, order - 1, -1):
            differences[k] = (differences[k] - differences[k - 1]) / (zeros[k] - zeros[k - order])
    found = [differences[-1]]
    for k in range(count - 2, -1, -1):
        # found · (u − zero) + difference
        found = [Decimal(0), *found]
        for i in range(len(found) - 1):
            found[i] -= found[i + 1] * zeros[k]
        found[0] += differences[k]
    return found


def table(polynomial: Polynomial) -> tuple[float, ...]:
    """Its coefficients, the constant one first, each a number of single precision."""
    found = [np.float32(c) for c in best(polynomial)]
    error = polynomial.error(found)
    moved = True
    while moved:
        moved = False
        for i, towards in itertools.product(range(len(found)), (-np.inf, np.inf)):
            tried = [*found[:i], np.nextafter(found[i], np.float32(towards)), *found[i + 1 :]]
            if polynomial.error(tried) < error:
                found, error, moved = tried, polynomial.error(tried), True
    return tuple(map(float, found))


def best(polynomial: Polynomial) -> Array:
    """The coefficients that make the largest error smallest."""
    x = polynomial.grid()
    tail, step = polynomial.tail(x), polynomial.step(x)
    # Where the factor before the polynomial is negative, so is what the error is counted in.
    unit = np.copysign(polynomial.unit(x), tail)
    rest = polynomial.function(x) - polynomial.head(x)
    columns = np.stack([tail * step**i for i in range(polynomial.count)], axis=1)
    points = ((np.arange(polynomial.count + 1) + 0.5) / (polynomial.count + 1) * len(x)).astype(int)
    for _ in range(_ROUNDS):
        signs = unit[points] * (-1.0) ** np.arange(len(points))
        *found, _size = np.linalg.solve(np.column_stack([columns[points], signs]), rest[points])
        before, points = points, _peaks((rest - columns @ np.array(found)) / unit, len(points))
        if np.array_equal(before, points):
            return np.array(found)
    raise ArithmeticError(f"no best polynomial after {_ROUNDS} rounds: {polynomial.doc}")


def _peaks(error: Array, count: int) -> NDArray[np.intp]:
    """Where the error is largest between its changes of sign: `count` neighbours, those with the largest errors."""
    pieces = np.split(np.arange(len(error)), np.flatnonzero(np.diff(np.signbit(error))) + 1)
    peaks = np.array([piece[np.argmax(np.abs(error[piece]))] for piece in pieces])
    while len(peaks) > count:
        peaks = peaks[1:] if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else peaks[:-1]
    return peaks


def module() -> str:
    """The tables, as Python."""
    lines = []
    for name, polynomial in POLYNOMIALS.items():
        numbers = ", ".join(str(np.float32(c)) for c in table(polynomial))
        lines += [f"# {polynomial.doc}", f"{name} = ({numbers})"]
    for name, double in DOUBLE_POLYNOMIALS.items():
        lines += [f"# {double.doc}; in double precision", f"{name} = ("]
        lines += [*(f"    {coefficient}," for coefficient in double_table(double)), ")"]
    return "\n".join(lines)


if __name__ == "__main__":
    print(module())
