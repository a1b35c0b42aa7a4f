"""Programs on the graphics card: drawn over pictures and computed over points, and the subgraphs made of them."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from weft.backends.base import Env, PictureHandle
from weft.backends.card import CardCompiled, CardPictures, SampleChunk, ShaderCode, SoundCode, one_sample
from weft.backends.executors import Stillness
from weft.backends.gl.frame_calls import AFTER_TILES, GlCall, GlFrameCalls, Target, detach, in_tiles, make, over_targets
from weft.backends.gl.graphics import GL, ContextState, Graphics
from weft.backends.gl.memory import GlMemory
from weft.backends.gl.programs import FRAME, OWN_REFUSED, LinkedPrograms, drawing, linked
from weft.backends.gl.textures import (
    Buffer, BufferTexture, GlPicture, RowTexture, SoundTexture, Texture, bind, check_row, row_texture
)
from weft.backends.launch import Floats, Launch, Picture, Value, shape_of_level
from weft.backends.prologue import (
    Answers, CoordinateRows, Fetch, LaunchPrologue, PointReads, PrologueBlock, PrologueMachine, StrandReads, line
)
from weft.backends.records import VARIES, FrameRecord, prepared
from weft.backends.vm import Machine
from weft.codegen import essl, glsl
from weft.codegen.clike.shader import Forms, Shader
from weft.codegen.essl import ROW
from weft.codegen.glsl import TILE
from weft.codegen.kernel import Kernel, Unit
from weft.media.sounds import SIDES
from weft.names import StrandRef

# The pictures and sounds that a program samples, by their names.
_Sources: TypeAlias = Mapping[str, "Texture | SoundTexture"]


# Programs with their inputs.


class Begun(NamedTuple):
    """A launch that can be made: its prologue, and the values of other subgraphs."""

    machine: Machine
    answers: Answers


class GlProgram:
    """A kernel's program with its inputs: the launch prologue, histories, and external reads."""

    def __init__(
        self, programs: LinkedPrograms, kernel: Kernel, shader: Shader, prologue: LaunchPrologue | None = None
    ) -> None:
        """In a context of the graphics. Raises WeftError if the driver refuses the shader. A `prologue` of the kernel
        is shared."""
        self.graphics = graphics = programs.graphics
        self.shader = shader
        self.prologue = prologue or LaunchPrologue(kernel)
        self.strands = StrandReads(kernel)
        # A kernel over points gives values of the last finished tick; any other, those of this one.
        self._finished = int(kernel.sweep == "points")
        self.level = kernel.level
        self._program = programs.of(shader)
        self._words = PrologueBlock(shader)
        self._block = Buffer(graphics)
        self._rows = {bound.name: row_texture(graphics) for bound in (*shader.histories, *shader.external_reads)}
        self._images = {bound.name: bound.key for bound in shader.images}
        """The names of the images of slots, each with the key of a slot of it."""
        self._updated = list(shader.updated_images.values()) if shader.tile is not None else []
        """For tiles: a slot of each image that gets new values."""

    def prepare(self, memory: GlMemory, launch: Launch) -> Begun:
        """Runs the prologue of a launch, and reads the strands of other subgraphs."""
        machine = self.prologue.begin(memory, launch)
        return Begun(machine, self.strands.answers(machine, self.graphics))

    def bind(self, begun: Begun | None, memory: GlMemory, pictures: _Sources) -> None:
        """Makes the program current, and binds its inputs: `pictures` by their paths, and zeros without a launch."""
        memory.complete()
        shader, units, rows = self.shader, self._program.units, dict(self._rows)
        words = self._words.empty() if begun is None else self._words.packed(begun.machine, self._finished)
        answers = self.strands.nothing() if begun is None else begun.answers
        GL.glUseProgram(self._program.number)
        self._block.fill(GL.GL_UNIFORM_BUFFER, words)
        GL.glBindBufferBase(GL.GL_UNIFORM_BUFFER, FRAME, self._block.number)
        # Filling a texture binds it to the active unit, so all are filled before any is bound for the program.
        for bound in shader.histories:
            rows[bound.name].fill(memory.ring(bound.key))
        for bound in shader.external_reads:
            answer = answers[bound.key]
            if isinstance(answer, BufferTexture | RowTexture):
                rows[bound.name] = answer
            else:
                rows[bound.name].fill(answer)
        for name, row in rows.items():
            bind(units[name], row.kind, row.number)
        for name, key in self._images.items():
            bind(units[name], GL.GL_TEXTURE_2D_ARRAY, memory.layers(key).number)
        for bound in shader.pictures:
            bind(units[bound.name], GL.GL_TEXTURE_2D, pictures[bound.key].number)


