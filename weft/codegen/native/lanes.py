"""`Lanes` over LLVM IR: each method appends an instruction to the text that is being written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from weft.codegen.native.target import SINGLE, Isa, LlvmValue, Precision, bits_text
from weft.ops.spec import ValueType

_KINDS: tuple[ValueType, ...] = ("float", "bool", "u32")

# Lets LLVM fuse a product and a sum, and nothing more: other fast-math flags would break the reduction of phases, or
# the meaning of NaN and infinity.
_FUSE = "contract "


class LlvmLanes:
    """Appends to `text`, which subclasses switch between parts of the program. `floats` is the precision of floats."""

    def __init__(self, isa: Isa, lanes: int, floats: Precision = SINGLE) -> None:
        self.isa = isa
        self.lanes = lanes
        self.floats = floats
        self.text: list[str] = []
        self.block = "entry"
        """The label of the block that is being written."""
        self.declared: set[str] = set()
        self.helpers: dict[str, list[str]] = {}
        """The text of each helper function that is called, by its name."""
        self._types: dict[ValueType, str] = {kind: floats.vector(lanes, kind) for kind in _KINDS}
        self._count = 0

    # Text.

    def name(self, what: str = "v") -> str:
        """A new name."""
        self._count += 1
        return f"%{what}{self._count}"

    def put(self, instruction: str) -> str:
        """Appends an instruction with a result; returns the name of the result."""
        self._count += 1
        name = f"%v{self._count}"
        self.text.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Appends an instruction without a result."""
        self.text.append(f"  {instruction}")

    def type(self, kind: ValueType) -> str:
        return self._types[kind]

    @contextmanager
    def narrow(self, lanes: int) -> Iterator[None]:
        """Within this context, vectors have fewer lanes."""
        before = self.lanes, self._types
        self.lanes, self._types = lanes, {kind: self.floats.vector(lanes, kind) for kind in _KINDS}
        try:
            yield
        finally:
            self.lanes, self._types = before

    def scalar(self, kind: ValueType) -> str:
        """The type of one lane."""
        return self.floats.scalar(kind)

    def call(self, function: str, kind: ValueType, *args: LlvmValue, flags: str = "") -> LlvmValue:
        """Calls an intrinsic of LLVM on vectors of one kind."""
        of = self._types[kind]
        name = f"@llvm.{function}.v{self.lanes}{self.floats.suffix if kind == 'float' else 'i32'}"
        self.declared.add(f"declare {of} {name}({', '.join([of] * len(args))})")
        return LlvmValue(self.put(f"call {flags}{of} {name}({', '.join(f'{of} {a.text}' for a in args)})"), kind)

    def library(self, function: str, *args: LlvmValue) -> LlvmValue:
        """Calls a function of the C library for each lane. The precision has to be double."""
        of, one = self._types["float"], self.floats.name
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

    def any(self, condition: LlvmValue) -> str:
        """Whether the condition holds in any lane, as an i1."""
        together = self.put(f"bitcast {self.type('bool')} {condition.text} to i{self.lanes}")
        return self.put(f"icmp ne i{self.lanes} {together}, 0")

    def where(self, c: LlvmValue, make: Callable[[], LlvmValue], otherwise: LlvmValue, /) -> LlvmValue:
        number = self.name("").lstrip("%")
        then, after = f"seldom{number}", f"usual{number}"
        before = self.block
        self.branch(self.any(c), then, after)
        self.label(then)
        made = self.select(c, make(), otherwise)
        end = self.block
        self.jump(after)
        self.label(after)
        incoming = f"[ {otherwise.text}, %{before} ], [ {made.text}, %{end} ]"
        return LlvmValue(self.put(f"phi {self.type('float')} {incoming}"), "float")

    def repeat(
        self, x: LlvmValue, goes_on: Callable[[LlvmValue], LlvmValue], step: Callable[[LlvmValue], LlvmValue], /
    ) -> LlvmValue:
        number = self.name("").lstrip("%")
        head, again, after = f"look{number}", f"again{number}", f"enough{number}"
        before = self.block
        self.jump(head)
        self.label(head)
        phi, value = len(self.text), LlvmValue(self.name("rest"), "float")
        self.branch(self.any(goes_on(value)), again, after)
        self.label(again)
        following = step(value)
        incoming = f"[ {x.text}, %{before} ], [ {following.text}, %{self.block} ]"
        self.text.insert(phi, f"  {value.text} = phi {self.type('float')} {incoming}")
        self.jump(head)
        self.label(after)
        return value

    def _binary(self, op: str, kind: ValueType, a: LlvmValue, b: LlvmValue) -> LlvmValue:
        return LlvmValue(self.put(f"{op} {self._types[kind]} {a.text}, {b.text}"), kind)

    @property
    def digits(self) -> int:
        return self.floats.digits

    # Constants.

    def real(self, value: float, /) -> LlvmValue:
        return LlvmValue(f"splat ({self.floats.name} {self.floats.text(value)})", "float", value)

    def bits(self, value: int, /) -> LlvmValue:
        return LlvmValue(f"splat (i32 {bits_text(value)})", "u32")

    def known(self, x: LlvmValue, /) -> float | None:
        return None if x.number is None or math.isnan(x.number) else x.number

    def truth(self, value: bool, /) -> LlvmValue:
        return LlvmValue(f"splat (i1 {str(value).lower()})", "bool")

    def each(self, texts: Sequence[str], kind: ValueType) -> LlvmValue:
        """A constant with a number of its own in each lane."""
        return LlvmValue(f"<{', '.join(f'{self.scalar(kind)} {text}' for text in texts)}>", kind)

    # Floats.

    @property
    def fused(self) -> bool:
        return self.isa.fused

    def add(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self._binary(f"fadd {_FUSE}", "float", a, b)

    def sub(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self._binary(f"fsub {_FUSE}", "float", a, b)

    def mul(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self._binary(f"fmul {_FUSE}", "float", a, b)

    def div(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        if b.number is not None and _has_exact_reciprocal(b.number):
            return self.mul(a, self.real(1 / b.number))
        return self._binary("fdiv", "float", a, b)

    def neg(self, x: LlvmValue, /) -> LlvmValue:
        return LlvmValue(self.put(f"fneg {self._types['float']} {x.text}"), "float")

    def abs(self, x: LlvmValue, /) -> LlvmValue:
        return self.call("fabs", "float", x)

    def sqrt(self, x: LlvmValue, /) -> LlvmValue:
        return self.call("sqrt", "float", x)

    def fma(self, a: LlvmValue, b: LlvmValue, c: LlvmValue, /) -> LlvmValue:
        if self.isa.fused:
            return self.call("fma", "float", a, b, c)
        # Not as an intrinsic: without an instruction for it, LLVM would call a library function for each lane.
        product = self._binary("fmul", "float", a, b)
        return self._binary("fadd", "float", product, c)

    def floor(self, x: LlvmValue, /) -> LlvmValue:
        if self.isa.rounds:
            return self.call("floor", "float", x)
        near = self._near(x)
        below = self._binary("fsub", "float", near, self.select(self.lt(x, near), self.real(1), self.real(0)))
        # A whole number, an infinity and NaN stay as they are, and so does the sign of a zero.
        return self.select(self._has_fraction(x), self.call("copysign", "float", below, x), x)

    def nearest(self, x: LlvmValue, /) -> LlvmValue:
        if self.isa.rounds:
            return self.call("roundeven", "float", x)
        return self.select(self._has_fraction(x), self._near(x), x)

    def _near(self, x: LlvmValue) -> LlvmValue:
        """The nearest whole number, where x may have a fraction. Adding a number of the same sign that is large enough
        rounds off all digits after the point."""
        shifter = self.call("copysign", "float", self.real(self.floats.whole), x)
        return self._binary("fsub", "float", self._binary("fadd", "float", x, shifter), shifter)

    def _has_fraction(self, x: LlvmValue) -> LlvmValue:
        """False where x is so large that it is whole, infinite or NaN."""
        return self.lt(self.abs(x), self.real(self.floats.whole))

    def lesser(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self.select(self._compare("olt", a, b), a, b)

    def greater(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self.select(self._compare("ogt", a, b), a, b)

    # Bools.

    def _compare(self, how: str, a: LlvmValue, b: LlvmValue) -> LlvmValue:
        return LlvmValue(self.put(f"fcmp {how} {self._types['float']} {a.text}, {b.text}"), "bool")

    def eq(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self._compare("oeq", a, b)

    def ne(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self._compare("une", a, b)

    def lt(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self._compare("olt", a, b)

    def le(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self._compare("ole", a, b)

    def both(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self._binary("and", "bool", a, b)

    def either(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self._binary("or", "bool", a, b)

    def negation(self, a: LlvmValue, /) -> LlvmValue:
        return self._binary("xor", "bool", a, self.truth(True))

    def select(self, c: LlvmValue, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        of = self._types[a.kind]
        return LlvmValue(self.put(f"select {self._types['bool']} {c.text}, {of} {a.text}, {of} {b.text}"), a.kind)

    def as_real(self, x: LlvmValue) -> LlvmValue:
        """A bool as 1 or 0; a float as it is."""
        return self.select(x, self.real(1), self.real(0)) if x.kind == "bool" else x

    # Bits.

    def bits_add(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self._binary("add", "u32", a, b)

    def bits_sub(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self._binary("sub", "u32", a, b)

    def bits_mul(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self._binary("mul", "u32", a, b)

    def bits_and(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self._binary("and", "u32", a, b)

    def bits_or(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self._binary("or", "u32", a, b)

    def bits_xor(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return self._binary("xor", "u32", a, b)

    def bits_shl(self, a: LlvmValue, n: LlvmValue, /) -> LlvmValue:
        return self._binary("shl", "u32", a, n)

    def bits_shr(self, a: LlvmValue, n: LlvmValue, /) -> LlvmValue:
        return self._binary("lshr", "u32", a, n)

    # Conversions.

    def _convert(self, op: str, x: LlvmValue, kind: ValueType) -> LlvmValue:
        return LlvmValue(self.put(f"{op} {self._types[x.kind]} {x.text} to {self._types[kind]}"), kind)

    def single(self, x: LlvmValue, /) -> LlvmValue:
        if self.floats.bytes == SINGLE.bytes:
            return x
        of, narrow = self._types["float"], SINGLE.vector(self.lanes, "float")
        return LlvmValue(self.put(f"fpext {narrow} {self.put(f'fptrunc {of} {x.text} to {narrow}')} to {of}"), "float")

    def bits_in(self, x: LlvmValue, /) -> LlvmValue:
        return self._convert("bitcast", x, "u32")

    def real_in(self, a: LlvmValue, /) -> LlvmValue:
        return self._convert("bitcast", a, "float")

    def whole(self, x: LlvmValue, /) -> LlvmValue:
        # What does not fit becomes an arbitrary number. `freeze` makes it the same one for every use.
        converted = self._convert("fptosi", x, "u32")
        return LlvmValue(self.put(f"freeze {self._types['u32']} {converted.text}"), "u32")

    def real_of(self, a: LlvmValue, /) -> LlvmValue:
        return self._convert("sitofp", a, "float")


def _has_exact_reciprocal(x: float) -> bool:
    """Whether x is a power of two whose reciprocal is in the range of single precision."""
    if x == 0 or not math.isfinite(x):
        return False
    mantissa, exponent = math.frexp(x)
    return abs(mantissa) == 0.5 and abs(exponent) < 120
