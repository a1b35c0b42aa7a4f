"""WGSL, the language of WebGPU: compute kernels for pictures, planes and lists of points, an element for each thread.

The inputs of a kernel are the bindings of group 0, in the order of `Shader.buffers`. No pointer to them can be passed,
so what reads a buffer between its items is a function for that buffer. Launches are rows of groups, and may be rounded
up. Compilers may assume that there is neither NaN nor infinity, refuse both as constants, and divide inexactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

from weft.codegen.clike.buffers import ENDS, Given, Item, KernelLanguage, KernelNames
from weft.codegen.clike.expressions import ExpressionText, applied
from weft.codegen.clike.language import CodeLine, ProgramParts, Type, block
from weft.codegen.clike.prelude import EXACT, HALF_TURNS, ORDERS, PRELUDE
from weft.codegen.clike.shader import Bound, Shader, Uniform, UnsuitableError
from weft.ir.expr import StateSlot

GROUP = 64
"""The threads of a group."""

_MOST_NUMBERS = 16384  # every device has room for them in a block of uniforms

_ITEMS: Mapping[Item, str] = MappingProxyType({
    "real": "array<f32>", "pixel": "array<u32>", "two": "array<vec2f>", "four": "array<vec4f>", "limit": "atomic<u32>",
})  # fmt: skip

# Functions for each buffer that is read by them: BUFFER is its name, ITEM the type of its items.
_READERS: Mapping[str, str] = MappingProxyType({
    "between": """\
// BUFFER between the four items around a place; clamped at the edge. An item with a weight of 0 takes no part.
fn NAME(first: u32, columns: u32, rows: u32, x: f32, y: f32) -> ITEM {
    let across = place(number_or(x, 0.0), i32(columns));
    let down = place(number_or(y, 0.0), i32(rows));
    let left = u32(across);
    let right = min(left + 1u, columns - 1u);
    let upper = first + u32(down) * columns;
    let lower = first + min(u32(down) + 1u, rows - 1u) * columns;
    let weight = across - f32(left);
    let rest = down - floor(down);
    let upper_left = BUFFER[upper + left];
    let lower_left = BUFFER[lower + left];
    let above = select(upper_left, upper_left + (BUFFER[upper + right] - upper_left) * weight, weight > 0.0);
    let below = select(lower_left, lower_left + (BUFFER[lower + right] - lower_left) * weight, weight > 0.0);
    return select(above, above + (below - above) * rest, rest > 0.0);
}""",
    "between_columns": """\
// A row of BUFFER between two items; clamped at the edge. An item with a weight of 0 takes no part.
fn NAME(first: u32, columns: u32, x: f32) -> ITEM {
    let across = place(number_or(x, 0.0), i32(columns));
    let left = u32(across);
    let weight = across - f32(left);
    let found = BUFFER[first + left];
    let other = BUFFER[first + min(left + 1u, columns - 1u)];
    return select(found, found + (other - found) * weight, weight > 0.0);
}""",
    "between_rows": """\
// A column of BUFFER between two items; clamped at the edge. An item with a weight of 0 takes no part.
fn NAME(first: u32, columns: u32, rows: u32, y: f32) -> ITEM {
    let down = place(number_or(y, 0.0), i32(rows));
    let weight = down - floor(down);
    let found = BUFFER[first + u32(down) * columns];
    let other = BUFFER[first + min(u32(down) + 1u, rows - 1u) * columns];
    return select(found, found + (other - found) * weight, weight > 0.0);
}""",
    "fetched": """\
