"""The diagnostics of `check`: all errors of a text, and what would be reported as soon as it ran.

Nothing is compiled: expressions are evaluated at a few places and in a few ticks, in plain Python and for a moment at
most. Problems that appear only elsewhere, or later, are left to the run itself.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, count
from typing import TypeAlias

from weft.backends.hardware import cores
from weft.beats import BPM, Beats
from weft.codegen.kernel import LOOP_STEPS, NEST_STEPS
from weft.codegen.native.graph import SOME_STEPS, cost_of
from weft.contexts import ContextSpec, ContextTable
from weft.errors import Diagnostic, Source, WeftError
from weft.graph.nodes import Subgraph
from weft.ir.constants import Tunable, current
from weft.ir.expr import Expr, LoopShape, LoopValue, Lowered, Pool, SlotPlane, StateSlot, depending_on_loop, topological
from weft.ir.lower import lower
from weft.ir.rates import Rate, RateAnalysis, long_loops
from weft.ops import OPS, OpSpec, ieee
from weft.permissions import DEFAULT_PERMISSIONS, Permissions
from weft.runtime.build import Analysis, Build, Probe, analyse, build, each_subgraph, without_collection
from weft.runtime.findings import (
    IN_PICTURE, IN_SOUND, as_warnings, loop_stopped, memory_lost, not_numbers, nothing_to_show, place_in, places_of
)
from weft.runtime.inputs import InputState
from weft.syntax.ast import SpindleDefinition

# Operations that may be evaluated for one text: about a fifth of a second.
_MOST = 300_000

# The trial of a program evaluates as many ticks before it decides that an output is not a number.
_TICKS = 4

# Fewer places are not enough to say that an output is not a number anywhere.
_FEWEST = 25
_PLACES = [(0.37, 0.61), (0.01, 0.99), (0.99, 0.01), (0.99, 0.99), (0.01, 0.01)]
# What is larger is on its way to infinity. What is not after these ticks, or operations, is left to the run itself.
_LARGE = 1e15
_MOST_GROWING, _MOST_QUIET = 60_000, 1000

ADDITION = 2.5e-11
"""Seconds of a core for one addition of a pixel, at best. What is estimated with it takes longer on most machines."""

# Whether a frame is drawn in time is measured if it takes so much of that by the estimate.
_DOUBTFUL = 0.4

# Operations of one pixel that are evaluated to find out what it costs. One of more is costly.
_MOST_COSTLY = 25_000

# Seconds between the moments at which a sound is evaluated.
_APART = 0.01234
_GRID = [((column + 0.5) / 12, (row + 0.5) / 8) for row in range(8) for column in range(12)]


Additions: TypeAlias = Callable[[tuple[int, int]], float]
"""About how many additions a frame of a size (width, height) costs."""

Measure: TypeAlias = Callable[[Build, Source, Additions], Sequence[Diagnostic]]


def check(
    source: Source, contexts: ContextTable, probe: Probe | None = None, permissions: Permissions = DEFAULT_PERMISSIONS,
    measure: Measure | None = None,
) -> Sequence[Diagnostic]:  # fmt: skip
    """All errors and warnings about a text; see `weft.runtime.build.analyse` for the arguments. If it is doubtful that
    the pictures keep their rate, `measure` says it; see `weft.runtime.pace.too_slow`."""
    allowance = Allowance(_MOST)
    pictures: list[Lowered] = []
    try:
        with without_collection():
            found = analyse(source, contexts, probe=probe, permissions=permissions)

            def forecast(subgraph: Subgraph) -> list[Diagnostic]:
                lowered = lower(found.patch, found.graph, subgraph, contexts, Pool(found.budget))
                if contexts[lowered.context].sweeps_plane:
                    pictures.append(lowered)
                return list(_forecast(found, lowered, allowance))

            forecasts, warnings = each_subgraph(found, forecast)
            size = int(found.patch.settings["width"]), int(found.patch.settings["height"])
            seconds = _additions(found, pictures, size) * ADDITION / cores()
            is_doubtful = seconds * found.patch.settings["fps"] > _DOUBTFUL
    except WeftError as failure:
        return failure.diagnostics
    if not found.patch.sinks:
        only_spindles = all(isinstance(statement, SpindleDefinition) for statement in found.program.statements)
        # A text that is included needs no output, so this is a warning. One with only spindles is always included.
        if found.program.statements and only_spindles:
            return warnings
        return (*warnings, *as_warnings([nothing_to_show(contexts, source)]))
    late: Sequence[Diagnostic] = ()
    if is_doubtful and measure is not None:
        with suppress(Exception):  # a patch that cannot be measured is told when it plays
            program = build(source, contexts, probe=probe, permissions=permissions)
            late = measure(program, source, lambda size: _additions(found, pictures, size))
    return (*warnings, *chain.from_iterable(forecasts), *late)


def _additions(found: Analysis, pictures: Sequence[Lowered], size: tuple[int, int]) -> float:
    """About how many additions a frame of a size (width, height) costs."""
    return sum(_additions_of_pixel(found, each, size) for each in pictures) * size[0] * size[1]


def _additions_of_pixel(found: Analysis, lowered: Lowered, size: tuple[int, int]) -> float:
    spec, samples = found.contexts[lowered.context], found.patch.settings["samples"]
    element = Element(lowered, Allowance(_MOST_COSTLY), {})
    coords, uniforms = _given(found, spec, _PLACES[0], 0, 0)
    try:
        element.tick(coords, {**uniforms, "width": float(size[0]), "height": float(size[1])})
    except AllowanceSpentError:
        return _MOST_COSTLY * samples**2
    return element.additions(spec) * samples**2


def _forecast(found: Analysis, lowered: Lowered, allowance: Allowance) -> Iterator[Diagnostic]:
    """What would be reported about a subgraph."""
    spec = found.contexts[lowered.context]
    has_long_loops = bool(long_loops(topological(lowered.swept), LOOP_STEPS, NEST_STEPS))
    is_heard_or_seen = spec.sweeps_plane or spec.streams
    doubtful = {o.label for o in lowered.outputs} if is_heard_or_seen else set()
    stopped: dict[Expr, None] = {}
    looked = 0
    with suppress(AllowanceSpentError):
        for place in (*_PLACES, *_GRID):
            if not doubtful and not (has_long_loops and looked < len(_PLACES)):
                break
            element = Element(lowered, allowance, stopped)
            for tick in range(_TICKS):
                values = element.tick(*_given(found, spec, place, looked, tick))
                doubtful -= {label for label, value in values.items() if value is None or not math.isnan(value)}
            looked += 1
    for loop in stopped:
        yield loop_stopped(lowered.name, () if loop.span is None else (loop.span,))
    yield from _growth(found, lowered, allowance)
    if looked >= _FEWEST:
        labels = [output.label for output in lowered.outputs if output.label in doubtful]
        problems = not_numbers(labels, places_of(found.patch), IN_SOUND if spec.streams else IN_PICTURE)
        yield from as_warnings(problems)  # as at the start of a performance: they may become numbers


def _growth(found: Analysis, lowered: Lowered, allowance: Allowance) -> Iterator[Diagnostic]:
    """What would be reported about memory that grows without end, as far as it does so soon."""
    spec, slots = found.contexts[lowered.context], [slot for slot in lowered.slots if slot.outlives]
    element = Element(lowered, Allowance(min(allowance.left, _MOST_GROWING)), {})
    large: set[str] = set()
    with suppress(AllowanceSpentError):
        for tick in count() if slots else ():
            coords, uniforms = _given(found, spec, _PLACES[0], 0, tick)
            element.tick(coords, uniforms)
            sizes = {slot.key: element.largest(slot) for slot in slots}
            lost = [key for key in sizes if key in large and not math.isfinite(sizes[key])]
            if lost:
                yield memory_lost(lost, coords["abstime"], place_in(found.patch, lost[0]))
                return
            large.update(key for key, size in sizes.items() if _LARGE < size < math.inf)
            if tick > _MOST_QUIET and not large:
                return


def _given(
    found: Analysis, spec: ContextSpec, place: tuple[float, float], number: int, tick: int
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """The coordinates of the element with this number, and the uniforms, in a tick. In a sound, an element is a
    moment."""
    settings = found.patch.settings
    rate = settings["rate"] if spec.streams else spec.rate or settings["fps"]
    time = (_APART * number if spec.streams else 0.0) + tick / rate
    coords = {"x": place[0], "y": place[1], "abstime": time, "since": 0.0, "channel": 0.0}
    counters = {"width": settings["width"], "height": settings["height"], "absframe": float(tick), "dt": 1 / rate}
    counters |= {BPM: settings["bpm"], **Beats.steady(settings["bpm"]).inputs}
    return coords, {**InputState(), **found.patch.parameter_values(), **counters}


# --- the evaluation of expressions at one element ---

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
    """One element of a subgraph, with its own memory, tick by tick. `stopped` collects the loops that reach a limit.

    Values that are not known here, such as a picture or a strand of another subgraph, are None, and so is everything
    that depends on them."""

    lowered: Lowered
    allowance: Allowance
    stopped: dict[Expr, None]
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
    """Whether a loop of this nest was stopped. Those around it stop too and are not recorded."""

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

    def largest(self, slot: StateSlot) -> float:
        """The largest size of the latest values of a slot, as far as they are known; infinite for NaN."""
        latest = [past[0] for plane in range(slot.planes) if (past := self._past.get(SlotPlane(slot.key, plane)))]
        return max((math.inf if math.isnan(each) else abs(each) for each in latest if each is not None), default=0.0)

    def additions(self, spec: ContextSpec) -> float:
        """About how many additions the values cost that differ between elements, with the steps of the last tick."""
        rates = RateAnalysis(spec, self.lowered.slots).of(self.lowered.nodes)
        return sum(self._cost(node) for node in self._nodes if rates[node] == Rate.ELEMENT)

    def _cost(self, node: Expr) -> float:
        if isinstance(node.attr, LoopShape):
            first, last = (self._values.get(arg) for arg in node.args[:2])
            steps = SOME_STEPS if first is None or last is None else ieee.steps(first, last)
            return min(steps, LOOP_STEPS) * sum(map(self._cost, self._body(node, node.attr)[1]))
        return cost_of("sample" if node.op == "state" and len(node.args) > 1 else node.op)

    def _run(self, nodes: Sequence[Expr]) -> None:
        self.allowance.spend(len(nodes))
        values = self._values
        for node in nodes:
            row = OPS.get(node.op)
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
