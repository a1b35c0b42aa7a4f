"""Pictures and numbers in CUDA C++: what they show, remember and refuse. The card is this processor, by clang; what is
tried on real cards, where there are any, is what a driver does."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.choices import on_processor
from tests.support.cuda import ClangDriver, cuda
from weft.backends.base import DeviceLostError, Env
from weft.backends.compute.interface import CompileError, ComputeDevice
from weft.backends.cuda import nvidia
from weft.backends.cuda.backend import CudaVisual
from weft.backends.cuda.cards import CudaDevice
from weft.codegen.kernel import Unit
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.runtime.compiling.stages import Build, build
from weft.runtime.films.offline import Offline
from weft.runtime.program.coordinator import ProgramRunner

__all__ = ["cuda"]

SIZE = {"width": 31.0, "height": 17.0}
TRAIL = "trail<v> = max(hash(me@px, me@py, me@absframe), prev(trail@v) * 0.9)\n"
TEXTS = {
    "feedback": f"{TRAIL}display(trail@v)\n",
    "a number that is remembered": "display(phasor(3) * me@x)\n",
    "a stage": "blurred = image(sin(me@x * 30 + me@time))\ndisplay(blurred(me@x ~ me@x + 0.01), blurred, 0)\n",
    "two colours": "display(<me@x, me@y, 0.5, 0.25>)\n",
}


def built(text: str) -> Build:
    return build(Source("p.weft", text), ContextTable(), SIZE)


class Here(CudaVisual):
    """On this processor."""

    def __init__(self, device: CudaDevice) -> None:
        super().__init__()
        self._here = device

    def opened(self, index: int) -> ComputeDevice:
        return self._here


def drawn(device: CudaDevice, text: str, ticks: int) -> Any:
    backend, runner = Here(device), ProgramRunner(ContextTable())
    unit: Unit = next(unit for unit in built(text).units if unit.subgraph.context == "visual")
    compiled = backend.compile_subgraph(unit, Env(31, 17, 0, 0.0, 1 / 60), runner)
    for tick in range(ticks):
        shown = backend.execute_subgraph(compiled, Env(31, 17, tick, tick / 60, 1 / 60), runner)
    return np.asarray(shown.read())


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_patch_shows_the_same(text: str, cuda: CudaDevice) -> None:
    expected = Offline(built(text), on_processor("vector", "visual")).at(3 / 60)
    assert np.abs(drawn(cuda, text, 4).astype(int) - expected).max() <= 1


@pytest.mark.long
def test_what_was_allocated_is_freed(tmp_path: Path) -> None:
    driver = ClangDriver(tmp_path)
    device = CudaDevice(driver)
    drawn(device, TEXTS["feedback"], 3)
    gc.collect()
    pinned = sum(map(len, device._pinned._free.values()))
    assert pinned > 0
    assert len(driver.memory) == pinned, "what copies are made to is used again"


def test_bytes_that_nobody_waits_for_leave_their_memory_to_others(cuda: CudaDevice) -> None:
    buffer = cuda.send(np.arange(5000, dtype=np.float32))
    cuda.read(buffer)
    free = {size: len(memory) for size, memory in cuda._pinned._free.items()}
    arriving = cuda.read(buffer, start=4, size=8)
    assert arriving().view(np.float32).tolist() == [1, 2]
    del arriving
    assert all(len(cuda._pinned._free[size]) >= count for size, count in free.items())


def test_a_text_that_the_compiler_refuses_names_its_line(cuda: CudaDevice) -> None:
    with pytest.raises(CompileError) as refused:
        cuda.compile('extern "C" __global__ void f(float *x) {\n    x[0] = nothing;\n}\n', "f")
    assert refused.value.line == 2
    assert "nothing" in refused.value.words


def test_without_its_packages_it_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cuda", "cuda.bindings"):
        monkeypatch.setitem(sys.modules, name, None)
    (found,) = nvidia.devices()
    assert (found.available, found.reason) == (False, "cuda-bindings is not installed")
    assert found.remedy == 'pip install "weft-live[cuda]"'
    with pytest.raises(DeviceLostError, match="visual cannot continue: cuda-bindings is not installed"):
        CudaVisual().open()


def test_a_name_that_cuda_has_is_another_one(cuda: CudaDevice) -> None:
    text = "threadIdx = me@x\nfloat3 = me@y\npixel = 0.5\ndisplay(<threadIdx, float3, pixel>)\n"
    expected = Offline(built(text), on_processor("vector", "visual")).at(0)
    assert np.abs(drawn(cuda, text, 1).astype(int) - expected).max() <= 1


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    class Small(ClangDriver):
        def allocate(self, size: int) -> int:
            if size > 1000:
                raise RuntimeError("out of memory")
            return super().allocate(size)

    with pytest.raises(WeftError, match="out of memory"):
        drawn(CudaDevice(Small(tmp_path)), TEXTS["feedback"], 1)