class Canvas:
    """The render targets of a program: a texture for each, and one that marks where a loop was stopped."""

    def __init__(
        self, graphics: Graphics, shader: Shader, shape: tuple[int, int], before: Sequence[Canvas] = ()
    ) -> None:
        """With those of the programs before it. In a context of the graphics. Raises WeftError if the picture is too
        large."""
        self.shape = shape
        self.before = before
        self.colours = [Texture(graphics, shape, wide=not shader.packed) for _ in range(shader.colour_targets)]
        self.limit = Texture(graphics, shape) if shader.stops else None
        self.numbers = [each.number for each in (*self.colours, self.limit) if each is not None]
        """Those of all its textures."""

    @property
    def targets(self) -> list[Target]:
        """All of its textures, as targets."""
        return [(number, None) for number in self.numbers]

    def begin_look(self) -> None:
        """Asks the card for the data that `stopped` needs, without waiting."""
        for each in self.before:
            each.begin_look()
        if self.limit is not None:
            self.limit.begin_read()

    def stopped(self) -> bool:
        """Whether any loop had reached its limit at the last `begin_look`; waits until that has been drawn."""
        stopped = [each.stopped() for each in self.before]
        if self.limit is not None:
            found = np.empty((*self.shape, 4), np.uint8)
            self.limit.end_read(found)
            stopped.append(bool(found[..., 0].any()))
        return any(stopped)


