"""What the sounds must be: the formulas of patches/bench in double precision, and the comparison with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.sound_peers.peer import RATE, Samples

# How far a participant may be off that keeps its phases in double precision. Sines in single precision and the samples
# that come of them are off by some 1e-7.
TOLERANCE = 1e-6

# After so many samples nothing can be told any more of what a2 remembers: 0.9 to this power is 1e-23.
_FORGOTTEN = 500

_Line = npt.NDArray[Any]


def sound(kernel: str, first: int, count: int) -> Samples:
    """So many samples of a kernel, from one on: [channels, samples]."""
    lead = min(first, _FORGOTTEN) if kernel == "a2" else 0
    t = np.arange(first - lead, first + count) / RATE
    return np.array(KERNELS[kernel](t))[:, lead:]


def wrong(got: Samples, expected: Samples, tolerance: float) -> str | None:
    """What is wrong with samples; None if they are what is expected."""
    if got.shape != expected.shape:
        return f"{got.shape} samples instead of {expected.shape}"
    apart = float(np.abs(got - expected).max())
    return None if apart <= tolerance else f"a wrong sound: {apart:.1e} off, where {tolerance:.0e} is allowed"


def _partials(t: _Line) -> list[_Line]:
    left, right = np.zeros_like(t), np.zeros_like(t)
    for i in range(64):
        level = np.sin(t * (0.1 + 0.013 * i) * 2 * np.pi + i) * 0.5 + 0.5
        tone = np.sin(t * 55 * (i + 1) * 2 * np.pi) * level / (i + 1)
        pan = (i % 8) / 7
        left += tone * (1 - pan)
        right += tone * pan
    return [left * 0.1, right * 0.1]


def _bent(t: _Line) -> list[_Line]:
    tone = np.sin(t * 220 * 2 * np.pi + 3 * np.sin(t * 110 * 2 * np.pi))
    soft, before = np.empty_like(t), 0.0
    for number, value in enumerate(tone.tolist()):
        before = 0.9 * before + 0.1 * value
        soft[number] = before
    return [soft]


def _sines(t: _Line) -> list[_Line]:
    total = np.zeros_like(t)
    for i in range(200):
        total += np.sin(t * 100 * 1.01**i * 2 * np.pi)
    return [total / 200]


KERNELS = {"a1": _partials, "a2": _bent, "a3": _sines}
