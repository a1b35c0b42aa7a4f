"""Programs of sound, played one after another without a loudspeaker, so that tests can check every sample."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.program import ProgramLoader
from weft.runtime.sound.mixer import Mixer, Recent, ScheduledProgram

RATE = 48000
BLOCK = 512
RING = 1 << 14

Samples = NDArray[Any]


def compiled(text: str) -> CompiledProgram:
    return build(Request(Source("sound.weft", text), load_registry().contexts)).compiled


class Hall:
    """Plays blocks. `given` are the inputs from outside, by their names."""

    def __init__(self, executor: str = "vector", channels: int = 2, clips: bool = True, strands: int = 4) -> None:
        registry = load_registry()
        self.loader = ProgramLoader(choose(registry, [spec.name for spec in registry.contexts], executor))
        self.given: dict[str, float] = {}
        self.played = 0
        self.channels = channels
        rings = np.zeros((strands, RING), np.float32)
        self.recent = Recent(rings, RATE, lambda: self.played - 1)
        self.mixer = Mixer(RATE, channels, lambda name: self.given.get(name, 0.0), rings, clips)

    def prepare(self, text: str, fade: float = 0.0, at: float | None = None, file: str = "") -> ScheduledProgram:
        made = replace(compiled(text), file=file)
        return self.mixer.prepare(self.loader, made, fade, at, self.recent.rows(made), {})

    def enter(self, text: str, fade: float = 0.0, at: float | None = None, file: str = "") -> ScheduledProgram:
        """Schedules a program; see `ScheduledProgram`."""
        entry = self.prepare(text, fade, at, file)
        self.mixer.enter(entry)
        return entry

    def play(self, samples: int, block: int = BLOCK) -> Samples:
        """The next samples that are heard, [samples, channels]."""
        out = np.full((samples, self.channels), np.nan, np.float32)
        for start in range(0, samples, block):
            piece = out[start : start + block]
            self.mixer.render(piece, self.played / RATE)
            self.played += len(piece)
        return out


def moments(first: int, count: int) -> NDArray[np.float64]:
    """The times of samples, in seconds."""
    return (first + np.arange(count)) / RATE


def level(samples: Samples) -> float:
    """The power of a sound, in dB."""
    return float(10 * np.log10(np.mean(np.square(samples, dtype=np.float64))))
