"""Draws finished pictures into a window's frame: all that is done with OpenGL to show what another backend made.

This is the one module of the runtime that imports OpenGL. Every call needs the window's context to be current.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import OpenGL
from numpy.typing import NDArray

from weft.errors import error

# Every call would otherwise ask the driver for errors, which makes it wait; what can fail is asked for explicitly.
OpenGL.ERROR_CHECKING = False
OpenGL.ERROR_LOGGING = False
OpenGL.USE_ACCELERATE = False

from OpenGL import GL  # noqa: E402  (the settings above count when this is imported)
from OpenGL.error import Error as OpenGLError  # noqa: E402
from OpenGL.platform import PLATFORM  # noqa: E402

NEEDS_EGL = "EGL" in type(PLATFORM).__name__
"""Whether PyOpenGL only finds contexts that were made through EGL: it decides so when it is imported."""

Picture: TypeAlias = NDArray[np.uint8]
Filter: TypeAlias = Literal["nearest", "linear"]


@dataclass(frozen=True, slots=True)
class Rect:
    """A part of the frame, in its pixels; `top` counts from the frame's upper edge."""

    left: int
    top: int
    width: int
    height: int


def letterbox(picture: tuple[int, int], frame: tuple[int, int]) -> Rect:
    """Where a picture lies in a frame (each width, height), as large as fits, centred, with its own aspect."""
    scale = min(frame[0] / picture[0], frame[1] / picture[1])
    width = max(1, round(picture[0] * scale))
    height = max(1, round(picture[1] * scale))
    return Rect((frame[0] - width) // 2, (frame[1] - height) // 2, width, height)


_VERTEX_SHADER = """#version 330 core
out vec2 place;
void main() {
    // One triangle that covers the viewport; the texture's first row is the upper one.
    vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0;
    place = vec2(corner.x, 1.0 - corner.y);
    gl_Position = vec4(corner * 2.0 - 1.0, 0.0, 1.0);
}
"""

_FRAGMENT_SHADER = """#version 330 core
uniform sampler2D picture;
in vec2 place;
out vec4 colour;
void main() {
    colour = texture(picture, place);
}
"""


class GraphicsError(Exception):
    """The graphics driver does not do what every picture needs. Carries the reason."""


class Painter:
    """Holds one picture in the memory of the graphics card, and draws it."""

    def __init__(self, filtering: Filter) -> None:
        """`filtering` is how pictures are scaled. Raises `GraphicsError`."""
        self._filter = GL.GL_NEAREST if filtering == "nearest" else GL.GL_LINEAR
        self._size = (0, 0)
        try:
            self._prepare()
        except OpenGLError as problem:  # a function that the driver lacks
            raise GraphicsError(str(problem)) from problem

    def _prepare(self) -> None:
        self._most = int(GL.glGetIntegerv(GL.GL_MAX_TEXTURE_SIZE))
        self._program = _link(_VERTEX_SHADER, _FRAGMENT_SHADER)
        self._texture = GL.glGenTextures(1)
        GL.glBindTexture(GL.GL_TEXTURE_2D, self._texture)
        GL.glTexParameteri(GL.GL_TEXTURE_2D, GL.GL_TEXTURE_WRAP_S, GL.GL_CLAMP_TO_EDGE)
        GL.glTexParameteri(GL.GL_TEXTURE_2D, GL.GL_TEXTURE_WRAP_T, GL.GL_CLAMP_TO_EDGE)
        GL.glBindVertexArray(GL.glGenVertexArrays(1))  # a core context draws nothing without one
        GL.glDisable(GL.GL_DITHER)
        GL.glClearColor(0.0, 0.0, 0.0, 1.0)

    def upload(self, picture: Picture) -> None:
        """Takes over a picture [height, width, RGBA], row 0 on top; the array may change afterwards.

        Raises `WeftError` (`picture-too-large`) for one that the graphics card cannot hold.
        """
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 4 or not picture.size:
            raise ValueError(f"not a picture of RGBA bytes: {picture.dtype} {picture.shape}")
        height, width, _ = picture.shape
        GL.glBindTexture(GL.GL_TEXTURE_2D, self._texture)
        if (width, height) != self._size:
            self._allocate(width, height)
        # Straight from the array: a detour by a pixel buffer took twice the time.
        GL.glTexSubImage2D(
            GL.GL_TEXTURE_2D, 0, 0, 0, width, height, GL.GL_RGBA, GL.GL_UNSIGNED_BYTE, np.ascontiguousarray(picture)
        )

    def _allocate(self, width: int, height: int) -> None:
        self._size = (0, 0)
        message = f"the graphics card cannot show a picture of {width}×{height}"
        if max(width, height) > self._most:
            raise error("picture-too-large", message, hint=f"it takes up to {self._most} pixels a side")
        while GL.glGetError() != GL.GL_NO_ERROR:  # only what comes next counts
            pass
        GL.glTexImage2D(GL.GL_TEXTURE_2D, 0, GL.GL_RGBA8, width, height, 0, GL.GL_RGBA, GL.GL_UNSIGNED_BYTE, None)
        if GL.glGetError() != GL.GL_NO_ERROR:
            raise error("picture-too-large", message, hint="it has no memory left for it; try a smaller --size")
        self._size = (width, height)

    def paint(self, frame: tuple[int, int]) -> None:
        """Draws the picture, with black around it, into a frame of this width and height."""
        width, height = frame
        GL.glViewport(0, 0, width, height)
        GL.glClear(GL.GL_COLOR_BUFFER_BIT)
        if not all(self._size) or not all(frame):
            return
        place = letterbox(self._size, frame)
        # At its own size a picture is shown to the bit, which rounding in a linear filter would not promise.
        scaling = GL.GL_NEAREST if (place.width, place.height) == self._size else self._filter
        GL.glUseProgram(self._program)
        GL.glBindTexture(GL.GL_TEXTURE_2D, self._texture)
        GL.glTexParameteri(GL.GL_TEXTURE_2D, GL.GL_TEXTURE_MIN_FILTER, scaling)
        GL.glTexParameteri(GL.GL_TEXTURE_2D, GL.GL_TEXTURE_MAG_FILTER, scaling)
        GL.glViewport(place.left, height - place.top - place.height, place.width, place.height)
        GL.glDrawArrays(GL.GL_TRIANGLES, 0, 3)

    def read_back(self, frame: tuple[int, int]) -> Picture:
        """Draws the same aside and returns it: after a swap, nobody promises what the window's buffers hold."""
        width, height = frame
        pixels = np.zeros((height, width, 4), np.uint8)
        if not pixels.size:
            return pixels
        target, colour = GL.glGenFramebuffers(1), GL.glGenRenderbuffers(1)
        GL.glBindRenderbuffer(GL.GL_RENDERBUFFER, colour)
        GL.glRenderbufferStorage(GL.GL_RENDERBUFFER, GL.GL_RGBA8, width, height)
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, target)
        GL.glFramebufferRenderbuffer(GL.GL_FRAMEBUFFER, GL.GL_COLOR_ATTACHMENT0, GL.GL_RENDERBUFFER, colour)
        self.paint(frame)
        GL.glReadPixels(0, 0, width, height, GL.GL_RGBA, GL.GL_UNSIGNED_BYTE, pixels)
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, 0)
        GL.glDeleteFramebuffers(1, [target])
        GL.glDeleteRenderbuffers(1, [colour])
        return np.ascontiguousarray(pixels[::-1])


def _link(vertex: str, fragment: str) -> Any:
    """A GL program of these shaders. Raises `GraphicsError` with the driver's words if it refuses them."""
    program = GL.glCreateProgram()
    for kind, text in ((GL.GL_VERTEX_SHADER, vertex), (GL.GL_FRAGMENT_SHADER, fragment)):
        shader = GL.glCreateShader(kind)
        GL.glShaderSource(shader, text)
        GL.glCompileShader(shader)
        GL.glAttachShader(program, shader)
        GL.glDeleteShader(shader)  # it goes when the program goes
    GL.glLinkProgram(program)
    if not GL.glGetProgramiv(program, GL.GL_LINK_STATUS):
        raise GraphicsError(str(GL.glGetProgramInfoLog(program)))
    return program
