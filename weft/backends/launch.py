"""The input of one execution of a kernel: its extent and coordinates, values and pictures from outside, and the state
of its slots."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.ir.expr import StateSlot, StrandRef

if TYPE_CHECKING:  # the process that plays sound needs no kernels
    from weft.codegen.kernel import Kernel

Array: TypeAlias = npt.NDArray[Any]

Floats: TypeAlias = npt.NDArray[np.floating[Any]]

TIME = "abstime"
"""The coordinate of the time, in seconds. If the time is given by blocks, it is that of the first sample."""

SINCE = "since"
"""The coordinate of the time within a block, in seconds, if the time is given by blocks."""

# A coordinate or another value: one number, or an array with a number for each element.
Value: TypeAlias = float | Floats

# Reads a strand of another subgraph at coordinates: numbers, or arrays that broadcast together, which it must neither
# keep nor change. Returns a number, or an array of the broadcast shape. Several threads may call it at once.
Getter: TypeAlias = Callable[..., Value]

# A picture: [height, width, 4], single precision, 0…1; or a sound: [1, samples, 2], left and right.
Picture: TypeAlias = npt.NDArray[np.float32]


class Even(NamedTuple):
    """Evenly spaced times: that of element n is `origin + (first + n) / rate`, in double precision."""

    first: float
    rate: float
    origin: float = 0.0

    def times(self, count: int) -> Floats:
        """The first `count` times."""
        return self.origin + (self.first + np.arange(count)) / self.rate


class StreamCoords(Mapping[str, Value]):
    """The coordinates of a stream. The array of times is computed only when it is read."""

    def __init__(self, even: Even, count: int, others: Mapping[str, Value]) -> None:
        self._even = even
        self._count = count
        self._others = others

    def __getitem__(self, name: str) -> Value:
        return self._times if name == TIME else self._others[name]

    def __contains__(self, name: object) -> bool:
        return name == TIME or name in self._others

    def __iter__(self) -> Iterator[str]:
        return iter({TIME: None, **self._others})

    def __len__(self) -> int:
        return len({TIME, *self._others})

    @functools.cached_property
    def _times(self) -> Floats:
        return self._even.times(self._count)


@dataclass(frozen=True)
class Launch:
    """One execution over `shape` elements (height, width). Points and samples are a picture of one row.

    `coords` holds every coordinate that the kernel reads: an array of the width for one that changes by column or by
    element, an array of the height for one that changes by row, else a number. A list of points may share a number.
    """

    shape: tuple[int, int]
    coords: Mapping[str, Value]
    uniforms: Mapping[str, float] = field(default_factory=dict)
    strands: Mapping[StrandRef, Getter] = field(default_factory=dict)
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    threads: int = 1
    """How many threads may share the work; a small launch uses one."""
    even: Even | None = None
    """The coordinate `abstime` without an array, if its values are evenly spaced."""
    loop_stopped: Callable[[], None] = lambda: None
    """Called once at the end, from the calling thread, if a loop reached its limit of steps."""


    def at_level(self, level: int) -> Launch:
        """The same launch, over the pixels of a level of the picture."""
        if not level:
            return self
        shape = shape_of_level(self.shape, level)
        places = {"x": _centres(shape[1]), "y": _centres(shape[0])}
        return replace(self, shape=shape, coords={**self.coords, **places}, even=None)


def shape_of_level(shape: tuple[int, int], level: int) -> tuple[int, int]:
    """The height and width of a level of a picture. Each is halved `level` times, and rounded up each time."""
    height, width = (-(-side >> level) for side in shape)
    return height, width


VIEW = (128, 256)
"""Height and width of a view: the picture of a strand, sent to a process that cannot read the strand itself."""


def blank_view() -> Picture:
    """A view that shows nothing yet. Only its first channel is used."""
    return np.zeros((*VIEW, 4), np.float32)


def picture_coords(
    width: int, height: int, abstime: float = 0.0, channel: float = 0.0, dtype: npt.DTypeLike = np.float64
) -> dict[str, Value]:
    """The coordinates of a picture: pixel centres, 0…1, y downwards."""
    x, y = ((np.arange(count, dtype=dtype) + 0.5) / count for count in (width, height))
    return {"x": x, "y": y, "abstime": abstime, "channel": channel}


@functools.lru_cache(maxsize=64)
def _centres(count: int) -> Floats:
    """The coordinates of pixels along one axis. Always the same array, so that it need not be compared."""
    made: Floats = picture_coords(count, 1)["x"]  # type: ignore[assignment]
    made.flags.writeable = False
    return made


# Memory.

# The bytes of a line of the cache, which is as wide as the widest vectors.
_CACHE_LINE = 64


def aligned_zeros(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Zeros that begin at the start of a cache line. In other arrays, vectors may span two lines, which makes them
    slower to read and to write."""
    wanted = np.dtype(dtype)
    size = (math.prod(shape) if isinstance(shape, tuple) else shape) * wanted.itemsize
    memory = np.zeros(size + _CACHE_LINE, np.uint8)
    start = -memory.__array_interface__["data"][0] % _CACHE_LINE
    return memory[start : start + size].view(wanted).reshape(shape)


