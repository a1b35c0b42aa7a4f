"""What strands that change with the time alone have been during the last seconds of a performance: evaluated again, so
that the performance has nothing to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from weft.beats import BPM, Beats
from weft.contexts import COMPUTE
from weft.errors import Source, WeftError
from weft.ir.expr import Lowered, Pool
from weft.ir.lower import lower
from weft.runtime.compiling.stages import Analysis, Request, analyse
from weft.runtime.hands.inputs import InputState
from weft.runtime.inspect.elements import Allowance, AllowanceSpentError, Element

# The seconds that a curve shows, and its points.
SECONDS, POINTS = 2.0, 16

# The most operations for all curves of a text, at one moment.
_MOST = 100_000


@dataclass(frozen=True)
class TimeCurves:
    """Strands of a text, by their names, that can be evaluated at any time: those that neither vary over a picture nor
    remember anything."""

    names: Sequence[str]
    _found: Analysis
    _lowered: Lowered

    @classmethod
    def among(cls, request: Request, strands: Sequence[str]) -> TimeCurves | None:
        """Of those strands that can be evaluated, given as `instance@output`; None if none can."""
        found = cls.of(request, strands) if strands else None
        if found is None and len(strands) > 1:
            able = [strand for strand in strands if cls.of(request, [strand]) is not None]
            found = cls.of(request, able) if able else None
        return found

    @classmethod
    def of(cls, request: Request, strands: Sequence[str]) -> TimeCurves | None:
        """Of all these strands; None if one of them cannot be evaluated."""
        text = f"{request.source.text}\ncompute({', '.join(strands)})\n"
        with suppress(WeftError):  # such as a text that computes numbers already
            found = analyse(replace(request, source=Source(request.source.name, text)))
            for subgraph in found.graph.subgraphs:
                if subgraph.context == COMPUTE.name and subgraph.sinks:
                    lowered = lower(found.patch, found.graph, subgraph, found.contexts, Pool(found.budget))
                    if not lowered.slots and len(lowered.outputs) == len(strands):
                        return cls(tuple(strands), found, lowered)
        return None

    def until(self, now: float, given: Mapping[str, float]) -> dict[str, list[float]]:
        """The values of each strand up to a time of the performance, with the values of its parameters."""
        settings, values = self._found.patch.settings, dict[str, list[float]]()
        element = Element(self._lowered, Allowance(_MOST))
        uniforms = {**InputState(), **self._found.patch.parameter_values(), **given}
        uniforms |= {"width": settings["width"], "height": settings["height"], "dt": 1 / settings["fps"]}
        uniforms |= {BPM: settings["bpm"], **Beats.steady(settings["bpm"]).inputs}
        with suppress(AllowanceSpentError):
            for point in range(POINTS):
                time = max(0.0, now - SECONDS * (1 - (point + 1) / POINTS))
                coords = {"x": 0.5, "y": 0.5, "abstime": time, "since": 0.0, "channel": 0.0}
                found = element.tick(coords, {**uniforms, "absframe": float(int(time * settings["fps"]))})
                for name, value in zip(self.names, found.values(), strict=True):
                    if value is not None:
                        values.setdefault(name, []).append(float(value))
        return {name: each for name, each in values.items() if len(each) == POINTS}
