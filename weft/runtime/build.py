"""From a text to kernels: all stages in order, with what each took."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from weft.codegen.unit import Unit, compile_unit
from weft.contexts import ContextTable, is_led
from weft.errors import Source
from weft.graph.nodes import Subgraph
from weft.ir.program import Lowered
from weft.names import is_view
from weft.runtime.analysis import Analysis, Probe, analyse, each_subgraph
from weft.syntax.includes import read_text


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


@dataclass(frozen=True)
class Playable:
    """All of a program that is needed to play it. It is small, and can be handed to another process.

    `parameters` are the start values of what sliders and the like set, by the names that kernels read them by; `took`
    says how many milliseconds the text, the graph and the kernels took. `fade` (seconds) and `quantize` (beats) say how
    it wants to take over, if it does.
    """

    units: tuple[Unit, ...]
    settings: Mapping[str, float]
    parameters: Mapping[str, float]
    contexts: ContextTable
    took: tuple[float, float, float]
    fade: float | None = None
    quantize: float | None = None

    @property
    def uniforms(self) -> frozenset[str]:
        """What the kernels read from outside: `mouse@x`, `key@a`, …"""
        kernels = [kernel for unit in self.units for kernel in unit.kernels]
        led = {name for kernel in kernels for name, _ in kernel.coords if is_led(name)}
        return frozenset(name for kernel in kernels for name in kernel.uniforms) | led

    @property
    def streaming(self) -> Playable:
        """The part of it that streams."""
        units = tuple(unit for unit in self.units if self.contexts[unit.subgraph.context].streams)
        return replace(self, units=units)

    @property
    def views(self) -> tuple[str, ...]:
        """The pictures of strands that its kernels sample, by name."""
        paths = (path for unit in self.units for path in unit.kernel.pictures)
        return tuple(dict.fromkeys(path for path in paths if is_view(path)))

    @property
    def codes(self) -> dict[str, object]:
        """What backends have translated, by the hash of the unit."""
        return {unit.hash: unit.code for unit in self.units if unit.code is not None}

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture."""
        return int(self.settings["width"]), int(self.settings["height"])


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
    found = analyse(source, contexts, settings, probe, read, consume, room)
    started = time.perf_counter()
    made, left_out, warnings = each_subgraph(
        found, lambda sub: compile_unit(found.patch, found.graph, sub, contexts, optimise)
    )
    known = {**vars(found), "warnings": warnings}
    compile_ms = (time.perf_counter() - started) * 1e3
    units, lowered = tuple(unit for unit, _ in made), tuple(lowered for _, lowered in made)
    return Build(**known, units=units, lowered=lowered, left_out=tuple(left_out), compile_ms=compile_ms)
