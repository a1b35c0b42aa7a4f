"""The diagnostics of `check`: all errors of a text, and what would be reported as soon as it ran.

Nothing is compiled: expressions are evaluated at a few places and in a few ticks, in plain Python and for a moment at
most. Problems that appear only elsewhere, or later, are left to the run itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain

from weft.codegen.kernel import LOOP_STEPS, NEST_STEPS
from weft.contexts import ContextSpec, ContextTable
from weft.errors import Diagnostic, Source, WeftError
from weft.graph.nodes import Subgraph
from weft.ir.element import Allowance, AllowanceSpentError, Element
from weft.ir.expr import Expr, Lowered, Pool, topological
from weft.ir.lower import lower
from weft.ir.rates import long_loops
from weft.runtime.build import Analysis, Probe, analyse, each_subgraph, without_collection
from weft.runtime.findings import (
    IN_PICTURE, IN_SOUND, as_warnings, loop_stopped, not_numbers, nothing_to_show, other_windows, places_of
)
from weft.runtime.inputs import InputState
from weft.syntax.ast import SpindleDefinition

# Operations that may be evaluated for one text: about a fifth of a second.
_MOST = 300_000

# The trial of a program evaluates as many ticks before it decides that an output is not a number.
_TICKS = 4

# Fewer places are not enough to say that an output is not a number anywhere.
_FEWEST = 25
_PLACES = [(0.37, 0.61), (0.01, 0.99), (0.99, 0.01), (0.99, 0.99), (0.01, 0.01)]
# Seconds between the moments at which a sound is evaluated.
_APART = 0.01234
_GRID = [((column + 0.5) / 12, (row + 0.5) / 8) for row in range(8) for column in range(12)]


def check(source: Source, contexts: ContextTable, probe: Probe | None = None) -> Sequence[Diagnostic]:
    """All errors and warnings about a text."""
    allowance = Allowance(_MOST)
    try:
        with without_collection():
            found = analyse(source, contexts, probe=probe)

            def forecast(subgraph: Subgraph) -> list[Diagnostic]:
                lowered = lower(found.patch, found.graph, subgraph, contexts, Pool(found.budget))
                return list(_forecast(found, lowered, allowance))

            forecasts, _, warnings = each_subgraph(found, forecast)
    except WeftError as failure:
        return failure.diagnostics
    if not found.patch.sinks:
        only_spindles = all(isinstance(statement, SpindleDefinition) for statement in found.program.statements)
        # A text that is included needs no output, so this is a warning. One with only spindles is always included.
        if found.program.statements and only_spindles:
            return warnings
        return (*warnings, *as_warnings([nothing_to_show(contexts)]))
    return (*warnings, *other_windows(found.patch), *chain.from_iterable(forecasts))


def _forecast(found: Analysis, lowered: Lowered, allowance: Allowance) -> Iterator[Diagnostic]:
    """What would be reported about a subgraph."""
    spec = found.contexts[lowered.context]
    has_long_loops = bool(long_loops(topological(lowered.swept), LOOP_STEPS, NEST_STEPS))
    is_heard_or_seen = spec.sweeps_plane or spec.streams
    doubtful = {o.label for o in lowered.outputs} if is_heard_or_seen else set()
    stopped: dict[Expr, None] = {}
    looked = 0
    with suppress(AllowanceSpentError):
        for place in (*_PLACES, *_GRID):
            if not doubtful and not (has_long_loops and looked < len(_PLACES)):
                break
            element = Element(lowered, allowance, LOOP_STEPS, NEST_STEPS, stopped)
            for tick in range(_TICKS):
                values = element.tick(*_given(found, spec, place, looked, tick))
                doubtful -= {label for label, value in values.items() if value is None or not math.isnan(value)}
            looked += 1
    for loop in stopped:
        yield loop_stopped(lowered.name, () if loop.span is None else (loop.span,))
    if looked >= _FEWEST:
        labels = [output.label for output in lowered.outputs if output.label in doubtful]
        problems = not_numbers(labels, places_of(found.patch), IN_SOUND if spec.streams else IN_PICTURE)
        yield from as_warnings(problems)  # as at the start of a performance: they may become numbers


def _given(
    found: Analysis, spec: ContextSpec, place: tuple[float, float], number: int, tick: int
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """The coordinates of the element with this number, and the uniforms, in a tick. In a sound, an element is a
    moment."""
    settings = found.patch.settings
    rate = settings["rate"] if spec.streams else spec.rate or settings["fps"]
    time = (_APART * number if spec.streams else 0.0) + tick / rate
    coords = {"x": place[0], "y": place[1], "abstime": time, "since": 0.0, "channel": 0.0}
    counters = {"width": settings["width"], "height": settings["height"], "absframe": float(tick), "dt": 1 / rate}
    return coords, {**InputState(), **found.patch.parameter_values(), **counters}
