"""Understanding a text: reading, naming, the render graph and lowering, with every mistake that these find.

This is all that `weft check` needs; it imports no code generator.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from weft.contexts import ContextTable
from weft.errors import Diagnostic, Report, Source, Span, WeftError
from weft.graph.build import build_graph
from weft.graph.names import collect
from weft.graph.nodes import RenderGraph, Subgraph
from weft.graph.patch import Patch
from weft.graph.settings import SETTINGS, fitted
from weft.graph.source_calls import media_kind
from weft.ir.expr import Pool
from weft.ir.lower import Unavailable, lower
from weft.sources import PICTURE, SOURCES
from weft.syntax.ast import Call, Name, OutputStatement, Program, Text
from weft.syntax.includes import load
from weft.syntax.parser import parse
from weft.syntax.texts import read_text
from weft.syntax.walk import walk_statement

T = TypeVar("T")
Probe = Callable[[str], "str | None"]


@dataclass(frozen=True)
class Analysis:
    """A program that is understood. `files` are the texts and `media` the pictures it names; `warnings` are those found
    so far."""

    patch: Patch
    graph: RenderGraph
    program: Program
    contexts: ContextTable
    files: tuple[str, ...]
    media: tuple[str, ...]
    warnings: tuple[Diagnostic, ...]
    parse_ms: float
    graph_ms: float


def analyse(
    source: Source,
    contexts: ContextTable,
    settings: Mapping[str, float] | None = None,
    probe: Probe | None = None,
    read: Callable[[str], str] = read_text,
    consume: str | None = None,
    room: tuple[int, int] | None = None,
) -> Analysis:
    """Reads a text and builds its render graph. `settings` override those of the patch; `probe` says what is wrong with
    a picture file; an output statement to `consume` (`display(a@v)`) takes the place of all that the patch has. A
    picture that is larger than `room` (width, height) is made smaller, with the same aspect.

    Raises WeftError with all diagnostics if there is an error among them.
    """
    report = Report()
    started = time.perf_counter()
    loaded = load(source, report, contexts.statements, read)
    parsed = time.perf_counter()
    program = loaded.program if consume is None else _consuming(loaded.program, consume, contexts, report)
    meaning = Report()
    patch = collect(program, contexts, meaning)
    if settings:
        _check_settings(settings, meaning)
        patch = replace(patch, settings={**patch.settings, **settings})
    if room:
        patch = replace(patch, settings=fitted(patch.settings, room))
    graph = build_graph(patch, contexts, meaning)
    media = _check_media(loaded.program, meaning, probe)
    report.add(_without_follow_ups(meaning, report))
    report.raise_errors()
    return Analysis(
        patch=patch,
        graph=graph,
        program=loaded.program,
        contexts=contexts,
        files=loaded.files,
        media=media,
        warnings=tuple(report),
        parse_ms=(parsed - started) * 1e3,
        graph_ms=(time.perf_counter() - parsed) * 1e3,
    )


def check(source: Source, contexts: ContextTable, probe: Probe | None = None) -> Sequence[Diagnostic]:
    """Everything that is wrong with a text, and everything to be warned of. Compiles nothing."""
    try:
        found = analyse(source, contexts, probe=probe)
        _, _, warnings = each_subgraph(found, lambda sub: lower(found.patch, found.graph, sub, contexts, Pool()))
    except WeftError as failure:
        return failure.diagnostics
    return warnings


def each_subgraph(
    found: Analysis, make: Callable[[Subgraph], T]
) -> tuple[list[T], list[Subgraph], tuple[Diagnostic, ...]]:
    """What `make` makes of each subgraph, in their order; the subgraphs that are left out because this installation
    lacks something that they need, directly or not; and all warnings.

    Raises WeftError with the errors of all subgraphs together.
    """
    report = Report(list(found.warnings))
    made: list[T] = []
    left_out: dict[str, Subgraph] = {}
    for subgraph in found.graph.subgraphs:
        if any(name in left_out for name in subgraph.depends_on):
            left_out[subgraph.name] = subgraph
            continue
        try:
            made.append(make(subgraph))
        except Unavailable as failure:
            left_out[subgraph.name] = subgraph
            report.add(failure.diagnostics)
        except WeftError as failure:
            report.add(failure.diagnostics)
    report.raise_errors()
    return made, list(left_out.values()), tuple(report)


# What says that a name is not there.
_UNKNOWN = frozenset(
    {"unknown-strand", "unknown-call", "unknown-output", "call-without-arguments", "output-not-assigned"}
)


def _without_follow_ups(found: Report, syntax: Report) -> list[Diagnostic]:
    """Where statements are broken, names seem to be missing that they would have bound: these say nothing new."""
    broken = {_line(d.span) for d in syntax.errors if d.span}
    return [
        d
        for d in found
        if not (broken and d.span and (_line(d.span) in broken or (d.code in _UNKNOWN and _seems_bound(d.span))))
    ]


def _line(span: Span) -> tuple[str, int]:
    return span.source.name, span.source.position(span.start)[0]


def _seems_bound(span: Span) -> bool:
    """Whether a name that is used stands somewhere in its text as if it was being bound there."""
    name = re.escape(span.text.partition("@")[0].partition("(")[0].strip())
    bound = rf"((^|[{{;])[ \t]*(let\s+|out\s+|spindle\s+|#\w+\s+)?|::\s*){name}\b"
    return bool(re.search(bound, span.source.text, re.MULTILINE))


def _check_settings(settings: Mapping[str, float], report: Report) -> None:
    """Settings from outside obey the same ranges as those of a patch."""
    for name, value in settings.items():
        if not SETTINGS[name].accepts(value):
            report.error("setting-out-of-range", f"{name} is {SETTINGS[name].range}, not {value:g}")


def _consuming(program: Program, statement: str, contexts: ContextTable, report: Report) -> Program:
    others = tuple(s for s in program.statements if not isinstance(s, OutputStatement))
    asked = parse(Source("(asked for)", statement), report, contexts.statements)
    return Program(others + asked.statements)


def _check_media(program: Program, report: Report, probe: Probe | None) -> tuple[str, ...]:
    """The pictures that a program names. Those that cannot be read are errors at their place."""
    found: dict[str, None] = {}
    for statement in program.statements:
        if "load" not in statement.span.text:
            continue
        for node in walk_statement(statement):
            if not (isinstance(node, Call) and isinstance(node.callee, Name) and node.callee.id == "load"):
                continue
            text = next((a.value for a in node.args if isinstance(a.value, Text)), None)
            if text is None or media_kind(text.value, SOURCES["load"]) is not PICTURE:
                continue
            path = os.path.join(os.path.dirname(text.span.source.name), text.value)
            found[path] = None
            problem = probe(path) if probe else None
            if problem:
                report.error("unreadable-source", f'"{text.value}" cannot be read: {problem}', text.span)
    return tuple(found)
