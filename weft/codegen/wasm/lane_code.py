"""Arithmetic on the lanes of WebAssembly: one number in double precision, or two at once.

A bool is a whole number, 1 or 0; in pairs a mask of 64 bits for each lane. Bits are a whole number of 32 bits; in pairs
the lower half of each lane, and what is in the upper half does not matter.
"""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Literal, TypeAlias

from weft.codegen.wasm.builder import FunctionBuilder, WasmValue
from weft.ops import single
from weft.ops.lanes import Lanes
from weft.ops.spec import OpSpec

V: TypeAlias = WasmValue

def of_pairs(function: str) -> str:
    """The name of the function that computes another one for two numbers at once."""
    return f"{function}.pair"


_FOLDS: Mapping[str, Callable[[float, float], float]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul
}


_SMALL = 2.0**-1000
"""Powers of two from this one on have a reciprocal."""


class WasmLanes(Lanes[WasmValue]):
    """What both have in common."""

    count: ClassVar[int]
    reals: ClassVar[str]
    """The prefix of instructions for reals."""
    whole_numbers: ClassVar[str]
    """The prefix of those for whole numbers of 32 bits."""
    masks: ClassVar[str]
    """The prefix of those for all bits of bools and whole numbers."""
    kind: ClassVar[Literal["f64", "v128"]]
    """The type of a value that is real."""

    def __init__(self, builder: FunctionBuilder) -> None:
        self.b = builder

    @property
    def fused(self) -> bool:
        return False

    @property
    def waits(self) -> bool:
        return True

    @property
    def digits(self) -> int:
        return 53

    def _folded(self, op: str, a: V, b: V) -> V:
        """A sum, difference or product; of two constants a constant."""
        left, right = self.known(a), self.known(b)
        if left is not None and right is not None:
            return self.real(_FOLDS[op](left, right))
        return self._real(op, a, b)

    def _real(self, op: str, *args: V) -> V:
        return self.b.put(f"{self.reals}.{op}", *args)

    @abstractmethod
    def holds(self, c: V) -> V:
        """Whether a condition holds, in any lane."""

    def add(self, a: V, b: V, /) -> V:
        return self._folded("add", a, b)

    def sub(self, a: V, b: V, /) -> V:
        return self._folded("sub", a, b)

    def mul(self, a: V, b: V, /) -> V:
        return self._folded("mul", a, b)

    def div(self, a: V, b: V, /) -> V:
        divisor = self.known(b)
        if divisor is None or not _SMALL <= abs(divisor) <= 1 / _SMALL or abs(math.frexp(divisor)[0]) != 0.5:
            return self._real("div", a, b)
        # A product has the same digits, and is faster.
        return self.mul(a, self.real(1 / divisor))

    def neg(self, x: V, /) -> V:
        return self._real("neg", x)

    def abs(self, x: V, /) -> V:
        return self._real("abs", x)

    def sqrt(self, x: V, /) -> V:
        return self._real("sqrt", x)

    def floor(self, x: V, /) -> V:
        return self._real("floor", x)

    def nearest(self, x: V, /) -> V:
        return self._real("nearest", x)

    def eq(self, a: V, b: V, /) -> V:
        return self._real("eq", a, b)

    def ne(self, a: V, b: V, /) -> V:
        return self._real("ne", a, b)

    def lt(self, a: V, b: V, /) -> V:
        return self._real("lt", a, b)

    def le(self, a: V, b: V, /) -> V:
        return self._real("le", a, b)

    def both(self, a: V, b: V, /) -> V:
        return self.b.put(f"{self.masks}.and", a, b)

    def either(self, a: V, b: V, /) -> V:
        return self.b.put(f"{self.masks}.or", a, b)

    def bits_add(self, a: V, b: V, /) -> V:
        return self.b.put(f"{self.whole_numbers}.add", a, b)

    def bits_sub(self, a: V, b: V, /) -> V:
        return self.b.put(f"{self.whole_numbers}.sub", a, b)

    def bits_mul(self, a: V, b: V, /) -> V:
        return self.b.put(f"{self.whole_numbers}.mul", a, b)

    bits_and, bits_or = both, either

    def bits_xor(self, a: V, b: V, /) -> V:
        return self.b.put(f"{self.masks}.xor", a, b)

    def repeat(self, x: V, goes_on: Callable[[V], V], step: Callable[[V], V], /) -> V:
        found = self.b.variable(self.kind, x, "rest")
        with self.b.within("loop", "again") as again:
            is_left = self.holds(goes_on(self.b.get(found)))
            with self.b.within("if", "", is_left):
                self.b.set((found,), (step(self.b.get(found)),))
                self.b.do("br", immediate=again)
        return self.b.get(found)

    def fma(self, a: V, b: V, c: V, /) -> V:
        if self.known(b) == -1:
            return self.sub(c, a)
        # A product has the same digits whatever its sign.
        return self.sub(c, self.mul(a.args[0], b)) if a.op == f"{self.reals}.neg" else self.add(self.mul(a, b), c)

    def lesser(self, a: V, b: V, /) -> V:
        return self.select(self.lt(a, b), a, b)

    def greater(self, a: V, b: V, /) -> V:
        return self.select(self.lt(b, a), a, b)

    def bits_in(self, x: V, /) -> V:
        raise TypeError("the bits of a double do not fit")

    real_in = bits_in

    # Bits of doubles.

    @abstractmethod
    def bits64(self, x: V) -> V:
        """The bits that represent a real."""

    @abstractmethod
    def real_of_bits64(self, a: V) -> V:
        """The real that bits represent."""

    @abstractmethod
    def put64(self, op: str, a: V, b: int | V) -> V:
        """An operation on bits, or on whole numbers of 64 bits; shifts are by a number."""

    @abstractmethod
    def real_of_64(self, a: V) -> V:
        """A whole number of 64 bits, whose digits fit into 32, as a real."""

    @abstractmethod
    def has_sign(self, x: V) -> V:
        """Whether a real is negative, or −0."""

    @abstractmethod
    def signed_as(self, x: V, other: V) -> V:
        """x with the sign of another real."""

    def computed(self, row: OpSpec, args: Sequence[V]) -> V:
        """A row of the table of operators and builtins."""
        form = row.double if row.double is not None else row.native
        if row.name == "mod":
            return self._modulo(*args)
        if form is None:
            raise TypeError(f"{row.name} has no native form")
        if not isinstance(form, str):
            return form(self, *args)  # type: ignore[no-any-return]
        return self.library(form, *args) if form is row.double else getattr(self, form)(*args)

    def _modulo(self, a: V, b: V) -> V:
        """The remainder: of a known period by its reciprocal, unless there are too many turns for that."""
        known = self.known(b)
        if known is None or not single.LEAST_PERIOD <= abs(known) <= single.LARGEST_PERIOD:
            return self.library("modulo", a, b)
        if known >= 1 and math.frexp(known)[0] == 0.5:
            return single.remainder(self, a, b)
        x, size, zero = a if known > 0 else self.neg(a), self.real(abs(known)), self.real(0)
        turns = self.nearest(self.mul(x, self.real(1 / abs(known))))
        rest = self.add(single.less_turns(self, x, turns, size), zero)
        rest = self.select(self.lt(rest, zero), self.add(rest, size), rest)
        too_many = self.le(self.real(2.0 ** (self.digits - 4)), self.abs(turns))
        rest = self.where(too_many, lambda: self.library("modulo", x, size), single.below(self, size, rest))
        return rest if known > 0 else self.neg(rest)


