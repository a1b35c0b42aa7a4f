"""External reads: values of strands of other subgraphs, fetched before a kernel that needs them is launched."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.base import Bindable, Coordinator, Env
from weft.backends.launch import Launch, Value, picture_coords
from weft.backends.memory import StateMemory
from weft.backends.prologue import Once
from weft.backends.vector.executor import VectorExecutor
from weft.backends.vector.feedback import Calls, Values
from weft.backends.vm import Machine, ReferenceExecutor
from weft.codegen.clike.plan import ReadSite, strands_of
from weft.codegen.kernel import Kernel
from weft.codegen.values import Line, Node
from weft.ir.rates import Rate
from weft.names import StrandRef
from weft.ops.spec import ValueType

# Launches of kernels: what one is given in a tick, by what is the same for all subgraphs and by those it reads.


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
    """A kernel over points, at coordinates that broadcast together; and the shape that they broadcast to."""
    given = {**nowhere(env), **coords}
    shape = np.broadcast_shapes(*map(np.shape, given.values()))
    launch = Launch(
        shape=(1, max(1, math.prod(shape))),
        coords={name: _row(value, shape) for name, value in given.items()},
        uniforms={name: env.uniform(name) for name in kernel.uniforms},
        strands={other: coordinator.lookup(other) for other in kernel.strands},
        pictures={path: env.pictures[path] for path in kernel.pictures},
    )
    return launch, shape


def _row(value: Value, shape: tuple[int, ...]) -> Value:
    """A coordinate of a list of points: a number as it is, else one for each point; that of a list, too, as it is."""
    if not np.ndim(value):
        return float(value)
    given = np.asarray(value, np.float64)
    return given if given.shape == shape and given.ndim == 1 else np.broadcast_to(given, shape).flatten()


def nowhere(env: Env) -> dict[str, Value]:
    """The coordinates of what is computed at no particular place."""
    return {"x": 0.5, "y": 0.5, "abstime": env.abstime, "channel": 0.0}


# Strands of a card that others read at points: where they are computed, on the card or with the processor.

Fetch: TypeAlias = Callable[[], npt.NDArray[Any]]
"""Waits for what was asked for, and gives it."""

Ask: TypeAlias = Callable[[], Fetch]
"""Asks a card, and waits for nothing."""

# From so many points on it is worth while to wait for the card.
_MANY = 2048

# So few points take the vector machine longer than the reference.
_FEW = 4


class PointReads:
    """A strand that others read. What remembers no pictures is computed by the processor if it is little: without a
    wait. So is all that is little where both share their memory."""

    def __init__(self, kernel: Kernel, shared: bool) -> None:
        self._needs_card = not shared and any(slot.image for slot in kernel.slots)
        self._many = VectorExecutor().load(kernel)
        self._few = ReferenceExecutor().load(kernel)

    def ask(self, launch: Launch, on_card: Ask | None, memory: StateMemory) -> Fetch:
        """Asks for a value for each point: for the outputs [outputs, points] that the card gives, if it can, else from
        memory that the processor reads, for which pictures may have to be read back. Gives what fetches the values."""
        count = launch.shape[1]
        if on_card is not None and (self._needs_card or count >= _MANY):
            fetch = on_card()
            return lambda: np.asarray(fetch()[0])
        executable = self._few if count <= _FEW else self._many
        values = np.asarray(executable.planes(memory.here() if self._needs_card else memory, launch)[0, 0])
        return lambda: values


# Numbers that change by column or by row, and for which strands of other subgraphs are asked: numpy computes them, a
# line at a time, for machine code to go on with.

# In memory, a truth takes as much as the others.
_STORED: Mapping[ValueType, npt.DTypeLike] = {"float": np.float32, "bool": np.uint32, "u32": np.uint32}


class LineReads:
    """The locals of one section that others read, each in an array of 4 bytes an element, which may be longer than the
    line: up to a vector."""

    def __init__(self, kernel: Kernel, rate: Rate, lines: Mapping[Line, npt.NDArray[Any]]) -> None:
        section = kernel.section(rate)
        self._lines = [(section.locals[int(line.key)], array) for line, array in lines.items()]
        self._coords = [name for name, changes in kernel.coords if changes == rate]
        self._calls = Calls(section.nodes)

    def fill(self, machine: Machine) -> None:
        """Computes them for a launch, of which the machine has run what comes once."""
        given = machine.launch.coords
        values = Values(machine, {name: np.asarray(given[name], np.float64) for name in self._coords})
        with np.errstate(all="ignore"):
            self._calls.run(values)
            for node, array in self._lines:
                array.view(_STORED[node.kind])[:] = _stretched(values[node], len(array))


def _stretched(values: Any, length: int) -> npt.NDArray[Any]:
    """A number for each element; the last one as often as there is room."""
    found = np.atleast_1d(values)
    return found[np.minimum(np.arange(length), len(found) - 1)]


# Strands of other subgraphs that a program on a card reads at places of its own: asked for before it is launched, all
# places at once. What lies on the same card is bound, everything else is sent there.

Singles: TypeAlias = npt.NDArray[np.float32]

Answers: TypeAlias = "Mapping[str, Singles | Any]"
"""By the keys of a program's strands: a value for each place, in single precision; or what the card has of them, as a
handle gave it."""

# What changes from launch to launch, and with it the places that are computed from it.
_CHANGING = frozenset({"scalar", "strand", "picture"})


class StrandReads:
    """What one program is given of other subgraphs' strands."""

    def __init__(self, kernel: Kernel) -> None:
        """Raises UnsuitableError for a kernel whose program could not be given them."""
        self._kernel = kernel
        self._asked = [_StrandRead(asking, kernel.sweep == "grid") for asking in strands_of(kernel)]

    def nothing(self) -> Answers:
        """Something in the place of answers, for a launch that nobody sees: one value for each strand."""
        return {strand.key: np.zeros(1, np.float32) for strand in self._asked}

    def most(self, shape: tuple[int, int]) -> int:
        """How many values the largest answer has to a launch of this shape."""
        return max((math.prod(strand.places(shape)) for strand in self._asked), default=0)

    def answers(self, machine: Machine, device: object) -> Answers:
        """Asks for a launch, of which the machine has run what comes once. `device` is where the program runs."""
        if not self._asked:
            return {}
        launch = machine.launch
        values = Values(machine, _lines(self._kernel, launch))
        with np.errstate(all="ignore"):
            return {strand.key: strand.answer(values, launch, device) for strand in self._asked}


