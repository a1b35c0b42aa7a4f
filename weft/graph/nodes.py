"""The render graph: strands with the contexts that evaluate them, and the subgraphs they are cut into."""

from __future__ import annotations

from dataclasses import dataclass

from weft.names import StrandRef


@dataclass(frozen=True, slots=True)
class Edge:
    """A strand or sink reads `source`. A `weak` edge passes through state: what is read now decides the next tick."""

    source: StrandRef
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Strand:
    """One output of an instance. `contexts` are those that evaluate it; a strand that is `tied` to one context is
    evaluated there alone, for the `reason` given, and others read it across. `place` is `file:line:column`."""

    ref: StrandRef
    place: str
    reads: tuple[Edge, ...] = ()
    contexts: tuple[str, ...] = ()
    tied: str | None = None
    reason: str | None = None
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """An instance of the patch. `kind` says what it comes from: strands, source, cache or parameter."""

    name: str
    kind: str
    strands: tuple[Strand, ...]


@dataclass(frozen=True, slots=True)
class Sink:
    """An output statement: what it consumes, place by place (`display.r`)."""

    label: str
    context: str
    place: str
    parts: tuple[str, ...]
    reads: tuple[Edge, ...] = ()
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Subgraph:
    """What one kernel evaluates: connected strands and sinks of one context. `strands` lists all that it evaluates,
    those tied to it among them (`tied`); `exposes` those that other subgraphs read; `depends_on` the subgraphs that run
    before it, `reads` the strands of others that it reads across."""

    name: str
    context: str
    strands: tuple[StrandRef, ...]
    tied: tuple[StrandRef, ...]
    sinks: tuple[str, ...]
    exposes: tuple[StrandRef, ...] = ()
    reads: tuple[StrandRef, ...] = ()
    depends_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderGraph:
    """The whole graph. `subgraphs` stand in an order in which they can run."""

    nodes: tuple[Node, ...]
    sinks: tuple[Sink, ...]
    subgraphs: tuple[Subgraph, ...]

    def strands(self) -> dict[StrandRef, Strand]:
        return {s.ref: s for node in self.nodes for s in node.strands}

    def subgraph(self, name: str) -> Subgraph:
        """The subgraph of a name. Raises KeyError if there is none."""
        found = next((s for s in self.subgraphs if s.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    def owner_of(self, ref: StrandRef) -> Subgraph | None:
        """The subgraph that a tied strand is evaluated in."""
        return next((s for s in self.subgraphs if ref in s.tied), None)
