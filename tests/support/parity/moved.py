"""The reference with its numbers rounded to single precision and moved by a unit in the last place: how far may the
values of a program lie from the reference, if nothing is wrong but the digits that single precision lacks?

The sections that run at every column, row and element are computed with each number in them rounded, and, where it was
not one of single precision already, moved by -1, 0 or 1 units in the last place at random: what instructions give, and
what comes from outside (constants, coordinates, uniforms, values of the rarer sections, pictures, state). What comes
from outside is the same number wherever it is used within one run. What single precision holds exactly does not move:
`0.5 + 0.25` is the same on every machine, and a program that computes with such numbers only has one right answer.
Truths and bits do not move either, nor do the sections that run once in a launch, which every machine computes in
double precision. A remainder stays less than its period, and the trigger of a hold has not
changed, whatever moves. The sections of columns and rows a machine may
compute in either precision: every other run leaves them as they are, and rounds what elements take from them. What was
moved in one tick is what later ticks remember.
"""

from __future__ import annotations

import itertools
import math
import random
from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from weft.backends.launch import Floats, Launch, StateMemory, ticks_back
from weft.backends.vm import Interpreter, Machine, Step
from weft.codegen.bytecode import Instruction, row_of
from weft.codegen.kernel import Kernel
from weft.ir.expr import PicturePlane, SlotPlane
from weft.ir.rates import Rate
from weft.ops.ieee import below_in_single

_SMALLEST_NORMAL = 2.0**-126

# Relative to any number between 0.6 and 1.3 units in its last place, upwards as well as downwards: rounds to one unit.
_UNIT = 1.25 * 2.0**-24

# What a factor is off by, times this, is far less than a unit in the last place of 1, also in double precision.
_HARDLY = 1e-10

# How often the same movements come again; a prime, so that they meet other instructions then.
_PERIOD = 4099


# The sections whose numbers move in a run; the runs take turns.
MOVING = ((Rate.COLUMN, Rate.ROW, Rate.ELEMENT), (Rate.ELEMENT,))


@lru_cache(256)
def _factors(seed: int) -> tuple[float, ...]:
    """By what numbers move in a run, one after another; every kernel is moved by the same."""
    return tuple(random.Random(seed).choices((1 - _UNIT, 1.0, 1 + _UNIT), k=_PERIOD)) if seed > 1 else (1.0,)


class Movement:
    """How the numbers of one run move. The first two runs only round."""

    def __init__(self) -> None:
        self._single = array("f", [0.0])
        self.begin(0)

    def begin(self, seed: int) -> None:
        """Starts another run."""
        self._factors = itertools.cycle(_factors(seed))
        self._given: dict[float, float] = {}

    def result(self, x: float) -> float:
        """A number that was computed."""
        single = self._single
        single[0] = x
        rounded = single[0]
        if rounded == x or math.isnan(x):
            return rounded
        single[0] = rounded * next(self._factors)
        # Machines may take what is too small for a normal number as 0.
        return single[0] if abs(rounded) >= _SMALLEST_NORMAL or next(self._factors) >= 1 else 0.0

    def wave(self, x: float) -> float:
        """A sine or cosine that was computed."""
        return self.result(x)

    def below(self, x: float) -> float:
        """The number next to x, in the direction of 0."""
        return below_in_single(x)

    def given(self, x: float) -> float:
        """A number from outside: the same one in the whole run."""
        found = self._given.get(x)
        if found is None:
            found = self._given[x] = self.result(x)
        return found


class DoubleMovement(Movement):
    """The same for sounds, which every machine computes in double precision: nothing is rounded further, and what moves
    does so by a unit in the last place of a double."""

    def result(self, x: float) -> float:
        single = self._single
        single[0] = x if abs(x) < 1e38 else math.inf
        if single[0] == x or not math.isfinite(x):
            return x
        factor = next(self._factors)
        return x if factor == 1 else math.nextafter(x, math.copysign(math.inf, factor - 1))


    def wave(self, x: float) -> float:
        """Its zeros are hardly anything where each vector of a chunk follows from the two before it."""
        return self.result(x) or (next(self._factors) - 1) * _HARDLY

    def below(self, x: float) -> float:
        return math.nextafter(x, 0.0)


