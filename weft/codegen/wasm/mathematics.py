"""Functions of real numbers in double precision, as functions of WebAssembly, which has none: neither sines nor powers.

Each reduces its operand to a small interval, sums the first terms of a series there, and undoes the reduction.
docs/algorithms.md explains them. They take and give one number.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType

from weft.codegen.wasm.assembler import WasmFunction, WasmType
from weft.codegen.wasm.builder import FunctionBuilder, WasmValue
from weft.codegen.wasm.lane_code import PairLanes, SingleLane, WasmLanes, of_pairs
from weft.ops import double, single
from weft.ops.lanes import polynomial

_LN_2 = math.log(2)

# Numbers in parts that add up to more digits than one double has. Products of the first part with whole numbers of 11
# or 20 digits are exact; the last part is what the double nearest to the number lacks of it.
_LN_2_HIGH, _LN_2_REST = single.split(_LN_2, 40, 13)
_LN_2_PARTS = _LN_2_HIGH, _LN_2_REST + 2.3190468138462996e-17
_TURN_PARTS = (*single.split(math.tau, 33, 20), 2.4492935982947064e-16)

# e^x = Σ xⁿ / n!; for |x| ≤ ln 2 / 2 the first term that is left out is 4e-18.
_EXPONENTIAL = tuple(1 / math.factorial(n) for n in range(14))

# 2 artanh s = 2s + s · Σ 2 / (2n + 1) · s²ⁿ from n = 1 on, where (1 + f) = (1 + s) / (1 − s); for f from √½ − 1 to
# √2 − 1 the first term that is left out is 2e-18.
_LOGARITHM = tuple(2 / (2 * n + 1) for n in range(1, 12))

# arctan x = x + x · Σ (−1)ⁿ / (2n + 1) · x²ⁿ from n = 1 on; for |x| ≤ ¼ the first term that is left out is 5e-19.
_ARCTANGENT = tuple((-1) ** n / (2 * n + 1) for n in range(1, 15))

_BITS_OF_ROOT = struct.unpack("<q", struct.pack("<d", math.sqrt(0.5)))[0]
_SMALLEST_NORMAL = 2.0**-1022
_DIGITS, _BIAS = 52, 1023


class _FunctionLanes(WasmLanes):
    """Parts of the functions, for one number or for two."""

    def between(self, low: float, x: WasmValue, high: float) -> WasmValue:
        """x, within these limits. NaN passes."""
        return self.greater(self.real(low), self.lesser(self.real(high), x))

    def power_of_two(self, exponent: WasmValue) -> WasmValue:
        """Of a whole number within the exponents of normal doubles. In the sum with 2⁵², it is in the lowest bits."""
        biased = self.bits64(self.add(exponent, self.real(2.0**_DIGITS + _BIAS)))
        return self.real_of_bits64(self.put64("shl", biased, _DIGITS))

    def scaled(self, value: WasmValue, octaves: WasmValue) -> WasmValue:
        """`value · 2ⁿ` for a whole n, in two steps: the power itself may be out of the range."""
        half = self.floor(self.mul(octaves, self.real(0.5)))
        rest = self.sub(octaves, half)
        return self.mul(self.mul(value, self.power_of_two(half)), self.power_of_two(rest))

    def exponential_of_rest(self, rest: WasmValue) -> WasmValue:
        return polynomial(self, rest, _EXPONENTIAL)

    def turns(self, x: WasmValue) -> WasmValue:
        """An angle in turns, without whole ones: −½…½. A huge angle has too few digits to determine that: what is left
        of it may be any number, and is brought there, so that its sine stays between −1 and 1."""
        turns = self.nearest(self.mul(x, self.real(1 / math.tau)))
        rest = x
        for part in _TURN_PARTS:
            rest = self.sub(rest, self.mul(turns, self.real(part)))
        return self.between(-0.5, self.mul(rest, self.real(1 / math.tau)), 0.5)

    def logarithm_parts(self, x: WasmValue) -> tuple[WasmValue, WasmValue]:
        """n and ln m, where x = m · 2ⁿ with m from √½ to √2, for a positive and finite x."""
        is_small = self.lt(x, self.real(_SMALLEST_NORMAL))
        bits = self.bits64(self.select(is_small, self.mul(x, self.real(2.0**54)), x))
        exponent = self.put64("shr_s", self.put64("sub", bits, _BITS_OF_ROOT), _DIGITS)
        mantissa = self.real_of_bits64(self.put64("sub", bits, self.put64("shl", exponent, _DIGITS)))
        octaves = self.add(self.real_of_64(exponent), self.select(is_small, self.real(-54), self.real(0)))
        f = self.sub(mantissa, self.real(1))
        s = self.div(f, self.add(f, self.real(2)))
        square = self.mul(s, s)
        series = self.mul(square, polynomial(self, square, _LOGARITHM))
        # 2s = f − f²/2 + s · f²/2, of which f is exact.
        half = self.mul(self.mul(f, f), self.real(0.5))
        return octaves, self.sub(f, self.sub(half, self.mul(s, self.add(half, series))))

    def logarithm_of_any(self, x: WasmValue, value: WasmValue) -> WasmValue:
        """The value if x is positive and finite, otherwise the logarithm of 0, infinity, or NaN."""
        infinity, zero = self.real(math.inf), self.real(0)
        value = self.select(self.lt(x, infinity), value, infinity)
        other = self.select(self.eq(x, zero), self.real(-math.inf), self.real(math.nan))
        return self.select(self.lt(zero, x), value, other)


def _sine(f: _FunctionLanes, x: WasmValue) -> WasmValue:
    return double.sine_of_turn(f, f.turns(x))


def _cosine(f: _FunctionLanes, x: WasmValue) -> WasmValue:
    return double.sine_of_turn(f, f.sub(f.real(0.25), f.abs(f.turns(x))))


def _exponential(f: _FunctionLanes, x: WasmValue) -> WasmValue:
    x = f.between(-746, x, 710)
    octaves = f.nearest(f.mul(x, f.real(1 / _LN_2)))
    rest = x
    for part in _LN_2_PARTS:
        rest = f.sub(rest, f.mul(octaves, f.real(part)))
    return f.scaled(f.exponential_of_rest(rest), octaves)


def _power_of_two(f: _FunctionLanes, x: WasmValue) -> WasmValue:
    x = f.between(-1080, x, 1025)
    octaves = f.nearest(x)
    return f.scaled(f.exponential_of_rest(f.mul(f.sub(x, octaves), f.real(_LN_2))), octaves)


def _logarithm(f: _FunctionLanes, x: WasmValue) -> WasmValue:
    octaves, rest = f.logarithm_parts(x)
    high, low = _LN_2_PARTS
    return f.logarithm_of_any(x, f.add(f.mul(octaves, f.real(high)), f.add(f.mul(octaves, f.real(low)), rest)))


def _logarithm_2(f: _FunctionLanes, x: WasmValue) -> WasmValue:
    octaves, rest = f.logarithm_parts(x)
    return f.logarithm_of_any(x, f.add(octaves, f.mul(rest, f.real(1 / _LN_2))))


def _power(f: _FunctionLanes, a: WasmValue, b: WasmValue) -> WasmValue:
    """`a ^ b`: products for small whole powers, which are exact as long as these are; otherwise with a relative error
    of (n + 1) · 2⁻⁵¹, where n is the number of octaves between the result and 1."""
    zero, one, infinity = f.real(0), f.real(1), f.real(math.inf)
    size = f.abs(a)
    octaves, rest = f.logarithm_parts(size)
    rest = f.mul(rest, f.real(1 / _LN_2))
    logarithm = f.select(f.lt(size, infinity), f.add(octaves, rest), size)
    logarithm = f.select(f.eq(size, zero), f.real(-math.inf), logarithm)
    # 0 · ∞ is NaN, but any power of 1 is 1, and so is the power to 0.
    product = f.between(-1080, f.mul(b, logarithm), 1025)
    turns = f.nearest(product)
    left = f.add(f.sub(f.mul(b, octaves), turns), f.mul(b, rest))
    is_usual = f.both(f.lt(f.abs(product), f.real(1025)), f.lt(f.abs(left), one))
    left = f.select(is_usual, left, f.sub(product, turns))
    value = f.scaled(f.exponential_of_rest(f.mul(left, f.real(_LN_2))), turns)
    is_whole = f.eq(b, f.floor(b))
    # Whole and infinite powers: an infinite one is even.
    is_odd = f.both(is_whole, f.ne(f.floor(f.mul(b, f.real(0.5))), f.mul(b, f.real(0.5))))
    value = f.select(f.both(is_odd, f.has_sign(a)), f.neg(value), value)
    value = f.select(f.both(f.lt(a, zero), f.negation(is_whole)), f.real(math.nan), value)
    value = f.select(f.both(f.eq(a, f.real(-1)), f.eq(f.abs(b), infinity)), one, value)
    chain = _chain(f, a, f.abs(b))
    chain = f.select(f.lt(b, zero), f.div(one, chain), chain)
    # Where products overflow, their reciprocal need not be 0.
    is_near = f.both(f.lt(f.real(2.0**-1000), f.abs(chain)), f.lt(f.abs(chain), f.real(2.0**1000)))
    is_small = f.both(is_whole, f.lt(f.abs(b), f.real(2.0**_CHAIN)))
    value = f.select(f.both(is_small, is_near), chain, value)
    return f.select(f.either(f.eq(b, zero), f.eq(a, one)), one, value)


# Whole powers of fewer binary digits are products.
_CHAIN = 5


def _chain(f: _FunctionLanes, a: WasmValue, count: WasmValue) -> WasmValue:
    """a · a · …, with this many factors, by repeated squaring."""
    product = f.real(1)
    for digit in range(_CHAIN):
        half = f.floor(f.mul(count, f.real(0.5)))
        is_odd = f.lt(f.add(half, half), count)
        product = f.select(is_odd, f.mul(product, a), product)
        if digit < _CHAIN - 1:
            count, a = half, f.mul(a, a)
    return product


def _arctangent(f: _FunctionLanes, y: WasmValue, x: WasmValue) -> WasmValue:
    """The angle of (x, y): by the angle of a nearby direction, whose tangent is 0, ½ or 1."""
    width, height = f.abs(x), f.abs(y)
    larger, smaller = f.greater(width, height), f.lesser(height, width)
    is_infinite = f.both(f.eq(smaller, larger), f.eq(larger, f.real(math.inf)))
    # Sizes near the ends of the range would lose digits, or overflow.
    scale = f.select(f.lt(f.real(2.0**500), larger), f.real(2.0**-600), f.real(1))
    scale = f.select(f.lt(larger, f.real(2.0**-500)), f.real(2.0**600), scale)
    larger, smaller = f.mul(larger, scale), f.mul(smaller, scale)
    near = f.mul(f.nearest(f.mul(f.div(smaller, larger), f.real(2))), f.real(0.5))
    ratio = f.div(f.sub(smaller, f.mul(near, larger)), f.add(larger, f.mul(near, smaller)))
    known = f.select(f.eq(near, f.real(1)), f.real(math.pi / 4), f.real(math.atan(0.5)))
    known = f.select(f.eq(near, f.real(0)), f.real(0), known)
    square = f.mul(ratio, ratio)
    angle = f.add(known, f.add(ratio, f.mul(ratio, f.mul(square, polynomial(f, square, _ARCTANGENT)))))
    angle = f.select(f.eq(larger, f.real(0)), f.real(0), angle)
    infinite = f.select(is_infinite, f.real(math.pi / 4), f.real(0))
    angle = f.select(f.eq(larger, f.real(math.inf)), infinite, angle)
    angle = f.select(f.lt(width, height), f.sub(f.real(math.pi / 2), angle), angle)
    angle = f.select(f.has_sign(x), f.sub(f.real(math.pi), angle), angle)
    angle = f.select(f.either(f.ne(x, x), f.ne(y, y)), f.real(math.nan), angle)
    return f.signed_as(angle, y)


def _modulo(f: _FunctionLanes, a: WasmValue, b: WasmValue) -> WasmValue:
    return single.remainder(f, a, b)


class _OfOne(SingleLane, _FunctionLanes):
    """Functions of one number."""


class _OfTwo(PairLanes, _FunctionLanes):
    """Functions of two numbers at once."""


_FUNCTIONS: Mapping[str, tuple[int, Callable[..., WasmValue], str]] = MappingProxyType({
    "sin": (1, _sine, "the sine of x radians"),
    "cos": (1, _cosine, "the cosine of x radians"),
    "sinpi": (1, double.sine_of_half_turns, "the sine of x half turns"),
    "cospi": (1, double.cosine_of_half_turns, "the cosine of x half turns"),
    "exp": (1, _exponential, "e to the power of x"),
    "exp2": (1, _power_of_two, "2 to the power of x"),
    "log": (1, _logarithm, "the natural logarithm of x"),
    "log2": (1, _logarithm_2, "the logarithm of x to base 2"),
    "pow": (2, _power, "x to the power of y"),
    "atan2": (2, _arctangent, "the angle of the direction (y, x), from -pi to pi"),
    "modulo": (2, _modulo, "the remainder of x divided by y, with the sign of y"),
})  # fmt: skip


def function_names() -> tuple[str, ...]:
    """The names of all functions."""
    return (*_FUNCTIONS, *map(of_pairs, _FUNCTIONS))


def mathematical(name: str) -> WasmFunction:
    """A function by its name. Raises KeyError if there is none."""
    lanes, kind = (_OfOne, _ONE) if name in _FUNCTIONS else (_OfTwo, _TWO)
    count, write, doc = _FUNCTIONS[name.removesuffix(of_pairs(""))]
    params = ("x", "y")[:count]
    builder = FunctionBuilder(name, [(param, kind) for param in params])
    return builder.function((write(lanes(builder), *map(builder.param, params)),), doc)


_ONE: WasmType = "f64"
_TWO: WasmType = "v128"