class DrawPass(GlProgram):
    """A program over a picture, and those before it that store images which it reads."""

    def __init__(
        self, programs: LinkedPrograms, kernel: Kernel, shader: Shader, before: Sequence[Shader] = (),
        prologue: LaunchPrologue | None = None,
    ) -> None:  # fmt: skip
        super().__init__(programs, kernel, shader, prologue)
        self.before = [DrawPass(programs, kernel, each, prologue=self.prologue) for each in before]
        self._count = shader.colour_targets + len(shader.stores) + shader.stops
        """The number of its targets, if it is drawn."""

    @classmethod
    def of(cls, programs: LinkedPrograms, kernel: Kernel, shaders: Sequence[Shader]) -> DrawPass:
        """Programs that run one after another. In a context of the graphics."""
        return cls(programs, kernel, shaders[-1], shaders[:-1])

    def canvas(self, shape: tuple[int, int]) -> Canvas:
        """The targets for a picture of this shape. In a context of the graphics."""
        return Canvas(self.graphics, self.shader, shape, [each.canvas(shape) for each in self.before])

    def draw(
        self, place: ContextState, begun: Begun, memory: GlMemory, sources: PictureTextures, canvas: Canvas
    ) -> None:
        """One tick, in the context of the place. Does not advance the memory."""
        for each, own in zip(self.before, canvas.before, strict=True):
            each.draw(place, begun, memory, sources, own)
        textures = sources.textures(self.shader, begun.machine.launch.pictures)
        self._draw(place, begun, memory, textures, canvas)

    def record(self, machine: PrologueMachine, shape: tuple[int, int]) -> FrameRecord | None:
        """The record of its ticks over a shape; None if it cannot have one."""
        shader = self.shader
        needs_more = self.before or shader.stops or shader.histories or shader.external_reads or shader.pictures
        if needs_more or not shader.colour_targets:
            return None
        record = FrameRecord.of(self.prologue.kernel, shader, machine, shape)
        if record is None:
            return None
        written = (self._updated, ()) if shader.tile is not None else ((), shader.stores)
        whole, layers = shader.colour_targets + len(written[0]), len(written[1])
        drawing = self._drawing(VARIES, [(VARIES, None)] * whole + [(VARIES, VARIES)] * layers, shape)
        with self.graphics.drawing():
            record.makes(GlFrameCalls(self.graphics, shader, self._program, record.words, drawing, self._after))
        return record

    def given(self, place: ContextState, memory: GlMemory, canvas: Canvas) -> list[Any]:
        """What varies in the calls of its record that draw a tick in the context of a place."""
        if self.shader.tile is not None:
            return [*[memory.layers(key).number for key in self._updated], *canvas.numbers]
        targets = self._targets(memory, canvas)
        return [place.target, *[number for target in targets for number in target if number is not None]]

    def begin(self, place: ContextState) -> None:
        """Prepares the context of a place, which is current, for a tick."""
        if self.shader.tile is None:
            detach(place, self._count)

    def rehearse(
        self, place: ContextState, shape: tuple[int, int], pictures: Mapping[str, Picture], sources: PictureTextures
    ) -> None:
        """Uploads its pictures, and draws something small and invisible, since a driver may finish a program only at
        its first use. A program that other numbers have rehearsed is finished."""
        for each in self.before:
            each.rehearse(place, shape, pictures, sources)
        small, kernel = (_alike(shape[0]), _alike(shape[1])), self.prologue.kernel
        textures = sources.textures(self.shader, pictures)
        if small in self._program.rehearsed:
            return
        memory = GlMemory(self.graphics, kernel.slots, small)
        canvas = self.canvas(shape_of_level(small, kernel.level))
        self._draw(place, None, memory, textures, canvas)
        self._program.rehearsed.add(small)

    def _draw(
        self, place: ContextState, begun: Begun | None, memory: GlMemory, pictures: _Sources,
        canvas: Canvas,
    ) -> None:
        # Images that are made may need another texture than those which are there already.
        memory.complete()
        targets = self._targets(memory, canvas)
        if not targets:
            return
        self.bind(begun, memory, pictures)
        self.begin(place)
        make(self._drawing(place.target, targets, canvas.shape))
        make(self._after)

    def _targets(self, memory: GlMemory, canvas: Canvas) -> list[Target]:
        """What it writes to in a tick."""
        whole = canvas.targets
        if self.shader.tile is not None:
            return [*((memory.layers(key).number, None) for key in self._updated), *whole]
        for at, (key, plane) in enumerate(self.shader.stores, len(canvas.colours)):
            layers, cell = memory.layers(key), int(memory.cell(key))
            whole.insert(at, (layers.number, layers.first + cell * memory.slots[key].planes + plane))
        return whole

    def _drawing(self, frame_buffer: Any, targets: Sequence[Target], shape: tuple[int, int]) -> Iterator[GlCall]:
        """The calls that draw a tick."""
        shader = self.shader
        if shader.tile is not None:
            textures, images = [texture for texture, _ in targets], len(self._updated)
            yield from in_tiles(textures[:images], textures[images:], shape, shader.tile)
            return
        yield from over_targets(frame_buffer, targets, shape)

    @property
    def _after(self) -> Sequence[GlCall]:
        """The calls between a tick and what reads it."""
        if self.shader.tile is not None:
            return [AFTER_TILES]
        # The next tick reads other layers of the textures that this one wrote to.
        is_ordered = self.shader.stores and self.graphics.about.able.orders_drawing
        return [("glTextureBarrier",)] if is_ordered else []


def _alike(side: int) -> int:
    """A small side, a power of two if the side is one: some drivers compile a separate program for that."""
    return 16 if side & (side - 1) == 0 else 12


def plain_shaders(graphics: Graphics, kernel: Kernel) -> Sequence[Shader]:
    """The programs that draw the plain outputs of a kernel over a picture."""
    made: Forms = (essl if graphics.about.embedded else glsl).over_picture(kernel, packed=False)
    return made.shaders


