"""`Lanes` over LLVM IR: each method appends an instruction to the text that is being written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

from weft.codegen.native.target import SINGLE, Isa, LlvmValue, Precision, bits_text
from weft.ops.spec import ValueType

_KINDS: tuple[ValueType, ...] = ("float", "bool", "u32")

# Lets LLVM fuse a product and a sum, and nothing more: other fast-math flags would break the reduction of phases, or
# the meaning of NaN and infinity.
_FUSE = "contract "


class LoopHead(NamedTuple):
    """The head of a loop: the block before it, and where its phis go in the text."""

    before: str
    place: int


# Methods of `LlvmLanes` for operations that are one instruction.

_Unary: TypeAlias = "Callable[[LlvmLanes, LlvmValue], LlvmValue]"
_Binary: TypeAlias = "Callable[[LlvmLanes, LlvmValue, LlvmValue], LlvmValue]"


def _intrinsic(function: str) -> _Unary:
    def method(w: LlvmLanes, x: LlvmValue, /) -> LlvmValue:
        return w.call(function, "float", x)

    return method


def _binary(op: str, kind: ValueType, gives: ValueType | None = None) -> _Binary:
    result = gives or kind

    def method(w: LlvmLanes, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return LlvmValue(w.put(f"{op} {w.types[kind]} {a.text}, {b.text}"), result)

    return method


def _conversion(op: str, kind: ValueType) -> _Unary:
    def method(w: LlvmLanes, x: LlvmValue, /) -> LlvmValue:
        return LlvmValue(w.put(f"{op} {w.types[x.kind]} {x.text} to {w.types[kind]}"), kind)

    return method


class LlvmLanes:
    """Appends to `text`, which subclasses switch between parts of the program. `floats` is the precision of floats."""

    def __init__(self, isa: Isa, lanes: int, floats: Precision = SINGLE) -> None:
        self.isa = isa
        self.lanes = lanes
        self.floats = floats
        self.fused, self.digits = isa.fused, floats.digits
        self.text: list[str] = []
        self.block = "entry"
        """The label of the block that is being written."""
        self.declared: set[str] = set()
        self.helpers: dict[str, list[str]] = {}
        """The text of each helper function that is called, by its name."""
        self.types: dict[ValueType, str] = {kind: floats.vector(lanes, kind) for kind in _KINDS}
        self._count = 0

    # Text.

    def number(self) -> int:
        """A new number, for labels."""
        self._count += 1
        return self._count

    def name(self, what: str) -> str:
        """A new name."""
        return f"%{what}{self.number()}"

    def put(self, instruction: str) -> str:
        """Appends an instruction with a result; returns the name of the result."""
        self._count += 1
        name = f"%v{self._count}"
        self.text.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Appends an instruction without a result."""
        self.text.append(f"  {instruction}")

    @contextmanager
    def narrow(self, lanes: int) -> Iterator[None]:
        """Within this context, vectors have fewer lanes."""
        before = self.lanes, self.types
        self.lanes, self.types = lanes, {kind: self.floats.vector(lanes, kind) for kind in _KINDS}
        try:
            yield
        finally:
            self.lanes, self.types = before

    def scalar(self, kind: ValueType) -> str:
        """The type of one lane."""
        return self.floats.scalar(kind)

    def call(self, function: str, kind: ValueType, *args: LlvmValue) -> LlvmValue:
        """Calls an intrinsic of LLVM on vectors of one kind."""
        of = self.types[kind]
        name = f"@llvm.{function}.v{self.lanes}{self.floats.suffix if kind == 'float' else 'i32'}"
        self.declared.add(f"declare {of} {name}({', '.join([of] * len(args))})")
        return LlvmValue(self.put(f"call {of} {name}({', '.join(f'{of} {a.text}' for a in args)})"), kind)

    def library(self, function: str, *args: LlvmValue) -> LlvmValue:
        """Calls a function of the C library for each lane. The precision has to be double."""
        of, one = self.types["float"], self.floats.name
        self.declared.add(f"declare {one} @{function}({', '.join([one] * len(args))}) #0")
        made = "poison"
        for lane in range(self.lanes):
            given = [self.put(f"extractelement {of} {arg.text}, i64 {lane}") for arg in args]
            found = self.put(f"call {one} @{function}({', '.join(f'{one} {each}' for each in given)})")
            made = self.put(f"insertelement {of} {made}, {one} {found}, i64 {lane}")
        return LlvmValue(made, "float")

    # Blocks.

    def label(self, name: str) -> None:
        """Begins a block."""
        self.text.append(f"{name}:")
        self.block = name

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def jump(self, label: str) -> None:
        self.do(f"br label %{label}")

    def begin_loop(self, label: str) -> LoopHead:
        """Jumps to a block, and begins it. `phis` completes it at the end of a step."""
        before = self.block
        self.jump(label)
        self.label(label)
        return LoopHead(before, len(self.text))

    def phis(self, head: LoopHead, latch: str, values: Iterable[tuple[str, str, str, str]]) -> None:
        """Writes the values that each step of a loop hands on to the next: the type of each, its name, and what it is
        before the loop and after the block `latch`."""
        self.text[head.place : head.place] = [
            f"  {name} = phi {of} [ {start}, %{head.before} ], [ {following}, %{latch} ]"
            for of, name, start, following in values
        ]

    def any(self, condition: LlvmValue) -> str:
        """Whether the condition holds in any lane, as an i1."""
        together = self.put(f"bitcast {self.types['bool']} {condition.text} to i{self.lanes}")
        return self.put(f"icmp ne i{self.lanes} {together}, 0")

    def where(self, c: LlvmValue, make: Callable[[], LlvmValue], otherwise: LlvmValue, /) -> LlvmValue:
        number = self.number()
        then, after = f"seldom{number}", f"usual{number}"
        before = self.block
        self.branch(self.any(c), then, after)
        self.label(then)
        made = self.select(c, make(), otherwise)
        end = self.block
        self.jump(after)
        self.label(after)
        incoming = f"[ {otherwise.text}, %{before} ], [ {made.text}, %{end} ]"
        return LlvmValue(self.put(f"phi {self.types['float']} {incoming}"), "float")

    def repeat(
        self, x: LlvmValue, goes_on: Callable[[LlvmValue], LlvmValue], step: Callable[[LlvmValue], LlvmValue], /
    ) -> LlvmValue:
        number = self.number()
        again, after = f"again{number}", f"enough{number}"
        head, value = self.begin_loop(f"look{number}"), LlvmValue(self.name("rest"), "float")
        self.branch(self.any(goes_on(value)), again, after)
        self.label(again)
        following = step(value)
        self.phis(head, self.block, [(self.types["float"], value.text, x.text, following.text)])
        self.jump(f"look{number}")
        self.label(after)
        return value

    # Constants.

    def real(self, value: float, /) -> LlvmValue:
        return LlvmValue(f"splat ({self.floats.name} {self.floats.text(value)})", "float", value)

    def bits(self, value: int, /) -> LlvmValue:
        return LlvmValue(f"splat (i32 {bits_text(value)})", "u32")

    def known(self, x: LlvmValue, /) -> float | None:
        return None if x.number is None or math.isnan(x.number) else x.number

    def each(self, numbers: Sequence[float], kind: ValueType = "float") -> LlvmValue:
        """A constant with a number of its own in each lane."""
        texts = [self.floats.text(number) if kind == "float" else number for number in numbers]
        return LlvmValue(f"<{', '.join(f'{self.scalar(kind)} {text}' for text in texts)}>", kind)

    # Floats.

    add, sub, mul = (_binary(f"{op} {_FUSE}", "float") for op in ("fadd", "fsub", "fmul"))
    _add_apart, _sub_apart, _mul_apart, _div = (_binary(op, "float") for op in ("fadd", "fsub", "fmul", "fdiv"))
    abs, sqrt, _floor, _nearest = (_intrinsic(function) for function in ("fabs", "sqrt", "floor", "roundeven"))

    def div(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        if b.number is not None and _has_exact_reciprocal(b.number):
            return self.mul(a, self.real(1 / b.number))
        return self._div(a, b)

    def neg(self, x: LlvmValue, /) -> LlvmValue:
        return LlvmValue(self.put(f"fneg {self.types['float']} {x.text}"), "float")

    def fma(self, a: LlvmValue, b: LlvmValue, c: LlvmValue, /) -> LlvmValue:
        if self.fused:
            return self.call("fma", "float", a, b, c)
        # Not as an intrinsic: without an instruction for it, LLVM would call a library function for each lane.
        return self._add_apart(self._mul_apart(a, b), c)

    def floor(self, x: LlvmValue, /) -> LlvmValue:
        if self.isa.rounds:
            return self._floor(x)
        near = self._near(x)
        below = self._sub_apart(near, self.select(self.lt(x, near), self.real(1), self.real(0)))
        # A whole number, an infinity and NaN stay as they are, and so does the sign of a zero.
        return self.select(self._has_fraction(x), self.call("copysign", "float", below, x), x)

    def nearest(self, x: LlvmValue, /) -> LlvmValue:
        if self.isa.rounds:
            return self._nearest(x)
        return self.select(self._has_fraction(x), self._near(x), x)

    def _near(self, x: LlvmValue) -> LlvmValue:
        """The nearest whole number, where x may have a fraction. Adding a number of the same sign that is large enough
        rounds off all digits after the point."""
        shifter = self.call("copysign", "float", self.real(self.floats.whole), x)
        return self._sub_apart(self._add_apart(x, shifter), shifter)

    def _has_fraction(self, x: LlvmValue) -> LlvmValue:
        """False where x is so large that it is whole, infinite or NaN."""
        return self.lt(self.abs(x), self.real(self.floats.whole))

    def lesser(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self.select(self.lt(a, b), a, b)

    def greater(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self.select(self._gt(a, b), a, b)

    # Bools.

    eq, ne, lt, le, _gt = (_binary(f"fcmp {how}", "float", "bool") for how in ("oeq", "une", "olt", "ole", "ogt"))
    both, either = (_binary(op, "bool") for op in ("and", "or"))

    def negation(self, a: LlvmValue, /) -> LlvmValue:
        return LlvmValue(self.put(f"xor {self.types['bool']} {a.text}, splat (i1 true)"), "bool")

    def select(self, c: LlvmValue, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        of = self.types[a.kind]
        return LlvmValue(self.put(f"select {self.types['bool']} {c.text}, {of} {a.text}, {of} {b.text}"), a.kind)

    def as_real(self, x: LlvmValue) -> LlvmValue:
        """A bool as 1 or 0; a float as it is."""
        return self.select(x, self.real(1), self.real(0)) if x.kind == "bool" else x

    # Bits.

    bits_add, bits_sub, bits_mul, bits_and, bits_or, bits_xor, bits_shl, bits_shr = (
        _binary(op, "u32") for op in ("add", "sub", "mul", "and", "or", "xor", "shl", "lshr")
    )

    # Conversions.

    bits_in, _to_whole = (_conversion(op, "u32") for op in ("bitcast", "fptosi"))
    real_in, real_of = (_conversion(op, "float") for op in ("bitcast", "sitofp"))

    def single(self, x: LlvmValue, /) -> LlvmValue:
        if self.floats.bytes == SINGLE.bytes:
            return x
        of, narrow = self.types["float"], SINGLE.vector(self.lanes, "float")
        return LlvmValue(self.put(f"fpext {narrow} {self.put(f'fptrunc {of} {x.text} to {narrow}')} to {of}"), "float")

    def whole(self, x: LlvmValue, /) -> LlvmValue:
        # What does not fit becomes an arbitrary number. `freeze` makes it the same one for every use.
        return LlvmValue(self.put(f"freeze {self.types['u32']} {self._to_whole(x).text}"), "u32")


def _has_exact_reciprocal(x: float) -> bool:
    """Whether x is a power of two whose reciprocal is in the range of single precision."""
    if x == 0 or not math.isfinite(x):
        return False
    mantissa, exponent = math.frexp(x)
    return abs(mantissa) == 0.5 and abs(exponent) < 120
