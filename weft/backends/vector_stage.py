"""What the vector machine sets up for one size of launch, and how it computes that: the rarer sections first, then
tile by tile, on one thread or several."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from weft.backends.bands import BandPool
from weft.backends.interpreter import Machine
from weft.backends.launch import Launch
from weft.backends.vector_program import (
    HERE, Bound, Kept, LineArray, LineArrays, Registers, ScalarArray, Scalars, VectorProgram, run
)
from weft.backends.vector_results import PIXEL_BASE, PixelPlan
from weft.backends.vector_steps import Task, Tile

# A tile's registers should stay near the core; but a call on a tile should also take far longer than making the call,
# and than another thread takes to wake up when the call lets go of Python's lock. Measured from 8k to 512k elements.
_TILE_BYTES = 2 * 1024 * 1024
_TILE_ELEMENTS = (1024, 64 * 1024)

# With less to do than so many calls of a ufunc for one element, waking a thread takes longer than its help is worth.
_WORTH_A_THREAD = 500_000

# What is computed once a column or row is computed in double precision: it costs next to nothing.
_DOUBLE = np.dtype(np.float64)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Code:
    """The programs of a kernel that end in one way: as planes, or as pixels. It can be pickled."""

    element: VectorProgram
    column: VectorProgram
    row: VectorProgram
    pixels: PixelPlan


_Part: TypeAlias = tuple[slice, slice]
"""The rows and columns of a tile."""


class TileBuffers:
    """All that the programs of a kernel need for one size of picture."""

    def __init__(self, code: Code, task: Task, real: np.dtype[Any], tile_elements: int | None) -> None:
        self.shape = task.launch.shape
        self.code = code
        self.real = real
        self.parts = _parts(self.shape, tile_elements or _tile_elements(code.element, real))
        self.scalars = Scalars([*code.element.scalars, *_of(ScalarArray, code.pixels.sources), PIXEL_BASE], real)
        self.lines = LineArrays(code.element.lines, self.shape, real)
        before = set(_of(LineArray, code.pixels.sources)) - set(code.element.lines)
        self._lines_before = LineArrays(before, self.shape, real)
        self._wide_scalars = Scalars([*code.column.scalars, *code.row.scalars], _DOUBLE)
        self._wide_lines = LineArrays([*code.column.lines, *code.row.lines], self.shape, _DOUBLE)
        height, width = self.shape
        self._whole = Tile(task, slice(0, height), slice(0, width))
        self._steps_before = [*self._bind_before(code.column), *self._bind_before(code.row)]
        self._workers: list[_Worker] = []

    def _bind_before(self, program: VectorProgram) -> Bound:
        arrays = self.lines.arrays | self._lines_before.arrays
        known: dict[Any, Any] = {Kept(line): array for line, array in arrays.items()}
        known |= self._wide_scalars.arrays | self._wide_lines.arrays
        known[HERE] = self._whole
        return Registers(program, self.shape, _DOUBLE).bind(self.shape, known)

    def prepare(self, machine: Machine, task: Task) -> None:
        """Computes everything that is there before the first tile, for one launch."""
        number = self.code.pixels.number(_value_of(machine))
        for scalars in (self.scalars, self._wide_scalars):
            scalars.fill(_value_of(machine, number))
        for lines in (self.lines, self._lines_before, self._wide_lines):
            _fill_coordinates(lines, task.launch)
        self._whole.task = task
        run(self._steps_before)
        self.code.pixels.fill(number, self.lines.arrays | self._lines_before.arrays)

    def run_tiles(self, task: Task, pool: BandPool) -> None:
        """Runs the element program on every tile."""
        height, width = self.shape
        worthwhile = height * width * len(self.code.element.steps) >= _WORTH_A_THREAD
        threads = min(task.launch.threads, len(self.parts)) if worthwhile else 1
        while len(self._workers) < threads:
            self._workers.append(_Worker(self, task))
        counter = itertools.count()

        def work(number: int) -> None:
            worker = self._workers[number]
            worker.begin(task)
            with np.errstate(all="ignore"):
                while (at := next(counter)) < len(self.parts):
                    worker.run(self.parts[at])
            worker.end()

        if threads == 1:
            work(0)
        else:
            pool.run(work, threads)


class _Worker:
    """What one thread needs to compute tiles: registers of its own, and its part of the lines."""

    def __init__(self, stage: TileBuffers, task: Task) -> None:
        largest = stage.parts[0]
        self._program = stage.code.element
        self._scalars = stage.scalars
        self._whole = stage.lines
        self._real = stage.real
        self._registers = Registers(self._program, _shape(largest), self._real)
        self._sizes: dict[tuple[int, int], tuple[LineArrays, Bound]] = {}
        self._columns: dict[tuple[int, int], slice] = {}
        """Which columns the lines of each size of tile hold in this launch."""
        self._tile = Tile(task, *largest)

    def begin(self, task: Task) -> None:
        """Gets ready for the tiles of a launch."""
        self._columns.clear()
        self._tile.task = task

    def end(self) -> None:
        """Lets go of the picture that the tiles are parts of."""
        self._tile.pixels = None

    def run(self, part: _Part) -> None:
        """Computes one tile."""
        tile, shape = self._tile, _shape(part)
        if shape not in self._sizes:
            self._sizes[shape] = self._bind(shape)
        lines, steps = self._sizes[shape]
        tile.rows, tile.columns = part
        if self._columns.get(shape) != tile.columns:
            lines.take_columns(self._whole, tile.columns)
            self._columns[shape] = tile.columns
        lines.take_rows(self._whole, tile.rows)
        if tile.task.pixels is not None:
            tile.pixels = tile.task.pixels[tile.rows, tile.columns]
        run(steps)

    def _bind(self, shape: tuple[int, int]) -> tuple[LineArrays, Bound]:
        lines = LineArrays(self._program.lines, shape, self._real)
        known: dict[Any, Any] = self._scalars.arrays | lines.arrays
        known[HERE] = self._tile
        return lines, self._registers.bind(shape, known)


def _tile_elements(program: VectorProgram, real: np.dtype[Any]) -> int:
    """How many elements a tile should have for the registers of a program."""
    smallest, largest = _TILE_ELEMENTS
    return max(smallest, min(largest, _TILE_BYTES // max(1, program.bytes_per_element(real.itemsize))))


def _parts(shape: tuple[int, int], elements: int) -> list[_Part]:
    """Cuts a picture into tiles of about so many elements, of whole rows where they are short enough. The largest is
    the first."""
    height, width = shape
    rows = _stretches(height, max(1, elements // width))
    columns = _stretches(width, width if width <= elements else elements)
    return [(down, along) for down in rows for along in columns]


def _stretches(length: int, most: int) -> list[slice]:
    """Cuts a length into stretches of nearly the same size, none above `most`."""
    count = -(-length // most)
    each = -(-length // count)
    return [slice(start, min(start + each, length)) for start in range(0, length, each)]


def _shape(part: _Part) -> tuple[int, int]:
    rows, columns = part
    return rows.stop - rows.start, columns.stop - columns.start


def _of(kind: type[T], listed: Iterable[object]) -> list[T]:
    return [each for each in listed if isinstance(each, kind)]


def _value_of(machine: Machine, pixels: int = 0) -> Callable[[ScalarArray], float]:
    """Where the scalars of a launch are found."""

    def value_of(scalar: ScalarArray) -> float:
        match scalar:
            case ScalarArray("uniform", str(name)):
                return machine.launch.uniforms[name]
            case ScalarArray("coord", str(name)):
                return machine.coords[name]
            case ScalarArray("local", int(number)):
                return machine.locals[number]
        return pixels

    return value_of


def _fill_coordinates(lines: LineArrays, launch: Launch) -> None:
    for line, array in lines.arrays.items():
        if line.source == "coord":
            array.reshape(-1)[:] = launch.coords[str(line.key)]
