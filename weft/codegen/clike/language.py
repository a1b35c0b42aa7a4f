"""`Language`, the interface of a shading language, and the document into which programs are printed."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias

from weft.codegen.clike.expressions import ExpressionText, applied, choice
from weft.codegen.clike.lines import LineValue
from weft.codegen.clike.prelude import PRELUDE, bits_text, called_in, loops_in, real_text, without_loops
from weft.codegen.clike.shader import Bound, Kind, Shader, Source, Uniform
from weft.codegen.kernel import Kernel
from weft.codegen.native.target import single
from weft.ir.expr import SlotPlane, StateSlot
from weft.ir.rates import Rate
from weft.ops.spec import OpSpec

# Unique identifiers for the values of a program, made of their names in the patch.

_LONGEST = 32
# GLSL and WebGL reserve names with these prefixes.
_PRIVATE = ("gl_", "webgl_")
_LONGEST_REMARK = 100


def identifier(name: str) -> str:
    """A name as an identifier of a language like C: `flow@x` is `flow_x`."""
    text = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[:_LONGEST].strip("_")
    return f"v{text}" if not text or text[0].isdigit() or text.startswith(_PRIVATE) else text


def remark(text: str, longest: int = _LONGEST_REMARK) -> str:
    """A text for a comment: one line of at most `longest` characters, without backslashes that join lines."""
    line = " ".join(text.split()).replace("\\", "/")
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


class Identifiers:
    """The identifiers that are taken."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)
        self._counts: dict[str, int] = {}
        """The least number that may be free for each name: smaller ones are taken."""

    def copy(self) -> Identifiers:
        """The same, to which others can be added."""
        made = Identifiers(self._taken)
        made._counts.update(self._counts)
        return made

    def take(self, name: str) -> None:
        """Takes an identifier, so that it is not given to anything else."""
        self._taken.add(name)

    def new(self, name: str) -> str:
        """A new identifier for a name, with a number after it if it is taken."""
        base = identifier(name)
        made = self.unique(base, first=self._counts.get(base, 1))
        self._counts[base] = self._counts.get(base, 0) + 1
        return made

    def unique(
        self, base: str, others: Callable[[str], Iterable[str]] = lambda name: (), first: int = 1
    ) -> str:
        """The identifier itself, or with a number after it, from `first` on, if it or one of its `others` is taken."""
        count = first
        made = base if count == 1 else f"{base}_{count}"
        while not self._taken.isdisjoint((made, *others(made))):
            count += 1
            made = f"{base}_{count}"
        self._taken.add(made)
        return made


# Languages.


@dataclass(slots=True)
class FrameBlock:
    """The block of uniforms: the numbers that are the same in a whole launch and that the program reads."""

    names: Identifiers
    access: str = "frame."
    """The prefix of the name of a number where it is read."""
    uniforms: dict[tuple[Source, Kind], Uniform] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    """The comment after the declaration of a number, by its name."""

    def copy(self) -> FrameBlock:
        """The same, to which others can be added."""
        return FrameBlock(self.names.copy(), self.access, dict(self.uniforms), dict(self.remarks))

    def read(self, source: Source, name: str, kind: Kind, origin: str = "") -> str:
        """The text that reads the number from this source."""
        if (source, kind) not in self.uniforms:
            made = self.names.new(name)
            self.uniforms[source, kind] = Uniform(made, kind, source)
            if origin and origin != made:
                self.remarks[made] = remark(origin)
        return f"{self.access}{self.uniforms[source, kind].name}"


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of a program: its text, its indentation, and its place in the patch, if it has one; and the name of the
    statements (see `LineValue`) that it is part of, if it is."""

    text: str
    depth: int = 0
    place: str = ""
    part: str = ""


@dataclass(slots=True)
class ProgramParts:
    """The parts that a language assembles to a program. `outputs` and `stores` are the texts of values."""

    kernel: Kernel
    packed: bool
    frame: FrameBlock
    body: list[CodeLine] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    sure_outputs: Sequence[bool] = ()
    """For each output whether it is never NaN, whatever the inputs are."""
    stores: list[tuple[SlotPlane, str]] = field(default_factory=list)
    images: dict[str, Bound] = field(default_factory=dict)
    histories: dict[str, Bound] = field(default_factory=dict)
    pictures: dict[str, Bound] = field(default_factory=dict)
    external_reads: dict[str, Bound] = field(default_factory=dict)
    coords: list[str] = field(default_factory=list)
    """The base coordinates that are read."""
    lines: dict[str, LineValue] = field(default_factory=dict)
    """The variables that change along one axis, where the program may share them (see `LinePlan`)."""
    helpers: set[str] = field(default_factory=set)
    targets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Names for the targets of the new values of image slots, one for each plane, by the keys of the slots."""
    shared: frozenset[str] = frozenset()
    """The keys of the image slots that share their memory with others."""
    stops: bool = False
    """Whether a loop may reach its limit. Then the body sets `stopped`."""
    limits: tuple[tuple[int, float, float], ...] = ()
    """See `Shader.limits`."""


