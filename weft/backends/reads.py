"""External reads: values of strands of other subgraphs, fetched before a kernel that needs them is launched.

`LineReads` and `StrandReads` serve machine code and programs on a card, which cannot call other subgraphs themselves.
`PointReads` computes the strands of a card that others read. `Prefetch` finds the reads of a tick in advance, so that a
device is waited for once."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.base import Bindable, Coordinator, Env
from weft.backends.launch import Launch, Value, picture_coords
from weft.backends.memory import StateMemory
from weft.backends.prologue import LaunchPrologue
from weft.backends.vector.executor import VectorExecutor
from weft.backends.vector.feedback import Calls, Values
from weft.backends.vm import Machine, ReferenceExecutor
from weft.codegen.clike.plan import ReadSite, strands_of
from weft.codegen.kernel import Kernel
from weft.codegen.values import Line
from weft.ir.rates import Rate
from weft.names import StrandRef
from weft.ops.spec import ValueType

# Launches, from the environment of a tick and the strands that a kernel reads.


def tick(
    kernel: Kernel, env: Env, coordinator: Coordinator, shape: tuple[int, int], coords: Mapping[str, Value]
) -> Launch:
    """One tick of a kernel over a sweep of this shape (height, width), with its coordinates."""
    return Launch(
        shape=shape,
        coords=coords,
        uniforms={name: env.uniform(name) for name in kernel.uniforms},
        strands={ref: coordinator.lookup(ref) for ref in kernel.strands},
        pictures={path: env.pictures[path] for path in kernel.pictures},
        threads=env.threads,
        loop_stopped=lambda: env.loop_stopped(kernel.name),
    )


def at_points(
    kernel: Kernel, coords: Mapping[str, Value], env: Env, coordinator: Coordinator
) -> tuple[Launch, tuple[int, ...]]:
    """A launch over points at coordinates that broadcast together, and the broadcast shape."""
    given = {**nowhere(env), **coords}
    shape = np.broadcast_shapes(*map(np.shape, given.values()))

    def row(value: Value) -> Value:
        if not np.ndim(value):
            return float(value)
        numbers = np.asarray(value, np.float64)
        return numbers if numbers.shape == shape and numbers.ndim == 1 else np.broadcast_to(numbers, shape).flatten()

    rows = {name: row(value) for name, value in given.items()}
    launch = tick(kernel, env, coordinator, (1, max(1, math.prod(shape))), rows)
    return replace(launch, threads=1, loop_stopped=lambda: None), shape


def nowhere(env: Env) -> dict[str, Value]:
    """The default coordinates, for values that are computed at no particular place."""
    return {"x": 0.5, "y": 0.5, "abstime": env.abstime, "channel": 0.0}


# Strands of a card that others read at points: computed on the card, or by the CPU if that is faster.

Fetch: TypeAlias = Callable[[], npt.NDArray[Any]]
"""Waits for requested values, and gives them."""

Ask: TypeAlias = Callable[[], Fetch]
"""Requests values from a card without waiting."""

# From this many points on it is worth waiting for the card.
_MANY = 2048

# Up to this many points, the reference machine is faster than the vector machine.
_FEW = 4


class PointReads:
    """A strand that others read. The CPU computes a small number of points, without a wait, if the strand has no images
    as state or the card shares the CPU's memory."""

    def __init__(self, kernel: Kernel, shared: bool) -> None:
        self._needs_card = not shared and any(slot.image for slot in kernel.slots)
        self._many = VectorExecutor().load(kernel)
        self._few = ReferenceExecutor().load(kernel)

    def ask(self, launch: Launch, on_card: Ask | None, memory: StateMemory) -> Fetch:
        """Requests a value for each point, and gives what fetches them. `on_card` requests outputs [outputs, points]
        from the card; without it the CPU computes them, for which images may have to be read back from `memory`."""
        count = launch.shape[1]
        if on_card is not None and (self._needs_card or count >= _MANY):
            fetch = on_card()
            return lambda: np.asarray(fetch()[0])
        executable = self._few if count <= _FEW else self._many
        values = np.asarray(executable.planes(memory.here() if self._needs_card else memory, launch)[0, 0])
        return lambda: values


