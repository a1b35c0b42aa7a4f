"""Sounds as native code: one call computes any number of samples at evenly spaced times.

Machine code computes times from the number of a sample, so a launch is split into parts with evenly spaced times.
"""

from __future__ import annotations

import functools
import math
import threading
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from weft.backends.executors import Executable, RefusedError, check
from weft.backends.launch import TIME, Even, Floats, Launch, StateMemory, Value
from weft.backends.native.llvm import ArgumentBlock, Functions, NativeCode, Processor, TileFunctions, linked
from weft.codegen.kernel import Kernel
from weft.codegen.native.series import SERIES
from weft.codegen.native.target import Field, Head, History, PictureWord, Word
from weft.codegen.native.tiles import TileProgram
from weft.codegen.values import Line
from weft.ir.rates import Rate


class CodeMaker(Protocol):
    """Makes missing code, and runs kernels that have none."""

    @property
    def processor(self) -> Processor:
        """The processor for which code is made."""

    def first(self, kernel: Kernel, packed: bool) -> NativeCode | TileProgram:
        """The first tier of a kernel. Raises RefusedError."""

    def refuse(self, kernel: Kernel, reason: str) -> None:
        """Notes the reason why a kernel has no code."""

    def plain(self, kernel: Kernel) -> Executable:
        """Runs a kernel without code."""


# Evenly spaced times.


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
        coords: dict[str, Value] = dict(launch.coords)
        for name, value in coords.items():
            if isinstance(value, np.ndarray) and value.ndim:
                coords[name] = value[start : start + count]
        yield replace(launch, shape=(1, count), coords=coords, even=even)
        start += count


def _even(times: Floats) -> Even | None:
    """The times as an `Even`, if they are those of consecutive samples at a whole rate; else None."""
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


# Loaded code.

# The initial size of a buffer, in samples.
_SAMPLES = 1024

# The number of memories for which a kernel keeps argument blocks.
_LINKS = 8


class SeriesExecutable(Executable):
    """The kernel of a sound as machine code; see `Executable`. Its planes are in double precision."""

    def __init__(self, kernel: Kernel, executor: CodeMaker, codes: Mapping[bool, object]) -> None:
        """First-tier code is compiled when it is first needed, if `codes` has none."""
        self.kernel = kernel
        self._executor = executor
        self._lock = threading.Lock()
        self._has_times = any(name == TIME and rate == Rate.ELEMENT for name, rate in kernel.coords)
        self._is_refused = False
        self._buffers: _Buffers | None = None
        self.upgrade(codes.get(False))

    @property
    def tier(self) -> int | None:
        """The tier of the code, if there is any yet."""
        return self._buffers.functions.tier if self._buffers else None

    def upgrade(self, code: object) -> None:
        if isinstance(code, (NativeCode, TileProgram)):
            made = _Buffers(self.kernel, linked(code, self._executor.processor))
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
                code = self._executor.first(self.kernel, False)
                self._buffers = _Buffers(self.kernel, linked(code, self._executor.processor))
            except RefusedError as failure:
                self._is_refused = True
                self._executor.refuse(self.kernel, str(failure))
        return self._buffers

    @functools.cached_property
    def _plain(self) -> Executable:
        return self._executor.plain(self.kernel)


class _LinkedRings:
    """A block of arguments that points to the rings of one memory, with the memory's counts of ticks and takeovers
    after the last launch. The code advances the heads of the rings itself."""

    def __init__(
        self, kernel: Kernel, functions: Functions | TileFunctions, block: ArgumentBlock, memory: StateMemory
    ) -> None:
        self.memory = weakref.ref(memory)
        self.block = block
        self.ticks = self.takeovers = -1
        self.run = functions.function(SERIES, block)
        self._words, self._reals, fields = block.words, block.reals, functions.layout.fields
        self._out, self._stride, self._width, self._stopped, self._origin, self._first, self._rate = map(
            block.place, (Word.OUT, Word.STRIDE, Word.WIDTH, Word.STOPPED, Word.ORIGIN, Word.FIRST, Word.RATE)
        )
        state = [field for field in fields if isinstance(field, (History, Head))]
        self._rings = [block.place(field) for field in state if isinstance(field, History)]
        self._state = [block.filler(field, kernel) for field in state]
        pictures = [field for field in fields if isinstance(field, PictureWord)]
        self.pictures = list(map(block.place, pictures))
        self._pictures = [block.filler(field, kernel) for field in pictures]

    def connect(self, memory: StateMemory, launch: Launch) -> None:
        """Points to the rings of its memory, without keeping them alive."""
        for fill in self._state:
            fill(memory, launch)
        self.block.release(self._rings)
        self.takeovers = memory.takeovers

    def give(self, memory: StateMemory, launch: Launch, count: int) -> None:
        """Fills in what changes with each launch."""
        even = launch.even
        self.block.give_numbers(launch)
        self._words[self._width] = count
        if even is not None:
            reals = self._reals
            reals[self._first], reals[self._rate], reals[self._origin] = even
        for fill in self._pictures:
            fill(memory, launch)

    def give_outputs(self, out: npt.NDArray[np.float64]) -> None:
        """Lets the code write its outputs to an array [outputs, samples]."""
        self.block.set_array(self._out, out, np.float64, out.size, writes=True)
        self._words[self._stride] = out.shape[1]

    def has_stopped(self) -> bool:
        """Whether a loop has reached its limit since the last call."""
        if not self._words[self._stopped]:
            return False
        self._words[self._stopped] = 0
        return True


class _Buffers:
    """Linked code with its buffers. Usually only the samples and a few numbers change between launches, so only these
    are filled in."""

    def __init__(self, kernel: Kernel, functions: Functions | TileFunctions) -> None:
        self._kernel = kernel
        self.functions = functions
        self._layout = layout = functions.layout
        self._scalars, self._scratch = np.zeros(len(layout.scalars)), np.zeros(layout.scratch // 8)
        self._lines = {field: np.empty(0) for field in layout.fields if isinstance(field, Line) and field.key != TIME}
        self._filled = [(str(line.key), array) for line, array in self._lines.items()]
        self._out = self._outputs(_SAMPLES)
        self.stopped = False
        """Whether a loop has reached its limit since this was last read."""
        self._capacity = 0
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
        # Copying a few samples is faster than setting a pointer.
        is_small = count <= _SAMPLES
        out = self._out if is_small else self._outputs(count)
        if not is_small:
            link.give_outputs(out)
        link.run()
        memory.advance(count)
        link.ticks = memory.ticks
        self.stopped |= link.has_stopped()
        link.block.release(link.pictures)
        planes = out[:, :count].reshape(len(out), height, width)
        if is_small:
            return planes.copy()
        link.give_outputs(self._out)
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
        link.give(memory, launch, count)
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
            block.set_array(block.place(field), array, np.float64, array.size, writes=True)
        link = _LinkedRings(self._kernel, self.functions, block, memory)
        link.give_outputs(self._out)
        self._connect(link, memory, launch)
        self._links = [*self._links, link][-_LINKS:]
        return link

    def _connect(self, link: _LinkedRings, memory: StateMemory, launch: Launch) -> None:
        """Points to the rings of a memory, which live as long as the memory, or until it takes over others."""
        check(self._kernel, memory, launch)
        link.connect(memory, launch)

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
