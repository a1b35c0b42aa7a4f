"""The reference VM runs bytecode, one element at a time, in double precision. It is slow and simple, can be traced, and
defines the results that all other backends have to match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from weft.backends.executors import NOTHING, Executable, Refusals, check, load_stages
from weft.backends.launch import Floats, Launch, StateMemory, channels, fetch, sample, ticks_back
from weft.codegen.bytecode import Instruction, StrandCall, assemble, row_of
from weft.codegen.kernel import LOOP_STEPS, NEST_STEPS, Kernel
from weft.ir.expr import LoopShape, PicturePlane, SlotPlane
from weft.ir.rates import Rate
from weft.media.frames import floats
from weft.ops.spec import OpSpec


class TraceEvent(NamedTuple):
    """One executed instruction: its position, the element (row, column) it ran for, and the stack after it."""

    rate: Rate
    at: int
    instruction: Instruction
    element: tuple[int, int]
    stack: tuple[float, ...]


Trace: TypeAlias = Callable[[TraceEvent], None]


@dataclass(slots=True)
class RunningLoop:
    """The state of a loop in progress."""

    first: float
    last: float
    values: list[float]
    level: int = 0
    index: float = 0.0
    count: int = 0


@dataclass(slots=True)
class Machine:
    """The state of one execution. The caller that runs a section sets `locals`, `coords` and the element."""

    launch: Launch
    memory: StateMemory
    locals: list[float]
    coords: dict[str, float]
    row: int = 0
    column: int = 0
    stack: list[float] = field(default_factory=list)
    loops: list[RunningLoop] = field(default_factory=list)
    steps_left: int = 0
    """The number of steps that the nest of loops may still take."""
    loop_stopped: bool = False
    numbers: Sequence[float] = ()
    """Those of the kernel."""

    def value_of(self, source: str, key: Any) -> float:
        """A number of the prologue: a uniform, a coordinate, a local, or a number of the kernel."""
        match source:
            case "uniform":
                return self.launch.uniforms[key]
            case "coord":
                return self.coords[key]
            case "local":
                local: float = self.locals[key]
                return local
            case "number":
                number: float = self.numbers[key]
                return number
        raise LookupError(f"nothing gives {source} {key}")

    def make_step(self, loop: RunningLoop) -> bool:
        """Begins the next step of a loop, and returns whether there is one."""
        loop.index = loop.first + loop.count
        if not loop.index <= loop.last:
            return False
        if loop.count == LOOP_STEPS or self.steps_left == 0:
            self.loop_stopped = True
            return False
        self.steps_left -= 1
        return True


# One instruction, ready to run. Returns the position to jump to, or None for the next one.
Step: TypeAlias = Callable[[Machine], "int | None"]

# Returns the replacement for the step of an instruction in the section of a rate.
Alteration: TypeAlias = Callable[[Rate, Instruction, Step], Step]


class Interpreter:
    """The sections of a kernel, ready to run. `alter` is called once for each instruction."""

    @classmethod
    def of_prologue(cls, kernel: Kernel) -> Interpreter:
        """An interpreter of the launch prologue alone: numbers, which it computes faster than numpy. It serves kernels
        that differ in numbers only, too."""
        sections = tuple(each for each in kernel.sections if each.rate <= Rate.FRAME)
        return cls(replace(kernel, sections=sections), opened=True)

    def __init__(
        self, kernel: Kernel, trace: Trace | None = None, alter: Alteration | None = None, opened: bool = False
    ) -> None:
        self.kernel = kernel
        self._bytecode = assemble(kernel, opened)
        self._trace = trace
        codes = self._bytecode.codes
        self._steps = {rate: _resolve(kernel, code) for rate, code in codes.items()}
        if alter is not None:
            self._steps = {
                rate: tuple(map(partial(alter, rate), codes[rate], steps)) for rate, steps in self._steps.items()
            }
        self._straight = {rate for rate, code in codes.items() if not any(op == "LOOP" for op, _ in code)}
        """The sections without loops."""
        self._constants: tuple[object, list[float]] = (None, [])

    def begin(self, memory: StateMemory, launch: Launch, numbers: Sequence[float] | None = None) -> Machine:
        """A machine that has run the prologue of a launch: the constant and the frame section. The results of the
        constant section are kept for later launches. The interpreter of a prologue takes the `numbers` of another
        kernel."""
        given = self.kernel.numbers if numbers is None else numbers
        machine = Machine(launch, memory, [0.0] * len(self._bytecode.locals), {}, numbers=given)
        self._set_coords(machine, Rate.CONSTANT)
        key = given, tuple(machine.coords.items())
        if self._constants[0] != key:
            self.run(Rate.CONSTANT, machine)
            self._constants = (key, list(machine.locals))
        machine.locals[:] = self._constants[1]
        self._set_coords(machine, Rate.FRAME)
        self.run(Rate.FRAME, machine)
        return machine

    def _set_coords(self, machine: Machine, rate: Rate) -> None:
        for name, changes in self.kernel.coords:
            if changes == rate:
                machine.coords[name] = float(machine.launch.coords[name])

    def run(self, rate: Rate, machine: Machine) -> None:
        """Runs a section, and leaves its results on the stack."""
        steps = self._steps.get(rate, ())
        trace = self._trace
        if rate in self._straight and trace is None:
            for step in steps:
                step(machine)
            return
        at, end = 0, len(steps)
        while at < end:
            target = steps[at](machine)
            if trace is not None:
                element, code = (machine.row, machine.column), self._bytecode.code(rate)
                trace(TraceEvent(rate, at, code[at], element, tuple(machine.stack)))
            at = at + 1 if target is None else target


def _resolve(kernel: Kernel, code: Sequence[Instruction]) -> tuple[Step, ...]:
    """A section as steps, with all lookups done that are the same in every launch."""
    loops = _Loops(code)
    return tuple(
        _row(row) if (row := row_of(*each)) is not None else _step(kernel, loops, at, *each)
        for at, each in enumerate(code)
    )


class _Loops:
    """Where the loops of a section begin and end, and how deeply each position is nested."""

    def __init__(self, code: Sequence[Instruction]) -> None:
        self.partner: dict[int, int] = {}
        self.around: dict[int, dict[int, int]] = {}
        """For each position that reads or ends a loop: the depth of the enclosing loop of each level."""
        open_loops: list[tuple[int, int]] = []
        for at, (op, operand) in enumerate(code):
            if op in ("LOOP", "NEXT", "LOAD_INDEX", "LOAD_CARRIED"):
                self.around[at] = {level: depth for depth, (level, _) in enumerate(open_loops)}
            if op == "LOOP" and isinstance(operand, LoopShape):
                open_loops.append((operand.level, at))
            elif op == "NEXT":
                _, begin = open_loops.pop()
                self.partner[begin], self.partner[at] = at, begin


def _row(row: OpSpec) -> Step:
    fold, count = row.fold, len(row.params)
    truths = [at for at in range(count) if row.type_of_operand(at) == "bool"]

    def unary(machine: Machine) -> None:
        stack = machine.stack
        stack[-1] = fold(stack[-1])

    def binary(machine: Machine) -> None:
        stack = machine.stack
        right = stack.pop()
        stack[-1] = fold(stack[-1], right)

    def general(machine: Machine) -> None:
        args = _pop(machine.stack, count)
        for at in truths:
            args[at] = 1.0 if args[at] != 0 else 0.0
        machine.stack.append(fold(*args))

    if truths or count not in (1, 2):
        return general
    return unary if count == 1 else binary


def _pop(stack: list[float], count: int) -> list[float]:
    start = len(stack) - count
    values = stack[start:]
    del stack[start:]
    return values


def _step(kernel: Kernel, loops: _Loops, at: int, op: str, operand: Any) -> Step:
    """The step of an instruction that is not a row of the table."""
    match op:
        case "PUSH" | "PUSH_BITS":
            return lambda machine: machine.stack.append(operand)
        case "LOAD_NUMBER":
            return lambda machine: machine.stack.append(machine.numbers[operand])
        case "LOAD_COORD":
            return lambda machine: machine.stack.append(machine.coords[operand])
        case "LOAD_UNIFORM":
            return lambda machine: machine.stack.append(float(machine.launch.uniforms[operand]))
        case "LOAD_LOCAL":
            return lambda machine: machine.stack.append(machine.locals[operand])
        case "STORE_LOCAL":
            return partial(_store_local, operand)
        case "DROP":
            return _drop
        case "RETURN":
            return lambda machine: None
        case "LOAD_STATE":
            return _load_state(kernel, operand)
        case "SAMPLE_STATE":
            return _sample_state(kernel, operand)
        case "STORE_STATE":
            return _store_state(kernel, operand)
        case "SAMPLE_PICTURE":
            return _sample_picture(operand)
        case "FETCH":
            return _fetch(operand)
        case "LOAD_STRAND":
            return _load_strand(operand)
        case "LOOP":
            return _begin_loop(operand, loops.partner[at] + 1, not loops.around[at])
        case "NEXT":
            return _end_step(operand, loops.partner[at] + 1)
        case "LOAD_INDEX":
            depth = loops.around[at][operand]
            return lambda machine: machine.stack.append(machine.loops[depth].index)
        case "LOAD_CARRIED":
            depth, k = loops.around[at][operand.level], operand.k
            return lambda machine: machine.stack.append(machine.loops[depth].values[k])
    raise LookupError(f"nothing executes {op}")


def _store_local(number: int, machine: Machine) -> None:
    machine.locals[number] = machine.stack.pop()


def _drop(machine: Machine) -> None:
    machine.stack.pop()


def _cell(kernel: Kernel, key: str) -> Callable[[Machine, float], Any]:
    """A function that finds the planes of a slot, k ticks ago, from this kernel's view."""
    depth = kernel.slot(key).depth
    finished = 1 if kernel.sweep == "points" else 0
    return lambda machine, k: machine.memory.planes(key, ticks_back(k, depth, 1 - finished) + finished)


