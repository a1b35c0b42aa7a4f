"""The render graph written out: as text, as diagrams for Mermaid and Graphviz, as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, TypeAlias

from weft.graph.nodes import Edge, RenderGraph, Strand, Subgraph
from weft.names import StrandRef

Json: TypeAlias = Any


def to_json(part: object) -> Json:
    """A graph, or a part of one, as data: an object for each dataclass, with its fields. Strands are named as in a
    patch: `instance@output`."""
    if isinstance(part, StrandRef):
        return str(part)
    if isinstance(part, tuple):
        return [to_json(each) for each in part]
    if is_dataclass(part):
        return {field.name: to_json(getattr(part, field.name)) for field in fields(part) if field.repr}
    return part


# --- text ---

_UNUSED = "not evaluated"
_NEXT_TICK = "next tick"


def to_text(graph: RenderGraph) -> str:
    """The graph as lines: the subgraphs in the order in which they run, with what each strand reads and why it is tied
    to its context."""
    strands, sinks = graph.strands(), {sink.label: sink for sink in graph.sinks}
    blocks: list[list[str]] = []
    for subgraph in graph.subgraphs:
        after = f" · after {', '.join(subgraph.depends_on)}" if subgraph.depends_on else ""
        across = frozenset(subgraph.reads)
        block = [f"{subgraph.name} · {subgraph.context}{after}"]
        for ref in subgraph.strands:
            exposed = " · read by others" if ref in subgraph.exposes else ""
            block.append(f"  {_strand_text(strands[ref], across)}{exposed}")
        block += [f"  {label}{_reads_text(sinks[label].reads, across)}" for label in subgraph.sinks]
        block += [f"  image({of}) · {place}" for _, place, of in _images(graph, subgraph)]
        blocks.append(block)
    unused = _unused(graph)
    if unused:
        blocks.append([_UNUSED, *(f"  {_strand_text(strands[ref], frozenset())}" for ref in unused)])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _images(graph: RenderGraph, subgraph: Subgraph) -> Iterator[tuple[str, str, StrandRef | str]]:
    """The key and the place of each image that a subgraph draws before its picture, and a strand or sink that reads
    it."""
    for image in graph.images:
        if image.key in subgraph.images:
            of = image.of
            if isinstance(of, StrandRef) and of not in subgraph.strands:
                of = next(ref for ref in subgraph.strands if ref.instance == of.instance)
            yield image.key, image.place, of


def _strand_text(strand: Strand, across: frozenset[StrandRef]) -> str:
    sources = f" · from {', '.join(strand.sources)}" if strand.sources else ""
    tied = f" · tied: {strand.reason}" if strand.tied else ""
    return f"{strand.ref}{_reads_text(strand.reads, across)}{sources}{tied}"


def _reads_text(edges: Iterable[Edge], across: frozenset[StrandRef]) -> str:
    shown = []
    for edge in edges:
        notes = [*["across"] * (edge.source in across), *[_NEXT_TICK] * edge.weak]
        shown.append(f"{edge.source} ({', '.join(notes)})" if notes else str(edge.source))
    return f" ← {', '.join(shown)}" if shown else ""


def _unused(graph: RenderGraph) -> list[StrandRef]:
    evaluated = {ref for subgraph in graph.subgraphs for ref in subgraph.strands}
    return [ref for ref in graph.strands() if ref not in evaluated]


# --- diagrams ---
#
# A strand that two contexts evaluate is in the subgraph of each. An arrow leads from a strand to its reader; it is
# dashed if the value crosses from one subgraph into another.


class _Box(NamedTuple):
    """A strand or sink in one subgraph. The id is a plain one: names of a patch may be keywords of a diagram."""

    id: str
    lines: tuple[str, ...]
    is_sink: bool = False


class _Arrow(NamedTuple):
    source: str
    reader: str
    crosses: bool
    label: str


def to_mermaid(graph: RenderGraph) -> str:
    """The graph as a Mermaid flowchart."""

    def quoted(*lines: str) -> str:
        return '"' + "<br>".join(line.replace('"', "#quot;").replace("\n", " ") for line in lines) + '"'

    frames, arrows = _diagram(graph)
    lines = ["flowchart LR"]
    for number, (title, boxes) in enumerate(frames.items()):
        lines.append(f"  subgraph s{number}[{quoted(title)}]")
        for box in boxes:
            text = quoted(*box.lines)
            lines.append(f"    {box.id}([{text}])" if box.is_sink else f"    {box.id}[{text}]")
        lines.append("  end")
    for arrow in arrows:
        label = f"|{arrow.label}|" if arrow.label else ""
        lines.append(f"  {arrow.source} {'-.->' if arrow.crosses else '-->'}{label} {arrow.reader}")
    return "\n".join(lines) + "\n"


def to_dot(graph: RenderGraph) -> str:
    """The graph in the language of Graphviz."""

    def quoted(*lines: str) -> str:
        escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines)
        return '"' + "\\n".join(escaped) + '"'

    frames, arrows = _diagram(graph)
    lines = ["digraph weft {", "  rankdir=LR;", "  node [shape=box];"]
    for number, (title, boxes) in enumerate(frames.items()):
        lines += [f"  subgraph cluster_{number} {{", f"    label={quoted(title)};"]
        lines += [f"    {box.id} [label={quoted(*box.lines)}{', shape=oval' if box.is_sink else ''}];" for box in boxes]
        lines.append("  }")
    for arrow in arrows:
        style = [*["style=dashed"] * arrow.crosses, *[f"label={quoted(arrow.label)}"] * bool(arrow.label)]
        shown = f" [{', '.join(style)}]" if style else ""
        lines.append(f"  {arrow.source} -> {arrow.reader}{shown};")
    return "\n".join([*lines, "}"]) + "\n"


def _diagram(graph: RenderGraph) -> tuple[dict[str, list[_Box]], list[_Arrow]]:
    """The boxes of each subgraph, by its title, and the arrows between them."""
    strands, sinks = graph.strands(), {sink.label: sink for sink in graph.sinks}
    groups: dict[str, tuple[StrandRef | str, ...]] = {s.name: (*s.strands, *s.sinks) for s in graph.subgraphs}
    unused = _unused(graph)
    if unused:
        groups[_UNUSED] = tuple(unused)
    ids: dict[tuple[str, StrandRef | str], str] = {}
    frames: dict[str, list[_Box]] = {}
    for title, names in groups.items():
        frames[title] = []
        for name in names:
            box_id = ids[title, name] = f"n{len(ids)}"
            if isinstance(name, StrandRef):
                found = strands[name]
                frames[title].append(_Box(box_id, (str(name), *found.sources, *filter(None, [found.reason]))))
            else:
                frames[title].append(_Box(box_id, (name,), is_sink=True))
    owner = {ref: subgraph.name for subgraph in graph.subgraphs for ref in subgraph.tied}
    arrows: list[_Arrow] = []
    for here, name in [place for place in ids if place[0] != _UNUSED]:
        for edge in strands[name].reads if isinstance(name, StrandRef) else sinks[name].reads:
            home = owner.get(edge.source, here)
            if (home, edge.source) in ids:
                label = _NEXT_TICK if edge.weak else ""
                arrows.append(_Arrow(ids[home, edge.source], ids[here, name], home != here, label))
    for subgraph in graph.subgraphs:
        for key, place, of in _images(graph, subgraph):
            box_id = ids[subgraph.name, key] = f"n{len(ids)}"
            frames[subgraph.name].append(_Box(box_id, ("image", place)))
            arrows.append(_Arrow(box_id, ids[subgraph.name, of], False, ""))
    return frames, arrows
