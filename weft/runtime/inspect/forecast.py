"""The diagnostics of `check`: all errors of a text, and what would be reported as soon as it ran.

Nothing is compiled: expressions are evaluated at a few places and in a few ticks, in plain Python and for a moment at
most. Problems that appear only at other places, or later, are left to the run itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, count
from typing import TypeAlias

from weft.backends.hardware import cores
from weft.beats import BPM, Beats
from weft.codegen.kernel import LOOP_STEPS, NEST_STEPS
from weft.contexts import ContextSpec, ContextTable
from weft.errors import Diagnostic, Source, WeftError
from weft.graph.nodes import Subgraph
from weft.ir.expr import Expr, Lowered, Pool, topological
from weft.ir.lower import lower
from weft.ir.rates import PassContext, long_loops
from weft.permissions import DEFAULT_PERMISSIONS, Permissions
from weft.runtime.compiling.opened import Probe
from weft.runtime.compiling.stages import Analysis, Build, Request, analyse, build, each_subgraph, without_collection
from weft.runtime.hands.inputs import InputState
from weft.runtime.inspect.elements import Allowance, AllowanceSpentError, Element
from weft.runtime.inspect.precision import jerks
from weft.runtime.program.findings import (
    IN_PICTURE, IN_SOUND, as_warnings, loop_stopped, memory_lost, moves_in_jerks, not_numbers, nothing_to_show,
    place_in, places_of
)
from weft.syntax.ast import SpindleDefinition
from weft.syntax.scanner import read_text

# Operations that may be evaluated for one text: about a fifth of a second.
_MOST = 300_000

# The trial of a program evaluates as many ticks before it decides that an output is not a number.
_TICKS = 4

# Fewer places are not enough to say that an output is not a number anywhere.
_FEWEST = 25
_PLACES = [(0.37, 0.61), (0.01, 0.99), (0.99, 0.01), (0.99, 0.99), (0.01, 0.01)]
# A larger value is on its way to infinity. If there is none after these ticks, or operations, it is left to the run
# itself.
_LARGE = 1e15
_MOST_GROWING, _MOST_QUIET = 60_000, 1000

ADDITION = 2.5e-11
"""The seconds of a core for one addition of a pixel, at best. On most machines, the real time is longer than the
estimate."""

# If the estimate is more than this share of the time for a frame, the real time is measured.
_DOUBTFUL = 0.4

# The most operations of one pixel that are evaluated to find its cost. With more, the cost is unknown.
_MOST_COSTLY = 25_000

# Seconds between the moments at which a sound is evaluated.
_APART = 0.01234
_GRID = [((column + 0.5) / 12, (row + 0.5) / 8) for row in range(8) for column in range(12)]


Additions: TypeAlias = Callable[[tuple[int, int]], float]
"""The approximate cost of a frame of a size (width, height) in additions; infinite if it is too much to be counted."""

Measure: TypeAlias = Callable[[Build, Source, Additions], Sequence[Diagnostic]]


def check(
    source: Source, contexts: ContextTable, probe: Probe | None = None, permissions: Permissions = DEFAULT_PERMISSIONS,
    measure: Measure | None = None, read: Callable[[str], str] = read_text,
) -> Sequence[Diagnostic]:  # fmt: skip
    """All errors and warnings about a text; see `weft.runtime.compiling.stages.Request` for the arguments. If it is
    doubtful that the pictures keep their rate, `measure` decides; see `weft.runtime.inspect.pace.too_slow`."""
    request = Request(source, contexts, probe=probe, permissions=permissions, read=read)
    allowance = Allowance(_MOST)
    pictures: list[Lowered] = []
    try:
        with without_collection():
            found = analyse(request)

            def forecast(subgraph: Subgraph) -> list[Diagnostic]:
                pool = Pool(found.budget)
                lowered = lower(found.patch, found.graph, subgraph, contexts, pool)
                if contexts[lowered.context].sweeps_plane:
                    pictures.append(lowered)
                return [*_forecast(found, lowered, allowance), *_jerks(found, lowered, pool, allowance)]

            forecasts, warnings = each_subgraph(found, forecast)
            size = int(found.patch.settings["width"]), int(found.patch.settings["height"])
            seconds = _additions(found, pictures, size) * ADDITION / cores()
            is_doubtful = seconds * found.patch.settings["fps"] > _DOUBTFUL
    except WeftError as failure:
        return failure.diagnostics
    if not found.patch.sinks:
        only_spindles = all(isinstance(statement, SpindleDefinition) for statement in found.program.statements)
        # A text that is included needs no output, so this is a warning. One with only spindles is always included.
        if found.program.statements and only_spindles:
            return warnings
        return (*warnings, *as_warnings([nothing_to_show(contexts, source)]))
    late: Sequence[Diagnostic] = ()
    if is_doubtful and measure is not None:
        with suppress(Exception):  # a patch that cannot be measured is reported when it plays
            program = build(request)
            late = measure(program, source, lambda size: _additions(found, pictures, size))
    return (*warnings, *chain.from_iterable(forecasts), *late)


def _additions(found: Analysis, pictures: Sequence[Lowered], size: tuple[int, int]) -> float:
    """The approximate cost of a frame of a size (width, height) in additions."""
    return sum(_additions_of_pixel(found, each, size) for each in pictures) * size[0] * size[1]


def _additions_of_pixel(found: Analysis, lowered: Lowered, size: tuple[int, int]) -> float:
    spec, samples = found.contexts[lowered.context], found.patch.settings["samples"]
    element = Element(lowered, Allowance(_MOST_COSTLY))
    coords, uniforms = _given(found, spec, _PLACES[0], 0, 0)
    try:
        element.tick(coords, {**uniforms, "width": float(size[0]), "height": float(size[1])})
    except AllowanceSpentError:
        return math.inf
    return element.additions(spec) * samples**2


def _forecast(found: Analysis, lowered: Lowered, allowance: Allowance) -> Iterator[Diagnostic]:
    """The warnings that a run would report about a subgraph."""
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
            element = Element(lowered, allowance, stopped)
            for tick in range(_TICKS):
                values = element.tick(*_given(found, spec, place, tick, looked))
                doubtful -= {label for label, value in values.items() if value is None or not math.isnan(value)}
            looked += 1
    for loop in stopped:
        yield loop_stopped(lowered.name, () if loop.span is None else (loop.span,))
    yield from _growth(found, lowered, allowance)
    if looked >= _FEWEST:
        labels = [output.label for output in lowered.outputs if output.label in doubtful]
        problems = not_numbers(labels, places_of(found.patch), IN_SOUND if spec.streams else IN_PICTURE)
        yield from as_warnings(problems)  # as at the start of a performance: they may become numbers


def _growth(found: Analysis, lowered: Lowered, allowance: Allowance) -> Iterator[Diagnostic]:
    """The warnings about memory that grows without end, if it does so soon."""
    spec, slots = found.contexts[lowered.context], [slot for slot in lowered.slots if slot.outlives]
    element = Element(lowered, Allowance(min(allowance.left, _MOST_GROWING)))
    large: set[str] = set()
    with suppress(AllowanceSpentError):
        for tick in count() if slots else ():
            coords, uniforms = _given(found, spec, _PLACES[0], tick, 0)
            element.tick(coords, uniforms)
            sizes = {slot.key: element.largest(slot) for slot in slots}
            lost = [key for key in sizes if key in large and not math.isfinite(sizes[key])]
            if lost:
                yield memory_lost(lost, coords["abstime"], place_in(found.patch, lost[0]))
                return
            large.update(key for key, size in sizes.items() if _LARGE < size < math.inf)
            if tick > _MOST_QUIET and not large:
                return


def _jerks(found: Analysis, lowered: Lowered, pool: Pool, allowance: Allowance) -> Iterator[Diagnostic]:
    """The warnings about single precision after a long time."""
    spec, fps = found.contexts[lowered.context], found.patch.settings["fps"]
    if not spec.sweeps_plane:
        return
    shown = places_of(found.patch).get(lowered.outputs[0].label.rpartition(".")[0]) if lowered.outputs else None
    with suppress(AllowanceSpentError):
        context, given = PassContext(pool, spec, found.patch.media), partial(_given, found, spec, number=0)
        for place, after in jerks(lowered, context, given, fps, allowance):
            yield moves_in_jerks(place or shown, after)


def _given(
    found: Analysis, spec: ContextSpec, place: tuple[float, float], tick: int, number: int
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """The coordinates of the element with this number, and the uniforms, in a tick. In a sound, an element is a
    moment."""
    settings = found.patch.settings
    rate = settings["rate"] if spec.streams else spec.rate or settings["fps"]
    time = (_APART * number if spec.streams else 0.0) + tick / rate
    coords = {"x": place[0], "y": place[1], "abstime": time, "since": 0.0, "channel": 0.0}
    counters = {"width": settings["width"], "height": settings["height"], "absframe": float(tick), "dt": 1 / rate}
    counters |= {BPM: settings["bpm"], **Beats.steady(settings["bpm"]).inputs}
    return coords, {**InputState(), **found.patch.parameter_values(), **counters}
