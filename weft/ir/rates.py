"""Analyses of expressions: how often each one changes, and the values that it can have."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, TypeVar, cast

from weft.beats import INPUTS
from weft.contexts import ContextSpec
from weft.graph.components import reachable
from weft.graph.domain import LIVE
from weft.ir.expr import (
    Expr, LoopShape, Lowered, Pool, SlotPlane, StateSlot, Update, found_below, known_of, topological
)
from weft.ir.tunable import Known, TunedValues, ask, equals, value_of
from weft.ops import OPS
from weft.ops.intervals import ANYWHERE, UNIT, Interval, number
from weft.sources import MediaHeader

T = TypeVar("T")

# --- how often each expression changes, and so how often it has to be computed ---

class Rate(IntEnum):
    """The sections of a kernel, from the rarest to the most frequent. `column` is once a column of the picture (it
    varies with x), `row` once a row."""

    CONSTANT = 0
    FRAME = 1
    COLUMN = 2
    ROW = 3
    ELEMENT = 4

    @property
    def title(self) -> str:
        return self.name.lower()


# What a value varies over, as bits. One that varies over columns and rows varies over every element.
_FRAME, _COLUMN, _ROW, _ELEMENT = 1, 2, 4, 8
_SWEEPS = {"once": 0, "frame": _FRAME, "column": _COLUMN, "row": _ROW, "element": _ELEMENT}
_PLANE = _COLUMN | _ROW


def _rate_of(varies: int) -> Rate:
    """The rate at which a value that varies over `varies` has to be computed."""
    if varies & _ELEMENT or varies & _PLANE == _PLANE:
        return Rate.ELEMENT
    if varies & _PLANE:
        return Rate.ROW if varies & _ROW else Rate.COLUMN
    return Rate.FRAME if varies else Rate.CONSTANT


_RATES = tuple(map(_rate_of, range(16)))

# These change with each frame, whatever their operands are.
_FRAME_OPS = frozenset({"uniform", "picture", "fetch", "strand"})


@dataclass(eq=False)
class PlanarSlots:
    """Finds the slots that keep a value that varies over the picture, directly or through one another. What a value
    depends on is found once for each expression, as bits: 1 is the place, and each slot has a bit of its own."""

    spec: ContextSpec
    _bits: dict[str, int] = field(default_factory=dict)
    _sources: dict[Expr, int] = field(default_factory=dict)

    def among(self, updates: Iterable[Update]) -> set[str]:
        """The keys of those among the slots that are updated."""
        values: dict[str, int] = {}
        for update in updates:
            sources = found_below(update.value, self._sources, self._sources_of)
            values[update.slot] = values.get(update.slot, 0) | sources
        found: set[str] = set()
        varying = 1
        while new := {slot for slot, sources in values.items() if sources & varying} - found:
            found |= new
            for slot in new:
                varying |= self._bit(slot)
        return found

    def _sources_of(self, node: Expr) -> int:
        found = 0
        for arg in node.args:
            found |= self._sources[arg]
        match node.attr:
            case str(name) if node.op == "coord":
                return found | bool(_SWEEPS[self.spec.sweep_of(name)] & (_PLANE | _ELEMENT))
            # A read at another place varies with that place, whatever the slot keeps.
            case SlotPlane(slot, _) if len(node.args) == 1:
                return found | self._bit(slot)
            case _:
                return found

    def _bit(self, slot: str) -> int:
        return self._bits.setdefault(slot, 2 << len(self._bits))


def slots_over(sources: Iterable[Expr], updates: Iterable[Update]) -> set[str]:
    """The slots whose values depend on `sources`, directly or through reads of slots."""
    listed = list(updates)
    nodes = topological(update.value for update in listed)
    leads_to: dict[Expr | str, list[Expr | str]] = {}
    for node in nodes:
        for arg in node.args:
            leads_to.setdefault(arg, []).append(node)
        if isinstance(node.attr, SlotPlane):
            leads_to.setdefault(node.attr.slot, []).append(node)
    for update in listed:
        leads_to.setdefault(update.value, []).append(update.slot)
    return {found for found in reachable(sources, leads_to) if isinstance(found, str)}


class RateAnalysis:
    """The rates of expressions in a context, each found once; or over a list of `points`, each with its own
    coordinates. Variables of loops do not count, since a body is computed where its loop is."""

    def __init__(self, spec: ContextSpec, slots: Iterable[StateSlot], points: bool = False) -> None:
        self._spec = spec
        self._number_state = _FRAME if points else _SWEEPS[spec.ticks]
        self._images = {slot.key for slot in slots if slot.image}
        self._points = points
        self._varies: dict[Expr, int] = {}
        self._rates: dict[Expr, Rate] = {}

    def of(self, nodes: Iterable[Expr]) -> Mapping[Expr, Rate]:
        """The rates of some expressions, which come operands first, and of those found before."""
        varies, found = self._varies, self._rates
        for node in nodes:
            if node in varies:
                continue
            own = 0
            for arg in node.args:
                own |= varies[arg]
            if node.attr is not None:
                own |= self._own(node)
            varies[node] = own
            found[node] = _RATES[own]
        return found

    def below(self, roots: Iterable[Expr]) -> Mapping[Expr, Rate]:
        """The rates of the expressions below some roots, and of those found before."""
        return self.of(topological(roots, self._varies))

    def _own(self, node: Expr) -> int:
        """What an expression varies over, apart from its operands."""
        match node.attr:
            case str(name) if node.op == "coord":
                return _ELEMENT if self._points else _SWEEPS[self._spec.sweep_of(name)]
            case SlotPlane(slot, _):
                return self._number_state | (_PLANE if slot in self._images and len(node.args) == 1 else 0)
            case _:
                return _FRAME if node.op in _FRAME_OPS else 0


def rates(
    roots: Iterable[Expr], spec: ContextSpec, slots: Mapping[str, StateSlot], points: bool = False
) -> Mapping[Expr, Rate]:
    """The rate of each expression below the roots, operands first."""
    return RateAnalysis(spec, slots.values(), points).below(roots)


def is_steady(node: Expr, rate: Mapping[Expr, Rate]) -> bool:
    """Whether an expression is the same in a whole frame."""
    return not node.free and rate[node] <= Rate.FRAME


# The operations through which a sum can be split.
LINEAR = frozenset({"add", "sub", "neg", "mul", "div", "floor"})


def sums_at_elements(nodes: Iterable[Expr], rate: Mapping[Expr, Rate]) -> Iterator[Expr]:
    """Those among some expressions for which the number of users decides whether they are split."""
    return (node for node in nodes if node.op in LINEAR and (node.free or rate[node] == Rate.ELEMENT))


# The results of a pass are kept for this many variants of what they depend on, so that undoing an edit is as quick as
# making one.
_VARIANTS = 3


@dataclass(frozen=True, slots=True)
class PassContext:
    """What a pass may use apart from the IR: the pool of its expressions, the context in which they run, and what is
    known of files."""

    pool: Pool
    spec: ContextSpec
    media: Mapping[str, MediaHeader | None] = field(default_factory=dict)
    """The headers of the files that are sampled."""
    samples: int = 1
    """The number of samples of a pixel, in each direction."""
    _analyses: dict[tuple[object, ...], RateAnalysis] = field(default_factory=dict)
    _rewritten: dict[tuple[object, ...], object] | None = None
    """The results of passes in earlier compiles, by the pass and what they depend on."""

    def known(self, nothing: Callable[[], T], name: str, *of: object) -> T:
        """The results of a pass in earlier compiles; `nothing` the first time."""
        kept, key = self._rewritten, (name, *of)
        if kept is None:
            return nothing()
        found = cast("T", kept.pop(key)) if key in kept else nothing()
        kept[key] = found  # as the last one
        for old in [each for each in kept if each[0] == name][:-_VARIANTS]:
            del kept[old]
        return found

    def rates(self, lowered: Lowered, points: bool = False) -> Mapping[Expr, Rate]:
        """The rates of the expressions of the IR, and perhaps of others. Rates of expressions that several passes have
        in common are found once."""
        return self._analysis(lowered, points).below(lowered.roots)

    def rates_with(self, came: Iterable[Expr], lowered: Lowered) -> Mapping[Expr, Rate]:
        """The rates of the expressions of the IR. Since the last time, only `came` were added, operands first."""
        return self._analysis(lowered, False).of(came)

    def rate_of(self, value: Expr, lowered: Lowered) -> Rate:
        """The rate of another expression, which may become a part of the IR."""
        return self._analysis(lowered, False).below([value])[value]

    def _analysis(self, lowered: Lowered, points: bool) -> RateAnalysis:
        key = (lowered.slots, points)
        if key not in self._analyses:
            self._analyses[key] = RateAnalysis(self.spec, lowered.slots, points)
        return self._analyses[key]


# --- what is known about the values of expressions: whether they are finite, and how large they get ---

# Remainders of other periods are ignored.
_PERIODS = (2.0**-20, 2.0**20)

# The depth to which expressions are searched for bounds of their values.
_DEPTH = 6

_TEMPOS = INPUTS[2:]


class Remainder(NamedTuple):
    """The parts of `argument − period · ⌊argument / period⌋`. `whole` is the floor."""

    whole: Expr
    argument: Expr
    period: float


def remainder_of(node: Expr) -> Remainder | None:
    """The parts of a difference, if it is a remainder of a constant period."""
    argument, taken = node.args
    if taken.op == "floor" and taken.args[0] is argument:
        return Remainder(taken, argument, 1.0)
    if taken.op == "mul":
        for whole, period in (taken.args, taken.args[::-1]):
            if whole.op == "floor" and period.op == "const" and _is_quotient(whole.args[0], argument, known_of(period)):
                return Remainder(whole, argument, value_of(known_of(period)))
    return None


def period_of(node: Expr) -> float | None:
    """The constant period of a `mod`, if it has one within `_PERIODS`."""
    period = node.args[1]
    return value_of(known_of(period)) if period.op == "const" and _is_period(known_of(period)) else None


def remainders_among(nodes: Iterable[Expr]) -> dict[Expr, Remainder]:
    """The differences among some expressions that are remainders, and the operations `mod` whose floor is also among
    them."""
    found: dict[Expr, Remainder] = {}
    floors = defaultdict[Expr, list[Expr]](list)
    operations: list[Expr] = []
    for node in nodes:
        if node.op == "sub" and (difference := remainder_of(node)) is not None:
            found[node] = difference
        elif node.op == "mod":
            operations.append(node)
        elif node.op == "floor":
            quotient = node.args[0]
            for argument in {quotient, *(quotient.args if quotient.op in _QUOTIENTS else ())}:
                floors[argument].append(node)
    for node in operations:
        argument, period = node.args
        if argument in floors and period.op == "const":
            known = known_of(period)
            wholes = [each for each in floors[argument] if _is_quotient(each.args[0], argument, known)]
            if wholes and _is_period(known):
                whole = max(wholes, key=lambda each: _QUOTIENTS.get(each.args[0].op, 0))
                found[node] = Remainder(whole, argument, value_of(known))
    return found


# How a quotient may be written; of several, that with the larger number is taken.
_QUOTIENTS: Mapping[str, int] = {"div": 1, "mul": 2}


def _is_quotient(node: Expr, argument: Expr, period: Known) -> bool:
    if node is argument:
        return equals(period, 1.0)
    if node.op not in _QUOTIENTS or argument not in node.args:
        return False
    by = node.args[1] if argument is node.args[0] else node.args[0]
    if by.op != "const" or not _is_period(period):
        return False
    if node.op == "div":
        return node.args[0] is argument and equals(known_of(by), period)
    return ask(_are_reciprocal, known_of(by), period)


def _are_reciprocal(values: TunedValues, one: Known, other: Known) -> bool:
    divisor = values.of(other)
    return divisor != 0 and values.of(one) == 1 / divisor


def _is_period(known: Known) -> bool:
    return ask(_is_in_periods, known)


def _is_in_periods(values: TunedValues, known: Known) -> bool:
    return _PERIODS[0] <= abs(values.of(known)) <= _PERIODS[1]


def is_within(node: Expr, limit: float) -> bool:
    """Whether the size of a value is certainly at most a limit, unless it is NaN."""
    return ask(_is_within, node, limit)


def _is_within(values: TunedValues, node: Expr, limit: float) -> bool:
    return bound(node, values) <= limit


def bound(node: Expr, values: TunedValues) -> float:
    """A bound of the size of a value unless it is NaN, judged by the topmost operations."""
    return _interval(node, _DEPTH, values).size


def _interval(node: Expr, depth: int, values: TunedValues) -> Interval:
    if node.op == "const":
        return number(values.of(node.attr))
    if node.op == "sub" and (found := remainder_of(node)) is not None and found.period == 1:
        return UNIT  # with another period it is rounded, and may be slightly outside
    row = OPS.get(node.op)
    if row is None:
        return ANYWHERE
    return row.interval_of(*(_interval(arg, depth - 1, values) if depth else ANYWHERE for arg in node.args))


def long_loops(nodes: Sequence[Expr], steps: int, nest: int) -> list[Expr]:
    """The loops among some expressions, which come operands first, that may make more than `steps` steps, or more than
    `nest` together with the loops in them."""
    found: list[Expr] = []
    if all(node.op != "loop" for node in nodes):
        return found
    inside: dict[Expr, float] = {}
    for node in nodes:
        inside[node] = max((inside[arg] for arg in node.args), default=0.0)
        if isinstance(node.attr, LoopShape):
            own = _most_steps(*node.args[:2])
            inner = max((inside[arg] for arg in node.args[2 + node.attr.carried :]), default=0.0)
            together = own * (1 + inner) if own else 0.0
            inside[node] = max(inside[node], together)
            if own > steps or together > nest:
                found.append(node)
    return found


def _most_steps(first: Expr, last: Expr) -> float:
    values = TunedValues()
    reach = _interval(last, _DEPTH, values).high - _interval(first, _DEPTH, values).low
    return math.inf if math.isnan(reach) else max(0.0, math.floor(reach) + 1 if math.isfinite(reach) else reach)


@dataclass(slots=True)
class Finiteness:
    """Finds the expressions that are certainly finite, apart from overflow. With `anywhere`, coordinates may be any
    number."""

    anywhere: bool
    _known: dict[Expr, bool] = field(default_factory=dict)

    def of(self, value: Expr) -> bool:
        """Whether an expression is certainly finite."""
        return found_below(value, self._known, self._is_finite)

    def _is_finite(self, node: Expr) -> bool:
        if node.op in ("const", "u32"):
            return node.op == "u32" or ask(_is_finite_number, known_of(node))
        if node.op in ("coord", "uniform"):
            return node.op == "uniform" or not self.anywhere
        row = OPS.get(node.op)
        if row is None:
            return False
        if row.gives != "float" or row.takes in ("bool", "u32"):
            return True
        if not all(self._known[arg] for arg in node.args):
            return False
        if node.op in ("div", "mod"):
            return _is_never_zero(node.args[1])
        return row.keeps_finite or (node.op == "sqrt" and _is_square(node.args[0]))


def _is_finite_number(values: TunedValues, known: Known) -> bool:
    return math.isfinite(values.of(known))


def _is_never_zero(by: Expr) -> bool:
    """Whether a value is certainly not 0: a constant, a size of the picture, a tempo, or the length of a beat."""
    if by.op == "div":
        return by.args[0].op == "const" and _is_never_zero(by.args[0]) and _is_never_zero(by.args[1])
    return not equals(known_of(by), 0.0) if by.op == "const" else by.op == "uniform" and by.attr in (*LIVE, *_TEMPOS)


def _is_square(node: Expr) -> bool:
    """Whether it is a sum of squares."""
    todo = [node]
    while todo:
        term = todo.pop()
        if term.op == "add":
            todo += term.args
        elif term.op != "mul" or term.args[0] is not term.args[1]:
            return False
    return True