# Pictures in numpy: bilinear sampling, resampling, and packing into bytes.

# Bilinear sampling, clamped at the edge, with pixel centres at (i + ½) / width, for single places and for arrays of
# them. A NaN coordinate reads the first row or column. A pixel with weight 0 takes no part: 0 times NaN, or times an
# infinity, would be NaN. The coordinate of a centre gives the next pixel this weight, whatever rounding makes of it.


def sample(plane: Floats, x: float, y: float) -> float:
    """The value of a plane [height, width] at a place."""
    height, width = plane.shape
    column, across = _locate(x, width)
    row, down = _locate(y, height)
    values = [_between(plane[at].item, column, across) for at in ([row, row + 1] if down else [row])]
    return _between(values.__getitem__, 0, down)


def _between(value: Callable[[int], float], at: int, share: float) -> float:
    """What is between a value and the next one."""
    found = value(at)
    return found + (value(at + 1) - found) * share if share else found


def _locate(coordinate: float, size: int) -> tuple[int, float]:
    """The pixel at or before a coordinate, and how far the coordinate is on the way to the next, from 0 to below 1."""
    position = coordinate * size - 0.5
    if not position > 0:
        return 0, 0.0
    position = min(position, size - 1.0)
    nearest = round(position)
    if (nearest + 0.5) / size == coordinate:
        return nearest, 0.0
    return int(position), position - int(position)


def fetch(samples: Floats, number: float) -> float:
    """A sample by its number, rounded down; 0 where there is none, and for NaN."""
    return float(samples[int(number)]) if 0 <= number < len(samples) else 0.0


def fetch_all(samples: Floats, numbers: npt.ArrayLike) -> Floats:
    """The samples with these numbers, rounded down; 0 where there is none, and for NaN."""
    given = np.asarray(numbers)
    inside = (given >= 0) & (given < len(samples))  # false for NaN
    return np.where(inside, samples[np.where(inside, given, 0).astype(np.intp)], np.float32(0))


# Arrays of one shape that `locate` fills for many coordinates along an axis: the index in memory of the pixel at or
# before each, the index of the next one, how far the coordinate is on the way to it (0…1), and a scratch array.
Located: TypeAlias = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Floats, Floats]


def locate(coordinate: npt.ArrayLike, size: int, stride: int, offset: npt.ArrayLike, found: Located) -> None:
    """Locates many coordinates along an axis of `size` pixels, which are `stride` apart in memory from `offset` on."""
    near, far, across, scratch = found
    np.multiply(coordinate, size, out=across)
    np.subtract(across, 0.5, out=across)
    np.fmax(across, 0.0, out=across)
    np.fmin(across, size - 1.0, out=across)
    if np.ndim(coordinate) < 2 or 1 in np.shape(coordinate):
        # The coordinates of a line may be those of the pixels themselves. Others are rarely those of any pixel.
        np.rint(across, out=scratch)
        np.copyto(across, scratch, where=(scratch + across.dtype.type(0.5)) / across.dtype.type(size) == coordinate)
    np.floor(across, out=scratch)
    np.subtract(across, scratch, out=across)
    np.copyto(near, scratch, casting="unsafe")
    np.add(near, 1, out=far)
    np.minimum(far, size - 1, out=far)
    for place in (near, far):
        np.multiply(place, stride, out=place)
        np.add(place, offset, out=place)


