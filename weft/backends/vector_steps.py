"""What the vector machine calls besides numpy itself: state, strands, pictures, loops, results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.launch import Launch, Reals
from weft.backends.memory import StateMemory, ticks_back
from weft.backends.sampling import Located, gather, locate
from weft.backends.vector_program import Array, Bound, run
from weft.codegen.base import LOOP_STEPS, NEST_STEPS
from weft.ir.expr import PicturePlane, SlotPlane, StateSlot, StrandRef


@dataclass(slots=True)
class Task:
    """One launch, as all threads that work on it see it."""

    launch: Launch
    memory: StateMemory
    finished: int = 0
    """1 if the tick is over whose state is read: memory has moved on since."""
    planes: Reals | None = None
    pixels: npt.NDArray[np.uint32] | None = None
    flat_pictures: dict[str, Array] = field(default_factory=dict)
    loop_stopped: bool = False

    def release(self) -> None:
        """Lets go of what belongs to whoever asked for the launch: a kernel that is kept ready must not keep pictures
        and memory with it."""
        self.planes = self.pixels = None
        self.flat_pictures = {}
        self.memory = StateMemory(())
        self.launch = Launch(self.launch.shape, {})

    def start(self, slot: StateSlot, plane: int, k: Array) -> Any:
        """Where a plane of a slot begins in its flat memory, k ticks ago: a number, or one for each k."""
        ring = self.memory.ring(slot.key)
        size = ring[0, 0].size
        if k.ndim == 0:
            cell: Any = self.memory.cell(slot.key, ticks_back(float(k), slot.depth, 1 - self.finished) + self.finished)
        else:
            # A comparison that fails for NaN, as `ticks_back` has it.
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
        """Counts another step of a loop after `count`; notes it if the limits do not allow it."""
        if count < LOOP_STEPS and not (nested and self.steps_left == 0):
            self.steps_left -= nested
            return True
        self.task.loop_stopped = True
        return False


def copy_bits_from_real(bits: Array, real: Array) -> None:
    """Converts reals of 0…2³¹ to whole numbers, rounding down."""
    # Signed numbers are converted faster.
    np.copyto(bits.view(np.int32), real, casting="unsafe")


def copy_where(out: Array, value: Array, condition: Array) -> None:
    np.copyto(out, value, where=condition)


def copy_narrowed(out: Array, value: Array) -> None:
    """Copies to an array whose reals may be of single precision."""
    np.copyto(out, value, casting="same_kind")


def load_state(tile: Tile, slot: StateSlot, plane: int, k: Array, out: Array) -> None:
    flat = tile.task.memory.ring(slot.key).reshape(-1)
    start = tile.task.start(slot, plane, k)
    if not slot.image:
        np.copyto(out, flat[start], casting="same_kind")
        return
    height, width = tile.task.memory.shape
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


# What sampling writes over: for x and for y what `locate` fills, and what `gather` takes.
SampleScratch: TypeAlias = tuple[Located, Located, tuple[Array, Array, Array]]


def sample_state(
    tile: Tile, source: tuple[StateSlot, int, Array], at: tuple[Array, Array], out: Array, scratch: SampleScratch
) -> None:
    """Samples a plane of a slot as it was k ticks ago (`source`: slot, plane, k)."""
    size = tile.task.memory.shape
    flat = tile.task.memory.ring(source[0].key).reshape(-1)
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


def load_strand(tile: Tile, strand: StrandRef, out: Array, *coordinates: Array) -> None:
    np.copyto(out, tile.task.launch.strands[strand](*coordinates), casting="same_kind")


def store_plane(tile: Tile, number: int, value: Array) -> None:
    assert tile.task.planes is not None
    np.copyto(tile.task.planes[number, tile.rows, tile.columns], value)


def store_pixels(tile: Tile, *parts: Array) -> None:
    """Ends a tile: its pixels are the one part, or the bits of both."""
    assert tile.pixels is not None
    if len(parts) == 1:
        np.copyto(tile.pixels, parts[0])
    else:
        np.bitwise_or(parts[0], parts[1], out=tile.pixels)


class Nest(NamedTuple):
    """How a loop stands to others: `shared` if it is one of a nest, which have a common limit of steps; `outermost` if
    it is not within another."""

    shared: bool
    outermost: bool


# The first value of a loop's variable, the last, and the array that the body reads it from.
Bounds: TypeAlias = tuple[Array, Array, Array]


def run_loop(tile: Tile, nest: Nest, bounds: Bounds, body: Bound) -> None:
    """A loop that makes the same steps in the whole tile."""
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
    """A loop that stops at another step in each element.

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
    """Counts a step in the active elements, and takes out those that may not make it; whether any may."""
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
