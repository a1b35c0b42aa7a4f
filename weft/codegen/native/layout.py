"""The interface between machine code and its caller: the contents of the block of arguments.

The block is an array of 64-bit words: addresses, extents, and the counter from which threads take their bands of rows.
A `Layout` says what each word holds; the code and its caller both follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

from weft.codegen.values import Line, Scalar
from weft.ir.rates import Rate

CHANNELS = 4
"""A pixel of a picture is four consecutive floats: red, green, blue and alpha."""


class Word(Enum):
    """Words with the same meaning in every block."""

    # Members are singletons, so identity is enough; hashing their names would take longer, several times a launch.
    __hash__ = object.__hash__

    OUT = "out"
    """The address of the pixels [height, width] of 4 bytes, or of the planes [outputs, height, width] of floats."""
    WIDTH = "width"
    HEIGHT = "height"
    BAND = "band"
    """How many rows a thread takes at once."""
    NEXT = "next"
    """The number of the next band to take. Threads increment it."""
    STOPPED = "stopped"
    """Set to 1 when a loop met its limit."""
    SCALARS = "scalars"
    """The address of the scalars of the launch, each as large as a float, in the order of `Layout.scalars`."""
    BASE = "base"
    """The bits that all pixels of a launch share."""
    NUMBERS = "numbers"
    """The address of the numbers that the caller passes, as doubles, in the order of `Layout.numbers`."""
    STRIDE = "stride"
    """The distance between the beginnings of two outputs of a series, in floats."""
    ORIGIN = "origin"
    """Sample n of a series is at the time ORIGIN + (FIRST + n) / RATE, in seconds. These three words are doubles."""
    FIRST = "first"
    RATE = "rate"
    SCRATCH = "scratch"
    """The address of the memory through which the functions of a series pass values to one another."""


@dataclass(frozen=True, slots=True)
class ImageCell:
    """The address of a plane of an image slot [height, width] k ticks ago; k = 0 is what this tick writes."""

    slot: str
    plane: int
    k: int


@dataclass(frozen=True, slots=True)
class Ring:
    """The address of all cells of an image slot."""

    slot: str


@dataclass(frozen=True, slots=True)
class Head:
    """The number of the cell of a ring that this tick writes."""

    slot: str


@dataclass(frozen=True, slots=True)
class History:
    """The address of all cells of a slot that is one number a tick [depth + 1, planes], as doubles."""

    slot: str


@dataclass(frozen=True, slots=True)
class PictureWord:
    """The address of the pixels of a picture [height, width, 4], as floats; or one of its extents."""

    path: str
    what: Literal["pixels", "width", "height"]


Field: TypeAlias = Word | Line | ImageCell | Ring | Head | History | PictureWord

_ADDRESSES = frozenset({Word.OUT, Word.SCALARS, Word.NUMBERS, Word.SCRATCH})


def is_address(field: Field) -> bool:
    """Whether a word holds an address; otherwise it is a number."""
    if isinstance(field, Word):
        return field in _ADDRESSES
    return field.what == "pixels" if isinstance(field, PictureWord) else not isinstance(field, Head)


@dataclass(frozen=True, slots=True)
class Layout:
    """The arguments of a kernel's code. `scalars` are at `Word.SCALARS` and `numbers` at `Word.NUMBERS`. `levels` are
    the channels that are the same in all pixels of a launch, each with its factor in a pixel. `base` are the bits of a
    pixel that never change."""

    fields: tuple[Field, ...]
    scalars: tuple[Scalar, ...]
    numbers: tuple[Scalar, ...]
    functions: tuple[str, ...]
    """The functions that the code has. Without one for the launch prologue, the caller computes the scalars and the
    base."""
    lanes: int = 1
    work: int = 0
    """The cost of an element, in additions."""
    scratch: int = 0
    """The size of the memory at `Word.SCRATCH`, in bytes."""
    base: int = 0
    levels: tuple[tuple[int, Scalar | float], ...] = ()
    sections_that_read: frozenset[Rate] = frozenset()
    """The rates whose lines of locals the caller computes, because they read strands of other subgraphs."""
