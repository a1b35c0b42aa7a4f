"""What machine code is written for: LLVM IR and its numbers, processors, tiers of compilation, and its caller."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from weft.codegen.values import Line, Scalar
from weft.ir.expr import StateSlot
from weft.ir.rates import Rate
from weft.ops.spec import ValueType

# Values of LLVM IR, and constants.


@dataclass(frozen=True, slots=True)
class Precision:
    """A precision of floats: LLVM's name of the type, the suffix of its intrinsics, and the bytes and binary digits of
    a number."""

    name: str
    suffix: str
    bytes: int
    digits: int

    @property
    def whole(self) -> float:
        """The size from which every number is whole."""
        return 2.0 ** (self.digits - 1)

    def scalar(self, kind: ValueType) -> str:
        """The type of one value."""
        return {"float": self.name, "bool": "i1", "u32": "i32"}[kind]

    def vector(self, lanes: int, kind: ValueType) -> str:
        return f"<{lanes} x {self.scalar(kind)}>"

    def text(self, value: float) -> str:
        """A constant. LLVM writes a single by the bits of the double that equals it."""
        return f"0x{struct.unpack('<Q', struct.pack('<d', self.rounded(value)))[0]:016X}"

    def rounded(self, value: float) -> float:
        """The nearest number; infinite beyond the range."""
        return value if self.digits == DOUBLE.digits else single(value)

    def below(self, value: float) -> float:
        """The number before a positive one that is not tiny."""
        mantissa, exponent = math.frexp(value)
        return value - math.ldexp(0.5 if mantissa == 0.5 else 1, exponent - self.digits)


SINGLE = Precision("float", "f32", 4, 24)
DOUBLE = Precision("double", "f64", 8, 53)


class LlvmValue(NamedTuple):
    """A vector: its name or constant in LLVM IR. `number` is the value of a float constant, equal in every lane."""

    text: str
    kind: ValueType
    number: float | None = None


def single(value: float) -> float:
    """A number, rounded to single precision."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def bits_text(value: int) -> str:
    """Bits as a signed number."""
    value &= 0xFFFF_FFFF
    return str(value - (1 << 32) if value >> 31 else value)


# Families of processors.


@dataclass(frozen=True, slots=True)
class Isa:
    """The properties of a family of processors that affect the emitted code. `cpu` and `triple` are LLVM's names of its
    plainest member, and of a system with such processors."""

    name: str
    title: str
    triple: str
    cpu: str
    bits: int
    """The width of its vector registers."""
    fused: bool
    """Whether a product and a sum are one instruction, rounded once."""
    rounds: bool
    """Whether it rounds to whole numbers by an instruction."""
    features: tuple[str, ...] = ()
    """The features that a processor of the family must have besides its architecture, by LLVM's names."""
    gathers: tuple[tuple[int, int, str], ...] = ()
    """Instructions that load a number for each lane: the bytes of a number, the lanes, and LLVM's name."""

    def gather(self, size: int, lanes: int) -> str | None:
        """The instruction that gathers numbers of `size` bytes to `lanes` lanes, if there is one."""
        return next((name for *fits, name in self.gathers if fits == [size, lanes]), None)

    @property
    def doubles(self) -> int:
        """How many doubles a register holds."""
        return self.bits // (8 * DOUBLE.bytes)


_INTEL = "x86_64-unknown-linux-gnu"
_AVX2_GATHERS = ((4, 8, "x86.avx2.gather.d.ps.256"), (8, 4, "x86.avx2.gather.d.pd.256"))
_AVX512 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")

ISAS: Mapping[str, Isa] = MappingProxyType({
    "avx512": Isa("avx512", "AVX-512", _INTEL, "x86-64-v4", 512, True, True, _AVX512),
    "avx2": Isa("avx2", "AVX2 and FMA", _INTEL, "x86-64-v3", 256, True, True, ("avx2", "fma"), _AVX2_GATHERS),
    "sse2": Isa("sse2", "SSE2", _INTEL, "x86-64", 128, False, False),
    "neon": Isa("neon", "NEON", "aarch64-unknown-linux-gnu", "generic", 128, True, True),
})  # fmt: skip
"""From the widest to the narrowest on each architecture."""


# Machines with AVX2 and NEON compute it without loss; wider ones leave half of a register unused.
_EXACT_BITS = 256


def exactly(isa: Isa) -> Isa:
    """A family for which code gives the same numbers as for all others: nothing is rounded once in one family and twice
    in another, and values in lanes, such as the terms of a scan, are added in one order."""
    return replace(isa, bits=_EXACT_BITS, fused=False)


