"""From the kernel of a sound to a module of LLVM's language: a function that computes a launch of any number of
samples, chunk by chunk, in double precision."""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.base import Kernel
from weft.codegen.native.chunks import chunks_function
from weft.codegen.native.frame import frame_function
from weft.codegen.native.layout import SeriesLayout
from weft.codegen.native.module import is_huge
from weft.codegen.native.scan import scans, write_scans
from weft.codegen.native.spread import write_interchanged
from weft.codegen.native.stretch_writer import GIVEN, ChunkWriter, Scratch, write_vectors
from weft.codegen.native.stretches import is_series, stretches, with_waves
from weft.codegen.native.target import Isa
from weft.codegen.native.turn import write_recurrence
from weft.codegen.native.types import DOUBLE
from weft.codegen.native.writer import ArgumentTable, FunctionWriter
from weft.ir.rates import Rate


@dataclass(frozen=True, slots=True)
class SeriesModule:
    """The text of a module, and the interface of its function."""

    text: str
    layout: SeriesLayout


def suits_series(kernel: Kernel) -> bool:
    """Whether machine code suits a series: it calls nobody, and LLVM is done with it in time."""
    calls = any(node.op == "strand" for _, node in kernel.walk())
    return is_series(kernel) and not is_huge(kernel) and not calls


def emit_series(kernel: Kernel, isa: Isa, lanes: int, is_first: bool = False) -> SeriesModule:
    """The module of a kernel that `suits_series`, for vectors of so many lanes, a power of two. In the first tier, a
    sine stays a sine unless it is many: to begin a wave takes more code."""
    places, scratch = ArgumentTable(), Scratch()
    graph = with_waves(kernel, is_first)
    parts = stretches(graph, [store.value for store in graph.stores])
    functions: list[str] = []
    declared = set[str]()
    names: list[str] = []
    helpers: dict[str, list[str]] = {}
    for number, part in enumerate(parts):
        found = scans(kernel, graph, part) if part.way == "turn" and not is_first else ()
        ways = ["scan", "turn"] if found else [part.way]
        for way in ways:
            name = f"{way}{number}"
            w = ChunkWriter(name, isa, {"turn": 1, "scan": isa.doubles}.get(way, lanes), places, scratch)
            w.graph = graph
            match way:
                case "vectors":
                    write_vectors(w, kernel, graph, part)
                case "spread":
                    write_interchanged(w, kernel, graph, part)
                case "scan":
                    write_scans(w, kernel, graph, part, found)
                case "turn":
                    write_recurrence(w, kernel, graph, part, lanes, isa.doubles if found else 0)
            functions += _function(w, name)
            names.append(name)
            declared |= w.declared
            helpers |= w.helpers
    frame, in_frame = frame_function(kernel, isa, places, DOUBLE)
    outer = FunctionWriter(isa, 1, places, Rate.ELEMENT, DOUBLE)
    functions += chunks_function(outer, names, lanes, bool(frame))
    called = [line for text in helpers.values() for line in text]
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{isa.bits}" }}'
    return SeriesModule(
        "\n".join([*sorted(declared | in_frame), *called, *functions, *frame, attributes, ""]),
        SeriesLayout(places.fields, places.scalars, places.numbers, lanes, scratch.size),
    )


def _function(w: ChunkWriter, name: str) -> list[str]:
    return [
        f"define internal void @{name}({GIVEN}) #0 {{", "entry:", *w.entry, "  br label %begin",
        "begin:", *w.text, "  ret void", "}",
    ]  # fmt: skip
