"""Edits as a performer makes them, one after another; and whether two builds of a text are the same."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

from weft.codegen.kernel import Unit
from weft.errors import Diagnostic, Span
from weft.graph.nodes import RenderGraph
from weft.graph.patch import OutputDefinition
from weft.runtime.compiling.stages import Build
from weft.runtime.program.compiled import CompiledProgram

_NUMBER = re.compile(r'(?<![\w.#"])\d+(?:\.\d+)?')
_WORD = re.compile(r"\b[a-z]\w*\b")
_NEW = ["extra = sin(me@x * 3)", "extra<u, v> = <me@x, me@y>", "again = prev(again) * 0.9 + me@y", "// a note", "",
        "spindle squared(a) :: v {\n  v = a * a\n}", "#slider more<v> = 0, 1, 0.5", "#slider far<v> = 0, 1, 2.5",
        "spindle sqrt(a) :: v { v = a ^ 0.5 }", "spindle abs(a) :: v {\n  v = max(a, -a)\n}",
        "spindle long(a) :: v { for i in (1 to a * 99999) { v += sin(i * 0.1) } }\ncompute(long(me@time))"]  # fmt: skip


def edited(text: str, chance: random.Random) -> str:
    """A text after one edit. Most texts still compile after it."""
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    match chance.choices(["number", "cut", "new", "name", "comment", "operator", "swap"], [9, 2, 4, 1, 1, 1, 1])[0]:
        case "number" if found := list(_NUMBER.finditer(text)):
            place = chance.choice(found)
            return text[: place.start()] + chance.choice(["0.3", "2", "7", "0.015", "1"]) + text[place.end() :]
        case "cut":
            del lines[at]
        case "new":
            lines.insert(at, chance.choice(_NEW))
        case "name" if found := list(_WORD.finditer(text)):
            place = chance.choice(found)
            return text[: place.start()] + chance.choice(found)[0] + text[place.end() :]
        case "comment":
            lines[at] += " // here"
        case "operator" if found := list(re.finditer(r"[-+*/]", text)):
            place = chance.choice(found)
            return text[: place.start()] + chance.choice("+-*") + text[place.end() :]
        case _:
            lines[at : at + 2] = lines[at : at + 2][::-1]
    return "\n".join(lines)


def session(text: str, chance: random.Random, count: int) -> Iterator[str]:
    """A text, and what becomes of it by edits, of which some are taken back."""
    before = [text]
    yield text
    for _ in range(count):
        back, last = chance.choice(before), chance.choice([text, text, before[0]])
        text = back if chance.random() < 0.2 else edited(last, chance)
        before.append(text)
        yield text


def difference(one: object, other: object) -> str:
    """Where two trees differ in more than places; empty if nowhere."""
    if isinstance(one, Span) and isinstance(other, Span):
        return ""
    if is_dataclass(one) and type(one) is type(other):
        found = ((f.name, difference(getattr(one, f.name), getattr(other, f.name))) for f in fields(one))
        return next((f"{name}.{words}" for name, words in found if words), "")
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return next((words for pair in zip(one, other, strict=True) if (words := difference(*pair))), "")
    return "" if one == other else f" {one!r:.200} is not {other!r:.200}"


def without_places(graph: RenderGraph) -> RenderGraph:
    """A graph without the places of strands in the text."""
    nodes = tuple(replace(n, strands=tuple(replace(s, place="") for s in n.strands)) for n in graph.nodes)
    images = tuple(replace(image, place="") for image in graph.images)
    return replace(graph, nodes=nodes, images=images, heard=dict.fromkeys(graph.heard))


def told(found: Diagnostic) -> tuple[object, ...]:
    """All that a diagnostic says, with its places."""
    related = [(place(span), words) for span, words in found.related]
    fix = found.fix and (place(found.fix[0]), found.fix[1])
    return found.severity, found.code, found.message, found.hint, place(found.span), related, fix


def place(span: Span | None) -> tuple[object, ...] | None:
    """A place, with the text in which it is."""
    return span and (span.source.name, span.start, span.end, span.source.text)


def unlike(one: Build, other: Build) -> str:
    """What differs between two builds of a text; empty if nothing but the places of strands in the graph, and times."""
    if list(map(told, one.warnings)) != list(map(told, other.warnings)):
        return "\n".join(["warnings", *(d.render() for d in (*one.warnings, *other.warnings))])
    if words := difference(one.program, other.program):
        return f"program {words}"
    for mine, theirs, what in zip(_patch(one), _patch(other), ("names", "spindles", "sinks", "rest"), strict=True):
        if words := difference(mine, theirs):
            return f"{what} of the patch: {words}"
    if words := difference(without_places(one.graph), without_places(other.graph)):
        return f"graph {words}"
    for mine, theirs in zip(one.units, other.units, strict=True):
        if _unit(mine) != _unit(theirs):
            return f"kernels of {mine.subgraph.name}"
        if list(map(place, mine.loops)) != list(map(place, theirs.loops)):
            return f"loops of {mine.subgraph.name}: {' '.join(map(str, (*mine.loops, '|', *theirs.loops)))}"
    played = {each.name for each in fields(CompiledProgram)} - {"units", "contexts", "took"}
    pairs = [(name, getattr(one.compiled, name), getattr(other.compiled, name)) for name in sorted(played)]
    pairs += [(name, getattr(one, name), getattr(other, name)) for name in ("files", "media")]
    return next((name for name, mine, theirs in pairs if mine != theirs), "")


def _patch(made: Build) -> tuple[tuple[object, ...], ...]:
    """All that a patch binds and asks for, in its order: instances, spindles, sinks, and the rest. Statements may have
    other numbers than the text: they are left open."""
    patch = made.patch
    instances = tuple(
        (each.name, tuple(each.outputs), each.axes, each.sizes, each.doc, tuple(map(_kind, each.outputs.values())))
        for each in patch.instances.values()
    )
    spindles = tuple(patch.spindles)
    sinks = tuple((sink.label, sink.spec.name, sink.target, sink.statement.head) for sink in patch.sinks)
    return instances, spindles, sinks, (patch.settings, patch.parameters, patch.fade, patch.quantize, patch.media)


def _kind(output: OutputDefinition) -> type:
    return type(output.definition)


def _unit(unit: Unit) -> tuple[object, ...]:
    """All of a unit but the places of its loops, and code, which a build does not make."""
    kernels = tuple(map(repr, (unit.kernel, *unit.kernel.stages, *unit.points.values(), unit.feeds, unit.films)))
    return unit.hash, unit.subgraph, tuple(unit.points), kernels, unit.borrowed, unit.code, unit.code_of
