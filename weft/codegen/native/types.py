"""Values of LLVM's language: what stands for them in its text, and constants."""

from __future__ import annotations

import struct
from typing import NamedTuple

from weft.ops.spec import ValueType

SCALARS: dict[ValueType, str] = {"real": "float", "truth": "i1", "bits": "i32"}


class Value(NamedTuple):
    """A vector: its name or its constant in LLVM's text. `number` is what a constant real is in every lane."""

    text: str
    kind: ValueType
    number: float | None = None


def vector(lanes: int, kind: ValueType) -> str:
    """The type of a vector."""
    return f"<{lanes} x {SCALARS[kind]}>"


def single(value: float) -> float:
    """A number rounded to single precision; infinite beyond its range."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def real_text(value: float) -> str:
    """A real constant: LLVM writes singles by the bits of the double that equals them."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', single(value)))[0]:016X}"


def bits_text(value: int) -> str:
    """Bits as a signed number."""
    value &= 0xFFFF_FFFF
    return str(value - (1 << 32) if value >> 31 else value)
