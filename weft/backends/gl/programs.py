"""Programs of shaders: compiled and linked by the driver, and kept on disk in the form that it has linked."""

from __future__ import annotations

import functools
import re
import struct
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from weft.backends.card import refused
from weft.backends.gl.graphics import GL, DriverInfo, Graphics, is_embedded, parallel, plain
from weft.backends.kept_programs import KeptProgram, RecentPrograms
from weft.codegen import essl, glsl
from weft.codegen.clike.shader import Shader
from weft.errors import WeftError, error

Parts: TypeAlias = Sequence[tuple[Any, "bytes | str"]]
"""The shaders of a program: the kind and the text of each."""

FRAME = 0
"""The binding point of the block of numbers."""

OWN_REFUSED = functools.partial(error, "driver-refused")
"""The error for one of weft's own programs, from the driver's words."""

# Finds the line in a driver's errors: "0:12(3)" (Mesa), "0(12)" (NVIDIA), "ERROR: 0:12:" (Apple, AMD).
_LINE = re.compile(r"\b0[:(](\d+)")

# The seconds between two looks at whether a driver is ready.
_LOOK = 0.001


def drawing(fragment: bytes | str) -> Parts:
    """The parts of a program that draws over a whole picture."""
    return [(GL.GL_VERTEX_SHADER, glsl.VERTEX), (GL.GL_FRAGMENT_SHADER, fragment)]


def _spelling() -> Callable[[bytes], bytes]:
    """How a shader of version 3.30 is spelled for the current context."""
    if is_embedded():
        return essl.from_desktop
    return glsl.as_newer if GL.glGetIntegerv(GL.GL_MAJOR_VERSION) >= 4 else bytes


def linked(parts: Parts, refused: Callable[[str], Exception], retrievable: bool = False) -> Any:
    """A program of shaders. If it is `retrievable`, it can be read in the driver's own form. If the driver refuses it,
    raises the result of `refused` for the driver's words. In a context."""
    program, spelled = GL.glCreateProgram(), _spelling()
    try:
        for kind, text in parts:
            part = GL.glCreateShader(kind)
            GL.glShaderSource(part, spelled(text if isinstance(text, bytes) else text.encode("ascii")))
            GL.glCompileShader(part)
            GL.glAttachShader(program, part)
            GL.glDeleteShader(part)  # it is freed with the program
            _wait_for(GL.glGetShaderiv, part)
            if not GL.glGetShaderiv(part, GL.GL_COMPILE_STATUS):
                raise refused(plain(GL.glGetShaderInfoLog(part)))
        if retrievable:
            GL.glProgramParameteri(program, GL.GL_PROGRAM_BINARY_RETRIEVABLE_HINT, GL.GL_TRUE)
        GL.glLinkProgram(program)
        _wait_for(GL.glGetProgramiv, program)
        if not GL.glGetProgramiv(program, GL.GL_LINK_STATUS):
            raise refused(plain(GL.glGetProgramInfoLog(program)))
    except Exception:
        GL.glDeleteProgram(program)
        raise
    return program


def _wait_for(ask: Callable[[Any, Any, Any], Any], made: Any) -> None:
    """Waits until a driver that compiles in threads of its own is ready: who asks for the result before waits for it in
    the driver, and drawing in other contexts waits with it. In a context."""
    while parallel.glMaxShaderCompilerThreadsKHR:
        # A context that is lost may answer nothing, and the result then says so.
        found = GL.GLint(1)
        ask(made, parallel.GL_COMPLETION_STATUS_KHR, found)
        if found.value:
            return
        time.sleep(_LOOK)


