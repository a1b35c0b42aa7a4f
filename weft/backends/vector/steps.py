"""What numpy calls for lists of calls: steps on registers, and the steps that are more than one call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import reduce
from operator import or_
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.launch import (
    Array, Floats, Launch, Located, StateMemory, fetch_all, gather, level, locate, ticks_back
)
from weft.backends.vm import Machine
from weft.codegen.kernel import LOOP_STEPS, NEST_STEPS
from weft.codegen.native.target import Layout, Word
from weft.codegen.values import Line, Scalar
from weft.ir.expr import PicturePlane, SlotPlane, StateSlot, StrandRef
from weft.ir.rates import Rate
from weft.ops.spec import ValueType

# The contents of an array: the types of values, or indices into memory.
Kind: TypeAlias = Literal["float", "bool", "u32", "index"]


class Extent(IntEnum):
    """The axes of a tile over which a value varies: none (an array without axes), the columns ([1, width]), the rows
    ([height, 1]), or both ([height, width])."""

    ONE = 0
    COLUMNS = 1
    ROWS = 2
    ALL = 3

    def shape(self, height: int, width: int) -> tuple[int, ...]:
        """The shape of an array in a tile of this size."""
        if self == Extent.ONE:
            return ()
        return (height if self & Extent.ROWS else 1, width if self & Extent.COLUMNS else 1)


def joined(extents: Iterable[Extent]) -> Extent:
    """The extent of a value that is computed from values of these extents."""
    return _EXTENTS[reduce(or_, extents, 0)]


_EXTENTS = tuple(Extent)


class Register(NamedTuple):
    """Scratch memory of one kind and extent."""

    kind: Kind
    extent: Extent
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A constant, as an array without axes."""

    value: float
    kind: ValueType


class Filled(NamedTuple):
    """A read-only register filled with one number: numpy's minimum and maximum are several times faster with it than
    with the number."""

    value: float
    extent: Extent


class Kept(NamedTuple):
    """The line in which a section leaves a value for the element section."""

    line: Line


class Ambient(Enum):
    """Operands that exist only in the process that runs the steps."""

    TILE = "tile"
    NUMPY = "numpy"


HERE = Ambient.TILE
"""Stands for the current `Tile`."""

NUMPY = Ambient.NUMPY
"""Stands for numpy itself."""

Operand: TypeAlias = Any
"""One of the classes above, an input of the launch (`Scalar`, `Line` or `Word.BASE`), or a tuple of operands, which are
replaced by what they stand for; or any other object."""

Step: TypeAlias = tuple[Operand, ...]
"""One call: its function and its operands."""


class LoopSteps(NamedTuple):
    """The steps of a loop's body."""

    steps: tuple[Step, ...]


Bound: TypeAlias = Sequence[tuple[Callable[..., object], tuple[Any, ...]]]
"""Steps with the arrays that they are called with."""


@dataclass(frozen=True, slots=True)
class VectorProgram:
    """The steps of one section, and what they need of memory and of the launch. It can be pickled."""

    steps: tuple[Step, ...]
    operands: frozenset[Register | Filled | Scalar | Line]

    @classmethod
    def of(cls, steps: tuple[Step, ...]) -> VectorProgram:
        needed = (Register, Filled, Scalar, Line)
        return cls(steps, frozenset(each for each in _within(steps) if type(each) in needed))

    def bytes_per_element(self, real: int) -> int:
        """The approximate bytes of its registers for each element of a tile, with floats of `real` bytes."""
        sizes: Mapping[Kind, int] = {"float": real, "bool": 1, "u32": 4, "index": 8}
        found = (each for each in self.operands if type(each) is Register)
        return sum(sizes[each.kind] for each in found if each.extent == Extent.ALL)


def _within(entries: Iterable[Operand]) -> Iterator[Operand]:
    for entry in entries:
        if type(entry) in (tuple, LoopSteps):
            yield from _within(entry)
        else:
            yield entry


