"""Pictures and numbers in CUDA C++: what they show, remember and refuse. The card is this processor, by clang; what is
tried on real cards, where there are any, is what a driver does."""

from __future__ import annotations

import gc
import sys
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.choices import on_processor
from tests.support.cuda import cuda, hip, stand_in
from weft.backends.base import DeviceLostError, Env, PictureHandle
from weft.backends.compute.interface import CompileError, ComputeDevice, ComputeError
from weft.backends.cuda.backend import CudaDevice, CudaVisual, Nvidia
from weft.backends.cuda.cards import CardDevice
from weft.backends.cuda.driver import devices
from weft.backends.cuda.hip import HipVisual
from weft.codegen.kernel import Unit
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.films.offline import Offline
from weft.runtime.program.coordinator import ProgramRunner

__all__ = ["cuda", "hip"]

SIZE = {"width": 31.0, "height": 17.0}
TRAIL = "trail<v> = max(hash(me@px, me@py, me@absframe), prev(trail@v) * 0.9)\n"
TEXTS = {
    "feedback": f"{TRAIL}display(trail@v)\n",
    "a number that is remembered": "display(phasor(3) * me@x)\n",
    "a stage": "blurred = image(sin(me@x * 30 + me@time))\ndisplay(blurred(me@x ~ me@x + 0.01), blurred, 0)\n",
    "two colours": "display(<me@x, me@y, 0.5, 0.25>)\n",
}


def built(text: str) -> Build:
    return build(Request(Source("p.weft", text), ContextTable(), SIZE))


class Here(CudaVisual):
    """On this processor."""

    def __init__(self, device: CardDevice) -> None:
        super().__init__()
        self._here = device

    def opened(self, index: int) -> ComputeDevice:
        return self._here


class HereByHip(HipVisual):
    def __init__(self, device: CardDevice) -> None:
        super().__init__()
        self._here = device

    def opened(self, index: int) -> ComputeDevice:
        return self._here


def drawn(device: CardDevice, text: str, ticks: int) -> Any:
    backend = Here(device) if isinstance(device, CudaDevice) else HereByHip(device)
    runner = ProgramRunner(ContextTable())
    unit: Unit = next(unit for unit in built(text).units if unit.subgraph.context == "visual")
    compiled = backend.compile_subgraph(unit, Env(31, 17, 0, 0.0, 1 / 60), runner)
    for tick in range(ticks):
        shown = backend.execute_subgraph(compiled, Env(31, 17, tick, tick / 60, 1 / 60), runner)
    return np.asarray(shown.read())


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_patch_shows_the_same(text: str, cuda: CardDevice) -> None:
    expected = Offline(built(text), on_processor("vector", "visual")).at(3 / 60)
    assert np.abs(drawn(cuda, text, 4).astype(int) - expected).max() <= 1


def test_hip_shows_the_same(hip: CardDevice) -> None:
    text = TEXTS["feedback"]
    expected = Offline(built(text), on_processor("vector", "visual")).at(3 / 60)
    assert np.abs(drawn(hip, text, 4).astype(int) - expected).max() <= 1


@pytest.mark.parametrize("kept", [0, 3])
def test_pictures_are_lent_while_the_next_ones_are_drawn(kept: int, cuda: CardDevice) -> None:
    backend, runner = Here(cuda), ProgramRunner(ContextTable())
    (unit,) = built(TEXTS["feedback"]).units
    compiled = backend.compile_subgraph(unit, Env(31, 17), runner)
    offline = Offline(built(TEXTS["feedback"]), on_processor("vector", "visual"))
    awaited, begun, addresses = deque[Any](), deque[Any](), set[int]()
    lent = deque[Any]()
    for tick in range(12):
        awaited.append(offline.at(tick / 60).astype(int))
        picture = backend.execute_subgraph(compiled, Env(31, 17, tick, tick / 60, 1 / 60), runner)
        assert isinstance(picture, PictureHandle)
        begun.append(picture.lending())
        if tick:
            lent.append(begun.popleft()())
            addresses.add(lent[-1].ctypes.data)
        if len(lent) > kept:
            assert np.abs(lent.popleft() - awaited.popleft()).max() <= 1
    assert len(addresses) <= 3 + kept


