"""Sounds as machine code: one call computes any number of samples at evenly spaced times."""

from __future__ import annotations

import functools
import math
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from weft.backends.executor import Executable, RefusedError, check, pack_planes
from weft.backends.launch import TIME, Even, Floats, Launch, Value
from weft.backends.memory import StateMemory
from weft.backends.native.llvm import ArgumentBlock, Functions, NativeCode
from weft.codegen.kernel import Kernel
from weft.codegen.native.chunks import SERIES
from weft.codegen.native.layout import Field, Head, History, PictureWord, Word
from weft.codegen.values import Line
from weft.ir.rates import Rate

# Machine code computes times from the number of a sample, so a launch is split into parts with evenly spaced times.


def evenly(kernel: Kernel, memory: StateMemory, launch: Launch) -> Iterator[Launch]:
    """The parts of a launch with evenly spaced times, in order. Each time is exactly the given one. Raises ValueError
    if the launch does not fit the kernel."""
    check(kernel, memory, launch)
    _, width = launch.shape
    times = np.asarray(launch.coords[TIME], np.float64)
    if times.ndim == 0:
        yield replace(launch, even=_alone(float(times)))
        return
    start = 0
    while start < width:
        count = width - start
        while (even := _even(times[start : start + count])) is None:
            count //= 2
        coords = {name: _part(value, start, count) for name, value in launch.coords.items()}
        yield replace(launch, shape=(1, count), coords=coords, even=even)
        start += count


def _even(times: Floats) -> Even | None:
    """The times in short, if they are those of consecutive samples at a whole rate; else None."""
    first, last, count = float(times[0]), float(times[-1]), len(times)
    if count == 1:
        return _alone(first)
    if not math.isfinite(last - first) or last == first:
        return _alone(first) if (times == first).all() else None
    rate = round((count - 1) / (last - first)) if abs(last - first) > _SHORTEST else 0
    if not rate:
        return None
    found = Even(round(first * rate), rate)
    return found if (found.times(count) == times).all() else None


# Seconds. The rate of a shorter launch is not computed.
_SHORTEST = 1e-9


def _alone(time: float) -> Even:
    """One time, for all elements."""
    return Even(0.0, math.inf, time)


def _part(value: Value, start: int, count: int) -> Value:
    return value[start : start + count] if isinstance(value, np.ndarray) and value.ndim else value


# Loaded code.

# The initial size of a buffer, in samples.
_SAMPLES = 1024

# For how many memories a kernel keeps argument blocks.
_LINKS = 8


class SeriesExecutable:
    """The kernel of a sound as machine code; see `Executable`. Its planes are in double precision."""

    def __init__(
        self, kernel: Kernel, codes: Mapping[bool, object], make: Callable[[], NativeCode],
        plain: Callable[[], Executable],
    ) -> None:  # fmt: skip
        """`make` compiles first-tier code if `codes` has none, or raises RefusedError; `plain` then gives the
        fallback."""
        self.kernel = kernel
        self._make = make
        self._make_plain = plain
        self._lock = threading.Lock()
        self._has_times = any(name == TIME and rate == Rate.ELEMENT for name, rate in kernel.coords)
        self._is_refused = False
        found = codes.get(False)
        self._buffers = _Buffers(kernel, found) if isinstance(found, NativeCode) else None

    @property
    def tier(self) -> int | None:
        """The tier of the code, if there is any yet."""
        return self._buffers.functions.tier if self._buffers else None

    def upgrade(self, code: NativeCode) -> None:
        """Runs faster code from the next launch on."""
        made = _Buffers(self.kernel, code)
        with self._lock:
            self._buffers = made

    def planes(self, memory: StateMemory, launch: Launch) -> Floats:
        with self._lock:
            buffers = self._ready()
            if buffers is None:
                return self._plain.planes(memory, launch)
            parts = [launch] if launch.even or not self._has_times else evenly(self.kernel, memory, launch)
            out = [buffers.run(memory, part) for part in parts]
            stopped, buffers.stopped = buffers.stopped, False
        if stopped:
            launch.loop_stopped()
        return out[0] if len(out) == 1 else np.concatenate(out, axis=2)

    def _ready(self) -> _Buffers | None:
        """The code with its buffers; None if the kernel cannot be compiled, which is tried only once."""
        if self._buffers is None and not self._is_refused:
            try:
                self._buffers = _Buffers(self.kernel, self._make())
            except RefusedError:
                self._is_refused = True
        return self._buffers

    def rgba8(self, memory: StateMemory, launch: Launch, out: npt.NDArray[np.uint8]) -> None:
        pack_planes(self, memory, launch, out)

    @functools.cached_property
    def _plain(self) -> Executable:
        return self._make_plain()


@dataclass(slots=True)
class _LinkedRings:
    """A block of arguments that points to the rings of one memory, with the memory's counts of ticks and takeovers
    after the last launch. The code advances the heads of the rings itself."""

    memory: weakref.ref[StateMemory]
    block: ArgumentBlock
    ticks: int = -1
    takeovers: int = -1


