"""Whether the pictures of a text keep their rate on this machine, before it plays.

The cost of a frame is first estimated from the operations of a pixel, which takes no time. Only if there is any doubt
is it measured: a part of the pixels, by the code that would play a moment after the start, in processor time. Other
work of the machine does not count, so a busy machine makes no difference. A graphics card is not opened: its time
follows from its costs and those of a core (`weft bench` measures them).
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

# A frame has to take this many times the available time before there is a warning: cores share work less well than is
# assumed here, and their speed changes from minute to minute.
_MARGIN = 1.5

# The context of a backend that runs nothing.
_ANY = "*"

# The estimated seconds of a core for one measured frame, and the fewest pixels of its longer side.
_MEASURED, _LEAST_SIDE = 0.05, 64


def too_slow(
    program: Build, source: Source, additions: Additions, loader: ProgramLoader | None = None
) -> tuple[Diagnostic, ...]:
    """A warning if the pictures do not keep the rate of the patch, with the statement that takes most of the work.
    Without a `loader`, they run on the devices that a performance would use. Raises WeftError for what cannot be
    loaded."""
    loader = loader or Setup(source.name, environment=os.environ.get("WEFT_BACKEND")).open()[1]
    compiled, fps = program.compiled, program.patch.settings["fps"]
    width, height = compiled.size
    share = min(1.0, _MEASURED / max(additions(compiled.size) * ADDITION, 1e-9))
    side = max(min(_LEAST_SIDE, width, height), math.ceil(max(width, height) * math.sqrt(share)))
    measured = max(1, round(width * side / max(width, height))), max(1, round(height * side / max(width, height)))
    # A pixel of a larger picture may cost more: a blur whose radius is a share of the height has more steps.
    pixels = measured[0] * measured[1]
    more, all_of_it = width * height / pixels, additions(compiled.size)
    if math.isfinite(all_of_it):
        more = max(more, all_of_it / max(additions(measured), 1.0))
    card = _card(program, loader)
    if card is not None and card.backend.context == _ANY:
        return ()  # nothing is drawn
    seconds = pixels * more * core_seconds(compiled, _on_cpu(loader), side, constant)
    if card is None:
        count = hardware.cores()
        where, frame = "one core" if count == 1 else f"the {count} cores here", seconds / count
    else:
        where, costs = card.device.name, card.costs
        frame = costs.launch + seconds * costs.gpu_operation / costs.cpu_operation
    if frame * fps < _MARGIN:
        return ()
    costs_most = costliest(program.units, source.name)
    place = None if costs_most is None else place_named(source, costs_most[0])
    return (slow(frame, fps, where, costs_most, compiled.size, place),)


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
    """A loader that runs everything on the CPU, as if there was no card."""
    def cpu_of(choice: Choice) -> Choice:
        return next((each for each in (choice, *choice.fallbacks) if each.is_cpu), choice)

    return ProgramLoader({name: cpu_of(choice) for name, choice in loader.choices.items()}, missing=loader.missing)
