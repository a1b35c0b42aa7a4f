"""Runs a program over a picture: binds what it reads, attaches what it draws, and draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from weft.backends.asked_strands import Answers
from weft.backends.card_pictures import CardPictures
from weft.backends.gl.graphics import ContextState, Graphics
from weft.backends.gl.memory import GlMemory
from weft.backends.gl.opengl import GL
from weft.backends.gl.programs import ShaderProgram
from weft.backends.gl.textures import Buffer, BufferTexture, Texture, bind
from weft.backends.launch import Picture
from weft.codegen.clike.shader import Shader

_FRAME = 0
"""Where the block of numbers is bound."""


@dataclass(frozen=True, slots=True)
class LaunchInputs:
    """What a launch of a program is given that comes from elsewhere: pictures by their paths, and what other subgraphs
    answered, by the keys that the program has for it."""

    pictures: Mapping[str, Texture]
    answers: Answers = field(default_factory=dict)


class Bindings:
    """What one use of a program reads besides images and pictures: the block of numbers, histories, and answers that
    are sent to the card."""

    def __init__(self, graphics: Graphics, program: ShaderProgram) -> None:
        """In a context of the graphics."""
        self.program = program
        self._block = Buffer(graphics)
        self._histories = {bound.key: BufferTexture(graphics) for bound in program.shader.histories}
        self._answers = {bound.key: BufferTexture(graphics) for bound in program.shader.asked}

    def bind(self, words: npt.NDArray[Any], memory: GlMemory, given: LaunchInputs) -> None:
        """Makes the program the one that runs next, with all that it reads."""
        shader, units = self.program.shader, self.program.units
        GL.glUseProgram(self.program.number)
        self._block.fill(GL.GL_UNIFORM_BUFFER, words)
        GL.glBindBufferBase(GL.GL_UNIFORM_BUFFER, _FRAME, self._block.number)
        # What is filled is bound for it, wherever the last one was: so all of it comes first.
        for bound in shader.histories:
            self._histories[bound.key].fill(memory.ring(bound.key))
        answers = {bound.key: self._answer(bound.key, given.answers[bound.key]) for bound in shader.asked}
        for bound in shader.histories:
            bind(units[bound.name], GL.GL_TEXTURE_BUFFER, self._histories[bound.key].number)
        for bound in shader.images:
            bind(units[bound.name], GL.GL_TEXTURE_2D_ARRAY, memory.layers[bound.key].number)
        for bound in shader.pictures:
            bind(units[bound.name], GL.GL_TEXTURE_2D, given.pictures[bound.key].number)
        for bound in shader.asked:
            bind(units[bound.name], GL.GL_TEXTURE_BUFFER, answers[bound.key].number)

    def _answer(self, key: str, answer: Any) -> BufferTexture:
        """An answer on the card; what was sent there for the last launch is replaced."""
        if isinstance(answer, BufferTexture):
            return answer
        self._answers[key].fill(answer)
        return self._answers[key]


class Canvas:
    """Where the outputs of a program go: one texture for each of its targets, and one that says where a loop was
    stopped."""

    def __init__(self, graphics: Graphics, shader: Shader, shape: tuple[int, int]) -> None:
        """In a context of the graphics. Raises WeftError if the picture is too large."""
        self.shape = shape
        wide = not shader.packed
        self.colours = [Texture(graphics, shape, wide) for _ in range(shader.colour_targets)]
        self.limit = Texture(graphics, shape) if shader.stops else None

    def stopped(self) -> bool:
        """Whether any loop met its limit; waits until all is drawn."""
        return self.limit is not None and bool(self.limit.read()[..., 0].any())


def draw(
    place: ContextState,
    bindings: Bindings,
    words: npt.NDArray[Any],
    memory: GlMemory,
    given: LaunchInputs,
    canvas: Canvas,
) -> None:
    """One tick; the memory is not advanced. In the context of the place."""
    shader = bindings.program.shader
    if shader.tile is not None:
        bindings.bind(words, memory, given)
        _compute(shader, shader.tile, memory, canvas)
        return
    targets = _targets(shader, memory, canvas)
    if not (targets or shader.to_images):
        return
    bindings.bind(words, memory, given)
    if shader.to_images:
        _bind_images(shader, memory)
    draw_triangle(place, targets, canvas.shape)
    if shader.to_images:
        GL.glMemoryBarrier(GL.GL_ALL_BARRIER_BITS)
    elif shader.stores and GL.glTextureBarrier:
        GL.glTextureBarrier()  # the next tick reads other layers of what this one has written to


def _compute(shader: Shader, tile: int, memory: GlMemory, canvas: Canvas) -> None:
    """One tick of a program that computes pixels without drawing."""
    _bind_images(shader, memory)
    flat = [*canvas.colours, *([canvas.limit] if canvas.limit is not None else [])]
    for unit, texture in enumerate(flat, len(shader.images)):
        GL.glBindImageTexture(unit, texture.number, 0, False, 0, GL.GL_WRITE_ONLY, GL.GL_RGBA8)
    dispatch_tiles(canvas.shape, tile)


def dispatch_tiles(shape: tuple[int, int], tile: int) -> None:
    """Runs the program in use over a picture, by squares with so many pixels a side."""
    height, width = shape
    GL.glDispatchCompute(-(-width // tile), -(-height // tile), 1)
    GL.glMemoryBarrier(GL.GL_ALL_BARRIER_BITS)


def draw_triangle(place: ContextState, targets: Sequence[tuple[Any, int | None]], shape: tuple[int, int]) -> None:
    """Draws over all of these targets, which are textures and their layers, with the program in use."""
    _attach(place, targets, shape)
    height, width = shape
    GL.glViewport(0, 0, width, height)
    GL.glDrawArrays(GL.GL_TRIANGLES, 0, 3)


def _bind_images(shader: Shader, memory: GlMemory) -> None:
    for unit, bound in enumerate(shader.images):
        GL.glBindImageTexture(unit, memory.layers[bound.key].number, 0, True, 0, GL.GL_WRITE_ONLY, GL.GL_R32F)


def _targets(shader: Shader, memory: GlMemory, canvas: Canvas) -> list[tuple[Any, int | None]]:
    """The textures that are drawn to, in the order of the program's outputs, with their layers."""
    targets: list[tuple[Any, int | None]] = [(texture.number, None) for texture in canvas.colours]
    if not shader.to_images:
        for key, plane in shader.stores:
            layer = int(memory.cell(key)) * memory.slots[key].planes + plane
            targets.append((memory.layers[key].number, layer))
    if canvas.limit is not None:
        targets.append((canvas.limit.number, None))
    return targets