def test_a_frame_that_is_lent_is_waited_for_by_itself(tmp_path: Path) -> None:
    device, made = stand_in(tmp_path)
    backend, runner = Here(device), ProgramRunner(ContextTable())
    (unit,) = built("display(me@x, me@y, fract(me@time))").units
    compiled = backend.compile_subgraph(unit, Env(31, 17), runner)
    begun: Any = None
    for tick in range(6):
        made.calls.clear()
        picture = backend.execute_subgraph(compiled, Env(31, 17, tick, tick / 60), runner)
        assert isinstance(picture, PictureHandle)
        if begun is not None:
            begun()
        begun = picture.lending()
    # Nothing waits for the end of all work, which would be that of the frame that has just begun, too.
    assert made.calls["cuMemcpyDtoHAsync_v2"] == 1
    assert "cuStreamQuery" not in made.calls


@pytest.mark.long
def test_what_was_allocated_is_freed(tmp_path: Path) -> None:
    device, made = stand_in(tmp_path)
    drawn(device, TEXTS["feedback"], 3)
    gc.collect()
    assert made.pinned
    assert set(made.memory) == made.pinned, "what copies are made to is used again"
    before = len(made.programs)
    del device
    gc.collect()
    assert (before > 0, len(made.programs)) == (True, 0)


def test_a_frame_costs_few_calls(tmp_path: Path) -> None:
    device, made = stand_in(tmp_path)
    backend, runner = Here(device), ProgramRunner(ContextTable())
    (unit,) = built("display(me@x, me@y, fract(me@time))").units
    compiled = backend.compile_subgraph(unit, Env(31, 17), runner)

    def draw(tick: int) -> None:
        backend.execute_subgraph(compiled, Env(31, 17, tick, tick / 60), runner)

    for tick in range(4):
        draw(tick)
        backend.sync()
    made.calls.clear()
    draw(4)
    backend.sync()
    assert made.calls == {"cuCtxSetCurrent": 1, "cuLaunchKernel": 1, "cuStreamQuery": 1}
    # A frame that is not waited for at once is marked before the next one, and that mark is what is waited for.
    for tick in range(5, 10):
        draw(tick)
    made.calls.clear()
    for tick in range(10, 15):
        draw(tick)
    assert made.calls == {"cuCtxSetCurrent": 10, "cuLaunchKernel": 5, "cuEventRecord": 5, "cuEventQuery": 5}


@pytest.mark.parametrize(
    ("text", "blocks", "threads"),
    [
        ("display(me@x, me@y, fract(me@time))", 2, 512),
        (f"display({' + '.join(f'noise(me@x * {n}, me@y)' for n in range(9))})", 3, 256),
    ],
    ids=["short", "long"],
)
def test_blocks_are_as_large_as_programs_are_compiled_for(
    text: str, blocks: int, threads: int, tmp_path: Path
) -> None:
    device, made = stand_in(tmp_path)
    backend, runner = Here(device), ProgramRunner(ContextTable())
    (unit,) = built(text).units
    compiled = backend.compile_subgraph(unit, Env(31, 17), runner)
    backend.execute_subgraph(compiled, Env(31, 17), runner)
    assert set(made.launched) == {(blocks, threads)}
    assert f"__launch_bounds__({threads}, {1024 // threads})" in backend.own(compiled).dump()


def test_a_text_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    device, made = stand_in(tmp_path)
    text = 'extern "C" __global__ void f(const int frame, float *x) { x[0] = 1.0f; }\n'
    device.compile(text, "f")
    device.compile(text, "f")
    assert (made.calls["nvrtcCompileProgram"], made.calls["cuModuleLoadData"]) == (1, 1)


def test_a_program_is_kept_for_the_same_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = 'extern "C" __global__ void f(const int frame, float *x) { x[0] = 1.0f; }\n'

    def compiles(dialect: str, text: str) -> bool:
        device, made = stand_in(tmp_path, dialect)
        device.compile(text, "f")
        return any("Compile" in name for name in made.calls)

    assert compiles("cuda", text)
    assert not compiles("cuda", text)
    assert not compiles("cuda", text.replace("\n", "  // remarks are for people\n"))
    assert compiles("cuda", text.replace("1.0f", "2.0f"))
    assert compiles("hip", text), "another driver"
    for kept in (tmp_path / "cache" / "weft" / "programs").iterdir():
        kept.write_bytes(kept.read_bytes()[:-3] + b"abc")
    assert compiles("cuda", text), "a damaged one is compiled again"


def test_bytes_that_nobody_waits_for_leave_their_memory_to_others(cuda: CardDevice) -> None:
    buffer = cuda.send(np.arange(5000, dtype=np.float32))
    cuda.read(buffer)
    free = {size: len(memory) for size, memory in cuda._pinned._free.items()}
    arriving = cuda.read(buffer, start=4, size=8)
    assert arriving().view(np.float32).tolist() == [1, 2]
    del arriving
    assert all(len(cuda._pinned._free[size]) >= count for size, count in free.items())


