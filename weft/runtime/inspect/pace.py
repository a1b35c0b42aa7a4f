"""Whether the pictures of a text keep their rate on this machine, before it plays.

What a frame costs is first estimated from the operations of a pixel, which takes no time. Only if there is any doubt
is it measured: a part of the pixels, by the code that would play a moment after the start, in time of the processor.
The rest of the machine does not count, so a busy one is no reason. A graphics card is not opened: what it takes follows
from its costs and those of a core (`weft bench` measures them).
"""

from __future__ import annotations

import math
import os

from weft.backends import hardware
from weft.backends.select import Choice
from weft.contexts import VISUAL
from weft.errors import Diagnostic, Source
from weft.runtime.compiling.compiler import core_seconds
from weft.runtime.compiling.stages import Build
from weft.runtime.inspect.forecast import ADDITION, Additions
from weft.runtime.inspect.measure import constant
from weft.runtime.program.findings import costliest, place_named, slow
from weft.runtime.program.program import ProgramLoader, Setup

# How many times as long as there is time a frame has to take before anything is said: cores share work worse than is
# assumed here, and none is as fast in every minute.
_MARGIN = 1.5

# The context of a backend that runs nothing.
_ANY = "*"

# Seconds of a core for one frame that is measured, by the estimate, and the least pixels of its longer side.
_MEASURED, _LEAST_SIDE = 0.05, 64


def too_slow(
    program: Build, source: Source, additions: Additions, loader: ProgramLoader | None = None
) -> tuple[Diagnostic, ...]:
    """A warning if the pictures do not keep the rate of the patch, with the statement that takes most of the work.
    Without a `loader`, they run on what a performance would run on. Raises WeftError for what cannot be loaded."""
    loader = loader or Setup(source.name, environment=os.environ.get("WEFT_BACKEND")).open()[1]
    compiled, fps = program.compiled, program.patch.settings["fps"]
    width, height = compiled.size
    share = min(1.0, _MEASURED / max(additions(compiled.size) * ADDITION, 1e-9))
    side = max(min(_LEAST_SIDE, width, height), math.ceil(max(width, height) * math.sqrt(share)))
    measured = max(1, round(width * side / max(width, height))), max(1, round(height * side / max(width, height)))
    # A pixel of a larger picture may take more: a blur of a share of the height has more steps.
    pixels = measured[0] * measured[1]
    more, all_of_it = width * height / pixels, additions(compiled.size)
    if math.isfinite(all_of_it):
        more = max(more, all_of_it / max(additions(measured), 1.0))
    card = _card(program, loader)
    if card is not None and card.backend.context == _ANY:
        return ()  # nothing is drawn
    seconds = pixels * more * core_seconds(compiled, _on_cpu(loader), side, constant)
    if card is None:
        where, frame = _cores(hardware.cores()), seconds / hardware.cores()
    else:
        where, costs = card.device.name, card.costs
        frame = costs.launch + seconds * costs.gpu_operation / costs.cpu_operation
    if frame * fps < _MARGIN:
        return ()
    costs_most = costliest(program.units, source.name)
    place = None if costs_most is None else place_named(source, costs_most[0])
    return (slow(frame, fps, where, costs_most, compiled.size, place),)


def _cores(count: int) -> str:
    return "one core" if count == 1 else f"the {count} cores here"


def _card(program: Build, loader: ProgramLoader) -> Choice | None:
    """The card that draws the pictures; None if the CPU draws any of them."""
    found: Choice | None = None
    for unit in program.units:
        if unit.subgraph.context == VISUAL.name:
            width, height = program.compiled.size_of(unit, program.compiled.size)
            placed = loader.assignment.placed(unit, (height, width))
            if placed is None or placed[0].is_cpu:
                return None
            found = placed[0]
    return found


def _on_cpu(loader: ProgramLoader) -> ProgramLoader:
    """A loader that runs everything on the CPU, as where there is no card."""
    def cpu_of(choice: Choice) -> Choice:
        return next((each for each in (choice, *choice.fallbacks) if each.is_cpu), choice)

    return ProgramLoader({name: cpu_of(choice) for name, choice in loader.choices.items()}, missing=loader.missing)
