"""A process with an OpenGL context of its own, without a display: draws shaders into textures, and reads them back.

`tests.support.gl` starts it and sends it calls of the methods of `Worker`, pickled.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
from dataclasses import dataclass, field
from typing import Any

os.environ["PYOPENGL_PLATFORM"] = "egl"  # counts when OpenGL is imported

import numpy as np
from OpenGL import EGL, GL
from OpenGL.EGL.EXT.platform_base import eglGetPlatformDisplayEXT

from weft.codegen.clike.shader import Shader
from weft.codegen.glsl import VERTEX

Rings = dict[str, Any]

_SURFACELESS = 0x31DD  # EGL_PLATFORM_SURFACELESS_MESA
_PROFILE, _CORE = 0x30FD, 1
_MAJOR, _MINOR = 0x3098, 0x30FB


def open_context() -> None:
    """Makes a context of OpenGL 4.3 the current one. Raises an error of OpenGL's if there is none to be had."""
    display = eglGetPlatformDisplayEXT(_SURFACELESS, ctypes.c_void_p(0), None)
    if not EGL.eglInitialize(display, ctypes.c_long(), ctypes.c_long()):
        display = EGL.eglGetDisplay(EGL.EGL_DEFAULT_DISPLAY)
        EGL.eglInitialize(display, ctypes.c_long(), ctypes.c_long())
    EGL.eglBindAPI(EGL.EGL_OPENGL_API)
    wanted = (EGL.EGLint * 7)(_MAJOR, 4, _MINOR, 3, _PROFILE, _CORE, EGL.EGL_NONE)
    context = EGL.eglCreateContext(display, None, None, wanted)
    EGL.eglMakeCurrent(display, None, None, context)


@dataclass
class Program:
    """A shader, linked."""

    shader: Shader
    number: Any
    units: dict[str, int]


@dataclass
class Stage:
    """The textures of a program for one size of picture."""

    program: Program
    shape: tuple[int, int]
    rings: dict[str, Any]
    """Arrays of textures, by the keys of the slots."""
    planes: dict[str, int]
    layers: dict[str, int]
    colours: list[Any] = field(default_factory=list)
    limit: Any = None


