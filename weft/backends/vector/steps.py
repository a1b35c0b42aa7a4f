"""Programs of the vector machine: lists of calls of numpy on registers, and the steps that are more than one call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import reduce
from operator import or_
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.launch import Array, Floats, Launch, Located, StateMemory, fetch_all, gather, locate, ticks_back
from weft.codegen.kernel import LOOP_STEPS, NEST_STEPS
from weft.ir.expr import PicturePlane, SlotPlane, StateSlot, StrandRef

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
class ConstantArray:
    """A constant, as an array without axes. Compared by identity, since 0 equals -0."""

    value: float
    kind: Kind = "float"
    extent: ClassVar = Extent.ONE


class Filled(NamedTuple):
    """A read-only register filled with one number: numpy's minimum and maximum are several times faster with it than
    with the number."""

    value: float
    extent: Extent


class ScalarArray(NamedTuple):
    """A number that is set for each launch: a uniform, a coordinate or a local, by its name or number."""

    source: Literal["uniform", "coord", "local", "pixels"]
    key: str | int
    kind: Kind
    extent: Extent = Extent.ONE


class LineArray(NamedTuple):
    """Numbers that are set for each launch, one for each column or row: a coordinate, a local, or packed pixels.
    `extent` is ALL for a value that changes at every element of a single row."""

    source: Literal["coord", "local", "pixels"]
    key: str | int
    kind: Kind
    extent: Extent


ArrayValue: TypeAlias = Register | ConstantArray | ScalarArray | LineArray
"""Where a value is stored."""


class Kept(NamedTuple):
    """The line in which a section leaves a value for the element section."""

    line: LineArray


class Ambient(Enum):
    """Operands that exist only in the process that runs the steps."""

    TILE = "tile"
    NUMPY = "numpy"


HERE = Ambient.TILE
"""Stands for the current `Tile`."""

NUMPY = Ambient.NUMPY
"""Stands for numpy itself."""

Step: TypeAlias = tuple[int, ...]
"""One call: the indices of its function and its operands in the program's table."""


class OperandGroup(NamedTuple):
    """Several operands as one, by their indices in the table."""

    places: tuple[int, ...]


class LoopSteps(NamedTuple):
    """The steps of a loop's body."""

    steps: tuple[Step, ...]


Operand: TypeAlias = Any
"""An entry of the table: one of the classes above, which is replaced by what it stands for, or any other object."""

Bound: TypeAlias = Sequence[tuple[Callable[..., object], tuple[Any, ...]]]
"""Steps with the arrays that they are called with."""


@dataclass(frozen=True, slots=True)
class VectorProgram:
    """The steps of one section, and the table of what they refer to. It can be pickled compactly, since the table has
    each entry only once."""

    steps: tuple[Step, ...]
    table: tuple[Operand, ...]
    """All functions and operands of the steps. Groups and loop bodies come after their entries."""
    registers: Mapping[tuple[Kind, Extent], int]
    """How many registers of each kind and extent it needs."""

    @property
    def scalars(self) -> list[ScalarArray]:
        return [entry for entry in self.table if type(entry) is ScalarArray]

    @property
    def lines(self) -> list[LineArray]:
        return [entry for entry in self.table if type(entry) is LineArray]

    def bytes_per_element(self, real: int) -> int:
        """The approximate bytes of its registers for each element of a tile, with floats of `real` bytes."""
        sizes: Mapping[Kind, int] = {"float": real, "bool": 1, "u32": 4, "index": 8}
        return sum(count * sizes[kind] for (kind, extent), count in self.registers.items() if extent == Extent.ALL)


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


class Scalars:
    """The arrays of scalars, with one type of floats."""

    def __init__(self, scalars: Iterable[ScalarArray], real: np.dtype[Any]) -> None:
        self.arrays: dict[ScalarArray, Array] = {}
        self._groups: list[tuple[list[ScalarArray], Array]] = []
        listed = dict.fromkeys(scalars)
        for kind in ("float", "bool", "u32"):
            group = [scalar for scalar in listed if scalar.kind == kind]
            values = np.zeros(len(group), dtype_of(kind, real))
            self._groups.append((group, values))
            self.arrays.update((scalar, values[at, ...]) for at, scalar in enumerate(group))

    def fill(self, value_of: Callable[[ScalarArray], float]) -> None:
        """Takes the values of a launch."""
        for group, values in self._groups:
            if group:
                values[:] = [value_of(scalar) for scalar in group]


