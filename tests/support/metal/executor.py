"""Kernels in Metal, run on a device with metalcompute's interface: what the machines do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.support.metal.device import CpuDevice
from weft.apple import AppleDevice
from weft.backends.executors import NOTHING, load_stages
from weft.backends.launch import Floats, Launch, StateMemory
from weft.backends.prologue import Answers, LaunchPrologue, PrologueBlock, StrandReads
from weft.codegen.clike.shader import BufferSpec, BufferUse, Shader
from weft.codegen.kernel import Kernel
from weft.codegen.msl import Msl

# Through these there is a real device, where they are installed; weft takes the first.
_LIBRARIES = {"pyobjc": "Metal", "metalcompute": "metalcompute"}
FOUND = [name for name, module in _LIBRARIES.items() if find_spec(module) is not None]


@pytest.fixture(scope="session")
def device() -> Iterator[Any]:
    """A device of Metal: the real one, by the library that weft takes, else one that runs kernels on the processor."""
    match FOUND:
        case ["pyobjc", *_]:
            yield AppleDevice()
        case ["metalcompute"]:
            yield import_module("metalcompute").Device()
        case _:
            with CpuDevice() as made:
                yield made


def shader_of(kernel: Kernel, packed: bool = False) -> Shader:
    return Msl.points(kernel) if kernel.sweep == "points" else Msl.pixels(kernel, packed)


class MetalExecutor:
    """Makes kernels ready in Metal; see `weft.backends.executors.Executor`."""

    name = "msl"
    widest = np.float32

    def __init__(self, device: Any) -> None:
        self._device = device

    def prepare(self, kernels: Sequence[Kernel], packed: Sequence[Kernel] = ()) -> None:
        """Compiles kernels over pictures at once, as outputs and those that are `packed` as pixels, where the device
        can."""
        if hasattr(self._device, "prepare"):
            shaders = [shader_of(stage) for kernel in kernels for stage in (kernel, *kernel.stages)]
            shaders += [shader_of(kernel, packed=True) for kernel in packed]
            self._device.prepare([shader.text for shader in shaders])

    def translate(self, kernel: Kernel, packed: bool, tier: int = 1) -> None:
        return None

    def load(self, kernel: Kernel, codes: Mapping[bool, object] = NOTHING) -> Any:
        if kernel.stages:
            return load_stages(self, kernel, codes)  # type: ignore[arg-type]
        return MetalExecutable(kernel, self._device)


class MetalExecutable:
    """A kernel in Metal. What it remembers is handed to the device with every launch, and taken back."""

    tier = None

    def __init__(self, kernel: Kernel, device: Any) -> None:
        self.kernel = kernel
        self._device = device
        self._once = LaunchPrologue(kernel)
        self._strands = StrandReads(kernel)
        self._made: dict[bool, tuple[Shader, PrologueBlock, Any]] = {}

    def planes(self, memory: StateMemory, launch: Launch) -> Floats:
        shape = (len(self.kernel.outputs), *launch.shape)
        found = self._run(memory, launch, packed=False, size=4 * int(np.prod(shape)))
        return found.view(np.float32).reshape(shape)

    def rgba8(self, memory: StateMemory, launch: Launch, out: npt.NDArray[np.uint8]) -> None:
        out[...] = self._run(memory, launch, packed=True, size=out.nbytes).reshape(out.shape)

    def _program(self, packed: bool) -> tuple[Shader, PrologueBlock, Any]:
        if packed not in self._made:
            shader = shader_of(self.kernel, packed)
            function = self._device.kernel(shader.text).function(shader.entry)
            self._made[packed] = shader, PrologueBlock(shader), function
        return self._made[packed]

    def _run(self, memory: StateMemory, launch: Launch, packed: bool, size: int) -> npt.NDArray[np.uint8]:
        shader, block, function = self._program(packed)
        over_points = self.kernel.sweep == "points"
        machine = self._once.begin(memory, launch)
        numbers = block.packed(machine, int(over_points))
        answers = self._strands.answers(machine, self._device)
        given = [self._buffer(buffer, memory, launch, numbers, answers, size) for buffer in shader.buffers]
        run = function(int(np.prod(launch.shape)), *given)
        del run  # waits for it
        found = {buffer: np.frombuffer(data, np.uint8) for buffer, data in zip(shader.buffers, given, strict=True)}
        for slot in {place.slot for place in shader.stores}:
            ring = memory.ring(slot)
            ring[...] = found[BufferSpec(BufferUse.RING, slot)].view(np.float32).reshape(ring.shape)
        if not over_points and self.kernel.tick != "never":
            memory.advance()
        limit = found.get(BufferSpec(BufferUse.LIMIT))
        if machine.loop_stopped or (limit is not None and limit.any()):
            launch.loop_stopped()
        return found.get(BufferSpec(BufferUse.OUT), np.zeros(0, np.uint8))

    def _buffer(
        self, buffer: BufferSpec, memory: StateMemory, launch: Launch, numbers: npt.NDArray[np.uint32],
        answers: Answers, size: int,
    ) -> Any:
        match buffer.use:
            case BufferUse.FRAME:
                data: npt.NDArray[Any] = numbers
            case BufferUse.OUT:
                data = np.full(size, 0x2A, np.uint8)  # it can be told if an element is left out
            case BufferUse.COORDINATE:
                data = np.broadcast_to(np.asarray(launch.coords[buffer.key], np.float32), launch.shape[1])
            case BufferUse.RING | BufferUse.HISTORY:
                data = memory.ring(buffer.key).astype(np.float32)
            case BufferUse.PICTURE:
                data = launch.pictures[buffer.key]
            case BufferUse.EXTERNAL_READ:
                data = answers[buffer.key]
            case BufferUse.LIMIT:
                data = np.zeros(1, np.uint32)
        return self._device.buffer(np.ascontiguousarray(data).reshape(-1).view(np.uint8))
