"""Products of what grows with the time and what varies over the picture, without their whole turns (docs/algorithms.md,
"Phases")."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.contexts import ContextSpec
from weft.ir.expr import Expr, ExprBuilder, Lowered, SlotPlane, found_below, known_of, topological
from weft.ir.rates import Rate, bound, is_within, remainder_of
from weft.ir.tunable import Known, TunedValues, ask
from weft.ops import formula as f
from weft.ops.formula import Term

# Below this, what is made of the time has enough digits left in single precision: a product of it and a number below 1
# is right to 2⁻¹⁷.
_LONG = 256.0

# A varying factor is cut into steps of 1 / `_STEPS`, and each of these again. The product with each kind of step is
# right to 2⁻¹⁷ turns for factors of 1, and so is the product of the rest with a month of seconds.
_STEPS = 2.0**7

# A constant is taken out of a varying factor if the rest is at most this large, or this many times as large.
_LEFT = 16.0

_WHOLE = frozenset({"floor", "to_float"})


# --- what grows ---


class TimeSlots(NamedTuple):
    """The slots that grow with the time: those that add something to themselves at each tick, as `n = prev(n) + 1`
    does, and those that keep the time of the last tick."""

    adding: frozenset[str]
    keeping: frozenset[str]


@dataclass(slots=True)
class Growth:
    """Finds the expressions that are the same in a whole frame and may grow for as long as a performance lasts: the
    time, counters of frames, some slots, and unbounded results of these. Only pictures need this. Where everything has
    double precision, nothing grows too much; and a card leaves such sounds to the processor."""

    spec: ContextSpec
    slots: TimeSlots
    _known: dict[Expr, bool] = field(default_factory=dict)

    def of(self, value: Expr) -> bool:
        """Whether an expression may grow."""
        return found_below(value, self._known, self._grows)

    def _grows(self, node: Expr) -> bool:
        if node.op == "coord":
            return _is_time(node) and self.spec.sweeps_plane
        if not self.spec.sweeps_plane:
            return False
        if node.op == "uniform":
            return node.attr in self.spec.counters
        if isinstance(node.attr, SlotPlane):
            return any(node.attr.slot in slots for slots in self.slots)
        grows = [self._known[arg] for arg in node.args]
        return any(grows) and self._passes(node, grows) and ask(_is_long, node)

    def _passes(self, node: Expr, grows: list[bool]) -> bool:
        """Whether the result of an operation may grow if this operand does."""
        match node.op:
            case "add" | "mul" | "neg" | "floor" | "abs" | "max" | "power" | "sqrt":
                return True
            case "sub":
                return remainder_of(node) is None and not self._is_step(*node.args)
            case "min":
                return all(grows)
            case "div":
                return grows[0]
            case "mod":
                return grows[0] and (grows[1] or node.args[1].op == "const")
            case "select":
                return any(grows[1:])
            case _:
                return False

    def _is_step(self, now: Expr, before: Expr) -> bool:
        """Whether a difference is the time since the last tick."""
        return _is_time(now) and isinstance(before.attr, SlotPlane) and before.attr.slot in self.slots.keeping


def _is_time(node: Expr) -> bool:
    return node.op == "coord" and node.attr == "abstime"


def _is_long(values: TunedValues, node: Expr) -> bool:
    return bound(node, values) > _LONG


def time_slots(lowered: Lowered, images: bool = False) -> TimeSlots:
    """The slots that grow with the time: those that are numbers, and on request `images`."""
    asked = {slot.key for slot in lowered.slots if images or not slot.image}
    keep: defaultdict[Expr, set[str]] = defaultdict(set)
    for update in lowered.updates:
        if update.slot in asked:
            keep[update.value].add(update.slot)
    adding = [slot for value, slots in keep.items() if _adds_up(value, slots) for slot in slots]
    return TimeSlots(frozenset(adding), frozenset(slot for value in keep if _is_time(value) for slot in keep[value]))


def _adds_up(value: Expr, slots: set[str]) -> bool:
    """Whether some slots keep a sum with one of these slots as a term, and all its other terms depend on other
    values."""
    own, others, todo, seen = 0, list[Expr](), [value], set[Expr]()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if _is_slot(node, slots):
            own += 1
        elif node.op in ("add", "sub", "select"):
            terms = {"add": node.args, "sub": node.args[:1], "select": node.args[1:]}[node.op]
            todo += terms
            others += [arg for arg in node.args if arg not in terms]
        else:
            others.append(node)
    return own == 1 and not any(_is_slot(node, slots) for node in topological(others))


def _is_slot(node: Expr, slots: set[str]) -> bool:
    return isinstance(node.attr, SlotPlane) and node.attr.slot in slots


# --- what is left of a product without its whole turns ---
#
# A whole number times t has the same phase as the number times what is left of t without whole turns. So what varies is
# cut into whole numbers and a small rest:
#
#     v = k/2⁷ + j/2¹⁴ + r/2¹⁴     k = ⌊2⁷·v⌋, j = ⌊2⁷·(2⁷·v − k)⌋, so that j and r are below 2⁷ and 1
#     t·v = k·t/2⁷ + j·t/2¹⁴ + r·t/2¹⁴
#
# The steady factors of k and j are computed in double precision, and reduced to one turn. The last term is small. Only
# a floor is subtracted from what it is taken of, so compilers that treat floats as real numbers do no harm.


class Product(NamedTuple):
    """`steady`, which grows, times `varying`, which is computed at a rate. The latter is 1 over a `divisor`, if there
    is one."""

    steady: Expr
    varying: Expr
    rate: Rate
    divisor: Expr | None = None

    def scaled(self, scale: Callable[[Expr], Expr]) -> Product:
        """The product with another steady factor."""
        return self._replace(steady=scale(self.steady))


class Pieces(NamedTuple):
    """A product as a sum: steady factors times whole numbers that vary, and a small rest."""

    wholes: tuple[tuple[Expr, Expr], ...]
    rest: Expr | None


def product_of(builder: ExprBuilder, steady: Expr, varying: Expr, rate: Rate) -> tuple[Product, Expr | None]:
    """The product of two expressions, and a steady term if there is one. Constants go with the steady factor, where
    they are more exact."""
    total: Expr | None = None
    while (found := _constant_in(varying)) is not None:
        constant, other, is_first = found
        if varying.op in ("add", "sub"):
            term = builder.folded("mul", steady, constant)
            if varying.op == "sub" and not is_first:
                term = builder.folded("neg", term)
            total = term if total is None else builder.folded("add", total, term)
            if varying.op == "sub" and is_first:
                steady = builder.folded("neg", steady)
        elif other.op in _WHOLE or is_within(other, _LEFT) or ask(_is_moderate, varying.op, known_of(constant)):
            steady = builder.folded(varying.op, steady, constant)
        else:
            break
        varying = other
    return Product(steady, varying, rate), total


def _is_moderate(values: TunedValues, op: str, constant: Known) -> bool:
    """Whether the rest is at most `_LEFT` times as large after this factor or divisor is taken out."""
    size = abs(values.of(constant))
    return size <= _LEFT if op == "div" else size * _LEFT >= 1


def _constant_in(node: Expr) -> tuple[Expr, Expr, bool] | None:
    """The constant operand of a sum, a difference, a product or a quotient, the other one, and whether the constant is
    the first; None if there is none. That of a quotient is the divisor."""
    if node.op in ("add", "sub", "mul", "div"):
        first, second = node.args
        if second.op == "const":
            return second, first, False
        if first.op == "const" and node.op != "div":
            return first, second, True
    return None


def quotient_of(builder: ExprBuilder, steady: Expr, divisor: Expr, rate: Rate) -> Product:
    """The quotient of two expressions, as a product."""
    return Product(steady, builder.folded("div", builder.const(1.0), divisor), rate, divisor)


def halves_of(builder: ExprBuilder, steady: Expr) -> tuple[Expr, Expr]:
    """A steady expression as a multiple of 256 and a small rest. The multiple is exact in single precision up to 2³²,
    and so is its remainder by any number."""
    value = Term(builder, steady)
    high = f.floor(value * (1 / _LONG)) * _LONG
    return high.value, (value - high).value


def pieces_of(builder: ExprBuilder, product: Product) -> Pieces:
    """A product in pieces."""
    if product.varying.op in _WHOLE:
        return Pieces(((product.steady, product.varying),), None)
    steady, varying = Term(builder, product.steady), Term(builder, product.varying)
    scaled = varying * _STEPS
    steps = f.floor(scaled)
    finer = (scaled - steps) * _STEPS
    small = f.floor(finer)
    left = finer - small
    if product.divisor is not None:
        # As exact as the product with the divisor, which is exact for a small whole number.
        left = (_STEPS**2 - (steps * _STEPS + small) * Term(builder, product.divisor)) * varying
    large, fine = steady * (1 / _STEPS), steady * (1 / _STEPS**2)
    return Pieces(((large.value, steps.value), (fine.value, small.value)), (left * fine).value)
