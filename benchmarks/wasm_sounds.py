"""How fast sounds are as WebAssembly, against machine code of the second tier, in one thread.

    python -m benchmarks.wasm_sounds [FILE]…

Both take turns, and the best of their times counts. Of WebAssembly it is the time of the function itself, without the
copies that go between it and the rest of weft on this machine, and not in a browser.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import wasmtime

from weft.backends.base import Env, SampleBlock
from weft.backends.launch import Launch, StateMemory
from weft.backends.native.executor import NativeExecutor
from weft.cli.arguments import compile_file
from weft.codegen.kernel import Kernel
from weft.codegen.wasm.abi import ALIGNMENT, PADDING
from weft.codegen.wasm.sweep import emit
from weft.contexts import is_smoothed
from weft.runtime.films.offline import initial_inputs

RATE, SAMPLES, ROUNDS, BLOCK = 48_000.0, 4800, 60, 1024
FILES = tuple(f"patches/{name}.weft" for name in ("bench/a1", "bench/a2", "bench/a3", "drums", "bells", "dub"))

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


def main() -> None:
    print(f"{'':32}{'native':>10}{'wasm':>10}   ns a sample;   share, and how many times real time")
    for file in sys.argv[1:] or FILES:
        build = compile_file(file)
        env = Env(64, 36, dt=1 / RATE, inputs=initial_inputs(build.patch))
        for unit in build.units:
            if unit.subgraph.context == "audio" and not unit.kernel.pictures:
                machine, web = timed([native(unit.kernel, env), wasm(unit.kernel, env)])
                share, speed = machine / web, 1 / RATE / web
                print(f"{file:32}{machine * 1e9:10.1f}{web * 1e9:10.1f}   {share:.2f}   {speed:.0f}", flush=True)


if __name__ == "__main__":
    main()