def _load_state(kernel: Kernel, place: SlotPlane) -> Step:
    cell, plane, image = _cell(kernel, place.slot), place.plane, kernel.slot(place.slot).image

    def step(machine: Machine) -> None:
        found = cell(machine, machine.stack.pop())[plane]
        machine.stack.append(float(found[machine.row, machine.column] if image else found))

    return step


def _sample_state(kernel: Kernel, place: SlotPlane) -> Step:
    cell, plane = _cell(kernel, place.slot), place.plane

    def step(machine: Machine) -> None:
        k, x, y = _pop(machine.stack, 3)
        machine.stack.append(sample(cell(machine, k)[plane], x, y))

    return step


def _store_state(kernel: Kernel, place: SlotPlane) -> Step:
    key, plane = place
    image = kernel.slot(key).image

    def step(machine: Machine) -> None:
        cell = machine.memory.ring(key)[machine.memory.cell(key)]
        cell[(plane, machine.row, machine.column) if image else (plane,)] = machine.stack.pop()

    return step


def _sample_picture(place: PicturePlane) -> Step:
    def step(machine: Machine) -> None:
        x, y = _pop(machine.stack, 2)
        machine.stack.append(sample(floats(machine.launch.pictures[place.picture])[:, :, place.plane], x, y))

    return step