class SingleLane(WasmLanes):
    """One number at a time."""

    count = 1
    reals = kind = "f64"
    whole_numbers = masks = "i32"

    def holds(self, c: V) -> V:
        return c

    def real(self, value: float, /) -> V:
        return self.b.f64(float(value))

    def bits(self, value: int, /) -> V:
        return self.b.i32(value & 0xFFFF_FFFF)

    def known(self, x: V, /) -> float | None:
        is_number = x.op == "f64.const" and isinstance(x.immediate, float) and not math.isnan(x.immediate)
        return float(x.immediate) if is_number else None  # type: ignore[arg-type]

    def library(self, function: str, /, *args: V) -> V:
        return self.b.call(function, "f64", *args)

    def negation(self, a: V, /) -> V:
        return self.b.put("i32.eqz", a)

    def select(self, c: V, a: V, b: V, /) -> V:
        return self.b.put("select", a, b, c, kind=a.type)

    def where(self, c: V, make: Callable[[], V], otherwise: V, /) -> V:
        found = self.b.variable("f64", otherwise, "found")
        with self.b.within("if", "", c):
            self.b.set((found,), (make(),))
        return self.b.get(found)

    def bits_shl(self, a: V, n: V, /) -> V:
        return self.b.put("i32.shl", a, n)

    def bits_shr(self, a: V, n: V, /) -> V:
        return self.b.put("i32.shr_u", a, n)

    def single(self, x: V, /) -> V:
        return self.b.put("f64.promote_f32", self.b.put("f32.demote_f64", x))

    def whole(self, x: V, /) -> V:
        return self.b.put("i32.trunc_sat_f64_s", x)

    def real_of(self, a: V, /) -> V:
        return self.b.put("f64.convert_i32_s", a)

    def bits64(self, x: V) -> V:
        return self.b.put("i64.reinterpret_f64", x)

    def real_of_bits64(self, a: V) -> V:
        return self.b.put("f64.reinterpret_i64", a)

    def put64(self, op: str, a: V, b: int | V) -> V:
        return self.b.put(f"i64.{op}", a, self.b.i64(b) if isinstance(b, int) else b)

    def real_of_64(self, a: V) -> V:
        return self.b.put("f64.convert_i64_s", a)

    def has_sign(self, x: V) -> V:
        return self.b.put("i64.lt_s", self.bits64(x), self.b.i64(0))

    def signed_as(self, x: V, other: V) -> V:
        return self.b.put("f64.copysign", x, other)


