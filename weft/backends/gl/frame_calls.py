"""What is called to draw with a program of OpenGL, as data: Python makes the calls of one frame, or machine code those
of all frames of a program into which nothing goes but numbers, and images that it remembers."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.gl.graphics import GL, ContextState, Graphics, address_of
from weft.backends.gl.memory import GlMemory
from weft.backends.gl.programs import FRAME, ShaderProgram
from weft.backends.gl.textures import Buffer, attach
from weft.backends.records import VARIES, CallList
from weft.codegen.clike.shader import Shader

Target: TypeAlias = "tuple[Any, Any]"
"""A texture, and a layer of it, or None."""

GlCall: TypeAlias = "tuple[Any, ...]"
"""The name of a function, and what it is given."""

# The most targets of a program, and their points.
_MOST = 32
_POINTS = (ctypes.c_uint * _MOST)(*(GL.GL_COLOR_ATTACHMENT0 + at for at in range(_MOST)))

# Numbers of a frame are written to these in turn, so that the card reads none of them any more: as many frames as may
# be under way, and one more.
_BLOCKS = 3


def make(calls: Iterable[GlCall]) -> None:
    """Makes calls. In a context."""
    for name, *given in calls:
        getattr(GL, name)(*given)


def detach(place: ContextState, count: int) -> None:
    """Leaves none but the first of the targets attached to the framebuffer of a context, where this many will be. In
    the context."""
    if place.attached > count:
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, place.target)
        for at in range(count, place.attached):
            attach(at, 0, None)
    place.attached = count


def over_targets(frame_buffer: Any, targets: Sequence[Target], shape: tuple[int, int]) -> Iterator[GlCall]:
    """Draws over all of these targets with the current program."""
    yield "glBindFramebuffer", GL.GL_FRAMEBUFFER, frame_buffer
    for point, (texture, layer) in zip(_POINTS, targets, strict=False):
        if layer is None:
            yield "glFramebufferTexture2D", GL.GL_FRAMEBUFFER, point, GL.GL_TEXTURE_2D, texture, 0
        else:
            yield "glFramebufferTextureLayer", GL.GL_FRAMEBUFFER, point, texture, 0, layer
    yield "glDrawBuffers", len(targets), _POINTS
    yield "glViewport", 0, 0, shape[1], shape[0]
    yield "glDrawArrays", GL.GL_TRIANGLES, 0, 3


def in_tiles(images: Sequence[Any], pixels: Sequence[Any], shape: tuple[int, int], side: int) -> Iterator[GlCall]:
    """Computes a picture with the current program, in squares with `side` pixels a side, into textures of images and of
    pixels."""
    for unit, texture in enumerate(images):
        yield "glBindImageTexture", unit, texture, 0, True, 0, GL.GL_WRITE_ONLY, GL.GL_R32F
    for unit, texture in enumerate(pixels, len(images)):
        yield "glBindImageTexture", unit, texture, 0, False, 0, GL.GL_WRITE_ONLY, GL.GL_RGBA8
    yield "glDispatchCompute", -(-shape[1] // side), -(-shape[0] // side), 1


# What follows images and pixels that were written in tiles.
AFTER_TILES: GlCall = "glMemoryBarrier", GL.GL_ALL_BARRIER_BITS


class GlFrameCalls(CallList):
    """The calls of a program over a picture, for machine code."""

    def __init__(
        self, graphics: Graphics, shader: Shader, program: ShaderProgram, words: npt.NDArray[np.uint32],
        drawing: Iterable[GlCall], after: Iterable[GlCall],
    ) -> None:  # fmt: skip
        """`words` are the numbers of a frame, `drawing` the calls that draw it, with all textures and layers that are
        written to as what varies, and `after` those that come before the next one. In a context of the graphics. Raises
        GraphicsError."""
        # Slots may share a texture.
        self._images = {bound.name: bound.key for bound in shader.images}
        blocks = [Buffer(graphics) for _ in range(_BLOCKS)]
        for block in blocks:
            block.make_room(GL.GL_UNIFORM_BUFFER, words.nbytes, GL.GL_STREAM_DRAW)
        self._blocks = itertools.cycle(blocks)
        calls: list[GlCall] = [
            ("glUseProgram", program.number), ("glBindBufferBase", GL.GL_UNIFORM_BUFFER, FRAME, VARIES),
            ("glBufferSubData", GL.GL_UNIFORM_BUFFER, 0, words.nbytes, words.ctypes.data),
        ]  # fmt: skip
        for name in self._images:
            calls.append(("glActiveTexture", GL.GL_TEXTURE0 + program.units[name]))
            calls.append(("glBindTexture", GL.GL_TEXTURE_2D_ARRAY, VARIES))
        calls += [*drawing, ("glFenceSync", GL.GL_SYNC_GPU_COMMANDS_COMPLETE, 0)]
        self._fence = len(calls) - 1
        # Drivers may wait with what they are asked for until there is more: the card begins while Python goes on.
        calls += [("glFlush",), *after]
        super().__init__([(address_of(name), *map(_plain, given)) for name, *given in calls])

    def draw_to(self, memory: GlMemory, targets: Iterable[Any]) -> None:
        """Fills in the textures and layers that the next frame is drawn to. The memory has all of its images."""
        images = [memory.layers(key).number for key in self._images.values()]
        self.give([next(self._blocks).number, *images, *targets])

    @property
    def fence(self) -> int:
        """The fence behind the last frame; 0 if the driver has made none."""
        return self.results()[self._fence]


def _plain(given: Any) -> Any:
    """What machine code is given for something that Python is."""
    return ctypes.addressof(given) if isinstance(given, ctypes.Array) else given
