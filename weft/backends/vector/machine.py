"""The vector machine runs kernels as calls of numpy, in single precision, on tiles that fit into the cache and are
shared among threads. Sounds with state run block by block, with their feedback sample by sample."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.executors import (
    NOTHING, BandPool, Executable, RecentlyUsed, Refusal, Refusals, Refused, RefusedError, check, load_stages,
    refusing_failures, translate_stages
)
from weft.backends.launch import OPAQUE, Array, Floats, Launch, StateMemory, channels, check_picture, level
from weft.backends.vector.feedback import (
    Calls, ComputedValues, OneByOneError, PastBlock, RecurrenceWriter, SerialRecurrence, reads_of, store
)
from weft.backends.vector.steps import (
    HERE, ArrayValue, Bound, ConstantArray, Extent, Filled, Kept, LineArray, LineArrays, Operand, Register, Registers,
    ScalarArray, Scalars, Task, Tile, VectorProgram, copy_bits_from_real, joined, run, store_pixels, store_plane
)
from weft.backends.vector.translate import Emitter, translate
from weft.backends.vm import Interpreter, Machine, ReferenceExecutable
from weft.codegen.kernel import Kernel
from weft.codegen.native.dataflow import Graph
from weft.codegen.native.serial_parts import SerialPart, SerialParts, SerialReads, is_series, states
from weft.codegen.values import Node, operands
from weft.ir.expr import SlotPlane
from weft.ir.rates import Rate
from weft.media.frames import floats

# The end of an element program: outputs as planes of numbers, or packed as pixels of four bytes.
#
# A channel of a picture is packed as rarely as it changes: once a launch, once a column, once a row, or at every
# element. A pixel is the bitwise or of these parts.

# The shift of each channel in a pixel of 32 bits, with red first in memory.
_SHIFTS = (0, 8, 16, 24) if sys.byteorder == "little" else (24, 16, 8, 0)

PIXEL_BASE = ScalarArray("pixels", "base", "u32")
"""The bits that are the same in all pixels of a launch."""


def pixel_line(extent: Extent) -> LineArray:
    """The part of the pixels that changes by column, or by row."""
    return LineArray("pixels", extent.name, "u32", extent)


@dataclass(slots=True)
class PixelPlan:
    """The channels that are packed before the tiles are computed, each with its factor in a pixel: numbers, and lines
    by their extent. `base` has the constant bits, such as an opaque alpha."""

    base: int = 0
    numbers: list[tuple[int, ScalarArray | float]] = field(default_factory=list)
    lines: dict[Extent, list[tuple[int, LineArray]]] = field(default_factory=dict)

    @property
    def sources(self) -> set[ScalarArray | LineArray]:
        """The inputs of the packing, without constants."""
        listed = [source for parts in self.lines.values() for _, source in parts]
        return {*listed, *(number for _, number in self.numbers if isinstance(number, ScalarArray))}

    def number(self, value_of: Callable[[ScalarArray], float]) -> int:
        """The bits that are the same in all pixels of a launch."""
        bits = self.base
        for factor, value in self.numbers:
            bits |= factor * level(value_of(value) if isinstance(value, ScalarArray) else value)
        return bits

    def fill(self, number: int, arrays: Mapping[LineArray, Array]) -> None:
        """Packs the lines of a launch into the lines of pixels, together with `number`, the bits of all pixels."""
        for extent, parts in self.lines.items():
            pixels = arrays[pixel_line(extent)]
            pixels.fill(number)
            for factor, line in parts:
                values = arrays[line]
                levels = np.fmin(np.fmax(values, 0), 1) * values.dtype.type(255) + values.dtype.type(0.5)
                pixels |= levels.astype(np.uint32) * np.uint32(factor)


def return_pixels(program: Emitter, values: Sequence[ArrayValue]) -> PixelPlan:
    """Ends a program with packed pixels; gives the plan of what has to be packed before it runs."""
    plan = PixelPlan()
    shown = channels(len(values))
    if len(shown) < len(_SHIFTS):
        plan.base = OPAQUE << _SHIFTS[3]
    packed: Register | None = None
    for output, each in enumerate(values):
        value = program.as_type(each, "float")
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
    program.emit(store_pixels, HERE, *parts)
    return plan


def _pack(program: Emitter, value: Register, factor: int) -> Register:
    """Packs one channel of a tile: its level, 0…255, times the factor."""
    program.release(value)
    extent = value.extent
    level = program.allocate("float", extent)
    program.emit(np.fmax, value, Filled(0.0, extent), level)
    program.emit(np.fmin, level, Filled(1.0, extent), level)
    program.emit(np.multiply, level, ConstantArray(255.0), level)
    program.emit(np.add, level, ConstantArray(0.5), level)
    bits = program.allocate("u32", extent)
    program.emit(copy_bits_from_real, bits, level)
    program.free(level)
    if factor != 1:
        program.emit(np.multiply, bits, ConstantArray(factor, "u32"), bits)
    return bits


def _together(program: Emitter, a: LineArray | Register, b: LineArray | Register) -> Register:
    program.free(*(operand for operand in (a, b) if isinstance(operand, Register)))
    out = program.allocate("u32", joined((a.extent, b.extent)))
    program.emit(np.bitwise_or, a, b, out)
    return out


# Buffers for one size of launch. The rarer sections are computed first, then the tiles, on one thread or several.

# A tile's registers should stay in the cache. But a call on a tile should also take far longer than making the call,
# and than waking another thread when the call releases Python's lock. Measured from 8k to 512k elements.
_TILE_BYTES = 2 * 1024 * 1024
_TILE_ELEMENTS = (1024, 64 * 1024)

# Below this many calls of a ufunc for one element, waking a thread takes longer than it saves.
_WORTH_A_THREAD = 500_000

# Column and row sections are computed in double precision, which costs next to nothing.
_DOUBLE = np.dtype(np.float64)


@dataclass(frozen=True, slots=True)
class Code:
    """The programs of a kernel for one form of output, planes or pixels. It can be pickled."""

    element: VectorProgram
    column: VectorProgram
    row: VectorProgram
    pixels: PixelPlan


_Part: TypeAlias = tuple[slice, slice]
"""The rows and columns of a tile."""


class TileBuffers:
    """The buffers of a kernel's programs for one size of picture."""

    def __init__(self, code: Code, task: Task, real: np.dtype[Any], tile_elements: int | None) -> None:
        self.shape = task.launch.shape
        self.code = code
        self.real = real
        smallest, largest = _TILE_ELEMENTS
        fitting = _TILE_BYTES // max(1, code.element.bytes_per_element(real.itemsize))
        self.parts = _parts(self.shape, tile_elements or max(smallest, min(largest, fitting)))
        packed = code.pixels.sources
        scalars = [each for each in packed if isinstance(each, ScalarArray)]
        self.scalars = Scalars([*code.element.scalars, *scalars, PIXEL_BASE], real)
        self.lines = LineArrays(code.element.lines, self.shape, real)
        before = {each for each in packed if isinstance(each, LineArray)} - set(code.element.lines)
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
        """Computes everything that precedes the first tile of a launch."""
        number = self.code.pixels.number(lambda scalar: machine.value_of(scalar.source, scalar.key))
        for scalars in (self.scalars, self._wide_scalars):
            scalars.fill(lambda each: number if each == PIXEL_BASE else machine.value_of(each.source, each.key))
        for lines in (self.lines, self._lines_before, self._wide_lines):
            for line, array in lines.arrays.items():
                if line.source == "coord":
                    array.reshape(-1)[:] = task.launch.coords[str(line.key)]
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
        parts = iter(self.parts)  # every thread takes the next one
        if threads == 1:
            self._workers[0].run_all(task, parts)
        else:
            pool.run(lambda number: self._workers[number].run_all(task, parts), threads, len(self.parts))


