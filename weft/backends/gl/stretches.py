"""Stretches of sound on the graphics card: one is asked for, and its samples are fetched when they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.card_sound import SampleChunk
from weft.backends.gl.drawing import Bindings, LaunchInputs, PictureTextures
from weft.backends.gl.graphics import ContextState, Graphics
from weft.backends.gl.memory import GlMemory
from weft.backends.gl.opengl import GL
from weft.backends.gl.programs import ShaderProgram
from weft.backends.gl.textures import Buffer, Texture
from weft.backends.launch import SINCE, Launch
from weft.backends.launch_numbers import Once, PrologueBlock, line
from weft.backends.sound_code import SoundCode
from weft.codegen.base import Kernel

_STORAGE = GL.GL_SHADER_STORAGE_BUFFER


class GlSampleChunk(SampleChunk):
    """Samples in buffers of the card."""

    def __init__(self, graphics: Graphics, first: int, shape: tuple[int, int, int], stops: bool) -> None:
        """In a context of the graphics. `shape` is [channels, outputs, count]."""
        super().__init__(first, shape)
        self._graphics = graphics
        self._stops = stops
        self._like = np.zeros(shape[1:], np.float32)
        self.values = [_filled(graphics, self._like) for _ in range(shape[0])]
        self.limit = _filled(graphics, np.zeros(1, np.uint32))

    def fetched(self) -> Sequence[npt.NDArray[np.float32]]:
        with self._graphics.drawing():
            found = [values.read(_STORAGE, self._like) for values in self.values]
            if self._stops and self.limit.read(_STORAGE, np.zeros(1, np.uint32))[0]:
                self.stopped = True
        return found


class GlSounding:
    """The program of a sound, with its buffers."""

    def __init__(self, graphics: Graphics, place: ContextState, kernel: Kernel, code: SoundCode, sources: PictureTextures) -> None:
        """In a context of the graphics. Raises WeftError if the driver refuses the program."""
        self._graphics = graphics
        self._sources = sources
        self._code = code
        self._once = Once(kernel)
        self._block = PrologueBlock(code.shader)
        self._memory = GlMemory(graphics, place, (), (1, 1))
        self._bindings = Bindings(graphics, ShaderProgram(graphics, code.shader))
        self._coords = {name: Buffer(graphics) for name in code.coords}
        self._since = np.zeros(0, np.float32)
        """The time within a stretch, as it is on the card."""

    def rehearse(self) -> None:
        """Computes nothing once: a driver may finish a program only at its first use. In a context of the graphics."""
        nothing = GlSampleChunk(self._graphics, 0, (1, len(self._code.shader.outputs), 1), stops=False)
        for name in self._coords:
            self._coords[name].fill(_STORAGE, np.zeros(1, np.float32))
        black = Texture(self._graphics, (1, 1), wide=True)
        black.fill(np.zeros((1, 1, 4), np.float32))
        textures = {bound.key: black for bound in self._code.shader.pictures}
        self._bindings.bind(self._block.empty(), self._memory, LaunchInputs(textures))
        self._compute(nothing, 0)

    def begin(self, first: int, launches: Sequence[Launch]) -> GlSampleChunk:
        """Asks for the samples of a stretch, of which there is a launch for each channel; waits for nothing. Raises
        GraphicsError."""
        machines = [self._once.begin(self._memory, launch) for launch in launches]
        shader, count = self._code.shader, launches[0].shape[1]
        with self._graphics.drawing():
            stretch = GlSampleChunk(self._graphics, first, (len(launches), len(shader.outputs), count), shader.stops)
            given = self._sources.given(shader, launches[0].pictures, {})
            for channel, (machine, launch) in enumerate(zip(machines, launches, strict=True)):
                self._bindings.bind(self._block.packed(machine, 0), self._memory, given)
                self._fill(launch, count)
                self._compute(stretch, channel)
            GL.glMemoryBarrier(GL.GL_BUFFER_UPDATE_BARRIER_BIT)
            GL.glFlush()
        stretch.stopped = any(machine.loop_stopped for machine in machines)
        return stretch

    def _fill(self, launch: Launch, count: int) -> None:
        """Brings the coordinates of the samples to the card. The time within a stretch is there already, unless this
        one is longer or shorter than the one before."""
        for name, buffer in self._coords.items():
            values = line(launch.coords[name], count)
            if name == SINCE and np.array_equal(values, self._since):
                continue
            buffer.fill(_STORAGE, values)
            if name == SINCE:
                self._since = values

    def _compute(self, stretch: GlSampleChunk, channel: int) -> None:
        buffers = [stretch.values[channel], *self._coords.values(), stretch.limit]
        for at, buffer in enumerate(buffers):
            GL.glBindBufferBase(_STORAGE, at, buffer.number)
        GL.glDispatchCompute(-(-stretch.count // (self._code.shader.workgroup or 1)), 1, 1)


def _filled(graphics: Graphics, data: npt.NDArray[Any]) -> Buffer:
    buffer = Buffer(graphics)
    buffer.fill(_STORAGE, data)
    return buffer
