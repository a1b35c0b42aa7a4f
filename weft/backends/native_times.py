"""Times given one by one, for machine code that computes them from their number: launches are taken apart into those
whose times lie evenly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from weft.backends.executor import check
from weft.backends.launch import TIME, Even, Launch, Reals, Value
from weft.backends.memory import StateMemory
from weft.codegen.base import Kernel


def evenly(kernel: Kernel, memory: StateMemory, launch: Launch) -> Iterator[Launch]:
    """The stretches of a launch, in their order; each time is exactly as it was given. Raises ValueError if the launch
    does not fit the kernel."""
    check(kernel, memory, launch)
    _, width = launch.shape
    times = np.asarray(launch.coords[TIME], np.float64)
    if times.ndim == 0:
        yield replace(launch, even=_alone(float(times)))
        return
    start = 0
    while start < width:
        count = width - start
        while (even := _even(times[start : start + count])) is None:
            count //= 2
        coords = {name: _part(value, start, count) for name, value in launch.coords.items()}
        yield replace(launch, shape=(1, count), coords=coords, even=even)
        start += count


def _even(times: Reals) -> Even | None:
    """How the times lie, if they are those of samples that follow one another at a whole rate; None if not."""
    first, last, count = float(times[0]), float(times[-1]), len(times)
    if count == 1:
        return _alone(first)
    if not math.isfinite(last - first) or last == first:
        return _alone(first) if (times == first).all() else None
    rate = round((count - 1) / (last - first)) if abs(last - first) > _SHORTEST else 0
    if not rate:
        return None
    found = Even(round(first * rate), rate)
    return found if (found.times(count) == times).all() else None


# Seconds that a launch lasts at least, for its rate to be a number that is worth a look.
_SHORTEST = 1e-9


def _alone(time: float) -> Even:
    """One time, for all elements."""
    return Even(0.0, math.inf, time)


def _part(value: Value, start: int, count: int) -> Value:
    return value[start : start + count] if isinstance(value, np.ndarray) and value.ndim else value
