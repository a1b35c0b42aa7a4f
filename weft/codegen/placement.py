"""Decides where each expression is computed: in which section, and inside or before which loop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TypeAlias

from weft.ir.expr import Expr, LoopShape, LoopValue
from weft.ir.rates import Rate

# What is given, and so there wherever it is used.
LEAVES = frozenset({"const", "bits", "coord", "uniform", "loop_index", "loop_value"})


@dataclass(eq=False, slots=True)
class Region:
    """A stretch of code that runs as a whole: a section, or the body of a loop within `parent`. `needs` are values of
    the parent that the body uses, and that have to be ready before the loop starts."""

    rate: Rate
    parent: Region | None = None
    level: int = -1
    depth: int = 0
    needs: dict[Place, None] = field(default_factory=dict)

    def around(self, level: int) -> Region:
        """This region or the nearest one around it that is the body of a loop of this level."""
        region: Region | None = self
        while region is not None and region.level != level:
            region = region.parent
        if region is None:
            raise LookupError(f"no loop of level {level} around")
        return region


@dataclass(eq=False, slots=True)
class Place:
    """The one place where an expression is computed for all its users in and below `region`. That of a loop is one for
    all its values: `outs` are those that are used, `kept` those that it carries, and `body` is the region of its
    steps."""

    node: Expr
    region: Region
    outs: tuple[int, ...]
    kept: tuple[int, ...] = (0,)
    body: Region | None = None


# A use of an expression: where, and which of its values, if it is a loop.
_Use: TypeAlias = tuple[Region, int]


@dataclass(frozen=True, slots=True)
class Root:
    """An expression that a section has to compute."""

    node: Expr
    rate: Rate


class Placement:
    """Where each expression below the roots is computed.

    With `hoist`, that is the rarest section that its rate allows, and outside every loop whose variables it does not
    mention. Without, it is the innermost place that all its users in a section share.
    """

    def __init__(self, roots: Iterable[Root], rate: dict[Expr, Rate], hoist: bool) -> None:
        """`rate` holds that of everything below the roots, operands first."""
        self.sections = {r: Region(r) for r in Rate}
        self._crossing: dict[Rate, dict[Place, None]] = {r: {} for r in Rate}
        self._rate = rate
        self._hoist = hoist
        self._values: dict[Expr, list[Place]] = {}
        self._uses: defaultdict[Expr, list[_Use]] = defaultdict(list)
        for root in roots:
            self._use((root.node,), self.sections[root.rate])
        for node in reversed(rate):
            uses = self._uses.pop(node, None)
            if uses is not None:
                self._place(node, uses)

    def crossing(self, rate: Rate) -> list[Place]:
        """The values of a section that other sections use, operands first."""
        return sorted(self._crossing[rate], key=lambda value: value.node.index)

    def value(self, node: Expr, region: Region) -> Place:
        """The value that stands for an expression where `region` uses it."""
        values = self._values[node]
        if len(values) > 1:
            return next(v for v in values if _within(region, v.region))
        return values[0]

    def _use(self, nodes: Iterable[Expr], region: Region) -> None:
        for node in nodes:
            if node.op == "loop_out":
                self._uses[node.args[0]].append((region, node.attr if isinstance(node.attr, int) else 0))
            elif node.op not in LEAVES:
                self._uses[node].append((region, 0))

    def _place(self, node: Expr, uses: list[_Use]) -> None:
        for home, group in self._homes(node, uses).items():
            region = home if self._hoist else _innermost(node, [used_in for used_in, _ in group])
            outs = (0,) if len(group) == 1 and not group[0][1] else tuple(sorted({out for _, out in group}))
            value = Place(node, region, outs)
            self._values.setdefault(node, []).append(value)
            for used_in, _ in group:
                if used_in is not region:
                    self._leave(value, used_in)
            self._use_operands(value)

    def _homes(self, node: Expr, uses: list[_Use]) -> Mapping[Region, list[_Use]]:
        """The outermost regions where the expression may be computed, with the uses that each serves."""
        if self._hoist and not node.free:
            return {self.sections[self._rate[node]]: uses}
        homes: dict[Region, list[_Use]] = {}
        for use in uses:
            used_in = use[0]
            home = used_in.around(node.free.bit_length() - 1) if node.free else self.sections[used_in.rate]
            homes.setdefault(home, []).append(use)
        return homes

    def _use_operands(self, value: Place) -> None:
        node, region = value.node, value.region
        if not isinstance(node.attr, LoopShape):
            self._use(node.args, region)
            return
        bounds, starts, nexts = loop_parts(node)
        value.kept = _kept(node.attr.level, nexts, value.outs)
        value.body = Region(region.rate, region, node.attr.level, region.depth + 1)
        self._use((*bounds, *(starts[k] for k in value.kept)), region)
        self._use([nexts[k] for k in value.kept], value.body)

    def _leave(self, value: Place, used_in: Region) -> None:
        """Notes that a value is used outside the code of its own region."""
        body: Region | None = used_in
        while body is not None and body.parent is not value.region:
            body = body.parent
        if body is not None:
            body.needs[value] = None
        else:
            self._crossing[value.region.rate][value] = None


def loop_parts(loop: Expr) -> tuple[tuple[Expr, ...], tuple[Expr, ...], tuple[Expr, ...]]:
    """The bounds of a loop, what it carries before the first step, and what follows that in each step."""
    count = (len(loop.args) - 2) // 2
    return loop.args[:2], loop.args[2 : 2 + count], loop.args[2 + count :]


def _kept(level: int, nexts: Sequence[Expr], outs: Sequence[int]) -> tuple[int, ...]:
    """The carried values that are needed for some of them: what a loop carries only because a text names it is left
    out."""
    if len(outs) == len(nexts):
        return tuple(range(len(nexts)))
    reads = _carried_below(level, nexts)
    kept, todo = set[int](), list(outs)
    while todo:
        k = todo.pop()
        if k not in kept:
            kept.add(k)
            todo += reads[k]
    return tuple(sorted(kept))


def _carried_below(level: int, nexts: Sequence[Expr]) -> list[frozenset[int]]:
    """Which values that the loop of a level carries each of these is made of."""
    nodes: set[Expr] = set()
    todo = list(nexts)
    while todo:
        node = todo.pop()
        if node.free >> level & 1 and node not in nodes:
            nodes.add(node)
            todo += node.args
    found: dict[Expr, frozenset[int]] = {}
    nothing: frozenset[int] = frozenset()
    for node in sorted(nodes, key=attrgetter("index")):
        if isinstance(node.attr, LoopValue) and node.attr.level == level:
            found[node] = frozenset((node.attr.k,))
        else:
            found[node] = nothing.union(*(found.get(arg, nothing) for arg in node.args))
    return [found.get(node, nothing) for node in nexts]


def _within(region: Region | None, outer: Region) -> bool:
    while region is not None and region is not outer:
        region = region.parent
    return region is outer


def _innermost(node: Expr, regions: list[Region]) -> Region:
    """The innermost region around all of these where an expression may be: levels grow from loop to loop inwards."""
    region = _common(regions)
    if isinstance(node.attr, LoopShape):
        while region.parent is not None and region.level >= node.attr.level:
            region = region.parent
    return region


def _common(regions: list[Region]) -> Region:
    """The innermost region around all of these, which lie in one section."""
    common = regions[0]
    for region in regions[1:]:
        inner, outer = region, common
        while inner is not outer:
            if inner.depth < outer.depth:
                inner, outer = outer, inner
            assert inner.parent is not None
            inner = inner.parent
        common = inner
    return common