# Which bytes two lanes of 64 bits take from pairs of 32 bits, and the other way round.
_APART = (0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7)
_TOGETHER = (0, 1, 2, 3, 8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11)


class PairLanes(WasmLanes):
    """Two numbers at a time."""

    count = 2
    reals = "f64x2"
    whole_numbers = "i32x4"
    masks = kind = "v128"

    def holds(self, c: V) -> V:
        return self.b.put("v128.any_true", c)

    def real(self, value: float, /) -> V:
        return self.b.pair(float(value), float(value))

    def bits(self, value: int, /) -> V:
        return self.b.put("i32x4.splat", self.b.i32(value & 0xFFFF_FFFF))

    def known(self, x: V, /) -> float | None:
        if x.op != "v128.const" or not isinstance(x.immediate, tuple):
            return None
        low, high = map(float, x.immediate)
        return low if low == high else None

    def joined(self, low: V, high: V) -> V:
        """Two numbers as lanes."""
        return self.b.put("f64x2.replace_lane", self.b.put("f64x2.splat", low), high, immediate=1)

    def library(self, function: str, /, *args: V) -> V:
        return self.b.call(of_pairs(function), "v128", *args)

    def lesser(self, a: V, b: V, /) -> V:
        return self.b.put("f64x2.pmin", b, a)

    def greater(self, a: V, b: V, /) -> V:
        return self.b.put("f64x2.pmax", b, a)

    def negation(self, a: V, /) -> V:
        return self.b.put("v128.not", a)

    def select(self, c: V, a: V, b: V, /) -> V:
        return self.b.put("v128.bitselect", a, b, c)

    def where(self, c: V, make: Callable[[], V], otherwise: V, /) -> V:
        found = self.b.variable("v128", otherwise, "found")
        with self.b.within("if", "", self.holds(c)):
            self.b.set((found,), (self.select(c, make(), otherwise),))
        return self.b.get(found)

    def bits_shl(self, a: V, n: V, /) -> V:
        return self.b.put("i32x4.shl", a, self._distance(n))

    def bits_shr(self, a: V, n: V, /) -> V:
        return self.b.put("i32x4.shr_u", a, self._distance(n))

    def _distance(self, n: V) -> V:
        """By how much all lanes are shifted; it is the same in all of them."""
        return n.args[0] if n.op == "i32x4.splat" else self.b.put("i32x4.extract_lane", n, immediate=0)

    def single(self, x: V, /) -> V:
        return self.b.put("f64x2.promote_low_f32x4", self.b.put("f32x4.demote_f64x2_zero", x))

    def whole(self, x: V, /) -> V:
        low = self.b.put("i32x4.trunc_sat_f64x2_s_zero", x)
        return self.b.put("i8x16.shuffle", low, low, immediate=_APART)

    def real_of(self, a: V, /) -> V:
        low = self.b.put("i8x16.shuffle", a, a, immediate=_TOGETHER)
        return self.b.put("f64x2.convert_low_i32x4_s", low)

    def bits64(self, x: V) -> V:
        return x

    def real_of_bits64(self, a: V) -> V:
        return a

    def put64(self, op: str, a: V, b: int | V) -> V:
        if not isinstance(b, int):
            return self.b.put(f"i64x2.{op}", a, b)
        given = self.b.i32(b) if op.startswith("sh") else self.b.put("i64x2.splat", self.b.i64(b))
        return self.b.put(f"i64x2.{op}", a, given)

    def real_of_64(self, a: V) -> V:
        return self.real_of(a)

    def has_sign(self, x: V) -> V:
        return self.put64("shr_s", x, 63)

    def signed_as(self, x: V, other: V) -> V:
        sign = self.b.put("i64x2.splat", self.b.i64(1 << 63))
        return self.b.put("v128.bitselect", other, x, sign)
