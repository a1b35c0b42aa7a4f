"""Cuts the render graph into subgraphs: finds the contexts that evaluate each strand, and the connected parts that each
context computes as a whole."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TypeAlias

from weft.contexts import ContextTable
from weft.graph.components import components, reachable
from weft.graph.domain import PLACES, SlotKey
from weft.graph.nodes import Edge, GraphNode, RenderGraph, Strand, Subgraph
from weft.names import StrandRef, base_axis

# --- tagging: the contexts of every strand, from the sinks upward ---
#
# A strand is evaluated wherever it is consumed, in several contexts if necessary, unless it is tied to one: because it
# remembers, or because it reads a source that only one context owns.


@dataclass(frozen=True, slots=True)
class Fact:
    """What ties a strand to one context: the `slots` that it needs (`planar` if over x or y); or the `owner` of a
    source that it reads, or of an analysis of it."""

    slots: frozenset[SlotKey] = frozenset()
    planar: bool = False
    owner: str | None = None
    is_heard: bool = False

    @property
    def reason(self) -> str | None:
        if self.owner is not None:
            return "it is analysed as a sound" if self.is_heard else f"it reads a source of {self.owner}"
        if self.planar:
            return "it remembers a value for every pixel"
        return "it remembers" if self.slots else None


def tag(graph: RenderGraph, facts: Mapping[StrandRef, Fact], contexts: ContextTable) -> RenderGraph:
    """The graph with the contexts of every strand."""
    strands = graph.strands()
    reads = {ref: [e.source for e in s.reads if e.source in strands] for ref, s in strands.items()}
    wanted: dict[StrandRef, set[str]] = {ref: set() for ref in strands}
    for sink in graph.sinks:
        for edge in sink.reads:
            if edge.source in wanted:
                wanted[edge.source].add(sink.context)
    tied: dict[StrandRef, str] = {}
    # `components` lists what is read before its readers, so this order has the consumers first.
    shared = _sharing(facts)
    for component in reversed(components(strands, {ref: [*reads[ref], *shared[ref]] for ref in strands})):
        _settle(component, reads, wanted, tied, facts, contexts)

    def tagged(strand: Strand) -> Strand:
        home = tied.get(strand.ref)
        evaluated = tuple(sorted(wanted[strand.ref])) if home is None else (home,)
        reason = None if home is None else facts[strand.ref].reason
        return replace(strand, contexts=evaluated, tied=home, reason=reason, slots=facts[strand.ref].slots)

    nodes = (GraphNode(node.name, node.kind, tuple(map(tagged, node.strands))) for node in graph.nodes)
    return replace(graph, nodes=tuple(nodes))


def _settle(
    component: list[StrandRef], reads: Mapping[StrandRef, list[StrandRef]], wanted: dict[StrandRef, set[str]],
    tied: dict[StrandRef, str], facts: Mapping[StrandRef, Fact], contexts: ContextTable,
) -> None:  # fmt: skip
    """Decides the contexts of strands that read one another or share state. All their other consumers are decided."""
    consumers = set().union(*(wanted[ref] for ref in component))
    # A strand that reads a source of one context may share state with a strand that other contexts read.
    consumers |= {owner for ref in component if wanted[ref] and (owner := facts[ref].owner) is not None}
    inside = set(component)
    waiting = [ref for ref in component if wanted[ref]]
    while waiting:
        ref = waiting.pop()
        home = _home(facts[ref], consumers, contexts)
        if home is not None:
            tied[ref] = home
        evaluated = wanted[ref] if home is None else {home}
        for source in reads[ref]:
            if not evaluated <= wanted[source]:
                wanted[source] |= evaluated
                if source in inside:
                    waiting.append(source)


def _sharing(facts: Mapping[StrandRef, Fact]) -> Mapping[StrandRef, list[StrandRef]]:
    """The strands that share state with each strand, such as the outputs of one call. One context evaluates all of
    them."""
    users: dict[SlotKey, list[StrandRef]] = {}
    for ref, fact in facts.items():
        for slot in fact.slots:
            users.setdefault(slot, []).append(ref)
    shared: dict[StrandRef, list[StrandRef]] = {ref: [] for ref in facts}
    for together in users.values():
        for a, b in pairwise(together):
            shared[a].append(b)
            shared[b].append(a)
    return shared


def _home(fact: Fact, consumers: set[str], contexts: ContextTable) -> str | None:
    """The context that a strand is tied to; None if it is evaluated wherever it is consumed."""
    if not consumers or fact.reason is None:
        return None
    if fact.owner is not None:
        return fact.owner
    candidates = [spec for spec in contexts if spec.name in consumers]
    planes = [spec for spec in candidates if spec.sweeps_plane]
    pool = planes if fact.planar and planes else candidates
    ranked = [spec for spec in pool if spec.state_rank is not None]
    return min(ranked or pool, key=lambda spec: (spec.state_rank or 0, spec.name)).name


# --- the cut: connected parts of one context that can run one after another ---
#
# The units of the cut are the sinks and the tied strands; untied strands are evaluated wherever a unit needs them. Two
# units of one context share a subgraph if they are connected within it, unless a path from one to the other leaves the
# context and comes back: then the second has to wait for the units between them.

# A tied strand, or the label of a sink.
Unit: TypeAlias = "StrandRef | str"


@dataclass(frozen=True, slots=True)
class _Units:
    """The units in the order of the text, with their contexts, the units each depends on, what each evaluates, and the
    state that each keeps."""

    context: Mapping[Unit, str]
    reads: Mapping[Unit, tuple[StrandRef, ...]]
    before: Mapping[Unit, tuple[StrandRef, ...]]
    evaluates: Mapping[Unit, tuple[StrandRef, ...]]
    keeps: Mapping[Unit, frozenset[object]]


def partition(graph: RenderGraph, contexts: ContextTable) -> RenderGraph:
    """The graph with its subgraphs, in an order in which they can run."""
    units = _units(graph)
    pictures = sorted((s for s in graph.sinks if contexts[s.context].sweeps_plane), key=lambda s: s.target is not None)
    groups = _connected(units, _grouped(units), [picture.label for picture in pictures])
    of_unit = {unit: _name(group, units) for group in groups for unit in group}
    borrowing = {spec.name for spec in contexts if spec.in_one_memory}
    subgraphs = _along_axes([_subgraph(group, of_unit, units, borrowing) for group in groups], graph, contexts)
    exposed = {ref for s in subgraphs for ref in s.reads} | graph.heard.keys()
    read: dict[StrandRef, list[StrandRef]] = {}
    for ref in sorted(exposed):
        read.setdefault(ref.alone, []).append(ref)
    subgraphs = [replace(s, exposes=tuple(r for each in s.tied for r in read.get(each, ()))) for s in subgraphs]
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

    def through(unit: Unit, starts: Iterable[StrandRef]) -> list[StrandRef]:
        """The strands that a unit reads, followed through untied ones up to the first tied one on each path, in the
        order of the text."""
        seen = reachable((s for s in starts if s in onward), onward)
        return sorted(seen - {unit}, key=order.__getitem__)

    reads, before, evaluates = {}, {}, {}
    for unit, edges in own.items():
        found = through(unit, (e.source for e in edges))
        strong = found if not any(e.weak for e in edges) else through(unit, (e.source for e in edges if not e.weak))
        reads[unit] = tuple(r for r in found if strands[r].tied)
        before[unit] = tuple(r for r in strong if strands[r].tied)
        inner = (unit,) if isinstance(unit, StrandRef) else ()
        evaluates[unit] = inner + tuple(r for r in found if not strands[r].tied)
    keeps: dict[Unit, frozenset[object]] = {ref: strands[ref].slots for ref in own if isinstance(ref, StrandRef)}
    return _with_weak_order(_Units(context, reads, before, evaluates, keeps))


def _with_weak_order(units: _Units) -> _Units:
    """Adds the weak edges to the order, except those that would close a cycle. A strand that decides the next tick is
    then computed before its reader."""
    component = {}
    for number, members in enumerate(components(units.context, units.reads)):
        component.update(dict.fromkeys(members, number))
    before = {
        unit: tuple(r for r in reads if r in units.before[unit] or component[r] != component[unit])
        for unit, reads in units.reads.items()
    }
    return replace(units, before=before)


def _with_cycles_joined(units: _Units) -> list[list[Unit]]:
    """The units, in an order in which each comes after the units that it needs. Units of one context that depend on
    each other in a cycle through state are joined to one."""
    same = {unit: [r for r in reads if units.context[r] == units.context[unit]] for unit, reads in units.reads.items()}
    cycles = components(units.context, same)
    of_unit = {unit: i for i, cycle in enumerate(cycles) for unit in cycle}
    edges = {i: {of_unit[r] for unit in cycle for r in units.before[unit]} - {i} for i, cycle in enumerate(cycles)}
    return [cycles[i] for members in components(range(len(cycles)), edges) for i in members]


def _grouped(units: _Units) -> list[list[Unit]]:
    """Puts every unit into the last group of its context that it can join without making a cycle of groups."""
    groups: list[list[Unit]] = []
    needs: dict[int, set[int]] = {}
    of_unit: dict[Unit, int] = {}
    for cycle in _with_cycles_joined(units):
        context = units.context[cycle[0]]
        wanted = {of_unit[r] for unit in cycle for r in units.before[unit] if r in of_unit}
        same = (g for g in reversed(range(len(groups))) if units.context[groups[g][0]] == context)
        home = next((g for g in same if g not in reachable(wanted - {g}, needs)), None)
        if home is None:
            home = len(groups)
            groups.append([])
            needs[home] = set()
        groups[home] += cycle
        needs[home] |= wanted - {home}
        of_unit.update(dict.fromkeys(cycle, home))
    return groups


def _connected(units: _Units, groups: list[list[Unit]], pictures: Sequence[str]) -> list[list[Unit]]:
    """Splits each group into parts that share strands or read one another. A kernel draws one picture, so each of the
    `pictures` has a part of its own. It evaluates what no earlier part does, and reads the rest across."""
    parts: list[list[Unit]] = []
    for group in groups:
        drawn: dict[Unit, list[Unit]] = {unit: [unit] for unit in pictures if unit in group}
        others = [unit for unit in group if unit not in drawn]
        touches: dict[Unit, set[Unit]] = {unit: set() for unit in others}
        users: dict[object, list[Unit]] = {}
        for unit in others:
            shared = (*units.evaluates[unit], *(r for r in units.reads[unit] if r in touches))
            for each in (*shared, *units.keeps.get(unit, ())):
                users.setdefault(each, []).append(unit)
        for sharing in users.values():
            for a, b in pairwise(sharing):
                touches[a].add(b)
                touches[b].add(a)
        free = components(others, touches)
        # First what they read: computing a strand twice costs less than reading a picture across.
        for touched in (units.reads, units.evaluates):
            for picture, part in drawn.items():
                found = frozenset(touched[picture])
                taken = [each for each in free if any(not found.isdisjoint(units.evaluates[unit]) for unit in each)]
                free = [each for each in free if each not in taken]
                part.extend(chain.from_iterable(taken))
        parts += [*drawn.values(), *free]
    text_order = {unit: i for i, unit in enumerate(units.context)}
    return [sorted(part, key=text_order.__getitem__) for part in parts]


def _name(group: list[Unit], units: _Units) -> str:
    """A name that stays the same while other statements change: the context with the first sink or strand."""
    sink = next((u for u in group if isinstance(u, str)), None)
    return f"{units.context[group[0]]}/{sink if sink is not None else min(map(str, group))}"


def _subgraph(
    group: list[Unit], of_unit: Mapping[Unit, str], units: _Units, borrowing: Container[str]
) -> Subgraph:
    name, context = of_unit[group[0]], units.context[group[0]]
    tied = tuple(u for u in group if isinstance(u, StrandRef))
    sinks = tuple(u for u in group if isinstance(u, str))
    borrowed = _borrowed(group, name, of_unit, units) if sinks and context in borrowing else []
    evaluating = [*group, *borrowed]
    strands = dict.fromkeys(ref for unit in evaluating for ref in units.evaluates[unit])
    reads = dict.fromkeys(ref for unit in evaluating for ref in units.reads[unit] if of_unit[ref] != name)
    waits = {of_unit[ref] for unit in evaluating for ref in units.before[unit]} - {name}
    across = tuple(ref for ref in reads if ref not in borrowed)
    return Subgraph(
        name, context, tuple(strands), tied, sinks, (), across, tuple(sorted(waits)), borrows=tuple(borrowed)
    )


def _along_axes(subgraphs: Sequence[Subgraph], graph: RenderGraph, contexts: ContextTable) -> list[Subgraph]:
    """The subgraphs, with what each reads along the axes that it maps. A strand on which such a map may have an effect
    is read both along them and at its own."""
    strands = graph.strands()
    axes_of = _axes_of_tied(strands, contexts)
    home = {ref: subgraph.name for subgraph in subgraphs for ref in subgraph.tied}
    maps: dict[str, set[StrandRef]] = {subgraph.name: set() for subgraph in subgraphs}
    for subgraph in subgraphs:
        spec, own = contexts[subgraph.context], (*subgraph.strands, *subgraph.tied)
        if not spec.streams:
            maps[subgraph.name].update(base_axis(name) for name in PLACES if spec.sweep_of(name) != "once")
        maps[subgraph.name].update(axis for ref in own if ref in strands for axis in strands[ref].maps)
        maps[subgraph.name].update(axis for sink in graph.sinks if sink.label in subgraph.sinks for axis in sink.maps)
    along: dict[tuple[str, StrandRef], tuple[StrandRef, ...]] = {}
    waiting = {subgraph.name: subgraph for subgraph in subgraphs if maps[subgraph.name]}
    while waiting:
        name, subgraph = waiting.popitem()
        for ref in subgraph.reads:
            found = maps[name] & axes_of[ref]
            along[name, ref] = tuple(sorted(found))
            # What is evaluated along them may read others along them.
            if not found <= maps[home[ref]]:
                maps[home[ref]] |= found
                waiting[home[ref]] = next(each for each in subgraphs if each.name == home[ref])
    return [
        replace(s, reads=(*s.reads, *(r.along(axes) for r in s.reads if (axes := along.get((s.name, r))))))
        for s in subgraphs
    ]


def _axes_of_tied(strands: Mapping[StrandRef, Strand], contexts: ContextTable) -> Mapping[StrandRef, set[StrandRef]]:
    """The axes along which others may read each tied strand, base coordinates included. What a stream has played is
    along none, and so is what is made of it in another context."""

    def beyond(strand: Strand) -> set[StrandRef]:
        spec = contexts[strand.tied or ""]
        return {*strand.axes, *(base_axis(name) for name in strand.over if name not in spec.read_over)}

    played = {ref: s for ref, s in strands.items() if s.tied and contexts[s.tied].streams}
    # Others find the earlier values of a cache itself in what was played (`state.py: played_cache`).
    lost = {ref: {axis for axis in beyond(s) if axis.instance != ref.instance} for ref, s in played.items()}
    made_of = {ref: [edge.source for edge in s.reads if not edge.weak and edge.source in strands]
               for ref, s in strands.items() if ref not in played}  # fmt: skip
    found: dict[StrandRef, set[StrandRef]] = {}
    for ref, strand in strands.items():
        if strand.tied:
            reached = reachable([ref], made_of) & played.keys() if lost else ()
            found[ref] = set() if ref in played else beyond(strand).difference(*(lost[each] for each in reached))
    return found


def _borrowed(group: list[Unit], name: str, of_unit: Mapping[Unit, str], units: _Units) -> list[StrandRef]:
    """The strands tied to other subgraphs of the same context that a group needs."""
    found: dict[StrandRef, None] = {}
    waiting: list[Unit] = list(group)
    while waiting:
        unit = waiting.pop()
        for ref in units.reads[unit]:
            if units.context[ref] == units.context[unit] and of_unit[ref] != name and ref not in found:
                found[ref] = None
                waiting.append(ref)
    return list(found)


def _ordered(subgraphs: list[Subgraph]) -> list[Subgraph]:
    """The subgraphs in an order in which they can run. If state leads in a cycle through several contexts, no order
    serves every reader: one of them does not wait, and reads the last finished value."""
    by_name = {s.name: s for s in subgraphs}
    order = [name for part in components(by_name, {s.name: s.depends_on for s in subgraphs}) for name in part]
    place = {name: i for i, name in enumerate(order)}
    return [
        replace(by_name[name], depends_on=tuple(d for d in by_name[name].depends_on if place[d] < place[name]))
        for name in order
    ]
