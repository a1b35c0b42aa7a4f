"""Reads a strand at a list of points: on the graphics card in one go, or with the processor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.asked_points import PointReads, Fetch
from weft.backends.asked_strands import StrandReads
from weft.backends.gl.drawing import Bindings, LaunchInputs, PictureTextures
from weft.backends.gl.graphics import Graphics
from weft.backends.gl.memory import GlMemory
from weft.backends.gl.opengl import GL
from weft.backends.gl.programs import ShaderProgram
from weft.backends.gl.textures import Buffer, BufferTexture
from weft.backends.launch import Launch, Reals, Value
from weft.backends.launch_numbers import Once, PrologueBlock, line
from weft.codegen.base import Kernel
from weft.codegen.clike.shader import Shader

_STORAGE = GL.GL_SHADER_STORAGE_BUFFER

# Rows of coordinates that stay as they are are kept on the card: so many of those used last.
_KEPT = 8


@dataclass(frozen=True, slots=True)
class Pending:
    """Values [outputs, points] that the card has been asked for."""

    values: Buffer
    limit: Buffer
    shape: tuple[int, int]
    stops: bool
    stopped: bool
    """Whether a loop was stopped before the launch."""


class Points:
    """One program over points."""

    def __init__(self, graphics: Graphics, kernel: Kernel, shader: Shader) -> None:
        """In a context of the graphics. The kernel may sweep a picture: then it is asked about this tick, else about
        the one finished last."""
        self._graphics = graphics
        self._shader = shader
        self._finished = int(kernel.sweep == "points")
        self._once = Once(kernel)
        self._strands = StrandReads(kernel)
        self._block = PrologueBlock(shader)
        self._bindings = Bindings(graphics, ShaderProgram(graphics, shader))
        self._coordinates = [_CoordinateBuffers(graphics) for _ in shader.coords]

    def begin(self, memory: GlMemory, launch: Launch, sources: PictureTextures) -> Pending:
        """Asks for the values; waits for nothing."""
        machine = self._once.begin(memory, launch)
        answers = self._strands.answers(machine, self._graphics)
        words = self._block.packed(machine, self._finished)
        with self._graphics.drawing():
            given = sources.given(self._shader, launch.pictures, answers)
            values, limit = self._computed(words, launch, memory, given)
        shape = len(self._shader.outputs), launch.shape[1]
        return Pending(values, limit, shape, self._shader.stops, machine.loop_stopped)

    def values(self, pending: Pending, launch: Launch) -> Reals:
        """The values [outputs, points]; waits for them."""
        with self._graphics.drawing():
            stopped = pending.stops and bool(pending.limit.read(_STORAGE, np.zeros(1, np.uint32))[0])
            values = pending.values.read(_STORAGE, np.empty(pending.shape, np.float32))
        if stopped or pending.stopped:
            launch.loop_stopped()
        return values.reshape(pending.shape)

    def _computed(
        self, words: npt.NDArray[Any], launch: Launch, memory: GlMemory, given: LaunchInputs
    ) -> tuple[Buffer, Buffer]:
        count, outputs = launch.shape[1], len(self._shader.outputs)
        self._bindings.bind(words, memory, given)
        values, limit = Buffer(self._graphics), Buffer(self._graphics)
        values.make_room(_STORAGE, outputs * count * np.dtype(np.float32).itemsize)
        limit.fill(_STORAGE, np.zeros(1, np.uint32))
        places = [
            coordinate.buffer(launch.coords[name], count)
            for name, coordinate in zip(self._shader.coords, self._coordinates, strict=True)
        ]
        for at, buffer in enumerate([values, *places, limit]):
            GL.glBindBufferBase(_STORAGE, at, buffer.number)
        GL.glDispatchCompute(-(-count // (self._shader.workgroup or 1)), 1, 1)
        GL.glMemoryBarrier(GL.GL_ALL_BARRIER_BITS)
        return values, limit


class _CoordinateBuffers:
    """The buffers of one coordinate: one for what changes, and one for each row that stays as it is."""

    def __init__(self, graphics: Graphics) -> None:
        self._graphics = graphics
        self._changing = Buffer(graphics)
        self._kept: dict[int, tuple[Value, Buffer]] = {}

    def buffer(self, given: Value, count: int) -> Buffer:
        """A buffer with the coordinate of so many points. In a context of the graphics."""
        if not (isinstance(given, np.ndarray) and given.base is None and not given.flags.writeable):
            self._changing.fill(_STORAGE, line(given, count))
            return self._changing
        if id(given) not in self._kept:
            made = Buffer(self._graphics)
            made.fill(_STORAGE, line(given, count))
            self._kept[id(given)] = given, made
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        return self._kept[id(given)][1]


class ExposedStrand:
    """A strand that others read."""

    def __init__(self, graphics: Graphics, kernel: Kernel, shader: Shader | None) -> None:
        """In a context of the graphics. Without a shader, the processor computes it."""
        self._graphics = graphics
        self.points = Points(graphics, kernel, shader) if shader is not None and graphics.about.computes else None
        self._asked = PointReads(kernel, shared=False)

    def ask(self, memory: GlMemory, launch: Launch, sources: PictureTextures) -> Fetch:
        """Asks for a value for each point."""
        points = self.points

        def on_card() -> Fetch:
            assert points is not None
            return partial(points.values, points.begin(memory, launch, sources), launch)

        return self._asked.ask(launch, on_card if points is not None else None, memory)

    def numbers(self, memory: GlMemory, launch: Launch, sources: PictureTextures) -> BufferTexture:
        """The same as programs read it, computed by the card, where it stays. Waits for nothing. Raises ValueError for
        a strand that the card does not compute."""
        if self.points is None:
            raise ValueError("the processor computes it")
        pending = self.points.begin(memory, launch, sources)
        with self._graphics.drawing():
            return BufferTexture(self._graphics, pending.values)
