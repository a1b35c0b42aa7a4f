"""What differs between the languages like C that a program can be written in."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from weft.codegen.base import Kernel
from weft.codegen.clike.literals import real_text, single
from weft.codegen.clike.names import Identifiers, remark
from weft.codegen.clike.prelude import PRELUDE, Helper
from weft.codegen.clike.shader import Bound, Kind, Shader, Source, Uniform
from weft.ir.expr import SlotPlane, StateSlot
from weft.ir.rates import Rate
from weft.ops.spec import OpSpec


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
