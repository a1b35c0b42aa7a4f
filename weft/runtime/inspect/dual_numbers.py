"""Dual numbers on the reference machine: each value carries its derivatives by the numbers that it is made of.

The machine runs the same steps as always, and its values are the same. Around each step of an operator, the derivatives
of the result follow from those of the operands, by the `slopes` of the operator's row. What a number reaches through a
comparison, a floor or the bounds of a loop changes in steps, and has no derivative: that is noted apart, and so is what
cannot be followed.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.backends.launch import ticks_back
from weft.backends.vm import Machine, Step
from weft.codegen.bytecode import Instruction, row_of
from weft.codegen.kernel import Kernel
from weft.ir.expr import LoopShape, SlotPlane
from weft.ir.rates import Rate
from weft.ops.spec import OpSpec

# Half of the distance over which the slope of a sampled picture is measured. A picture is sampled in straight lines
# between the centres of its pixels, so the distance only has to be small against a pixel.
_DISTANCE = 2.0**-22

_NONE: frozenset[str] = frozenset()


class DualReach(NamedTuple):
    """What a value is made of, by the names of inputs: its derivatives, the inputs that it follows in steps, and those
    whose part in it is not known."""

    slopes: Mapping[str, float]
    steps: frozenset[str] = _NONE
    lost: frozenset[str] = _NONE

    @property
    def names(self) -> frozenset[str]:
        """All inputs that it is made of."""
        return frozenset((*self.slopes, *self.steps, *self.lost))


NOTHING = DualReach({})


class DualFloat(float):
    """A float with its reach."""

    __slots__ = ("reach",)
    reach: DualReach

    @classmethod
    def of(cls, value: float, reach: DualReach) -> DualFloat:
        made = cls(value)
        made.reach = reach
        return made


class DualBits(int):
    """A whole number of 32 bits with its reach."""

    reach: DualReach

    @classmethod
    def of(cls, value: int, reach: DualReach) -> DualBits:
        made = cls(value)
        made.reach = reach
        return made


def reach_of(value: float) -> DualReach:
    """What a value on the machine's stack is made of."""
    return value.reach if isinstance(value, (DualFloat, DualBits)) else NOTHING


def with_reach(value: float, reach: DualReach) -> float:
    """A value with a reach; the value alone, if it is made of no input."""
    if not (reach.slopes or reach.steps or reach.lost):
        return value
    return DualFloat.of(value, reach) if isinstance(value, float) else DualBits.of(value, reach)


@dataclass
class DualMemory:
    """What the numbers that slots keep are made of, for the one element that is evaluated. If it `is_followed`, all
    that is read was written by this element; else what slots keep has come from elsewhere, and `made_of` has the inputs
    that each is made of."""

    is_followed: bool
    made_of: Mapping[str, frozenset[str]]
    _kept: dict[tuple[str, int, int], DualReach] = field(default_factory=dict)

    def store(self, place: SlotPlane, cell: int, reach: DualReach) -> None:
        self._kept[place.slot, cell, place.plane] = reach

    def read(self, place: SlotPlane, cell: int) -> DualReach:
        if not self.is_followed:
            return DualReach({}, lost=self.made_of.get(place.slot, _NONE))
        return self._kept.get((place.slot, cell, place.plane), NOTHING)


def chained(parts: Iterable[tuple[DualReach, float]]) -> DualReach:
    """The reach of a result, from those of its operands and its derivatives by them."""
    slopes: dict[str, float] = {}
    steps, lost = _NONE, _NONE
    for reach, slope in parts:
        if slope == 0:
            continue
        if not math.isfinite(slope):
            lost |= reach.names
            continue
        for name, each in reach.slopes.items():
            slopes[name] = slopes.get(name, 0.0) + slope * each
        steps |= reach.steps
        lost |= reach.lost
    return DualReach(slopes, steps, lost)


def stepped(reaches: Iterable[DualReach]) -> DualReach:
    """The reach of a result that follows its operands in steps."""
    steps, lost = _NONE, _NONE
    for each in reaches:
        steps |= frozenset(each.slopes) | each.steps
        lost |= each.lost
    return DualReach({}, steps, lost)


def _with(one: DualReach, other: DualReach) -> DualReach:
    """A reach, and the steps and losses of another one."""
    return DualReach(one.slopes, one.steps | other.steps, one.lost | other.lost)


