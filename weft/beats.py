"""The beats of a performance as a function of its time.

The tempo may change while a patch plays. The last change is known, which gives a continuous function of two straight
lines: four numbers, which are the same in every process and every context. Kernels read them as uniforms, so that
pictures and sounds agree about the beat. In a render they never change.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple

BPM = "bpm"
"""The name of the uniform that is the tempo at the beginning of a tick or block."""

USUAL = 120.0
"""The tempo of a patch that sets none."""

INPUTS = ("beats_then", "beats_start", "beats_bpm_before", "beats_bpm")
"""The names by which kernels read the four numbers. No strand is called so: it would have an `@`."""


class Beats(NamedTuple):
    """`then` beats have passed at the time `start` (seconds of the performance). Before that the tempo is `before`, and
    after it `bpm`, in beats a minute."""

    then: float
    start: float
    before: float
    bpm: float

    @classmethod
    def steady(cls, bpm: float) -> Beats:
        """A tempo that never changes."""
        return cls(0.0, 0.0, bpm, bpm)

    @classmethod
    def of(cls, inputs: Mapping[str, float]) -> Beats:
        """The beats among the inputs of kernels; if they are missing, the tempo of a patch that sets none."""
        return cls(*(inputs[name] for name in INPUTS)) if INPUTS[0] in inputs else cls.steady(USUAL)

    @property
    def inputs(self) -> dict[str, float]:
        """The four numbers, by the names that kernels read."""
        return dict(zip(INPUTS, self, strict=True))

    def at(self, seconds: float) -> float:
        """The beats since the start, at a time of the performance."""
        return self.then + (seconds - self.start) * self.bpm_at(seconds) / 60

    def bpm_at(self, seconds: float) -> float:
        """The tempo at a time of the performance."""
        return self.before if seconds < self.start else self.bpm

    def time_of(self, beats: float) -> float:
        """The time of the performance at which this many beats have passed."""
        return self.start + (beats - self.then) * 60 / (self.before if beats < self.then else self.bpm)

    def next(self, every: float, seconds: float) -> float:
        """The first multiple of `every` beats that is not before a time of the performance."""
        return math.ceil(self.at(seconds) / every) * every

    def changed(self, start: float, bpm: float) -> Beats:
        """The beats with another tempo from a time on, which is not before the last change."""
        return Beats(self.at(start), start, self.bpm_at(start), bpm)

    def followed_by(self, beats: Beats, since: float) -> Beats:
        """Those that follow these. What is before the time `since` does not change any more: a change before it comes
        too late, and takes place then."""
        return beats._replace(then=self.at(since), start=since) if beats.start < since else beats


def reads_beats(uniforms: Collection[str]) -> bool:
    """Whether a kernel with these uniforms reads the beats, or the tempo."""
    return BPM in uniforms or any(name in uniforms for name in INPUTS)
