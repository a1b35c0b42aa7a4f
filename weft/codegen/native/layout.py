"""The interface between machine code and whoever runs it: what the code finds in the block of arguments.

The block is a row of 64-bit words: addresses, extents, and the counter from which threads take their bands of rows. A
`Layout` says what stands in each word; code and caller both follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

from weft.codegen.values import Line, Scalar
from weft.ir.rates import Rate

CHANNELS = 4
"""The reals of a pixel of a picture lie side by side: red, green, blue and alpha."""


class Word(Enum):
    """Words that mean the same in every block."""

    # Each is there but once; by its name it would take longer to find, several times a launch.
    __hash__ = object.__hash__

    OUT = "out"
    """Where pixels go [height, width], 4 bytes each; or planes [outputs, height, width], reals."""
    WIDTH = "width"
    HEIGHT = "height"
    BAND = "band"
    """How many rows a thread takes at once."""
    NEXT = "next"
    """The band that is taken next. Threads count it up."""
    STOPPED = "stopped"
    """Set to 1 when a loop met its limit."""
    SCALARS = "scalars"
    """Where the scalars of the launch are, each as large as a real, in the order of `Layout.scalars`."""
    BASE = "base"
    """The bits that all pixels of a launch share."""
    NUMBERS = "numbers"
    """Where the numbers are that a launch is given, doubles, in the order of `Layout.numbers`."""
    STRIDE = "stride"
    """How many reals lie between the beginnings of two outputs of a series."""
    ORIGIN = "origin"
    """The sample n of a series is at the time ORIGIN + (FIRST + n) / RATE, in seconds. These three are doubles."""
    FIRST = "first"
    RATE = "rate"
    SCRATCH = "scratch"
    """Where the functions of a series leave values for one another."""


@dataclass(frozen=True, slots=True)
class ImageCell:
    """Where a plane of an image slot is [height, width], as it was k ticks ago; k = 0 is what this tick writes."""

    slot: str
    plane: int
    k: int


@dataclass(frozen=True, slots=True)
class Ring:
    """Where all cells of an image slot are."""

    slot: str


@dataclass(frozen=True, slots=True)
class Head:
    """Which cell of a ring this tick writes."""

    slot: str


@dataclass(frozen=True, slots=True)
class History:
    """Where all cells of a slot are that is one number a tick [depth + 1, planes]: in double precision."""

    slot: str


@dataclass(frozen=True, slots=True)
class PictureWord:
    """A picture: where its pixels are [height, width, 4], reals; or one of its extents."""

    path: str
    what: Literal["pixels", "width", "height"]


Field: TypeAlias = Word | Line | ImageCell | Ring | Head | History | PictureWord

_ADDRESSES = frozenset({Word.OUT, Word.SCALARS, Word.NUMBERS, Word.SCRATCH})


def is_address(field: Field) -> bool:
    """Whether a word holds an address; else it is a number."""
    match field:
        case Word():
            return field in _ADDRESSES
        case PictureWord(_, what):
            return what == "pixels"
        case Head():
            return False
    return True


@dataclass(frozen=True, slots=True)
class Layout:
    """What the code of a kernel is given. `levels` are the channels that are the same in all pixels of a launch: each
    with its factor in a pixel. `base` is what of a pixel is always the same."""

    fields: tuple[Field, ...]
    scalars: tuple[Scalar, ...]
    lanes: int
    work: int
    """What an element costs, in additions."""
    columns: bool
    """Whether there is a function for what changes by column."""
    rows: bool
    base: int = 0
    levels: tuple[tuple[int, Scalar | float], ...] = ()
    numbers: tuple[Scalar, ...] = ()
    """What `Word.NUMBERS` holds."""
    frame: bool = False
    """Whether there is a function for what is computed once a launch: it reads numbers, and leaves the scalars and the
    base. Else whoever launches does so."""
    sections_that_read: frozenset[Rate] = frozenset()
    """The rates whose lines of locals whoever launches computes: strands of other subgraphs are read in them."""


@dataclass(frozen=True, slots=True)
class SeriesLayout:
    """What the code of a series is given. `numbers` and `scalars` are as in `Layout`, in double precision."""

    fields: tuple[Field, ...]
    scalars: tuple[Scalar, ...]
    numbers: tuple[Scalar, ...]
    lanes: int
    scratch: int
    """How many bytes `Word.SCRATCH` takes."""