class Stages:
    """The programs that compute the images of a tick, one after another, before the picture is drawn."""

    def __init__(self, passes: Sequence[DrawPass], shape: tuple[int, int]) -> None:
        """In a context of the graphics."""
        self._passes = [(each, each.canvas(shape_of_level(shape, each.level))) for each in passes]

    def draw(self, place: ContextState, memory: GlMemory, launch: Launch, sources: PictureTextures) -> list[Begun]:
        """All images of a tick, in the context of the place. The prologue of each may read those before it."""
        drawn = []
        for each, canvas in self._passes:
            begun = each.prepare(memory, launch.at_level(each.level))
            each.draw(place, begun, memory, sources, canvas)
            drawn.append(begun)
        return drawn

    @property
    def canvases(self) -> list[Canvas]:
        return [canvas for _, canvas in self._passes]


def look(canvases: Iterable[Canvas]) -> list[Canvas]:
    """Begins to look at what was drawn, for `any_stopped`."""
    begun = list(canvases)
    for canvas in begun:
        canvas.begin_look()
    return begun


def any_stopped(looks: Iterable[Canvas]) -> bool:
    """Whether any loop had reached its limit in what is looked at; waits until that has been drawn."""
    return any(canvas.stopped() for canvas in looks)


def planes_of(wide: DrawPass, stages: Stages, memory: GlMemory, launch: Launch, sources: PictureTextures) -> Floats:
    """One tick of a program that gives plain outputs [outputs, height, width], after its stages. Advances the state."""
    with wide.graphics.drawing() as place:
        canvas = wide.canvas(launch.shape)
        before = stages.draw(place, memory, launch, sources)
        begun = wide.prepare(memory, launch)
        wide.draw(place, begun, memory, sources, canvas)
        targets = [np.moveaxis(texture.read(), -1, 0) for texture in canvas.colours]
        stopped = any(each.machine.loop_stopped for each in (*before, begun))
        stopped |= any_stopped(look([canvas, *stages.canvases]))
    memory.advance()
    if stopped:
        launch.loop_stopped()
    nothing = np.zeros((0, *launch.shape), np.float32)
    return np.concatenate([nothing, *targets])[: len(wide.shader.outputs)]


def draw_triangle(place: ContextState, targets: Sequence[Target], shape: tuple[int, int]) -> None:
    """Draws over all of these targets with the current program."""
    detach(place, len(targets))
    make(over_targets(place.target, targets, shape))


class PictureTextures(CardPictures[Texture | SoundTexture]):
    """The pictures and sounds that programs sample, in textures."""

    def __init__(self, graphics: Graphics) -> None:
        super().__init__(self._texture)
        self._graphics = graphics

    def textures(self, shader: Shader, pictures: Mapping[str, Picture]) -> _Sources:
        """A program's pictures and sounds on the card, by their names. In a context of the graphics."""
        return {bound.key: self.on_card(bound.key, pictures[bound.key]) for bound in shader.pictures}

    def _texture(self, pixels: Picture, before: Texture | SoundTexture | None) -> Texture | SoundTexture:
        if pixels.shape[2] == SIDES:
            return SoundTexture(self._graphics, pixels)
        shape, wide = (pixels.shape[0], pixels.shape[1]), pixels.dtype != np.uint8
        again = before if isinstance(before, Texture) and before.shape == shape else None
        made = again or Texture(self._graphics, shape, wide)
        if wide:
            made.fill(pixels)
        else:
            made.stream(pixels)
        return made


# Whether a card is faster at drawing pictures or at computing them in tiles. Most are equally fast at both; cards made
# for computing draw with only a small part of their units.

# The side of the picture that is measured, and how often it is drawn.
_SIDE = 1024
_TIMES = 4

# Tiles have to be faster by this factor, since drawing works with every driver.
_WORTH = 1.5

_WORK = """
float work(vec2 at) {
    float sum = 0.0;
    for (int turn = 0; turn < 64; turn++) sum = sin(sum + at.x * 0.01 + at.y * 0.02);
    return sum;
}
"""

_DRAWN = f"""#version 330 core
layout(location = 0) out vec4 pixel;
{_WORK}
void main() {{
    pixel = vec4(work(gl_FragCoord.xy));
}}
"""

