"""What becomes of a program whose device fails while it plays: it goes on elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weft.backends.base import Backend, DeviceLostError, Env, Values
from weft.backends.cpu import CpuBackend
from weft.errors import WeftError
from weft.runtime.program import Stage, Swap


def recover(stage: Stage, swap: Swap, failure: Exception, env: Env, done: dict[int, Values]) -> bool:
    """Has what ran on the device that failed go on with the next backend, in the middle of a tick that is `done` so
    far, with all that can still be read of what it remembers. False if it is the program that failed, or nothing is
    left to go on with."""
    for backend in _suspects(swap, failure):
        if stage.cast.lose(backend, _reason(failure)):
            return mend(stage, swap, env, done)
    return False


def mend(stage: Stage, swap: Swap, env: Env, done: dict[int, Values]) -> bool:
    """Has the subgraphs of a program that cannot run any more where they were made ready run elsewhere. False if none
    does. Raises WeftError for one that nothing can run."""
    if not stage.cast.has_lost:
        return False
    lost = [part for part in (*swap.runner.parts, *swap.runner.feeding) if stage.cast.is_lost(part.backend)]
    for part in lost:
        new = stage.stand_in(part, swap.playable, env, swap.runner)
        swap.runner.replace(part, new)
        given = done.pop(id(part.compiled), None)
        if isinstance(given, np.ndarray):
            # It has had its turn in this tick. A picture that lies on the device is drawn anew.
            done[id(new.compiled)] = given
    return bool(lost)


def _suspects(swap: Swap, failure: Exception) -> Iterator[Backend]:
    """The backends whose device may have failed, the likeliest first. A failure that nobody explains is that of the
    program, unless it comes from beyond the CPU."""
    at = swap.runner.at
    if at is None:
        return
    if not isinstance(failure, DeviceLostError):
        if not isinstance(failure, WeftError) and not isinstance(at.backend, CpuBackend):
            yield at.backend
        return
    # It may have failed where another one reads from it, or where its picture is shown.
    others = [part.backend for part in swap.runner.parts if not isinstance(part.backend, CpuBackend)]
    yield from sorted([at.backend, *others], key=lambda backend: backend.context != failure.context)


def _reason(failure: Exception) -> str:
    if isinstance(failure, DeviceLostError):
        return failure.reason
    return f"{type(failure).__name__}: {failure}" if str(failure) else type(failure).__name__
