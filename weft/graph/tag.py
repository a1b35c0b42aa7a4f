"""Context tagging: from the sinks upward, every strand learns which contexts evaluate it.

A strand goes wherever it is consumed, into several contexts if need be, unless it is tied to one: because it
remembers, or because it reads a source that only one context owns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from weft.contexts import ContextTable
from weft.graph.nodes import Node, RenderGraph, Strand
from weft.graph.order import components
from weft.names import StrandRef


@dataclass(frozen=True, slots=True)
class Fact:
    """What ties a strand: the `slots` that it needs (over x or y: `planar`), or a source with an `owner`."""

    slots: frozenset[str] = frozenset()
    planar: bool = False
    owner: str | None = None

    @property
    def reason(self) -> str | None:
        if self.owner is not None:
            return f"it reads a source of {self.owner}"
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
    # Consumers come first: a component is listed after what it reads.
    shared = _sharing(facts)
    for component in reversed(components(strands, {ref: [*reads[ref], *shared[ref]] for ref in strands})):
        _settle(component, reads, wanted, tied, facts, contexts)
    return replace(graph, nodes=tuple(_tagged(node, wanted, tied, facts) for node in graph.nodes))


def _settle(
    component: list[StrandRef],
    reads: Mapping[StrandRef, list[StrandRef]],
    wanted: dict[StrandRef, set[str]],
    tied: dict[StrandRef, str],
    facts: Mapping[StrandRef, Fact],
    contexts: ContextTable,
) -> None:
    """Decides the contexts of strands that read one another or remember the same, whose other consumers are all
    decided."""
    consumers = set().union(*(wanted[ref] for ref in component))
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
    """The strands that remember something together with each strand: outputs of one call. One context has it all."""
    users: dict[str, list[StrandRef]] = {}
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
    """The context that a strand is tied to; None for one that goes wherever it is consumed."""
    if not consumers or fact.reason is None:
        return None
    if fact.owner is not None:
        return fact.owner
    candidates = [spec for spec in contexts if spec.name in consumers]
    planes = [spec for spec in candidates if spec.sweeps_plane]
    pool = planes if fact.planar and planes else candidates
    ranked = [spec for spec in pool if spec.state_rank is not None]
    return min(ranked or pool, key=lambda spec: (spec.state_rank or 0, spec.name)).name


def _tagged(
    node: Node, wanted: Mapping[StrandRef, set[str]], tied: Mapping[StrandRef, str], facts: Mapping[StrandRef, Fact]
) -> Node:
    def strand(s: Strand) -> Strand:
        home = tied.get(s.ref)
        if home is not None:
            return Strand(s.ref, s.place, s.reads, (home,), home, facts[s.ref].reason, s.sources)
        return Strand(s.ref, s.place, s.reads, tuple(sorted(wanted[s.ref])), s.tied, s.reason, s.sources)

    return Node(node.name, node.kind, tuple(strand(s) for s in node.strands))
