"""Steps in a sound: samples at which it jumps, which are heard as clicks.

A step bends a sound twice, one way and back at the next sample, by more than the sound bends around it. A sound that
begins or ends at 0, like the attack of a drum, has a corner there: it bends once, which is not a step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

STANDS_OUT = 4.0
"""The least ratio of a step to the bends around it."""

QUIETEST = 0.003
"""The size below which a step is inaudible."""

_AROUND = 0.01
_NEAR = 2


@dataclass(frozen=True)
class Step:
    """A jump: its time, in seconds, and its height."""

    time: float
    height: float


def steps(samples: npt.NDArray[np.floating], rate: float) -> list[Step]:
    """The steps of a sound, [samples] or [samples, channels], without its first and last hundredth of a second."""
    channels = np.asarray(samples, float).reshape(len(samples), -1).T
    return sorted((step for channel in channels for step in _steps(channel, rate)), key=lambda step: step.time)


def _steps(samples: npt.NDArray[np.float64], rate: float) -> list[Step]:
    bends = np.diff(samples, 2)
    sizes = np.abs(bends)
    jumps = np.where(bends[:-1] * bends[1:] < 0, np.minimum(sizes[:-1], sizes[1:]), 0)
    around = round(_AROUND * rate)
    found = []
    for start in range(around, len(jumps) - 2 * around + 1, around):
        at = start + int(jumps[start : start + around].argmax())
        if jumps[at] < QUIETEST:
            continue
        before, after = sizes[at - around : at - _NEAR], sizes[at + 1 + _NEAR : at + around]
        if jumps[at] > STANDS_OUT * max(np.quantile(before, 0.99), np.quantile(after, 0.99)):
            found.append(Step((at + 2) / rate, float(jumps[at])))
    return found
