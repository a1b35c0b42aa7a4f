"""Numbers as they are written in a program, so that they read back as exactly the same singles."""

from __future__ import annotations

import math
import re
import struct


def single(value: float) -> float:
    """A number, rounded to single precision."""
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def real_text(value: float) -> str:
    """The shortest text that reads back as a finite number in single precision: `0.1`, `1.0`, `6.02e+23`."""
    rounded = single(value)
    text = next(text for digits in range(1, 10) if single(float(text := f"{rounded:.{digits}g}")) == rounded)
    if "e" in text and 1 <= abs(rounded) < 1e10:
        text = f"{rounded:.0f}"
    return text if re.search(r"[.e]", text) else f"{text}.0"


def bits_text(value: int) -> str:
    return f"0x{value:x}u" if value > 255 else f"{value}u"
