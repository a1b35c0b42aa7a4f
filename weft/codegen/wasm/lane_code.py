"""Arithmetic on the lanes of WebAssembly: one number in double precision, or two at once.

A bool is a whole number, 1 or 0; in pairs a mask of 64 bits for each lane. Bits are a whole number of 32 bits; in pairs
the lower half of each lane, and what is in the upper half does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeAlias

from weft.codegen.wasm.assembler import WasmType
from weft.codegen.wasm.builder import FunctionBuilder, WasmValue
from weft.ops.lanes import Lanes
from weft.ops.spec import OpSpec, ValueType

V: TypeAlias = WasmValue

INLINE_MODULO = 2.0**100
"""Beyond this period, a remainder is computed by a function."""


class WasmLanes(Lanes[WasmValue]):
    """What both have in common."""

    count: ClassVar[int]
    types: ClassVar[dict[ValueType, WasmType]]

    def __init__(self, builder: FunctionBuilder) -> None:
        self.b = builder

    @property
    def fused(self) -> bool:
        return False

    @property
    def digits(self) -> int:
        return 53

    def fma(self, a: V, b: V, c: V, /) -> V:
        return self.add(self.mul(a, b), c)

    def lesser(self, a: V, b: V, /) -> V:
        return self.select(self.lt(a, b), a, b)

    def greater(self, a: V, b: V, /) -> V:
        return self.select(self.lt(b, a), a, b)

    def bits_in(self, x: V, /) -> V:
        raise TypeError("the bits of a double do not fit")

    real_in = bits_in

    def computed(self, row: OpSpec, args: Sequence[V]) -> V:
        """A row of the table of operators and builtins."""
        form = row.double if row.double is not None else row.native
        if row.name == "mod" and not self._is_short_modulo(args[1]):
            return self.library("modulo", *args)
        if form is None:
            raise TypeError(f"{row.name} has no native form")
        if not isinstance(form, str):
            return form(self, *args)  # type: ignore[no-any-return]
        return self.library(form, *args) if form is row.double else getattr(self, form)(*args)

    def _is_short_modulo(self, period: V) -> bool:
        """Whether the remainder is a few instructions: after a power of two."""
        known = self.known(period)
        return known is not None and 1 <= known < INLINE_MODULO and math.frexp(known)[0] == 0.5


class SingleLane(WasmLanes):
    """One number at a time."""

    count = 1
    types: ClassVar[dict[ValueType, WasmType]] = {"float": "f64", "bool": "i32", "u32": "i32"}

    def real(self, value: float, /) -> V:
        return self.b.f64(float(value))

    def bits(self, value: int, /) -> V:
        return self.b.i32(value & 0xFFFF_FFFF)

    def known(self, x: V, /) -> float | None:
        is_number = x.op == "f64.const" and isinstance(x.immediate, float) and not math.isnan(x.immediate)
        return float(x.immediate) if is_number else None  # type: ignore[arg-type]

    def library(self, function: str, /, *args: V) -> V:
        return self.b.call(function, "f64", *args)

    def add(self, a: V, b: V, /) -> V:
        return self.b.put("f64.add", a, b)

    def sub(self, a: V, b: V, /) -> V:
        return self.b.put("f64.sub", a, b)

    def mul(self, a: V, b: V, /) -> V:
        return self.b.put("f64.mul", a, b)

    def div(self, a: V, b: V, /) -> V:
        return self.b.put("f64.div", a, b)

    def neg(self, x: V, /) -> V:
        return self.b.put("f64.neg", x)

    def abs(self, x: V, /) -> V:
        return self.b.put("f64.abs", x)

    def sqrt(self, x: V, /) -> V:
        return self.b.put("f64.sqrt", x)

    def floor(self, x: V, /) -> V:
        return self.b.put("f64.floor", x)

    def nearest(self, x: V, /) -> V:
        return self.b.put("f64.nearest", x)

    def eq(self, a: V, b: V, /) -> V:
        return self.b.put("f64.eq", a, b)

    def ne(self, a: V, b: V, /) -> V:
        return self.b.put("f64.ne", a, b)

    def lt(self, a: V, b: V, /) -> V:
        return self.b.put("f64.lt", a, b)

    def le(self, a: V, b: V, /) -> V:
        return self.b.put("f64.le", a, b)

    def both(self, a: V, b: V, /) -> V:
        return self.b.put("i32.and", a, b)

    def either(self, a: V, b: V, /) -> V:
        return self.b.put("i32.or", a, b)

    def negation(self, a: V, /) -> V:
        return self.b.put("i32.eqz", a)

    def select(self, c: V, a: V, b: V, /) -> V:
        return self.b.put("select", a, b, c, kind=a.type)

    def where(self, c: V, make: Callable[[], V], otherwise: V, /) -> V:
        found = self.b.variable("f64", otherwise, "found")
        with self.b.within("if", "", c):
            self.b.set((found,), (make(),))
        return self.b.get(found)

    def repeat(self, x: V, goes_on: Callable[[V], V], step: Callable[[V], V], /) -> V:
        found = self.b.variable("f64", x, "rest")
        with self.b.within("loop", "again") as again, self.b.within("if", "", goes_on(self.b.get(found))):
            self.b.set((found,), (step(self.b.get(found)),))
            self.b.do("br", immediate=again)
        return self.b.get(found)

    def bits_add(self, a: V, b: V, /) -> V:
        return self.b.put("i32.add", a, b)

    def bits_sub(self, a: V, b: V, /) -> V:
        return self.b.put("i32.sub", a, b)

    def bits_mul(self, a: V, b: V, /) -> V:
        return self.b.put("i32.mul", a, b)

    def bits_and(self, a: V, b: V, /) -> V:
        return self.b.put("i32.and", a, b)

    def bits_or(self, a: V, b: V, /) -> V:
        return self.b.put("i32.or", a, b)

    def bits_xor(self, a: V, b: V, /) -> V:
        return self.b.put("i32.xor", a, b)

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


# Which bytes two lanes of 64 bits take from pairs of 32 bits, and the other way round.
_APART = (0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7)
_TOGETHER = (0, 1, 2, 3, 8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11)


class PairLanes(WasmLanes):
    """Two numbers at a time."""

    count = 2
    types: ClassVar[dict[ValueType, WasmType]] = {"float": "v128", "bool": "v128", "u32": "v128"}

    def real(self, value: float, /) -> V:
        return self.b.pair(float(value), float(value))

    def bits(self, value: int, /) -> V:
        return self.b.put("i32x4.splat", self.b.i32(value & 0xFFFF_FFFF))

    def known(self, x: V, /) -> float | None:
        if x.op != "v128.const" or not isinstance(x.immediate, tuple):
            return None
        low, high = map(float, x.immediate)
        return low if low == high else None

    def lanes_of(self, x: V) -> tuple[V, V]:
        """Both lanes of reals."""
        low, high = (self.b.put("f64x2.extract_lane", x, immediate=lane) for lane in (0, 1))
        return low, high

    def joined(self, low: V, high: V) -> V:
        """Two numbers as lanes."""
        return self.b.put("f64x2.replace_lane", self.b.put("f64x2.splat", low), high, immediate=1)

    def library(self, function: str, /, *args: V) -> V:
        parts = [self.lanes_of(arg) for arg in args]
        low, high = (self.b.call(function, "f64", *(part[lane] for part in parts)) for lane in (0, 1))
        return self.joined(low, high)

    def _binary(self, op: str, a: V, b: V) -> V:
        return self.b.put(op, a, b)

    def add(self, a: V, b: V, /) -> V:
        return self.b.put("f64x2.add", a, b)

    def sub(self, a: V, b: V, /) -> V:
        return self.b.put("f64x2.sub", a, b)

    def mul(self, a: V, b: V, /) -> V:
        return self.b.put("f64x2.mul", a, b)

    def div(self, a: V, b: V, /) -> V:
        return self.b.put("f64x2.div", a, b)

    def neg(self, x: V, /) -> V:
        return self.b.put("f64x2.neg", x)

    def abs(self, x: V, /) -> V:
        return self.b.put("f64x2.abs", x)

    def sqrt(self, x: V, /) -> V:
        return self.b.put("f64x2.sqrt", x)

    def floor(self, x: V, /) -> V:
        return self.b.put("f64x2.floor", x)

    def nearest(self, x: V, /) -> V:
        return self.b.put("f64x2.nearest", x)

    def eq(self, a: V, b: V, /) -> V:
        return self.b.put("f64x2.eq", a, b)

    def ne(self, a: V, b: V, /) -> V:
        return self.b.put("f64x2.ne", a, b)

    def lt(self, a: V, b: V, /) -> V:
        return self.b.put("f64x2.lt", a, b)

    def le(self, a: V, b: V, /) -> V:
        return self.b.put("f64x2.le", a, b)

    def both(self, a: V, b: V, /) -> V:
        return self.b.put("v128.and", a, b)

    def either(self, a: V, b: V, /) -> V:
        return self.b.put("v128.or", a, b)

    def negation(self, a: V, /) -> V:
        return self.b.put("v128.not", a)

    def select(self, c: V, a: V, b: V, /) -> V:
        return self.b.put("v128.bitselect", a, b, c)

    def where(self, c: V, make: Callable[[], V], otherwise: V, /) -> V:
        found = self.b.variable("v128", otherwise, "found")
        with self.b.within("if", "", self.b.put("v128.any_true", c)):
            self.b.set((found,), (self.select(c, make(), otherwise),))
        return self.b.get(found)

    def repeat(self, x: V, goes_on: Callable[[V], V], step: Callable[[V], V], /) -> V:
        found = self.b.variable("v128", x, "rest")
        with (
            self.b.within("loop", "again") as again,
            self.b.within("if", "", self.b.put("v128.any_true", goes_on(self.b.get(found)))),
        ):
            self.b.set((found,), (step(self.b.get(found)),))
            self.b.do("br", immediate=again)
        return self.b.get(found)

    def bits_add(self, a: V, b: V, /) -> V:
        return self.b.put("i32x4.add", a, b)

    def bits_sub(self, a: V, b: V, /) -> V:
        return self.b.put("i32x4.sub", a, b)

    def bits_mul(self, a: V, b: V, /) -> V:
        return self.b.put("i32x4.mul", a, b)

    def bits_and(self, a: V, b: V, /) -> V:
        return self.b.put("v128.and", a, b)

    def bits_or(self, a: V, b: V, /) -> V:
        return self.b.put("v128.or", a, b)

    def bits_xor(self, a: V, b: V, /) -> V:
        return self.b.put("v128.xor", a, b)

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