class _Buffers:
    """Linked code with its buffers. Usually only the samples and a few numbers change between launches, so only these
    are filled in."""

    def __init__(self, kernel: Kernel, code: NativeCode) -> None:
        self._kernel = kernel
        self.functions = Functions(code)
        self._layout = layout = code.layout
        self._scalars, self._scratch = np.zeros(len(layout.scalars)), np.zeros(layout.scratch // 8)
        self._lines = {field: np.empty(0) for field in layout.fields if isinstance(field, Line) and field.key != TIME}
        self._filled = [(str(line.key), array) for line, array in self._lines.items()]
        self._out = self._outputs(_SAMPLES)
        self.stopped = False
        """Whether a loop has reached its limit since this was last read."""
        self._capacity = 0
        self._histories = [field for field in layout.fields if isinstance(field, History)]
        self._heads = [field for field in layout.fields if isinstance(field, Head)]
        self._pictures = [field for field in layout.fields if isinstance(field, PictureWord)]
        self._links: list[_LinkedRings] = []

    def run(self, memory: StateMemory, launch: Launch) -> Floats:
        """The samples of a launch [outputs, height, width], in their order."""
        height, width = launch.shape
        count = height * width
        try:
            link = self._prepared(memory, launch, count)
        except (KeyError, ValueError):
            # This raises a clearer error.
            check(self._kernel, memory, launch)
            raise
        block = link.block
        # For few samples, copying them is faster than setting a pointer.
        is_small = count <= _SAMPLES
        out = self._out if is_small else self._outputs(count)
        _give_outputs(block, out)
        self.functions.call(SERIES, block)
        memory.advance(count)
        link.ticks = memory.ticks
        if block.number(Word.STOPPED):
            self.stopped = True
            block.set_number(Word.STOPPED, 0)
        block.release(*self._pictures)
        planes = out[:, :count].reshape(len(out), height, width)
        if is_small:
            return planes.copy()
        _give_outputs(block, self._out)
        return planes

    def _prepared(self, memory: StateMemory, launch: Launch, count: int) -> _LinkedRings:
        if not 0 < count <= self._capacity:
            check(self._kernel, memory, launch)
            self._make_room(count)
        link = self._link(memory, launch)
        for name, array in self._filled:
            given = launch.coords[name]
            if np.shape(given) not in ((count,), ()):
                raise ValueError(f"{name}: {np.shape(given)} coordinates for {count} samples")
            array[:count] = given
        block, even = link.block, launch.even
        block.give_numbers(launch)
        block.set_number(Word.WIDTH, count)
        if even is not None:
            for word, number in ((Word.ORIGIN, even.origin), (Word.FIRST, even.first), (Word.RATE, even.rate)):
                block.set_real(word, number)
        for field in self._pictures:
            block.give(field, self._kernel, memory, launch)
        return link

    def _link(self, memory: StateMemory, launch: Launch) -> _LinkedRings:
        """The block for a memory. Those of the last few memories are kept, since channels take turns."""
        for link in self._links:
            if link.memory() is memory:
                if (link.ticks, link.takeovers) != (memory.ticks, memory.takeovers):
                    self._connect(link, memory, launch)
                return link
        block = ArgumentBlock(self._layout)
        words = {Word.SCALARS: self._scalars, Word.SCRATCH: self._scratch}
        same: list[tuple[Field, npt.NDArray[np.float64]]] = [*words.items(), *self._lines.items()]
        for field, array in same:
            block.set_array(field, array, np.float64, array.size, writes=True)
        link = _LinkedRings(weakref.ref(memory), block)
        self._connect(link, memory, launch)
        self._links = [*self._links, link][-_LINKS:]
        return link

    def _connect(self, link: _LinkedRings, memory: StateMemory, launch: Launch) -> None:
        """Points to the rings of a memory, which live as long as the memory, or until it takes over others."""
        check(self._kernel, memory, launch)
        state: list[Field] = [*self._histories, *self._heads]
        for field in state:
            link.block.give(field, self._kernel, memory, launch)
        link.block.release(*self._histories)
        link.takeovers = memory.takeovers

    def _outputs(self, count: int) -> npt.NDArray[np.float64]:
        """Room for `count` samples of each output, padded for the last vector."""
        return np.empty((len(self._kernel.outputs), count + self._layout.lanes))

    def _make_room(self, count: int) -> None:
        """Allocates buffers for `count` samples, padded by a vector."""
        self._capacity = max(_SAMPLES, count)
        length = self._capacity + self._layout.lanes
        self._lines = {line: np.zeros(length) for line in self._lines}
        self._filled = [(str(line.key), array) for line, array in self._lines.items()]
        self._links.clear()


def _give_outputs(block: ArgumentBlock, out: npt.NDArray[np.float64]) -> None:
    block.set_array(Word.OUT, out, np.float64, out.size, writes=True)
    block.set_number(Word.STRIDE, out.shape[1])
