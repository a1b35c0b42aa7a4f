"""Faust: the kernels in its language, made C++ and compiled for this machine. Of its sines and its settings the fastest
are used, for each kernel."""

from __future__ import annotations

import ctypes
import tempfile
import time
import weakref
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.beside.tools import called, library, missing_program, program_version
from benchmarks.sound_peers.peer import BLOCK, RATE, Prepared, room
from benchmarks.sound_peers.tuning import fastest

_FOLDER = Path(__file__).parent / "faust"

# The compilers of C++, with the package that each comes in.
_COMPILERS = {"g++": "g++", "clang++": "clang"}

# A C++ compiler may take so many seconds. Some of Faust's loops keep it busy for minutes.
_MOST_COMPILING = 90

# How far samples of the first second may be off. A table of 65,536 sines is off by 1e-4, and a phase that is the sum of
# so many increments in single precision by a thousandth of a turn, and more every second.
_TOLERANCES = {"double": 2e-4, "single": 2e-2}


@dataclass(frozen=True)
class Setting:
    """A way to have Faust compute: which of waves.dsp, and what both compilers are told."""

    wave: str
    faust: tuple[str, ...] = ()
    cpp: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.wave, *self.faust, *self.cpp])


_FAST = ("-ffast-math",)
_LOOPS = ("-vec", "-lv", "1", "-vs", "64")

# What was the fastest for any of the kernels among all that Faust can be told of vectors; of vectors, those turned from
# sample to sample have no use.
SETTINGS = (
    Setting("turned"),
    Setting("turned", (), _FAST),
    Setting("table"),
    Setting("table", (), _FAST),
    Setting("table", _LOOPS, _FAST),
    Setting("sines", (), _FAST),
    Setting("sines", _LOOPS, _FAST),
    Setting("sines", ("-vec", "-vs", "32"), _FAST),
)


@dataclass(frozen=True)
class FaustPeer:
    compiler: str
    precision: str
    setting: Setting = SETTINGS[0]

    @property
    def name(self) -> str:
        return f"faust-{self.precision}-{self.compiler}"

    @property
    def tolerance(self) -> float:
        return _TOLERANCES[self.precision]

    @property
    def drifts(self) -> bool:
        return self.precision == "single"

    def available(self) -> str | None:
        return missing_program("faust") or missing_program(self.compiler, package=_COMPILERS[self.compiler])

    def version(self) -> str:
        return f"{program_version('faust')}, {self.setting}; {program_version(self.compiler)}"

    def tuned(self, kernel: str) -> FaustPeer:
        return fastest([replace(self, setting=setting) for setting in SETTINGS], kernel)

    def prepare(self, kernel: str) -> Prepared:
        loaded = self._compiled(kernel)
        loaded.begin.restype, loaded.play.restype, loaded.end.restype = ctypes.c_void_p, None, None
        loaded.play.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
        loaded.end.argtypes = [ctypes.c_void_p]
        out, instance = room(kernel), loaded.begin(RATE)
        samples = out.samples.ctypes.data_as(ctypes.c_void_p)
        weakref.finalize(out, loaded.end, instance)

        def play(count: int) -> None:
            loaded.play(instance, count, BLOCK, samples, RATE)
            out.count = count

        return Prepared(play, out.heard)

    def _compiled(self, kernel: str) -> ctypes.CDLL:
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            text, made = Path(folder) / f"{kernel}.dsp", Path(folder) / f"{kernel}.cpp"
            parts = [(_FOLDER / name).read_text(encoding="utf-8") for name in ("waves.dsp", f"{kernel}.dsp")]
            text.write_text(f"\nwave = {self.setting.wave};\n\n".join(parts), encoding="utf-8")
            precise = (f"-{self.precision}", "-ftz", "0", *self.setting.faust)
            called(["faust", *precise, "-a", str(_FOLDER / "blocks.cpp"), "-o", str(made), str(text)], _MOST_COMPILING)
            left = _MOST_COMPILING - (time.perf_counter() - started)
            return library([self.compiler, "-O3", "-march=native", *self.setting.cpp], made, timeout=left)


PEERS = tuple(FaustPeer(compiler, precision) for precision in _TOLERANCES for compiler in _COMPILERS)