class Worker:
    """What can be asked for."""

    def __init__(self) -> None:
        open_context()
        self._programs: list[Program] = []
        self._stages: list[Stage] = []
        GL.glBindVertexArray(GL.glGenVertexArrays(1))
        self._frame = GL.glGenBuffers(1)
        self._target = GL.glGenFramebuffers(1)
        GL.glPixelStorei(GL.GL_UNPACK_ALIGNMENT, 1)
        GL.glPixelStorei(GL.GL_PACK_ALIGNMENT, 1)
        GL.glDisable(GL.GL_DITHER)

    def about(self) -> str:
        return f"{GL.glGetString(GL.GL_VERSION).decode()}, {GL.glGetString(GL.GL_RENDERER).decode()}"

    def compile(self, shader: Shader) -> int:
        """Raises RuntimeError with the driver's words if it refuses the text."""
        kinds = [(GL.GL_COMPUTE_SHADER, shader.ascii)] if shader.workgroup else [
            (GL.GL_VERTEX_SHADER, VERTEX), (GL.GL_FRAGMENT_SHADER, shader.ascii)
        ]  # fmt: skip
        program = GL.glCreateProgram()
        for kind, text in kinds:
            part = GL.glCreateShader(kind)
            GL.glShaderSource(part, text)
            GL.glCompileShader(part)
            if not GL.glGetShaderiv(part, GL.GL_COMPILE_STATUS):
                raise RuntimeError(f"{_text(GL.glGetShaderInfoLog(part))}\n{_numbered(shader.text)}")
            GL.glAttachShader(program, part)
        GL.glLinkProgram(program)
        if not GL.glGetProgramiv(program, GL.GL_LINK_STATUS):
            raise RuntimeError(f"{_text(GL.glGetProgramInfoLog(program))}\n{_numbered(shader.text)}")
        GL.glUseProgram(program)
        units = {}
        for unit, bound in enumerate((*shader.images, *shader.histories, *shader.pictures)):
            units[bound.name] = unit
            GL.glUniform1i(GL.glGetUniformLocation(program, bound.name), unit)
        if shader.to_images:
            for unit, bound in enumerate(shader.images):
                GL.glUniform1i(GL.glGetUniformLocation(program, f"{bound.name}_next"), unit)
        block = GL.glGetUniformBlockIndex(program, "Frame")
        if block != GL.GL_INVALID_INDEX:
            size = GL.GLint()
            GL.glGetActiveUniformBlockiv(program, block, GL.GL_UNIFORM_BLOCK_DATA_SIZE, size)
            if not 4 * len(shader.uniforms) <= size.value < 4 * len(shader.uniforms) + 16:
                raise RuntimeError(f"the driver gives the block {size.value} bytes for {len(shader.uniforms)} numbers")
            GL.glUniformBlockBinding(program, block, 0)
        self._programs.append(Program(shader, program, units))
        return len(self._programs) - 1

    def stage(self, program: int, shape: tuple[int, int], rings: Rings) -> int:
        """Textures for pictures of this shape, and for the rings of image slots, [cells, planes, height, width]."""
        made = self._programs[program]
        textures = {key: _array_texture(ring.reshape(-1, *shape)) for key, ring in rings.items()}
        planes = {key: ring.shape[1] for key, ring in rings.items()}
        stage = Stage(made, shape, textures, planes, {key: len(ring) * planes[key] for key, ring in rings.items()})
        form = GL.GL_RGBA8 if made.shader.packed else GL.GL_RGBA32F
        stage.colours = [_target(form, shape) for _ in range(made.shader.colour_targets)]
        stage.limit = _target(GL.GL_R8, shape)
        self._stages.append(stage)
        return len(self._stages) - 1

    def draw(
        self, number: int, block: bytes, heads: dict[str, int], histories: Rings, pictures: dict[str, Any]
    ) -> tuple[list[Any], Rings, bool]:
        """One tick. Gives the targets, [height, width, 4] each, the cells of image slots that it has written, [planes,
        height, width], and whether a loop was stopped."""
        stage = self._stages[number]
        height, width = stage.shape
        for texture in stage.colours:
            _fill(texture, stage.shape)
        self._begin(stage.program, block, stage.rings, histories, pictures)
        targets = self._attach(stage, heads)
        GL.glViewport(0, 0, width, height)
        GL.glDrawArrays(GL.GL_TRIANGLES, 0, 3)
        if stage.program.shader.to_images:
            GL.glMemoryBarrier(GL.GL_ALL_BARRIER_BITS)
        kind, dtype = (GL.GL_UNSIGNED_BYTE, np.uint8) if stage.program.shader.packed else (GL.GL_FLOAT, np.float32)
        read = [_read(at, stage.shape, kind, dtype) for at in range(len(stage.colours))]
        stopped = False
        if stage.program.shader.stops:
            stopped = bool(_read(targets - 1, stage.shape, GL.GL_UNSIGNED_BYTE, np.uint8)[..., 0].any())
        return read, self._written(stage, heads), stopped

    def _written(self, stage: Stage, heads: dict[str, int]) -> Rings:
        written = {}
        for slot in {place.slot for place in stage.program.shader.stores}:
            planes = stage.planes[slot]
            layers = np.zeros((stage.layers[slot], *stage.shape), np.float32)
            GL.glBindTexture(GL.GL_TEXTURE_2D_ARRAY, stage.rings[slot])
            GL.glGetTexImage(GL.GL_TEXTURE_2D_ARRAY, 0, GL.GL_RED, GL.GL_FLOAT, layers)
            written[slot] = layers[heads[slot] * planes : (heads[slot] + 1) * planes]
        return written

    def _attach(self, stage: Stage, heads: dict[str, int]) -> int:
        """Attaches all targets in their order; gives their number."""
        shader = stage.program.shader
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, self._target)
        for at in range(8):
            GL.glFramebufferTexture(GL.GL_FRAMEBUFFER, GL.GL_COLOR_ATTACHMENT0 + at, 0, 0)
        count = 0
        for texture in stage.colours:
            GL.glFramebufferTexture(GL.GL_FRAMEBUFFER, GL.GL_COLOR_ATTACHMENT0 + count, texture, 0)
            count += 1
        if not shader.to_images:
            for slot, plane in shader.stores:
                layer = heads[slot] * stage.planes[slot] + plane
                place = GL.GL_COLOR_ATTACHMENT0 + count
                GL.glFramebufferTextureLayer(GL.GL_FRAMEBUFFER, place, stage.rings[slot], 0, layer)
                count += 1
        else:
            for unit, bound in enumerate(shader.images):
                ring = stage.rings[bound.key]
                GL.glBindImageTexture(unit, ring, 0, True, 0, GL.GL_WRITE_ONLY, GL.GL_R32F)
        if shader.stops:
            GL.glFramebufferTexture(GL.GL_FRAMEBUFFER, GL.GL_COLOR_ATTACHMENT0 + count, stage.limit, 0)
            count += 1
        GL.glDrawBuffers(count, [GL.GL_COLOR_ATTACHMENT0 + at for at in range(count)])
        status = GL.glCheckFramebufferStatus(GL.GL_FRAMEBUFFER)
        if status != GL.GL_FRAMEBUFFER_COMPLETE:
            raise RuntimeError(f"the targets do not fit together: {status:#x}")
        return count

    def points(
        self, program: int, block: bytes, coords: list[Any], rings: Rings, histories: Rings, pictures: dict[str, Any]
    ) -> Any:
        """The values [outputs, points] of a shader over points; `rings` are the layers of image slots."""
        made = self._programs[program]
        count = len(coords[0]) if coords else 1
        textures = {key: _array_texture(layers) for key, layers in rings.items()}
        self._begin(made, block, textures, histories, pictures)
        size = 4 * count * len(made.shader.outputs)
        buffers = GL.glGenBuffers(len(coords) + 2)
        for at, array in enumerate([None, *coords, np.zeros(1, np.uint32)]):
            GL.glBindBuffer(GL.GL_SHADER_STORAGE_BUFFER, buffers[at])
            length = size if array is None else array.nbytes
            GL.glBufferData(GL.GL_SHADER_STORAGE_BUFFER, length, array, GL.GL_DYNAMIC_READ)
            GL.glBindBufferBase(GL.GL_SHADER_STORAGE_BUFFER, at, buffers[at])
        GL.glDispatchCompute(-(-count // (made.shader.workgroup or 1)), 1, 1)
        GL.glMemoryBarrier(GL.GL_ALL_BARRIER_BITS)
        GL.glBindBuffer(GL.GL_SHADER_STORAGE_BUFFER, buffers[0])
        found = GL.glGetBufferSubData(GL.GL_SHADER_STORAGE_BUFFER, 0, size)
        return np.frombuffer(bytes(found), np.float32).reshape(len(made.shader.outputs), count)

    def _begin(
        self, program: Program, block: bytes, rings: dict[str, Any], histories: Rings, pictures: dict[str, Any]
    ) -> None:
        GL.glUseProgram(program.number)
        GL.glBindBuffer(GL.GL_UNIFORM_BUFFER, self._frame)
        # Drivers may ask for as much as a block's size, rounded up.
        GL.glBufferData(GL.GL_UNIFORM_BUFFER, len(block) + 16, block + bytes(16), GL.GL_STREAM_DRAW)
        GL.glBindBufferBase(GL.GL_UNIFORM_BUFFER, 0, self._frame)
        for bound in program.shader.images:
            _bind(program.units[bound.name], GL.GL_TEXTURE_2D_ARRAY, rings[bound.key])
        for bound in program.shader.histories:
            buffer, texture = GL.glGenBuffers(1), GL.glGenTextures(1)
            array = np.ascontiguousarray(histories[bound.key], np.float32)
            GL.glBindBuffer(GL.GL_TEXTURE_BUFFER, buffer)
            GL.glBufferData(GL.GL_TEXTURE_BUFFER, array.nbytes, array, GL.GL_STREAM_DRAW)
            _bind(program.units[bound.name], GL.GL_TEXTURE_BUFFER, texture)
            GL.glTexBuffer(GL.GL_TEXTURE_BUFFER, GL.GL_R32F, buffer)
        for bound in program.shader.pictures:
            pixels = np.ascontiguousarray(pictures[bound.key], np.float32)
            _bind(program.units[bound.name], GL.GL_TEXTURE_2D, GL.glGenTextures(1))
            size = pixels.shape[1], pixels.shape[0]
            GL.glTexImage2D(GL.GL_TEXTURE_2D, 0, GL.GL_RGBA32F, *size, 0, GL.GL_RGBA, GL.GL_FLOAT, pixels)
            GL.glTexParameteri(GL.GL_TEXTURE_2D, GL.GL_TEXTURE_MAX_LEVEL, 0)


def _bind(unit: int, kind: int, texture: Any) -> None:
    GL.glActiveTexture(GL.GL_TEXTURE0 + unit)
    GL.glBindTexture(kind, texture)


def _array_texture(layers: Any) -> Any:
    texture = GL.glGenTextures(1)
    count, height, width = layers.shape
    GL.glBindTexture(GL.GL_TEXTURE_2D_ARRAY, texture)
    pixels = np.ascontiguousarray(layers, np.float32)
    GL.glTexImage3D(
        GL.GL_TEXTURE_2D_ARRAY, 0, GL.GL_R32F, width, height, count, 0, GL.GL_RED, GL.GL_FLOAT, pixels
    )
    GL.glTexParameteri(GL.GL_TEXTURE_2D_ARRAY, GL.GL_TEXTURE_MAX_LEVEL, 0)
    return texture


def _target(form: int, shape: tuple[int, int]) -> Any:
    texture = GL.glGenTextures(1)
    GL.glBindTexture(GL.GL_TEXTURE_2D, texture)
    GL.glTexImage2D(GL.GL_TEXTURE_2D, 0, form, shape[1], shape[0], 0, GL.GL_RGBA, GL.GL_FLOAT, None)
    GL.glTexParameteri(GL.GL_TEXTURE_2D, GL.GL_TEXTURE_MAX_LEVEL, 0)
    return texture


def _fill(texture: Any, shape: tuple[int, int]) -> None:
    """Makes a target something that no shader draws, so that it can be told if one draws nothing: 0.25."""
    pixels = np.full((*shape, 4), 0.25, np.float32)
    GL.glBindTexture(GL.GL_TEXTURE_2D, texture)
    GL.glTexSubImage2D(GL.GL_TEXTURE_2D, 0, 0, 0, shape[1], shape[0], GL.GL_RGBA, GL.GL_FLOAT, pixels)


def _read(at: int, shape: tuple[int, int], kind: int, dtype: Any) -> Any:
    pixels = np.zeros((*shape, 4), dtype)
    GL.glReadBuffer(GL.GL_COLOR_ATTACHMENT0 + at)
    GL.glReadPixels(0, 0, shape[1], shape[0], GL.GL_RGBA, kind, pixels)
    return pixels


def _text(words: Any) -> str:
    return words.decode(errors="replace") if isinstance(words, bytes) else str(words)


def _numbered(text: str) -> str:
    return "\n".join(f"{at:>4} {line}" for at, line in enumerate(text.splitlines(), 1))


def main() -> None:
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    worker = None
    while True:
        try:
            name, arguments = pickle.load(requests)
        except EOFError:
            return
        try:
            worker = worker or Worker()
            answer = (True, getattr(worker, name)(*arguments))
        except Exception as failure:
            answer = (False, f"{type(failure).__name__}: {failure}")
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