def gather(
    pixels: npt.NDArray[Any], columns: Located, rows: Located, out: Floats,
    scratch: tuple[npt.NDArray[np.intp], Floats, Floats],
) -> None:
    """Interpolates between four neighbours in flat memory, for each element of `out`. The shapes of `columns` and
    `rows` broadcast to that of `out` and the scratch arrays."""
    left, right, across, _ = columns
    upper, lower, down, _ = rows
    index, below, other = scratch
    for row, value in ((upper, out), (lower, below)):
        np.add(row, left, out=index)
        _take(pixels, index, value)
        np.add(row, right, out=index)
        _take(pixels, index, other)
        np.subtract(other, value, out=other)
        np.multiply(other, across, out=other)
        np.add(value, other, out=value)
    np.subtract(below, out, out=below)
    np.multiply(below, down, out=below)
    np.add(out, below, out=out)
    if np.isnan(np.min(out, initial=0.0)):
        _gather_apart(pixels, columns, rows, out, index)


def _gather_apart(
    pixels: npt.NDArray[Any], columns: Located, rows: Located, out: Floats, index: npt.NDArray[np.intp]
) -> None:
    """Does it again where something is not finite, without the pixels whose weight is 0."""
    left, right, across, _ = columns
    upper, lower, down, _ = rows

    def between(before: Floats, after: Floats, share: Floats) -> Floats:
        return np.where(share > 0, before + (after - before) * share, before)

    def pixel(row: npt.NDArray[np.intp], column: npt.NDArray[np.intp]) -> Floats:
        found: Floats = pixels[np.add(row, column, out=index)].astype(out.dtype)
        return found

    def row_of(start: npt.NDArray[np.intp]) -> Floats:
        return between(pixel(start, left), pixel(start, right), across)

    np.copyto(out, between(row_of(upper), row_of(lower), down))


def _take(pixels: npt.NDArray[Any], index: npt.NDArray[np.intp], out: Floats) -> None:
    if pixels.dtype == out.dtype:
        np.take(pixels, index, out=out, mode="clip")  # any other mode buffers the output
    else:
        np.copyto(out, pixels[index])


def resample(plane: Floats, shape: tuple[int, int]) -> Floats:
    """A plane [height, width] in another size: interpolated along its rows, then along its columns."""
    for axis in (1, 0):
        count = shape[axis]
        near, far, across, _ = located = located_arrays((count,), plane.dtype)
        locate((np.arange(count, dtype=plane.dtype) + 0.5) / count, plane.shape[axis], 1, 0, located)
        before, after = np.take(plane, near, axis), np.take(plane, far, axis)
        share = across if axis else across[:, None]
        with np.errstate(invalid="ignore"):
            after -= before
            after *= share
            plane = np.add(before, after, out=before, where=np.broadcast_to(share > 0, before.shape))
    return plane


