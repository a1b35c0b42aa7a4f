"""Reads a strand at a list of points: on the graphics card in one go, or with the processor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.asked_points import AskedPoints
from weft.backends.gl.drawing import Bindings, Sources
from weft.backends.gl.graphics import Graphics
from weft.backends.gl.memory import GlMemory
from weft.backends.gl.opengl import GL
from weft.backends.gl.programs import Program
from weft.backends.gl.textures import Buffer, Texture
from weft.backends.launch import Launch, Reals
from weft.backends.launch_numbers import Block, Once, line
from weft.codegen.base import Kernel
from weft.codegen.clike.shader import Shader


class Points:
    """One program over points, with its buffers."""

    def __init__(self, graphics: Graphics, kernel: Kernel, shader: Shader) -> None:
        """In a context of the graphics. The kernel may sweep a picture: then it is asked about this tick, else about
        the one finished last."""
        self._graphics = graphics
        self._shader = shader
        self._finished = int(kernel.sweep == "points")
        self._once = Once(kernel)
        self._block = Block(shader)
        self._bindings = Bindings(graphics, Program(graphics, shader))
        self._buffers = [Buffer(graphics) for _ in range(len(shader.coords) + 2)]

    def values(self, memory: GlMemory, launch: Launch, sources: Sources) -> Reals:
        """The values [outputs, points]; waits for them."""
        machine = self._once.begin(memory, launch)
        words = self._block.packed(machine, self._finished)
        with self._graphics.drawing():
            pictures = sources.textures({bound.key: launch.pictures[bound.key] for bound in self._shader.pictures})
            values, stopped = self._computed(words, launch, memory, pictures)
        if stopped or machine.loop_stopped:
            launch.loop_stopped()
        return values

    def _computed(
        self, words: npt.NDArray[Any], launch: Launch, memory: GlMemory, pictures: Mapping[str, Texture]
    ) -> tuple[Reals, bool]:
        count, outputs = launch.shape[1], len(self._shader.outputs)
        self._bindings.bind(words, memory, pictures)
        coords = [line(launch.coords[name], count) for name in self._shader.coords]
        given = [np.zeros(outputs * count, np.float32), *coords, np.zeros(1, np.uint32)]
        for at, (buffer, array) in enumerate(zip(self._buffers, given, strict=True)):
            buffer.fill(GL.GL_SHADER_STORAGE_BUFFER, array)
            GL.glBindBufferBase(GL.GL_SHADER_STORAGE_BUFFER, at, buffer.number)
        GL.glDispatchCompute(-(-count // (self._shader.workgroup or 1)), 1, 1)
        GL.glMemoryBarrier(GL.GL_ALL_BARRIER_BITS)
        stopped = self._shader.stops and bool(self._buffers[-1].read(GL.GL_SHADER_STORAGE_BUFFER, given[-1])[0])
        values = self._buffers[0].read(GL.GL_SHADER_STORAGE_BUFFER, given[0])
        return values.reshape(outputs, count), stopped


class Asked:
    """A strand that others read."""

    def __init__(self, graphics: Graphics, kernel: Kernel, shader: Shader | None) -> None:
        """In a context of the graphics. Without a shader, the processor computes it."""
        self._points = Points(graphics, kernel, shader) if shader is not None and graphics.about.computes else None
        self._asked = AskedPoints(kernel, shared=False)

    def values(self, memory: GlMemory, launch: Launch, sources: Sources) -> npt.NDArray[Any]:
        """A value for each point."""
        points = self._points
        on_card = None if points is None else lambda: points.values(memory, launch, sources)
        return self._asked.values(launch, on_card, memory)
