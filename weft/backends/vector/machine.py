"""The vector machine runs kernels as calls of numpy, in single precision, on tiles that fit into the cache and are
shared among threads. Sounds with state run block by block, with their feedback sample by sample."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.executors import (
    NOTHING, BandPool, Executable, Refusal, Refusals, Refused, RefusedError, check, load_stages, refusing_failures,
    translate_stages
)
from weft.backends.launch import Array, Floats, Launch, StateMemory, channels, check_picture
from weft.backends.vector.feedback import (
    Calls, ComputedValues, OneByOneError, PastBlock, RecurrenceWriter, SerialRecurrence, reads_of, store
)
from weft.backends.vector.lists import CALLS, ListReader
from weft.backends.vector.steps import (
    HERE, Bound, Kept, LineArrays, Registers, Task, Tile, VectorProgram, dtype_of, run, shared_bits
)
from weft.backends.vm import Interpreter, Machine, ReferenceExecutable
from weft.codegen.kernel import Kernel
from weft.codegen.native.dataflow import Graph
from weft.codegen.native.serial_parts import SerialPart, SerialParts, SerialReads, is_series, states
from weft.codegen.native.target import Layout, Word
from weft.codegen.native.tiles import PROGRAMS, emit_tiles
from weft.codegen.values import Line, Node, Scalar, operands
from weft.ir.expr import SlotPlane
from weft.ir.rates import Rate
from weft.media.frames import floats
from weft.recently_used import RecentlyUsed

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
    """What numpy calls for a kernel and one form of output, planes or pixels. It can be pickled."""

    layout: Layout
    element: VectorProgram
    lines: Mapping[Rate, VectorProgram]


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
        self.base = np.zeros((), np.uint32)
        self.scalars, self.lines = self._inputs([code.element], real)
        self._wide_scalars, self._wide_lines = self._inputs(code.lines.values(), _DOUBLE)
        height, width = self.shape
        self._whole = Tile(task, slice(0, height), slice(0, width))
        self._steps_before = [step for rate in code.lines for step in self._bind_before(rate)]
        self._workers: list[_Worker] = []

    def _inputs(
        self, programs: Iterable[VectorProgram], real: np.dtype[Any]
    ) -> tuple[dict[Scalar, Array], LineArrays]:  # fmt: skip
        """The arrays of what programs read of a launch."""
        found = {each for program in programs for each in program.operands}
        scalars = {each: np.zeros((), dtype_of(each.kind, real)) for each in found if isinstance(each, Scalar)}
        return scalars, LineArrays((each for each in found if isinstance(each, Line)), self.shape, real)

    def _bind_before(self, rate: Rate) -> Bound:
        """The steps of a section of lines, all of which are one row."""
        shape = 1, self.shape[0 if rate == Rate.ROW else 1]
        known: dict[Any, Any] = {Kept(line): array.reshape(1, -1) for line, array in self.lines.arrays.items()}
        known.update((line, array.reshape(1, -1)) for line, array in self._wide_lines.arrays.items())
        known.update(self._wide_scalars)
        known |= {Word.BASE: self.base, HERE: self._whole}
        return Registers(self.code.lines[rate], shape, _DOUBLE).bind(shape, known)

    def prepare(self, machine: Machine, task: Task) -> None:
        """Computes everything that precedes the first tile of a launch."""
        self.base[...] = shared_bits(self.code.layout, machine)
        for scalars in (self.scalars, self._wide_scalars):
            for scalar, array in scalars.items():
                array[...] = machine.value_of(scalar.source, scalar.key)
        for lines in (self.lines, self._wide_lines):
            for line, array in lines.arrays.items():
                if line.source == "coord":
                    array.reshape(-1)[:] = task.launch.coords[str(line.key)]
        self._whole.task = task
        run(self._steps_before)

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
        self._numbers: dict[Any, Any] = {**buffers.scalars, Word.BASE: buffers.base}
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
            bound = LineArrays(self._whole.arrays, shape, self._real)
            known = {**self._numbers, **bound.arrays, HERE: tile}
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
        task.pixels = out.view("<u4")[:, :, 0]
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
    with refusing_failures("numpy code"):
        calls = emit_tiles(kernel, packed, CALLS)
        assert calls is not None, "there is room for any list"
        programs = {PROGRAMS[name]: ListReader(kernel, calls, name).program() for name, _ in calls.programs}
        return Code(calls.layout, programs.pop(Rate.ELEMENT), programs)