// A sample of BUFFER by its number, left and right; 0 where there is none.
fn NAME(first: u32, samples: u32, number: f32) -> ITEM {
    let given = number_or(number, -1.0);
    let is_there = given >= 0.0 && given < f32(samples);
    return select(ITEM(0.0, 0.0), BUFFER[first + u32(select(0.0, given, is_there))], is_there);
}""",
})  # fmt: skip

_RESERVED = frozenset(
    """
    alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if let
    loop override requires return struct switch true var while NULL Self abstract active alignas alignof as asm
    asm_fragment async attribute auto await become cast catch class co_await co_return co_yield coherent column_major
    common compile compile_fragment concept const_cast consteval constexpr constinit crate debugger decltype delete
    demote demote_to_helper do dynamic_cast enum explicit export extends extern external fallthrough filter final
    finally friend from fxgroup get goto groupshared highp impl implements import inline instanceof interface layout
    lowp macro macro_rules match mediump meta mod module move mut mutable namespace new nil noexcept noinline
    nointerpolation non_coherent noncoherent noperspective null nullptr of operator package packoffset partition pass
    patch pixelfragment precise precision premerge priv protected pub public readonly ref regardless register
    reinterpret_cast require resource restrict self set shared sizeof smooth snorm static static_assert static_cast std
    subroutine super target template this thread_local throw trait try type typedef typeid typename typeof union unless
    unorm unsafe unsized use using varying virtual volatile wgsl where with writeonly yield bool f16 f32 i32 u32 vec2
    vec3 vec4 vec2f vec2i vec2u vec3f vec3i vec3u vec4f vec4i vec4u array atomic ptr bitcast all any select abs atan2
    ceil clamp cos cross distance dot exp exp2 floor fma fract length log log2 max min mix normalize pow round saturate
    sign sin smoothstep sqrt step tan trunc arrayLength atomicLoad atomicStore atomicAdd atomicMax atomicMin nan_bits
    infinity_bits at groups id count pixels values frame Frame met_limit main
    """.split()  # noqa: SIM905 - this is read more easily than a list of strings
)

# The name and type of an input, and a call of a function that reads one.
_GIVEN = re.compile(r"> (\w+): (?:array<)?([^>\n]+)")
_READER = re.compile(rf"\b(({'|'.join(_READERS)})__(\w+))\(")

# The parts of the shared functions.
_HEAD = re.compile(r"(\w+) (\w+)\((.*)\) \{")
_DECLARATION = re.compile(r"( +)(f32|u32|i32|bool|vec2f) (\w+) = (.*);")
_ASSIGNMENT = re.compile(r"^( +(?:return |\w+ [-+]?= ))(.*);$")
_GUARD = re.compile(r"( +)if \((.*)\) return (.*);")
_INNERMOST = re.compile(r"\(([^()]*)\)")
_HELD = re.compile("\0(\\d+)\0")

_TRUTHS = ("<", "<=", ">", ">=", "==", "!=", "&&", "||")


@dataclass(frozen=True)
class Wgsl(KernelLanguage):
    """What all implementations have, without extensions."""

    top: ClassVar[tuple[str, ...]] = (
        "// NaN and infinity, which may not be constants.",
        "var<private> nan_bits: u32 = 0x7fc00000u;",
        "var<private> infinity_bits: u32 = 0x7f800000u;",
    )
    # Of some devices; one that takes fewer refuses the program, which then runs elsewhere.
    most_buffers: ClassVar[int] = 28
    field_end: ClassVar[str] = ","

    name: ClassVar[str] = "wgsl"
    types: ClassVar[Mapping[Type, str]] = MappingProxyType(
        {"float": "f32", "bool": "bool", "u32": "u32", "int": "i32", "two": "vec2f", "four": "vec4f"}
    )
    # A sine may have an error of 2⁻¹¹.
    exact_waves: ClassVar[bool] = False
    reserved: ClassVar[frozenset[str]] = _RESERVED
    prelude: ClassVar[Mapping[str, str]] = MappingProxyType({**ORDERS, **PRELUDE})
    helpers: ClassVar[Mapping[str, str]] = MappingProxyType({**HALF_TURNS, **ENDS})
    exact: ClassVar[Mapping[str, str]] = EXACT
    words: ClassVar[Mapping[str, str]] = MappingProxyType({
        "float": "f32", "uint": "u32", "int": "i32", "uchar": "u32", "pair": "vec2f", "bits_in": "bitcast<u32>",
        "real_in": "bitcast<f32>", "nearest": "round", "min": "least", "max": "most",
        "not_a_number": "bitcast<f32>(nan_bits)", "infinity": "bitcast<f32>(infinity_bits)",
    })  # fmt: skip

    def declared(self, kind: Type, name: str, value: str, varies: bool = False) -> str:
        return f"{'var' if varies else 'let'} {name}: {self.types[kind]} = {value};"

    def applied(self, spelling: str, args: Sequence[ExpressionText]) -> ExpressionText:
        if spelling == "!=":  # that of some compilers is false for NaN
            return applied("!", [applied("==", args)])
        # The language has no order between these two.
        other = {"&&": "||", "||": "&&"}.get(spelling)
        return applied(spelling, [_grouped(arg) if other and arg.symbol == other else arg for arg in args])

    def choice(self, condition: ExpressionText, then: ExpressionText, otherwise: ExpressionText) -> ExpressionText:
        # What is between "<" and ">" in two arguments would be read as the parameters of a template.
        return applied("select", [_grouped(otherwise), _grouped(then), condition])

    def field(self, entry: Uniform) -> str:
        return f"{entry.name}: {self.types['u32' if entry.kind == 'bool' else entry.kind]}"

    def loop_head(self, kind: Type, name: str, start: str, condition: str, following: str) -> str:
        return f"for (var {name}: {self.types[kind]} = {start}; {condition}; {following})"

    def guarded(self, condition: str, statement: str) -> str:
        return f"if ({condition}) {{ {statement} }}"

    def functions(self, names: Iterable[str], loops: bool = True) -> list[str]:
        return [_translated(text) for text in super().functions(names, loops)]

    def reading(self, parts: ProgramParts, function: str, buffer: Bound, start: str, *more: str) -> str:
        parts.helpers.update(name for name in ("place", "number_or") if f"{name}(" in _READERS[function])
        return f"{function}__{buffer.name}({', '.join([start or '0u', *more])})"

    def factor(self, layer: str, slot: StateSlot) -> str:
        return f"{layer}u" if layer.isdigit() else f"u32({layer})"

    def packed(self, channels: Sequence[str]) -> str:
        if len(channels) == 1:
            return f"({channels[0]} * 0x10101u) | 0xff000000u"
        shifted = [f"({channel} << {8 * at}u)" if at else channel for at, channel in enumerate(channels)]
        return " | ".join([*shifted, "0xff000000u"][:4])

    def frame(self, name: str) -> str:
        return f"var<uniform> frame: {name}"

    def buffer(self, kind: Item, name: str, written: bool) -> str:
        return f"var<storage, {'read_write' if written else 'read'}> {name}: {_ITEMS[kind]}"

    def parameters(self, given: Sequence[Given]) -> list[str]:
        return [f"@group(0) @binding({at}) {each.text};{each.remark}" for at, each in enumerate(given)]

    def start(self) -> list[CodeLine]:
        return [CodeLine(f"let id: u32 = at.x + at.y * groups.x * {GROUP}u;")]

    def stopped(self) -> str:
        return "atomicStore(&met_limit, 1u);"

    def definition(self, names: KernelNames, given: Sequence[Given], body: Sequence[CodeLine]) -> list[CodeLine]:
        """The variables, what reads them, and the kernel, with whose name all others begin in a file of several."""
        lines = [CodeLine(text) for text in self.parameters(given)]
        buffers = dict(_GIVEN.findall("\n".join(each.text for each in given)))
        readers = dict.fromkeys(found for line in body for found in _READER.findall(line.text))
        for name, function, buffer in readers:
            text = _READERS[function].replace("NAME", name).replace("BUFFER", buffer).replace("ITEM", buffers[buffer])
            lines += [CodeLine(""), *map(CodeLine, text.split("\n"))]
        head = f"fn {names.entry}(@builtin(global_invocation_id) at: vec3u, @builtin(num_workgroups) groups: vec3u)"
        lines += [CodeLine(""), CodeLine(f"@compute @workgroup_size({GROUP})"), *block(head, body)]
        if not self.file:
            return lines
        own = re.compile(rf"(?<![\w.])({'|'.join([*buffers, *(name for name, *_ in readers)])})\b")
        return [
            line if line.text.startswith("//") else replace(line, text=own.sub(rf"{names.entry}__\1", line.text))
            for line in lines
        ]

    def program(self, parts: ProgramParts) -> Shader:
        shader = super().program(parts)
        if len(shader.uniforms) > _MOST_NUMBERS:
            raise UnsuitableError(f"it needs {len(shader.uniforms)} numbers, and {_MOST_NUMBERS} is the limit")
        return shader


def _grouped(operand: ExpressionText) -> ExpressionText:
    """An operand in parentheses if it is a comparison, or made of truths."""
    return ExpressionText(f"({operand.text})") if operand.symbol in _TRUTHS else operand


def _translated(text: str) -> str:
    """A shared function, which has the words of the language already, as the language writes it."""
    lines = text.split("\n")
    assigned = {name for line in lines for name in re.findall(r"^ +(\w+) [-+]?= ", line)}

    def statement(line: str) -> str:
        if line.startswith("//"):
            return line
        if found := _HEAD.fullmatch(line):
            given = [each.split(" ") for each in found[3].split(", ")]
            return f"fn {found[2]}({', '.join(f'{name}: {kind}' for kind, name in given)}) -> {found[1]} {{"
        if found := _DECLARATION.fullmatch(line):
            keyword = "var" if found[3] in assigned else "let"
            return f"{found[1]}{keyword} {found[3]}: {found[2]} = {_selected(found[4])};"
        if found := _GUARD.fullmatch(line):
            return f"{found[1]}if ({found[2]}) {{ return {_selected(found[3])}; }}"
        return _ASSIGNMENT.sub(lambda found: f"{found[1]}{_selected(found[2])};", line)

    return "\n".join(map(statement, lines))


def _selected(text: str) -> str:
    """An expression in which every choice of C, "a ? b : c", becomes a call."""
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        held.append(f"({_choices(found[1])})")
        return f"\0{len(held) - 1}\0"

    while (shorter := _INNERMOST.sub(hold, text)) != text:
        text = shorter
    text = _choices(text)
    while "\0" in text:
        text = _HELD.sub(lambda found: held[int(found[1])], text)
    return text


def _choices(text: str) -> str:
    """Expressions without parentheses, after commas."""

    def chosen(expression: str) -> str:
        condition, is_choice, rest = expression.partition(" ? ")
        then, _, otherwise = rest.partition(" : ")
        return f"select({chosen(otherwise)}, {then}, {condition})" if is_choice else expression

    return ", ".join(map(chosen, text.split(", ")))