def _attach(place: ContextState, targets: Sequence[tuple[Any, int | None]], shape: tuple[int, int]) -> None:
    GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, place.target)
    for at in range(len(targets), len(place.attached)):
        GL.glFramebufferTexture(GL.GL_FRAMEBUFFER, GL.GL_COLOR_ATTACHMENT0 + at, 0, 0)
    for at, (texture, layer) in enumerate(targets):
        point = GL.GL_COLOR_ATTACHMENT0 + at
        if layer is None:
            GL.glFramebufferTexture(GL.GL_FRAMEBUFFER, point, texture, 0)
        else:
            GL.glFramebufferTextureLayer(GL.GL_FRAMEBUFFER, point, texture, 0, layer)
    place.attached = list(targets)
    if targets:
        GL.glDrawBuffers(len(targets), [GL.GL_COLOR_ATTACHMENT0 + at for at in range(len(targets))])
        return
    # What only writes images has no targets, and needs to be told how much of nothing it draws.
    GL.glDrawBuffers(1, [GL.GL_NONE])
    GL.glFramebufferParameteri(GL.GL_FRAMEBUFFER, GL.GL_FRAMEBUFFER_DEFAULT_WIDTH, shape[1])
    GL.glFramebufferParameteri(GL.GL_FRAMEBUFFER, GL.GL_FRAMEBUFFER_DEFAULT_HEIGHT, shape[0])


class PictureTextures(CardPictures[Texture]):
    """The pictures that programs sample, in textures."""

    def __init__(self, graphics: Graphics) -> None:
        super().__init__(self._texture)
        self._graphics = graphics

    def given(self, shader: Shader, pictures: Mapping[str, Picture], answers: Answers) -> LaunchInputs:
        """What a program is given of these pictures [height, width, 4]. In a context of the graphics."""
        return LaunchInputs({bound.key: self.on_card(bound.key, pictures[bound.key]) for bound in shader.pictures}, answers)

    def _texture(self, pixels: Picture) -> Texture:
        made = Texture(self._graphics, (pixels.shape[0], pixels.shape[1]), wide=True)
        made.fill(pixels)
        return made