class MovingSteps:
    """The steps of a kernel, with their numbers moving."""

    def __init__(self, kernel: Kernel, movement: Movement) -> None:
        self.kernel = kernel
        self._movement = movement

    def interpreter(self, moving: Sequence[Rate]) -> Interpreter:
        """The kernel, with numbers moving in the sections of these rates."""
        return Interpreter(self.kernel, alter=partial(self._altered, moving))

    def _altered(self, moving: Sequence[Rate], rate: Rate, instruction: Instruction, step: Step) -> Step:
        """The step of an instruction, with its result moved."""
        if rate not in moving:
            return step
        op, operand = instruction
        row = row_of(op, operand)
        if row is not None and row.name in ("sin", "cos", "sinpi", "cospi"):
            return _behind(step, self._movement.wave)
        if row is not None and row.name == "differs":
            return _differs
        if row is not None and row.name == "mod":
            return _within_period(step, self._movement)
        if row is not None:
            return _behind(step, self._movement.result) if row.gives == "float" else step
        if op == "LOAD_LOCAL" and isinstance(operand, int):
            is_given = operand < len(self.kernel.locals) and self.kernel.locals[operand].rate != rate
            is_real = is_given and self.kernel.locals[operand].type == "float"
            return _behind(step, self._movement.given) if is_real else step
        if op in ("PUSH", "LOAD_COORD", "LOAD_UNIFORM", "LOAD_STATE"):
            return _behind(step, self._movement.given)
        if op in ("LOAD_STRAND", "LOAD_INDEX"):
            return _behind(step, self._movement.result)
        if isinstance(operand, PicturePlane) and op == "SAMPLE_PICTURE":
            return self._sample_picture(operand)
        if isinstance(operand, SlotPlane) and op == "SAMPLE_STATE":
            return self._sample_state(operand)
        return step

    def _sample_picture(self, place: PicturePlane) -> Step:
        def step(machine: Machine) -> None:
            y, x = machine.stack.pop(), machine.stack.pop()
            plane = machine.launch.pictures[place.picture][:, :, place.plane]
            machine.stack.append(sample(plane, x, y, self._movement.result))

        return step

    def _sample_state(self, place: SlotPlane) -> Step:
        depth = self.kernel.slot(place.slot).depth

        def step(machine: Machine) -> None:
            y, x, k = machine.stack.pop(), machine.stack.pop(), machine.stack.pop()
            cell = machine.memory.cell(place.slot, ticks_back(k, depth))
            plane = machine.memory.ring(place.slot)[cell][place.plane]
            own = [
                at if plane.shape == machine.launch.shape and self._is_own(machine, name, coordinate) else None
                for name, coordinate, at in (("x", x, machine.column), ("y", y, machine.row))
            ]
            machine.stack.append(sample(plane, x, y, self._movement.result, *own))

        return step

    def _is_own(self, machine: Machine, name: str, coordinate: float) -> bool:
        """Whether a coordinate is that of the element itself."""
        known = machine.coords.get(name)
        return known is not None and coordinate in (known, self._movement.given(known))


class MovedReference:
    """The reference for a grid kernel, with its numbers moving."""

    def __init__(self, kernel: Kernel, movement: Movement | None = None) -> None:
        assert kernel.sweep == "grid", kernel.name
        self.kernel = kernel
        self._by_element = kernel.tick == "element"
        self._movement = movement or (DoubleMovement() if self._by_element else Movement())
        self._interpreters: dict[Sequence[Rate], Interpreter] = {}
        self._locals = {r: [n for n, local in enumerate(kernel.locals) if local.rate == r] for r in Rate}
        samples = any(node.op == "sample" for _, node in kernel.walk())
        self._needs_all = samples or self._by_element or bool(kernel.stages)
        self._stages = [MovedReference(stage, self._movement) for stage in kernel.stages]

    def play(self, launches: Sequence[Launch], elements: Sequence[tuple[int, int]], seed: int) -> Floats:
        """The outputs at some elements (row, column) in launches that follow one another: an array [launches, outputs,
        elements]. Each seed is another run."""
        self._movement.begin(seed)
        moving = MOVING[seed % 2]
        shape = launches[0].shape
        memory = StateMemory(self.kernel.slots, shape, np.float64)
        # A program that looks at what others remember needs them all; so does each sample those before it.
        computed = [*np.ndindex(shape)] if self._needs_all else elements
        wanted = [computed.index(element) for element in elements] if self._needs_all else slice(None)
        found = np.empty((len(launches), len(self.kernel.outputs), len(computed)))
        with np.errstate(all="ignore"):
            for at, launch in enumerate(launches):
                for stage in self._stages:
                    part = launch.at_level(stage.kernel.level)
                    every = [*np.ndindex(part.shape)]
                    stage._launch(moving, memory, part, every, np.empty((0, len(every))))
                self._launch(moving, memory, launch, computed, found[at])
                if not self._by_element:
                    memory.advance()
        return found[:, :, wanted]

    def _interpreter(self, moving: Sequence[Rate]) -> Interpreter:
        """Made when it is wanted: most kernels are not moved at all."""
        if moving not in self._interpreters:
            self._interpreters[moving] = MovingSteps(self.kernel, self._movement).interpreter(moving)
        return self._interpreters[moving]

    def _launch(
        self, moving: Sequence[Rate], memory: StateMemory, launch: Launch, elements: Sequence[tuple[int, int]],
        out: Floats,
    ) -> None:  # fmt: skip
        interpreter = self._interpreter(moving)
        machine = interpreter.begin(memory, launch)
        known: dict[tuple[Rate, int], list[float]] = {}
        coords = {rate: _numbers(self.kernel, machine.launch, rate) for rate in (Rate.COLUMN, Rate.ROW, Rate.ELEMENT)}
        for number, (row, column) in enumerate(elements):
            machine.row, machine.column = row, column
            for rate, at in ((Rate.COLUMN, column), (Rate.ROW, row)):
                _set_coordinates(machine, coords[rate], at)
                if (rate, at) not in known:
                    interpreter.run(rate, machine)
                    known[rate, at] = [machine.locals[local] for local in self._locals[rate]]
                for local, value in zip(self._locals[rate], known[rate, at], strict=True):
                    machine.locals[local] = value
            _set_coordinates(machine, coords[Rate.ELEMENT], column)
            interpreter.run(Rate.ELEMENT, machine)
            out[:, number] = machine.stack
            machine.stack.clear()
            if self._by_element:
                machine.memory.advance()


