"""A program for a graphics card: its text, and everything that its caller has to know."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias

from weft.codegen.native.target import Head, PictureWord, single
from weft.codegen.values import Scalar
from weft.codes.rows import InternalError
from weft.ir.expr import SlotPlane

Kind: TypeAlias = Literal["float", "bool", "u32", "int"]
"""The type of a number in the block of uniforms, 4 bytes each: a single, 0 or 1, unsigned, signed."""


_COMMENT = re.compile(r"[ \t]*//.*")

# ASCII spellings for comments.
_SPELLED = str.maketrans({
    "→": "->", "…": "...", "·": "*", "×": "x", "−": "-", "π": "pi ",
})  # fmt: skip

_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ"
_POWERS, _LOWERED = re.compile(f"[{_RAISED}]+"), str.maketrans(_RAISED, "0123456789-n")


class LaunchExtent(Enum):
    """The size of a launch. For points, columns and rows are those of the images that it reads."""

    COLUMNS = "columns"
    ROWS = "rows"
    POINTS = "points"


SideFact: TypeAlias = Literal["lower", "rest", "factor", "shift"]


class SidePart(NamedTuple):
    """What a program needs to divide by a side of its launch without a division: 1 / side in two parts, `lower` and
    `rest` (see `Part`); and the whole numbers of a quotient, a `factor` and a `shift`: the upper half of a product of
    64 bits, shifted to the right, is how often a side of 2 or more goes into a number below 2³¹."""

    extent: LaunchExtent
    part: SideFact

    def of(self, side: int) -> float:
        """The number for a side, which is at least 1."""
        if self.part in ("lower", "rest"):
            return one_over(side, self.part)
        shift = max(0, (side - 1).bit_length() - 1)
        return shift if self.part == "shift" else min(-(-(1 << 32 + shift) // side), 2**32 - 1)


Part: TypeAlias = Literal["nearest", "lower", "rest"]
"""Of 1 / n: the nearest single; or the one that is lower in size, and the rest that it lacks. The sum of the products
of a with both of these is a / n to the last digit."""


class OneOver(NamedTuple):
    """1 / n, where n is a number of the kernel, a value of the launch prologue, or a uniform."""

    of: Scalar
    part: Part = "nearest"


def one_over(divisor: float, part: Part = "nearest") -> float:
    """1 over a divisor, which may be 0, or a part of it."""
    divisor = divisor if part == "nearest" else single(divisor)
    share = 1 / divisor if divisor else math.copysign(math.inf, divisor)
    if part == "nearest" or not math.isfinite(share):
        return share
    digits, exponent = math.frexp(share)
    lower = math.ldexp(int(digits * 2.0**24), exponent - 24)
    # Without a rest, an infinite dividend times it would be no number.
    return lower if part == "lower" else share - lower or share * 2.0**-60


class LevelExtent(NamedTuple):
    """A side of the images of a level, in a launch over other pixels."""

    level: int
    extent: LaunchExtent


class PastCell(NamedTuple):
    """The cell of the ring of a slot that was written k ticks ago."""

    slot: str
    k: int


class PastValue(NamedTuple):
    """The value k ticks ago of a slot that is one number a plane."""

    slot: str
    plane: int
    k: int


@dataclass(frozen=True, slots=True)
class FirstLayer:
    """The first layer of the images of a slot in the texture that it shares with others."""

    slot: str


Source: TypeAlias = (
    Scalar | LaunchExtent | SidePart | OneOver | LevelExtent | Head | PastCell | PastValue | PictureWord | FirstLayer
)


@dataclass(frozen=True, slots=True)
class Uniform:
    """A number that is the same in a whole launch. The `Head` of a slot is the cell of its ring that this tick writes
    (for points, that the last tick wrote)."""

    name: str
    kind: Kind
    source: Source


@dataclass(frozen=True, slots=True)
class Bound:
    """An input bound to a name of the program: the ring of a slot by the slot's key, a picture by its path, or an
    external read by its key.

    The ring of an image slot has (depth + 1) · planes layers, plane after plane and cell after cell. Where slots share
    a texture, theirs have the same name, and `FirstLayer` says where each ring begins. The ring of any other slot has
    as many numbers.
    """

    name: str
    key: str


def image_to_write(ring: str) -> str:
    """The name of the images of a slot in a program that writes to them as images."""
    return f"{ring}_next"


class BufferUse(Enum):
    """The content of a buffer."""

    FRAME = "frame"
    """The numbers of `Shader.uniforms`."""
    OUT = "out"
    """Pixels of 4 bytes [height, width], or planes of floats [outputs, elements]."""
    COORDINATE = "coordinate"
    """A float for each point."""
    RING = "ring"
    """The ring of an image slot: floats [cells · planes, height, width]."""
    HISTORY = "history"
    """The ring of a slot that is numbers: floats [cells · planes]."""
    PICTURE = "picture"
    """Pixels of four floats [height, width]."""
    EXTERNAL_READ = "external read"
    """The prefetched values of an external read: a float for each place."""
    LIMIT = "limit"
    """One unsigned number, which is set to 1 if a loop met its limit."""


class BufferSpec(NamedTuple):
    """A buffer that a program takes: its use, and the key of its coordinate, slot, picture or external read."""

    use: BufferUse
    key: str = ""


@dataclass(frozen=True, slots=True)
class Shader:
    """One program. The numbers of `uniforms` are in one block, in this order and without gaps.

    A picture has its first row on top. In `packed` form it is one target of four 8-bit channels; otherwise each target
    of four floats holds four of the `outputs`. `stores` are the new values of slots, in targets of one float that
    follow in this order. `stops` says whether there is a last target, which is 1 where a loop reached its limit.
    """

    language: str
    text: str
    places: tuple[str, ...]
    """For each line of the text, its place in the patch (`file:line`), or an empty text."""
    uniforms: tuple[Uniform, ...]
    images: tuple[Bound, ...]
    """Slots that are images."""
    histories: tuple[Bound, ...]
    """Slots that are numbers and are read a varying number of ticks back."""
    pictures: tuple[Bound, ...]
    external_reads: tuple[Bound, ...]
    """External reads, which are prefetched (`strands_of` the kernel gives the places)."""
    coords: tuple[str, ...]
    """For points: the coordinates, in the order of their buffers."""
    outputs: tuple[str, ...]
    packed: bool
    stores: tuple[SlotPlane, ...]
    stops: bool
    workgroup: int | None = None
    """The points of a workgroup; None for fragment shaders."""
    tile: int | None = None
    """The side of the square of pixels that a workgroup computes; None for fragment shaders. It writes the pixels, the
    new values of slots, and whether a loop met its limit to the images `pixel`, `NAME_next` and `met_limit`."""
    entry: str = "main"
    """The name of the entry function."""
    buffers: tuple[BufferSpec, ...] = ()
    """For languages that number the inputs of a program: the buffers, by their numbers."""
    calls: tuple[str, ...] = ()
    """The functions of the prelude that it calls. The text includes them, and all that they call."""
    numbers: tuple[float, ...] = ()
    """The values of the constants that it reads as `Scalar` of `const`, by their places. The text is the same for other
    values."""
    functions: tuple[int, int] = (0, 0)
    """The lines of the text with these functions: the first, from 0, and the one after the last."""
    limits: tuple[tuple[int, float, float], ...] = ()
    """The places of numbers of which it expects no more than a range, with the least and the largest."""

    @property
    def computes(self) -> bool:
        """Whether it is a compute shader."""
        return self.workgroup is not None or self.tile is not None

    @property
    def updated_images(self) -> dict[str, str]:
        """The names of the images of slots that it gives new values, each with the key of a slot of it; it may read
        others, which an earlier stage has computed."""
        stored = {place.slot for place in self.stores}
        return {image.name: image.key for image in self.images if image.key in stored}

    @property
    def written_images(self) -> list[str]:
        """The names of the images that it writes, in order."""
        names: list[str] = []
        if self.tile:
            names += map(image_to_write, self.updated_images)
            names += ["pixel"] * bool(self.outputs) + ["met_limit"] * self.stops
        return names

    @property
    def code(self) -> bytes:
        """The text in the form that every driver accepts, without comments: it is the same wherever in a patch its
        lines are."""
        return plain(_COMMENT.sub("", self.text)).encode("ascii")

    @property
    def colour_targets(self) -> int:
        """The number of targets for the outputs."""
        return min(1, len(self.outputs)) if self.packed else -(-len(self.outputs) // 4)


class Forms(NamedTuple):
    """The programs of a kernel over a picture, which run one after another: those that draw, and compute shaders over
    squares of pixels that do the same, if the language has these. The last ones give the outputs."""

    shaders: tuple[Shader, ...]
    tiles: tuple[Shader, ...] = ()

    @property
    def drawn(self) -> Shader:
        """The program that draws the outputs."""
        return self.shaders[-1]

    def serves(self, numbers: Sequence[float]) -> bool:
        """Whether these numbers are within the limits of the programs."""
        return all(
            least <= numbers[place] <= most
            for shaders in self for shader in shaders for place, least, most in shader.limits
        )

    def with_numbers(self, numbers: tuple[float, ...]) -> Forms:
        """The forms with other numbers."""
        return Forms(*(tuple(replace(each, numbers=numbers) for each in shaders) for shaders in self))


def plain(text: str) -> str:
    """A text in ASCII: some drivers refuse other characters even in comments, the only place where there are any."""
    lowered = _POWERS.sub(lambda found: f"^{found[0].translate(_LOWERED)}", text)
    return lowered.translate(_SPELLED).encode("ascii", "replace").decode("ascii")


class UnsuitableError(InternalError, ValueError):
    """A kernel cannot become a program of this kind. Carries the reason, for users."""
