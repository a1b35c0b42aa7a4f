"""From a text to kernels: all stages in order, with what each took."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weft.codegen.compilation import compile_unit
from weft.codegen.unit import Unit
from weft.contexts import ContextTable
from weft.errors import Source
from weft.graph.nodes import Subgraph
from weft.ir.program import Lowered
from weft.runtime.analysis import Analysis, Probe, analyse, each_subgraph, without_collection
from weft.runtime.playable import Playable
from weft.syntax.texts import read_text


@dataclass(frozen=True)
class Build(Analysis):
    """A program, compiled. `units` stand in an order in which they can run, `lowered` is what each was compiled from;
    `left_out` are subgraphs that need something this installation lacks."""

    units: tuple[Unit, ...]
    lowered: tuple[Lowered, ...]
    left_out: tuple[Subgraph, ...]
    compile_ms: float

    @property
    def playable(self) -> Playable:
        """What is left when the text and all that it was understood by are taken away."""
        return Playable(
            self.units, self.patch.settings, self.patch.parameter_values(), self.contexts,
            (self.parse_ms, self.graph_ms, self.compile_ms), self.patch.fade, self.patch.quantize,
        )  # fmt: skip


def build(
    source: Source,
    contexts: ContextTable,
    settings: Mapping[str, float] | None = None,
    optimise: bool = True,
    probe: Probe | None = None,
    read: Callable[[str], str] = read_text,
    consume: str | None = None,
    room: tuple[int, int] | None = None,
) -> Build:
    """Compiles a text; see `analyse` for what it may be given. Without `optimise`, nothing is folded or hoisted.

    Raises WeftError with all diagnostics if there is an error among them.
    """
    with without_collection():
        found = analyse(source, contexts, settings, probe, read, consume, room)
        started = time.perf_counter()
        made, left_out, warnings = each_subgraph(
            found, lambda sub: compile_unit(found.patch, found.graph, sub, contexts, optimise, found.budget)
        )
    known = {**vars(found), "warnings": warnings}
    compile_ms = (time.perf_counter() - started) * 1e3
    units, lowered = tuple(unit for unit, _ in made), tuple(lowered for _, lowered in made)
    return Build(**known, units=units, lowered=lowered, left_out=tuple(left_out), compile_ms=compile_ms)
