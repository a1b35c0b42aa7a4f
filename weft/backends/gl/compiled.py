"""A subgraph on the graphics card: made ready in a context of its own, with programs, memory and pictures."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from weft.backends.base import PictureHandle
from weft.backends.card import CardCompiled
from weft.backends.card_sound import SampleChunk
from weft.backends.executor import RecentlyUsed, Stillness
from weft.backends.gl.drawing import (
    Canvas, DrawPass, ExposedStrand, GlMemory, Pending, PictureTextures, Points, ShaderProgram, planes_of,
    tiles_are_faster
)
from weft.backends.gl.graphics import GL, ContextState, Graphics
from weft.backends.gl.textures import BufferTexture, GlPicture, check_row
from weft.backends.launch import Floats, Launch, Picture
from weft.backends.prologue import LaunchPrologue
from weft.backends.reads import Fetch
from weft.backends.shaders import ShaderCode, SoundCode, one_sample
from weft.codegen import glsl
from weft.codegen.clike.shader import Shader, UnsuitableError
from weft.codegen.kernel import Kernel, Unit
from weft.names import StrandRef

# How many pictures are requested before one is waited for: more would only add latency.
_AHEAD = 2

# Whether a loop reached its limit is read every 30 ticks only, since it takes a wait.
_LOOK = 30

_FOREVER = 2**63 - 1


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
    def prologue(self) -> LaunchPrologue:
        return self.grid.prologue

    @property
    def device(self) -> object:
        return self.graphics

    def can_bind(self, ref: StrandRef) -> bool:
        return self.exposed[ref].points is not None

    def bound_at(self, ref: StrandRef, launch: Launch) -> BufferTexture:
        return self.exposed[ref].numbers(self.memory, launch, self.sources)

    def draw(self, launch: Launch) -> GlPicture | None:
        begun = self.grid.prepare(self.memory, launch)
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

    def planes(self, launch: Launch) -> Floats:
        if self._wide is None:
            with self.graphics.drawing():
                shader = glsl.over_picture(self.unit.kernel, packed=False)
                self._wide = DrawPass(self.graphics, self.unit.kernel, shader)
        return planes_of(self._wide, self.memory, launch, self.sources)

    def ask(self, ref: StrandRef, launch: Launch) -> Fetch:
        return self.exposed[ref].ask(self.memory, launch, self.sources)

    def dump(self) -> str:
        return self.grid.shader.text


# Sound: a chunk is requested, and its samples are fetched when they are needed.


class GlSampleChunk(SampleChunk):
    """Samples in buffers of the card, one for each channel."""

    def __init__(self, first: int, pending: Sequence[Pending]) -> None:
        super().__init__(first, (len(pending), *pending[0].shape))
        self._pending = pending

    def fetched(self) -> Sequence[Floats]:
        found = [pending.read() for pending in self._pending]
        self.stopped = any(pending.stopped for pending in self._pending)
        return found


class GlSounding:
    """The program of a sound."""

    def __init__(
        self, graphics: Graphics, place: ContextState, kernel: Kernel, code: SoundCode, sources: PictureTextures
    ) -> None:
        """In a context of the graphics. Raises WeftError if the driver refuses the program."""
        self._sources = sources
        self._memory = GlMemory(graphics, place, (), (1, 1))
        self._points = Points(graphics, kernel, code.shader)
        self._points.rehearse(self._memory, code.named(one_sample(kernel, 0.0)))

    def begin(self, first: int, launches: Sequence[Launch]) -> GlSampleChunk:
        """Starts to compute a chunk, with a launch for each channel; does not wait. Raises GraphicsError."""
        with self._points.graphics.drawing():
            chunk = GlSampleChunk(first, [self._points.begin(self._memory, each, self._sources) for each in launches])
            GL.glFlush()
        return chunk


# Subgraphs are made ready in a context of their own, so that they do not hold up a frame.

# The programs of this many recent units are kept, for when the user returns to an earlier text.
_PROGRAMS = 12

# Pictures are drawn to these by turns.
_CANVASES = 2


class ProgramFactory:
    """Makes the subgraphs of one backend ready to run."""

    def __init__(self, graphics: Graphics, tiled: bool | None = None) -> None:
        """`tiled` says whether pictures are computed in tiles instead of drawn; None measures which is faster."""
        self.graphics = graphics
        self._tiled = tiled
        self._sources = PictureTextures(graphics)
        self._programs: RecentlyUsed[str, ShaderProgram] = RecentlyUsed(_PROGRAMS)

    def compiled(
        self, unit: Unit, code: ShaderCode, shape: tuple[int, int], pictures: Mapping[str, Picture]
    ) -> GlCompiled:
        """A subgraph for pictures of this shape (height, width), with zeroed state; its program has been rehearsed.
        Raises WeftError if the card cannot take it, and GraphicsError if it fails."""
        graphics = self.graphics
        with graphics.preparing() as place:
            program = self._programs.get_or_make(
                unit.hash, lambda: ShaderProgram(graphics, self._form(unit, code.grid, place))
            )
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
            return GlSounding(self.graphics, place, unit.kernel, code, self._sources)

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