# Values by column or by row that depend on strands of other subgraphs: numpy computes them a line at a time, as input
# for machine code.

# In memory, a bool takes as much as the other types.
_STORED: Mapping[ValueType, npt.DTypeLike] = {"float": np.float32, "bool": np.uint32, "u32": np.uint32}


class LineReads:
    """The locals of one section that other sections read, each in an array of 4 bytes an element. An array may be
    longer than the line, by less than a vector."""

    def __init__(self, kernel: Kernel, rate: Rate, lines: Mapping[Line, npt.NDArray[Any]]) -> None:
        section = kernel.section(rate)
        self._lines = [(section.locals[int(line.key)], array) for line, array in lines.items()]
        self._coords = [name for name, changes in kernel.coords if changes == rate]
        self._calls = Calls(section.nodes)

    def fill(self, machine: Machine) -> None:
        """Fills the arrays for a launch whose prologue the machine has run."""
        given = machine.launch.coords
        values = Values(machine, {name: np.asarray(given[name], np.float64) for name in self._coords})
        with np.errstate(all="ignore"):
            self._calls.run(values)
            for node, array in self._lines:
                found = np.atleast_1d(values[node])
                # The last number is repeated up to a whole vector.
                array.view(_STORED[node.kind])[:] = found[np.minimum(np.arange(len(array)), len(found) - 1)]


# Strands of other subgraphs that a program on a card reads at computed places. They are evaluated before its launch,
# all places at once. Values on the same card are bound, all others are uploaded.

Singles: TypeAlias = npt.NDArray[np.float32]

Answers: TypeAlias = "Mapping[str, Singles | Any]"
"""By the keys of a program's strands: a value for each place in single precision, or the values on the card, as a
handle gave them."""

# Operations whose values change from launch to launch. Places that depend on one change too.
_CHANGING = frozenset({"scalar", "strand", "picture"})


class StrandReads:
    """The strands of other subgraphs that one program reads."""

    def __init__(self, kernel: Kernel) -> None:
        """Raises UnsuitableError for a kernel whose reads cannot be evaluated before a launch."""
        self._kernel = kernel
        self._reads = [_StrandRead(site, kernel.sweep == "grid") for site in strands_of(kernel)]

    def nothing(self) -> Answers:
        """Placeholders for the answers, for a trial launch: one value for each strand."""
        return {strand.key: np.zeros(1, np.float32) for strand in self._reads}

    def most(self, shape: tuple[int, int]) -> int:
        """How many values the largest answer has for a launch of this shape."""
        return max((math.prod(strand.places(shape)) for strand in self._reads), default=0)

    def answers(self, machine: Machine, device: object) -> Answers:
        """The answers for a launch whose prologue the machine has run. `device` is where the program runs."""
        if not self._reads:
            return {}
        launch = machine.launch
        values = Values(machine, _lines(self._kernel, launch))
        with np.errstate(all="ignore"):
            return {strand.key: strand.answer(values, launch, device) for strand in self._reads}


class _StrandRead:
    def __init__(self, site: ReadSite, is_grid: bool) -> None:
        """`is_grid` says that the coordinates of elements are the same in every launch of a shape."""
        self.key = site.read.key
        self._ref = site.read.strand
        self._over = site.read.over
        self._coordinates = site.coordinates
        self._calls = Calls(site.before)
        used = (*site.before, *site.coordinates, *(arg for node in site.before for arg in node.args))
        self._is_constant = is_grid and _CHANGING.isdisjoint(node.op for node in used)
        self._places: tuple[tuple[int, int], list[Value]] | None = None
        """Constant places, for launches of this shape."""

    def answer(self, values: Values, launch: Launch, device: object) -> Singles | Any:
        reads = launch.strands[self._ref]
        places = self._at(values, launch)
        bound = reads.bound(device, *places) if isinstance(reads, Bindable) else None
        if bound is not None:
            return bound
        found = np.asarray(reads(*places), np.float32)
        return np.ascontiguousarray(np.broadcast_to(found, math.prod(self.places(launch.shape))))

    def _at(self, values: Values, launch: Launch) -> list[Value]:
        """The coordinates: each a number, or a row with a number for each place. Constant rows are made read-only,
        which tells their readers that they stay the same."""
        if self._places is not None and self._places[0] == launch.shape:
            return self._places[1]
        self._calls.run(values)
        shape = self.places(launch.shape)
        computed = [values[node] for node in self._coordinates]
        found = [np.broadcast_to(each, shape).flatten() if np.ndim(each) else float(each) for each in computed]
        if self._is_constant:
            for rows in found:
                if isinstance(rows, np.ndarray):
                    rows.setflags(write=False)
            self._places = launch.shape, found
        return found

    def places(self, shape: tuple[int, int]) -> tuple[int, int]:
        """How many places a launch of this shape has: rows and columns of them."""
        if Rate.ELEMENT in self._over:
            return shape
        height, width = shape
        return height if Rate.ROW in self._over else 1, width if Rate.COLUMN in self._over else 1


