"""Render graphs of short texts."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

from weft.contexts import COMPUTE, VISUAL, ContextSpec, ContextTable
from weft.errors import Report, Source
from weft.graph.bindings import collect
from weft.graph.build import build_graph
from weft.graph.nodes import RenderGraph, Strand
from weft.names import StrandRef
from weft.syntax.parser import parse

# A context that takes state before all others, and lets it be read at a place.
PINNED = ContextSpec(
    name="pinned", statements=("pin",), doc="", example="pin(a)", read_over=("x", "y"), state_rank=-1
)  # fmt: skip


def graph_of(text: str, contexts: ContextTable | None = None) -> RenderGraph:
    """The graph of a text without errors."""
    contexts = contexts or ContextTable()
    report = Report()
    program = parse(Source("test.weft", text), report, contexts.statements)
    graph = build_graph(collect(program, contexts, report), contexts, report)
    assert not report.errors, "\n".join(d.render() for d in report)
    return graph


def strand(graph: RenderGraph, name: str) -> Strand:
    return graph.strands()[ref(name)]


def ref(name: str) -> StrandRef:
    instance, _, output = name.partition("@")
    return StrandRef(instance, output or "val")


def pinned_table() -> ContextTable:
    return ContextTable([VISUAL, COMPUTE, PINNED])


def from_json(data: Any, kind: Any = RenderGraph) -> Any:
    """The graph, or a part of one, that `to_json` wrote."""
    if kind is StrandRef:
        return StrandRef(*data.split("@"))
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        kinds = {field.name: hints[field.name] for field in fields(kind) if field.repr}
        assert data.keys() == kinds.keys()
        return kind(**{name: from_json(value, kinds[name]) for name, value in data.items()})
    return tuple(from_json(value, get_args(kind)[0]) for value in data) if isinstance(data, list) else data
