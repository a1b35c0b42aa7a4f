"""Values of LLVM's language: what stands for them in its text, and constants."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from weft.ops.spec import ValueType


@dataclass(frozen=True, slots=True)
class Precision:
    """What reals are: LLVM's name of the type, how it ends the names of functions, and the bytes and binary digits of a
    number."""

    name: str
    suffix: str
    bytes: int
    digits: int

    @property
    def whole(self) -> float:
        """From here on, every number is whole."""
        return 2.0 ** (self.digits - 1)

    def scalar(self, kind: ValueType) -> str:
        """The type of one value."""
        return {"real": self.name, "truth": "i1", "bits": "i32"}[kind]

    def vector(self, lanes: int, kind: ValueType) -> str:
        return f"<{lanes} x {self.scalar(kind)}>"

    def text(self, value: float) -> str:
        """A constant. LLVM writes singles by the bits of the double that equals them."""
        return f"0x{struct.unpack('<Q', struct.pack('<d', self.rounded(value)))[0]:016X}"

    def rounded(self, value: float) -> float:
        """The nearest number; infinite beyond the range."""
        return value if self.bytes == _DOUBLE_BYTES else _single(value)


_DOUBLE_BYTES = 8

SINGLE = Precision("float", "f32", 4, 24)
DOUBLE = Precision("double", "f64", _DOUBLE_BYTES, 53)


class LlvmValue(NamedTuple):
    """A vector: its name or its constant in LLVM's text. `number` is what a constant real is in every lane."""

    text: str
    kind: ValueType
    number: float | None = None


def _single(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def bits_text(value: int) -> str:
    """Bits as a signed number."""
    value &= 0xFFFF_FFFF
    return str(value - (1 << 32) if value >> 31 else value)
