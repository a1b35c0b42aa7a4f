"""What is computed before a kernel is launched: the launch prologue, and external reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from ctypes import c_float, c_uint32
from dataclasses import replace
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from weft.backends.base import Bindable, Coordinator, Env
from weft.backends.executors import RefusedError, refusing_failures
from weft.backends.launch import Even, Launch, StateMemory, Value, picture_coords, shape_of_level
from weft.backends.native.llvm import ArgumentBlock, Functions, NativeCode, host, machine_code, problem
from weft.backends.vector.feedback import Calls, ComputedValues
from weft.backends.vector.machine import VectorExecutor
from weft.backends.vm import Interpreter, Machine, ReferenceExecutor
from weft.codegen.clike.reads import ReadSite, strands_of
from weft.codegen.clike.shader import (
    FirstLayer, LaunchExtent, LevelExtent, OneOver, Part, PastCell, PastValue, Shader, SidePart, Source, Uniform,
    one_over
)
from weft.codegen.kernel import Kernel
from weft.codegen.native.module import FRAME, emit_prologue, prologue_length
from weft.codegen.native.target import TIERS, Head, PictureWord, Word
from weft.codegen.values import Line, Scalar
from weft.ir.rates import Rate
from weft.names import StrandRef
from weft.ops.spec import ValueType
from weft.recently_used import RecentlyUsed

# The launch prologue: numbers that are the same in a whole launch. The CPU computes them in double precision,
# interpreted at first and as machine code once that has been compiled, and packs them into a block for a program.

# Interpreting fewer values than this takes less time than passing a block of arguments to machine code, which may then
# also launch the kernel.
_WORTH_CODE = 4

_LEVEL = TIERS[max(TIERS)].level


def is_worth_code(kernel: Kernel) -> bool:
    """Whether machine code for the prologue of a kernel is worth compiling, and this machine can compile it."""
    return prologue_length(kernel) > _WORTH_CODE and problem() is None


def prologue_code(kernel: Kernel) -> NativeCode | None:
    """The code of a kernel's prologue; None if it cannot be compiled, or is not worth it."""
    processor = host() if is_worth_code(kernel) else None
    if processor is None:
        return None
    try:
        with refusing_failures("machine code"):
            module = emit_prologue(kernel, processor.isa)
        if module is None:
            return None
        layout = replace(module.layout, given=kernel.numbers)
        return NativeCode(layout, machine_code(module.text, processor, _LEVEL), max(TIERS))
    except RefusedError:
        return None  # then the interpreter computes it


class PrologueMachine:
    """Runs the prologue of a kernel as machine code."""

    def __init__(self, kernel: Kernel, code: NativeCode) -> None:
        self._kernel = kernel
        self._functions = Functions(code)
        layout = code.layout
        self.block = block = ArgumentBlock(layout)
        # Between ticks, the values stored last are already one tick old.
        finished = 1 if kernel.sweep == "points" else 0
        self.scalars = np.zeros(len(layout.scalars))
        block.set_array(block.place(Word.SCALARS), self.scalars, np.float64, len(self.scalars), writes=True)
        extents = (Word.WIDTH, Word.HEIGHT, Word.STOPPED)
        self._width, self._height, self._stopped = map(block.place, extents)
        self._frame = self._functions.function(FRAME, block)
        self._words = self.scalars.view(np.uint32)
        scalars = [(at, scalar) for at, scalar in enumerate(layout.scalars) if isinstance(scalar, Scalar)]
        placed = [(at, int(scalar.key), scalar.kind) for at, scalar in scalars]
        self.reals = [(at, number) for at, number, kind in placed if kind == "float"]
        """The places of locals among the scalars, and those of whole numbers, counted in halves of a scalar."""
        self.wholes = [(2 * at, number) for at, number, kind in placed if kind != "float"]
        self._coords = [name for name, rate in kernel.coords if rate <= Rate.FRAME]
        given = (field for field in layout.fields if not isinstance(field, Word))
        self.fillers = [block.filler(field, kernel, finished) for field in given]
        """What fills in the words that belong to the memory or to pictures."""
        self.address = self._functions.address(FRAME)
        """That of the function, which takes the block's."""

    def begin(self, memory: StateMemory, launch: Launch) -> Machine:
        """A machine with the values of the prologue that are read later. Writes the next values of number slots to the
        memory."""
        self.block.give_numbers(launch)
        for fill in self.fillers:
            fill(memory, launch)
        self.begin_shape(launch.shape)
        self._frame()
        found = [0.0] * len(self._kernel.locals)
        reals = self.scalars.tolist()
        for at, number in self.reals:
            found[number] = reals[at]
        if self.wholes:
            wholes = self._words.tolist()
            for at, number in self.wholes:
                found[number] = float(wholes[at])
        coords = {name: float(launch.coords[name]) for name in self._coords}
        return Machine(launch, memory, found, coords, loop_stopped=self.stopped, numbers=self._kernel.numbers)

    @property
    def extents(self) -> dict[str, int]:
        """The addresses of the words of a launch's width and height, and of that which says that a loop has stopped."""
        places = {"width_place": self._width, "height_place": self._height, "stopped_place": self._stopped}
        return {name: self.block.address + 8 * at for name, at in places.items()}

    def begin_shape(self, shape: tuple[int, int]) -> None:
        """Prepares a launch over a shape."""
        words = self.block.words
        words[self._height], words[self._width] = shape
        words[self._stopped] = 0

    @property
    def stopped(self) -> bool:
        """Whether a loop of the last launch has reached its limit."""
        return bool(self.block.words[self._stopped])


