"""Kernels on a device that computes into buffers: what the machines do."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pytest

from weft.backends.compute.arrays import RemoteMemory
from weft.backends.compute.interface import ComputeError, RemoteDevice
from weft.backends.compute.subgraph import ComputeProgram, PictureBuffers
from weft.backends.cuda.backend import CudaDevice
from weft.backends.executors import NOTHING, load_stages
from weft.backends.launch import Floats, Launch, StateMemory
from weft.backends.opencl.queue import ClDevice
from weft.backends.wgpu.webgpu import WgpuDevice
from weft.codegen.clike.buffers import KernelLanguage
from weft.codegen.kernel import Kernel
from weft.codegen.opencl import OpenCl

_Device = TypeVar("_Device", ClDevice, WgpuDevice)


@pytest.fixture(scope="session")
def nvidia() -> CudaDevice:
    """The first card of NVIDIA. Where there is none, the test is skipped: no software stands in for its driver."""
    try:
        return CudaDevice(0)
    except ComputeError as problem:
        pytest.skip(f"no {CudaDevice.library}: {problem}")


@pytest.fixture(scope="session")
def opencl() -> ClDevice:
    """The first device of OpenCL. Where there is none, the test is skipped, but in CI on Linux it fails."""
    if sys.platform == "darwin":
        pytest.skip("Apple's OpenCL, which it does not maintain, is not what this is held to")
    return _opened(ClDevice)


@pytest.fixture(scope="session")
def wgpu() -> WgpuDevice:
    """The first device of WebGPU. Where there is none, the test is skipped, but in CI on Linux it fails."""
    if sys.version_info < (3, 11):
        pytest.skip("wgpu needs a newer Python")
    if sys.platform == "darwin":
        pytest.skip("its compiler of Metal, which may assume that there is no NaN, is not what this is held to yet")
    return _opened(WgpuDevice)


def _opened(device: type[_Device]) -> _Device:
    try:
        return device(0)
    except ComputeError as problem:
        fail_or_skip = pytest.fail if os.environ.get("CI") and sys.platform == "linux" else pytest.skip
        fail_or_skip(f"no {device.library}: {problem}")


class ComputeExecutor:
    """Makes kernels ready in the language of a device; see `weft.backends.executors.Executor`."""

    widest = np.float32

    def __init__(self, device: RemoteDevice, language: type[KernelLanguage] = OpenCl) -> None:
        self.name = language.name
        self._device = device
        self._language = language

    def translate(self, kernel: Kernel, packed: bool, tier: int = 1) -> None:
        return None

    def load(self, kernel: Kernel, codes: Mapping[bool, object] = NOTHING) -> Any:
        if kernel.stages:
            return load_stages(self, kernel, codes)  # type: ignore[arg-type]
        return ComputeExecutable(kernel, self._device, self._language)


class ComputeExecutable:
    """A kernel on a device. What it remembers is handed to the device with every launch, and taken back."""

    tier = None

    def __init__(self, kernel: Kernel, device: RemoteDevice, language: type[KernelLanguage]) -> None:
        self.kernel = kernel
        self._device = device
        self._language = language
        self._made: dict[bool, ComputeProgram] = {}

    def planes(self, memory: StateMemory, launch: Launch) -> Floats:
        shape = (len(self.kernel.outputs), *launch.shape)
        found = self._run(memory, launch, packed=False, size=4 * int(np.prod(shape)))
        return found.view(np.float32).reshape(shape)

    def rgba8(self, memory: StateMemory, launch: Launch, out: npt.NDArray[np.uint8]) -> None:
        out[...] = self._run(memory, launch, packed=True, size=out.nbytes).reshape(out.shape)

    def _program(self, packed: bool) -> ComputeProgram:
        if packed not in self._made:
            over_points = self.kernel.sweep == "points"
            language = self._language
            shader = language.points(self.kernel) if over_points else language.pixels(self.kernel, packed)
            self._made[packed] = ComputeProgram(self._device, self.kernel, shader)
        return self._made[packed]

    def _run(self, memory: StateMemory, launch: Launch, packed: bool, size: int) -> npt.NDArray[np.uint8]:
        program = self._program(packed)
        there = RemoteMemory(self.kernel.slots, memory.shape, self._device)
        there.ticks = memory.ticks
        there._offsets = memory._offsets
        for key in there.slots:
            if key in there.buffers:
                self._device.write(there.buffers[key], memory.ring(key).astype(np.float32))
            else:
                there._rings[key] = memory.ring(key)
        # It can be told if an element is left out.
        out = self._device.send(np.full(max(4, size), 0x2A, np.uint8))
        work = program.start(there, launch, PictureBuffers(self._device), out)
        work.wait()
        for slot in {place.slot for place in program.shader.stores}:
            memory.ring(slot)[...] = there.ring(slot)
        if self.kernel.sweep != "points" and self.kernel.tick != "never":
            memory.advance()
        if work.stopped():
            launch.loop_stopped()
        return self._device.read(out)()[:size]
