"""How fast sounds are as WebAssembly, against machine code of the second tier, in one thread.

    python -m benchmarks.wasm_sounds [--generated 12 --seed 1] [FILE]…

Without files, all patches that ship with weft and play a sound; and some that nobody tuned for
(`benchmarks.generated`).
Both take turns, and the best of their times counts. Of WebAssembly it is the time of the function itself, without the
copies that go between it and the rest of weft on this machine, and not in a browser.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import wasmtime

from benchmarks.generated import SIZES, patch
from weft.backends.base import Env, SampleBlock
from weft.backends.launch import Launch, StateMemory
from weft.backends.native.executor import NativeExecutor
from weft.cli.arguments import compile_file, shipped_patches
from weft.codegen.kernel import Kernel, Unit
from weft.codegen.wasm.abi import ALIGNMENT, PADDING
from weft.codegen.wasm.sweep import emit
from weft.contexts import ContextTable, is_smoothed
from weft.errors import Source
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.films.offline import initial_inputs

RATE, SAMPLES, ROUNDS, BLOCK = 48_000.0, 4800, 60, 1024

# Of the styles of generated patches, those that play.
STYLES = ("voices", "patterns", "evening")

Run = Callable[[], None]


def native(kernel: Kernel, env: Env) -> Run:
    """Plays the next samples by machine code."""
    executor = NativeExecutor()
    executable = executor.load(kernel, {False: executor.translate(kernel, False, 2)})
    memory, first = StateMemory(kernel.slots), 0

    def run() -> None:
        nonlocal first
        controls = {name: np.zeros(SAMPLES) for name, _ in kernel.coords if is_smoothed(name)}
        block = SampleBlock(first, SAMPLES, RATE, controls=controls)
        uniforms = {name: env.uniform(name) for name in kernel.uniforms}
        executable.planes(memory, Launch((1, SAMPLES), block.coords(kernel), uniforms, even=block.even))
        first += SAMPLES

    return run


def wasm(kernel: Kernel, env: Env) -> Run:
    """Plays the next samples by WebAssembly."""
    made = emit(kernel)
    layout, store = made.layout, wasmtime.Store()
    memory = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(2000, None)))
    module = wasmtime.Module(store.engine, made.module.encoded())
    functions = wasmtime.Instance(store, module, [memory]).exports(store)
    places = np.ctypeslib.as_array(memory.data_ptr(store), (memory.data_len(store),))
    words, numbers = places.view(np.int32), places.view(np.float64)
    end, fixed, first = BLOCK + layout.size, layout.to_json()["fixed"], 0

    def give(offset: int, word: int) -> None:
        words[(BLOCK + offset) // 4] = word

    def room(count: int) -> int:
        nonlocal end
        start = -(-end // ALIGNMENT) * ALIGNMENT
        end = start + 8 * count
        return start

    for name, word in (("out", room(SAMPLES * len(layout.outputs))), ("stride", SAMPLES), ("width", SAMPLES)):
        give(fixed[name], word)
    for ring in layout.rings:
        give(ring.offset, room(ring.cells))
    for line in layout.lines:
        give(line.offset, room(SAMPLES + PADDING))
    for number in layout.numbers:
        numbers[(BLOCK + number.offset) // 8] = env.uniform(number.name) if number.source == "uniform" else 0.0
    numbers[(BLOCK + fixed["rate"]) // 8] = RATE
    for name in ("constants", "frame"):
        if name in layout.exports:
            functions[name](store, BLOCK)  # type: ignore[operator]

    def run() -> None:
        nonlocal first
        numbers[(BLOCK + fixed["first"]) // 8] = first
        functions["elements"](store, BLOCK)  # type: ignore[operator]
        first += SAMPLES

    return run


def timed(runs: Sequence[Run]) -> list[float]:
    """The best time of each, in seconds for a sample."""
    best = [float("inf")] * len(runs)
    for _ in range(ROUNDS):
        for at, run in enumerate(runs):
            start = time.perf_counter()
            run()
            best[at] = min(best[at], (time.perf_counter() - start) / SAMPLES)
    return best


def sounds(made: Build) -> Iterator[Unit]:
    """The subgraphs that play, but those that sample a sound or hear a picture."""
    yield from (unit for unit in made.units if unit.subgraph.context == "audio" and not unit.kernel.pictures)


def measured(name: str, made: Build) -> float:
    """Prints the figures of a patch: the sums of its subgraphs. Gives the share."""
    env = Env(64, 36, dt=1 / RATE, inputs=initial_inputs(made.patch))
    times = [timed([native(unit.kernel, env), wasm(unit.kernel, env)]) for unit in sounds(made)]
    if not times:
        return math.inf
    machine, web = map(sum, zip(*times, strict=True))
    print(f"{name:24}{machine * 1e9:10.1f}{web * 1e9:10.1f}   {machine / web:.2f}   {1 / RATE / web:.0f}", flush=True)
    return machine / web


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", 1)[0])
    options.add_argument("--generated", type=int, default=0, help="how many patches that nobody tuned for")
    options.add_argument("--seed", type=int, default=1, help="of these")
    options.add_argument("files", nargs="*")
    asked = options.parse_args()
    shipped = sorted(path for path in shipped_patches().rglob("*.weft") if "lib" not in path.parts)
    print(f"{'':24}{'native':>10}{'wasm':>10}   ns a sample;   share, and how many times real time")
    shares = [measured(Path(file).stem, compile_file(str(file))) for file in asked.files or shipped]
    for n in range(asked.generated):
        found = patch(STYLES[n % len(STYLES)], SIZES[n // len(STYLES) % len(SIZES)], asked.seed + n)
        made = build(Request(Source(f"{found.name}.weft", found.text), ContextTable(), {}))
        shares.append(measured(found.name, made))
    print(f"the least share is {min(shares):.2f}")


if __name__ == "__main__":
    main()