Type: TypeAlias = Literal["float", "bool", "u32", "int", "two", "four"]
"""The types of variables: a real, a truth, an unsigned and a signed number, and two or four reals."""

CPP_WORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const const_cast constexpr
    continue decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto
    if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    register reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
    xor_eq
    """.split()  # noqa: SIM905 - this is read more easily than a list of strings
)
"""The words of C++ that are no names in it, nor in languages that are made of it."""

C_TYPES: Mapping[Type, str] = MappingProxyType({"float": "float", "bool": "bool", "u32": "uint", "int": "int"})


class Language(ABC):
    """One language. The class variables are its spellings. The methods that write statements and expressions write them
    as in C, unless a language overrides them. Each language has to define how it reads memory, and the text around the
    statements."""

    name: ClassVar[str]

    types: ClassVar[Mapping[Type, str]]
    """The names of types."""
    has_fract: ClassVar[bool] = False
    """Whether there is a `fract(x)` that is `x - floor(x)` for every x."""
    by_reciprocal: ClassVar[bool] = False
    """Whether a division by a number that is an input is a product, since quotients are not exact anyway."""
    keeps_divisor: ClassVar[bool] = False
    """Whether "exact_ratio_by" is given the divisor, too, for drivers that do without the parts of 1 over it."""
    coarse_sines: ClassVar[tuple[str, str] | None] = None
    """Functions with an absolute error only, if they take less: the sine of few turns, and that of half turns."""
    skips_nan: ClassVar[bool] = False
    """Whether "min" and "max" give the number of a number and a NaN, so that they differ in the order of zeros only."""
    cells: ClassVar[tuple[str, str] | None] = None
    """Functions that find the corner of a cell in less time than a floor and its bits: a place less a multiple of 2³²,
    and the whole number below. Then `bits_of` gives the bits of the whole number below, too."""
    negates_orders: ClassVar[bool] = False
    """Whether a compiler may take !(a < b) for a >= b, which differs for NaN."""
    exact_waves: ClassVar[bool] = True
    """Whether its sines and cosines are exact to the last digits for angles of some half turns."""

    precisions: ClassVar[tuple[str, ...]] = ()
    """The lines after the version: how precise types are."""

    channels: ClassVar[str] = "rgba"
    """The names of the channels of a pixel."""
    frame_access: ClassVar[str] = "frame."
    """The prefix of the names of uniforms where they are read."""
    reserved: ClassVar[frozenset[str]] = frozenset()
    """Names that a program cannot give."""
    ring: ClassVar[str] = "past"
    """The suffix of names for the memory of a slot."""
    exact: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Functions for those `exact_values` that operations of the language do not give to the last digit."""
    spellings: ClassVar[Mapping[str, str]] = {}
    """The spelling of rows for which it differs from that in the table of operators."""
    prelude: ClassVar[Mapping[str, str]] = PRELUDE
    """The functions of the prelude that it takes."""
    helpers: ClassVar[Mapping[str, str]] = {}
    """Functions that extend or replace these."""
    field_end: ClassVar[str] = ";"
    """What is after each field of the block of uniforms."""
    words: ClassVar[Mapping[str, str]] = {}
    """Translations of the words of the prelude, and of the names of functions."""

    @property
    def worth_sharing(self) -> float:
        """How many additions it has to save each pixel that what changes along one axis is computed once for each
        column or row of a tile (see `LinePlan`); infinite if its programs cannot do that."""
        return math.inf

    @property
    def taken(self) -> frozenset[str]:
        """Names that the values of a program cannot have, in addition to those of functions."""
        return self.reserved

    def spelling(self, row: OpSpec) -> str:
        """Raises KeyError for a row that has to be expanded first."""
        spelled = self.spellings.get(row.name, row.clike)
        if spelled is None:
            raise KeyError(row.name)
        return spelled

    def word(self, function: str) -> str:
        """The name of a function in this language."""
        return self.words.get(function, function)

    def bound(self, op: str, number: float | None) -> str:
        """The function for the smaller ("min") or larger ("max") of a number that is no NaN, first, and a value. It
        gives the first if the second is NaN, or equal to it. `number` is None where it may change."""
        return op

    def real(self, value: float) -> str:
        """A number in single precision."""
        value = single(value)
        if math.isnan(value):
            return self.words["not_a_number"]
        if math.isinf(value):
            return ("-" if value < 0 else "") + self.words["infinity"]
        return real_text(value)

    def infinite(self, sign: float) -> str:
        """An infinity of this sign, as a factor."""
        return self.real(math.copysign(math.inf, sign))

    def bits(self, value: int) -> str:
        """An unsigned number of 32 bits."""
        return bits_text(value)

    def declared(self, kind: Type, name: str, value: str, varies: bool = False) -> str:
        """The declaration of a variable, which is assigned to again if it `varies`."""
        return f"{self.types[kind]} {name} = {value};"

    def applied(self, spelling: str, args: Sequence[ExpressionText]) -> ExpressionText:
        """An operation, spelled as an operator or as the name of a function."""
        return applied(spelling, args)

    def guarded(self, condition: str, statement: str) -> str:
        """A statement that runs only if a condition holds."""
        return f"if ({condition}) {statement}"

    def choice(self, condition: ExpressionText, then: ExpressionText, otherwise: ExpressionText) -> ExpressionText:
        """The value of one of two expressions."""
        return choice(condition, then, otherwise)

    def converted(self, kind: Type, value: ExpressionText) -> ExpressionText:
        """A value as one of another type; a truth becomes 1 or 0."""
        return applied(self.types[kind], [value])

    def truth(self, field: str) -> ExpressionText:
        """A field of the block of uniforms that is a truth, which is there as 1 or 0."""
        return applied("!=", [ExpressionText(field), ExpressionText("0u")])

    def field(self, entry: Uniform) -> str:
        """The declaration of a field of the block of uniforms, without its end."""
        return f"{self.types['u32' if entry.kind == 'bool' else entry.kind]} {entry.name}"

    def loop_head(self, kind: Type, name: str, start: str, condition: str, following: str) -> str:
        """The line before the steps of a loop, without its brace. The variable, of this name and type, is assigned its
        next value after each step by the statement `following`."""
        return f"for ({self.types[kind]} {name} = {start}; {condition}; {following})"

    def functions(self, names: Iterable[str], loops: bool = True) -> list[str]:
        """The texts of functions and of all that they call, callees first, with loops or without any."""
        known = {**(self.prelude if loops else without_loops(self.prelude)), **self.helpers}
        wanted: set[str] = set()
        todo = list(names)
        while todo:
            name = todo.pop()
            if name not in wanted:
                wanted.add(name)
                todo += called_in(known[name]) & known.keys()
        words = re.compile(rf"\b({'|'.join(self.words)})\b")

        def translated(line: str) -> str:
            return line if line.startswith("//") else words.sub(lambda found: self.words[found[0]], line)

        spelled = (self.function(name, text) for name, text in known.items() if name in wanted)
        return ["\n".join(map(translated, text.split("\n"))) for text in spelled]

    def function(self, name: str, text: str) -> str:
        """The text of a function, before its words are translated."""
        return text

    @property
    def function_names(self) -> frozenset[str]:
        """The functions whose texts become part of a program that calls them."""
        return frozenset((*self.prelude, *self.helpers))

    def array(self, slot: StateSlot) -> str:
        """The key of the memory that has the images of a slot: its own, or one that slots share."""
        return slot.key

    @abstractmethod
    def own(self, parts: ProgramParts, image: Bound, slot: StateSlot, layer: str) -> str:
        """An image slot at the element itself."""

    @abstractmethod
    def sampled(
        self, parts: ProgramParts, image: Bound, slot: StateSlot, layer: str, x: str | None, y: str | None
    ) -> str:
        """An image slot at a place; without x or y in the column or the row of the element itself."""

    @abstractmethod
    def remembered(self, parts: ProgramParts, history: Bound, index: str) -> str:
        """A number of the ring of a slot."""

    @abstractmethod
    def picture(self, parts: ProgramParts, picture: Bound, x: str, y: str) -> str:
        """The four channels of a picture at a place."""

    @abstractmethod
    def fetched(self, parts: ProgramParts, sound: Bound, number: str) -> str:
        """Both channels of a sample of a sound."""

    @abstractmethod
    def external_read(self, parts: ProgramParts, read: Bound, over: frozenset[Rate]) -> str:
        """The value at the element itself of an external read, which changes in the directions `over`."""

    @abstractmethod
    def program(self, parts: ProgramParts) -> Shader:
        """The whole program. Raises UnsuitableError if it needs more than the language has."""