_TILED = f"""#version 430 core
layout(local_size_x = {TILE}, local_size_y = {TILE}) in;
layout(rgba8, binding = 0) uniform writeonly image2D pixel;
{_WORK}
void main() {{
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    imageStore(pixel, at, vec4(work(vec2(at) + 0.5)));
}}
"""


def tiles_are_faster(graphics: Graphics, place: ContextState) -> bool:
    """Measures both. In a context of the graphics."""
    if not graphics.about.able.computes or graphics.about.software:
        return False
    texture = Texture(graphics, (_SIDE, _SIDE))
    drawn = linked(drawing(_DRAWN), OWN_REFUSED)
    tiled = linked([(GL.GL_COMPUTE_SHADER, _TILED)], OWN_REFUSED)
    try:
        GL.glUseProgram(drawn)
        slow = _seconds(lambda: draw_triangle(place, [(texture.number, None)], texture.shape))
        GL.glUseProgram(tiled)
        calls = [*in_tiles([], [texture.number], texture.shape, TILE), AFTER_TILES]
        return slow > _WORTH * _seconds(lambda: make(calls))
    finally:
        GL.glDeleteProgram(drawn)
        GL.glDeleteProgram(tiled)


def _seconds(work: Callable[[], None]) -> float:
    work()
    GL.glFinish()
    began = time.perf_counter()
    for _ in range(_TIMES):
        work()
    GL.glFinish()
    return time.perf_counter() - began


# Reading a strand at a list of points.

_STORAGE = GL.GL_SHADER_STORAGE_BUFFER


@dataclass(slots=True)
class Pending:
    """Values [outputs, points] that were requested from the card."""

    graphics: Graphics
    buffer: Buffer
    limit: Buffer
    shape: tuple[int, int]
    stops: bool
    stopped: bool
    """Whether a loop reached its limit; outside the prologue, known once the values have been read."""

    def read(self) -> Floats:
        """Waits for the values."""
        with self.graphics.drawing():
            if self.stops and self.limit.read(_STORAGE, np.zeros(1, np.uint32))[0]:
                self.stopped = True
            return self.buffer.read(_STORAGE, np.empty(self.shape, np.float32)).reshape(self.shape)