def located_arrays(shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> Located:
    """Arrays for `locate` to fill."""
    return np.empty(shape, np.intp), np.empty(shape, np.intp), np.empty(shape, dtype), np.empty(shape, dtype)


# Packing into pixels of four bytes, red first: NaN becomes 0, all else is clamped to 0…1, halves round up.

OPAQUE = 255


def channels(outputs: int) -> tuple[int, ...]:
    """Which output each channel of a pixel shows, for red, green, blue and, if the kernel gives it, alpha.

    Raises ValueError if a picture cannot have this number of outputs.
    """
    if outputs not in (1, 3, 4):
        raise ValueError(f"a picture has 1, 3 or 4 outputs, not {outputs}")
    return (0, 0, 0) if outputs == 1 else tuple(range(outputs))


def check_picture(out: npt.NDArray[np.uint8], shape: tuple[int, int]) -> None:
    """Raises ValueError if `out` cannot take the pixels of a launch of this shape (height, width)."""
    if out.shape != (*shape, 4) or out.dtype != np.uint8 or not out.flags.c_contiguous:
        raise ValueError(f"{out.dtype} {out.shape} is no picture of {shape} pixels, four bytes each, without gaps")


def level(value: float) -> int:
    """The byte that shows a value."""
    return 0 if math.isnan(value) else math.floor(min(max(value, 0.0), 1.0) * 255 + 0.5)


def pack(planes: Floats, out: npt.NDArray[np.uint8]) -> None:
    """Packs outputs [outputs, height, width] into `out` [height, width, 4]."""
    shown = channels(len(planes))
    levels = np.floor(np.fmin(np.fmax(planes, 0.0), 1.0) * 255 + 0.5).astype(np.uint8)
    for channel, output in enumerate(shown):
        out[..., channel] = levels[output]
    if len(shown) < 4:
        out[..., 3] = OPAQUE


# The memory of state slots: ring buffers of the last ticks.

# A slot that is one number a plane may integrate over hours, so it is always in double precision.
_NUMBER = np.float64


def bytes_needed(kernel: Kernel, shape: tuple[int, int], dtype: npt.DTypeLike = np.float32) -> int:
    """The bytes that the state of a kernel takes for a picture of this shape (height, width). Allocates nothing."""
    return sum(slot_bytes(slot, shape, dtype) for slot in kernel.slots)


def slot_bytes(slot: StateSlot, shape: tuple[int, int], dtype: npt.DTypeLike = np.float32) -> int:
    """The number of bytes that one slot takes."""
    return math.prod(_shape(slot, shape)) * _dtype(slot, dtype).itemsize


class StateMemory:
    """The values of slots at the last ticks.

    A slot of depth d is a ring of d + 1 cells. The tick in progress writes into a cell that it cannot read, so the
    order of reads and writes does not matter.

    The same cell serves readers between ticks. Another subgraph reads a strand as it was in the last finished tick.
    That tick saw every slot one tick further back than the next tick will.
    """

    def __init__(
        self, slots: Iterable[StateSlot], shape: tuple[int, int] = (1, 1), dtype: npt.DTypeLike = np.float32,
        borrowed: frozenset[str] = frozenset(),
    ) -> None:
        """Zeroed memory. Images have `shape` (height, width), or that of their level, and `dtype`; single numbers are
        always doubles. `borrowed` are the keys of slots that another memory owns, see `follow`. A ring is allocated
        when it is first needed, or by `allocate`."""
        self.shape = shape
        self.slots = {slot.key: slot for slot in slots}
        self.ticks = 0
        """The number of finished ticks."""
        self.takeovers = 0
        """The number of times that it took over the state of another memory."""
        self._dtype = dtype
        self._rings: dict[str, Floats] = {}
        # A ring that was taken over continues at its own position, which this memory's count of ticks does not give.
        self._offsets: dict[str, int] = dict.fromkeys(self.slots, 0)
        self.borrowed = borrowed
        self._followed: dict[str, tuple[Floats, int]] = {}
        """The ring from which a borrowed one was resampled, and the number of finished ticks at that time."""
        self._ahead: dict[str, tuple[Floats, int]] = {}
        """The rings from which some were copied ahead, and the number of finished ticks at that time."""

    def ring(self, key: str) -> Floats:
        """All cells of a slot: [depth + 1, planes] or [depth + 1, planes, height, width]."""
        found = self._rings.get(key)
        # Another thread may have allocated it in the meantime.
        return self._rings.setdefault(key, aligned_zeros(*self._form(key))) if found is None else found

    def _form(self, key: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """The shape and the type of a ring."""
        slot = self.slots[key]
        return _shape(slot, self.shape), _dtype(slot, self._dtype)

    def allocate(self, old: Iterable[StateMemory] = ()) -> None:
        """Allocates all missing rings, unless an `adopt` of one of the `old` memories would replace them. Allocating a
        ring of images takes milliseconds, for which the first tick would have to wait."""
        old = tuple(old)
        shared = self._shared(old)
        for key, slot in self.slots.items():
            if self._is_here(slot) and key not in shared | self.borrowed:
                ring = self.ring(key)
                if any(key in self._arriving(each) for each in old):
                    ring.fill(0)  # so that the system finds memory for it now
        for each in old:
            each.expect_read(self._arriving(each))

    def expect_read(self, keys: Collection[str]) -> None:
        """Makes ready what a read of these slots needs, since another memory will continue them. It may be slow, and
        the memory may be in use."""

    def _shared(self, old: Iterable[StateMemory]) -> set[str]:
        """The slots whose rings an `adopt` of one of these memories takes over as they are."""
        return {key for each in old for key in self._continued(each) if self._can_share(key, each)}

    def _arriving(self, old: StateMemory) -> list[str]:
        """The slots, in the memory of the computer, that continue those of a memory which has them on a device."""
        return [
            key for key, slot in self.slots.items()
            if self._is_here(slot) and continues(slot, its := old.slots.get(key)) and its and not old._is_here(its)
        ]  # fmt: skip

    def _can_share(self, key: str, old: StateMemory) -> bool:
        """Whether the ring of `old` can continue as the ring of this memory."""
        return old._is_here(old.slots[key]) and self._form(key) == old._form(key)

    def cell(self, key: str, ticks_ago: Any = 0) -> Any:
        """The cell of a ring that was written `ticks_ago` ticks ago; 0 is the cell that this tick writes. Between
        ticks, `ticks_ago` is one more than for a read in the last finished tick."""
        return (self.ticks + self._offsets[key] - ticks_ago) % (self.slots[key].depth + 1)

    @property
    def moment(self) -> tuple[int, int]:
        """How often a tick has ended, and a state been taken over. As long as both stay the same, cells stay where they
        are."""
        return self.ticks, self.takeovers

    def write_cells(self, asked: Iterable[tuple[int, str, int]], into: Any) -> None:
        """Writes several cells to places, in less time: each place with its slot, and the ticks ago."""
        ticks, offsets, slots = self.ticks, self._offsets, self.slots
        for at, key, ago in asked:
            into[at] = (ticks + offsets[key] - ago) % (slots[key].depth + 1)

    def first_layer(self, key: str) -> int:
        """The first layer of the images of a slot in the texture that it shares with others."""
        raise LookupError(f"{key} shares no texture")

    def planes(self, key: str, ticks_ago: int) -> Floats:
        """The values of a slot `ticks_ago` ticks ago: [planes] or [planes, height, width]."""
        found: Floats = self.ring(key)[self.cell(key, ticks_ago)]
        return found

    def is_finite(self, key: str) -> bool:
        """Whether all of the latest values of a slot are finite numbers."""
        latest = self.planes(key, 1)
        # A sum takes a tenth of the time. It may be infinite although no value is.
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(np.isfinite(latest.sum())) or bool(np.isfinite(latest).all())

    def begin_again(self, keys: Iterable[str]) -> list[str]:
        """Sets the values in some slots that are not finite to 0, between two ticks. Returns the keys of the slots that
        it changes."""
        return [key for key in keys if self._make_finite(key)]

    def _make_finite(self, key: str) -> bool:
        """Sets the values in the ring of a slot that are not finite to 0. Returns whether there were any."""
        ring = self.ring(key)
        # A ring of pictures may be large, so each picture is looked at separately.
        cells = ring if ring.ndim > 2 else ring[np.newaxis]
        return sum(map(make_finite, cells)) > 0

    def read(self, into: StateMemory | None = None) -> StateMemory:
        """A copy in the memory of the computer. If it is for a memory that adopts it, `into`, it has the arrays of that
        one where they fit, and only the slots that it continues."""
        copy = StateMemory(self.slots.values(), self.shape, borrowed=self.borrowed)
        copy.ticks = self.ticks
        copy._offsets.update(self._offsets)
        for key in self.slots if into is None else into._continued(self):
            given = into._rings.get(key) if into is not None else None
            if given is not None and (given.shape, given.dtype) == copy._form(key):
                copy._rings[key] = given
            self._read_ring(key, copy.ring(key))
        return copy

    def _read_ring(self, key: str, into: Floats) -> None:
        """Copies all cells of a slot."""
        into[...] = self.ring(key)

    def here(self) -> StateMemory:
        """A memory with the same values that the CPU can read until the next tick. Read-only."""
        return self

    def advance(self, ticks: int = 1) -> None:
        """Ends one or more ticks: what the last one wrote is now one tick ago."""
        self.ticks += ticks

    def copy_ahead(self, old: StateMemory) -> None:
        """Copies the rings of numbers of `old`, which may be running. A later `adopt` with `copy` copies only the
        rest."""
        for key in self._continued(old):
            if not self.slots[key].image:
                self._ahead[key] = (old.ring(key), old.ticks)
                self._copy_latest(key, old, self._common(key, old))

    def adopt(self, old: StateMemory, copy: bool = False) -> list[str]:
        """Takes over the slots of `old` whose key, kind and planes agree. Returns their keys.

        Where the depths differ, the latest ticks are kept. Images of another size are resampled, and begin with a
        number if there was one in their place. Rings of the same form are shared instead of copied, since copying a
        long delay of pictures takes seconds. So `old` must not run again before it has taken its state back, unless
        this is a `copy`.
        """
        self.takeovers += 1
        kept = self._continued(old)
        for key in kept:
            self._adopt_slot(key, old, copy)
        return kept

    def _continued(self, old: StateMemory) -> list[str]:
        """The slots that both memories own, and that agree."""
        own = self.slots.keys() - self.borrowed - old.borrowed
        return [key for key, slot in self.slots.items() if key in own and continues(slot, old.slots.get(key))]

    def follow(self, owner: StateMemory) -> None:
        """Brings borrowed slots up to date with the memory that owns them: they have the values that the owner read in
        its last tick. Images of another size are resampled."""
        for key in self.borrowed & owner.slots.keys() - owner.borrowed:
            its = owner.ring(key)
            # Between ticks, the owner's ring holds one more tick than can be read in a tick. Cells have the same places
            # in both rings.
            self._offsets[key] = owner.ticks + owner._offsets[key] - 1 - self.ticks
            if self._form(key) == (its.shape, its.dtype):
                self._rings[key] = its
                continue
            mine = self.ring(key)
            ring, ticks = self._followed.get(key, (None, 0))
            since = owner.ticks - ticks if ring is its else -1
            count = since if 0 <= since <= 1 else self.slots[key].depth
            for ticks_ago in range(2, 2 + count):
                at = owner.cell(key, ticks_ago)
                mine[at] = in_size(its[at], self.shape)
            self._followed[key] = its, owner.ticks

    def _is_here(self, slot: StateSlot) -> bool:
        """Whether a slot is an array of the computer; else it is on a device."""
        return True

    def _adopt_slot(self, key: str, old: StateMemory, copy: bool) -> None:
        its = old.ring(key)
        if not copy and self._form(key) == (its.shape, its.dtype):
            self._rings[key] = its
            self._offsets[key] = old.ticks + old._offsets[key] - self.ticks
            return
        if self._rings.get(key) is its:
            # It was taken over in the opposite direction earlier.
            del self._rings[key]
        if not self.slots[key].image:
            self._copy_rest(key, old)
        else:
            mine = self.ring(key)
            for ticks_ago in range(1, 1 + self._common(key, old)):
                mine[self.cell(key, ticks_ago)] = in_size(its[old.cell(key, ticks_ago)], self.shape)

    def _common(self, key: str, old: StateMemory) -> int:
        return 1 + min(self.slots[key].depth, old.slots[key].depth)

    def _copy_rest(self, key: str, old: StateMemory) -> None:
        count = self._common(key, old)
        copied, ticks = self._ahead.pop(key, (None, 0))
        since = old.ticks - ticks
        if copied is old.ring(key) and 0 <= since < count:
            self._offsets[key] += since
            # And one more tick, which may have been written during the copy.
            count = min(since + 1, count)
        self._copy_latest(key, old, count)

    def _copy_latest(self, key: str, old: StateMemory, count: int) -> None:
        """Copies the `count` latest ticks, in runs of cells that are contiguous in both rings."""
        mine, its = self.ring(key), old.ring(key)
        to, of = self.cell(key, 1), old.cell(key, 1)
        while count > 0:
            length = min(count, to + 1, of + 1)
            mine[to + 1 - length : to + 1] = its[of + 1 - length : of + 1]
            to, of, count = (to - length) % len(mine), (of - length) % len(its), count - length


def are_same(before: Sequence[float], now: Sequence[float]) -> bool:
    """Whether numbers of one kind are the same, and zeros have the same sign: 1 over them shows it."""
    return before == now and (0.0 not in now or all(map(operator.eq, _signs(before), _signs(now))))


def _signs(values: Sequence[float]) -> Iterator[float]:
    return map(math.copysign, itertools.repeat(1.0), values)


def make_finite(values: Floats) -> bool:
    """Sets values that are not finite to 0. Returns whether there were any."""
    lost = ~np.isfinite(values)
    values[lost] = 0
    return bool(lost.any())


def in_size(planes: Floats, shape: tuple[int, int]) -> Floats:
    """Images [planes, height, width], resampled to a shape (height, width). Numbers [planes] become images of them."""
    if planes.ndim == 1:
        return np.broadcast_to(planes[:, np.newaxis, np.newaxis], (len(planes), *shape))
    return planes if planes.shape[1:] == shape else np.stack([resample(plane, shape) for plane in planes])


def ticks_back(k: float, depth: int, least: int = 1) -> int:
    """The whole number of ticks that a read goes back: k, rounded down and clamped to least…depth; 1 for NaN."""
    return int(min(k, depth)) if k >= least else 1


def continues(slot: StateSlot, old: StateSlot | None) -> bool:
    """Whether a slot can take over the state of another one: an image also that of a number, which it has everywhere.
    Images of one tick are computed again instead."""
    if old is None or not slot.outlives:
        return False
    return (slot.kind, slot.planes) == (old.kind, old.planes) and slot.image >= old.image


def _shape(slot: StateSlot, shape: tuple[int, int]) -> tuple[int, ...]:
    return (slot.depth + 1, slot.planes, *(shape_of_level(shape, slot.level) if slot.image else ()))


def _dtype(slot: StateSlot, dtype: npt.DTypeLike) -> np.dtype[Any]:
    return np.dtype(dtype if slot.image else _NUMBER)
