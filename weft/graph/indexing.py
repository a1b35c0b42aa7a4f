"""Indexing: `bundle[i]`, where `i` is a constant or varies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from weft.errors import error
from weft.graph.evaluation import Evaluation
from weft.graph.fields import Coordinates
from weft.graph.patch import Spread
from weft.graph.scope import Group, Scope
from weft.syntax.ast import Index
from weft.trampoline import Task

V = TypeVar("V")

# What the choice of an element takes of the budget, besides its evaluation.
_STEPS_OF_A_CHOICE = 6


def indexed(e: Evaluation[V], node: Index, scope: Scope, at: Coordinates[V]) -> Task[V]:
    """The element at an index: the only one asked for, or a choice among all."""
    index: V = yield e.value(node.index, scope, at)
    if e.resolver.is_open(node.base, scope):
        return e.domain.unknown()
    group, spreads = e.resolver.index_range(node.base, scope)
    constant = e.domain.constant(index)
    if constant is not None:
        place = _constant_place(node, constant, len(group))
        value: V = yield _element(e, node, group, spreads, place, scope, at)
        return value
    chosen: V = yield _element(e, node, group, spreads, 0, scope, at)
    for place in range(1, len(group)):
        e.budget.spend(_STEPS_OF_A_CHOICE)
        element: V = yield _element(e, node, group, spreads, place, scope, at)
        reached = e.domain.op("ge", index, e.domain.const(float(place)), span=node.span)
        chosen = e.domain.op("select", reached, element, chosen, span=node.span)
    return chosen


def _constant_place(node: Index, index: float, count: int) -> int:
    if math.isnan(index):
        return 0
    if not 0 <= index < count:
        raise error("index-out-of-range", f"there is no [{index:g}] in {count} "
                    f"element{'s' * (count != 1)}", node.index.span, f"0 to {count - 1} exist")  # fmt: skip
    return int(index)


def _element(
    e: Evaluation[V], node: Index, group: Group, spreads: Sequence[Spread] | None, place: int, scope: Scope,
    at: Coordinates[V],
) -> Task[V]:  # fmt: skip
    if spreads is None:
        return e.member(group.members[place], at, node.span)
    # What remembers does so for each place on its own.
    return e.value(node.base, replace(scope, path=f"{scope.path}[{place}]", spread=spreads[place]), at)