def run(steps: Bound) -> None:
    """Makes all the calls in turn."""
    for function, operands in steps:
        function(*operands)


def dtype_of(kind: Kind, real: np.dtype[Any]) -> np.dtype[Any]:
    """The type of an array's elements, where `real` is the type of floats."""
    return _DTYPES.get(kind, real)


_DTYPES: Mapping[Kind, np.dtype[Any]] = {
    "bool": np.dtype(np.bool_), "u32": np.dtype(np.uint32), "index": np.dtype(np.intp)
}


class LineArrays:
    """The arrays of lines, [1, width] or [height, 1] each, for one size of picture or tile."""

    def __init__(self, lines: Iterable[Line], shape: tuple[int, int], real: np.dtype[Any]) -> None:
        self.arrays: dict[Line, Array] = {}
        self._along: dict[bool, list[Array]] = {False: [], True: []}
        """Arrays with all lines of one kind, by whether these run along columns."""
        height, width = shape
        listed = dict.fromkeys(lines)
        for down in (False, True):
            for kind in ("float", "bool", "u32"):
                group = [line for line in listed if (line.rate == Rate.ROW) == down and line.kind == kind]
                size = (len(group), height, 1) if down else (len(group), 1, width)
                values = np.zeros(size, dtype_of(kind, real))
                self.arrays.update((line, values[at]) for at, line in enumerate(group))
                self._along[down].append(values)

    def take(self, whole: LineArrays, part: slice, down: bool) -> None:
        """Copies a slice, of this object's size, of the lines along columns (`down`) or along rows."""
        for own, values in zip(self._along[down], whole._along[down], strict=True):
            if len(own):
                np.copyto(own, values[:, part, :] if down else values[:, :, part])


class Registers:
    """The memory of a program's registers, and their views for tiles of any size up to a capacity."""

    def __init__(self, program: VectorProgram, capacity: tuple[int, int], real: np.dtype[Any]) -> None:
        self._program, self._real = program, real
        self._memory: dict[Operand, Array] = {}
        """Arrays that do not depend on the size of a tile, except in their views."""
        for entry in program.operands:
            match entry:
                case Register(kind, extent, _):
                    self._memory[entry] = np.empty(math.prod(extent.shape(*capacity)), dtype_of(kind, real))
                case Filled(value, extent):
                    self._memory[entry] = np.full(math.prod(extent.shape(*capacity)), value, real)

    def bind(self, shape: tuple[int, int], known: Mapping[Any, Any]) -> Bound:
        """The steps of the program for tiles of one size. `known` has the arrays of all inputs of the launch, and the
        tile for `HERE`."""
        found: dict[Operand, Any] = {**known, NUMPY: np}
        for entry, memory in self._memory.items():
            wanted = entry.extent.shape(*shape)
            found[entry] = memory[: math.prod(wanted)].reshape(wanted)
        return self._bound(self._program.steps, found)

    def _bound(self, steps: Iterable[Step], found: Mapping[Operand, Any]) -> Bound:
        return [(function, tuple([self._resolved(each, found) for each in operands])) for function, *operands in steps]

    def _resolved(self, entry: Operand, found: Mapping[Operand, Any]) -> Any:
        of = type(entry)
        if of in _STANDING:
            return found[entry]
        if of is Constant:
            return np.array(entry.value, dtype_of(entry.kind, self._real))
        if of is tuple:
            return tuple([self._resolved(each, found) for each in entry])
        return self._bound(entry.steps, found) if of is LoopSteps else entry


_STANDING = frozenset({Register, Filled, Scalar, Line, Kept, Ambient, Word})


def shared_bits(layout: Layout, machine: Machine) -> int:
    """The bits that all pixels of a launch share, whose prologue a machine has run."""
    bits = layout.base
    for factor, source in layout.levels:
        bits |= factor * level(machine.value_of(*source[:2]) if isinstance(source, Scalar) else source)
    return bits


# Functions that steps call besides those of numpy: state, strands, pictures, loops, results.


