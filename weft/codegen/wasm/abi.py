"""What a module of WebAssembly and its host agree on: the block of arguments, by offsets that hosts in any language can
read as JSON.

Every exported function takes one number, the address of a block in the imported memory, and gives nothing. A block
holds what changes from launch to launch. Addresses and counts in it are whole numbers of 32 bits, everything else is in
double precision. A host makes a block of zeros for each state that it wants: for each channel of a sound, say.
docs/wasm.md tells the order of calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias

from weft.codegen.kernel import Allocation, Kernel
from weft.ir.expr import StateSlot
from weft.ir.rates import Rate
from weft.ops.spec import ValueType

Json: TypeAlias = Any

MEMORY = ("weft", "memory")
"""The import of the memory: its module and its name."""

STRANDS = "strand"
"""The module of the imports that read strands of other subgraphs. They are named by their numbers in `strands`."""

# What a module exports, if its kernel has it.

CONSTANTS, FRAME, COLUMNS, ROWS, ELEMENTS, ADVANCE = "constants", "frame", "columns", "rows", "elements", "advance"
"""`constants` and `frame` compute what is the same in a whole launch; `columns`, `rows` and `elements` the rest.
`advance` ends a tick: what it has stored is one tick ago then."""

Export: TypeAlias = Literal["constants", "frame", "columns", "rows", "elements", "advance"]

ALIGNMENT = 16
"""Blocks, rings, lines and pictures begin at multiples of this many bytes."""

# The words at the beginning of each block, whose offsets never change.

OUT, STRIDE, WIDTH, HEIGHT, STOPPED, FIRST, RATE, ORIGIN, FIXED = 0, 4, 8, 12, 16, 24, 32, 40, 48
"""`OUT`: the address of the outputs, [outputs, height, width]; `STRIDE`: how many numbers are between two outputs;
`WIDTH` and `HEIGHT`: the elements of the launch; `STOPPED`: becomes 1 if a loop meets its limit of steps. Of a sound,
the time of sample n is `ORIGIN + (FIRST + n) / RATE`. `FIXED` bytes in all."""

WORD, NUMBER = 4, 8
"""The bytes of a whole number, and of one in double precision."""

CHUNK = 256
"""The most samples of a sound that one function after another computes."""

PADDING = 8
"""How many samples are computed together. Lines of a sound have room for this many numbers more. What is there does not
matter."""


@dataclass(frozen=True, slots=True)
class GivenNumber:
    """A number that the host writes before a launch: a uniform, or a coordinate that is the same in the whole launch.
    `constants` may read those that are `constant`: where one changes, it is to be called again."""

    name: str
    source: Literal["uniform", "coord"]
    offset: int
    constant: bool = False


@dataclass(frozen=True, slots=True)
class LocalPlace:
    """A value that a section leaves for others, such as the shader of a picture: by its number in the kernel. Those of
    `constants` and `frame` are in the block: a float is a double, any other type a whole number. Those of `columns` and
    `rows` are arrays, whose address the host writes there: a number for each column or row."""

    number: int
    name: str
    type: ValueType
    rate: Literal["constant", "frame", "column", "row"]
    offset: int


@dataclass(frozen=True, slots=True)
class LinePlace:
    """A coordinate that changes by column, row or element: the host writes the address of its numbers, in double
    precision. There is none for the times of a sound."""

    name: str
    rate: Literal["column", "row", "element"]
    offset: int


@dataclass(frozen=True, slots=True)
class RingPlace:
    """The memory of a slot: [depth + 1, planes] numbers in double precision, or that many images [rows, columns].

    `offset` is that of its address, which the host writes, and `head` that of the cell which this tick writes: the
    functions that end a tick move it on. In kernels over points it is the cell that the last tick has written. For an
    image, `size` is the offset of two whole numbers: columns and rows. Another program
    continues a slot if its key, its kind and its planes are the same: its identity."""

    key: str
    kind: str
    offset: int
    head: int
    depth: int
    planes: int
    image: bool
    level: int
    size: int

    @property
    def cells(self) -> int:
        """The numbers of a slot without images."""
        return (self.depth + 1) * self.planes


@dataclass(frozen=True, slots=True)
class SampledPlace:
    """A picture or a sound that is read: at `offset` its address, its width (of a sound, its samples) and its height,
    three whole numbers. Pictures are [height, width, 4] and sounds [samples, 2], in single precision."""

    name: str
    offset: int
    channels: int


@dataclass(frozen=True, slots=True)
class StrandImport:
    """A strand of another subgraph: the host gives a function of the coordinates, whose result is a number."""

    name: str
    coordinates: int


@dataclass(frozen=True)
class BlockLayout:
    """All that a host has to know of a module."""

    kernel: str
    context: str
    sweep: Literal["grid", "points"]
    tick: Literal["launch", "element", "never"]
    size: int
    """The bytes of a block."""
    outputs: tuple[str, ...]
    exports: tuple[Export, ...] = ()
    numbers: tuple[GivenNumber, ...] = ()
    lines: tuple[LinePlace, ...] = ()
    locals: tuple[LocalPlace, ...] = ()
    rings: tuple[RingPlace, ...] = ()
    sampled: tuple[SampledPlace, ...] = ()
    strands: tuple[StrandImport, ...] = ()
    memory: tuple[str, str] = MEMORY

    def to_json(self) -> Json:
        """The layout for `json.dumps`: a dictionary of dictionaries, lists, texts and numbers."""
        return {**asdict(self), "fixed": dict(FIXED_WORDS), "padding": PADDING}

    @classmethod
    def from_json(cls, data: Json) -> BlockLayout:
        """The layout that `to_json` wrote."""
        read: dict[str, Any] = {each.name: data[each.name] for each in fields(cls)}
        for name, value in read.items():
            if isinstance(value, list):
                kind = _ROWS.get(name)
                read[name] = tuple([kind(**row) for row in value] if kind else value)
        return cls(**read)

    def number(self, source: str, name: str) -> GivenNumber:
        """The place of a number. Raises KeyError if the kernel does not read it."""
        return next(each for each in self.numbers if (each.source, each.name) == (source, name))


_ROWS: Mapping[str, type] = {
    "numbers": GivenNumber, "lines": LinePlace, "locals": LocalPlace, "rings": RingPlace, "sampled": SampledPlace,
    "strands": StrandImport,
}  # fmt: skip

FIXED_WORDS: Mapping[str, int] = {
    "out": OUT, "stride": STRIDE, "width": WIDTH, "height": HEIGHT, "stopped": STOPPED, "first": FIRST, "rate": RATE,
    "origin": ORIGIN,
}  # fmt: skip
"""The offsets of the words that every block has, by name."""


class _Allocator:
    """Places in a block, one after another."""

    def __init__(self) -> None:
        self.end = FIXED

    def take(self, size: int, alignment: int = NUMBER) -> int:
        start = -(-self.end // alignment) * alignment
        self.end = start + size
        return start


def series_time(kernel: Kernel) -> bool:
    """Whether the times of a kernel are computed from the numbers of samples."""
    return kernel.tick == "element" and kernel.sweep == "grid"


def layout_of(kernel: Kernel, is_whole: bool) -> BlockLayout:
    """The layout of the block of a kernel, without scratch memory, and without exports and strands. If it is not
    `is_whole`, it has only what the constant and the frame section need."""
    places = _Allocator()
    numbers = [GivenNumber(name, "uniform", places.take(NUMBER)) for name in kernel.uniforms]
    lines = list[LinePlace]()
    for name, rate in kernel.coords:
        if rate <= Rate.FRAME:
            numbers.append(GivenNumber(name, "coord", places.take(NUMBER), rate == Rate.CONSTANT))
        elif is_whole and not (name == "abstime" and series_time(kernel)):
            lines.append(LinePlace(name, rate.title, places.take(WORD, WORD)))  # type: ignore[arg-type]
    listed = [
        _local(number, local, places)
        for number, local in enumerate(kernel.locals)
        if local.rate < Rate.ELEMENT and (is_whole or local.rate <= Rate.FRAME)
    ]
    rings = tuple(_ring(slot, places) for slot in kernel.slots)
    sounds = {node.attr.picture for _, node in kernel.walk() if node.op == "fetch"}
    sampled = tuple(
        SampledPlace(name, places.take(3 * WORD, WORD), 2 if name in sounds else 4) for name in kernel.pictures
    )
    places.take(0, ALIGNMENT)
    return BlockLayout(
        kernel.name, kernel.context, kernel.sweep, kernel.tick, places.end, kernel.outputs, (), tuple(numbers),
        tuple(lines), tuple(listed), rings, sampled,
    )  # fmt: skip


def _local(number: int, local: Allocation, places: _Allocator) -> LocalPlace:
    in_block = local.rate <= Rate.FRAME
    size = NUMBER if in_block and local.type == "float" else WORD
    return LocalPlace(number, local.name, local.type, local.rate.title, places.take(size, size))  # type: ignore[arg-type]


def _ring(slot: StateSlot, places: _Allocator) -> RingPlace:
    offset, head = places.take(WORD, WORD), places.take(WORD, WORD)
    size = places.take(2 * WORD, WORD) if slot.image else 0
    return RingPlace(
        slot.key, slot.kind, offset, head, slot.depth, slot.planes, slot.image, slot.level, size
    )  # fmt: skip
