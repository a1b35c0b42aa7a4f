"""Functions in LLVM IR: their instructions and arguments, the values that they have computed, and where text goes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from weft.codegen.kernel import Kernel
from weft.codegen.native.dataflow import Graph
from weft.codegen.native.target import (
    DOUBLE, SINGLE, Field, Head, Isa, Layout, LlvmValue, Precision, ReciprocalPart, Word, bits_text, is_address
)
from weft.codegen.values import Line, Node, Scalar
from weft.ir.expr import SlotPlane
from weft.ir.rates import Rate
from weft.ops.spec import OpSpec, ValueType

# `Lanes` over LLVM IR: each method appends an instruction to the text that is being written.

_KINDS: tuple[ValueType, ...] = ("float", "bool", "u32")

# In memory, a bool takes as much as the others.
_STORED: Mapping[ValueType, ValueType] = {"float": "float", "bool": "u32", "u32": "u32"}

# Lets LLVM fuse a product and a sum where the family does, and nothing more: other fast-math flags would break the
# reduction of phases, or the meaning of NaN and infinity.
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


def _fusable(op: str) -> _Binary:
    apart, together = _binary(op, "float"), _binary(f"{op} {_FUSE}", "float")

    def method(w: LlvmLanes, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        return together(w, a, b) if w.fused else apart(w, a, b)

    return method


def _conversion(op: str, kind: ValueType) -> _Unary:
    def method(w: LlvmLanes, x: LlvmValue, /) -> LlvmValue:
        return LlvmValue(w.put(f"{op} {w.types[x.kind]} {x.text} to {w.types[kind]}"), kind)

    return method


class LlvmLanes:
    """Appends to `text`, which subclasses switch between parts of the program. `floats` is the precision of floats."""

    waits = False

    is_scalar = False
    """Whether values are numbers instead of vectors of one lane, which take LLVM twice as long."""

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
        self.types: dict[ValueType, str] = {kind: self.type_of(kind, floats) for kind in _KINDS}
        self._count = 0

    def type_of(self, kind: ValueType, floats: Precision) -> str:
        """The type of values, with floats in a precision."""
        return floats.scalar(kind) if self.is_scalar else floats.vector(self.lanes, kind)

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
        self.lanes = lanes
        self.types = {kind: self.type_of(kind, self.floats) for kind in _KINDS}
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
        lanes = "" if self.is_scalar else f"v{self.lanes}"
        name = f"@llvm.{function}.{lanes}{self.floats.suffix if kind == 'float' else 'i32'}"
        self.declared.add(f"declare {of} {name}({', '.join([of] * len(args))})")
        return LlvmValue(self.put(f"call {of} {name}({', '.join(f'{of} {a.text}' for a in args)})"), kind)

    def library(self, function: str, *args: LlvmValue) -> LlvmValue:
        """Calls a function of the C library for each lane. The precision has to be double."""
        of, one = self.types["float"], self.floats.name
        self.declared.add(f"declare {one} @{function}({', '.join([one] * len(args))}) #0")
        made = "poison"
        for lane in range(self.lanes):
            given = [self.lane(arg, lane) for arg in args]
            found = self.put(f"call {one} @{function}({', '.join(f'{one} {each}' for each in given)})")
            made = found if self.is_scalar else self.put(f"insertelement {of} {made}, {one} {found}, i64 {lane}")
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
        """Writes the values that each step of a loop passes to the next: the type of each, its name, and its value
        before the loop and after the block `latch`."""
        self.text[head.place : head.place] = [
            f"  {name} = phi {of} [ {start}, %{head.before} ], [ {following}, %{latch} ]"
            for of, name, start, following in values
        ]

    def any(self, condition: LlvmValue) -> str:
        """Whether the condition holds in any lane, as an i1."""
        if self.is_scalar:
            return condition.text
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

    # Memory.

    def splat(self, number: str, kind: ValueType) -> LlvmValue:
        """A number in every lane."""
        if self.is_scalar:
            return LlvmValue(number, kind)
        of = self.types[kind]
        first = self.put(f"insertelement {of} poison, {self.scalar(kind)} {number}, i64 0")
        every = f"<{self.lanes} x i32> zeroinitializer"
        return LlvmValue(self.put(f"shufflevector {of} {first}, {of} poison, {every}"), kind)

    def lane(self, value: LlvmValue, lane: int = 0) -> str:
        """The number in one lane."""
        if self.is_scalar:
            return value.text
        return self.put(f"extractelement {self.types[value.kind]} {value.text}, i64 {lane}")

    def element(self, address: str, index: str, kind: ValueType = "u32") -> str:
        """The address of an element of 4 bytes, or of a float."""
        return self.put(f"getelementptr {self.scalar(_STORED[kind])}, ptr {address}, i64 {index}")

    def load(self, address: str, index: str, kind: ValueType) -> LlvmValue:
        """The vector from an element on."""
        stored = _STORED[kind]
        place = self.element(address, index, kind)
        return self._read(LlvmValue(self.put(f"load {self.types[stored]}, ptr {place}, align 4"), stored), kind)

    def load_splat(self, address: str, index: str, kind: ValueType) -> LlvmValue:
        """One element, in every lane."""
        stored = _STORED[kind]
        number = self.put(f"load {self.scalar(stored)}, ptr {self.element(address, index, kind)}, align 4")
        return self._read(self.splat(number, stored), kind)

    def _read(self, stored: LlvmValue, kind: ValueType) -> LlvmValue:
        return self.is_set(stored) if kind == "bool" else stored

    def is_set(self, bits: LlvmValue) -> LlvmValue:
        """Whether bits are not 0."""
        return LlvmValue(self.put(f"icmp ne {self.types['u32']} {bits.text}, zeroinitializer"), "bool")

    def extended(self, how: str, condition: LlvmValue) -> LlvmValue:
        """A bool as bits: with `zext` 0 or 1, with `sext` in all 32 bits."""
        return LlvmValue(self.put(f"{how} {self.types['bool']} {condition.text} to {self.types['u32']}"), "u32")

    def store(self, value: LlvmValue, address: str, index: str) -> None:
        """Writes a vector from an element on."""
        if value.kind == "bool":
            value = self.extended("zext", value)
        place = self.element(address, index, value.kind)
        self.do(f"store {self.types[value.kind]} {value.text}, ptr {place}, align 4")

    def gather(self, address: str, index: LlvmValue, of: str = "", source: Precision = SINGLE) -> LlvmValue:
        """Numbers of the `source` precision, from an element for each lane. `of` is the type of the index, if it is not
        u32."""
        found_as = self.type_of("float", source)
        instruction = None if of else self.isa.gather(source.bytes, self.lanes)
        if self.is_scalar:
            place = self.put(f"getelementptr {source.name}, ptr {address}, {of or self.types['u32']} {index.text}")
            found = self.put(f"load {source.name}, ptr {place}, align 4")
        elif instruction is not None:
            found = self._gathered_by(instruction, source, address, index)
        else:
            found = self._gathered_by_lane(source, address, index, of or self.types["u32"])
        if source.bytes != self.floats.bytes:
            convert = "fptrunc" if source.bytes > self.floats.bytes else "fpext"
            found = self.put(f"{convert} {found_as} {found} to {self.types['float']}")
        return LlvmValue(found, "float")

    def _gathered_by(self, instruction: str, source: Precision, address: str, index: LlvmValue) -> str:
        """Gathers by one instruction of the processor. LLVM by itself prefers a load for each lane, and takes half a
        millisecond to write these, which matters where compile time does."""
        floats, bits = source.vector(self.lanes, "float"), self.types["u32"]
        name = f"@llvm.{instruction}"
        self.declared.add(f"declare {floats} {name}({floats}, ptr, {bits}, {floats}, i8)")
        every = f"{floats} splat ({source.name} {source.text(-1.0)})"  # the sign enables a lane
        args = f"{floats} zeroinitializer, ptr {address}, {bits} {index.text}, {every}, i8 {source.bytes}"
        return self.put(f"call {floats} {name}({args})")

    def _gathered_by_lane(self, source: Precision, address: str, index: LlvmValue, of: str) -> str:
        places = self.put(f"getelementptr {source.name}, ptr {address}, {of} {index.text}")
        found_as, pointers, bools = source.vector(self.lanes, "float"), f"<{self.lanes} x ptr>", self.types["bool"]
        name = f"@llvm.masked.gather.v{self.lanes}{source.suffix}.v{self.lanes}p0"
        self.declared.add(f"declare {found_as} {name}({pointers}, i32 immarg, {bools}, {found_as})")
        args = f"{pointers} {places}, i32 4, {bools} splat (i1 true), {found_as} poison"
        return self.put(f"call {found_as} {name}({args})")

    # Constants.

    def real(self, value: float, /) -> LlvmValue:
        text = self.floats.text(value)
        return LlvmValue(text if self.is_scalar else f"splat ({self.floats.name} {text})", "float", value)

    def bits(self, value: int, /) -> LlvmValue:
        text = bits_text(value)
        return LlvmValue(text if self.is_scalar else f"splat (i32 {text})", "u32")

    def known(self, x: LlvmValue, /) -> float | None:
        return None if x.number is None or math.isnan(x.number) else x.number

    def each(self, numbers: Sequence[float], kind: ValueType = "float") -> LlvmValue:
        """A constant with a number of its own in each lane."""
        texts = [self.floats.text(number) if kind == "float" else number for number in numbers]
        return LlvmValue(f"<{', '.join(f'{self.scalar(kind)} {text}' for text in texts)}>", kind)

    def lane_numbers(self, first: str) -> LlvmValue:
        """The numbers of the lanes, from that of the first."""
        start = self.splat(self.put(f"trunc i64 {first} to i32"), "u32")
        return self.bits_add(start, self.each(range(self.lanes), "u32"))

    # Floats.

    add, sub, mul = map(_fusable, ("fadd", "fsub", "fmul"))
    _add_apart, _sub_apart, _mul_apart, _div = (_binary(op, "float") for op in ("fadd", "fsub", "fmul", "fdiv"))
    abs, sqrt, _floor, _nearest = (_intrinsic(function) for function in ("fabs", "sqrt", "floor", "roundeven"))

    def div(self, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        parts = None if b.number is None else reciprocal(b.number, self.floats)
        if parts is None or (parts.rest and not self.fused):
            return self._div(a, b)
        if not parts.rest:
            return self.mul(a, self.real(parts.value))
        return self.quotient(a, self.real(parts.value), self.real(parts.rest))

    def quotient(self, a: LlvmValue, value: LlvmValue, rest: LlvmValue) -> LlvmValue:
        """The quotient by a divisor of which these are the parts of the `reciprocal`."""
        return self.fma(a, value, self._mul_apart(a, rest))

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
        # Whole numbers, infinities and NaN do not change, and neither does the sign of a zero.
        return self.select(self._has_fraction(x), self.call("copysign", "float", below, x), x)

    def nearest(self, x: LlvmValue, /) -> LlvmValue:
        if self.isa.rounds:
            return self._nearest(x)
        return self.call("copysign", "float", self.select(self._has_fraction(x), self._near(x), x), x)

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
        true = "true" if self.is_scalar else "splat (i1 true)"
        return LlvmValue(self.put(f"xor {self.types['bool']} {a.text}, {true}"), "bool")

    def select(self, c: LlvmValue, a: LlvmValue, b: LlvmValue, /) -> LlvmValue:
        of = self.types[a.kind]
        return LlvmValue(self.put(f"select {self.types['bool']} {c.text}, {of} {a.text}, {of} {b.text}"), a.kind)

    def as_real(self, x: LlvmValue) -> LlvmValue:
        """A bool as 1 or 0; a float unchanged."""
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
        of, narrow = self.types["float"], self.type_of("float", SINGLE)
        return LlvmValue(self.put(f"fpext {narrow} {self.put(f'fptrunc {of} {x.text} to {narrow}')} to {of}"), "float")

    def whole(self, x: LlvmValue, /) -> LlvmValue:
        # A number that does not fit becomes an arbitrary one. `freeze` makes it the same for every use.
        return LlvmValue(self.put(f"freeze {self.types['u32']} {self._to_whole(x).text}"), "u32")


class Reciprocal(NamedTuple):
    """A reciprocal as a number and a rest, which has the same sign or is 0. The quotient is the sum of two products. It
    equals that of a division, except for about one dividend in a million, for which its last digit differs by one.
    Infinities and zeros are right, because the products agree in their signs."""

    value: float
    rest: float


# Outside of these limits, a product could leave the range of single precision.
_LEAST_DIVISOR, _LARGEST_DIVISOR = 2.0**-100, 2.0**100


@functools.cache
def reciprocal(x: float, floats: Precision) -> Reciprocal | None:
    """The reciprocal of a divisor; None without a usable one."""
    divisor = floats.rounded(x)
    if not _LEAST_DIVISOR <= abs(divisor) <= _LARGEST_DIVISOR:
        return None
    exact = 1 / Fraction(divisor)
    value = floats.rounded(1 / divisor)
    if abs(Fraction(value)) > abs(exact):
        value = math.copysign(floats.below(abs(value)), value)
    return Reciprocal(value, floats.rounded(float(exact - Fraction(value))))


# Functions: arguments, and values that are computed once.

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class _Numbering(dict[K, int]):
    """Numbers for keys, in the order in which they are first asked for."""

    def __missing__(self, key: K) -> int:
        self[key] = number = len(self)
        return number


class ArgumentTable:
    """The numbers of what the functions of one kernel use: the words of the block of arguments, the scalars of a
    launch, and the numbers that the caller passes."""

    def __init__(self) -> None:
        self.fields = _Numbering[Field]({word: at for at, word in enumerate(Word)})
        self.scalars = _Numbering["Scalar | ReciprocalPart"]()
        self.numbers = _Numbering[Scalar]()

    def copied(self) -> ArgumentTable:
        """A table that continues after the same numbers."""
        copy = ArgumentTable()
        copy.fields.update(self.fields)
        copy.scalars.update(self.scalars)
        copy.numbers.update(self.numbers)
        return copy

    def layout(self, functions: tuple[str, ...], **facts: Any) -> Layout:
        """The layout of what they are numbers of. `facts` are its other fields."""
        return Layout(tuple(self.fields), tuple(self.scalars), tuple(self.numbers), functions, **facts)


class ValueWriter(LlvmLanes):
    """Writes code that takes a block of arguments, and keeps the values that it has computed.

    `entry` is the part of the text that runs once, `text` the part for each vector. `places` are the numbers of the
    words of the block, as text or as numbers.
    """

    def __init__(self, isa: Isa, lanes: int, places: Mapping[Field, int | str], floats: Precision = SINGLE) -> None:
        super().__init__(isa, lanes, floats)
        self.places = places
        self.entry: list[str] = []
        self.block = "vector"
        self._words: dict[Field, str] = {}
        self._forms: dict[str, Callable[..., LlvmValue]] = {}
        self._hoisted: dict[object, LlvmValue] = {}
        """The constants, and the values that were computed in `entry` or once a row."""
        self._scopes: list[dict[object, Any]] = [{}]
        """The values that were computed for this vector, in the blocks around this place, the innermost last."""

    @contextmanager
    def writing(self, text: list[str]) -> Iterator[None]:
        """Within this context, instructions go to another part of the text."""
        before, self.text = self.text, text
        try:
            yield
        finally:
            self.text = before

    def in_entry(self, compute: Callable[[], T]) -> T:
        """Calls a function whose instructions go to `entry`."""
        with self.writing(self.entry):
            return compute()

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A block that may be skipped: its values are not available after it."""
        self._scopes.append({})
        try:
            yield
        finally:
            self._scopes.pop()

    # Values.

    def find(self, key: object) -> Any:
        """What was kept under a key in this block or one around it; None without it."""
        for scope in reversed(self._scopes):
            if key in scope:
                return scope[key]
        return None

    def keep(self, key: object, value: T) -> T:
        """Keeps a value for the rest of this block."""
        self._scopes[-1][key] = value
        return value

    def value(self, node: Node) -> LlvmValue:
        """The value of a node. Raises LookupError if it has not been computed."""
        found: LlvmValue | None = self.find(node) or self._hoisted.get(node)
        if found is None:
            raise LookupError(f"{node.op} is used before it is computed")
        return found

    def computed(self, row: OpSpec, args: Sequence[LlvmValue]) -> LlvmValue:
        """A row of the table of operators and builtins, applied in the precision of this function."""
        form = self._forms.get(row.name)
        if form is None:
            form = self._forms[row.name] = self._form(row)
        return form(*args)

    def _form(self, row: OpSpec) -> Callable[..., LlvmValue]:
        form = row.double if row.double is not None and self.floats == DOUBLE else row.native
        if form is None:
            raise TypeError(f"{row.name} has no native form")
        if not isinstance(form, str):
            return partial(form, self)
        return partial(self.library, form) if form is row.double else getattr(self, form)

    # Arguments.

    def place(self, field: Field) -> str:
        """The address of a word of the block."""
        return self.put(f"getelementptr i64, ptr %block, i64 {self.places[field]}")

    def word(self, field: Field) -> str:
        """The content of a word of the block, loaded once: an address or a number of 64 bits."""
        name = self._words.get(field)
        if name is None:
            before, self.text = self.text, self.entry
            kind = "ptr" if is_address(field) else "i64"
            name = self._words[field] = self.put(f"load {kind}, ptr {self.place(field)}, align 8")
            self.text = before
        return name

    def word_as_real(self, field: Field) -> LlvmValue:
        """A number of the block, in every lane."""
        return self._hoist(("float", field), lambda: self._word_in_lanes(field, "sitofp", "float"))

    def word_as_bits(self, field: Field) -> LlvmValue:
        return self._hoist(("u32", field), lambda: self._word_in_lanes(field, "trunc", "u32"))

    def _word_in_lanes(self, field: Field, convert: str, kind: ValueType) -> LlvmValue:
        return self.splat(self.put(f"{convert} i64 {self.word(field)} to {self.scalar(kind)}"), kind)

    def _hoist(self, key: object, compute: Callable[[], LlvmValue]) -> LlvmValue:
        """A value that is computed in `entry` when it is first used."""
        if key not in self._hoisted:
            self._hoisted[key] = self.in_entry(compute)
        return self._hoisted[key]


