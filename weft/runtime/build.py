"""From a text to kernels: all stages in order, with what each took."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weft.codegen.unit import Unit, compile_unit
from weft.contexts import ContextTable
from weft.errors import Source
from weft.graph.nodes import Subgraph
from weft.runtime.analysis import Analysis, Probe, analyse, each_subgraph
from weft.syntax.includes import read_text


@dataclass(frozen=True)
class Build(Analysis):
    """A program, compiled. `units` stand in an order in which they can run; `left_out` are subgraphs that need
    something this installation lacks."""

    units: tuple[Unit, ...]
    left_out: tuple[Subgraph, ...]
    compile_ms: float

    @property
    def uniforms(self) -> frozenset[str]:
        """What the kernels read from outside: `mouse@x`, `key@a`, …"""
        return frozenset(name for unit in self.units for name in unit.kernel.uniforms)


def build(
    source: Source,
    contexts: ContextTable,
    settings: Mapping[str, float] | None = None,
    optimise: bool = True,
    probe: Probe | None = None,
    read: Callable[[str], str] = read_text,
    consume: str | None = None,
) -> Build:
    """Compiles a text; see `analyse` for what it may be given. Without `optimise`, nothing is folded or hoisted.

    Raises WeftError with all diagnostics if there is an error among them.
    """
    found = analyse(source, contexts, settings, probe, read, consume)
    started = time.perf_counter()
    units, left_out, warnings = each_subgraph(
        found, lambda sub: compile_unit(found.patch, found.graph, sub, contexts, optimise)
    )
    known = {**vars(found), "warnings": warnings}
    compile_ms = (time.perf_counter() - started) * 1e3
    return Build(**known, units=tuple(units), left_out=tuple(left_out), compile_ms=compile_ms)