class _StrandRead:
    """One strand, read at certain places."""

    def __init__(self, asking: ReadSite, in_place: bool) -> None:
        """`in_place` says that elements are where they are in every launch of a shape."""
        self.key = asking.asked.key
        self._ref = asking.asked.strand
        self._over = asking.asked.over
        self._coordinates = asking.coordinates
        self._calls = Calls(asking.before)
        self._steady = in_place and not any(_changes(node) for node in (*asking.before, *asking.coordinates))
        self._places: tuple[tuple[int, int], list[Value]] | None = None
        """Places that stay, for a launch of this shape."""

    def answer(self, values: Values, launch: Launch, device: object) -> Singles | Any:
        reads = launch.strands[self._ref]
        places = self._at(values, launch)
        bound = reads.bound(device, *places) if isinstance(reads, Bindable) else None
        if bound is not None:
            return bound
        found = np.asarray(reads(*places), np.float32)
        return np.ascontiguousarray(np.broadcast_to(found, math.prod(self.places(launch.shape))))

    def _at(self, values: Values, launch: Launch) -> list[Value]:
        """The coordinates: numbers, or a row of them with one for each place. Rows that nobody may write to stay as
        they are."""
        if self._places is not None and self._places[0] == launch.shape:
            return self._places[1]
        self._calls.run(values)
        found = [self._spread(values[node], launch) for node in self._coordinates]
        if self._steady:
            for rows in found:
                if isinstance(rows, np.ndarray):
                    rows.setflags(write=False)
            self._places = launch.shape, found
        return found

    def _spread(self, coordinate: Any, launch: Launch) -> Value:
        if not np.ndim(coordinate):
            return float(coordinate)
        return np.broadcast_to(coordinate, self.places(launch.shape)).flatten()

    def places(self, shape: tuple[int, int]) -> tuple[int, int]:
        """How many places there are in a launch of this shape: one above the other, and side by side."""
        if Rate.ELEMENT in self._over:
            return shape
        height, width = shape
        return height if Rate.ROW in self._over else 1, width if Rate.COLUMN in self._over else 1


def _changes(node: Node) -> bool:
    return node.op in _CHANGING or any(arg.op in _CHANGING for arg in node.args)


def _lines(kernel: Kernel, launch: Launch) -> dict[str, npt.NDArray[Any]]:
    """The coordinates that change, so that they spread over the launch [height, width]."""
    if kernel.sweep == "points":
        return {name: np.atleast_2d(np.asarray(launch.coords[name], np.float64)) for name, _ in kernel.coords}
    height, width = launch.shape
    across = picture_coords(width, height)
    return {"x": np.asarray(across["x"])[np.newaxis, :], "y": np.asarray(across["y"])[:, np.newaxis]}


# Strands on devices that a kernel reads once a tick, place by place: found out before it runs, so that all of them are
# asked for at once, and a device is waited for once.

Place: TypeAlias = tuple[float, ...]
"""The coordinates of one read."""

# Of a loop that reads at more places than this, the others are read one by one.
_MOST = 4096


class Prefetch:
    """Where a kernel will read strands in a tick."""

    def __init__(self, kernel: Kernel, refs: Collection[StrandRef]) -> None:
        """`refs` are what is worth asking for ahead."""
        self._kernel = kernel
        self._refs = refs
        self._once = Once(kernel)

    def places(self, memory: StateMemory, env: Env) -> dict[StrandRef, list[Place]]:
        """The places, each once. What comes once a tick is run through for that, with 0 for every strand: a place that
        depends on another strand may be missing, and one that nobody will read may be among them."""
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
        self._once.begin(memory, launch)
        return {ref: list(places) for ref, places in found.items() if places}


def prefetch_of(kernel: Kernel, on_devices: Collection[StrandRef]) -> Prefetch | None:
    """What finds out where a kernel reads strands that are on devices; None where there is at most one such place, so
    that nothing is to be gained, or where to find out would take another wait."""
    reads = list(_reads(kernel, on_devices))
    samples = any(node.op == "sample" for node in kernel.section(Rate.FRAME).walk())
    if kernel.tick != "launch" or samples or not (len(reads) > 1 or any(in_loop for _, in_loop in reads)):
        return None
    return Prefetch(kernel, frozenset(ref for ref, _ in reads))


def _reads(kernel: Kernel, refs: Collection[StrandRef]) -> Iterator[tuple[StrandRef, bool]]:
    """The strands among these that are read once a tick, and whether it is in a loop."""
    section = kernel.section(Rate.FRAME)
    outside = set(section.nodes)
    for node in section.walk():
        if node.op == "strand" and node.attr in refs:
            yield node.attr, node not in outside


def rows(places: list[Place], over: tuple[str, ...]) -> Mapping[str, Value]:
    """Places as coordinates: a row of each."""
    return {name: np.array(values) for name, values in zip(over, zip(*places, strict=True), strict=True)}
