"""Programs in C: compiled as their users would, and as functions that compute one frame."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from weft.backends.launch import Floats, Launch, StateMemory
from weft.codegen import c_program
from weft.codegen.kernel import Kernel

STRICT = ("cc", "-std=c99", "-Wall", "-Werror")

Frame: TypeAlias = Callable[[StateMemory, Launch], Floats]


def compiled(text: str, to: Path, *flags: str) -> Path:
    """The program of a text, as an executable file."""
    source = to.with_suffix(".c")
    source.write_text(text, encoding="ascii")
    command = [*STRICT, *flags, str(source), "-lm", "-o", str(to)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return to


def start_of(launch: Launch) -> c_program.Start:
    """What a picture begins with, of which this is a launch."""
    height, width = launch.shape
    inputs = {name: float(np.ravel(value)[0]) for name, value in launch.coords.items() if "@" in name}
    return c_program.Start(width, height, 60.0, {**launch.uniforms, **inputs})


def frames(kernels: Sequence[tuple[Kernel, Launch]], folder: Path) -> list[Frame]:
    """Functions that compute one frame each of pictures, as those of an executor do: all compiled at once. They take
    launches that differ from the given one in time alone."""
    sources: list[str] = []
    numbers: dict[str, int] = {}
    texts = [c_program.picture(kernel, start_of(launch)) for kernel, launch in kernels]
    for (kernel, _), text in zip(kernels, texts, strict=True):
        if text in numbers:
            continue
        at = numbers[text] = len(numbers)
        body, _, main = text.partition("\nint main(")
        calls = re.findall(r"\w+_tick\(now, \(unsigned long\)tick, values\);", main)
        memory = f"for (int at = 0; at < {len(kernel.slots)}; at++) memory[at] = given[at];" if kernel.slots else ""
        head = f"void run_{at}(double **given, double *values, double now, unsigned long tick)"
        source = folder / f"{at}.c"
        lines = [body, f"{head};", f"{head} {{", memory, "(void)given;", *calls, "}"]
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        sources.append(str(source))
    library = folder / "frames.so"
    # Of the program, what makes memory is left over.
    command = [*STRICT, "-Wno-unused-function", "-O0", "-shared", "-fPIC", *sources, "-lm", "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = ctypes.CDLL(str(library))
    functions = [getattr(found, f"run_{numbers[text]}") for text in texts]
    return [_frame(kernel, function) for (kernel, _), function in zip(kernels, functions, strict=True)]


def _frame(kernel: Kernel, function: Any) -> Frame:
    def frame(memory: StateMemory, launch: Launch) -> Floats:
        rings = [memory.ring(slot.key) for slot in kernel.slots]
        given = (ctypes.c_void_p * (len(rings) + 1))(*(ring.ctypes.data for ring in rings))
        out = np.full((max(1, len(kernel.outputs)), *launch.shape), np.nan)
        assert launch.uniforms.get("absframe", memory.ticks) == memory.ticks
        time, tick = ctypes.c_double(_time(launch.coords)), ctypes.c_ulong(memory.ticks)
        function(given, ctypes.c_void_p(out.ctypes.data), time, tick)
        memory.advance()
        return out

    return frame


def _time(coords: Mapping[str, Any]) -> float:
    return float(np.ravel(coords.get("abstime", 0.0))[0])
