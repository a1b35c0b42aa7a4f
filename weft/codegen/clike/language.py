"""What a shading language says of itself, and the document that programs are printed into."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from weft.codegen.clike.prelude import PRELUDE, Helper, real_text, single
from weft.codegen.clike.shader import Bound, BufferSpec, Kind, Shader, Source, Uniform
from weft.codegen.kernel import Kernel
from weft.ir.expr import SlotPlane, StateSlot
from weft.ir.rates import Rate
from weft.ops.spec import OpSpec

# Names for the values of a program: identifiers made of what the patch calls them, each once.

_LONGEST = 32
# No program of GLSL may define a name that begins like this.
_PRIVATE = "gl_"
_LONGEST_REMARK = 100


def identifier(name: str) -> str:
    """What of a name a language like C takes: `flow@x` is `flow_x`."""
    text = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[:_LONGEST].strip("_")
    return f"v{text}" if not text or text[0].isdigit() or text.startswith(_PRIVATE) else text


def remark(text: str, longest: int = _LONGEST_REMARK) -> str:
    """What can stand in a comment: one line, which no backslash joins to the next; cut where it is long."""
    line = " ".join(text.split()).replace("\\", "/")
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


class Identifiers:
    """Identifiers that are taken, and new ones."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)

    def take(self, name: str) -> None:
        """Keeps an identifier from being given."""
        self._taken.add(name)

    def new(self, name: str) -> str:
        """An identifier for a name; with a number behind it, if it is taken."""
        return self.unique(identifier(name))

    def unique(self, base: str, others: Callable[[str], Iterable[str]] = lambda name: ()) -> str:
        """An identifier as it is; with a number after it, if it or one of the `others` that go with it is taken."""
        made, count = base, 1
        while not self._taken.isdisjoint((made, *others(made))):
            count += 1
            made = f"{base}_{count}"
        self._taken.add(made)
        return made


# What differs between the languages like C that a program can be written in.


@dataclass(slots=True)
class FrameBlock:
    """The block of numbers that are the same in a whole launch, as far as the program reads them."""

    names: Identifiers
    uniforms: dict[Source, Uniform] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    """What stands behind a number's declaration, by its name."""

    def read(self, source: Source, name: str, kind: Kind, origin: str = "") -> str:
        """The text that reads a number, which comes from there."""
        if source not in self.uniforms:
            made = self.names.new(name)
            self.uniforms[source] = Uniform(made, kind, source)
            if origin and origin != made:
                self.remarks[made] = remark(origin)
        return f"frame.{self.uniforms[source].name}"


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of a program: how deep it is indented, and where in the patch it comes from, if anywhere."""

    text: str
    depth: int = 0
    place: str = ""


@dataclass(slots=True)
class ProgramParts:
    """What a language puts together to a program. `outputs` and `stores` are texts of values."""

    kernel: Kernel
    packed: bool
    frame: FrameBlock
    body: list[CodeLine]
    outputs: list[str]
    stores: list[tuple[SlotPlane, str]]
    images: dict[str, Bound]
    histories: dict[str, Bound]
    pictures: dict[str, Bound]
    asked: dict[str, Bound]
    coords: list[str]
    """The base coordinates that are read."""
    helpers: set[str]
    stops: bool
    """Whether a loop may meet its limit: then the body sets `stopped`."""


class Language(ABC):
    """One language. The class variables say how it spells things; the methods what it reads memory by, and what stands
    around the statements."""

    name: ClassVar[str]
    suffix: ClassVar[str] = ""
    """Behind real numbers."""
    has_fract: ClassVar[bool] = False
    """Whether there is a `fract(x)` that is `x - floor(x)` for every x."""
    plain_waves: ClassVar[float] = 0.0
    """The language's own sine and cosine are good up to so many half turns."""
    reserved: ClassVar[frozenset[str]] = frozenset()
    """Names that a program cannot give."""
    ring: ClassVar[str] = "past"
    """What stands behind the name of a slot in that of its memory."""
    whole_ratio: ClassVar[str | None] = None
    """The function that is used for floor(a / b), where a quotient is not always the nearest number."""
    spellings: ClassVar[Mapping[str, str]] = {}
    """Rows that are spelled otherwise than the table of operators has it."""
    helpers: ClassVar[Mapping[str, Helper]] = {}
    """Functions besides the prelude's, or instead of them."""
    words: ClassVar[Mapping[str, str]] = {}
    """What the words of the prelude are, and functions of other names."""

    @property
    def taken(self) -> frozenset[str]:
        """Names that a value of a program cannot get, besides those of functions."""
        return self.reserved

    def spelling(self, row: OpSpec) -> str:
        """Raises KeyError for a row that has to be expanded first."""
        spelled = self.spellings.get(row.name, row.clike)
        if spelled is None:
            raise KeyError(row.name)
        return spelled

    def word(self, function: str) -> str:
        """What a function, or an operator, is called here."""
        return self.words.get(function, function)

    def real(self, value: float) -> str:
        """A number in single precision."""
        value = single(value)
        if math.isnan(value):
            return self.words["not_a_number"]
        if math.isinf(value):
            return ("-" if value < 0 else "") + self.words["infinity"]
        return real_text(value) + self.suffix

    def infinite(self, sign: float) -> str:
        """An infinity of this sign, as a factor."""
        return self.real(math.copysign(math.inf, sign))

    def functions(self, names: Iterable[str]) -> list[str]:
        """The texts of functions and of all that they call, callees first."""
        known = {**PRELUDE, **self.helpers}
        wanted: set[str] = set()
        todo = list(names)
        while todo:
            name = todo.pop()
            if name not in wanted:
                wanted.add(name)
                todo += known[name].calls
        return [self._translated(helper.text) for name, helper in known.items() if name in wanted]

    @property
    def function_names(self) -> frozenset[str]:
        """The functions that have to be written into a program that calls them."""
        return frozenset((*PRELUDE, *self.helpers))

    def _translated(self, text: str) -> str:
        return "\n".join(line if line.startswith("//") else self._in_words(line) for line in text.split("\n"))

    def _in_words(self, line: str) -> str:
        line = re.sub(rf"\b({'|'.join(self.words)})\b", lambda found: self.words[found[0]], line)
        if self.suffix:
            line = re.sub(r"(?<![\w.])\d+\.\d*(?:e[-+]?\d+)?(?!\w)", rf"\g<0>{self.suffix}", line)
        return line

    @abstractmethod
    def own(self, parts: ProgramParts, image: Bound, slot: StateSlot, layer: str) -> str:
        """An image slot at the element itself."""

    @abstractmethod
    def sampled(self, parts: ProgramParts, image: Bound, slot: StateSlot, layer: str, x: str, y: str) -> str:
        """An image slot at a place."""

    @abstractmethod
    def remembered(self, parts: ProgramParts, history: Bound, index: str) -> str:
        """A number out of the ring of a slot."""

    @abstractmethod
    def picture(self, parts: ProgramParts, picture: Bound, x: str, y: str) -> str:
        """The four channels of a picture at a place."""

    @abstractmethod
    def asked(self, parts: ProgramParts, asked: Bound, over: frozenset[Rate]) -> str:
        """The value at the element itself of what was asked for, which changes in these directions."""

    @property
    @abstractmethod
    def four(self) -> str:
        """The type of four reals."""

    @abstractmethod
    def program(self, parts: ProgramParts) -> Shader:
        """The whole program. Raises UnsuitableError if it needs more than the language has."""


