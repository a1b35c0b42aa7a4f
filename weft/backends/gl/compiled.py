"""A subgraph on the graphics card: its programs, what it remembers, and the pictures it draws."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.backends.asked_points import Fetch
from weft.backends.asked_strands import Answers, StrandReads
from weft.backends.base import PictureHandle
from weft.backends.card_compiled import CardCompiled
from weft.backends.gl.drawing import Bindings, Canvas, PictureTextures, draw
from weft.backends.gl.graphics import ContextState, Graphics
from weft.backends.gl.memory import GlMemory
from weft.backends.gl.opengl import GL
from weft.backends.gl.picture import GlPicture
from weft.backends.gl.points import ExposedStrand
from weft.backends.gl.programs import ShaderProgram
from weft.backends.gl.textures import BufferTexture
from weft.backends.interpreter import Machine
from weft.backends.launch import Launch, Picture, Reals
from weft.backends.launch_numbers import Once, PrologueBlock
from weft.backends.shader_code import ShaderCode
from weft.backends.still import Stillness
from weft.codegen import glsl
from weft.codegen.base import Kernel
from weft.codegen.clike.shader import Shader
from weft.codegen.unit import Unit
from weft.names import StrandRef

# So many pictures are asked for before one is waited for: more would only make them late.
_AHEAD = 2

# What a loop met is looked up in one of so many ticks, since it takes a wait.
_LOOK = 30

_FOREVER = 2**63 - 1


class Begun(NamedTuple):
    """A tick that can be drawn: its numbers, and what other subgraphs answered."""

    machine: Machine
    answers: Answers


class DrawPass:
    """A program over a picture, with the numbers and textures that it needs."""

    def __init__(self, graphics: Graphics, kernel: Kernel, shader: Shader, program: ShaderProgram | None = None) -> None:
        """In a context of the graphics. Raises WeftError if the driver refuses the program."""
        self.graphics = graphics
        self.shader = shader
        self.once = Once(kernel)
        self.strands = StrandReads(kernel)
        self.program = program or ShaderProgram(graphics, shader)
        self.bindings = Bindings(graphics, self.program)
        self.block = PrologueBlock(shader)

    def begin(self, memory: GlMemory, launch: Launch) -> Begun:
        """What comes before a tick is drawn: computes its numbers, and asks other subgraphs for what it reads."""
        machine = self.once.begin(memory, launch)
        return Begun(machine, self.strands.answers(machine, self.graphics))

    def draw(self, place: ContextState, begun: Begun, memory: GlMemory, sources: PictureTextures, canvas: Canvas) -> None:
        """One tick. Does not advance the memory."""
        given = sources.given(self.shader, begun.machine.launch.pictures, begun.answers)
        draw(place, self.bindings, self.block.packed(begun.machine, 0), memory, given, canvas)

    def rehearse(self, place: ContextState, shape: tuple[int, int], pictures: Mapping[str, Picture], sources: PictureTextures) -> None:
        """Draws something small that nobody sees: a driver may finish a program only at its first use."""
        small = (_alike(shape[0]), _alike(shape[1]))
        memory = GlMemory(self.graphics, place, self.once.kernel.slots, small)
        given = sources.given(self.shader, pictures, self.strands.nothing())
        canvas = Canvas(self.graphics, self.shader, small)
        draw(place, self.bindings, self.block.empty(), memory, given, canvas)


def _alike(side: int) -> int:
    """A small side, a power of two if the side is one: for some drivers that is another program."""
    return 16 if side & (side - 1) == 0 else 12


@dataclass
class GlCompiled(CardCompiled):
    """A subgraph on the graphics card."""

    unit: Unit
    graphics: Graphics
    code: ShaderCode
    grid: DrawPass
    asked: Mapping[StrandRef, ExposedStrand]
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
        return self.asked[ref].points is not None

    def bound_at(self, ref: StrandRef, launch: Launch) -> BufferTexture:
        return self.asked[ref].numbers(self.memory, launch, self.sources)

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
        """Waits for the picture before the last, if it is not finished."""
        while len(self._fences) >= _AHEAD:
            fence = self._fences.popleft()
            GL.glClientWaitSync(fence, GL.GL_SYNC_FLUSH_COMMANDS_BIT, _FOREVER)
            GL.glDeleteSync(fence)

    def planes(self, launch: Launch) -> npt.NDArray[Any]:
        if self._wide is None:
            with self.graphics.drawing():
                self._wide = DrawPass(self.graphics, self.unit.kernel, glsl.over_picture(self.unit.kernel, packed=False))
        return planes_of(self._wide, self.memory, launch, self.sources)

    def ask(self, ref: StrandRef, launch: Launch) -> Fetch:
        return self.asked[ref].ask(self.memory, launch, self.sources)

    def dump(self) -> str:
        return self.grid.shader.text


def planes_of(wide: DrawPass, memory: GlMemory, launch: Launch, sources: PictureTextures) -> Reals:
    """One tick of a program that gives its outputs as they are: [outputs, height, width]. Advances the state."""
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
