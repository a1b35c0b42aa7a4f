"""Languages whose programs get buffers as arguments, as in Metal, CUDA, OpenCL and C: a function that computes the
element `id` of `count`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from weft.codegen.clike.body import layer_to_write
from weft.codegen.clike.emission import emit
from weft.codegen.clike.expressions import ExpressionText
from weft.codegen.clike.fields import NumberedKernel
from weft.codegen.clike.language import (
    CodeLine, Identifiers, Language, ProgramParts, block, document, identifier, packed_pixel, remark, shared_functions,
    structure, without_functions
)
from weft.codegen.clike.prelude import functions_in
from weft.codegen.clike.shader import (
    Bound, BufferSpec, BufferUse, Forms, LaunchExtent, LevelExtent, Shader, Source, UnsuitableError
)
from weft.codegen.kernel import Kernel
from weft.codegen.native.target import PictureWord
from weft.ir.expr import StateSlot
from weft.ir.rates import Rate
from weft.names import is_sound

Item: TypeAlias = Literal["real", "pixel", "two", "four", "limit"]
"""The type of an item of a buffer: a real, four bytes, two or four reals, and the number that says whether a loop
reached its limit."""


class Given(NamedTuple):
    """A buffer, its declaration as a parameter, and a comment on what it holds."""

    buffer: BufferSpec
    text: str
    about: str = ""

    @property
    def remark(self) -> str:
        """The comment, to be written after the declaration."""
        return f"  // {remark(self.about)}" if self.about else ""


class BufferLanguage(Language):
    """A language of this kind. Its functions include `between`, `between_columns`, `between_rows` and `fetched`, which
    read pictures and sounds, and `to_byte` for the channels of pixels."""

    ring: ClassVar[str] = "ring"
    between_pixels: ClassVar[str] = "between"
    """The function that samples a picture: `between` itself, if that takes both kinds of items."""

    @abstractmethod
    def frame(self, name: str) -> str:
        """The declaration of the block of uniforms, which is a struct of this name, as a parameter `frame`."""

    @abstractmethod
    def buffer(self, kind: Item, name: str, written: bool) -> str:
        """The declaration of a buffer as a parameter. Unless it is `written`, the program reads it only."""

    @abstractmethod
    def stopped(self) -> str:
        """The statement that notes in the buffer `met_limit` that a loop reached its limit."""

    def packed(self, channels: Sequence[str]) -> str:
        """A pixel of bytes."""
        return packed_pixel(channels, "uchar", "255")

    # Reads.

    def reading(self, parts: ProgramParts, function: str, buffer: Bound, start: str, *more: str) -> str:
        """A call of a function that reads a buffer, from the item `start` on (the first, if that is empty)."""
        parts.helpers.add(function)
        return f"{function}({', '.join([f'{buffer.name} + {start}' if start else buffer.name, *more])})"

    def factor(self, layer: str, slot: StateSlot) -> str:
        """The number of a layer, as an operand of `*`."""
        return layer if slot.planes == 1 else f"({layer})"

    def extents(
        self, parts: ProgramParts, sides: Sequence[tuple[Source, str]], across: bool = True, down: bool = True
    ) -> list[str]:
        """The columns and rows of an image, with their names, as functions take them that read between its pixels:
        those of a row (`across`), of a column (`down`), or of both."""
        return [parts.frame.read(source, name, "u32") for source, name in sides[: 1 + down]]

    def own(self, parts: ProgramParts, image: Bound, slot: StateSlot, layer: str) -> str:
        return f"{image.name}[{self.factor(layer, slot)} * count + id]"

    def number(self, parts: ProgramParts) -> tuple[str, str]:
        """The numbers of the column and the row of the element: a remainder or a difference, and a quotient."""
        columns = extent(parts, LaunchExtent.COLUMNS)
        return f"id % {columns}", f"id / {columns}"

    def sampled(
        self, parts: ProgramParts, image: Bound, slot: StateSlot, layer: str, x: str | None, y: str | None
    ) -> str:
        is_here = slot.level == parts.kernel.level
        sides = [
            (side, side.value) if is_here else (LevelExtent(slot.level, side), f"{side.value}_{slot.level}")
            for side in (LaunchExtent.COLUMNS, LaunchExtent.ROWS)
        ]
        columns, rows = BufferLanguage.extents(self, parts, sides)
        size = "count" if is_here and parts.kernel.sweep == "grid" else f"{columns} * {rows}"
        start = f"{self.factor(layer, slot)} * {size}"
        if x is not None and y is not None:
            return self.reading(parts, "between", image, start, *self.extents(parts, sides), x, y)
        column, row = self.number(parts)
        if x is not None:
            start = f"{start} + {row} * {columns}"
            return self.reading(parts, "between_columns", image, start, *self.extents(parts, sides, down=False), x)
        if y is not None:
            start = f"{start} + {column}"
            return self.reading(parts, "between_rows", image, start, *self.extents(parts, sides, across=False), y)
        return self.own(parts, image, slot, layer)

    def remembered(self, parts: ProgramParts, history: Bound, index: str) -> str:
        return f"{history.name}[{index}]"

    def picture(self, parts: ProgramParts, picture: Bound, x: str, y: str) -> str:
        sides = [(PictureWord(picture.key, what), f"{picture.name}_{what}") for what in ("width", "height")]
        return self.reading(parts, self.between_pixels, picture, "", *self.extents(parts, sides), x, y)

    def fetched(self, parts: ProgramParts, sound: Bound, number: str) -> str:
        size = parts.frame.read(PictureWord(sound.key, "width"), f"{sound.name}_width", "u32")
        return self.reading(parts, "fetched", sound, "", size, number)

    def external_read(self, parts: ProgramParts, read: Bound, over: frozenset[Rate]) -> str:
        if not over:
            return f"{read.name}[0]"
        if len(over) > 1 or Rate.ELEMENT in over:
            return f"{read.name}[id]"
        return f"{read.name}[id {'%' if Rate.COLUMN in over else '/'} {extent(parts, LaunchExtent.COLUMNS)}]"

    # What is around the statements.

    def element(self, parts: ProgramParts) -> list[CodeLine]:
        """The body of the function: the coordinates of the element, its statements, and those that write its
        results."""
        return [*map(CodeLine, self._coordinates(parts)), *parts.body, *map(CodeLine, self._ends(parts))]

    def _coordinates(self, parts: ProgramParts) -> list[str]:
        """The coordinates of a pixel or point. Returns for threads without one."""
        if parts.kernel.sweep == "points":
            count = extent(parts, LaunchExtent.POINTS)
            places = [(name, f"all_{name}[id]") for name in parts.coords]
        else:
            columns, rows = extent(parts, LaunchExtent.COLUMNS), extent(parts, LaunchExtent.ROWS)
            count = f"{columns} * {rows}"
            places = [(name, place) for name, place in self.pixel(parts, columns, rows) if name in parts.coords]
        lines = [self.declared("u32", "count", count), self.guarded("id >= count", "return;")]
        return [*lines, *(self.declared("float", f"me_{name}", place) for name, place in places)]

    def pixel(self, parts: ProgramParts, columns: str, rows: str) -> list[tuple[str, str]]:
        """The coordinates of the centre of pixel `id`, by their names."""
        if parts.coords and "share" in self.function_names:
            parts.helpers.add("share")
        column, row = self.number(parts)
        return [("x", self.centre(column, columns)), ("y", self.centre(row, rows))]

    def centre(self, number: str, count: str) -> str:
        """The coordinate of the centre of a pixel, among this many; 0.5 in the middle."""
        at, among = (self.converted("float", each).text for each in (operand(number), ExpressionText(count)))
        place = f"{at} + {self.real(0.5)}"
        # Where quotients are exact, there is no such function.
        return f"share({place}, {among})" if "share" in self.function_names else f"({place}) / {among}"

    def _ends(self, parts: ProgramParts) -> list[str]:
        """The statements that write the results of an element."""
        ends = []
        if parts.packed:
            parts.helpers.add("to_byte")
            pixel = self.packed([f"to_byte({value})" for value in parts.outputs])
            ends.append(f"pixels[id] = {pixel};")
        else:
            places = ["id", "count + id", *(f"{at} * count + id" for at in range(2, len(parts.outputs)))]
            ends += [f"values[{place}] = {value};" for place, value in zip(places, parts.outputs, strict=False)]
        for place, value in parts.stores:
            layer = self.factor(layer_to_write(parts, place), parts.kernel.slot(place.slot))
            ends.append(f"{parts.images[place.slot].name}[{layer} * count + id] = {value};")
        if parts.stops:
            ends.append(self.guarded("stopped", self.stopped()))
        return ends

    def given(self, parts: ProgramParts, frame: str) -> list[Given]:
        """The buffers of a kernel; `frame` is the name of the struct of uniforms."""
        written = {place.slot for place, _ in parts.stores}
        given = [Given(BufferSpec(BufferUse.FRAME), self.frame(frame))]
        if parts.outputs:
            out = self.buffer("pixel", "pixels", True) if parts.packed else self.buffer("real", "values", True)
            given.append(Given(BufferSpec(BufferUse.OUT), out))
        if parts.kernel.sweep == "points":
            given += [self._read(BufferUse.COORDINATE, name, f"all_{name}", about="") for name in parts.coords]
        for image in parts.images.values():
            text = self.buffer("real", image.name, image.key in written)
            given.append(Given(BufferSpec(BufferUse.RING, image.key), text, image.key))
        given += [self._read(BufferUse.HISTORY, bound.key, bound.name) for bound in parts.histories.values()]
        for picture in parts.pictures.values():
            kind: Item = "two" if is_sound(picture.key) else "four"
            given.append(self._read(BufferUse.PICTURE, picture.key, picture.name, kind))
        given += [self._read(BufferUse.EXTERNAL_READ, bound.key, bound.name) for bound in parts.external_reads.values()]
        if parts.stops:
            given.append(Given(BufferSpec(BufferUse.LIMIT), self.buffer("limit", "met_limit", True)))
        return given

    def _read(self, use: BufferUse, key: str, name: str, kind: Item = "real", about: str | None = None) -> Given:
        declared = self.buffer(kind, name, False)
        return Given(BufferSpec(use, key), declared, key if about is None else about)


# Languages of devices, in which each program is a kernel that is launched in one row of threads.


class KernelNames(NamedTuple):
    """The names that a kernel defines in its file: its function, and the struct of its uniforms."""

    entry: str
    frame: str = "Frame"


_ALONE: Mapping[str, KernelNames] = MappingProxyType({})

ENDS: Mapping[str, str] = MappingProxyType(functions_in("""\
// A channel as a byte: clamped to 0…1, a half rounded up; NaN is 0.
uchar to_byte(float x) {
    return uchar(clamp(number_or(x, 0.0), 0.0, 1.0) * 255.0 + 0.5);
}"""))
"""Functions that such languages have in common."""


@dataclass(frozen=True)
class KernelLanguage(BufferLanguage):
    """A language of this kind."""

    file: Mapping[str, KernelNames] = field(default_factory=lambda: _ALONE)
    """The kernels that share a file, by their names; empty for a kernel that has a file to itself."""

    top: ClassVar[tuple[str, ...]]
    """The first lines of a file."""
    most_buffers: ClassVar[int]
    """The most buffers of a kernel."""

    @property
    def taken(self) -> frozenset[str]:
        functions = {self.word(name) for name in self.function_names}
        return self.reserved | functions | {name for names in self.file.values() for name in names}

    @abstractmethod
    def parameters(self, given: Sequence[Given]) -> list[str]:
        """The lines of a kernel's parameters."""

    def start(self) -> list[CodeLine]:
        """The lines before the statements of a kernel."""
        return []

    def head(self, statements: int) -> str:
        """What is before the name of a kernel with this many lines of statements."""
        return "kernel void"

    def definition(self, names: KernelNames, given: Sequence[Given], body: Sequence[CodeLine]) -> list[CodeLine]:
        """A kernel with these buffers and statements."""
        parameters = (CodeLine(text, 1) for text in self.parameters(given))
        return [CodeLine(f"{self.head(len(body))} {names.entry}("), *parameters, *block(")", body)]

    def program(self, parts: ProgramParts) -> Shader:
        body = self.element(parts)
        names = self.file.get(parts.kernel.name) or KernelNames(identifier(parts.kernel.name))
        given = self.given(parts, names.frame)
        if len(given) > self.most_buffers:
            raise UnsuitableError(f"it needs {len(given)} buffers, and {self.most_buffers} is the limit")
        main = self.definition(names, given, [*self.start(), *body])
        frame = structure(self, parts, f"struct {names.frame}", "};")
        buffers = tuple(each.buffer for each in given)
        return document(self, parts, self.top, [frame], main, entry=names.entry, buffers=buffers)

    @classmethod
    def pixels(cls, kernel: Kernel, packed: bool = True, file: Mapping[str, KernelNames] = _ALONE) -> Shader:
        """The program of a kernel over a picture, `packed` as pixels or with its outputs as planes; `file` are the
        names of the kernels that share its file. Raises UnsuitableError with the reason if it has none."""
        return emit(kernel, cls(file), packed)

    @classmethod
    def points(cls, kernel: Kernel, file: Mapping[str, KernelNames] = _ALONE) -> Shader:
        """The program of a kernel over points. Raises UnsuitableError with the reason if it has none."""
        return emit(kernel, cls(file))

    @classmethod
    def over_picture(cls, kernel: Kernel, packed: bool, numbered: NumberedKernel) -> Forms:
        """The program for a kernel whose numbers are known."""
        return Forms((emit(kernel, cls(), packed, numbered),))

    @classmethod
    def over_points(cls, kernel: Kernel, numbered: NumberedKernel) -> Shader:
        """The program for a kernel whose numbers are known."""
        return emit(kernel, cls(), numbered=numbered)

    @classmethod
    def file_names(cls, kernels: Sequence[Kernel]) -> Mapping[str, KernelNames]:
        """Names for kernels that share a file: `visual/display` is `visual_display`, with `VisualDisplayFrame`."""
        names = Identifiers(cls().taken | cls().function_names)
        made = {}
        for kernel in kernels:
            entry = names.new(kernel.name)
            frame = "".join(word[0].upper() + word[1:] for word in entry.split("_")) + "Frame"
            made[kernel.name] = KernelNames(entry, names.unique(frame))
        return made

    @classmethod
    def file_of(cls, shaders: Sequence[Shader]) -> str:
        """One file of several kernels, which were made with the names of that file."""
        lines = [*cls.top, *shared_functions(cls(), shaders)]
        for shader in shaders:
            title, *rest = without_functions(shader)
            lines += ["", title, *rest[len(cls.top) :]]
        return "\n".join(lines) + "\n"


def operand(quotient: str) -> ExpressionText:
    """A product or a quotient, as an operand."""
    return ExpressionText(quotient, 80)


def extent(parts: ProgramParts, side: LaunchExtent) -> str:
    """A side of the launch, as text."""
    return parts.frame.read(side, side.value, "u32")
