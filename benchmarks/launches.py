"""What a frame and a block of sound cost besides their machine code: python -m benchmarks.launches

A picture of a few pixels and a block of a few samples leave next to nothing to the machine code, so what remains is
Python's share of a tick: from its environment to the picture or the samples, through the coordinator and the backend as
in a performance, and in the executor alone. All take turns, and count processor time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np

from weft.backends.base import Backend, Env, SampleBlock
from weft.backends.cpu import CpuAudio, CpuCompiled, CpuVisual
from weft.backends.launch import StateMemory
from weft.codegen.kernel import Unit
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.inspect.measure import given_inputs
from weft.runtime.program.coordinator import ProgramRunner, RunningSubgraph

PATCHES = Path(__file__).parents[1] / "patches" / "bench"
SIZE = (64, 32)
SAMPLES, RATE = 16, 48_000
TURNS, TICKS, LAUNCHES = 15, 300, 64


def frames(name: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """A tick of a small picture, and its launch in the executor."""
    width, height = SIZE
    text = (PATCHES / name).read_text("utf-8")
    made = build(Request(Source(name, text), ContextTable(), {"width": width, "height": height}))
    (unit,) = made.units
    inputs = given_inputs(made)
    return _ticks(CpuVisual("native"), unit, lambda n: Env(*SIZE, n, n / 60, 1 / 60, inputs))


def blocks(name: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """A tick of a short block of sound, and its launch in the executor."""
    (unit,) = build(Request(Source(name, (PATCHES / name).read_text("utf-8")), ContextTable())).units
    return _ticks(
        CpuAudio("native"), unit,
        lambda n: Env(*SIZE, n, dt=1 / RATE, block=SampleBlock(n * SAMPLES, SAMPLES, RATE)),
    )  # fmt: skip


def _ticks(
    backend: CpuVisual | CpuAudio, unit: Unit, env: Callable[[int], Env]
) -> tuple[Callable[[], object], Callable[[], object]]:
    runner = ProgramRunner(ContextTable())
    compiled = _best(backend, unit, env(0), runner)
    runner.parts = (RunningSubgraph(unit, backend, compiled),)
    numbers, turns = count(), count()
    launches = [backend.launch(compiled, env(n), runner) for n in range(LAUNCHES)]
    memory = StateMemory(unit.kernel.slots, compiled.memory.shape)
    pixels = np.empty((*SIZE[::-1], 4), np.uint8) if compiled.packed else None

    def launch() -> None:
        compiled.run(memory, launches[next(turns) % LAUNCHES], out=pixels)

    return lambda: runner.run(env(next(numbers))), launch


def _best(backend: Backend, unit: Unit, env: Env, runner: ProgramRunner) -> CpuCompiled:
    """A unit with machine code of the second tier."""
    compiled = backend.compile_subgraph(unit, env, runner)
    assert isinstance(compiled, CpuCompiled)
    backend.upgrade(compiled, backend.translate(unit, 2))
    return compiled


def microseconds(work: Callable[[], object]) -> float:
    began = time.thread_time()
    for _ in range(TICKS):
        work()
    return (time.thread_time() - began) / TICKS * 1e6


def main() -> None:
    cases = {"v1.weft": frames, "fifty.weft": frames, "a1.weft": blocks, "a2.weft": blocks}
    works = {name: make(name) for name, make in cases.items()}
    times: dict[str, list[tuple[float, ...]]] = {name: [] for name in works}
    for _ in range(TURNS):
        for name, pair in works.items():
            times[name].append(tuple(map(microseconds, pair)))
    print(f"{'':12}{'a tick':>10}{'its launch':>12}   µs of processor time")
    for name, found in times.items():
        print(f"{name:12}" + "".join(map(partial("{:{}.1f}".format), np.median(found, axis=0), (10, 12))))


if __name__ == "__main__":
    main()
