"""Expressions evaluated at one element of a picture, a sound or a number, tick by tick, in plain Python."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from weft.codegen.kernel import LOOP_STEPS, NEST_STEPS
from weft.codegen.native.dataflow import SOME_STEPS, cost_of
from weft.codes.rows import InternalError
from weft.contexts import ContextSpec
from weft.ir.expr import Expr, LoopShape, LoopValue, Lowered, SlotPlane, StateSlot, depending_on_loop, topological
from weft.ir.rates import Rate, RateAnalysis
from weft.ir.tunable import Tunable, current
from weft.ops import OPS, OpSpec, ieee

Value: TypeAlias = float | int | None


class AllowanceSpentError(InternalError):
    """The evaluation would exceed its allowance."""


@dataclass
class Allowance:
    """The number of operations that may still be evaluated."""

    left: int

    def spend(self, count: int) -> None:
        """Raises AllowanceSpentError if fewer than `count` are left."""
        self.left -= count
        if self.left < 0:
            raise AllowanceSpentError


@dataclass
class Element:
    """One element of a subgraph, with its own memory, tick by tick. `stopped` collects the loops that reach a limit.

    Values that are not known here, such as a picture or a strand of another subgraph, are None, and so is everything
    that depends on them.
    """

    lowered: Lowered
    allowance: Allowance
    stopped: dict[Expr, None] = field(default_factory=dict)
    narrow: Container[Expr] = frozenset()
    """The expressions that are computed in single precision."""
    _past: dict[SlotPlane, deque[Value]] = field(default_factory=dict)
    """The earlier values of each plane of a slot, the latest first."""
    _given: dict[str, Mapping[str, float]] = field(default_factory=dict)
    _values: dict[Expr, Value] = field(default_factory=dict)
    _results: dict[Expr, list[Value]] = field(default_factory=dict)
    """The carried values of each loop at its end."""
    _bodies: dict[Expr, tuple[list[Expr], list[Expr]]] = field(default_factory=dict)
    """The variables of each loop, and the other expressions that each step of it evaluates, operands first."""
    _depth: int = 0
    """The number of loops that are running."""
    _left: int = 0
    """The number of steps that the nest of loops may still make."""
    _is_cut: bool = False
    """Whether a loop of this nest was stopped. The loops around it stop too, and are not recorded."""

    def __post_init__(self) -> None:
        self._nodes = [node for node in topological(self.lowered.swept) if not node.free]
        self._slots = {slot.key: slot for slot in self.lowered.slots}

    def tick(self, coords: Mapping[str, float], uniforms: Mapping[str, float]) -> dict[str, Value]:
        """The outputs in the next tick, by their labels. Raises AllowanceSpentError."""
        self._given = {"coord": coords, "uniform": uniforms}
        self._run(self._nodes)
        for update in self.lowered.updates:
            place = SlotPlane(update.slot, update.plane)
            if place not in self._past:
                self._past[place] = deque(maxlen=max(1, self._slots[update.slot].depth))
            self._past[place].appendleft(self._values[update.value])
        return {output.label: self._values[output.value] for output in self.lowered.outputs}

    def value_of(self, node: Expr) -> Value:
        """The value of an expression in the last tick; in a loop, that of its last step."""
        return self._values.get(node)

    def remember(self, place: SlotPlane, value: Value) -> None:
        """Gives a plane of a slot its latest value."""
        self._past[place] = deque([value], maxlen=max(1, self._slots[place.slot].depth))

    def largest(self, slot: StateSlot) -> float:
        """The largest size of the latest values of a slot that are known; infinite for NaN."""
        latest = [past[0] for plane in range(slot.planes) if (past := self._past.get(SlotPlane(slot.key, plane)))]
        return max((math.inf if math.isnan(each) else abs(each) for each in latest if each is not None), default=0.0)

    def additions(self, spec: ContextSpec) -> float:
        """The approximate cost, in additions, of the values that differ between elements, with the steps of the last
        tick. A level of images has a quarter of the elements of the one before."""
        rates = RateAnalysis(spec, self.lowered.slots).of(self.lowered.nodes)
        roots = {0: [output.value for output in self.lowered.outputs]}
        for update in self.lowered.updates:
            roots.setdefault(self._slots[update.slot].level, []).append(update.value)
        return sum(
            0.25**level * sum(self._cost(n) for n in topological(values) if not n.free and rates[n] == Rate.ELEMENT)
            for level, values in roots.items()
        )

    def _cost(self, node: Expr) -> float:
        if isinstance(node.attr, LoopShape):
            first, last = (self._values.get(arg) for arg in node.args[:2])
            steps = SOME_STEPS if first is None or last is None else ieee.steps(first, last)
            return min(steps, LOOP_STEPS) * sum(map(self._cost, self._body(node, node.attr)[1]))
        return cost_of("sample" if node.op == "state" and len(node.args) > 1 else node.op)

    def _run(self, nodes: Sequence[Expr]) -> None:
        self.allowance.spend(len(nodes))
        values, narrow = self._values, self.narrow
        for node in nodes:
            row = OPS.get(node.op)
            if node in narrow:
                args = [_narrowed(values[arg]) for arg in node.args]
                values[node] = _narrowed(self._structural(node) if row is None else _folded(row, args))
            else:
                values[node] = self._structural(node) if row is None else _folded(row, [values[a] for a in node.args])

    def _structural(self, node: Expr) -> Value:
        match node.op, node.attr:
            case ("const" | "u32"), (float() | int() | Tunable()) as number:
                return current(number)
            case ("coord" | "uniform"), str(name):
                return self._given[node.op].get(name)
            case "state", SlotPlane() as place:
                return self._state(node, place)
            case "loop", LoopShape() as shape:
                self._results[node] = self._loop(node, shape)
            case "loop_out", int(k):
                return self._results[node.args[0]][k]
        return None

    def _state(self, node: Expr, place: SlotPlane) -> Value:
        k = self._values[node.args[0]]
        slot = self._slots[place.slot]
        if len(node.args) > 1 or k is None or not slot.outlives:
            return None  # it may have been computed at another element, or only now
        back = min(int(k), slot.depth) if 1 <= k < math.inf else 1
        past = self._past.get(place, ())
        return past[back - 1] if back <= len(past) else 0.0

    def _loop(self, loop: Expr, shape: LoopShape) -> list[Value]:
        first, last, *carried = (self._values[arg] for arg in loop.args[: 2 + shape.carried])
        if first is None or last is None:
            return [None] * shape.carried
        count = ieee.steps(first, last)
        if not self._depth:
            self._left, self._is_cut = NEST_STEPS, False
        if count > min(LOOP_STEPS, self._left):
            if not self._is_cut:
                self.stopped[loop] = None
            self._is_cut = True
            return [None] * shape.carried
        nexts = loop.args[2 + shape.carried :]
        variables, others = self._body(loop, shape)
        self._depth += 1
        for step in range(int(count)):
            self._left -= 1
            for node in variables:
                self._values[node] = carried[node.attr.k] if isinstance(node.attr, LoopValue) else first + step
            self._run(others)
            carried = [self._values[node] for node in nexts]
        self._depth -= 1
        return carried


    def _body(self, loop: Expr, shape: LoopShape) -> tuple[list[Expr], list[Expr]]:
        """See `_bodies`."""
        if loop not in self._bodies:
            nodes = depending_on_loop(shape.level, loop.args[2 + shape.carried :])
            own = [node for node in nodes if node.free.bit_length() == shape.level + 1]  # not those of inner loops
            variables = [node for node in own if node.op in ("loop_index", "loop_value")]
            self._bodies[loop] = variables, [node for node in own if node not in variables]
        return self._bodies[loop]


def _folded(row: OpSpec, args: list[Value]) -> Value:
    if None in args:
        return None
    if row.takes != "float":
        args = [float(arg != 0) if row.type_of_operand(at) == "bool" else arg for at, arg in enumerate(args)]
    return row.fold(*args)


def _narrowed(value: Value) -> Value:
    """A value in single precision. Whole numbers of 32 bits stay as they are."""
    return ieee.single(value) if isinstance(value, float) else value
