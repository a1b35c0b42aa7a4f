"""A subgraph on the graphics card: made ready in a context of its own, with programs, memory and pictures."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.backends.base import PictureHandle
from weft.backends.card import CardCompiled
from weft.backends.card_sound import SampleChunk
from weft.backends.executor import Stillness
from weft.backends.gl.drawing import (
    Bindings, Canvas, ExposedStrand, GlMemory, LaunchInputs, PictureTextures, ShaderProgram, draw, tiles_are_faster
)
from weft.backends.gl.graphics import GL, ContextState, Graphics
from weft.backends.gl.textures import Buffer, BufferTexture, GlPicture, Texture, check_row
from weft.backends.launch import SINCE, Floats, Launch, Picture
from weft.backends.prologue import Once, PrologueBlock, line
from weft.backends.reads import Answers, Fetch, StrandReads
from weft.backends.shaders import ShaderCode, SoundCode
from weft.backends.vm import Machine
from weft.codegen import glsl
from weft.codegen.clike.shader import Shader, UnsuitableError
from weft.codegen.kernel import Kernel, Unit
from weft.names import StrandRef

# How many pictures are requested before one is waited for: more would only add latency.
_AHEAD = 2

# Whether a loop reached its limit is read every 30 ticks only, since it takes a wait.
_LOOK = 30

_FOREVER = 2**63 - 1


class Begun(NamedTuple):
    """A tick that can be drawn: its block of numbers, and the answers of other subgraphs."""

    machine: Machine
    answers: Answers


class DrawPass:
    """A program over a picture, with its block of numbers and its textures."""

    def __init__(
        self, graphics: Graphics, kernel: Kernel, shader: Shader, program: ShaderProgram | None = None
    ) -> None:
        """In a context of the graphics. Raises WeftError if the driver refuses the program."""
        self.graphics = graphics
        self.shader = shader
        self.once = Once(kernel)
        self.strands = StrandReads(kernel)
        self.program = program or ShaderProgram(graphics, shader)
        self.bindings = Bindings(graphics, self.program)
        self.block = PrologueBlock(shader)

    def begin(self, memory: GlMemory, launch: Launch) -> Begun:
        """Prepares a tick: runs its prologue, and reads the strands of other subgraphs."""
        machine = self.once.begin(memory, launch)
        return Begun(machine, self.strands.answers(machine, self.graphics))

    def draw(
        self, place: ContextState, begun: Begun, memory: GlMemory, sources: PictureTextures, canvas: Canvas
    ) -> None:
        """One tick. Does not advance the memory."""
        given = sources.given(self.shader, begun.machine.launch.pictures, begun.answers)
        draw(place, self.bindings, self.block.packed(begun.machine, 0), memory, given, canvas)

    def rehearse(
        self, place: ContextState, shape: tuple[int, int], pictures: Mapping[str, Picture], sources: PictureTextures
    ) -> None:
        """Draws something small and invisible, since a driver may finish a program only at its first use."""
        small = (_alike(shape[0]), _alike(shape[1]))
        memory = GlMemory(self.graphics, place, self.once.kernel.slots, small)
        given = sources.given(self.shader, pictures, self.strands.nothing())
        canvas = Canvas(self.graphics, self.shader, small)
        draw(place, self.bindings, self.block.empty(), memory, given, canvas)


def _alike(side: int) -> int:
    """A small side for a rehearsal, a power of two if the side is one: some drivers compile a separate program for
    that."""
    return 16 if side & (side - 1) == 0 else 12


@dataclass
class GlCompiled(CardCompiled):
    """A subgraph on the graphics card."""

    unit: Unit
    graphics: Graphics
    code: ShaderCode
    grid: DrawPass
    exposed: Mapping[StrandRef, ExposedStrand]
    memory: GlMemory
    sources: PictureTextures
    canvases: deque[Canvas]
    stillness: Stillness
    drawn: PictureHandle | None = None
    _fences: deque[Any] = field(default_factory=deque)
    _wide: DrawPass | None = None

    @property
    def once(self) -> Once:
        return self.grid.once

    @property
    def device(self) -> object:
        return self.graphics

    def can_bind(self, ref: StrandRef) -> bool:
        return self.exposed[ref].points is not None

    def bound_at(self, ref: StrandRef, launch: Launch) -> BufferTexture:
        return self.exposed[ref].numbers(self.memory, launch, self.sources)

    def draw(self, launch: Launch) -> GlPicture | None:
        begun = self.grid.begin(self.memory, launch)
        canvas = self.canvases[0]
        with self.graphics.drawing() as place:
            self._keep_up()
            self.grid.draw(place, begun, self.memory, self.sources, canvas)
            self._fences.append(GL.glFenceSync(GL.GL_SYNC_GPU_COMMANDS_COMPLETE, 0))
            stopped = begun.machine.loop_stopped or (self.memory.ticks % _LOOK == 0 and canvas.stopped())
        self.canvases.rotate(1)
        self.memory.advance()
        if stopped:
            launch.loop_stopped()
        return GlPicture(self.unit.subgraph.context, canvas.colours[0]) if canvas.colours else None

    def _keep_up(self) -> None:
        """Waits for the picture before the last, if it is unfinished."""
        while len(self._fences) >= _AHEAD:
            fence = self._fences.popleft()
            GL.glClientWaitSync(fence, GL.GL_SYNC_FLUSH_COMMANDS_BIT, _FOREVER)
            GL.glDeleteSync(fence)

    def planes(self, launch: Launch) -> npt.NDArray[Any]:
        if self._wide is None:
            with self.graphics.drawing():
                shader = glsl.over_picture(self.unit.kernel, packed=False)
                self._wide = DrawPass(self.graphics, self.unit.kernel, shader)
        return planes_of(self._wide, self.memory, launch, self.sources)

    def ask(self, ref: StrandRef, launch: Launch) -> Fetch:
        return self.exposed[ref].ask(self.memory, launch, self.sources)

    def dump(self) -> str:
        return self.grid.shader.text


def planes_of(wide: DrawPass, memory: GlMemory, launch: Launch, sources: PictureTextures) -> Floats:
    """One tick of a program that gives plain outputs [outputs, height, width]. Advances the state."""
    begun = wide.begin(memory, launch)
    with wide.graphics.drawing() as place:
        canvas = Canvas(wide.graphics, wide.shader, launch.shape)
        wide.draw(place, begun, memory, sources, canvas)
        targets = [np.moveaxis(texture.read(), -1, 0) for texture in canvas.colours]
        stopped = begun.machine.loop_stopped or canvas.stopped()
    memory.advance()
    if stopped:
        launch.loop_stopped()
    nothing = np.zeros((0, *launch.shape), np.float32)
    return np.concatenate([nothing, *targets])[: len(wide.shader.outputs)]


# Sound: a chunk is requested, and its samples are fetched when they are needed.

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

    def __init__(
        self, graphics: Graphics, place: ContextState, kernel: Kernel, code: SoundCode, sources: PictureTextures
    ) -> None:
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
        """The time within a chunk, as it is on the card."""

    def rehearse(self) -> None:
        """Runs the program over no samples, since a driver may finish it only at its first use. In a context of the
        graphics."""
        nothing = GlSampleChunk(self._graphics, 0, (1, len(self._code.shader.outputs), 1), stops=False)
        for name in self._coords:
            self._coords[name].fill(_STORAGE, np.zeros(1, np.float32))
        black = Texture(self._graphics, (1, 1), wide=True)
        black.fill(np.zeros((1, 1, 4), np.float32))
        textures = {bound.key: black for bound in self._code.shader.pictures}
        self._bindings.bind(self._block.empty(), self._memory, LaunchInputs(textures))
        self._compute(nothing, 0)

    def begin(self, first: int, launches: Sequence[Launch]) -> GlSampleChunk:
        """Starts to compute a chunk, with a launch for each channel; does not wait. Raises GraphicsError."""
        machines = [self._once.begin(self._memory, launch) for launch in launches]
        shader, count = self._code.shader, launches[0].shape[1]
        with self._graphics.drawing():
            chunk = GlSampleChunk(self._graphics, first, (len(launches), len(shader.outputs), count), shader.stops)
            given = self._sources.given(shader, launches[0].pictures, {})
            for channel, (machine, launch) in enumerate(zip(machines, launches, strict=True)):
                self._bindings.bind(self._block.packed(machine, 0), self._memory, given)
                self._fill(launch, count)
                self._compute(chunk, channel)
            GL.glMemoryBarrier(GL.GL_BUFFER_UPDATE_BARRIER_BIT)
            GL.glFlush()
        chunk.stopped = any(machine.loop_stopped for machine in machines)
        return chunk

    def _fill(self, launch: Launch, count: int) -> None:
        """Uploads the coordinates of the samples. The time within a chunk is uploaded only if its length has
        changed."""
        for name, buffer in self._coords.items():
            values = line(launch.coords[name], count)
            if name == SINCE and np.array_equal(values, self._since):
                continue
            buffer.fill(_STORAGE, values)
            if name == SINCE:
                self._since = values

    def _compute(self, chunk: GlSampleChunk, channel: int) -> None:
        buffers = [chunk.values[channel], *self._coords.values(), chunk.limit]
        for at, buffer in enumerate(buffers):
            GL.glBindBufferBase(_STORAGE, at, buffer.number)
        GL.glDispatchCompute(-(-chunk.count // (self._code.shader.workgroup or 1)), 1, 1)


def _filled(graphics: Graphics, data: npt.NDArray[Any]) -> Buffer:
    buffer = Buffer(graphics)
    buffer.fill(_STORAGE, data)
    return buffer


# Subgraphs are made ready in a context of their own, so that they do not hold up a frame.

# The programs of this many recent units are kept, for when the user returns to an earlier text.
_KEPT = 12

# Pictures are drawn to these by turns.
_CANVASES = 2


class ProgramFactory:
    """Makes the subgraphs of one backend ready to run."""

    def __init__(self, graphics: Graphics, tiled: bool | None = None) -> None:
        """`tiled` says whether pictures are computed in tiles instead of drawn; None measures which is faster."""
        self.graphics = graphics
        self._tiled = tiled
        self._sources = PictureTextures(graphics)
        self._programs: dict[str, ShaderProgram] = {}

    def compiled(
        self, unit: Unit, code: ShaderCode, shape: tuple[int, int], pictures: Mapping[str, Picture]
    ) -> GlCompiled:
        """A subgraph for pictures of this shape (height, width), with zeroed state; its program has been rehearsed.
        Raises WeftError if the card cannot take it, and GraphicsError if it fails."""
        graphics = self.graphics
        with graphics.preparing() as place:
            program = self._program(unit, code, place)
            grid = DrawPass(graphics, unit.kernel, program.shader, program)
            check_row(graphics, grid.strands.most(shape))
            grid.rehearse(place, shape, pictures, self._sources)
            return GlCompiled(
                unit,
                graphics,
                code,
                grid,
                {ref: ExposedStrand(graphics, kernel, code.points.get(ref)) for ref, kernel in unit.points.items()},
                GlMemory(graphics, place, unit.kernel.slots, shape),
                self._sources,
                deque(Canvas(graphics, program.shader, shape) for _ in range(_CANVASES)),
                Stillness(unit.kernel),
            )

    def sound(self, unit: Unit, code: SoundCode) -> GlSounding:
        """The program of a sound, which has been rehearsed. Raises WeftError if the driver refuses it, and
        GraphicsError if the card fails."""
        with self.graphics.preparing() as place:
            sounding = GlSounding(self.graphics, place, unit.kernel, code, self._sources)
            sounding.rehearse()
            return sounding

    def _program(self, unit: Unit, code: ShaderCode, place: ContextState) -> ShaderProgram:
        known = self._programs.pop(unit.hash, None)
        program = known or ShaderProgram(self.graphics, self._form(unit, code.grid, place))
        self._programs[unit.hash] = program
        while len(self._programs) > _KEPT:
            del self._programs[next(iter(self._programs))]
        return program

    def _form(self, unit: Unit, drawn: Shader, place: ContextState) -> Shader:
        """The program of a unit, drawn or in tiles, whichever is faster on this card."""
        if not drawn.packed:
            return drawn
        if self._tiled is None:
            self._tiled = tiles_are_faster(self.graphics, place)
        if self._tiled:
            with suppress(UnsuitableError):
                return glsl.tiled(unit.kernel)
        return drawn
