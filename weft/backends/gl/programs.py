"""Programs on the graphics card: compiled and linked, or refused in words that name the patch's line."""

from __future__ import annotations

import functools
import re
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

from weft.backends.gl.graphics import Graphics
from weft.backends.gl.opengl import GL, plain
from weft.backends.shader_code import refused
from weft.codegen.clike.shader import Shader
from weft.codegen.glsl import VERTEX
from weft.errors import WeftError, error

_Parts: TypeAlias = list[tuple[Any, "bytes | str"]]

# Where a driver's complaint names a line: "0:12(3)" (Mesa), "0(12)" (NVIDIA), "ERROR: 0:12:" (Apple, AMD).
_LINE = re.compile(r"\b0[:(](\d+)")


class ShaderProgram:
    """A shader that is linked. Its samplers have their units: images, then histories, pictures and answers."""

    def __init__(self, graphics: Graphics, shader: Shader) -> None:
        """In a context of the graphics. Raises WeftError with the driver's words if it refuses the text."""
        self.graphics = graphics
        self.shader = shader
        parts: _Parts = [(GL.GL_COMPUTE_SHADER, shader.ascii)] if shader.computes else _drawing(shader.ascii)
        self.number: Any = _linked(parts, functools.partial(_refused, shader))
        weakref.finalize(self, graphics.discard, "program", self.number).atexit = False
        sampled = (*shader.images, *shader.histories, *shader.pictures, *shader.asked)
        self.units = {bound.name: at for at, bound in enumerate(sampled)}
        self._connect()

    def _connect(self) -> None:
        GL.glUseProgram(self.number)
        for name, unit in self.units.items():
            GL.glUniform1i(GL.glGetUniformLocation(self.number, name), unit)
        for unit, name in enumerate(self.shader.written_images):
            GL.glUniform1i(GL.glGetUniformLocation(self.number, name), unit)
        block = GL.glGetUniformBlockIndex(self.number, "Frame")
        if block != GL.GL_INVALID_INDEX:
            GL.glUniformBlockBinding(self.number, block, 0)


def linked(fragment: str) -> Any:
    """A program of weft's own, that draws by this text."""
    return _linked(_drawing(fragment.encode("ascii")), lambda words: error("driver-refused", words))


def linked_compute(text: str) -> Any:
    """The same, for a compute shader."""
    return _linked([(GL.GL_COMPUTE_SHADER, text.encode("ascii"))], lambda words: error("driver-refused", words))


def _drawing(fragment: bytes) -> _Parts:
    return [(GL.GL_VERTEX_SHADER, VERTEX), (GL.GL_FRAGMENT_SHADER, fragment)]


def _linked(parts: _Parts, refused: Callable[[str], WeftError]) -> Any:
    program = GL.glCreateProgram()
    try:
        for kind, text in parts:
            part = GL.glCreateShader(kind)
            GL.glShaderSource(part, text)
            GL.glCompileShader(part)
            GL.glAttachShader(program, part)
            GL.glDeleteShader(part)  # it goes when the program goes
            if not GL.glGetShaderiv(part, GL.GL_COMPILE_STATUS):
                raise refused(plain(GL.glGetShaderInfoLog(part)))
        GL.glLinkProgram(program)
        if not GL.glGetProgramiv(program, GL.GL_LINK_STATUS):
            raise refused(plain(GL.glGetProgramInfoLog(program)))
    except WeftError:
        GL.glDeleteProgram(program)
        raise
    return program


def _refused(shader: Shader, words: str) -> WeftError:
    """What to raise for a text that the driver does not take."""
    # Some put a heading before what is wrong.
    lines = [line for line in words.splitlines() if line.strip().strip("-")]
    telling = next((line for line in lines if _LINE.search(line)), lines[-1] if lines else "")
    found = _LINE.search(telling)
    return refused(shader, "the graphics driver", telling, int(found[1]) if found else 0, "--dump-glsl")
