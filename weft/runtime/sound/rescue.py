"""What becomes of a sound whose device fails while it plays: it goes on elsewhere, in the same block."""

from __future__ import annotations

from weft.backends.base import DeviceLostError, Env, as_array
from weft.backends.launch import Reals
from weft.runtime.coordinator import Part, ProgramRunner
from weft.runtime.fallback import stand_in
from weft.runtime.program import Stage, Swap


class Rescue:
    """Runs the subgraphs of sounds, or what has taken their place."""

    def __init__(self) -> None:
        self._in_place: dict[int, tuple[Part, Part]] = {}
        """By the identity of a subgraph that cannot run any more: its part, and the one that runs instead."""

    def values(self, stage: Stage, swap: Swap, part: Part, env: Env) -> Reals:
        """What a subgraph gives in a block, [channels, outputs, samples]. Raises DeviceLostError if its device fails
        and nothing is left that could take its place."""
        _, acting = self._in_place.get(id(part.compiled), (part, part))
        if not stage.cast.is_lost(acting.backend):
            try:
                return _run(acting, env, swap.runner)
            except DeviceLostError as failure:
                if not stage.cast.lose(acting.backend, failure.reason):
                    raise
        # What it has been given meanwhile may be better than what it began with.
        latest = Part(acting.compiled.unit, acting.backend, acting.compiled)
        found = stand_in(stage, latest, swap.playable, env, swap.runner)
        self._in_place[id(part.compiled)] = (part, found)
        return _run(found, env, swap.runner)

    def acting(self, swap: Swap) -> list[Part]:
        """The parts of a program that run for it, with what they remember by now."""
        return [self._in_place.get(id(part.compiled), (part, part))[1] for part in swap.runner.parts]

    def keep(self, parts: list[Part]) -> None:
        """Forgets what has taken the place of any other parts than these."""
        known = {id(part.compiled) for part in parts}
        self._in_place = {place: pair for place, pair in self._in_place.items() if place in known}


def _run(part: Part, env: Env, runner: ProgramRunner) -> Reals:
    return as_array(part.backend.execute_subgraph(part.compiled, env, runner))
