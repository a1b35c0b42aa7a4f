"""Cutting a tagged graph into subgraphs: connected parts of one context that can run one after another.

The units of the cut are the sinks and the tied strands; untied strands are evaluated wherever a unit needs them. Two
units of one context share a subgraph if they are connected within it, unless a path from one to the other leaves the
context and comes back: then the second has to wait for what is between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from weft.graph.nodes import Edge, RenderGraph, Subgraph
from weft.graph.order import components, reachable
from weft.names import StrandRef

# A tied strand, or the label of a sink.
Unit: TypeAlias = "StrandRef | str"


@dataclass(frozen=True, slots=True)
class _Units:
    """The units in the order of the text, with their contexts, the units each depends on, and what each evaluates."""

    context: Mapping[Unit, str]
    reads: Mapping[Unit, tuple[StrandRef, ...]]
    before: Mapping[Unit, tuple[StrandRef, ...]]
    evaluates: Mapping[Unit, tuple[StrandRef, ...]]


def partition(graph: RenderGraph) -> RenderGraph:
    """The graph with its subgraphs, in an order in which they can run."""
    units = _units(graph)
    groups = _connected(units, _grouped(units))
    of_unit = {unit: i for i, group in enumerate(groups) for unit in group}
    names = _names(groups, units)
    subgraphs = [_subgraph(group, names, of_unit, units) for group in groups]
    exposed = {ref for s in subgraphs for ref in s.reads}
    subgraphs = [replace(s, exposes=tuple(r for r in s.tied if r in exposed)) for s in subgraphs]
    return replace(graph, subgraphs=tuple(_ordered(subgraphs)))


def _units(graph: RenderGraph) -> _Units:
    strands = graph.strands()
    context: dict[Unit, str] = {s.ref: s.tied for s in strands.values() if s.tied is not None}
    context |= {sink.label: sink.context for sink in graph.sinks}
    own: dict[Unit, tuple[Edge, ...]] = {ref: strands[ref].reads for ref in context if isinstance(ref, StrandRef)}
    own |= {sink.label: sink.reads for sink in graph.sinks}
    onward = {
        ref: [] if strand.tied else [e.source for e in strand.reads if e.source in strands]
        for ref, strand in strands.items()
    }
    order = {ref: place for place, ref in enumerate(onward)}
    reads, before, evaluates = {}, {}, {}
    for unit, edges in own.items():
        through = _through(unit, (e.source for e in edges), onward, order)
        strong = _through(unit, (e.source for e in edges if not e.weak), onward, order)
        reads[unit] = tuple(r for r in through if strands[r].tied)
        before[unit] = tuple(r for r in strong if strands[r].tied)
        inner = (unit,) if isinstance(unit, StrandRef) else ()
        evaluates[unit] = inner + tuple(r for r in through if not strands[r].tied)
    return _with_weak_order(_Units(context, reads, before, evaluates))


def _through(
    unit: Unit,
    starts: Iterable[StrandRef],
    onward: Mapping[StrandRef, Iterable[StrandRef]],
    order: Mapping[StrandRef, int],
) -> list[StrandRef]:
    """The strands that a unit reads, followed through untied ones up to the first tied one on each path: `onward` has
    every strand, with those that lie behind it if it is untied, and `order` its place."""
    seen = reachable((s for s in starts if s in onward), onward)
    return sorted((ref for ref in seen if ref in onward and ref != unit), key=order.__getitem__)


def _with_weak_order(units: _Units) -> _Units:
    """Lets what decides the next tick be computed before its reader too, wherever that closes no circle."""
    component = {}
    for number, members in enumerate(components(units.context, units.reads)):
        component.update(dict.fromkeys(members, number))
    before = {
        unit: tuple(r for r in reads if r in units.before[unit] or component[r] != component[unit])
        for unit, reads in units.reads.items()
    }
    return replace(units, before=before)


def _together(units: _Units) -> list[list[Unit]]:
    """Units of one context that depend on each other in a circle through state are one; listed after what they need."""
    same = {unit: [r for r in reads if units.context[r] == units.context[unit]] for unit, reads in units.reads.items()}
    circles = components(units.context, same)
    of_unit = {unit: i for i, circle in enumerate(circles) for unit in circle}
    edges = {i: {of_unit[r] for unit in circle for r in units.before[unit]} - {i} for i, circle in enumerate(circles)}
    return [circles[i] for members in components(range(len(circles)), edges) for i in members]


def _grouped(units: _Units) -> list[list[Unit]]:
    """Puts every unit into the last group of its context that it can join without making a circle of groups."""
    groups: list[list[Unit]] = []
    needs: dict[int, set[int]] = {}
    of_unit: dict[Unit, int] = {}
    for circle in _together(units):
        context = units.context[circle[0]]
        wanted = {of_unit[r] for unit in circle for r in units.before[unit] if r in of_unit}
        home = next(
            (
                g
                for g in reversed(range(len(groups)))
                if units.context[groups[g][0]] == context and g not in reachable(wanted - {g}, needs)
            ),
            None,
        )
        if home is None:
            home = len(groups)
            groups.append([])
            needs[home] = set()
        groups[home] += circle
        needs[home] |= wanted - {home}
        of_unit.update(dict.fromkeys(circle, home))
    return groups


def _connected(units: _Units, groups: list[list[Unit]]) -> list[list[Unit]]:
    """Splits each group into the parts that share strands or read one another."""
    parts: list[list[Unit]] = []
    for group in groups:
        touches: dict[Unit, set[Unit]] = {unit: set() for unit in group}
        users: dict[StrandRef, list[Unit]] = {}
        for unit in group:
            for ref in (*units.evaluates[unit], *(r for r in units.reads[unit] if r in touches)):
                users.setdefault(ref, []).append(unit)
        for sharing in users.values():
            for a, b in pairwise(sharing):
                touches[a].add(b)
                touches[b].add(a)
        parts += components(group, touches)
    text_order = {unit: i for i, unit in enumerate(units.context)}
    return [sorted(part, key=text_order.__getitem__) for part in parts]


def _names(groups: list[list[Unit]], units: _Units) -> list[str]:
    """A name that stays the same while other statements change: the context with the first sink or strand."""
    names = []
    for group in groups:
        sink = next((u for u in group if isinstance(u, str)), None)
        first = sink if sink is not None else min(str(u) for u in group)
        names.append(f"{units.context[group[0]]}/{first}")
    return names


def _subgraph(group: list[Unit], names: list[str], of_unit: Mapping[Unit, int], units: _Units) -> Subgraph:
    inside = set(group)
    mine = of_unit[group[0]]
    strands = dict.fromkeys(ref for unit in group for ref in units.evaluates[unit])
    reads = dict.fromkeys(ref for unit in group for ref in units.reads[unit] if ref not in inside)
    waits = {names[of_unit[ref]] for unit in group for ref in units.before[unit]} - {names[mine]}
    return Subgraph(
        name=names[mine],
        context=units.context[group[0]],
        strands=tuple(strands),
        tied=tuple(u for u in group if isinstance(u, StrandRef)),
        sinks=tuple(u for u in group if isinstance(u, str)),
        reads=tuple(reads),
        depends_on=tuple(sorted(waits)),
    )


def _ordered(subgraphs: list[Subgraph]) -> list[Subgraph]:
    """In an order in which they can run. Where state leads in a circle through several contexts, no order serves every
    reader: one of them does not wait, and reads what was finished last."""
    by_name = {s.name: s for s in subgraphs}
    order = [name for part in components(by_name, {s.name: s.depends_on for s in subgraphs}) for name in part]
    place = {name: i for i, name in enumerate(order)}
    return [
        replace(by_name[name], depends_on=tuple(d for d in by_name[name].depends_on if place[d] < place[name]))
        for name in order
    ]