class LineArrays:
    """The arrays of lines, [1, width] or [height, 1] each, for one size of picture or tile."""

    def __init__(self, lines: Iterable[LineArray], shape: tuple[int, int], real: np.dtype[Any]) -> None:
        self.arrays: dict[LineArray, Array] = {}
        self._along: dict[bool, list[Array]] = {False: [], True: []}
        """Arrays with all lines of one kind, by whether these run along columns."""
        height, width = shape
        listed = dict.fromkeys(lines)
        for down in (False, True):
            for kind in ("float", "bool", "u32"):
                group = [line for line in listed if (line.extent == Extent.ROWS) == down and line.kind == kind]
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
        self._program = program
        self._capacity = capacity
        self._real = real
        self._memory: dict[Register | Filled | ConstantArray, Array] = {}
        """Arrays that do not depend on the size of a tile, except in their views."""
        for entry in program.table:
            match entry:
                case Register(kind, extent, _):
                    self._memory[entry] = self._allocate(extent, dtype_of(kind, real))
                case Filled(value, extent) if entry not in self._memory:
                    self._memory[entry] = self._allocate(extent, real)
                    self._memory[entry].fill(value)
                case ConstantArray(value, kind):
                    self._memory[entry] = np.array(value, dtype_of(kind, real))

    def _allocate(self, extent: Extent, dtype: np.dtype[Any]) -> Array:
        return np.empty(math.prod(extent.shape(*self._capacity)), dtype)

    def bind(self, shape: tuple[int, int], known: Mapping[Any, Any]) -> Bound:
        """The steps of the program for tiles of one size. `known` has the arrays of all scalars and lines, and the tile
        for `HERE`."""
        found: list[Any] = []
        for entry in self._program.table:
            found.append(self._resolve(entry, found, shape, known))
        return _bound(self._program.steps, found)

    def _resolve(self, entry: Operand, found: Sequence[Any], shape: tuple[int, int], known: Mapping[Any, Any]) -> Any:
        match entry:
            case Register() | Filled():
                wanted = entry.extent.shape(*shape)
                return self._memory[entry][: math.prod(wanted)].reshape(wanted)
            case ConstantArray():
                return self._memory[entry]
            case ScalarArray() | LineArray() | Kept() | Ambient.TILE:
                return known[entry]
            case Ambient.NUMPY:
                return np
            case OperandGroup(places):
                return tuple(map(found.__getitem__, places))
            case LoopSteps(steps):
                return _bound(steps, found)
        return entry


def _bound(steps: Iterable[Step], found: Sequence[Any]) -> Bound:
    return [(found[step[0]], tuple(map(found.__getitem__, step[1:]))) for step in steps]


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

    def start(self, slot: StateSlot, plane: int, k: Array) -> Any:
        """The position of a slot's plane k ticks ago in its flat memory: a number, or one for each k."""
        ring = self.memory.ring(slot.key)
        size = ring[0, 0].size
        if k.ndim == 0:
            cell: Any = self.memory.cell(slot.key, ticks_back(float(k), slot.depth, 1 - self.finished) + self.finished)
        else:
            # The comparison is false for NaN, as in `ticks_back`.
            back = np.where(k >= 1, np.minimum(k, slot.depth), 1).astype(np.intp)
            cell = self.memory.cell(slot.key, back + self.finished)
        return (cell * slot.planes + plane) * size


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


def load_state(tile: Tile, slot: StateSlot, plane: int, k: Array, out: Array) -> None:
    flat = tile.task.memory.ring(slot.key).reshape(-1)
    start = tile.task.start(slot, plane, k)
    if not slot.image:
        np.copyto(out, flat[start], casting="same_kind")
        return
    height, width = tile.task.memory.ring(slot.key).shape[2:]
    if k.ndim == 0:
        picture = flat[start : start + height * width].reshape(height, width)
        np.copyto(out, picture[tile.rows, tile.columns], casting="same_kind")
        return
    place = np.arange(height)[tile.rows, None] * width + np.arange(width)[tile.columns]
    np.copyto(out, flat[start + place], casting="same_kind")


def store_state(tile: Tile, place: SlotPlane, value: Array) -> None:
    memory = tile.task.memory
    cell = memory.ring(place.slot)[memory.cell(place.slot)]
    np.copyto(cell[place.plane, tile.rows, tile.columns], value, casting="same_kind")


# The scratch arrays of sampling: those that `locate` fills for x and for y, and those of `gather`.
SampleScratch: TypeAlias = tuple[Located, Located, tuple[Array, Array, Array]]


def sample_state(
    tile: Tile, source: tuple[StateSlot, int, Array], at: tuple[Array, Array], out: Array, scratch: SampleScratch
) -> None:
    """Samples a plane of a slot as it was k ticks ago (`source`: slot, plane, k)."""
    ring = tile.task.memory.ring(source[0].key)
    size, flat = ring.shape[2:], ring.reshape(-1)
    (x, y), (columns, rows, rest) = at, scratch
    locate(x, size[1], 1, 0, columns)
    locate(y, size[0], size[1], tile.task.start(*source), rows)
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
