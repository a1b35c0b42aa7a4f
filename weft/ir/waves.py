"""Waves: sines and cosines that are taken at every column, row or element, made cheaper. docs/algorithms.md has the
formulas, under "Waves".

Their arguments are counted in half turns, which need no reduction by a rounded π; the factor 1/π joins the factors
that are there, or is applied where the terms of the argument are computed more rarely. And waves that differ by steady
phases alone, as the channels of a colour do, are made of one sine and one cosine.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from weft.ir.builder import Builder, in_order
from weft.ir.expr import Expr, Pool
from weft.ir.rates import Rate

_HALF_TURNS: Mapping[str, str] = {"sin": "sinpi", "cos": "cospi"}

# One sine and one cosine, which share their reduction, and two products for each wave: worth it from so many on.
_FAMILY = 3

# How deep sums are taken apart.
_DEPTH = 8

# What two roundings of a factor can make of 1.
_ROUNDING = 1e-15

Signed: TypeAlias = tuple[Expr, int]
"""A term, and 1 or −1."""


class _Phase(NamedTuple):
    """A wave as another one, moved: `base` is the other one's argument, the terms are the phase between them."""

    base: Expr
    terms: tuple[Signed, ...]


def rewriting(
    nodes: list[Expr], pool: Pool, rate: Mapping[Expr, Rate]
) -> Callable[[Expr, tuple[Expr, ...]], Expr] | None:
    """How to rewrite each expression, given its new operands; None if there is nothing to do. Expressions come in their
    order, operands first; `rate` has that of the arguments of sines and cosines, and of all below."""
    waves = [n for n in nodes if n.op in _HALF_TURNS and rate[n.args[0]] > Rate.FRAME]
    if not waves:
        return None
    users = defaultdict[Expr, int](int)
    for node in nodes:
        for arg in node.args:
            users[arg] += 1
    shared = {node for node, count in users.items() if count > 1}
    return _Waves(Builder(pool), rate, shared, set(waves), _families(waves, rate)).change


def _families(waves: list[Expr], rate: Mapping[Expr, Rate]) -> dict[Expr, _Phase]:
    """The waves that are made of another one."""
    kin = defaultdict[tuple[Signed, ...], dict[Expr, list[Signed]]](dict)
    for wave in waves:
        argument = wave.args[0]
        if rate[argument] == Rate.ELEMENT:
            terms = list(_terms(argument, 1, _DEPTH))
            moving = sorted(((t, s) for t, s in terms if not _is_steady(t, rate)), key=lambda term: term[0].index)
            kin[tuple(moving)][argument] = [(t, s) for t, s in terms if _is_steady(t, rate)]
    phases: dict[Expr, _Phase] = {}
    for family in kin.values():
        if len(family) >= _FAMILY:
            base, *_ = family
            for argument, steady in family.items():
                phases[argument] = _Phase(base, tuple(_difference(steady, family[base])))
    return phases


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


def _difference(a: list[Signed], b: list[Signed]) -> list[Signed]:
    """The terms of a − b, without those that both have."""
    left = list(a)
    for term, sign in b:
        if (term, sign) in left:
            left.remove((term, sign))
        else:
            left.append((term, -sign))
    return left


def _is_steady(node: Expr, rate: Mapping[Expr, Rate]) -> bool:
    return not node.free and rate[node] <= Rate.FRAME


@dataclass(slots=True)
class _Waves:
    """One run of the pass."""

    builder: Builder
    rate: Mapping[Expr, Rate]
    shared: set[Expr]
    """What is used more than once."""
    waves: set[Expr]
    phases: dict[Expr, _Phase]
    """By the arguments of the waves."""
    _new: dict[Expr, Expr] = field(default_factory=dict)

    def change(self, node: Expr, args: tuple[Expr, ...]) -> Expr:
        """The expression with its waves in half turns; `args` are its operands' replacements."""
        pool = self.builder.pool
        if node in self.waves:
            self.builder.at(pool.span(node))
            made = self._wave(node.op, node.args[0])
        elif args == node.args:
            made = node
        else:
            made = pool.make(node.op, in_order(node.op, args), node.attr, pool.span(node))
        self._new[node] = made
        return made

    def _wave(self, op: str, argument: Expr) -> Expr:
        phase = self.phases.get(argument)
        if phase is None or phase.base is argument:
            return self._made(_HALF_TURNS[op], self._scaled(argument, 1 / math.pi, _DEPTH))
        base = self._scaled(phase.base, 1 / math.pi, _DEPTH)
        sine, cosine = self._made("sinpi", base), self._made("cospi", base)
        moved = self._total(phase.terms)
        # The signs by which cos and sin of the phase enter: sin(a + b), cos(a + b).
        along, across, joined = (sine, cosine, "add") if op == "sin" else (cosine, sine, "sub")
        parts = self._made("mul", along, self._made("cos", moved)), self._made("mul", across, self._made("sin", moved))
        return self._made(joined, *parts)

    def _total(self, terms: tuple[Signed, ...]) -> Expr:
        """A sum of terms as they are by now."""
        total = self.builder.const(0.0)
        for term, sign in terms:
            total = self._made("add" if sign > 0 else "sub", total, self._new[term])
        return total

    def _scaled(self, node: Expr, factor: float, depth: int) -> Expr:
        """An expression as it is by now, times a number. In a sum whose terms are needed for nothing else, or are
        computed more rarely, each term is."""
        if node.op == "const" and isinstance(node.attr, float):
            return self.builder.const(node.attr * factor)
        rare = self.rate[node] < Rate.ELEMENT and not node.free
        if depth and node.op in ("add", "sub") and (rare or node not in self.shared):
            return self._made(node.op, *(self._scaled(arg, factor, depth - 1) for arg in node.args))
        if node.op == "neg":
            return self._scaled(node.args[0], -factor, depth)
        if node.op in ("mul", "div"):
            known, other = self._known_factor(node)
            if other is not None:
                return self._times(self._new[other], known * factor)
        return self._times(self._new[node], factor)

    def _known_factor(self, node: Expr) -> tuple[float, Expr | None]:
        """The number that a product has as a factor, or a quotient as its divisor, and what it is multiplied by."""
        first, second = node.args
        if second.op == "const" and isinstance(second.attr, float) and second.attr != 0:
            return second.attr if node.op == "mul" else 1 / second.attr, first
        if first.op == "const" and isinstance(first.attr, float) and node.op == "mul":
            return first.attr, second
        return 1.0, None

    def _times(self, node: Expr, factor: float) -> Expr:
        # π times something, in half turns, is that itself.
        if abs(factor - 1) < _ROUNDING:
            return node
        return self._made("mul", node, self.builder.const(factor))

    def _made(self, op: str, *args: Expr) -> Expr:
        return self.builder.folded(op, *args)
