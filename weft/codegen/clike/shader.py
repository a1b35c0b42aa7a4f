"""A program for a graphics card: its text, and all that whoever runs it has to know."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias

from weft.codegen.native.layout import Head, PictureWord
from weft.codegen.values import Scalar
from weft.ir.expr import SlotPlane

Kind: TypeAlias = Literal["float", "bool", "u32", "int"]
"""What a number in the frame's block is, 4 bytes each: a single, 0 or 1, unsigned, signed."""


# How comments are read in ASCII.
_SPELLED = str.maketrans({
    "→": "->", "…": "...", "·": "*", "×": "x", "−": "-", "π": "pi ", "ⁿ": "^n", "²": "^2", "³": "^3",
})  # fmt: skip


class LaunchExtent(Enum):
    """How much a launch computes. For points, columns and rows are those of the images that it reads."""

    COLUMNS = "columns"
    ROWS = "rows"
    POINTS = "points"


class Past(NamedTuple):
    """What a slot that is one number a plane was k ticks ago."""

    slot: str
    plane: int
    k: int


Source: TypeAlias = Scalar | LaunchExtent | Head | Past | PictureWord


@dataclass(frozen=True, slots=True)
class Uniform:
    """A number that is the same in a whole launch. `Head` of a slot is the cell of its ring that this tick writes (for
    points, that the last tick wrote)."""

    name: str
    kind: Kind
    source: Source


@dataclass(frozen=True, slots=True)
class Bound:
    """Something that is bound to a name of the program: the ring of a slot by the slot's key, a picture by its path, or
    a strand that was asked for by its key.

    The ring of an image slot has (depth + 1) · planes layers, plane after plane and cell after cell; that of any other
    slot as many numbers.
    """

    name: str
    key: str


def image_to_write(ring: str) -> str:
    """The name of the images of a slot where a program writes to them as such."""
    return f"{ring}_next"


class BufferUse(Enum):
    """What lies in a buffer."""

    FRAME = "frame"
    """The numbers of `Shader.uniforms`."""
    OUT = "out"
    """Pixels of 4 bytes [height, width], or planes of reals [outputs, elements]."""
    COORDINATE = "coordinate"
    """A real for each point."""
    RING = "ring"
    """The ring of an image slot: reals [cells · planes, height, width]."""
    HISTORY = "history"
    """The ring of a slot that is numbers: reals [cells · planes]."""
    PICTURE = "picture"
    """Pixels of four reals [height, width]."""
    ASKED = "asked"
    """A strand that was asked for: a real for each place."""
    LIMIT = "limit"
    """One unsigned number, which is set to 1 where a loop met its limit."""


class BufferSpec(NamedTuple):
    """A buffer that a program is given: what lies in it, and of which coordinate, slot, picture or strand."""

    use: BufferUse
    key: str = ""


@dataclass(frozen=True, slots=True)
class Shader:
    """One program. The numbers of `uniforms` stand in this order, without gaps, in one block.

    A picture has its first row on top. In `packed` form it is one target of four 8-bit channels; else `outputs` come
    four to a target of four reals. `stores` are the targets of one real that come behind it, in order: what slots will
    have been one tick ago. `stops` says whether the last target is 1 where a loop met its limit.
    """

    language: str
    text: str
    places: tuple[str, ...]
    """For each line of the text where it comes from in the patch (`file:line`), or nothing."""
    uniforms: tuple[Uniform, ...]
    images: tuple[Bound, ...]
    """Slots that are images."""
    histories: tuple[Bound, ...]
    """Slots that are numbers, and are read a varying number of ticks back."""
    pictures: tuple[Bound, ...]
    asked: tuple[Bound, ...]
    """Strands of other subgraphs, asked for beforehand (`strands_of` the kernel says where)."""
    coords: tuple[str, ...]
    """For points: the coordinates, in the order of their buffers."""
    outputs: tuple[str, ...]
    packed: bool
    stores: tuple[SlotPlane, ...]
    to_images: bool
    """Whether stores go to the images of their slots (`NAME_next`) instead of targets."""
    stops: bool
    workgroup: int | None = None
    """How many points a workgroup takes; None for what is drawn."""
    tile: int | None = None
    """A workgroup computes a square with so many pixels a side, and writes them, what slots will have been and whether
    a loop met its limit to the images `pixel`, `NAME_next` and `met_limit`; None for what is drawn."""
    entry: str = "main"
    """The name of the function that is run."""
    buffers: tuple[BufferSpec, ...] = ()
    """For languages that number all that a program is given: the buffers, by their numbers."""
    calls: tuple[str, ...] = ()
    """The functions of the prelude that it calls. The text holds them, with all that these call."""
    functions: tuple[int, int] = (0, 0)
    """Where in the text these functions are: the first line, from 0, and the line after the last."""

    @property
    def computes(self) -> bool:
        """Whether nothing is drawn: it is a compute shader."""
        return self.workgroup is not None or self.tile is not None

    @property
    def written_images(self) -> list[str]:
        """The names of the images that it writes, in order."""
        names = [image_to_write(image.name) for image in self.images] if self.to_images or self.tile else []
        if self.tile:
            names += ["pixel"] * bool(self.outputs) + ["met_limit"] * self.stops
        return names

    @property
    def ascii(self) -> bytes:
        """The text as every driver takes it."""
        return plain(self.text).encode("ascii")

    @property
    def colour_targets(self) -> int:
        """How many targets the outputs take."""
        return min(1, len(self.outputs)) if self.packed else -(-len(self.outputs) // 4)


def plain(text: str) -> str:
    """A text for every driver: some refuse letters that are not ASCII, even in comments, where alone there are any."""
    return text.translate(_SPELLED).encode("ascii", "replace").decode("ascii")


class UnsuitableError(ValueError):
    """A kernel that cannot become a program of this kind. Carries the reason, in plain words."""
