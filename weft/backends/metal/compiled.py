"""A subgraph on the device: its kernels, what it remembers, and the pictures it draws."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.asked_points import PointReads, Fetch
from weft.backends.card_compiled import CardCompiled, CardPicture
from weft.backends.launch import Launch, Reals
from weft.backends.launch_numbers import Once
from weft.backends.metal.library import MetalError
from weft.backends.metal.memory import MetalMemory
from weft.backends.metal.program import ComputeProgram, DeviceResult, PictureBuffers
from weft.backends.shader_code import ShaderCode
from weft.backends.still import Stillness
from weft.codegen import msl
from weft.codegen.unit import Unit
from weft.names import StrandRef

# Pictures are drawn to so many buffers by turns.
_BUFFERS = 2


class MetalPicture(CardPicture):
    """A picture in a buffer."""

    def __init__(self, memory: MetalMemory, buffer: Any, shape: tuple[int, int]) -> None:
        super().__init__(shape)
        self._memory = memory
        self.buffer = buffer
        """The pixels, as far as they are drawn."""

    def fetched(self) -> npt.NDArray[np.uint8]:
        self._memory.wait()
        return np.frombuffer(self.buffer, np.uint8).reshape(self.shape).copy()


class MetalCompiled(CardCompiled):
    """A subgraph in memory that the device shares."""

    memory: MetalMemory

    def __init__(self, unit: Unit, code: ShaderCode, device: Any, sources: PictureBuffers, shape: tuple[int, int]) -> None:
        """With zeroed memory. Raises WeftError if the compiler refuses a kernel, MetalError if memory is lacking."""
        self.unit = unit
        self.code = code
        self.grid = ComputeProgram(device, unit.kernel, code.grid)
        self._device = device
        self._sources = sources
        self._wide: ComputeProgram | None = None if code.grid.packed else self.grid
        self._asked: dict[StrandRef, tuple[PointReads, ComputeProgram | None]] = {}
        self.stillness = Stillness(unit.kernel)
        self.drawn = None
        try:
            self.memory = MetalMemory(device, unit.kernel.slots, shape)
            self._buffers = deque(device.buffer(4 * shape[0] * shape[1]) for _ in range(_BUFFERS))
        except Exception as failure:
            raise MetalError(f"there is no memory for a picture of {shape[1]}×{shape[0]} ({failure})") from failure

    def draw(self, launch: Launch) -> MetalPicture | None:
        buffer = self._buffers[0]
        self._start(self.grid, launch, buffer)
        self._buffers.rotate(1)
        return MetalPicture(self.memory, buffer, launch.shape) if self.unit.kernel.outputs else None

    def planes(self, launch: Launch) -> Reals:
        if self._wide is None:
            self._wide = ComputeProgram(self._device, self.unit.kernel, msl.pixels(self.unit.kernel, packed=False))
        shape = (len(self.unit.kernel.outputs), *launch.shape)
        out = self._device.buffer(4 * max(1, int(np.prod(shape))))
        self._start(self._wide, launch, out)
        self.memory.wait()
        if self._wide.stopped():
            launch.loop_stopped()
        return np.frombuffer(out, np.float32)[: int(np.prod(shape))].reshape(shape).copy()

    def _start(self, program: ComputeProgram, launch: Launch, out: Any) -> None:
        """Launches a tick when the one before is over."""
        self.memory.wait()
        machine = program.once.begin(self.memory, launch)
        if program.stopped() or machine.loop_stopped:
            launch.loop_stopped()
        self.memory.running = program.launch(machine, self.memory, launch, self._sources, out)
        self.memory.advance()

    def ask(self, ref: StrandRef, launch: Launch) -> Fetch:
        """The processor, which shares the memory, computes what is little."""
        asked, program = self._reading(ref)
        self.memory.wait()
        on_card = None if program is None else lambda: self._points(program, launch)
        return asked.ask(launch, on_card, self.memory)

    @property
    def once(self) -> Once:
        return self.grid.once

    @property
    def device(self) -> object:
        return self._device

    def can_bind(self, ref: StrandRef) -> bool:
        return ref in self.code.points

    def bound_at(self, ref: StrandRef, launch: Launch) -> DeviceResult:
        _, program = self._reading(ref)
        if program is None:
            raise ValueError("the processor computes it")
        return self._left(program, launch)

    def _reading(self, ref: StrandRef) -> tuple[PointReads, ComputeProgram | None]:
        if ref not in self._asked:
            kernel, shader = self.unit.points[ref], self.code.points.get(ref)
            program = ComputeProgram(self._device, kernel, shader) if shader is not None else None
            self._asked[ref] = PointReads(kernel, shared=True), program
        return self._asked[ref]

    def _points(self, program: ComputeProgram, launch: Launch) -> Fetch:
        """Asks for the values [outputs, points] of a program over points."""
        left = self._left(program, launch)

        def fetch() -> Reals:
            left.wait()
            if program.stopped():
                launch.loop_stopped()
            shape = len(program.shader.outputs), launch.shape[1]
            return np.frombuffer(left.buffer, np.float32).reshape(shape).copy()

        return fetch

    def _left(self, program: ComputeProgram, launch: Launch) -> DeviceResult:
        """The same, left on the device; waits for nothing."""
        out = self._device.buffer(4 * max(1, len(program.shader.outputs) * launch.shape[1]))
        machine = program.once.begin(self.memory, launch)
        if machine.loop_stopped:
            launch.loop_stopped()
        return DeviceResult(out, program.launch(machine, self.memory, launch, self._sources, out))