class _Worker:
    """One thread that computes tiles, with its own registers and its part of the lines."""

    def __init__(self, buffers: TileBuffers, task: Task) -> None:
        largest = buffers.parts[0]
        self._program = buffers.code.element
        self._scalars = buffers.scalars
        self._whole = buffers.lines
        self._real = buffers.real
        self._registers = Registers(self._program, _shape(largest), self._real)
        self._sizes: dict[tuple[int, int], tuple[LineArrays, Bound]] = {}
        self._columns: dict[tuple[int, int], slice] = {}
        """The columns in the lines for each size of tile, in this launch."""
        self._tile = Tile(task, *largest)

    def run_all(self, task: Task, parts: Iterator[_Part]) -> None:
        """Computes tiles of a launch."""
        self._columns.clear()
        self._tile.task = task
        with np.errstate(all="ignore"):
            for part in parts:
                self.run(part)
        self._tile.pixels = None  # part of the caller's picture

    def run(self, part: _Part) -> None:
        """Computes one tile."""
        tile, shape = self._tile, _shape(part)
        if shape not in self._sizes:
            bound = LineArrays(self._program.lines, shape, self._real)
            known: dict[Any, Any] = {**self._scalars.arrays, **bound.arrays, HERE: tile}
            self._sizes[shape] = bound, self._registers.bind(shape, known)
        lines, steps = self._sizes[shape]
        tile.rows, tile.columns = part
        if self._columns.get(shape) != tile.columns:
            lines.take(self._whole, tile.columns, down=False)
            self._columns[shape] = tile.columns
        lines.take(self._whole, tile.rows, down=True)
        if tile.task.pixels is not None:
            tile.pixels = tile.task.pixels[tile.rows, tile.columns]
        run(steps)


