"""Arithmetic on Python floats as in IEEE-754, where Python itself raises exceptions. The rows fold with it."""

from __future__ import annotations

import math
import struct

_LARGEST_SINGLE = (2 - 2.0**-23) * 2.0**127

INFINITY = math.inf
NAN = math.nan


def divide(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return NAN
    return math.copysign(INFINITY, a) * math.copysign(1.0, b)


def floor(x: float) -> float:
    # Infinities, NaN and zeros do not change; a zero keeps its sign.
    return float(math.floor(x)) if x and math.isfinite(x) else x


def remainder(a: float, b: float) -> float:
    """The exact remainder of a divided by b: from 0 up to b without b itself, or from b to 0 for a negative b. A result
    that would be rounded to b is the number next to it. A zero has the sign of b."""
    if b == 0 or not math.isfinite(a) or math.isnan(b):
        return NAN
    rest = a % b
    return math.nextafter(b, 0.0) if rest == b and math.isfinite(b) else rest


def single(x: float) -> float:
    """The nearest number of single precision."""
    try:
        found: float = struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return math.copysign(INFINITY, x)
    return found


def below_in_single(x: float) -> float:
    """The number of single precision next to x, after rounding x to single precision, in the direction of 0."""
    word: int = struct.unpack("<I", struct.pack("<f", min(max(x, -_LARGEST_SINGLE), _LARGEST_SINGLE)))[0]
    found: float = struct.unpack("<f", struct.pack("<I", word - 1 if word & 0x7FFF_FFFF else word))[0]
    return found


def minimum(a: float, b: float) -> float:
    """The smaller number; of a number and a NaN, the number; of two zeros the second, whatever their signs."""
    return a if math.isnan(b) or a < b else b


def maximum(a: float, b: float) -> float:
    """The larger number; of a number and a NaN, the number; of two zeros the second, whatever their signs."""
    return a if math.isnan(b) or a > b else b


def sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0 else NAN


def sin(x: float) -> float:
    return math.sin(x) if math.isfinite(x) else NAN


def cos(x: float) -> float:
    return math.cos(x) if math.isfinite(x) else NAN


def sinpi(x: float) -> float:
    """sin πx. The remainder is exact."""
    return math.sin(math.pi * math.remainder(x, 2)) if math.isfinite(x) else NAN


def cospi(x: float) -> float:
    """cos πx."""
    return math.cos(math.pi * math.remainder(x, 2)) if math.isfinite(x) else NAN


def tan(x: float) -> float:
    return math.tan(x) if math.isfinite(x) else NAN


def asin(x: float) -> float:
    return math.asin(x) if -1 <= x <= 1 else NAN


def acos(x: float) -> float:
    return math.acos(x) if -1 <= x <= 1 else NAN


def exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return INFINITY


def exp2(x: float) -> float:
    try:
        return math.pow(2.0, x)
    except OverflowError:
        return INFINITY


def log(x: float) -> float:
    if x > 0:
        return math.log(x)
    return -INFINITY if x == 0 else NAN


def log2(x: float) -> float:
    if x > 0:
        return math.log2(x)
    return -INFINITY if x == 0 else NAN


def log10(x: float) -> float:
    if x > 0:
        return math.log10(x)
    return -INFINITY if x == 0 else NAN


def sinh(x: float) -> float:
    try:
        return math.sinh(x)
    except OverflowError:
        return math.copysign(INFINITY, x)


def cosh(x: float) -> float:
    try:
        return math.cosh(x)
    except OverflowError:
        return INFINITY


def power(base: float, exponent: float) -> float:
    """`base ^ exponent`; unlike C's pow, no negative base has a fractional power, −∞ included."""
    if base < 0 and exponent != floor(exponent):
        return NAN
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError):  # too large, or 0 to a negative exponent: infinite either way
        odd = exponent % 2 == 1  # math.fmod refuses −∞, for which math.pow of Python 3.10 raises
        return math.copysign(INFINITY, base) if odd else INFINITY


def steps(first: float, last: float) -> float:
    """The number of steps of a loop from `first` to `last`: of all whole k from 0 with `first + k <= last`, as rounded.
    Infinite if there are 2⁵² or more."""
    if not last >= first:
        return 0
    if last - first >= 2.0**52:
        return INFINITY
    count = math.floor(last - first) + 1
    while first + count <= last:
        count += 1
    while count and not first + (count - 1) <= last:
        count -= 1
    return count