def _lines(kernel: Kernel, launch: Launch) -> dict[str, npt.NDArray[Any]]:
    """The coordinates that change, in shapes that broadcast to the launch [height, width]."""
    if kernel.sweep == "points":
        return {name: np.atleast_2d(np.asarray(launch.coords[name], np.float64)) for name, _ in kernel.coords}
    height, width = launch.shape
    across = picture_coords(width, height)
    return {"x": np.asarray(across["x"])[np.newaxis, :], "y": np.asarray(across["y"])[:, np.newaxis]}


# Strands on devices that a kernel reads once a tick: their places are found before it runs, so that all are requested
# at once, with a single wait for the device.

Place: TypeAlias = tuple[float, ...]
"""The coordinates of one read."""

# At most this many places are prefetched for a strand; the rest are read one by one.
_MOST = 4096


class Prefetch:
    """Finds where a kernel will read strands in a tick."""

    def __init__(self, kernel: Kernel, refs: Collection[StrandRef]) -> None:
        """`refs` are the strands that are worth prefetching."""
        self._kernel = kernel
        self._refs = refs
        self._prologue = LaunchPrologue(kernel)

    def places(self, memory: StateMemory, env: Env) -> dict[StrandRef, list[Place]]:
        """The places, each once. They come from a trial run of the prologue with 0 for every strand. So a place that
        depends on another strand may be missing, and some places may not be read."""
        found: dict[StrandRef, dict[Place, None]] = {ref: {} for ref in self._refs}

        def reader(ref: StrandRef) -> Callable[..., Value]:
            places = found.get(ref, {})

            def read(*place: Value) -> float:
                if len(places) < _MOST:
                    places[tuple(map(float, place))] = None
                return 0.0

            return read

        kernel = self._kernel
        launch = Launch(
            shape=(1, 1),
            coords=nowhere(env),
            uniforms={name: env.uniform(name) for name in kernel.uniforms},
            strands={ref: reader(ref) for ref in kernel.strands},
            pictures={path: env.pictures[path] for path in kernel.pictures},
        )
        self._prologue.begin(memory, launch)
        return {ref: list(places) for ref, places in found.items() if places}


def prefetch_of(kernel: Kernel, on_devices: Collection[StrandRef]) -> Prefetch | None:
    """The prefetch of the strands on devices that a kernel reads. None if it reads at most one place, which a prefetch
    would not speed up, or if finding the places would need a wait of its own."""
    section = kernel.section(Rate.FRAME)
    outside = set(section.nodes)
    reads = [node for node in section.walk() if node.op == "strand" and node.attr in on_devices]
    samples = any(node.op == "sample" for node in section.walk())
    if kernel.tick != "launch" or samples or not (len(reads) > 1 or any(node not in outside for node in reads)):
        return None
    return Prefetch(kernel, frozenset(node.attr for node in reads))


def rows(places: list[Place], over: tuple[str, ...]) -> Mapping[str, Value]:
    """Places as coordinates: one row for each."""
    return {name: np.array(values) for name, values in zip(over, zip(*places, strict=True), strict=True)}