@dataclass(frozen=True, slots=True)
class Tier:
    """How much is done for speed: the registers per value of a sound, in a short kernel and in any other, and LLVM's
    optimisation level of code generation."""

    number: int
    registers_short: int
    registers: int
    level: int

    def lanes(self, isa: Isa, values: int, floats: Precision = SINGLE) -> int:
        """The width of vectors, for a kernel with this many values per element."""
        return isa.bits // (8 * floats.bytes) * (self.registers_short if values <= _SHORT else self.registers)


# In a sound of at most this many values, few are live at once, so that there are several registers for each.
_SHORT = 27

# In tier 1, one register per value and no instruction scheduling: the picture is on screen at once. In tier 2, more
# registers per value keep the arithmetic units busy while results are pending.
TIERS: Mapping[int, Tier] = MappingProxyType({
    1: Tier(1, registers_short=1, registers=1, level=0),
    2: Tier(2, registers_short=4, registers=2, level=2),
})  # fmt: skip


# The interface between machine code and its caller is the block of arguments, an array of 64-bit words: addresses,
# extents, and the counter from which threads take their bands of rows. A `Layout` says what each word holds; the code
# and its caller both follow it.

CHANNELS = 4
"""A pixel of a picture is four consecutive floats: red, green, blue and alpha."""

SIDES = 2
"""A sample of a sound is two consecutive floats: left and right."""


class Word(Enum):
    """Words with the same meaning in every block."""

    # Members are singletons, so identity is enough; hashing their names would take longer, several times a launch.
    __hash__ = object.__hash__

    OUT = "out"
    """The address of the pixels [height, width] of 4 bytes, or of the planes [outputs, height, width] of floats."""
    WIDTH = "width"
    HEIGHT = "height"
    BAND = "band"
    """The number of rows that a thread takes at once."""
    NEXT = "next"
    """The number of the next band to take. Threads increment it."""
    STOPPED = "stopped"
    """Set to 1 when a loop reached its limit."""
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

    @classmethod
    def back(cls, slot: StateSlot, plane: int, ticks: float, least: int = 1) -> ImageCell:
        """The cell that a read of a constant number of ticks finds. Between ticks, `least` is 0."""
        return cls(slot.key, plane, int(min(ticks, slot.depth)) if ticks >= least else 1)


@dataclass(frozen=True, slots=True)
class LevelWord:
    """An extent of the images of a level, in a launch over pixels of another one."""

    level: int
    what: Literal["width", "height"]


def extents_of(slot: StateSlot, level: int) -> tuple[Field, Field]:
    """The words with the width and the height of the images of a slot, in a launch over the pixels of a level."""
    if slot.level == level:
        return Word.WIDTH, Word.HEIGHT
    return LevelWord(slot.level, "width"), LevelWord(slot.level, "height")


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
    """The address of the pixels of a picture [height, width, 4], as floats; or one of its extents. The width of a sound
    is the number of its samples."""

    path: str
    what: Literal["pixels", "width", "height"]


Field: TypeAlias = Word | Line | ImageCell | LevelWord | Ring | Head | History | PictureWord

_ADDRESSES = frozenset({Word.OUT, Word.SCALARS, Word.NUMBERS, Word.SCRATCH})


def is_address(field: Field) -> bool:
    """Whether a word holds an address; otherwise it is a number."""
    if isinstance(field, Word):
        return field in _ADDRESSES
    return field.what == "pixels" if isinstance(field, PictureWord) else not isinstance(field, (Head, LevelWord))


class ReciprocalPart(NamedTuple):
    """A part of the reciprocal of a number of the kernel, by its place; see `writer.Reciprocal`."""

    number: int
    part: Literal["value", "rest"]


@dataclass(frozen=True, slots=True)
class Layout:
    """The arguments of a kernel's code. `scalars` are at `Word.SCALARS` and `numbers` at `Word.NUMBERS`. `levels` are
    the channels that are the same in all pixels of a launch, each with its factor in a pixel. `base` are the bits of a
    pixel that never change."""

    fields: tuple[Field, ...]
    scalars: tuple[Scalar | ReciprocalPart, ...]
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
    given: tuple[float, ...] = ()
    """The numbers of the kernel, which are among the scalars and the numbers."""
    sections_that_read: frozenset[Rate] = frozenset()
    """The rates whose lines of locals the caller computes, because they read strands of other subgraphs."""