# In a section with more values, constants that are arguments are loaded where they are used.
_MOST_HOISTED = 1200


class FunctionWriter(ValueWriter):
    """One function over a picture, or over a line of it. It computes values of the section of `graph`.

    Its text has three parts: `entry` runs once, `outer` once a row, and `text` for each vector. Lines of the rate
    `along` are read a vector at a time, at `index`; those of rows are read at `%y`.
    """

    def __init__(
        self, kernel: Kernel, graph: Graph, isa: Isa, lanes: int, table: ArgumentTable, along: Rate,
        floats: Precision = SINGLE,
    ) -> None:  # fmt: skip
        super().__init__(isa, lanes, table.fields, floats)
        self.kernel = kernel
        self.graph = graph
        self.table = table
        self.along = along
        self.outer: list[str] = []
        self.index = "%x"
        """Where the vector begins in the lines along which the function runs."""
        self.heads: dict[str, str] = {}
        """The cell of a ring that this tick writes, by its slot, where the block of arguments does not hold it."""
        self.registers: dict[SlotPlane, LlvmValue] = {}
        """The values one tick ago of slots that are kept in registers."""
        self._is_large = len(graph.section) > _MOST_HOISTED
        self.budget = ""
        """The address of the number of steps that the nest of loops around this place may still make."""

    # Values.

    def value(self, node: Node) -> LlvmValue:
        match node.op:
            case "const" if node not in self._hoisted:
                self._hoisted[node] = self.real(node.attr)
            case "u32" if node not in self._hoisted:
                self._hoisted[node] = self.bits(node.attr)
            case "scalar":
                return self._scalar(node.attr)
            case "line":
                return self.find(node) or self._line(node.attr)
        return super().value(node)

    # Arguments.

    def _scalar(self, scalar: Scalar) -> LlvmValue:
        def load() -> LlvmValue:
            # Values other than floats take 4 bytes.
            place = self.table.scalars[scalar] * (1 if scalar.kind == "float" else self.floats.bytes // 4)
            return self.load_splat(self.word(Word.SCALARS), str(place), scalar.kind)

        return self._number(scalar) if scalar.source == "number" else self._hoist(scalar, load)

    def _number(self, number: Scalar | ReciprocalPart) -> LlvmValue:
        """A number of the kernel, or a part of its reciprocal."""

        def load() -> LlvmValue:
            return self.load_splat(self.word(Word.SCALARS), str(self.table.scalars[number]), "float")

        # Many numbers would only be moved to the stack, where vectors take more room.
        return load() if self._is_large else self._hoist(number, load)

    def reciprocal_of(self, divisor: Node) -> tuple[LlvmValue, LlvmValue] | None:
        """The parts of the reciprocal of a number of the kernel, if quotients by it are sums of products."""
        is_number = divisor.op == "scalar" and divisor.attr.source == "number"
        if not is_number or not self.fused or self.floats != SINGLE:
            return None
        value, rest = (self._number(ReciprocalPart(divisor.attr.key, part)) for part in ("value", "rest"))
        return value, rest

    def _line(self, line: Line) -> LlvmValue:
        address = self.word(line)
        if line.rate == self.along:
            return self.find(line) or self.keep(line, self.load(address, self.index, line.kind))
        if line not in self._hoisted:
            with self.writing(self.outer):
                self._hoisted[line] = self.load_splat(address, "%y", line.kind)
        return self._hoisted[line]

    def head(self, slot: str) -> str:
        """The cell of a ring that this tick writes."""
        return self.heads.get(slot) or self.word(Head(slot))


# The functions of a kernel: one for its columns, one for its rows, and one for its elements. Several threads call the
# last one at once, and each takes bands of rows until none is left.

COLUMNS, ROWS, ELEMENTS = "columns", "rows", "elements"
"""The names of the functions. Each takes the address of the block of arguments."""

WHOLE = "whole"
"""The name of a function that calls the others in order, for one thread."""


USUAL, QUICK = "#0", "#1"
"""The attributes of functions. A quick one runs so seldom that LLVM does not search for better code."""


def whole_function(names: Iterable[str]) -> list[str]:
    """A function that calls functions of these names in order."""
    return function(WHOLE, [*(f"  call void @{name}(ptr %block)" for name in names), "  ret void"])


def line_function(w: FunctionWriter, name: str, extent: Word, attributes: str) -> list[str]:
    """A function that runs the text of the writer along a line."""
    with w.writing(w.entry):
        count = w.word(extent)
        # A short line is padded to a vector.
        is_long = w.put(f"icmp sgt i64 {count}, {w.lanes}")
        length = w.put(f"select i1 {is_long}, i64 {count}, i64 {w.lanes}")
        limit = w.put(f"sub i64 {length}, {w.lanes}")
        w.jump("vector")
    return function(name, [*w.entry, *_vectors(w, limit, "entry", "done"), "done:", "  ret void"], attributes)


def band_function(w: FunctionWriter) -> list[str]:
    """A function that takes bands of rows and runs the text of the writer along each row of them."""
    with w.writing(w.entry):
        width, height, band = map(w.word, (Word.WIDTH, Word.HEIGHT, Word.BAND))
        taken = w.place(Word.NEXT)
        limit = w.put(f"sub i64 {width}, {w.lanes}")
        w.jump("band")
    rows = _vectors(w, limit, "row", "row.end", ["  %pixel = add i64 %row.start, %x"])
    return function(ELEMENTS, [
        *w.entry,
        "band:",
        f"  %band.number = atomicrmw add ptr {taken}, i64 1 monotonic",
        f"  %band.first = mul i64 %band.number, {band}",
        f"  %band.full = add i64 %band.first, {band}",
        f"  %band.cut = icmp slt i64 %band.full, {height}",
        f"  %band.end = select i1 %band.cut, i64 %band.full, i64 {height}",
        f"  %band.none = icmp sge i64 %band.first, {height}",
        "  br i1 %band.none, label %done, label %row",
        "row:",
        "  %y = phi i64 [ %band.first, %band ], [ %y.next, %row.end ]",
        f"  %row.start = mul i64 %y, {width}",
        *w.outer,
        "  br label %vector",
        *rows,
        "row.end:",
        "  %y.next = add i64 %y, 1",
        "  %y.left = icmp slt i64 %y.next, %band.end",
        "  br i1 %y.left, label %row, label %band",
        "done:",
        "  ret void",
    ])  # fmt: skip


def _vectors(w: FunctionWriter, limit: str, before: str, after: str, first: Sequence[str] = ()) -> list[str]:
    """The loop over a row. The last vector ends where the row does, and so may overlap the one before it."""
    return [
        "vector:",
        f"  %x = phi i64 [ 0, %{before} ], [ %x.next, %{w.block} ]",
        *first,
        *w.text,
        f"  %x.step = add i64 %x, {w.lanes}",
        f"  %x.fits = icmp slt i64 %x.step, {limit}",
        f"  %x.next = select i1 %x.fits, i64 %x.step, i64 {limit}",
        f"  %x.last = icmp eq i64 %x, {limit}",
        f"  br i1 %x.last, label %{after}, label %vector",
    ]


def function(name: str, body: Sequence[str], attributes: str = USUAL) -> list[str]:
    """A function that takes the block of arguments."""
    return [f"define void @{name}(ptr noalias %block) {attributes} {{", "entry:", *body, "}"]