def _fetch(place: PicturePlane) -> Step:
    def step(machine: Machine) -> None:
        samples = machine.launch.pictures[place.picture][0, :, place.plane]
        machine.stack.append(fetch(samples, machine.stack.pop()))

    return step


def _load_strand(strand: StrandCall) -> Step:
    def step(machine: Machine) -> None:
        value = machine.launch.strands[strand.ref](*_pop(machine.stack, strand.coordinates))
        machine.stack.append(float(np.asarray(value).reshape(())))

    return step


def _begin_loop(shape: LoopShape, end: int, outermost: bool) -> Step:
    def step(machine: Machine) -> int | None:
        first, last, *values = _pop(machine.stack, 2 + shape.carried)
        if outermost:
            machine.steps_left = NEST_STEPS
        loop = RunningLoop(first, last, values, shape.level)
        if machine.make_step(loop):
            machine.loops.append(loop)
            return None
        machine.stack.extend(values)
        return end

    return step


def _end_step(shape: LoopShape, body: int) -> Step:
    carried = shape.carried

    def step(machine: Machine) -> int | None:
        loop, stack = machine.loops[-1], machine.stack
        start = len(stack) - carried
        loop.values = stack[start:]
        del stack[start:]
        loop.count += 1
        if machine.make_step(loop):
            return body
        machine.loops.pop()
        machine.stack.extend(loop.values)
        return None

    return step


