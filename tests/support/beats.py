"""The beats that kernels read."""

from __future__ import annotations

from weft.beats import BPM, Beats


def given_beats(bpm: float = 120.0) -> dict[str, float]:
    """Uniforms of a tempo that never changes."""
    return {BPM: bpm, **Beats.steady(bpm).inputs}


def changing_beats(start: float, before: float, bpm: float) -> dict[str, float]:
    """Uniforms of a tempo that changes at this time, and has done so before."""
    return {BPM: bpm, **Beats(3.7 + start * before / 60, start, before, bpm).inputs}
