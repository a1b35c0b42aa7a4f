"""kernels.c, compiled for this machine: once with each sine taken for itself, once with those whose phase grows evenly
made of the ones before them, as weft does."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.beside.sine import SINE
from benchmarks.beside.tools import C_FLAGS, library, missing_program, program_version
from benchmarks.sound_peers.peer import BLOCK, RATE, Prepared, room
from benchmarks.sound_peers.reference import TOLERANCE
from benchmarks.sound_peers.tuning import fastest

SOURCE = Path(__file__).parent / "kernels.c"

# Of how many samples a vector may be.
_LANES = (4, 8, 16)


@dataclass(frozen=True)
class CPeer:
    compiler: str
    turned: bool
    lanes: int = _LANES[0]
    tolerance: float = TOLERANCE
    drifts: bool = False

    @property
    def name(self) -> str:
        return self.compiler + ("-turned" if self.turned else "")

    def available(self) -> str | None:
        return missing_program(self.compiler)

    def version(self) -> str:
        return program_version(self.compiler) + (f", vectors of {self.lanes}" if self.turned else "")

    def tuned(self, kernel: str) -> CPeer:
        return fastest([replace(self, lanes=lanes) for lanes in _LANES], kernel) if self.turned else self

    def prepare(self, kernel: str) -> Prepared:
        defined = {f"SINE_{i}": f"{factor!r}f" for i, factor in enumerate(SINE)}
        defined |= {"KERNEL": kernel[1:], "RATE": f"{RATE}.0", "BLOCK": f"{BLOCK}", "LANES": f"{self.lanes}"}
        function = library([self.compiler, *C_FLAGS], SOURCE, {**defined, "TURNED": int(self.turned)}).play
        function.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
        function.restype = None
        out, state = room(kernel), np.zeros(1)
        samples, remembered = (array.ctypes.data_as(ctypes.c_void_p) for array in (out.samples, state))
        played = 0

        def play(count: int) -> None:
            nonlocal played
            function(played, count, samples, RATE, remembered)
            out.count = count
            played += count

        return Prepared(play, out.heard)


PEERS = tuple(CPeer(compiler, turned) for compiler in ("gcc", "clang") for turned in (False, True))