# The executor.


class ReferenceExecutor:
    """Makes kernels ready for the reference machine. `trace` is called with every instruction that is executed."""

    name = "vm"
    widest = np.float64

    def __init__(self, trace: Trace | None = None) -> None:
        self._trace = trace
        self.refusals = Refusals()

    def translate(self, kernel: Kernel, packed: bool, tier: int = 1) -> None:
        if packed:
            channels(len(kernel.outputs))

    def load(self, kernel: Kernel, codes: Mapping[bool, object] = NOTHING) -> Executable:
        if kernel.stages:
            return load_stages(self, kernel, codes)
        return ReferenceExecutable(kernel, self._trace)


class ReferenceExecutable(Executable):
    """A kernel on the reference machine; see `Executable`."""

    tier = None

    def __init__(self, kernel: Kernel, trace: Trace | None = None) -> None:
        self.kernel = kernel
        self._interpreter = Interpreter(kernel, trace)
        self._coords = {r: [name for name, rate in kernel.coords if rate == r] for r in Rate}
        self._columns = [at for at, local in enumerate(kernel.locals) if local.rate == Rate.COLUMN]

    def planes(self, memory: StateMemory, launch: Launch) -> Floats:
        check(self.kernel, memory, launch)
        with np.errstate(all="ignore"):
            machine = self._interpreter.begin(memory, launch)
            out = self._sweep(machine)
        if self.kernel.sweep == "grid" and self.kernel.tick == "launch":
            memory.advance()
        if machine.loop_stopped:
            launch.loop_stopped()
        return out

    def _sweep(self, machine: Machine) -> Floats:
        height, width = machine.launch.shape
        out = np.empty((len(self.kernel.outputs), height, width))
        columns = self._columns
        by_column: list[list[float]] = []
        for column in range(width):
            self._set_coords(machine, Rate.COLUMN, column)
            self._interpreter.run(Rate.COLUMN, machine)
            by_column.append([machine.locals[number] for number in columns])
        for row in range(height):
            self._set_coords(machine, Rate.ROW, row)
            self._interpreter.run(Rate.ROW, machine)
            for column in range(width):
                for number, value in zip(columns, by_column[column], strict=True):
                    machine.locals[number] = value
                self._set_coords(machine, Rate.COLUMN, column)
                self._set_coords(machine, Rate.ELEMENT, column)
                machine.row, machine.column = row, column
                self._interpreter.run(Rate.ELEMENT, machine)
                out[:, row, column] = machine.stack
                machine.stack.clear()
                if self.kernel.tick == "element" and self.kernel.sweep == "grid":
                    machine.memory.advance()
        return out

    def _set_coords(self, machine: Machine, rate: Rate, at: int) -> None:
        for name in self._coords[rate]:
            given = machine.launch.coords[name]
            machine.coords[name] = float(given[at] if isinstance(given, np.ndarray) and given.ndim else given)
