"""The end of the vector machine's element program: outputs as planes of numbers, or packed as pixels of four bytes.

A channel of a picture is packed as rarely as it changes: once a launch, once a column, once a row, or at every element;
the pixel is the bits of these parts together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from weft.backends import vector_steps as steps
from weft.backends.pixels import OPAQUE, channels, level
from weft.backends.vector_emit import Emitter
from weft.backends.vector_program import (
    HERE, Array, ArrayValue, ConstantArray, Extent, Filled, LineArray, Operand, Register, ScalarArray, joined
)

# Where each channel lies in a pixel of 32 bits, which is in memory red first.
_SHIFTS = (0, 8, 16, 24) if sys.byteorder == "little" else (24, 16, 8, 0)

PIXEL_BASE = ScalarArray("pixels", "base", "bits")
"""What is the same in all pixels of a launch."""


def pixel_line(extent: Extent) -> LineArray:
    """The part of the pixels that changes by column, or by row."""
    return LineArray("pixels", extent.name, "bits", extent)


def return_planes(program: Emitter, values: Sequence[ArrayValue]) -> None:
    """Ends a program with outputs as they are."""
    for number, each in enumerate(values):
        value = program.as_type(each, "real")
        program.emit(steps.store_plane, HERE, number, value)
        program.release(value)


@dataclass(slots=True)
class PixelPlan:
    """The channels that are packed before the tiles are computed, each with its factor in a pixel: numbers, and lines
    by their extent. `base` is what is known already: an opaque alpha."""

    base: int = 0
    numbers: list[tuple[int, ScalarArray | float]] = field(default_factory=list)
    lines: dict[Extent, list[tuple[int, LineArray]]] = field(default_factory=dict)

    @property
    def sources(self) -> set[ScalarArray | LineArray]:
        """What it packs, apart from constants."""
        listed = [source for parts in self.lines.values() for _, source in parts]
        return {*listed, *(number for _, number in self.numbers if isinstance(number, ScalarArray))}

    def number(self, value_of: Callable[[ScalarArray], float]) -> int:
        """The bits that are the same in all pixels of a launch."""
        bits = self.base
        for factor, value in self.numbers:
            bits |= factor * level(value_of(value) if isinstance(value, ScalarArray) else value)
        return bits

    def fill(self, number: int, arrays: Mapping[LineArray, Array]) -> None:
        """Packs the lines of a launch into the lines of pixels, which also take the bits that all pixels have."""
        for extent, parts in self.lines.items():
            pixels = arrays[pixel_line(extent)]
            pixels.fill(number)
            for factor, line in parts:
                values = arrays[line]
                levels = np.fmin(np.fmax(values, 0), 1) * values.dtype.type(255) + values.dtype.type(0.5)
                pixels |= levels.astype(np.uint32) * np.uint32(factor)


def return_pixels(program: Emitter, values: Sequence[ArrayValue]) -> PixelPlan:
    """Ends a program with packed pixels; gives what has to be packed before it runs."""
    plan = PixelPlan()
    shown = channels(len(values))
    if len(shown) < len(_SHIFTS):
        plan.base = OPAQUE << _SHIFTS[3]
    packed: Register | None = None
    for output, each in enumerate(values):
        value = program.as_type(each, "real")
        factor = sum(1 << _SHIFTS[channel] for channel, source in enumerate(shown) if source == output)
        match value:
            case LineArray() as line:
                plan.lines.setdefault(line.extent, []).append((factor, line))
            case ScalarArray() as scalar:
                plan.numbers.append((factor, scalar))
            case ConstantArray(number):
                plan.numbers.append((factor, number))
            case Register() as register:
                channel = _pack(program, register, factor)
                packed = channel if packed is None else _together(program, packed, channel)
    parts: list[Operand] = [pixel_line(extent) for extent in plan.lines]
    if not parts and (plan.base or plan.numbers):
        parts.append(PIXEL_BASE)
    if packed is not None:
        parts.append(packed)
    while len(parts) > 2:
        parts[:2] = [_together(program, parts[0], parts[1])]
    program.emit(steps.store_pixels, HERE, *parts)
    return plan


def _pack(program: Emitter, value: Register, factor: int) -> Register:
    """Packs one channel of a tile: its level of 0…255, times the factor."""
    program.release(value)
    extent = value.extent
    level = program.allocate("real", extent)
    program.emit(np.fmax, value, Filled(0.0, extent), level)
    program.emit(np.fmin, level, Filled(1.0, extent), level)
    program.emit(np.multiply, level, ConstantArray(255.0), level)
    program.emit(np.add, level, ConstantArray(0.5), level)
    bits = program.allocate("bits", extent)
    program.emit(steps.copy_bits_from_real, bits, level)
    program.free(level)
    if factor != 1:
        program.emit(np.multiply, bits, ConstantArray(factor, "bits"), bits)
    return bits


def _together(program: Emitter, a: LineArray | Register, b: LineArray | Register) -> Register:
    """The bits of both."""
    program.free(*(operand for operand in (a, b) if isinstance(operand, Register)))
    out = program.allocate("bits", joined((a.extent, b.extent)))
    program.emit(np.bitwise_or, a, b, out)
    return out