def _parts(shape: tuple[int, int], elements: int) -> list[_Part]:
    """Cuts a picture into tiles of about `elements` elements, of whole rows if they are short enough. The first tile is
    the largest."""
    height, width = shape
    rows = _slices(height, max(1, elements // width))
    columns = _slices(width, width if width <= elements else elements)
    return [(down, along) for down in rows for along in columns]


def _slices(length: int, most: int) -> list[slice]:
    count = -(-length // most)
    each = -(-length // count)
    return [slice(start, min(start + each, length)) for start in range(0, length, each)]


def _shape(part: _Part) -> tuple[int, int]:
    rows, columns = part
    return rows.stop - rows.start, columns.stop - columns.start


# Sounds with state, block by block: numpy computes rows of samples at once, and generated Python functions compute
# loops of feedback sample by sample.

# Samples of a block. With more, the rows would not fit into the cache, and more echoes would be loops of feedback.
_BLOCK = 512


@dataclass(frozen=True, slots=True)
class Series:
    """The element section of a sound, in parts."""

    steady: Calls
    """Values that are the same at all samples."""
    parts: tuple[Calls | SerialRecurrence, ...]
    outputs: tuple[Node, ...]
    stored: dict[SlotPlane, Node]
    """Values that are stored in slots at the end of a block. Loops of feedback store their own."""
    kept: frozenset[str]
    """Slots that a loop of feedback writes and numpy reads: they are read as they were before the block."""


def series_of(kernel: Kernel) -> Series | None:
    """A kernel with state as a series; None if its samples have to be computed one after another."""
    if not is_series(kernel):
        return None
    graph = Graph(kernel, kernel.section(Rate.ELEMENT))
    if not {each.place for each in graph.section.stores}.issuperset(states(graph.section.nodes)):
        return None
    with suppress(OneByOneError):
        return _series(kernel, graph)
    return None


def _series(kernel: Kernel, graph: Graph) -> Series:
    """Raises OneByOneError."""
    found = SerialParts(kernel, graph, SerialReads.OF_VALUES, _BLOCK)
    stored, parts = found.stored, [part for part in found.parts if part.nodes]
    reads = reads_of(kernel, stored)
    in_turn = {place for part in parts if part.serial for place in states(part.nodes)}
    in_rows = {place for part in parts if not part.serial for place in states(part.nodes)}
    at_once = {place: node for place, node in stored.items() if place not in in_turn}
    roots = {*graph.section.outputs, *at_once.values(), *(stored[place] for place in in_rows)}

    def made(part: SerialPart) -> Calls | SerialRecurrence:
        if not part.serial:
            return Calls(part.nodes, graph.masked, reads)
        used = roots | {each for other in parts if other is not part for node in other.nodes for each in operands(node)}
        own = {place: stored[place] for place in states(part.nodes)}
        leaves = [node for node in part.nodes if node in used]
        return RecurrenceWriter(kernel, part.nodes, own, leaves, graph.varying).recurrence()

    steady = Calls(found.steady, graph.masked)
    kept = frozenset({place.slot for place in in_rows} & {place.slot for place in in_turn})
    return Series(steady, tuple(map(made, parts)), tuple(graph.section.outputs), at_once, kept)


class VectorSeries(Executable):
    """The kernel of a sound with state; see `Executable`. Its planes are in double precision."""

    tier = None

    def __init__(self, kernel: Kernel, series: Series) -> None:
        self.kernel = kernel
        self._series = series
        self._interpreter = Interpreter.of_prologue(kernel)
        self._lines = [name for name, rate in kernel.coords if rate == Rate.ELEMENT]
        self._lock = threading.Lock()

    def planes(self, memory: StateMemory, launch: Launch) -> Floats:
        check(self.kernel, memory, launch)
        with self._lock, np.errstate(all="ignore"):
            machine = self._interpreter.begin(memory, launch)
            steady = ComputedValues(machine, {})
            self._series.steady.run(steady)
            out = self._run(steady, memory, launch)
        if machine.loop_stopped:
            launch.loop_stopped()
        return out

    def _run(self, steady: ComputedValues, memory: StateMemory, launch: Launch) -> Floats:
        height, width = launch.shape
        count = height * width
        out = np.empty((len(self.kernel.outputs), count))
        given = {name: np.broadcast_to(np.asarray(launch.coords[name], np.float64), (count,)) for name in self._lines}
        for start in range(0, count, _BLOCK):
            part = slice(start, min(start + _BLOCK, count))
            lines = {name: line[part] for name, line in given.items()}
            values = PastBlock(steady.machine, lines, steady, self._series.kept, part.stop - part.start)
            for each in self._series.parts:
                each.run(values)
            for row, node in zip(out, self._series.outputs, strict=True):
                row[part] = values[node]
            for place, node in self._series.stored.items():
                store(memory, place, values.row(node))
            memory.advance(values.count)
        return out.reshape(-1, height, width)


# The executor, and kernels that it has loaded.

# How many sizes of launch a kernel keeps buffers for.
_SIZES = 4


class VectorExecutor:
    """Loads kernels into the vector machine. `dtype` is the type in which the element section computes."""

    name = "vector"
    widest = np.float64

    def __init__(self, dtype: npt.DTypeLike = np.float32, tile_elements: int | None = None) -> None:
        """`tile_elements` fixes the size of tiles, which by default depends on the kernel."""
        self._real = np.dtype(dtype)
        self._tile_elements = tile_elements
        self._pool = BandPool()
        self.refusals = Refusals()

    def translate(self, kernel: Kernel, packed: bool, tier: int = 1) -> object | None:
        if packed:
            channels(len(kernel.outputs))
        if kernel.stages:
            return translate_stages(self, kernel, packed, tier)
        if tier > 1 or _one_by_one(kernel):
            return None
        try:
            return _translate(kernel, packed)
        except RefusedError as failure:
            return Refused(str(failure))

    def refuse(self, kernel: Kernel, reason: str) -> None:
        """Notes that a kernel runs on the reference machine because it could not be translated for this one."""
        self.refusals.add(Refusal(kernel.name, self.name, "vm", reason))

    def load(self, kernel: Kernel, codes: Mapping[bool, object] = NOTHING) -> Executable:
        if kernel.stages:
            return load_stages(self, kernel, codes)
        if _one_by_one(kernel):
            series: Series | None = None
            try:
                with refusing_failures("rows"):
                    series = series_of(kernel)
            except RefusedError as failure:
                self.refuse(kernel, str(failure))
            return VectorSeries(kernel, series) if series else ReferenceExecutable(kernel)
        refused = next((code for code in codes.values() if isinstance(code, Refused)), None)
        if refused is not None:
            self.refuse(kernel, refused.reason)
            return ReferenceExecutable(kernel)
        # Kernels with a tick for each element may count them over hours.
        real = np.dtype(np.float64) if kernel.tick == "element" else self._real
        return VectorExecutable(kernel, self, codes, real, self._tile_elements, self._pool)


def _one_by_one(kernel: Kernel) -> bool:
    """Whether each element needs the state that the previous one leaves."""
    return kernel.sweep == "grid" and kernel.tick == "element" and bool(kernel.slots)


class VectorExecutable(Executable):
    """A kernel on the vector machine; see `Executable`."""

    tier = None

    def __init__(
        self, kernel: Kernel, executor: VectorExecutor, codes: Mapping[bool, object], real: np.dtype[Any],
        tile_elements: int | None, pool: BandPool,
    ) -> None:
        self.kernel = kernel
        self._executor = executor
        self._real = real
        self._tile_elements = tile_elements
        self._pool = pool
        self._interpreter = Interpreter.of_prologue(kernel)
        self._code = {packed: code for packed, code in codes.items() if isinstance(code, Code)}
        self._refused: set[bool] = set()
        """The forms of output (packed or not) that are left to the reference machine."""
        self._buffers: RecentlyUsed[tuple[bool, tuple[int, int]], TileBuffers] = RecentlyUsed(_SIZES)
        self._lock = threading.Lock()

    def planes(self, memory: StateMemory, launch: Launch) -> Floats:
        check(self.kernel, memory, launch)
        if not self._is_translated(packed=False):
            return self._plain.planes(memory, launch)
        task = self._task(memory, launch)
        task.planes = planes = np.empty((len(self.kernel.outputs), *launch.shape), self._real)
        self._run(task, packed=False)
        return planes

    def rgba8(self, memory: StateMemory, launch: Launch, out: npt.NDArray[np.uint8]) -> None:
        channels(len(self.kernel.outputs))
        check(self.kernel, memory, launch)
        check_picture(out, launch.shape)
        if not self._is_translated(packed=True):
            self._plain.rgba8(memory, launch, out)
            return
        task = self._task(memory, launch)
        task.pixels = out.view(np.uint32)[:, :, 0]
        self._run(task, packed=True)

    @functools.cached_property
    def _plain(self) -> ReferenceExecutable:
        """The reference machine, for kernels that cannot be translated."""
        return ReferenceExecutable(self.kernel)

    def _is_translated(self, packed: bool) -> bool:
        """Whether there is code. Missing code is translated at the first call."""
        with self._lock:
            if packed not in self._code and packed not in self._refused:
                try:
                    self._code[packed] = _translate(self.kernel, packed)
                except RefusedError as failure:
                    self._refused.add(packed)
                    self._executor.refuse(self.kernel, str(failure))
            return packed in self._code

    def _task(self, memory: StateMemory, launch: Launch) -> Task:
        flat = {path: np.ascontiguousarray(floats(launch.pictures[path])).reshape(-1) for path in self.kernel.pictures}
        return Task(launch, memory, int(self.kernel.sweep == "points"), flat_pictures=flat)

    def _run(self, task: Task, packed: bool) -> None:
        with self._lock, np.errstate(all="ignore"):
            machine = self._interpreter.begin(task.memory, task.launch)
            buffers = self._buffers.get_or_make(
                (packed, task.launch.shape),
                lambda: TileBuffers(self._code[packed], task, self._real, self._tile_elements),
            )
            buffers.prepare(machine, task)
            buffers.run_tiles(task, self._pool)
        if self.kernel.sweep == "grid" and self.kernel.tick != "never":
            height, width = task.launch.shape
            task.memory.advance(height * width if self.kernel.tick == "element" else 1)
        if machine.loop_stopped or task.loop_stopped:
            task.launch.loop_stopped()
        task.release()


def _translate(kernel: Kernel, packed: bool) -> Code:
    """The code of a kernel. Raises RefusedError."""
    plan = PixelPlan()

    def finish(program: Emitter, values: list[ArrayValue]) -> None:
        nonlocal plan
        if packed:
            plan = return_pixels(program, values)
            return
        for number, each in enumerate(values):
            value = program.as_type(each, "float")
            program.emit(store_plane, HERE, number, value)
            program.release(value)

    with refusing_failures("numpy code"):
        element = translate(kernel, Rate.ELEMENT, finish=finish)
        wanted = {line.key for line in (*element.lines, *plan.sources) if line.source == "local"}
        kept = frozenset(number for number in wanted if isinstance(number, int))
        column, row = (translate(kernel, rate, kept) for rate in (Rate.COLUMN, Rate.ROW))
        return Code(element, column, row, plan)