class Points(GlProgram):
    """A program over points."""

    def __init__(self, programs: LinkedPrograms, kernel: Kernel, shader: Shader) -> None:
        super().__init__(programs, kernel, shader)
        self._rows_sent = CoordinateRows[Buffer]()
        self._changing = {name: Buffer(self.graphics) for name in shader.coords}
        """Buffers of coordinates that change."""

    def begin(self, memory: GlMemory, launch: Launch, sources: PictureTextures) -> Pending:
        """Requests the values without waiting."""
        begun = self.prepare(memory, launch)
        with self.graphics.drawing():
            return self._requested(begun, memory, launch, sources.textures(self.shader, launch.pictures))

    def rehearse(self, memory: GlMemory, launch: Launch) -> None:
        """Computes zeros, since a driver may finish a program only at its first use. In a context of the graphics."""
        black = Texture(self.graphics, (1, 1), wide=True)
        black.fill(np.zeros((1, 1, 4), np.float32))
        self._requested(None, memory, launch, {bound.key: black for bound in self.shader.pictures})

    def _coordinate(self, name: str, given: Value, count: int) -> Buffer:
        """A buffer with a coordinate of `count` points. In a context of the graphics."""
        changing = self._changing[name]
        if not isinstance(given, np.ndarray):
            changing.repeat(_STORAGE, given, count)
            return changing

        def send(row: Floats, changes: bool) -> Buffer:
            buffer = changing if changes else Buffer(self.graphics)
            buffer.fill(_STORAGE, row)
            return buffer

        return self._rows_sent.row(given, count, send)

    def _requested(
        self, begun: Begun | None, memory: GlMemory, launch: Launch, pictures: _Sources
    ) -> Pending:
        shape = len(self.shader.outputs), launch.shape[1]
        self.bind(begun, memory, pictures)
        values, limit = Buffer(self.graphics), Buffer(self.graphics)
        values.make_room(_STORAGE, math.prod(shape) * np.dtype(np.float32).itemsize)
        limit.fill(_STORAGE, np.zeros(1, np.uint32))
        places = [self._coordinate(name, launch.coords[name], shape[1]) for name in self._changing]
        for at, buffer in enumerate([values, *places, limit]):
            GL.glBindBufferBase(_STORAGE, at, buffer.number)
        GL.glDispatchCompute(-(-shape[1] // (self.shader.workgroup or 1)), 1, 1)
        GL.glMemoryBarrier(GL.GL_ALL_BARRIER_BITS)
        values.follow()
        if self.shader.stops:
            limit.follow()
        return Pending(
            self.graphics, values, limit, shape, self.shader.stops, begun is not None and begun.machine.loop_stopped
        )


@dataclass(frozen=True, slots=True)
class DrawnPending:
    """The same for points that are drawn."""

    canvas: Canvas
    shape: tuple[int, int]
    stopped: bool

    def read(self) -> Floats:
        """Waits for the values."""
        outputs, count = self.shape
        targets = [np.empty((*self.canvas.shape, 4), np.float32) for _ in self.canvas.colours]
        with self.canvas.colours[0].graphics.drawing():
            for texture, found in zip(self.canvas.colours, targets, strict=True):
                texture.end_read(found)
        return np.concatenate([found.reshape(-1, 4)[:count].T for found in targets])[:outputs]


class DrawnPoints(GlProgram):
    """A program over points, which are pixels, in rows of `ROW`."""

    def __init__(self, programs: LinkedPrograms, kernel: Kernel, shader: Shader) -> None:
        super().__init__(programs, kernel, shader)
        self._coordinates = {name: RowTexture(self.graphics) for name in shader.coords}

    def begin(self, memory: GlMemory, launch: Launch, sources: PictureTextures) -> DrawnPending:
        """Requests the values without waiting, unless there are loops that may stop."""
        begun, count = self.prepare(memory, launch), launch.shape[1]
        with self.graphics.drawing() as place:
            # Making or filling a texture binds it, so all are there before any is bound for the program.
            canvas = Canvas(self.graphics, self.shader, (-(-count // ROW), min(count, ROW)))
            for name, row in self._coordinates.items():
                row.fill(line(launch.coords[name], count))
            self.bind(begun, memory, sources.textures(self.shader, launch.pictures))
            for name, row in self._coordinates.items():
                bind(self._program.units[f"all_{name}"], row.kind, row.number)
            draw_triangle(place, canvas.targets, canvas.shape)
            for texture in canvas.colours:
                texture.begin_read()
            stopped = begun.machine.loop_stopped or any_stopped(look([canvas]))
        return DrawnPending(canvas, (len(self.shader.outputs), count), stopped)


class ExposedStrand:
    """A strand that others read."""

    def __init__(self, programs: LinkedPrograms, kernel: Kernel, shader: Shader | None) -> None:
        """In a context of the graphics. Without a shader, the CPU computes the strand."""
        self._graphics = graphics = programs.graphics
        self.points: Points | DrawnPoints | None = None
        if shader is not None and (graphics.about.able.computes or not shader.computes):
            self.points = (Points if shader.computes else DrawnPoints)(programs, kernel, shader)
        self._reads = PointReads(kernel, shared=False)

    def ask(self, memory: GlMemory, launch: Launch, sources: PictureTextures) -> Fetch:
        """Requests a value for each point."""
        points = self.points

        def on_card() -> Fetch:
            assert points is not None
            pending = points.begin(memory, launch, sources)

            def fetch() -> Floats:
                values = pending.read()
                if pending.stopped:
                    launch.loop_stopped()
                return values

            return fetch

        return self._reads.ask(launch, on_card if points is not None else None, memory)

    def numbers(self, memory: GlMemory, launch: Launch, sources: PictureTextures) -> BufferTexture:
        """A value for each point, computed by the card and left there in the form that programs read. Does not wait.
        Raises ValueError for a strand that the card leaves elsewhere."""
        if not isinstance(self.points, Points):
            raise ValueError("they are not in a buffer")
        pending = self.points.begin(memory, launch, sources)
        with self._graphics.drawing():
            return BufferTexture(self._graphics, pending.buffer)


# A subgraph on the graphics card: made ready in a context of its own, with programs, memory and pictures.

# Whether a loop reached its limit is checked only every 30 ticks.
_LOOK = 30


@dataclass
class GlCompiled(CardCompiled):
    """A subgraph on the graphics card."""

    unit: Unit
    programs: LinkedPrograms
    code: ShaderCode
    stages: Stages
    grid: DrawPass
    exposed: Mapping[StrandRef, ExposedStrand]
    memory: GlMemory
    sources: PictureTextures
    canvases: deque[Canvas]
    stillness: Stillness
    drawn: PictureHandle | None = None
    _looks: list[Canvas] = field(default_factory=list)
    """What was drawn in the last tick, if that is to be checked."""
    _wide: DrawPass | None = None

    def __post_init__(self) -> None:
        self._under_way = self.graphics.frames()
        self._ready_in: ContextState | None = None
        """Where the record is ready to draw."""

    @property
    def graphics(self) -> Graphics:
        return self.programs.graphics

    @property
    def prologue(self) -> LaunchPrologue:
        return self.grid.prologue

    @property
    def device(self) -> object:
        return self.graphics

    def can_bind(self, ref: StrandRef) -> bool:
        return isinstance(self.exposed[ref].points, Points)

    def bound_at(self, ref: StrandRef, launch: Launch) -> BufferTexture:
        return self.exposed[ref].numbers(self.memory, launch, self.sources)

    def new_record(self, machine: PrologueMachine) -> FrameRecord | None:
        return self.grid.record(machine, self.memory.shape)

    def draw_by(self, record: FrameRecord, inputs: bytes, env: Env) -> GlPicture:
        with self.graphics.drawing() as place:
            self._under_way.begin()
            if self._ready_in is not place or not record.is_ready(self.memory):
                self._make_ready(record, place)
            self.grid.begin(place)
            stopped = record.draw(inputs, self.memory)
            self._under_way.end(record.calls.fence)
        # Only now is it known not to have failed.
        shown = GlPicture(self.unit.subgraph.context, self.canvases[0].colours[0])
        self.canvases.rotate(1)
        self.memory.advance()
        self._make_ready(record, place)
        if stopped:
            env.loop_stopped(self.unit.kernel.name)
        return shown

    def _make_ready(self, record: FrameRecord, place: ContextState) -> None:
        """Makes the next frame ready for the context of a place. That has to be current only before the first frame,
        for the images that are missing then."""
        self.memory.complete()
        record.calls.draw_to(self.memory, self.grid.given(place, self.memory, self.canvases[0]))
        record.make_ready(self.memory)
        self._ready_in = place

    def draw(self, launch: Launch) -> GlPicture | None:
        self.forget_record()
        canvas = self.canvases[0]
        with self.graphics.drawing() as place:  # entered once: the reads of other subgraphs would each enter it
            self._under_way.begin()
            before = self.stages.draw(place, self.memory, launch, self.sources)
            begun = self.grid.prepare(self.memory, launch)
            self.grid.draw(place, begun, self.memory, self.sources, canvas)
            self._under_way.end()
            stopped = any(each.machine.loop_stopped for each in (*before, begun))
            stopped |= any_stopped(self._looks)
            self._looks = look([canvas, *self.stages.canvases]) if self.memory.ticks % _LOOK == 0 else []
            if self.memory.ticks == 0:
                stopped |= any_stopped(self._looks)
                self._looks = []
        self.canvases.rotate(1)
        self.memory.advance()
        if stopped:
            launch.loop_stopped()
        return GlPicture(self.unit.subgraph.context, canvas.colours[0]) if canvas.colours else None

    def planes(self, launch: Launch) -> Floats:
        if self._wide is None:
            with self.graphics.drawing():
                shaders = plain_shaders(self.graphics, self.unit.kernel)
                self._wide = DrawPass.of(self.programs, self.unit.kernel, shaders)
        return planes_of(self._wide, self.stages, self.memory, launch, self.sources)

    def ask(self, ref: StrandRef, launch: Launch) -> Fetch:
        return self.exposed[ref].ask(self.memory, launch, self.sources)

    def dump(self) -> str:
        return "\n".join(each.shader.text for each in (*self.grid.before, self.grid))


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
        self, programs: LinkedPrograms, kernel: Kernel, code: SoundCode, sources: PictureTextures
    ) -> None:
        """In a context of the graphics. Raises WeftError if the driver refuses the program."""
        self._sources = sources
        self._memory = GlMemory(programs.graphics, (), (1, 1))
        self._points = Points(programs, kernel, code.shader)
        self._points.rehearse(self._memory, code.named(one_sample(kernel, 0.0)))

    def begin(self, first: int, launches: Sequence[Launch]) -> GlSampleChunk:
        """Starts to compute a chunk, with a launch for each channel; does not wait. Raises GraphicsError."""
        with self._points.graphics.drawing():
            chunk = GlSampleChunk(first, [self._points.begin(self._memory, each, self._sources) for each in launches])
            GL.glFlush()
        return chunk


# Subgraphs are made ready in a context of their own, so that they do not hold up a frame.

# Pictures are drawn to these in turn.
_CANVASES = 2


class ProgramFactory:
    """Makes the subgraphs of one backend ready to run."""

    subgraph_class: ClassVar[type[GlCompiled]] = GlCompiled
    """The class of the subgraphs that it makes."""

    def __init__(self, graphics: Graphics, tiled: bool | None = None) -> None:
        """`tiled` says whether pictures are computed in tiles instead of drawn; None measures which is faster."""
        self.graphics = graphics
        self._tiled = tiled
        self._sources = PictureTextures(graphics)
        self._programs = LinkedPrograms(graphics)

    def compiled(
        self, unit: Unit, code: ShaderCode, shape: tuple[int, int], pictures: Mapping[str, Picture]
    ) -> GlCompiled:
        """A subgraph for pictures of this shape (height, width), with zeroed state; its program has been rehearsed.
        Raises WeftError if the card cannot take it, and GraphicsError if it fails."""
        graphics = self.graphics

        def make(place: ContextState) -> GlCompiled:
            grid, *stages = (
                DrawPass.of(self._programs, kernel, self._shaders(forms, place))
                for kernel, forms in zip(
                    (unit.kernel, *unit.kernel.stages), (code.grid, *code.stages), strict=True
                )
            )
            for each in (*stages, grid):
                check_row(graphics, each.strands.most(shape))
                each.rehearse(place, shape, pictures, self._sources)
            exposed = {
                ref: ExposedStrand(self._programs, kernel, code.points.get(ref)) for ref, kernel in unit.points.items()
            }
            memory = GlMemory(graphics, unit.kernel.slots, shape)
            canvases = deque(grid.canvas(shape) for _ in range(_CANVASES))
            made = GlCompiled(
                unit, self._programs, code, Stages(stages, shape), grid, exposed, memory, self._sources, canvases,
                Stillness(unit.kernel),
            )  # fmt: skip
            # What machine code needs is made here, where no frame waits for it.
            made.may_record = grid.shader.packed and prepared() is not None
            return made

        return graphics.prepared(make)

    def sound(self, unit: Unit, code: SoundCode) -> GlSounding:
        """The program of a sound, which has been rehearsed. Raises WeftError if the driver refuses it, and
        GraphicsError if the card fails."""
        return self.graphics.prepared(
            lambda _: GlSounding(self._programs, unit.kernel, code, self._sources)
        )

    def _shaders(self, forms: Forms, place: ContextState) -> Sequence[Shader]:
        """The programs of a kernel, drawn or in tiles, whichever is faster on this card."""
        if self._tiled is None and forms.tiles:
            self._tiled = tiles_are_faster(self.graphics, place)
        return (forms.tiles if self._tiled else ()) or forms.shaders
