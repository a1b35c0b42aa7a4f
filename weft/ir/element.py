"""Evaluates expressions at a few elements, in plain Python: enough to analyse a program without running it.

Values that are not known here, such as a picture or a strand of another subgraph, are None, and so is everything that
depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from weft.ir.expr import Expr, LoopShape, LoopValue, Lowered, SlotPlane, depending_on_loop, topological
from weft.ops import OPS, OpSpec, ieee

Value: TypeAlias = float | int | None


class AllowanceSpentError(Exception):
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
    """One element of a subgraph, with its own memory, tick by tick. `steps` is the limit for the steps of a loop and
    `nest` that for a nest of loops; `stopped` collects the loops that reach a limit."""

    lowered: Lowered
    allowance: Allowance
    steps: int
    nest: int
    stopped: dict[Expr, None] = field(default_factory=dict)
    _past: dict[SlotPlane, list[Value]] = field(default_factory=dict)
    """The earlier values of each plane of a slot, the latest first."""
    _given: dict[str, Mapping[str, float]] = field(default_factory=dict)
    _values: dict[Expr, Value] = field(default_factory=dict)
    _results: dict[Expr, list[Value]] = field(default_factory=dict)
    """The carried values of each loop at its end."""
    _bodies: dict[Expr, tuple[list[Expr], list[Expr]]] = field(default_factory=dict)
    _depth: int = 0
    """The number of loops that are running."""
    _left: int = 0
    """The number of steps that the nest of loops may still make."""
    _is_cut: bool = False
    """Whether a loop of this nest was stopped. Those around it stop too and are not recorded."""

    def __post_init__(self) -> None:
        self._nodes = [node for node in topological(self.lowered.swept) if not node.free]
        self._slots = {slot.key: slot for slot in self.lowered.slots}

    def tick(self, coords: Mapping[str, float], uniforms: Mapping[str, float]) -> dict[str, Value]:
        """The outputs in the next tick, by their labels. Raises AllowanceSpentError."""
        self._given = {"coord": coords, "uniform": uniforms}
        self._run(self._nodes)
        for update in self.lowered.updates:
            self._past.setdefault(SlotPlane(update.slot, update.plane), []).insert(0, self._values[update.value])
        return {output.label: self._values[output.value] for output in self.lowered.outputs}

    def _run(self, nodes: Sequence[Expr]) -> None:
        self.allowance.spend(len(nodes))
        values = self._values
        for node in nodes:
            row = OPS.get(node.op)
            values[node] = self._structural(node) if row is None else _folded(row, [values[a] for a in node.args])

    def _structural(self, node: Expr) -> Value:
        match node.op, node.attr:
            case ("const" | "u32"), (float() | int()) as number:
                return number
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
        if len(node.args) > 1 or k is None:
            return None  # it may have been computed at another element
        back = min(int(k), self._slots[place.slot].depth) if 1 <= k < math.inf else 1
        past = self._past.get(place, [])
        return past[back - 1] if back <= len(past) else 0.0

    def _loop(self, loop: Expr, shape: LoopShape) -> list[Value]:
        first, last, *carried = (self._values[arg] for arg in loop.args[: 2 + shape.carried])
        if first is None or last is None:
            return [None] * shape.carried
        count = ieee.steps(first, last)
        if not self._depth:
            self._left, self._is_cut = self.nest, False
        if count > min(self.steps, self._left):
            if not self._is_cut:
                self.stopped[loop] = None
            self._is_cut = True
            return [None] * shape.carried
        nexts = loop.args[2 + shape.carried :]
        if loop not in self._bodies:
            self._bodies[loop] = _body(nexts, shape.level)
        variables, others = self._bodies[loop]
        self._depth += 1
        for step in range(int(count)):
            self._left -= 1
            for node in variables:
                self._values[node] = carried[node.attr.k] if isinstance(node.attr, LoopValue) else first + step
            self._run(others)
            carried = [self._values[node] for node in nexts]
        self._depth -= 1
        return carried


_VARIABLES = frozenset({"loop_index", "loop_value"})


def _folded(row: OpSpec, args: list[Value]) -> Value:
    if None in args:
        return None
    if row.takes != "float":
        args = [float(arg != 0) if row.type_of_operand(at) == "bool" else arg for at, arg in enumerate(args)]
    return row.fold(*args)


def _body(nexts: Sequence[Expr], level: int) -> tuple[list[Expr], list[Expr]]:
    """The variables of a loop of this level, and the other expressions that each step of it evaluates, operands first,
    without those of inner loops."""
    nodes = [node for node in depending_on_loop(level, nexts) if node.free.bit_length() == level + 1]
    return [n for n in nodes if n.op in _VARIABLES], [n for n in nodes if n.op not in _VARIABLES]
