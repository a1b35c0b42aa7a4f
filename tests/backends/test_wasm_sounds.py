"""Sounds as WebAssembly, in blocks of any length: what is remembered goes on over the ends of blocks and of chunks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.parity.cases import sound_case_of, sound_case_of_seed
from tests.support.parity.rule import compare
from weft.backends.base import Env, SampleBlock
from weft.backends.cpu import CpuAudio
from weft.backends.registry import load_registry
from weft.backends.wasm import WasmExecutor
from weft.codegen.kernel import Unit
from weft.codegen.native.loop_parts import with_waves
from weft.codegen.wasm.abi import CHUNK
from weft.codegen.wasm.stream_parts import stream_parts
from weft.codegen.wasm.sweep import emit
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.coordinator import ProgramRunner

CONTEXTS = load_registry().contexts
BLOCKS = (1, CHUNK, 3, CHUNK - 1, 2 * CHUNK + 5, 2)


def unit_of(text: str) -> Unit:
    units = build(Request(Source("sound.weft", text), CONTEXTS)).units
    return next(unit for unit in units if unit.subgraph.context == "audio")


def played(text: str, executor: str) -> np.ndarray:
    backend, runner, first, found = CpuAudio(executor), ProgramRunner(CONTEXTS), 0, []

    def env(samples: int) -> Env:
        return Env(64, 36, dt=1 / 48000, block=SampleBlock(first, samples, 48000.0))

    compiled = backend.compile_subgraph(unit_of(text), env(0), runner)
    for samples in BLOCKS:
        found.append(backend.execute_subgraph(compiled, env(samples), runner))
        first += samples
    assert not backend.refusals()
    return np.concatenate(found, axis=2)


FORMS = {
    "a delay that is longer than a chunk": "e<v> = fract(me@time * 441) * 0.2 + 0.5 * delay(e@v, 300, 300)\naudio(e@v)",
    "a delay that varies": "e<v> = fract(me@time * 441) * 0.2\n"
                           "audio(delay(e@v, 2 + 40 * fract(me@time * 30), 64))",
    "the past of what is computed for whole chunks": "x = fract(me@time * 441)\n"
        "audio(prev(x) * 0.1, delay(x, 7, 7), delay(x, 400, 400), prev(prev(x) + x))",
    "the past of a coordinate and of a constant": "audio(prev(me@time), delay(1, 9, 9), prev(me@sample * 2))",
    "feedback around feedback": "a<v> = 0.5 * delay(b@v, 300, 300) + fract(me@time * 90) * 0.1\n"
        "b<v> = a@v * 0.3 + 0.6 * prev(b@v)\nc<v> = delay(b@v, 17, 17) + 0.3 * delay(c@v, 20, 20)\naudio(a@v, c@v)",
    "a filter": "s<v> = 0.9 * prev(s@v) + 0.1 * fract(me@time * 330)\naudio(s@v)",
    "a value that is only remembered": "n<v> = prev(n@v) + 1\naudio(fract(n@v / 91), prev(n@v) / 1000)",
    "a wave in a wave": "audio(sin(me@time * 220 * tau + 3 * sin(me@time * 110 * tau)))",
    "waves of a loop": "spindle f(t) :: <a, b> { a = 0; b = 1; for i in (1 to 70) { a += sin(t * 50 * i * tau) / i; "
                       "b = b * 0.9 } }\nf(me@time)::s<a, b>\naudio(s@a * 0.3, s@b)",
    "a loop whose steps vary": "spindle f(t) :: a { a = 0; for i in (0 to t) { a += sin(i + me@time * 90) } }\n"
                               "audio(f(fract(me@time * 200) * 7) * 0.1)",
    "a loop in a loop": "spindle f(t) :: a { a = 0; for i in (0 to 3) { for j in (0 to i + t) { a += 1 / (1 + j) } "
                        "} }\naudio(f(fract(me@time * 200) * 3) * 0.1)",
    "a loop that remembers": "spindle f(x) :: o { o = x; for i in (1 to 4) { o = o * 0.5 + prev(o) * 0.4 } }\n"
                             "audio(f(fract(me@time * 300)) * 0.3)",
    "a coordinate that is read in a loop and after it": "spindle f(t, last) :: a { a = 0; for i in (1 to last * 9) { "
        "a += t * i * 0.01 } }\nn<v> = f(me@time, prev(n@v))@a + prev(n@v) * (me@time + 0.2) + 0.2\n"
        "audio(n@v)",
    "noise and bits": "audio(hash(me@sample) - 0.5, noise(me@time * 900) * 0.5)",
    "conditions": "p<v> = phasor(331)\naudio(select(p@v > 0.5 and p@v < 0.7 or me@sample % 3 == 1, p@v, -0.2))",
    "remainders of any period": "p = 0.001 + fract(me@time * 3) * 0.01\n"
                                "audio(me@time % 0.0031, me@time % p, 0 - me@time % -7)",
    "functions of the library": "x = fract(me@time * 200) + 0.01\naudio(exp(x) * 0.1, log(x) * 0.1, exp2(x), log2(x), "
                                "x ^ 1.37, atan2(x, 0.4 - x), tanh(x), cos(x * 9))",
    "nothing that varies": "audio(0.25, 1 / 3)",
}  # fmt: skip


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_a_sound_goes_on_over_blocks_and_chunks(text: str) -> None:
    np.testing.assert_allclose(played(text, "wasm"), played(text, "vm"), rtol=1e-9, atol=1e-9)


def long_sound() -> str:
    """Two thousand values."""
    lines, last = [], "me@time"
    for at in range(40):
        # Small factors keep what is rounded from growing.
        lines.append(f"s{at}<v> = 0.2 * noise({last} * 1.5, {last} + {at}) + 0.2 * exp(sin({last} + {at}) - 2)")
        last = f"s{at}@v"
    return "\n".join([*lines, f"p<v> = 0.5 * prev(p@v) + {last} * 0.1\naudio(p@v, {last} - s20@v)"])


@pytest.mark.long
def test_long_functions_share_locals_among_values() -> None:
    text = long_sound()
    kernel = unit_of(text).kernel
    count = sum(1 for _ in kernel.walk())
    assert count > 2000
    assert sum(len(function.locals) for function in emit(kernel).module.functions) < count / 4
    np.testing.assert_allclose(played(text, "wasm"), played(text, "vm"), rtol=1e-9, atol=1e-9)


def test_the_forms_have_all_ways_of_partitions() -> None:
    found = set()
    for text in FORMS.values():
        kernel = unit_of(text).kernel
        found |= {part.way for part in stream_parts(kernel, with_waves(kernel))}
    assert found == {"vectors", "serial", "interchanged"}


@pytest.mark.parametrize("seed", range(8))
def test_a_generated_sound_goes_on_over_chunks(seed: int) -> None:
    text = sound_case_of_seed(seed).text
    outcome = compare(sound_case_of(text, ((0.3, 2 * CHUNK + 77),)), WasmExecutor())
    assert not outcome.unexplained, text
