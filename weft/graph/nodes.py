"""The render graph: strands with the contexts that evaluate them, and the subgraphs they are cut into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.graph.scope import HeardStrand
from weft.names import StrandRef


@dataclass(frozen=True, slots=True)
class Edge:
    """A strand or sink reads `source`. A `weak` edge passes through state: what is read now decides the next tick."""

    source: StrandRef
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Strand:
    """One output of an instance. `contexts` are those that evaluate it. A strand that is `tied` to one context, for the
    `reason` given, is evaluated only there, and others read it across. `place` is `file:line:column`. `axes` are those
    of caches and the like that it may depend on, `maps` those that it maps itself, and base coordinates. `over` are the
    base coordinates on which its value depends, apart from the time, if it may be tied."""

    ref: StrandRef
    place: str
    reads: tuple[Edge, ...] = ()
    contexts: tuple[str, ...] = ()
    tied: str | None = None
    reason: str | None = None
    sources: tuple[str, ...] = ()
    axes: tuple[StrandRef, ...] = ()
    maps: tuple[StrandRef, ...] = ()
    over: tuple[str, ...] = field(default=(), repr=False, compare=False)
    slots: frozenset[object] = field(default=frozenset(), repr=False, compare=False)
    """The keys of the state that it needs."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """An instance of the patch. `kind` says what it comes from: strands, source, cache or parameter."""

    name: str
    kind: str
    strands: tuple[Strand, ...]


@dataclass(frozen=True, slots=True)
class Sink:
    """An output statement; `parts` are the places of its context that it fills (`display.r`), and `maps` the axes of
    caches and the like and the base coordinates that it maps."""

    label: str
    context: str
    place: str
    parts: tuple[str, ...]
    reads: tuple[Edge, ...] = ()
    target: str | None = None
    maps: tuple[StrandRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Subgraph:
    """What one kernel evaluates: connected strands and sinks of one context. `strands` lists all strands that it
    evaluates, `tied` those of them that are tied to it, `exposes` those that other subgraphs read, `reads` the strands
    of others that it reads across (either may be along axes), `depends_on` the subgraphs that run before it, and
    `images` the keys of those that it draws before its picture. `borrows` are strands tied to other subgraphs of its
    context that it evaluates as well, from the memory of those."""

    name: str
    context: str
    strands: tuple[StrandRef, ...]
    tied: tuple[StrandRef, ...]
    sinks: tuple[str, ...]
    exposes: tuple[StrandRef, ...] = ()
    reads: tuple[StrandRef, ...] = ()
    depends_on: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    borrows: tuple[StrandRef, ...] = ()

    @property
    def target(self) -> str:
        """The `to:` of its picture; empty if there is none."""
        return self.sinks[0].partition(":")[2] if self.sinks else ""


@dataclass(frozen=True, slots=True)
class Image:
    """What `image(…)` keeps of one tick, if that varies over a picture: the key of its slot, its place in the text, and
    the strand or sink that asks for it first."""

    key: str
    place: str
    of: StrandRef | str


@dataclass(frozen=True, slots=True)
class RenderGraph:
    """The whole graph. `subgraphs` are in an order in which they can run."""

    nodes: tuple[GraphNode, ...]
    sinks: tuple[Sink, ...]
    subgraphs: tuple[Subgraph, ...]
    images: tuple[Image, ...] = ()
    heard: Mapping[StrandRef, HeardStrand] = field(default_factory=dict, repr=False, compare=False)
    """What analyses hear, which has no name in the patch."""

    def strands(self) -> dict[StrandRef, Strand]:
        return {s.ref: s for node in self.nodes for s in node.strands}
