"""The render graph as JSON, without loss in both directions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from weft.graph.nodes import Edge, Node, RenderGraph, Sink, Strand, Subgraph
from weft.names import StrandRef

Json: TypeAlias = Any


def to_json(graph: RenderGraph) -> Json:
    """What `from_json` reads. Strands are named as a patch names them: `instance@output`."""
    return {
        "nodes": [_node_to_json(node) for node in graph.nodes],
        "sinks": [_sink_to_json(sink) for sink in graph.sinks],
        "subgraphs": [_subgraph_to_json(subgraph) for subgraph in graph.subgraphs],
    }


def from_json(data: Json) -> RenderGraph:
    """The graph that `to_json` wrote."""
    return RenderGraph(
        tuple(_node_from_json(node) for node in data["nodes"]),
        tuple(_sink_from_json(sink) for sink in data["sinks"]),
        tuple(_subgraph_from_json(subgraph) for subgraph in data["subgraphs"]),
    )


def _node_to_json(node: Node) -> Json:
    return {"name": node.name, "kind": node.kind, "strands": [_strand_to_json(s) for s in node.strands]}


def _node_from_json(data: Json) -> Node:
    return Node(data["name"], data["kind"], tuple(_strand_from_json(s) for s in data["strands"]))


def _strand_to_json(strand: Strand) -> Json:
    return {
        "ref": str(strand.ref),
        "place": strand.place,
        "reads": _edges_to_json(strand.reads),
        "contexts": list(strand.contexts),
        "tied": strand.tied,
        "reason": strand.reason,
        "sources": list(strand.sources),
    }


def _strand_from_json(data: Json) -> Strand:
    return Strand(
        ref=_ref(data["ref"]),
        place=data["place"],
        reads=_edges_from_json(data["reads"]),
        contexts=tuple(data["contexts"]),
        tied=data["tied"],
        reason=data["reason"],
        sources=tuple(data["sources"]),
    )


def _sink_to_json(sink: Sink) -> Json:
    return {
        "label": sink.label,
        "context": sink.context,
        "place": sink.place,
        "parts": list(sink.parts),
        "reads": _edges_to_json(sink.reads),
        "target": sink.target,
    }


def _sink_from_json(data: Json) -> Sink:
    return Sink(
        label=data["label"],
        context=data["context"],
        place=data["place"],
        parts=tuple(data["parts"]),
        reads=_edges_from_json(data["reads"]),
        target=data["target"],
    )


def _subgraph_to_json(subgraph: Subgraph) -> Json:
    return {
        "name": subgraph.name,
        "context": subgraph.context,
        "strands": _refs_to_json(subgraph.strands),
        "tied": _refs_to_json(subgraph.tied),
        "sinks": list(subgraph.sinks),
        "exposes": _refs_to_json(subgraph.exposes),
        "reads": _refs_to_json(subgraph.reads),
        "depends_on": list(subgraph.depends_on),
    }


def _subgraph_from_json(data: Json) -> Subgraph:
    return Subgraph(
        name=data["name"],
        context=data["context"],
        strands=_refs_from_json(data["strands"]),
        tied=_refs_from_json(data["tied"]),
        sinks=tuple(data["sinks"]),
        exposes=_refs_from_json(data["exposes"]),
        reads=_refs_from_json(data["reads"]),
        depends_on=tuple(data["depends_on"]),
    )


def _edges_to_json(edges: Iterable[Edge]) -> Json:
    return [{"source": str(edge.source), "weak": edge.weak} for edge in edges]


def _edges_from_json(data: Json) -> tuple[Edge, ...]:
    return tuple(Edge(_ref(edge["source"]), edge["weak"]) for edge in data)


def _refs_to_json(refs: Iterable[StrandRef]) -> Json:
    return [str(ref) for ref in refs]


def _refs_from_json(data: Json) -> tuple[StrandRef, ...]:
    return tuple(_ref(name) for name in data)


def _ref(name: str) -> StrandRef:
    instance, _, output = name.partition("@")
    return StrandRef(instance, output)