# Documents.

_INDENT = "    "

# In a program with more loops, functions have none.
_MANY_LOOPS = 8


def block(head: str, lines: Iterable[CodeLine]) -> list[CodeLine]:
    """Lines in braces after a head."""
    return [CodeLine(f"{head} {{"), *(CodeLine(line.text, line.depth + 1, line.place) for line in lines), CodeLine("}")]


def packed_pixel(channels: Sequence[str], vector: str, opaque: str) -> str:
    """A pixel of 1, 3 or 4 channels, in a vector with this name of its type. Without an alpha it is `opaque`."""
    if len(channels) == 1:
        return f"{vector}4({vector}3({channels[0]}), {opaque})"
    return f"{vector}4({', '.join([*channels, opaque][:4])})"


def structure(language: Language, parts: ProgramParts, head: str, end: str) -> list[str]:
    """The declaration of the block of uniforms; empty without any. Complete once all statements are written."""
    fields = parts.frame.uniforms.values()
    if not fields:
        return []
    made = [f"{head} {{"]
    for entry in fields:
        remark = parts.frame.remarks.get(entry.name)
        made.append(f"{_INDENT}{language.field(entry)}{language.field_end}" + (f"  // {remark}" if remark else ""))
    return [*made, end]


def document(
    language: Language, parts: ProgramParts, top: Sequence[str], given: Iterable[Sequence[str]],
    main: Iterable[CodeLine], **facts: Any,
) -> Shader:  # fmt: skip
    """The program: its first lines, the declarations of its inputs (in groups), the functions, and the entry. `facts`
    are more fields of the shader."""
    kernel = parts.kernel
    shown = ", ".join(kernel.outputs) or "state alone"
    title = f"// {remark(f'{kernel.name} → {shown}')}"
    calls = sorted(parts.helpers)
    main = list(main)
    loops = loops_in(line.text for line in main) <= _MANY_LOOPS
    lines = [*map(CodeLine, top)]
    # The version must come first.
    lines.insert(int(top[0].startswith("#version")), CodeLine(title))
    for group in filter(None, given):
        lines += [CodeLine(""), *map(CodeLine, group)]
    first_function = len(lines)
    for text in language.functions(calls, loops):
        lines += [CodeLine(""), *map(CodeLine, text.split("\n"))]
    after_functions = len(lines)
    lines += [CodeLine(""), *main]
    return Shader(
        language=language.name,
        text="".join(f"{_INDENT * line.depth}{line.text}".rstrip() + "\n" for line in lines),
        places=tuple(line.place for line in lines),
        uniforms=tuple(parts.frame.uniforms.values()),
        images=tuple(parts.images.values()),
        histories=tuple(parts.histories.values()),
        pictures=tuple(parts.pictures.values()),
        external_reads=tuple(parts.external_reads.values()),
        coords=tuple(parts.coords),
        outputs=kernel.outputs,
        packed=parts.packed,
        stores=tuple(place for place, _ in parts.stores),
        stops=parts.stops,
        limits=parts.limits,
        calls=tuple(calls),
        functions=(first_function, after_functions),
        **facts,
    )


def shared_functions(language: Language, shaders: Iterable[Shader]) -> list[str]:
    """The functions that these programs call, each once, with an empty line before it."""
    calls = sorted({name for shader in shaders for name in shader.calls})
    return [line for text in language.functions(calls) for line in ("", *text.split("\n"))]


def without_functions(shader: Shader) -> list[str]:
    """The lines of a program without its functions."""
    lines = shader.text.splitlines()
    first, after = shader.functions
    return lines[:first] + lines[after:]
