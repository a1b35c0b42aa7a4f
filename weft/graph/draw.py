"""The render graph written out: as text, as diagrams for Mermaid and Graphviz, as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from weft.graph.nodes import Edge, GraphNode, RenderGraph, Sink, Strand, Subgraph
from weft.names import StrandRef

# --- JSON, without loss in both directions ---

Json: TypeAlias = Any


def to_json(graph: RenderGraph) -> Json:
    """The graph as data that `from_json` reads. Strands are named as in a patch: `instance@output`."""
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


def _node_to_json(node: GraphNode) -> Json:
    return {"name": node.name, "kind": node.kind, "strands": [_strand_to_json(s) for s in node.strands]}


def _node_from_json(data: Json) -> GraphNode:
    return GraphNode(data["name"], data["kind"], tuple(_strand_from_json(s) for s in data["strands"]))


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


# --- text and diagrams ---
#
# A strand that two contexts evaluate stands in the subgraph of each. An arrow leads from a strand to its reader; it is
# dashed if the value crosses from one subgraph into another.

_UNUSED = "not evaluated"
_NEXT_TICK = "next tick"


@dataclass(frozen=True, slots=True)
class _Box:
    """A strand or sink in one subgraph."""

    id: str
    lines: tuple[str, ...]
    is_sink: bool = False


@dataclass(frozen=True, slots=True)
class _SubgraphBox:
    """A subgraph with everything that it evaluates."""

    title: str
    boxes: tuple[_Box, ...]


@dataclass(frozen=True, slots=True)
class _Arrow:
    source: str
    reader: str
    crosses: bool
    label: str


def to_text(graph: RenderGraph) -> str:
    """The graph as lines: the subgraphs in the order in which they run, with what each strand reads and why it is tied
    to its context."""
    strands = graph.strands()
    blocks = [_subgraph_text(subgraph, graph) for subgraph in graph.subgraphs]
    unused = [strands[ref] for ref in _unused(graph)]
    if unused:
        blocks.append([_UNUSED, *(f"  {_strand_text(s, frozenset())}" for s in unused)])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def to_mermaid(graph: RenderGraph) -> str:
    """The graph as a Mermaid flowchart."""
    frames, arrows = _diagram(graph)
    lines = ["flowchart LR"]
    for number, frame in enumerate(frames):
        lines.append(f'  subgraph s{number}["{_unquoted(frame.title)}"]')
        lines += [f"    {_mermaid_box(box)}" for box in frame.boxes]
        lines.append("  end")
    for arrow in arrows:
        label = f"|{arrow.label}|" if arrow.label else ""
        lines.append(f"  {arrow.source} {'-.->' if arrow.crosses else '-->'}{label} {arrow.reader}")
    return "\n".join(lines) + "\n"


def to_dot(graph: RenderGraph) -> str:
    """The graph in the language of Graphviz."""
    frames, arrows = _diagram(graph)
    lines = ["digraph weft {", "  rankdir=LR;", "  node [shape=box];"]
    for number, frame in enumerate(frames):
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append(f"    label={_quoted(frame.title)};")
        lines += [f"    {_dot_box(box)}" for box in frame.boxes]
        lines.append("  }")
    for arrow in arrows:
        style = [*["style=dashed"] * arrow.crosses, *[f"label={_quoted(arrow.label)}"] * bool(arrow.label)]
        shown = f" [{', '.join(style)}]" if style else ""
        lines.append(f"  {arrow.source} -> {arrow.reader}{shown};")
    return "\n".join([*lines, "}"]) + "\n"


# --- text ---------------------------------------------------------------------------------------------------------


def _subgraph_text(subgraph: Subgraph, graph: RenderGraph) -> list[str]:
    strands, sinks = graph.strands(), {sink.label: sink for sink in graph.sinks}
    across = frozenset(subgraph.reads)
    after = f" · after {', '.join(subgraph.depends_on)}" if subgraph.depends_on else ""
    lines = [f"{subgraph.name} · {subgraph.context}{after}"]
    for ref in subgraph.strands:
        exposed = " · read by others" if ref in subgraph.exposes else ""
        lines.append(f"  {_strand_text(strands[ref], across)}{exposed}")
    lines += [f"  {label}{_reads_text(sinks[label].reads, across)}" for label in subgraph.sinks]
    return lines


def _strand_text(strand: Strand, across: frozenset[StrandRef]) -> str:
    sources = f" · from {', '.join(strand.sources)}" if strand.sources else ""
    tied = f" · tied: {strand.reason}" if strand.tied else ""
    return f"{strand.ref}{_reads_text(strand.reads, across)}{sources}{tied}"


def _reads_text(edges: Sequence[Edge], across: frozenset[StrandRef]) -> str:
    if not edges:
        return ""
    return " ← " + ", ".join(_edge_text(edge, across) for edge in edges)


def _edge_text(edge: Edge, across: frozenset[StrandRef]) -> str:
    notes = [*["across"] * (edge.source in across), *[_NEXT_TICK] * edge.weak]
    return f"{edge.source} ({', '.join(notes)})" if notes else str(edge.source)


# --- diagrams -----------------------------------------------------------------------------------------------------


def _diagram(graph: RenderGraph) -> tuple[list[_SubgraphBox], list[_Arrow]]:
    strands, sinks = graph.strands(), {sink.label: sink for sink in graph.sinks}
    ids = _ids(graph)
    owner = {ref: subgraph.name for subgraph in graph.subgraphs for ref in subgraph.tied}
    frames: list[_SubgraphBox] = []
    arrows: list[_Arrow] = []
    for subgraph in graph.subgraphs:
        here = subgraph.name
        readers = [(ids[here, str(ref)], strands[ref].reads) for ref in subgraph.strands]
        readers += [(ids[here, label], sinks[label].reads) for label in subgraph.sinks]
        for reader, edges in readers:
            arrows += _arrows(reader, edges, here, owner, ids)
        boxes = [_Box(ids[here, str(ref)], _box_lines(strands[ref])) for ref in subgraph.strands]
        boxes += [_Box(ids[here, label], (label,), is_sink=True) for label in subgraph.sinks]
        frames.append(_SubgraphBox(here, tuple(boxes)))
    unused = tuple(_Box(ids[_UNUSED, str(ref)], _box_lines(strands[ref])) for ref in _unused(graph))
    return frames + [_SubgraphBox(_UNUSED, unused)] * bool(unused), arrows


def _arrows(
    reader: str, edges: Iterable[Edge], here: str, owner: dict[StrandRef, str], ids: dict[tuple[str, str], str]
) -> Iterable[_Arrow]:
    for edge in edges:
        home = owner.get(edge.source, here)
        source = ids.get((home, str(edge.source)))
        if source is not None:
            yield _Arrow(source, reader, home != here, _NEXT_TICK if edge.weak else "")


def _ids(graph: RenderGraph) -> dict[tuple[str, str], str]:
    """A plain id for every box: names of a patch may be keywords of the diagram's language."""
    places = [(s.name, str(name)) for s in graph.subgraphs for name in (*s.strands, *s.sinks)]
    places += [(_UNUSED, str(ref)) for ref in _unused(graph)]
    return {place: f"n{number}" for number, place in enumerate(places)}


def _unused(graph: RenderGraph) -> list[StrandRef]:
    evaluated = {ref for subgraph in graph.subgraphs for ref in subgraph.strands}
    return [ref for ref in graph.strands() if ref not in evaluated]


def _box_lines(strand: Strand) -> tuple[str, ...]:
    return (str(strand.ref), *strand.sources, *([strand.reason] if strand.reason else []))


def _mermaid_box(box: _Box) -> str:
    text = "<br>".join(_unquoted(line) for line in box.lines)
    return f'{box.id}(["{text}"])' if box.is_sink else f'{box.id}["{text}"]'


def _unquoted(text: str) -> str:
    return text.replace('"', "#quot;").replace("\n", " ")


def _dot_box(box: _Box) -> str:
    shape = ", shape=oval" if box.is_sink else ""
    return f"{box.id} [label={_quoted(*box.lines)}{shape}];"


def _quoted(*lines: str) -> str:
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines)
    return '"' + "\\n".join(escaped) + '"'
