"""What a long performance does to a picture, found in advance: phases that move in jerks.

Pictures have single precision. The passes keep sums and products of the time exact, even after a long time
(docs/algorithms.md, "Phases"). Expressions that they cannot change, such as `sin(abs(me@x - me@time))`, lose digits as
they grow. Here these expressions are evaluated in a few frames long after the start, once in single and once in double
precision. If the two do not move alike from frame to frame, the picture moves in jerks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from math import fmod, isfinite, nan, tau
from typing import Final, NamedTuple, TypeAlias

from weft.errors import Span
from weft.ir.expr import Expr, LoopShape, Lowered, Output, SlotPlane, topological
from weft.ir.passes import PASSES, run_passes
from weft.ir.products import time_slots
from weft.ir.rates import PassContext, Rate, remainder_of
from weft.runtime.inspect.elements import Allowance, Element, Value

# The durations of a performance that are tried, in words and in seconds. The longest comes first.
_LENGTHS: Final[Mapping[str, float]] = {"a month": 2_592_000, "a week": 604_800, "a day": 86_400, "an hour": 3600}
_START = 1.0

# If the error of a phase, in turns, differs by more than this between moments, it visibly moves in jerks. In the first
# seconds, the error must be smaller: a phase that is coarse from the beginning, such as a hash made of a sine, is not
# coarse because of the time.
_SEEN, _LESS = 1 / 256, 1 / 4

# A cell of a hash has to be off by half its size, because the exact moment of its change is not visible.
_CELLS = 0.5 / _SEEN

# It has to be seen at this many of these places.
_PLACES, _ENOUGH = [(0.37, 0.61), (0.83, 0.29), (0.12, 0.77), (0.56, 0.44), (0.93, 0.91)], 2

# The frames that are looked at.
_FRAMES = (0, 1, 3, 7, 12, 80)

# Smaller values have enough digits, unless they lack them from the beginning.
_SHORT = 256.0

_REDUCING = tuple(takewhile(lambda step: step.name != "waves", PASSES))

Given: TypeAlias = "Callable[[tuple[float, float], int], tuple[Mapping[str, float], Mapping[str, float]]]"
"""The coordinates of the element at a place, and the uniforms, in the frame with a number."""


class Jerk(NamedTuple):
    """Something that moves in jerks, by its place in the text, and the longest time after which it does. The place is
    None in a library."""

    place: Span | None
    after: str


class _Periodic(NamedTuple):
    """A periodic expression: its argument, and its period."""

    node: Expr
    argument: Expr
    period: Expr | float


def jerks(written: Lowered, context: PassContext, given: Given, fps: float, allowance: Allowance) -> list[Jerk]:
    """Everything that moves in jerks in a picture after an hour, a day, a week or a month. `written` are its
    expressions as they were lowered. Nothing is looked at if they are too many for the allowance. Raises
    AllowanceSpentError."""
    if len(written.swept_nodes) * 2 * len(_PLACES) * len(_FRAMES) > allowance.left:
        return []
    lowered = run_passes(written, context, passes=_REDUCING)
    look = _JerkSearch(lowered, context.rates(lowered), given, fps, allowance)
    if not look.phases or not look.has_long():
        return []
    found: dict[Expr, str] = {}
    early: Mapping[Expr, float] | None = None
    for length, seconds in _LENGTHS.items():
        late = {node: off for node, off in look.off(seconds).items() if off > _SEEN and (not found or node in found)}
        if not late:
            break
        early = early or look.off(_START)
        found |= {node: length for node, off in late.items() if early[node] <= off * _LESS}
    return [Jerk(place, after) for place, after in {_place(node): found[node] for node in _innermost(found)}.items()]


def _place(node: Expr) -> Span | None:
    """The place of an expression in the text. For one in a library, it is the place of the nearest expression outside
    that it is made of."""
    level, seen = [node], set[Expr]()
    while level:
        for each in level:
            if each.span is not None and not each.span.source.library:
                return each.span
        seen.update(level)
        level = [arg for arg in dict.fromkeys(arg for each in level for arg in each.args) if arg not in seen]
    return None


def _innermost(found: Mapping[Expr, str]) -> list[Expr]:
    """Those of some expressions that are not made of others of them."""
    return [node for node in found if sum(each in found for each in topological([node])) == 1]


@dataclass(frozen=True)
class _JerkSearch:
    """A picture, looked at long after its start."""

    lowered: Lowered
    rate: Mapping[Expr, Rate]
    given: Given
    fps: float
    allowance: Allowance
    _known_gains: dict[tuple[float, float], Mapping[SlotPlane, float | None]] = field(default_factory=dict)

    @cached_property
    def _narrow(self) -> frozenset[Expr]:
        """The expressions that have single precision."""
        varying = [node for node in self.lowered.swept_nodes if not node.free and self.rate[node] > Rate.FRAME]
        bodies = [arg for node in varying if isinstance(node.attr, LoopShape) for arg in node.args]
        return frozenset([*varying, *[node for node in topological(bodies) if node.free]])

    @cached_property
    def phases(self) -> list[_Periodic]:
        """What is periodic and varies over the picture."""
        found = (_phase_of(node) for node in self.lowered.swept_nodes if node in self._narrow)
        return [phase for phase in found if phase is not None and phase.argument in self._narrow]

    @cached_property
    def _looked_at(self) -> Lowered:
        """The arguments and periods of the phases as outputs, or the loops that these belong to, and the slots that
        grow."""
        asked = [each for phase in self.phases for each in phase[1:] if isinstance(each, Expr)]
        values = [each for each in asked if not each.free]
        if len(values) < len(asked):
            values += [node for node in self._narrow if node.op == "loop" and not node.free]
        adding = time_slots(self.lowered, images=True).adding
        return replace(
            self.lowered, outputs=tuple(Output("", value) for value in values), exposed=(), feeds=(), films=(),
            updates=tuple(update for update in self.lowered.updates if update.slot in adding),
        )  # fmt: skip

    def has_long(self) -> bool:
        """Whether any value in single precision is large at the end and was not at the start."""
        narrow = [node for node in topological(self._looked_at.swept) if node in self._narrow]
        handed = list(dict.fromkeys(each for node in narrow for each in (node, *node.args)))
        frames = [round(seconds * self.fps) for seconds in (_START, max(_LENGTHS.values()))]
        start, end = (self._element(frame, _PLACES[0], frozenset()) for frame in frames)
        return any(_size(start.value_of(node)) < _SHORT < _size(end.value_of(node)) for node in handed)

    def off(self, seconds: float) -> Mapping[Expr, float]:
        """The difference, in turns, between the errors of the phases at two moments, at enough places."""
        spreads: dict[Expr, list[float]] = {phase.node: [] for phase in self.phases}
        first = round(seconds * self.fps)
        for place in _PLACES:
            errors = [self._errors(first + frame, place) for frame in _FRAMES]
            for node, found in spreads.items():
                around = [error[node] - errors[0][node] for error in errors]
                turns = [each - round(each) for each in around if isfinite(each)]
                found.append(max(turns) - min(turns) if turns else 0.0)
        return {node: sorted(found)[-_ENOUGH] for node, found in spreads.items()}

    def _errors(self, frame: int, place: tuple[float, float]) -> Mapping[Expr, float]:
        """The error of each phase in a frame, in turns without whole ones; NaN if it is not known."""
        single, double = (self._element(frame, place, narrow) for narrow in (self._narrow, frozenset[Expr]()))
        return {phase.node: _turns(phase, single) - _turns(phase, double) for phase in self.phases}

    def _element(self, frame: int, place: tuple[float, float], narrow: frozenset[Expr]) -> Element:
        """The element at a place in a frame. The expressions of `narrow` have single precision."""
        element = Element(self._looked_at, self.allowance, narrow=narrow)
        for slot in self.lowered.slots:
            for plane in range(slot.planes):
                gain = self._gains(place).get(SlotPlane(slot.key, plane))
                element.remember(SlotPlane(slot.key, plane), None if gain is None else gain * frame)
        element.tick(*self.given(place, frame))
        return element

    def _gains(self, place: tuple[float, float]) -> Mapping[SlotPlane, float | None]:
        """The growth, from one frame to the next, of the slots that grow, at the start; None if it is not known."""
        if place not in self._known_gains:
            updates = {SlotPlane(each.slot, each.plane): each.value for each in self._looked_at.updates}
            element, ticks = Element(replace(self._looked_at, outputs=()), self.allowance), list[list[Value]]()
            for frame in range(3 if updates else 0):
                element.tick(*self.given(place, frame))
                ticks.append([element.value_of(value) for value in updates.values()])
            before, now = ticks[-2:] or ([], [])
            gains = [None if b is None or a is None else b - a for a, b in zip(before, now, strict=True)]
            self._known_gains[place] = dict(zip(updates, gains, strict=True))
        return self._known_gains[place]


def _phase_of(node: Expr) -> _Periodic | None:
    """The argument and the period of a periodic expression."""
    match node.op:
        case "sin" | "cos":
            return _Periodic(node, node.args[0], tau)
        case "mod":
            return _Periodic(node, *node.args)
        case "sub" if (found := remainder_of(node)) is not None:
            return _Periodic(node, found.argument, found.period)
        case "bits_of" if node.args[0].op == "floor":
            return _Periodic(node, node.args[0].args[0], _CELLS)
        case _:
            return None


def _turns(phase: _Periodic, element: Element) -> float:
    """What is left of the periods of an argument without whole ones; NaN if that is not known."""
    argument = element.value_of(phase.argument)
    period = element.value_of(phase.period) if isinstance(phase.period, Expr) else phase.period
    if argument is None or not isfinite(argument) or not period or not isfinite(period):
        return nan
    return fmod(argument, period) / period


def _size(value: Value) -> float:
    return abs(value) if isinstance(value, float) else 0.0
