"""WebAssembly on this machine: where wasmtime is missing, and what a kernel without a module runs on."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.parity.cases import case_of, case_of_seed
from weft.backends import wasm
from weft.backends.cpu import executor_problem
from weft.backends.launch import StateMemory
from weft.backends.vm import ReferenceExecutable
from weft.codegen.kernel import Kernel
from weft.codegen.wasm.sweep import WasmKernel

ROOT = Path(__file__).parent.parent.parent


def test_without_wasmtime_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    assert executor_problem("wasm") is None
    monkeypatch.setitem(sys.modules, "wasmtime", None)
    problem = executor_problem("wasm")
    assert problem is not None
    assert 'pip install "weft-live[wasm]"' in problem


def test_what_has_no_module_runs_on_the_reference_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(kernel: Kernel) -> WasmKernel:
        raise LookupError("nothing computes this")

    monkeypatch.setattr(wasm, "emit", fail)
    case = case_of_seed(3)
    executor = wasm.WasmExecutor()
    executable = executor.load(case.kernel.alone)
    assert isinstance(executable, ReferenceExecutable)
    (refusal,) = executor.refusals.take()
    assert str(refusal).startswith(f"{case.kernel.name} runs on vm, not wasm: ")


def test_launches_of_other_extents_one_after_another() -> None:
    """The memory is arranged again for each extent, and grows."""
    case = next(case for case in map(case_of_seed, range(50)) if not case.kernel.slots and not case.kernel.strands)
    mine, reference = wasm.WasmExecutor().load(case.kernel), ReferenceExecutable(case.kernel)
    launch = case.launches[0]
    for width, height in ((3, 2), (301, 5), (1, 1), (3, 2)):
        smaller = launch.at_level(0)
        coords = {**smaller.coords, "x": (np.arange(width) + 0.5) / width, "y": (np.arange(height) + 0.5) / height}
        given = type(launch)((height, width), coords, launch.uniforms, launch.strands, launch.pictures)
        found, wanted = (each.planes(StateMemory((), (height, width)), given) for each in (mine, reference))
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_more_memory_than_there_can_be_is_told() -> None:
    """Eight images of half a gigabyte each."""
    case = case_of("p<v> = delay(me@x, me@y * 7, 7)\ndisplay(p@v)\n")
    shape = (1 << 13, 1 << 13)
    memory, launch = StateMemory(case.kernel.slots, shape, np.float64), case.launches[0]
    coords = {**launch.coords, "x": np.zeros(shape[1]), "y": np.zeros(shape[0])}
    large = replace(launch, shape=shape, coords=coords)
    with pytest.raises(MemoryError, match=r"needs [\d.]+ GB: WebAssembly has no more than 4"):
        wasm.WasmExecutor().load(case.kernel).planes(memory, large)


def test_a_process_ends_quietly_while_modules_are_loaded() -> None:
    code = """
import builtins
from tests.support.parity.cases import StateMemory, sound_case_of_seed
from weft.backends.wasm import WasmExecutor
case = sound_case_of_seed(3)
executable = builtins.kept = WasmExecutor().load(case.kernel)
executable.planes(StateMemory(case.kernel.slots), case.launches[0])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