@dataclass
class DualSteps:
    """Alters the steps of a kernel on the reference machine, so that values carry their reach. `inputs` are the
    uniforms and coordinates by which derivatives are taken; `returned` has what the last element returned."""

    kernel: Kernel
    inputs: Container[str]
    memory: DualMemory
    returned: list[float] = field(default_factory=list)

    def altered(self, rate: Rate, instruction: Instruction, step: Step) -> Step:
        """See `weft.backends.vm.Alteration`."""
        row = row_of(*instruction)
        if row is not None:
            return _of_row(row, step)
        op, operand = instruction
        match op:
            case "LOAD_UNIFORM" | "LOAD_COORD" if operand in self.inputs:
                return _of_input(DualReach({str(operand): 1.0}), step)
            case "LOAD_STATE" if isinstance(operand, SlotPlane):
                return self._of_state(operand, step)
            case "STORE_STATE" if isinstance(operand, SlotPlane):
                return self._of_store(operand, step)
            case "SAMPLE_STATE" if isinstance(operand, SlotPlane):
                return _of_sample(1, DualReach({}, lost=self.memory.made_of.get(operand.slot, _NONE)), step)
            case "SAMPLE_PICTURE":
                return _of_sample(0, NOTHING, step)
            case "FETCH":
                return _of_unknown(1, step, is_step=True)
            case "LOAD_STRAND":
                return _of_unknown(int(getattr(operand, "coordinates", 0)), step, is_step=False)
            case "LOOP" if isinstance(operand, LoopShape):
                return _of_loop(operand.carried, step)
            case "LOAD_INDEX" if isinstance(operand, int):
                return _of_index(operand, step)
            case "RETURN":
                return self._of_return(step)
        return step

    def _of_state(self, place: SlotPlane, step: Step) -> Step:
        depth = self.kernel.slot(place.slot).depth

        def run(machine: Machine) -> int | None:
            ticks = machine.stack[-1]
            cell = machine.memory.cell(place.slot, ticks_back(ticks, depth))
            target = step(machine)
            reach = _with(self.memory.read(place, cell), stepped([reach_of(ticks)]))
            machine.stack[-1] = with_reach(machine.stack[-1], reach)
            return target

        return run

    def _of_store(self, place: SlotPlane, step: Step) -> Step:
        def run(machine: Machine) -> int | None:
            self.memory.store(place, machine.memory.cell(place.slot), reach_of(machine.stack[-1]))
            return step(machine)

        return run

    def _of_return(self, step: Step) -> Step:
        def run(machine: Machine) -> int | None:
            self.returned = list(machine.stack)
            return step(machine)

        return run


def _of_input(reach: DualReach, step: Step) -> Step:
    def run(machine: Machine) -> int | None:
        target = step(machine)
        machine.stack[-1] = DualFloat.of(machine.stack[-1], reach)
        return target

    return run


def _of_row(row: OpSpec, step: Step) -> Step:
    count, slopes = len(row.params), row.slopes
    chooses = [row.type_of_operand(at) == "bool" for at in range(count)]

    def run(machine: Machine) -> int | None:
        args = machine.stack[-count:]
        target = step(machine)
        reaches = [reach_of(arg) for arg in args]
        if all(reach is NOTHING for reach in reaches):
            return target
        if slopes is None:
            reach = stepped(reaches)
        else:
            parts = list(zip(reaches, slopes(*args), chooses, strict=True))
            reach = chained((each, slope) for each, slope, is_choice in parts if not is_choice)
            reach = _with(reach, stepped([each for each, _, is_choice in parts if is_choice]))
        machine.stack[-1] = with_reach(_plain(machine.stack[-1]), reach)
        return target

    return run


def _plain(value: float) -> float:
    """The number itself: an operation may return one of its operands as it is."""
    return float(value) if isinstance(value, float) else int(value)


def _of_sample(others: int, besides: DualReach, step: Step) -> Step:
    """A picture that is sampled at x and y, after `others` operands that choose which; its slope is measured."""

    def run(machine: Machine) -> int | None:
        args = machine.stack[-2 - others :]
        target = step(machine)
        value = machine.stack[-1]
        reaches = [reach_of(arg) for arg in args]
        place = [(reaches[at], _measured(machine, step, args, at)) for at in (-2, -1) if reaches[at] is not NOTHING]
        reach = _with(_with(chained(place), stepped(reaches[:others])), besides)
        machine.stack[-1] = with_reach(value, reach)
        return target

    return run


def _measured(machine: Machine, step: Step, args: Sequence[float], at: int) -> float:
    """The slope of a step by one of its operands, from its values on both sides."""
    found: list[float] = []
    for distance in (-_DISTANCE, _DISTANCE):
        moved = list(args)
        moved[at] += distance
        machine.stack.extend(moved)
        step(machine)
        found.append(machine.stack.pop())
    return (found[1] - found[0]) / (2 * _DISTANCE)


def _of_unknown(count: int, step: Step, is_step: bool) -> Step:
    """A value from outside at a place. It follows the place in steps, or in a way that is not known."""

    def run(machine: Machine) -> int | None:
        reaches = [reach_of(arg) for arg in machine.stack[len(machine.stack) - count :]]
        target = step(machine)
        followed = stepped(reaches)
        reach = followed if is_step else DualReach({}, lost=followed.names)
        machine.stack[-1] = with_reach(machine.stack[-1], reach)
        return target

    return run


def _of_loop(carried: int, step: Step) -> Step:
    """The bounds of a loop decide how often it runs, which changes its results in steps."""

    def run(machine: Machine) -> int | None:
        stack = machine.stack
        start = len(stack) - carried
        bounds = stepped(map(reach_of, stack[start - 2 : start]))
        if bounds.steps or bounds.lost:
            stack[start:] = [with_reach(_plain(value), _with(reach_of(value), bounds)) for value in stack[start:]]
        return step(machine)

    return run


def _of_index(level: int, step: Step) -> Step:
    """The number of a step of a loop is as far from zero as its first bound."""

    def run(machine: Machine) -> int | None:
        target = step(machine)
        first = next(loop.first for loop in machine.loops if loop.level == level)
        machine.stack[-1] = with_reach(machine.stack[-1], reach_of(first))
        return target

    return run