def _numbers(kernel: Kernel, launch: Launch, rate: Rate) -> list[tuple[str, list[float]]]:
    """The coordinates that change at a rate: their numbers, or one number that holds everywhere."""
    names = [name for name, changes in kernel.coords if changes == rate]
    return [(name, np.atleast_1d(np.asarray(launch.coords[name], np.float64)).tolist()) for name in names]


def _set_coordinates(machine: Machine, numbers: Sequence[tuple[str, list[float]]], at: int) -> None:
    for name, given in numbers:
        machine.coords[name] = given[at] if len(given) > 1 else given[0]


def _behind(step: Step, move: Callable[[float], float]) -> Step:
    """A step that leaves a number on the stack, which is then moved."""

    def moving(machine: Machine) -> None:
        step(machine)
        machine.stack[-1] = move(machine.stack[-1])

    return moving


# A trigger that does not change moves from tick to tick by less than this, relative to its size.
_STILL = 2.0**-19


def _differs(machine: Machine) -> None:
    """Whether a trigger has changed by more than it moves."""
    before, now = machine.stack.pop(), machine.stack.pop()
    still = before == now or abs(before - now) <= _STILL * max(abs(before), abs(now))
    machine.stack.append(float(not still))


def _within_period(step: Step, movement: Movement) -> Step:
    """The step of a remainder, which no movement takes out of its period."""

    def moving(machine: Machine) -> None:
        limit = movement.below(machine.stack[-1])
        step(machine)
        rest = machine.stack[-1]
        if math.isfinite(rest) and math.isfinite(limit):
            rest = movement.result(rest)
            rest = min(max(rest, 0.0), limit) if limit >= 0 else max(min(rest, 0.0), limit)
        machine.stack[-1] = rest

    return moving


def sample(
    plane: Any, x: float, y: float, move: Callable[[float], float],
    own_column: int | None = None, own_row: int | None = None,
) -> float:  # fmt: skip
    """The value of a plane [height, width] at a place, as `weft.backends.launch` has it, with every step moved. Where
    the place is in the column or the row of the element itself, no step finds it."""
    height, width = plane.shape
    column, across = _located(x, width, move) if own_column is None else (own_column, 0.0)
    row, down = _located(y, height, move) if own_row is None else (own_row, 0.0)
    right, below = min(column + 1, width - 1), min(row + 1, height - 1)

    def between(a: float, b: float, t: float) -> float:
        return move(a + move(move(b - a) * t)) if t else a

    upper = between(float(plane[row, column]), float(plane[row, right]), across)
    lower = between(float(plane[below, column]), float(plane[below, right]), across)
    return between(upper, lower, down)


def _located(coordinate: float, size: int, move: Callable[[float], float]) -> tuple[int, float]:
    position = move(move(coordinate * size) - 0.5)
    if not position > 0:
        return 0, 0.0
    position = min(position, size - 1.0)
    return int(position), position - int(position)