# The prologue of a program on a card, and its block of numbers.

# Drivers may require a block's size to be a multiple of four numbers.
_FOUR = 4

_Number: TypeAlias = Callable[[Machine, int], float]

_Form: TypeAlias = Literal["real", "whole"] | Part
"""How a number is in a block: in single precision, as 32 bits, or as a part of 1 / n in single precision."""
_FORMS: tuple[_Form, ...] = ("real", "whole", "nearest", "lower", "rest")


class LaunchPrologue:
    """The prologue of a kernel. It is interpreted until there is machine code for it."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._machine: PrologueMachine | None = None
        self._interpreter: Interpreter | None = None

    @property
    def machine(self) -> PrologueMachine | None:
        """What runs it as machine code, once there is some."""
        return self._machine

    @property
    def tier(self) -> int | None:
        """1 while it is interpreted and machine code is worth compiling; 2 with machine code; else None."""
        if self._machine is not None:
            return 2
        return 1 if is_worth_code(self.kernel) else None

    def interpret_by(self, interpreter: Interpreter) -> None:
        """Has this interpreter, of a kernel that differs in numbers only, until there is machine code. Without one, the
        first launch makes its own."""
        self._interpreter = interpreter

    def upgrade(self, code: NativeCode) -> None:
        """Runs machine code from the next launch on. May be called from any thread."""
        self._machine = PrologueMachine(self.kernel, code)

    def begin(self, memory: StateMemory, launch: Launch) -> Machine:
        """Runs the prologue of a launch. Writes the next values of number slots to the memory."""
        machine = self._machine
        if machine is not None:
            return machine.begin(memory, launch)
        if self._interpreter is None:
            self._interpreter = Interpreter.of_prologue(self.kernel)
        with np.errstate(all="ignore"):
            return self._interpreter.begin(memory, launch, self.kernel.numbers)


class PrologueBlock:
    """Packs the block of one program. The constants stay in the block from launch to launch."""

    def __init__(self, shader: Shader) -> None:
        self.words = np.zeros(-(-max(1, len(shader.uniforms)) // _FOUR) * _FOUR, np.uint32)
        # Numbers too large for single precision become infinite in these, without a warning, and whole ones stay.
        self._reals = (c_float * len(self.words)).from_buffer(self.words.data)
        self.wholes = (c_uint32 * len(self.words)).from_buffer(self.words.data)
        """The block as whole numbers."""
        self.locals: dict[_Form, list[tuple[int, int]]] = {form: [] for form in _FORMS}
        """The places of locals, with their numbers, by their forms."""
        self.uniforms: list[tuple[int, _Form, str]] = []
        """The places of uniforms, their forms, and their names."""
        self.cells: list[tuple[int, str, int]] = []
        """The places of cells of rings, with their slots, and how many ticks ago they were written."""
        self.layers: list[tuple[int, str]] = []
        """The places of first layers, with their slots."""
        self._extents: list[tuple[int, _Form, LaunchExtent | SidePart]] = []
        self._others: list[tuple[int, _Form, _Number]] = []
        for at, uniform in enumerate(shader.uniforms):
            source, form = uniform.source, _form_of(uniform)
            match source.of if isinstance(source, OneOver) else source:
                case Scalar("number", int(place)):
                    self.put(at, form, shader.numbers[place])
                    continue
                case Scalar("local", key):
                    self.locals[form].append((at, int(key)))
                    continue
                case Scalar("uniform", key):
                    self.uniforms.append((at, form, str(key)))
                case Head(slot):
                    self.cells.append((at, slot, 0))
                case PastCell(slot, k):
                    self.cells.append((at, slot, k))
                case FirstLayer(slot):
                    self.layers.append((at, slot))
                case LaunchExtent() | SidePart() as extent:
                    self._extents.append((at, form, extent))
            self._others.append((at, form, _reader(source)))
        self._real_locals = self.locals["real"]
        self._other_locals = [(form, *each) for form in _FORMS[1:] for each in self.locals[form]]

    def packed(self, machine: Machine, finished: int) -> npt.NDArray[np.uint32]:
        """The block of a launch; `finished` is 1 for programs that read state between ticks, else 0. It is valid until
        the next one is packed."""
        reals, found = self._reals, machine.locals
        for at, number in self._real_locals:
            reals[at] = found[number]
        for form, at, number in self._other_locals:
            self.put(at, form, found[number])
        for at, form, value in self._others:
            self.put(at, form, value(machine, finished))
        return self.words

    def put(self, at: int, form: _Form, value: float) -> None:
        """Writes a number in a form."""
        match form:
            case "real":
                self._reals[at] = value
            case "whole":
                self.wholes[at] = int(value)
            case part:
                self._reals[at] = one_over(value, part)

    def is_simple(self, shape: tuple[int, int]) -> bool:
        """Whether there is nothing but locals, uniforms, what is known of rings, and the extents of a picture of this
        shape (height, width), which it writes."""
        for at, form, extent in self._extents:
            self.put(at, form, _of_shape(extent, shape))
        extents = {extent for _, _, extent in self._extents}
        known = len(self.uniforms) + len(self.cells) + len(self.layers) + len(self._extents)
        return len(self._others) == known and LaunchExtent.POINTS not in extents

    def empty(self) -> npt.NDArray[np.uint32]:
        """A block of zeros."""
        return np.zeros_like(self.words)


def _form_of(uniform: Uniform) -> _Form:
    if isinstance(uniform.source, OneOver):
        return uniform.source.part
    return "real" if uniform.kind == "float" else "whole"


def line(given: Any, count: int) -> npt.NDArray[np.float32]:
    """A coordinate of `count` points in single precision, from one number or a number for each."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(np.broadcast_to(np.asarray(given, np.float32), count))


