"""How long it takes from a text to its first frame, and where the time goes: python -m benchmarks.first_frame

Everything happens in one warm process and one thread, as in the process that compiles: the grammar and LLVM are there,
the text is new. `operations` is a patch of 300 operations at every pixel.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from weft.backends.launch import Launch, StateMemory, picture_coords
from weft.backends.native.executor import NativeExecutor
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build

SIZE = (1280, 720)
OPERATIONS = 300
PATCHES = Path(__file__).parents[1] / "patches" / "bench"
STEPS = ("text → tree", "→ graph", "→ bytecode", "→ machine code", "→ linked", "→ first frame")


def operations(count: int) -> str:
    """A patch of so many operations at every pixel: sums, products, and a sine for every fifth."""
    last = count // 5
    lines = [
        f"a{n} = sin(a{n - 1} * {1 + n / 7:.3f} + me@x) * a{n // 2} - me@y * {n / 90:.3f}" for n in range(1, last + 1)
    ]
    return "\n".join(["a0 = me@x * me@y", *lines, f"display(a{last}, a{last - 7}, a{last - 13})\n"])


def texts() -> dict[str, str]:
    shipped = {name: (PATCHES / f"{name}.weft").read_text(encoding="utf-8") for name in ("v1", "v2", "v3", "fifty")}
    return {**shipped, "operations": operations(OPERATIONS)}


def milliseconds(text: str) -> Iterator[float]:
    """What each step takes."""
    width, height = SIZE
    executor = NativeExecutor()
    made = build(Request(Source("measured.weft", text), ContextTable(), {"width": width, "height": height}))
    yield from (made.parse_ms, made.graph_ms, made.compile_ms)
    (kernel,) = (unit.kernel for unit in made.units)
    started = time.perf_counter()
    code = executor.translate(kernel, True)
    translated = time.perf_counter()
    executable = executor.load(kernel, {True: code})
    linked = time.perf_counter()
    uniforms = {**dict.fromkeys(kernel.uniforms, 0.5), "width": float(width), "height": float(height)}
    launch = Launch((height, width), picture_coords(width, height, 1.0), uniforms, threads=2)
    executable.rgba8(StateMemory(kernel.slots, (height, width)), launch, np.empty((height, width, 4), np.uint8))
    drawn = time.perf_counter()
    yield from ((b - a) * 1e3 for a, b in ((started, translated), (translated, linked), (linked, drawn)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    print(f"{'':12}{'total':>8}  " + "  ".join(STEPS))
    for name, text in texts().items():
        found = []
        for n in range(rounds + 1):
            gc.collect()
            gc.disable()
            # Another text each time: nothing is known of it.
            found.append(list(milliseconds(text + "\n" * n)))
            gc.enable()
        steps = np.median(np.array(found[1:]), axis=0)
        shown = "  ".join(f"{ms:{len(step)}.1f}" for step, ms in zip(STEPS, steps, strict=True))
        print(f"{name:12}{steps.sum():8.1f}  {shown}")


if __name__ == "__main__":
    main()
