"""kernels.c, compiled for this machine; OpenMP shares the rows."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from pathlib import Path

from benchmarks.beside.sine import SINE
from benchmarks.beside.tools import C_FLAGS, library, missing_program, program_version
from benchmarks.peers.figures import (
    AXES, CLOUD_TURNS, FIRST_MULTIPLIER, FIRST_SHIFT, OCTAVES, PLASMA_ANGLES, SECOND_MULTIPLIER, SECOND_SHIFT
)
from benchmarks.peers.peer import Prepared, blank

SOURCE = Path(__file__).parent / "kernels.c"


@dataclass(frozen=True)
class CPeer:
    name: str

    def available(self) -> str | None:
        return missing_program(self.name, package=f"{self.name} libomp-dev")

    def version(self) -> str:
        return program_version(self.name)

    def prepare(self, kernel: str, width: int, height: int, threads: int) -> Prepared:
        out = blank(width, height)
        defined = {"KERNEL": kernel[1:], **_figures()}
        function = library([self.name, *C_FLAGS, "-fopenmp"], SOURCE, defined).draw
        function.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_double, ctypes.c_int]
        function.restype = None
        pointer = out.ctypes.data_as(ctypes.c_void_p)  # which keeps the picture alive
        return Prepared(lambda time: function(pointer, width, height, time, threads), lambda: out)


def _figures() -> dict[str, str]:
    """What kernels.c wants defined."""
    found = {f"SINE_{i}": f"{factor!r}f" for i, factor in enumerate(SINE)}
    found |= {f"PLASMA_{i}": repr(angle / math.tau - 0.25) for i, angle in enumerate(PLASMA_ANGLES)}
    found |= {f"CLOUD_{i}": repr(turn) for i, turn in enumerate(CLOUD_TURNS)}
    for name, axis in AXES.items():
        found |= {f"MULTIPLIER_{name.upper()}": f"{axis.multiplier}u", f"START_{name.upper()}": f"{axis.start}u"}
    found |= {"FIRST_SHIFT": str(FIRST_SHIFT), "FIRST_MULTIPLIER": f"{FIRST_MULTIPLIER}u"}
    found |= {"SECOND_SHIFT": str(SECOND_SHIFT), "SECOND_MULTIPLIER": f"{SECOND_MULTIPLIER}u"}
    fields = {"SCALES": "scale", "SHIFTS": "shift", "WEIGHTS": "weight", "SCALES_Z": "scale_z", "SHIFTS_Z": "shift_z"}
    for name, field in fields.items():
        found[f"OCTAVE_{name}"] = ",".join(repr(float(getattr(octave, field))) for octave in OCTAVES)
    return found


PEERS = (CPeer("gcc"), CPeer("clang"))
