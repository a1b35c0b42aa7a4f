"""A compiled program: all that is needed to play it, without its text and its graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from weft.beats import Beats
from weft.codegen.kernel import Unit
from weft.contexts import ContextTable, is_smoothed
from weft.graph.nodes import Subgraph
from weft.names import CLOCK_DAY, CLOCK_START, is_count, is_sent, is_view
from weft.outlets import order_of_target
from weft.runtime.hands.parameters import ParameterSpec


@dataclass(frozen=True)
class CompiledProgram:
    """All that is needed to play a program. It is small, and can be sent to another process.

    `parameters` are sliders and the like, in the order of the text; `took` has the milliseconds spent on the text, the
    graph and the kernels. `fade` (seconds) and `quantize` (beats) are how the patch asks to take over, if it does.
    """

    units: tuple[Unit, ...]
    settings: Mapping[str, float]
    parameters: tuple[ParameterSpec, ...]
    contexts: ContextTable
    took: tuple[float, float, float]
    fade: float | None = None
    quantize: float | None = None
    file: str = ""
    """The file of its text. Programs of different files share no state."""
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The width and height of each picture whose size is not that of the program, by its target."""
    heard: tuple[str, ...] = ()
    """The pictures of what analyses hear in its sound, by name. Any of its units may sample them."""
    glides: bool = False
    """Whether a save that changes nothing but numbers moves them to their new values, for as long as a fade takes."""

    @cached_property
    def starts(self) -> dict[str, float]:
        """The initial values of the parameters, by the names that kernels read."""
        pairs = (zip(spec.inputs, spec.start, strict=True) for spec in self.parameters)
        return {name: value for pair in pairs for name, value in pair}

    def fitted(self, values: Mapping[str, float]) -> dict[str, float]:
        """The values of its parameters: these, each in its range, and the initial ones of the others."""
        return {
            name: spec.fitted(values.get(name, self.starts[name])) for spec in self.parameters for name in spec.inputs
        }

    @property
    def inputs(self) -> dict[str, float]:
        """The initial values of the parameters, and the beats in the tempo of the text."""
        return {**self.starts, **Beats.steady(self.settings["bpm"]).inputs}

    @cached_property
    def raw(self) -> frozenset[str]:
        """The inputs that sounds take over without smoothing: parameters that say so, counts, and the time of day."""
        parameters = (name for spec in self.parameters if spec.is_raw for name in spec.inputs)
        jumping = (name for name in self.uniforms if is_count(name) or name in (CLOCK_START, CLOCK_DAY))
        return frozenset((*parameters, *jumping))

    @cached_property
    def sent(self) -> tuple[str, ...]:
        """The names of what others send to it."""
        return tuple(sorted(filter(is_sent, self.uniforms)))

    @property
    def uniforms(self) -> frozenset[str]:
        """What the kernels read from outside: `mouse@x`, `key@a`, …"""
        kernels = [kernel for unit in self.units for kernel in unit.kernels]
        smoothed = {name for kernel in kernels for name, _ in kernel.coords if is_smoothed(name)}
        return frozenset(name for kernel in kernels for name in kernel.uniforms) | smoothed

    @property
    def streaming(self) -> CompiledProgram:
        """The program with only the units that stream."""
        units = tuple(unit for unit in self.units if self.contexts[unit.subgraph.context].streams)
        return replace(self, units=units)

    def showing(self, first: str = "") -> CompiledProgram:
        """The program with only its first picture (see `pictures_of`), and what that reads."""
        pictures = sorted(self.pictures, key=lambda each: each.target != first) if first else self.pictures
        hidden = {each.name for each in pictures[1:] if not each.exposes}
        for unit in reversed(self.units):  # a subgraph comes after those that it depends on
            if unit.subgraph.name not in hidden:
                hidden.difference_update(unit.subgraph.depends_on)
        return replace(self, units=tuple(unit for unit in self.units if unit.subgraph.name not in hidden))

    @property
    def pictures(self) -> list[Subgraph]:
        """The subgraphs that draw pictures, that of the first window first."""
        subgraphs = (unit.subgraph for unit in self.units if unit.subgraph.sinks)
        pictures = [each for each in subgraphs if self.contexts[each.context].sweeps_plane]
        return sorted(pictures, key=lambda each: order_of_target(each.target))

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

    def size_of(self, unit: Unit, size: tuple[int, int]) -> tuple[int, int]:
        """Width and height of the picture of a unit. `size` is that of the program, which is smaller in a trial."""
        own = self.sizes.get(unit.subgraph.target)
        if own is None or not self.contexts[unit.subgraph.context].sweeps_plane:
            return size
        scale = size[0] / self.size[0]
        return max(1, round(own[0] * scale)), max(1, round(own[1] * scale))
