"""Cheaper sines and cosines at every column, row or element (docs/algorithms.md, "Waves").

Their arguments are counted in half turns, which need no reduction by a rounded π. The factor 1/π joins the existing
factors, or is applied to terms of the argument that are computed less often. Waves that differ only by steady phases,
like the channels of a colour, are computed from one sine and one cosine.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from weft.ir.census import AGAIN, Census, TrackedRewrites
from weft.ir.expr import Expr, ExprBuilder, Lowered, Replacements, known_of, rewrite
from weft.ir.rates import PassContext, Rate, is_steady, sums_at_elements
from weft.ir.tunable import Known, TunedValues, ask, equals

_HALF_TURNS: Mapping[str, str] = {"sin": "sinpi", "cos": "cospi"}

# From this number of waves, it pays to compute one sine and one cosine, which share their reduction, and two products
# for each wave.
_FAMILY = 3

# The depth to which sums are split.
_DEPTH = 8

# Two roundings of a factor 1 differ from 1 by less than this.
_ROUNDING = 1e-15

Signed: TypeAlias = tuple[Expr, int]
"""A term, and 1 or −1."""


class _Phase(NamedTuple):
    """A wave in terms of another one: `base` is the argument of the other, and the terms are the phase."""

    base: Expr
    terms: tuple[Signed, ...]


def turn_waves(lowered: Lowered, context: PassContext) -> Lowered:
    """Counts the arguments of sines and cosines in half turns, and computes those that differ only by a steady phase
    from one sine and one cosine."""
    known = context.known(_KnownWaves, "waves", lowered.slots)
    changes = known.follow(lowered)
    rate = context.rates_with(changes.came, lowered)
    known.add_changed(sums_at_elements(changes.reshared, rate))
    waves = {wave for wave in known.census.found if rate[wave.args[0]] > Rate.FRAME}
    if not waves:
        return lowered
    phases, shared = _families(waves, rate, lowered, known.terms), known.census.shared
    turned = _WavePass(ExprBuilder(context.pool), rate, shared, waves, phases, known.results)
    known.compare(turned.facts())
    return rewrite(lowered, context.pool, _HALF_TURNS, turned.change, True, known)


class _Terms(NamedTuple):
    """The terms of an argument: those that change within a frame, in an order of their own, and the steady ones."""

    moving: tuple[Signed, ...]
    steady: tuple[Signed, ...]


@dataclass(eq=False)
class _KnownWaves(TrackedRewrites):
    """What the pass found out about expressions."""

    census: Census = field(default_factory=lambda: Census(_HALF_TURNS))
    terms: dict[Expr, _Terms] = field(default_factory=dict)


def _families(
    waves: Iterable[Expr], rate: Mapping[Expr, Rate], lowered: Lowered, known: dict[Expr, _Terms]
) -> dict[Expr, _Phase]:
    """The phases of the waves that can be computed from another one. The terms of arguments are found once."""
    kin = defaultdict[tuple[Signed, ...], dict[Expr, tuple[Signed, ...]]](dict)
    for wave in waves:
        argument = wave.args[0]
        if rate[argument] == Rate.ELEMENT:
            if argument not in known:
                known[argument] = _sorted_terms(argument, rate)
            kin[known[argument].moving][argument] = known[argument].steady
    phases: dict[Expr, _Phase] = {}
    for family in kin.values():
        if len(family) >= _FAMILY:
            sizes = {argument: (len(steady), argument.key) for argument, steady in family.items()}
            least = min(sizes.values())
            bases = [argument for argument, size in sizes.items() if size == least]
            base = bases[0] if len(bases) == 1 else min(bases, key=lowered.ordered.index)
            for argument, steady in family.items():
                phases[argument] = _Phase(base, tuple(_difference(steady, family[base])))
    return phases


def _sorted_terms(argument: Expr, rate: Mapping[Expr, Rate]) -> _Terms:
    terms = list(_terms(argument, 1, _DEPTH))
    moving = sorted(((t, s) for t, s in terms if not is_steady(t, rate)), key=lambda term: term[0].key)
    return _Terms(tuple(moving), tuple([(t, s) for t, s in terms if is_steady(t, rate)]))


def _terms(node: Expr, sign: int, depth: int) -> Iterator[Signed]:
    """The terms of a sum."""
    if depth and node.op in ("add", "sub"):
        first, second = node.args
        yield from _terms(first, sign, depth - 1)
        yield from _terms(second, sign if node.op == "add" else -sign, depth - 1)
    elif depth and node.op == "neg":
        yield from _terms(node.args[0], -sign, depth - 1)
    else:
        yield node, sign


def _difference(a: Iterable[Signed], b: Iterable[Signed]) -> list[Signed]:
    """The terms of a − b, without those that both have."""
    left = list(a)
    for term, sign in b:
        if (term, sign) in left:
            left.remove((term, sign))
        else:
            left.append((term, -sign))
    return left


@dataclass(slots=True)
class _WavePass:
    """One run of the pass."""

    builder: ExprBuilder
    rate: Mapping[Expr, Rate]
    shared: set[Expr]
    """The expressions with several users."""
    waves: set[Expr]
    phases: dict[Expr, _Phase]
    """By the arguments of the waves."""
    new: Replacements

    @property
    def _half_turn(self) -> Expr:
        return self.builder.const(1 / math.pi)

    def facts(self) -> Mapping[Expr, object]:
        """The facts that results depend on, apart from the expressions themselves."""
        moved = {argument for argument, phase in self.phases.items() if phase.base is not argument}
        return {wave: AGAIN for wave in self.waves if wave.args[0] in moved}

    def change(self, node: Expr, args: tuple[Expr, ...]) -> Expr:
        """The expression with its waves in half turns; `args` are its operands' replacements."""
        if node not in self.waves:
            return self.builder.pool.rebuilt(node, args)
        self.builder.at(node.span)
        return self._wave(node.op, node.args[0])

    def _wave(self, op: str, argument: Expr) -> Expr:
        phase = self.phases.get(argument)
        if phase is None or phase.base is argument:
            return self._made(_HALF_TURNS[op], self._scaled(argument, self._half_turn, _DEPTH))
        base = self._scaled(phase.base, self._half_turn, _DEPTH)
        sine, cosine = self._made("sinpi", base), self._made("cospi", base)
        moved = self._total(phase.terms)
        # The signs by which cos and sin of the phase enter: sin(a + b), cos(a + b).
        along, across, joined = (sine, cosine, "add") if op == "sin" else (cosine, sine, "sub")
        parts = self._made("mul", along, self._made("cos", moved)), self._made("mul", across, self._made("sin", moved))
        return self._made(joined, *parts)

    def _total(self, terms: tuple[Signed, ...]) -> Expr:
        """The sum of the replacements of terms."""
        total = self.builder.const(0.0)
        for term, sign in terms:
            total = self._made("add" if sign > 0 else "sub", total, self.new[term])
        return total

    def _scaled(self, node: Expr, factor: Expr, depth: int) -> Expr:
        """The replacement of an expression, times a constant. Each term of a sum is multiplied if the sum has no other
        users, or is computed less often than the elements."""
        if node.op == "const":
            return self._made("mul", node, factor)
        rare = self.rate[node] < Rate.ELEMENT and not node.free
        if depth and node.op in ("add", "sub") and (rare or node not in self.shared):
            return self._made(node.op, *(self._scaled(arg, factor, depth - 1) for arg in node.args))
        if node.op == "neg":
            return self._scaled(node.args[0], self._made("neg", factor), depth)
        if node.op == "mul" and node not in self.shared and (steady := self._frame_factor(node)) is not None:
            other = node.args[0] if node.args[1] is steady else node.args[1]
            return self._made("mul", self.new[other], self._made("mul", self.new[steady], factor))
        if node.op in ("mul", "div"):
            known, other = self._known_factor(node)
            if known is not None:
                return self._times(self.new[other], self._made("mul", known, factor))
        return self._times(self._replacement(node, depth), factor)

    def _replacement(self, node: Expr, depth: int) -> Expr:
        """The replacement of a sum. The replacements of its terms are known. That of the sum may not be, since it may
        belong to another wave, which comes later."""
        if depth and node.op in ("add", "sub", "neg"):
            args = tuple([self._replacement(arg, depth - 1) for arg in node.args])
            return self.builder.pool.rebuilt(node, args)
        return self.new[node]

    def _frame_factor(self, node: Expr) -> Expr | None:
        """The factor that changes only with the frame of a product that varies, if there is one."""
        if is_steady(node, self.rate):
            return None
        return next((arg for arg in node.args if arg.op != "const" and is_steady(arg, self.rate)), None)

    def _known_factor(self, node: Expr) -> tuple[Expr | None, Expr]:
        """The constant factor of a product, or of a quotient by a constant, and the other factor; None if there is
        none."""
        first, second = node.args
        if second.op == "const" and not equals(known_of(second), 0.0):
            return second if node.op == "mul" else self._made("div", self.builder.const(1.0), second), first
        if first.op == "const" and node.op == "mul":
            return first, second
        return None, node

    def _times(self, node: Expr, factor: Expr) -> Expr:
        # The factors π and 1/π cancel.
        return node if ask(_is_one, known_of(factor)) else self._made("mul", node, factor)

    def _made(self, op: str, *args: Expr) -> Expr:
        return self.builder.folded(op, *args)


def _is_one(values: TunedValues, known: Known) -> bool:
    return abs(values.of(known) - 1) < _ROUNDING