@dataclass(slots=True)
class Task:
    """One launch, shared by all threads that work on it."""

    launch: Launch
    memory: StateMemory
    finished: int = 0
    """1 if the launch reads the state of a finished tick, after which memory has advanced; else 0."""
    planes: Floats | None = None
    pixels: npt.NDArray[np.uint32] | None = None
    flat_pictures: dict[str, Array] = field(default_factory=dict)
    loop_stopped: bool = False

    def release(self) -> None:
        """Releases the caller's pictures and memory, which a loaded kernel must not keep alive."""
        self.planes = self.pixels = None
        self.flat_pictures = {}
        self.memory = StateMemory(())
        self.launch = Launch(self.launch.shape, {})


@dataclass(slots=True)
class Tile:
    """The part of a launch that one thread is working on."""

    task: Task
    rows: slice
    columns: slice
    pixels: Array | None = None
    steps_left: int = 0

    def step_allowed(self, count: int, nested: bool) -> bool:
        """Whether the limits allow another step of a loop after `count`; counts it, or notes that the loop was
        stopped."""
        if count < LOOP_STEPS and not (nested and self.steps_left == 0):
            self.steps_left -= nested
            return True
        self.task.loop_stopped = True
        return False


def copy_bits_from_real(bits: Array, real: Array) -> None:
    """Converts floats of 0…2³¹ to integers, rounding down."""
    # Signed numbers are converted faster.
    np.copyto(bits.view(np.int32), real, casting="unsafe")


def copy_where(out: Array, value: Array, condition: Array) -> None:
    np.copyto(out, value, where=condition)


def copy_narrowed(out: Array, value: Array) -> None:
    """Copies to an array that may be of single precision."""
    np.copyto(out, value, casting="same_kind")


def find_cells(tile: Tile, slot: StateSlot, plane: int, k: Array, out: Array) -> None:
    """The number of a slot's plane k ticks ago among the planes of all its cells."""
    memory, finished = tile.task.memory, tile.task.finished
    if k.ndim == 0:
        cell: Any = memory.cell(slot.key, ticks_back(float(k), slot.depth, 1 - finished) + finished)
    else:
        # The comparison is false for NaN, as in `ticks_back`.
        cell = memory.cell(slot.key, np.where(k >= 1, np.minimum(k, slot.depth), 1).astype(np.intp) + finished)
    out[...] = cell * slot.planes + plane


def load_state(tile: Tile, key: str, cells: Array, out: Array) -> None:
    """What an image was in these cells, which may differ from element to element."""
    ring = tile.task.memory.ring(key)
    if cells.ndim == 0:
        picture = ring.reshape(-1, *ring.shape[2:])[int(cells)]
        np.copyto(out, picture[tile.rows, tile.columns], casting="same_kind")
        return
    height, width = ring.shape[2:]
    place = np.arange(height)[tile.rows, None] * width + np.arange(width)[tile.columns]
    np.copyto(out, ring.reshape(-1)[cells * (height * width) + place], casting="same_kind")


def load_history(tile: Tile, key: str, cells: Array, out: Array) -> None:
    """What a slot of one number was in these cells."""
    np.copyto(out, tile.task.memory.ring(key).reshape(-1)[cells], casting="same_kind")


def store_state(tile: Tile, place: SlotPlane, value: Array) -> None:
    memory = tile.task.memory
    cell = memory.ring(place.slot)[memory.cell(place.slot)]
    np.copyto(cell[place.plane, tile.rows, tile.columns], value, casting="same_kind")


# The scratch arrays of sampling: those that `locate` fills for x and for y, and those of `gather`.
SampleScratch: TypeAlias = tuple[Located, Located, tuple[Array, Array, Array]]