class ShaderProgram:
    """A linked shader. Its samplers have texture units: images, then histories, pictures, external reads, and the
    coordinates of points that are drawn."""

    def __init__(self, graphics: Graphics, shader: Shader) -> None:
        """In a context of the graphics. Raises WeftError with the driver's words if it refuses the text."""
        parts = [(GL.GL_COMPUTE_SHADER, shader.code)] if shader.computes else drawing(shader.code)
        kept = _place(graphics.about, parts)
        self.number: Any = _taken_back(kept) if kept is not None else None
        if self.number is None:
            self.number = linked(parts, functools.partial(_refused, shader), retrievable=kept is not None)
            if kept is not None and (program := _in_own_form(self.number)):
                kept.write(program)
        weakref.finalize(self, graphics.discard, "program", self.number).atexit = False
        self.rehearsed: set[tuple[int, int]] = set()
        """The shapes (height, width) of the small pictures that it has drawn."""
        sampled = (*shader.images, *shader.histories, *shader.pictures, *shader.external_reads)
        coordinates = [f"all_{name}" for name in shader.coords] if not shader.computes else []
        names = dict.fromkeys([*(bound.name for bound in sampled), *coordinates])
        self.units = {name: at for at, name in enumerate(names)}
        GL.glUseProgram(self.number)
        for name, unit in (*self.units.items(), *((name, at) for at, name in enumerate(shader.written_images))):
            GL.glUniform1i(GL.glGetUniformLocation(self.number, name), unit)
        block = GL.glGetUniformBlockIndex(self.number, "Frame")
        if block != GL.GL_INVALID_INDEX:
            GL.glUniformBlockBinding(self.number, block, FRAME)


def _refused(shader: Shader, words: str) -> WeftError:
    # Some drivers put a heading before the error.
    lines = [line for line in words.splitlines() if line.strip().strip("-")]
    telling = next((line for line in lines if _LINE.search(line)), lines[-1] if lines else "")
    found = _LINE.search(telling)
    return refused(shader, "the graphics driver", telling, int(found[1]) if found else 0, f"--dump-{shader.language}")


class LinkedPrograms:
    """The programs of recent texts."""

    def __init__(self, graphics: Graphics) -> None:
        self.graphics = graphics
        self._linked: RecentPrograms[bytes, ShaderProgram] = RecentPrograms()
        self._codes: RecentPrograms[str, bytes] = RecentPrograms()
        """The code of recent texts: to find it takes a millisecond for 20,000 characters."""

    def of(self, shader: Shader) -> ShaderProgram:
        """The program of a shader. In a context of the graphics. Raises WeftError if the driver refuses it."""
        code = self._codes.get_or_make(shader.text, lambda: shader.code)
        return self._linked.get_or_make(code, lambda: ShaderProgram(self.graphics, shader))


# Programs on disk, in the driver's own form. It takes them back if nothing about it has changed.

# The number of the form comes before the program.
_FORM = struct.Struct("<I")


def _place(about: DriverInfo, parts: Parts) -> KeptProgram | None:
    """The place of these shaders for this driver; None if it cannot read and load programs in its own form. In a
    context."""
    forms = GL.glGetIntegerv(GL.GL_NUM_PROGRAM_BINARY_FORMATS) if about.able.keeps_programs else 0
    if not np.any(forms):
        return None
    texts = ((int(kind), text.decode() if isinstance(text, bytes) else text) for kind, text in parts)
    return KeptProgram((about.renderer, about.vendor, about.version), texts)


def _taken_back(kept: KeptProgram) -> Any:
    """The program, if it exists and the driver accepts it; else None. In a context."""
    found = kept.read()
    if found is None or len(found) < _FORM.size:
        return None
    (form,) = _FORM.unpack_from(found)
    program, binary = GL.glCreateProgram(), found[_FORM.size :]
    GL.glProgramBinary(program, form, binary, len(binary))
    while GL.glGetError() != GL.GL_NO_ERROR:  # the form is no longer known to it
        pass
    if GL.glGetProgramiv(program, GL.GL_LINK_STATUS):
        return program
    GL.glDeleteProgram(program)
    return None


def _in_own_form(program: Any) -> bytes:
    """A program that was linked as retrievable, or nothing if the driver does not give it. In a context."""
    length = int(GL.glGetProgramiv(program, GL.GL_PROGRAM_BINARY_LENGTH))
    if length <= 0:
        return b""
    binary, written, form = np.empty(length, np.uint8), GL.GLsizei(), GL.GLenum()
    GL.glGetProgramBinary(program, length, written, form, binary)
    return _FORM.pack(form.value) + binary[: written.value].tobytes()
