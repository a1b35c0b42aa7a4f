"""A compiled program: all that is needed to play it, without its text and its graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from weft.codegen.kernel import Unit
from weft.contexts import ContextTable, is_smoothed
from weft.names import is_view


@dataclass(frozen=True)
class CompiledProgram:
    """All that is needed to play a program. It is small, and can be sent to another process.

    `parameters` are the initial values of sliders and the like, by the names that kernels read; `took` has the
    milliseconds spent on the text, the graph and the kernels. `fade` (seconds) and `quantize` (beats) are how the patch
    asks to take over, if it does.
    """

    units: tuple[Unit, ...]
    settings: Mapping[str, float]
    parameters: Mapping[str, float]
    contexts: ContextTable
    took: tuple[float, float, float]
    fade: float | None = None
    quantize: float | None = None
    heard: tuple[str, ...] = ()
    """The pictures of what analyses hear in its sound, by name; any of its units may sample them."""

    @property
    def uniforms(self) -> frozenset[str]:
        """What the kernels read from outside: `mouse@x`, `key@a`, …"""
        kernels = [kernel for unit in self.units for kernel in unit.kernels]
        smoothed = {name for kernel in kernels for name, _ in kernel.coords if is_smoothed(name)}
        return frozenset(name for kernel in kernels for name in kernel.uniforms) | smoothed

    @property
    def streaming(self) -> CompiledProgram:
        """The same with only the units that stream."""
        units = tuple(unit for unit in self.units if self.contexts[unit.subgraph.context].streams)
        return replace(self, units=units)

    @property
    def views(self) -> tuple[str, ...]:
        """The pictures of strands that its kernels sample, by name."""
        paths = (path for unit in self.units for path in unit.kernel.pictures)
        return tuple(dict.fromkeys(path for path in paths if is_view(path)))

    @property
    def codes(self) -> dict[str, object]:
        """The code that backends have translated, by the hash of the unit."""
        return {unit.hash: unit.code for unit in self.units if unit.code is not None}

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture."""
        return int(self.settings["width"]), int(self.settings["height"])