def test_a_text_that_the_compiler_refuses_names_its_line(cuda: CardDevice) -> None:
    with pytest.raises(CompileError) as refused:
        cuda.compile('extern "C" __global__ void f(float *x) {\n    x[0] = nothing;\n}\n', "f")
    assert refused.value.line == 2
    assert "nothing" in refused.value.words


def test_without_its_packages_it_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _, made = stand_in(tmp_path)
    monkeypatch.setattr(Nvidia, "driver", lambda self: made.library)
    for name in ("cuda", "cuda.pathfinder"):
        monkeypatch.setitem(sys.modules, name, None)
    (found,) = CudaVisual.probe()
    assert (found.available, found.reason) == (False, "NVIDIA's compiler NVRTC is not installed")
    assert found.remedy == "pip install 'weft-live[cuda]'"
    with pytest.raises(DeviceLostError, match="visual cannot continue: NVIDIA's compiler NVRTC is not installed"):
        CudaVisual().open()


@pytest.mark.parametrize("backend", [CudaVisual, HipVisual])
def test_without_a_driver_there_is_a_reason(backend: type[CudaVisual], monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr("weft.backends.cuda.driver.ctypes.CDLL", nothing)
    (found,) = backend.probe()
    assert not found.available
    assert found.reason in ("there is no driver of NVIDIA", "ROCm is not installed (libamdhip64)")


@pytest.mark.parametrize(
    ("dialect", "driver", "compute"),
    [("cuda", "CUDA 13.0", "compute capability 9.0"), ("hip", "HIP 13.0", "generation 9.0")],
)
def test_a_card_is_described(dialect: str, driver: str, compute: str, tmp_path: Path) -> None:
    device, _ = stand_in(tmp_path, dialect)
    (found,) = devices(device.maker)
    assert (found.available, found.name, found.driver, found.compute) == (True, "this processor", driver, compute)
    assert (found.memory_total, found.unified) == (8 << 30, False)
    assert found.memory_free == (8 << 30 if dialect == "cuda" else 7 << 30)
    with pytest.raises(ComputeError, match="the device 1 cannot be opened"):
        type(device)(1)


def test_a_name_that_cuda_has_is_another_one(cuda: CardDevice) -> None:
    text = "threadIdx = me@x\nfloat3 = me@y\npixel = 0.5\ndisplay(<threadIdx, float3, pixel>)\n"
    expected = Offline(built(text), on_processor("vector", "visual")).at(0)
    assert np.abs(drawn(cuda, text, 1).astype(int) - expected).max() <= 1


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    device, made = stand_in(tmp_path)
    made.most = 1000
    with pytest.raises(WeftError, match="out of memory"):
        drawn(device, TEXTS["feedback"], 1)


@pytest.mark.parametrize("by", [1.0, 2.0**30, 2.0**31, 2.0**32, 2.0**33, 2.0**54, 2.0**55, 2.0**60, 2.0**90])
@pytest.mark.parametrize("sign", ["", "-"])
def test_coordinates_of_any_size_have_the_same_hashes(by: float, sign: str, cuda: CardDevice) -> None:
    """Cells beyond 32 bits, their edges, and the last number below 2³¹."""
    places = f"({sign}(me@px * 0.5 * {by!r}))"
    text = f"display(hash({places}, 3), noise({places}, me@y * 5), hash(min({places}, 2147483520), floor({places})))\n"
    expected = Offline(built(text), on_processor("vm", "visual")).at(0.0)
    assert np.abs(drawn(cuda, text, 1).astype(int) - expected).max() <= 1


@pytest.mark.parametrize("dialect", ["cuda", "hip"])
def test_a_card_that_hangs_is_lost_and_nothing_waits_for_it_again(tmp_path: Path, dialect: str) -> None:
    device, made = stand_in(tmp_path, dialect)
    backend, runner = (Here if dialect == "cuda" else HereByHip)(device), ProgramRunner(ContextTable())
    (unit,) = built(TEXTS["feedback"]).units
    compiled = backend.compile_subgraph(unit, Env(31, 17), runner)
    picture = backend.execute_subgraph(compiled, Env(31, 17), runner)
    assert isinstance(picture, PictureHandle)
    begun, made.hangs, device.waits.most = picture.lending(), True, 0.01
    for asked in (begun, picture.read, backend.sync, partial(backend.remembered, compiled)):
        with pytest.raises(DeviceLostError, match=r"its device has not answered for 0\.01 seconds"):
            asked()
    # A driver would free memory and programs only when it has done what it was asked for.
    made.calls.clear()
    del backend, compiled, picture, begun, asked, device
    gc.collect()
    assert made.calls == {}