def sample_state(
    tile: Tile, source: tuple[str, Array], at: tuple[Array, Array], out: Array, scratch: SampleScratch
) -> None:
    """Samples an image as it was in a cell (`source`: slot, cell)."""
    key, cells = source
    ring = tile.task.memory.ring(key)
    size, flat = ring.shape[2:], ring.reshape(-1)
    (x, y), (columns, rows, rest) = at, scratch
    locate(x, size[1], 1, 0, columns)
    locate(y, size[0], size[1], cells * math.prod(size), rows)
    gather(flat, columns, rows, out, rest)


def sample_picture(
    tile: Tile, place: PicturePlane, at: tuple[Array, Array], out: Array, scratch: SampleScratch
) -> None:
    height, width, planes = tile.task.launch.pictures[place.picture].shape
    (x, y), (columns, rows, rest) = at, scratch
    locate(x, width, planes, place.plane, columns)
    locate(y, height, width * planes, 0, rows)
    gather(tile.task.flat_pictures[place.picture], columns, rows, out, rest)


def fetch_samples(tile: Tile, place: PicturePlane, number: Array, out: Array) -> None:
    samples = tile.task.launch.pictures[place.picture][0, :, place.plane]
    np.copyto(out, fetch_all(samples, number), casting="same_kind")


def load_strand(tile: Tile, strand: StrandRef, out: Array, *coordinates: Array) -> None:
    np.copyto(out, tile.task.launch.strands[strand](*coordinates), casting="same_kind")


def store_plane(tile: Tile, number: int, value: Array) -> None:
    assert tile.task.planes is not None
    np.copyto(tile.task.planes[number, tile.rows, tile.columns], value)


def store_pixels(tile: Tile, *parts: Array) -> None:
    """Ends a tile: its pixels are the only part, or the bitwise or of both."""
    assert tile.pixels is not None
    if len(parts) == 1:
        np.copyto(tile.pixels, parts[0])
    else:
        np.bitwise_or(parts[0], parts[1], out=tile.pixels)


class Nest(NamedTuple):
    """The nesting of a loop: `shared` if it is in a nest of loops, which share a limit of steps; `outermost` if it is
    not inside another loop."""

    shared: bool
    outermost: bool


# The first value of a loop's variable, the last, and the array that the body reads it from.
Bounds: TypeAlias = tuple[Array, Array, Array]


def run_loop(tile: Tile, nest: Nest, bounds: Bounds, body: Bound) -> None:
    """A loop with the same steps in the whole tile."""
    first, last, index = bounds
    if nest.outermost:
        tile.steps_left = NEST_STEPS
    count = 0
    while True:
        np.add(first, count, out=index)
        if not index <= last or not tile.step_allowed(count, nest.shared):
            return
        run(body)
        count += 1


def run_masked_loop(
    tile: Tile, bounds: Bounds, masks: tuple[Array, Array, Array | None], spent: Array | None, body: Bound
) -> None:
    """A loop that may stop at a different step in each element.

    The masks are: which elements take part in the step that the body makes, a scratch array, and which take part in
    the loop around, if there is one. `spent` counts the steps that a nest has made in each element.
    """
    first, last, index = bounds
    active, condition, outer = masks
    if outer is not None:
        np.copyto(active, outer)
    else:
        active.fill(True)
        if spent is not None:
            spent.fill(0)
    count = 0
    while True:
        np.add(first, count, out=index)
        np.less_equal(index, last, out=condition)
        np.logical_and(active, condition, out=active)
        if not active.any():
            return
        if count == LOOP_STEPS:
            tile.task.loop_stopped = True
            return
        if spent is not None and not _spend(tile, spent, active, condition):
            return
        run(body)
        count += 1


def _spend(tile: Tile, spent: Array, active: Array, condition: Array) -> bool:
    """Counts a step in the active elements, and deactivates those that have reached the limit; gives whether any are
    left."""
    np.less(spent, NEST_STEPS, out=condition)
    if not condition.all():
        before = np.count_nonzero(active)
        np.logical_and(active, condition, out=active)
        left = np.count_nonzero(active)
        tile.task.loop_stopped |= bool(left < before)
        if not left:
            return False
    np.add(spent, 1, out=spent, where=active)
    return True