# Puts the pieces of a program together.

_INDENT = "    "
_TYPES: dict[Kind, str] = {"float": "float", "bool": "uint", "u32": "uint", "int": "int"}


def block(head: str, lines: Iterable[CodeLine]) -> list[CodeLine]:
    """Lines in braces behind a head."""
    return [CodeLine(f"{head} {{"), *(CodeLine(line.text, line.depth + 1, line.place) for line in lines), CodeLine("}")]


def structure(language: Language, parts: ProgramParts, head: str, end: str) -> list[str]:
    """The declaration of the frame's block; nothing if it is empty. To be asked for when all is read."""
    fields = parts.frame.uniforms.values()
    if not fields:
        return []
    made = [f"{head} {{"]
    for entry in fields:
        remark = parts.frame.remarks.get(entry.name)
        made.append(f"{_INDENT}{_TYPES[entry.kind]} {entry.name};" + (f"  // {remark}" if remark else ""))
    return [*made, end]


def document(
    language: Language,
    parts: ProgramParts,
    top: Sequence[str],
    given: Sequence[Sequence[str]],
    main: Sequence[CodeLine],
    images: bool = False,
    workgroup: int | None = None,
    entry: str = "main",
    buffers: Sequence[BufferSpec] = (),
) -> Shader:
    """The program: its first lines, what it is given (in groups), functions, and the entry. With `images`, slots are
    written as images instead of targets."""
    kernel = parts.kernel
    shown = ", ".join(kernel.outputs) or "state alone"
    title = f"// {remark(f'{kernel.name} → {shown}')}"
    calls = sorted(parts.helpers)
    functions = [text.split("\n") for text in language.functions(calls)]
    lines = [*map(CodeLine, top)]
    # Nothing may stand before a version.
    lines.insert(int(top[0].startswith("#version")), CodeLine(title))
    for group in filter(None, given):
        lines += [CodeLine(""), *map(CodeLine, group)]
    first_function = len(lines)
    for group in functions:
        lines += [CodeLine(""), *map(CodeLine, group)]
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
        asked=tuple(parts.asked.values()),
        coords=tuple(parts.coords),
        outputs=kernel.outputs,
        packed=parts.packed,
        stores=tuple(place for place, _ in parts.stores),
        to_images=images,
        stops=parts.stops,
        workgroup=workgroup,
        entry=entry,
        buffers=tuple(buffers),
        calls=tuple(calls),
        functions=(first_function, after_functions),
    )


def shared_functions(language: Language, shaders: Iterable[Shader]) -> list[str]:
    """The functions that any of these programs calls, each once, with an empty line before each."""
    calls = sorted({name for shader in shaders for name in shader.calls})
    return [line for text in language.functions(calls) for line in ("", *text.split("\n"))]


def without_functions(shader: Shader) -> list[str]:
    """The lines of a program but for the functions."""
    lines = shader.text.splitlines()
    first, after = shader.functions
    return lines[:first] + lines[after:]