def _of_shape(extent: LaunchExtent | SidePart, shape: tuple[int, int]) -> float:
    """A number that follows from the shape of a launch."""
    if isinstance(extent, SidePart):
        return extent.of(int(_of_shape(extent.extent, shape)))
    return shape[1 if extent == LaunchExtent.COLUMNS else 0]


# The number of rows of coordinates that stay on a card for each program, since they do not change.
_CONSTANT_ROWS = 8

T = TypeVar("T")


class CoordinateRows(Generic[T]):
    """Rows of coordinates of one program on a card. Those that do not change stay there."""

    def __init__(self) -> None:
        self._known: RecentlyUsed[int, tuple[Value, T]] = RecentlyUsed(_CONSTANT_ROWS)

    def row(self, given: Value, count: int, send: Callable[[npt.NDArray[np.float32], bool], T]) -> T:
        """The row of `count` points, which `send` brings there: it is told whether the row changes."""
        if not (isinstance(given, np.ndarray) and given.base is None and not given.flags.writeable):
            return send(line(given, count), True)
        # An array that never changes is found again by its identity.
        _, found = self._known.get_or_make(id(given), lambda: (given, send(line(given, count), False)))
        return found


def _reader(source: Source) -> _Number:
    match source:
        case OneOver(of):
            return _reader(of)
        case SidePart():
            return lambda machine, finished: _of_shape(source, (machine.memory if finished else machine.launch).shape)
        case Scalar(given, key):
            return lambda machine, _: float(machine.value_of(given, key))
        case LaunchExtent.ROWS:
            return lambda machine, finished: (machine.memory if finished else machine.launch).shape[0]
        case LaunchExtent.COLUMNS:
            return lambda machine, finished: (machine.memory if finished else machine.launch).shape[1]
        case LaunchExtent.POINTS:
            return lambda machine, _: machine.launch.shape[1]
        case LevelExtent(level, extent):
            axis = 1 if extent == LaunchExtent.COLUMNS else 0
            return lambda machine, _: shape_of_level(machine.memory.shape, level)[axis]
        case PictureWord(path, "width" | "height" as extent):
            axis = 1 if extent == "width" else 0
            return lambda machine, _: machine.launch.pictures[path].shape[axis]
        case FirstLayer(slot):
            return lambda machine, _: machine.memory.first_layer(slot)
        case Head(slot):
            return lambda machine, finished: int(machine.memory.cell(slot, finished))
        case PastCell(slot, k):
            return lambda machine, finished: int(machine.memory.cell(slot, k + finished))
        case PastValue(slot, plane, k):
            return lambda machine, finished: float(
                machine.memory.ring(slot)[machine.memory.cell(slot, k + finished), plane]
            )
    raise LookupError(f"{source} has no value in a launch")


