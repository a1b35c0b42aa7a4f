"""A linked kernel with the memory that it needs for one size of picture, and how a launch is handed to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.asked_lines import LineReads
from weft.backends.bands import BandPool
from weft.backends.interpreter import Machine
from weft.backends.launch import Launch, Value
from weft.backends.llvm import Functions
from weft.backends.memory import StateMemory
from weft.backends.native_call import ArgumentBlock, call, call_at_once
from weft.backends.pixels import level
from weft.codegen.base import Kernel
from weft.codegen.native.frame import FRAME
from weft.codegen.native.functions import COLUMNS, ELEMENTS, ROWS
from weft.codegen.native.layout import CHANNELS, Field, Head, History, ImageCell, Layout, PictureWord, Ring, Word
from weft.codegen.values import Line, Scalar
from weft.ir.rates import Rate

# With less to do than so many additions, waking a thread takes longer than its help is worth.
_WORTH_A_THREAD = 10_000_000

# Bands for each thread: one that is held up leaves the rest to the others.
_BANDS = 64


@dataclass(frozen=True, slots=True)
class LinkedCode:
    """Code that is linked."""

    layout: Layout
    functions: Functions
    tier: int


@dataclass(slots=True)
class _Coordinate:
    """The numbers of a coordinate that changes by column or row, so many and up to a vector, and what they are from."""

    name: str
    count: int
    array: npt.NDArray[np.float32]
    given: Value | None = None

    def fill(self, given: Value) -> None:
        if given is self.given:
            return
        if np.shape(given) not in ((self.count,), ()):
            raise ValueError(f"{self.name}: {np.shape(given)} coordinates, not {self.count}")
        with np.errstate(all="ignore"):
            self.array[: self.count] = given
        self.array[self.count :] = self.array[self.count - 1]
        self.given = given


class LaunchBuffers:
    """A kernel's code with the memory that it needs for one size of picture."""

    def __init__(self, kernel: Kernel, program: LinkedCode, shape: tuple[int, int]) -> None:
        self._kernel = kernel
        self._program = program
        self._layout = layout = program.layout
        self._shape = height, width = shape
        self._block = block = ArgumentBlock(layout.fields)
        block.set_number(Word.WIDTH, width)
        block.set_number(Word.HEIGHT, height)
        self._scalars = np.zeros(len(layout.scalars), np.uint32)
        block.set_array(Word.SCALARS, self._scalars, np.uint32, len(layout.scalars))
        self._reals = self._scalars.view(np.float32)
        placed = list(enumerate(layout.scalars))
        self._real_scalars = [scalar for _, scalar in placed if scalar.kind == "real"]
        self._real_places = np.array([at for at, scalar in placed if scalar.kind == "real"], np.intp)
        self._other_scalars = [(at, scalar) for at, scalar in placed if scalar.kind != "real"]
        self._numbers = np.zeros(len(layout.numbers))
        block.set_array(Word.NUMBERS, self._numbers, np.float64, len(layout.numbers))
        self._uniforms = [(at, str(s.key)) for at, s in enumerate(layout.numbers) if s.source == "uniform"]
        self._once = [(at, str(s.key)) for at, s in enumerate(layout.numbers) if s.source == "coord"]
        self._coordinates: list[_Coordinate] = []
        asked: dict[Rate, dict[Line, npt.NDArray[np.float32]]] = {rate: {} for rate in sorted(layout.asking)}
        for field in layout.fields:
            if isinstance(field, Line):
                count = width if field.rate == Rate.COLUMN else height
                length = max(count, layout.lanes)
                array = np.zeros(length, np.float32)
                block.set_array(field, array, np.float32, length)
                if field.source == "coord":
                    self._coordinates.append(_Coordinate(str(field.key), count, array))
                elif field.source == "local" and field.rate in asked:
                    asked[field.rate][field] = array
        self._asked = [LineReads(kernel, rate, lines) for rate, lines in asked.items()]
        self._borrowed = [field for field in layout.fields if not isinstance(field, (Word, Line))]
        """What may be another thing in each launch."""

    @property
    def loop_stopped(self) -> bool:
        return bool(self._block.number(Word.STOPPED))

    @property
    def has_frame(self) -> bool:
        """Whether its code computes what comes once in a launch. Else it has to be given the machine that did."""
        return self._layout.frame

    def prepare(self, memory: StateMemory, launch: Launch, machine: Machine | None, out: npt.NDArray[Any]) -> None:
        """Fills in what is given for one launch. Raises KeyError or ValueError if something does not fit."""
        block = self._block
        height, width = self._shape
        outputs = len(self._kernel.outputs) if out.dtype == np.float32 else 1
        block.set_array(Word.OUT, out, out.dtype.type, outputs * height * width, writes=True)
        block.set_number(Word.STOPPED, 0)
        if machine is not None:
            self._take_over(machine)
        for at, name in self._uniforms:
            self._numbers[at] = launch.uniforms[name]
        for at, name in self._once:
            self._numbers[at] = launch.coords[name]
        for coordinate in self._coordinates:
            coordinate.fill(launch.coords[coordinate.name])
        for field in self._borrowed:
            self._give(field, memory, launch)

    def _take_over(self, machine: Machine) -> None:
        """Fills in what a machine has computed."""
        self._block.set_number(Word.BASE, self._base(machine))
        with np.errstate(all="ignore"):
            self._reals[self._real_places] = [_value_of(machine, scalar) for scalar in self._real_scalars]
        for at, scalar in self._other_scalars:
            self._scalars[at] = int(_value_of(machine, scalar))
        for lines in self._asked:
            lines.fill(machine)

    def _give(self, field: Field, memory: StateMemory, launch: Launch) -> None:
        block = self._block
        height, width = self._shape
        match field:
            case ImageCell(slot, plane, k):
                cell = memory.ring(slot)[memory.cell(slot, k), plane]
                block.set_array(field, cell, np.float32, height * width, writes=k == 0)
            case Ring(slot):
                block.set_array(field, memory.ring(slot), np.float32, self._values(slot) * height * width)
            case History(slot):
                block.set_array(field, memory.ring(slot), np.float64, self._values(slot), writes=True)
            case Head(slot):
                block.set_number(field, memory.cell(slot))
            case PictureWord(path, what):
                picture = launch.pictures[path]
                if not picture.size:
                    raise ValueError(f"{path} is empty")
                if what == "pixels":
                    pixels = picture.shape[0] * picture.shape[1]
                    block.set_array(field, np.ascontiguousarray(picture), np.float32, pixels * CHANNELS)
                else:
                    block.set_number(field, picture.shape[1 if what == "width" else 0])

    def _values(self, key: str) -> int:
        """How many values, or images, the ring of a slot holds."""
        slot = self._kernel.slot(key)
        return (slot.depth + 1) * slot.planes

    def _base(self, machine: Machine) -> int:
        """The bits that all pixels of this launch share."""
        bits = self._layout.base
        for factor, source in self._layout.levels:
            bits |= factor * level(_value_of(machine, source) if isinstance(source, Scalar) else source)
        return bits

    def run(self, most: int, pool: BandPool) -> None:
        """Computes the lines, then the elements, with so many threads at most."""
        functions, block = self._program.functions, self._block
        height, width = self._shape
        threads = min(most, height) if height * width * self._layout.work >= _WORTH_A_THREAD else 1
        if self._layout.frame:
            call(functions, FRAME, block)
        if self._layout.columns:
            call(functions, COLUMNS, block)
        if self._layout.rows:
            call(functions, ROWS, block)
        block.set_number(Word.BAND, max(1, height // (threads * _BANDS)) if threads > 1 else height)
        call_at_once(functions, ELEMENTS, block, threads, pool)

    def release(self) -> None:
        """Lets go of what belongs to the caller."""
        self._block.release(Word.OUT, *self._borrowed)


def _value_of(machine: Machine, scalar: Scalar) -> float:
    match scalar:
        case Scalar("uniform", str(name)):
            return machine.launch.uniforms[name]
        case Scalar("coord", str(name)):
            return machine.coords[name]
        case Scalar("local", int(number)):
            return machine.locals[number]
    raise LookupError(f"{scalar} is given nowhere")
