"""Modules of WebAssembly, as bytes and as text: instructions, functions, imports and exports.

An instruction holds those that compute its operands, so that the text is the standard's S-expressions, and the bytes
follow in the order in which a stack machine runs them. Functions, locals and labels go by names; the bytes have their
numbers.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

WasmType: TypeAlias = Literal["i32", "i64", "f32", "f64", "v128"]

Immediate: TypeAlias = "str | int | float | tuple[float, ...] | tuple[int, ...] | None"
"""What is part of an instruction: a name, a number, the lanes of a constant, or the offset of an access to memory."""

TYPES: Mapping[WasmType, int] = MappingProxyType({"i32": 0x7F, "i64": 0x7E, "f32": 0x7D, "f64": 0x7C, "v128": 0x7B})

# What follows the code of an instruction in the bytes.
_Follows: TypeAlias = Literal[
    "", "i32", "i64", "f64", "local", "label", "function", "memory", "data", "lane", "lanes", "pair"
]  # fmt: skip


class Opcode(NamedTuple):
    """The bytes of an instruction, the type of what it gives, and what its immediate is. For an access to memory,
    `alignment` is the logarithm of its bytes to base 2."""

    code: bytes
    gives: WasmType | None
    follows: _Follows = ""
    alignment: int = 0


def _rows(gives: WasmType | None, names: str, start: int, *prefix: int) -> dict[str, Opcode]:
    """Opcodes one after another; `_` is one that is not used here."""
    listed = {name: _unsigned(code) if prefix else bytes([code]) for code, name in enumerate(names.split(), start)}
    return {name: Opcode(bytes(prefix) + code, gives) for name, code in listed.items() if name != "_"}


def _unsigned(value: int) -> bytes:
    """LEB128 of a number that is not negative."""
    made = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        made.append(low | (0x80 if value else 0))
        if not value:
            return bytes(made)


def _signed(value: int) -> bytes:
    """LEB128 of a number."""
    made = bytearray()
    while True:
        low = value & 0x7F
        value >>= 7
        if value == (-1 if low & 0x40 else 0):
            made.append(low)
            return bytes(made)
        made.append(low | 0x80)


def _compared(kind: str, start: int) -> dict[str, Opcode]:
    signs = "eqz eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u" if kind[0] == "i" else "eq ne lt gt le ge"
    return _rows("i32", " ".join(f"{kind}.{sign}" for sign in signs.split()), start)


_WHOLE = "add sub mul div_s div_u rem_s rem_u and or xor shl shr_s shr_u"
_REAL = "abs neg ceil floor trunc nearest sqrt add sub mul div min max copysign"


def _computed(kind: WasmType, start: int) -> dict[str, Opcode]:
    names = _WHOLE if kind[0] == "i" else _REAL
    return _rows(kind, " ".join(f"{kind}.{name}" for name in names.split()), start)


_SIMD = 0xFD

OPCODES: Mapping[str, Opcode] = MappingProxyType({
    "block": Opcode(b"\x02", None), "loop": Opcode(b"\x03", None), "if": Opcode(b"\x04", None),
    "br": Opcode(b"\x0c", None, "label"), "br_if": Opcode(b"\x0d", None, "label"),
    "return": Opcode(b"\x0f", None), "call": Opcode(b"\x10", None, "function"), "drop": Opcode(b"\x1a", None),
    "select": Opcode(b"\x1b", None),
    "local.get": Opcode(b"\x20", None, "local"), "local.set": Opcode(b"\x21", None, "local"),
    "i32.load": Opcode(b"\x28", "i32", "memory", 2), "i64.load": Opcode(b"\x29", "i64", "memory", 3),
    "f32.load": Opcode(b"\x2a", "f32", "memory", 2), "f64.load": Opcode(b"\x2b", "f64", "memory", 3),
    "i32.store": Opcode(b"\x36", None, "memory", 2), "i64.store": Opcode(b"\x37", None, "memory", 3),
    "f64.store": Opcode(b"\x39", None, "memory", 3), "memory.init": Opcode(b"\xfc\x08", None, "data"),
    "memory.copy": Opcode(b"\xfc\x0a\0\0", None),
    "i32.const": Opcode(b"\x41", "i32", "i32"), "i64.const": Opcode(b"\x42", "i64", "i64"),
    "f64.const": Opcode(b"\x44", "f64", "f64"),
    **_compared("i32", 0x45), **_compared("i64", 0x50), **_compared("f32", 0x5B), **_compared("f64", 0x61),
    **_computed("i32", 0x6A), **_computed("i64", 0x7C), **_computed("f64", 0x99),
    **_rows("i32", "i32.wrap_i64", 0xA7), **_rows("i64", "i64.extend_i32_s i64.extend_i32_u", 0xAC),
    **_rows("f32", "f32.demote_f64", 0xB6), **_rows("f64", "f64.convert_i32_s f64.convert_i32_u", 0xB7),
    **_rows("f64", "f64.convert_i64_s", 0xB9),
    **_rows("f64", "f64.promote_f32", 0xBB), **_rows("i64", "i64.reinterpret_f64", 0xBD),
    **_rows("f64", "f64.reinterpret_i64", 0xBF),
    **_rows("i32", "i32.trunc_sat_f64_s", 2, 0xFC), **_rows("i64", "i64.trunc_sat_f64_s", 6, 0xFC),
    # Pairs of doubles, and what is in their lanes.
    "v128.load": Opcode(b"\xfd\x00", "v128", "memory", 4), "v128.store": Opcode(b"\xfd\x0b", None, "memory", 4),
    "v128.load64_splat": Opcode(b"\xfd\x0a", "v128", "memory", 3),
    "v128.const": Opcode(b"\xfd\x0c", "v128", "pair"), "i8x16.shuffle": Opcode(b"\xfd\x0d", "v128", "lanes"),
    **_rows("v128", "i32x4.splat i64x2.splat _ f64x2.splat", 17, _SIMD),
    "i32x4.extract_lane": Opcode(b"\xfd\x1b", "i32", "lane"), "i64x2.extract_lane": Opcode(b"\xfd\x1d", "i64", "lane"),
    "f64x2.extract_lane": Opcode(b"\xfd\x21", "f64", "lane"), "f64x2.replace_lane": Opcode(b"\xfd\x22", "v128", "lane"),
    **_rows("v128", "f64x2.eq f64x2.ne f64x2.lt f64x2.gt f64x2.le f64x2.ge", 71, _SIMD),
    **_rows("v128", "v128.not v128.and v128.andnot v128.or v128.xor v128.bitselect", 77, _SIMD),
    **_rows("i32", "v128.any_true", 83, _SIMD),
    **_rows("v128", "f32x4.demote_f64x2_zero f64x2.promote_low_f32x4", 94, _SIMD),
    **_rows("v128", "f64x2.ceil f64x2.floor", 116, _SIMD), **_rows("v128", "f64x2.trunc", 122, _SIMD),
    **_rows("v128", "f64x2.nearest", 148, _SIMD),
    **_rows("v128", "i32x4.shl i32x4.shr_s i32x4.shr_u i32x4.add", 171, _SIMD),
    **_rows("v128", "i32x4.sub", 177, _SIMD), **_rows("v128", "i32x4.mul", 181, _SIMD),
    **_rows("v128", "i64x2.shl i64x2.shr_s _ i64x2.add", 203, _SIMD), **_rows("v128", "i64x2.sub", 209, _SIMD),
    **_rows("v128", "f64x2.abs f64x2.neg _ f64x2.sqrt f64x2.add f64x2.sub f64x2.mul f64x2.div", 236, _SIMD),
    **_rows("v128", "f64x2.pmin f64x2.pmax", 246, _SIMD),
    **_rows("v128", "i32x4.trunc_sat_f64x2_s_zero _ f64x2.convert_low_i32x4_s f64x2.convert_low_i32x4_u", 252, _SIMD),
})  # fmt: skip
"""The instructions that weft writes, by their names in the text."""


@dataclass(frozen=True, slots=True, eq=False)
class WasmInstruction:
    """One instruction, after those that compute its operands. A block, a loop or an `if` has a body and a label
    (`immediate`; an `if` has none)."""

    op: str
    args: tuple[WasmInstruction, ...] = ()
    immediate: Immediate = None
    body: tuple[WasmInstruction, ...] = ()


@dataclass(frozen=True)
class WasmFunction:
    """A function. Parameters and locals are pairs of a name and a type. An exported one has its name outside, too."""

    name: str
    params: tuple[tuple[str, WasmType], ...]
    gives: tuple[WasmType, ...]
    locals: tuple[tuple[str, WasmType], ...]
    body: tuple[WasmInstruction, ...]
    exported: bool = False
    doc: str = ""

    @property
    def type(self) -> _FunctionType:
        return tuple(kind for _, kind in self.params), self.gives


_FunctionType: TypeAlias = tuple[tuple[WasmType, ...], tuple[WasmType, ...]]


@dataclass(frozen=True)
class ImportedFunction:
    """A function that the host gives: the module and the name of the import, and the name in this module."""

    module: str
    field: str
    name: str
    takes: tuple[WasmType, ...]
    gives: tuple[WasmType, ...]

    @property
    def type(self) -> _FunctionType:
        return self.takes, self.gives


@dataclass(frozen=True)
class WasmModule:
    """A module that imports one memory, and functions."""

    memory: tuple[str, str]
    functions: tuple[WasmFunction, ...]
    imports: tuple[ImportedFunction, ...] = ()
    data: tuple[bytes, ...] = ()
    """What `memory.init` copies to the memory, by its number."""
    remark: str = ""

    @property
    def _all(self) -> list[ImportedFunction | WasmFunction]:
        """The functions in the order of their numbers."""
        return [*self.imports, *self.functions]

    def encoded(self) -> bytes:
        """The bytes of the module."""
        types = list(dict.fromkeys(each.type for each in self._all))
        numbers = {each.name: number for number, each in enumerate(self._all)}
        sections = [
            (1, [b"\x60" + _vector(map(_type, takes)) + _vector(map(_type, gives)) for takes, gives in types]),
            (2, [
                b"".join(map(_name, self.memory)) + b"\x02\x00\x01",
                *(_name(i.module) + _name(i.field) + b"\x00" + _unsigned(types.index(i.type)) for i in self.imports),
            ]),
            (3, [_unsigned(types.index(each.type)) for each in self.functions]),
            (7, [_name(f.name) + b"\x00" + _unsigned(numbers[f.name]) for f in self.functions if f.exported]),
            (12, None),
            (10, [_sized(_Encoder(each, numbers).code()) for each in self.functions]),
            (11, [b"\x01" + _sized(data) for data in self.data]),
        ]  # fmt: skip
        made = [
            bytes([number]) + _sized(_unsigned(len(self.data)) if items is None else _vector(items))
            for number, items in sections
            if (self.data if items is None else items)
        ]
        return b"\0asm\x01\0\0\0" + b"".join(made)

    def text(self) -> str:
        """The module in the text format of the standard."""
        remark = [f";; {line}" for line in self.remark.splitlines()]
        module, memory = self.memory
        lines = [*remark, "(module", f'  (import "{module}" "{memory}" (memory 1))']
        for each in self.imports:
            typed = _typed((("", kind) for kind in each.takes), each.gives)
            lines.append(f'  (import "{each.module}" "{each.field}" (func ${each.name}{typed}))')
        for function in self.functions:
            lines += _function_text(function)
        lines += [f'  (data $data.{number} "{_escaped(data)}")' for number, data in enumerate(self.data)]
        return "\n".join([*lines, ")", ""])


# Bytes.


def _sized(data: bytes) -> bytes:
    return _unsigned(len(data)) + data


def _name(text: str) -> bytes:
    return _sized(text.encode())


def _vector(items: Iterable[bytes]) -> bytes:
    listed = list(items)
    return _unsigned(len(listed)) + b"".join(listed)


def _type(kind: WasmType) -> bytes:
    return bytes([TYPES[kind]])


def custom_section(name: str, content: bytes) -> bytes:
    """The bytes of a section that means nothing to the machine. It may follow those of a module."""
    return b"\x00" + _sized(_name(name) + content)


_END, _NOTHING = b"\x0b", b"\x40"


@dataclass
class _Encoder:
    """Encodes the body of one function."""

    function: WasmFunction
    functions: Mapping[str, int]
    labels: list[str] = field(default_factory=list)

    def code(self) -> bytes:
        function = self.function
        names = [name for name, _ in (*function.params, *function.locals)]
        self.locals = {name: _unsigned(number) for number, name in enumerate(names)}
        runs = [(kind, len(list(group))) for kind, group in groupby(kind for _, kind in function.locals)]
        return _vector(_unsigned(count) + _type(kind) for kind, count in runs) + self.all_of(function.body) + _END

    def all_of(self, body: Sequence[WasmInstruction]) -> bytes:
        return b"".join(map(self.one, body))

    def one(self, each: WasmInstruction) -> bytes:
        opcode = OPCODES[each.op]
        if opcode.follows == "local":
            return b"".join([*map(self.one, each.args), opcode.code, self.locals[str(each.immediate)]])
        before = self.all_of(each.args)
        if not opcode.follows and each.immediate is None and not each.body:
            return before + opcode.code
        if each.op not in ("block", "loop", "if"):
            return before + opcode.code + self.immediate(opcode, each.immediate)
        self.labels.append(str(each.immediate))
        inside = self.all_of(each.body)
        self.labels.pop()
        return before + opcode.code + _NOTHING + inside + _END

    def immediate(self, opcode: Opcode, value: Immediate) -> bytes:
        match opcode.follows, value:
            case ("i32" | "i64"), int(number):
                bits = int(opcode.follows[1:])
                return _signed(number - (1 << bits) if number >> bits - 1 == 1 else number)
            case "f64", float(number):
                return struct.pack("<d", number)
            case "function", str(name):
                return _unsigned(self.functions[name])
            case "label", str(name):
                return _unsigned(self.labels[::-1].index(name))
            case "memory", int(offset):
                return _unsigned(opcode.alignment) + _unsigned(offset)
            case "data", int(number):
                return _unsigned(number) + b"\0"
            case "lane", int(lane):
                return bytes([lane])
            case "pair", (float(low), float(high)):
                return struct.pack("<2d", low, high)
            case "lanes", tuple(lanes):
                return bytes(map(int, lanes))
        raise TypeError(f"{opcode} with {value!r}")


# Text.

_WIDE = 100
"""An instruction with its operands is one line if it is no longer than this."""


def _typed(params: Iterable[tuple[str, WasmType]], gives: Iterable[WasmType]) -> str:
    listed = [f" (param ${name} {kind})" if name else f" (param {kind})" for name, kind in params]
    return "".join([*listed, *(f" (result {kind})" for kind in gives)])


def _function_text(function: WasmFunction) -> Iterator[str]:
    if function.doc:
        yield f"  ;; {function.doc}"
    export = f' (export "{function.name}")' if function.exported else ""
    yield f"  (func ${function.name}{export}{_typed(function.params, function.gives)}"
    for kind, group in groupby(function.locals, key=lambda each: each[1]):
        names = [f"(local ${name} {kind})" for name, _ in group]
        for start in range(0, len(names), 4):
            yield f"    {' '.join(names[start : start + 4])}"
    for each in function.body:
        yield from _lines(each, 4)
    yield "  )"


def _lines(each: WasmInstruction, indent: int) -> Iterator[str]:
    space = " " * indent
    if each.op in ("block", "loop"):
        yield f"{space}({each.op} ${each.immediate}"
        yield from (line for inner in each.body for line in _lines(inner, indent + 2))
        yield f"{space})"
    elif each.op == "if":
        yield f"{space}(if"
        yield from (line for inner in each.args for line in _lines(inner, indent + 2))
        yield f"{space}  (then"
        yield from (line for inner in each.body for line in _lines(inner, indent + 4))
        yield f"{space}  )"
        yield f"{space})"
    else:
        flat = _flat(each)
        if len(flat) + indent <= _WIDE or not each.args:
            yield space + flat
        else:
            yield f"{space}({_head(each)}"
            yield from (line for inner in each.args for line in _lines(inner, indent + 2))
            yield f"{space})"


def _flat(each: WasmInstruction) -> str:
    return f"({' '.join([_head(each), *map(_flat, each.args)])})"


def _head(each: WasmInstruction) -> str:
    match OPCODES[each.op].follows, each.immediate:
        case "", None:
            return each.op
        case ("local" | "label" | "function"), str(name):
            return f"{each.op} ${name}"
        case "memory", int(offset):
            return f"{each.op} offset={offset}" if offset else each.op
        case "data", int(number):
            return f"{each.op} $data.{number}"
        case "pair", (float(low), float(high)):
            return f"{each.op} f64x2 {_number(low)} {_number(high)}"
        case "lanes", tuple(lanes):
            return f"{each.op} {' '.join(map(str, lanes))}"
        case _, float(number):
            return f"{each.op} {_number(number)}"
        case _, value:
            return f"{each.op} {value}"


def _escaped(data: bytes) -> str:
    return "".join(f"\\{byte:02x}" for byte in data)


def _number(value: float) -> str:
    """A double as text, to the bit."""
    if math.isnan(value):
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return f"{'-' if bits >> 63 else ''}nan:0x{bits & (1 << 52) - 1:x}"
    return repr(value)