# External reads: values of strands of other subgraphs, fetched before a kernel that needs them is launched.
#
# `LineReads` and `StrandReads` serve machine code and programs on a card, which cannot call other subgraphs
# themselves. `PointReads` computes the strands of a card that others read. `Prefetch` finds the reads of a tick in
# advance, so that a device is waited for once.

# Launches, from the environment of a tick and the strands that a kernel reads.


def tick(
    kernel: Kernel, env: Env, coordinator: Coordinator, shape: tuple[int, int], coords: Mapping[str, Value],
    even: Even | None = None,
) -> Launch:  # fmt: skip
    """One tick of a kernel over a sweep of this shape (height, width), with its coordinates; `even` says that their
    times are evenly spaced."""
    return Launch(
        shape=shape,
        coords=coords,
        uniforms={name: env.uniform(name) for name in kernel.uniforms},
        strands={ref: coordinator.lookup(ref) for ref in kernel.strands},
        pictures={path: env.pictures[path] for path in kernel.pictures},
        threads=env.threads,
        even=even,
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

# From this many points on, it pays to wait for the card.
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
        """Requests a value for each point, and returns a function that fetches them. `on_card` requests outputs
        [outputs, points] from the card. Without it the CPU computes them; for that, images may have to be read back
        from `memory`."""
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
        """Fills the arrays for a launch. The machine has run the prologue of the launch."""
        given = machine.launch.coords
        values = ComputedValues(machine, {name: np.asarray(given[name], np.float64) for name in self._coords})
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
        """The number of values in the largest answer for a launch of this shape."""
        return max((math.prod(strand.places(shape)) for strand in self._reads), default=0)

    def answers(self, machine: Machine, device: object) -> Answers:
        """The answers for a launch. The machine has run its prologue. `device` is the device of the program."""
        if not self._reads:
            return {}
        launch = machine.launch
        values = ComputedValues(machine, _lines(self._kernel, launch))
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

    def answer(self, values: ComputedValues, launch: Launch, device: object) -> Singles | Any:
        reads = launch.strands[self._ref]
        places = self._at(values, launch)
        bound = reads.bound(device, *places) if isinstance(reads, Bindable) else None
        if bound is not None:
            return bound
        found = np.asarray(reads(*places), np.float32)
        return np.ascontiguousarray(np.broadcast_to(found, math.prod(self.places(launch.shape))))

    def _at(self, values: ComputedValues, launch: Launch) -> list[Value]:
        """The coordinates: each is a number, or a row with a number for each place. Constant rows are made read-only,
        which shows their readers that they stay the same."""
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
        """The number of places that a launch of this shape has, as rows and columns."""
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

# The most places that are prefetched for a strand. Further places are read one by one.
_MOST = 4096


class Prefetch:
    """Finds the places at which a kernel will read strands in a tick."""

    def __init__(self, kernel: Kernel, refs: Collection[StrandRef]) -> None:
        """`refs` are the strands that are worth prefetching."""
        self._kernel = kernel
        self._refs = refs
        self._prologue = LaunchPrologue(kernel)

    def places(self, memory: StateMemory, env: Env) -> dict[StrandRef, list[Place]]:
        """The places, each once. They come from a trial run of the prologue in which every strand is 0. So a place that
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


# Films, whose pictures are found before a tick.


class FilmTimes:
    """Computes the times of the films of a subgraph, by the names of their pictures."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._executable = ReferenceExecutor().load(kernel)

    def at(self, memory: StateMemory, launch: Launch) -> dict[str, float]:
        """The times before a launch of one element, from the state after the last tick."""
        found = self._executable.planes(memory, launch)
        return dict(zip(self.kernel.outputs, map(float, np.reshape(found, -1)), strict=True))


def rows(places: list[Place], over: tuple[str, ...]) -> Mapping[str, Value]:
    """Places as coordinates: one row for each."""
    return {name: np.array(values) for name, values in zip(over, zip(*places, strict=True), strict=True)}
