"""A fragment shader, without a window: OpenGL by Mesa, on a graphics card that it knows, else on the CPU.

What varies with the time alone is a uniform. A frame is over when the picture is in a texture; reading it back is not
measured.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes.util import find_library
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.beside.tools import missing, versions
from benchmarks.peers.figures import (
    AXES, CLOUD_TURNS, FIRST_MULTIPLIER, FIRST_SHIFT, OCTAVES, PLASMA_ANGLES, SECOND_MULTIPLIER, SECOND_SHIFT, depth
)
from benchmarks.peers.peer import Picture, Prepared

# One triangle over the whole picture, made of nothing but its corners' numbers.
VERTEX = """#version 330
void main() { gl_Position = vec4(gl_VertexID == 1 ? 3 : -1, gl_VertexID == 2 ? 3 : -1, 0, 1); }
"""

# The first row of the texture is the picture's upper edge, so y grows downwards as it does in a patch.
HEAD = """#version 330
uniform vec2 size;
uniform float time;
out vec4 colour;
"""

STRIPES = """
void main() {
    vec2 at = gl_FragCoord.xy / size;
    colour = vec4(sin(at.x * 62.83185307 + time) * 0.5 + 0.5, at.y, 0.2, 1);
}
"""

PLASMA = """
void main() {
    vec2 at = gl_FragCoord.xy / size;
    float d = length(at - 0.5);
    float v = sin(10 * at.x + time) + sin(10 * at.y + 1.3 * time)
            + sin(10 * (at.x + at.y) + 0.7 * time) + sin(20 * d - 2 * time);
    colour = vec4(sin(3.14159265 * v + vec3(ANGLES)) * 0.5 + 0.5, 1);
}
"""

CLOUDS = """
uniform uvec2 planes[COUNT];
uniform float depths[COUNT];

uvec2 parts(int below, uint multiplier, uint start) {
    uvec2 product = uvec2(below, below + 1) * multiplier + start;
    return product ^ product >> FIRST_SHIFT;
}

vec4 corners(uvec4 n) {
    n *= FIRST_MULTIPLIER;
    n = (n ^ n >> SECOND_SHIFT) * SECOND_MULTIPLIER;
    return vec4(ivec4(n >> 8));
}

float noise(vec2 at, uvec2 z, float w) {
    vec2 below = floor(at), t = at - below;
    t = t * t * (3 - 2 * t);
    uvec2 x = parts(int(below.x), MULTIPLIER_X, START_X), y = parts(int(below.y), MULTIPLIER_Y, START_Y);
    uvec4 others = uvec4(y ^ z.x, y ^ z.y);
    vec4 edges = mix(corners(x.x ^ others), corners(x.y ^ others), t.x);
    vec2 flat_ = mix(edges.xz, edges.yw, t.y);
    return mix(flat_.x, flat_.y, w);
}

void main() {
    vec2 at = gl_FragCoord.xy / size;
    float height = 0;
    SUM
    colour = vec4(0.5 + 0.5 * cos(6.28318531 * (height + vec3(TURNS))), 1);
}
"""


def definitions() -> list[str]:
    """The figures that shaders need, as lines of the preprocessor."""
    figures = {"FIRST_SHIFT": FIRST_SHIFT, "SECOND_SHIFT": SECOND_SHIFT, "COUNT": len(OCTAVES)}
    hexadecimal = {"FIRST_MULTIPLIER": FIRST_MULTIPLIER, "SECOND_MULTIPLIER": SECOND_MULTIPLIER}
    for name in "xy":
        hexadecimal |= {f"MULTIPLIER_{name.upper()}": AXES[name].multiplier, f"START_{name.upper()}": AXES[name].start}
    lines = [f"#define {name} {value}" for name, value in figures.items()]
    return lines + [f"#define {name} {value}u" for name, value in hexadecimal.items()]


def sources() -> dict[str, str]:
    """The fragment shader of each kernel."""
    layers = (
        f"height += {octave.weight!r} * noise(at * {octave.scale!r} + {octave.shift!r}, planes[{i}], depths[{i}]);"
        for i, octave in enumerate(OCTAVES)
    )
    clouds = CLOUDS.replace("SUM", "\n    ".join(layers)).replace("TURNS", ", ".join(map(repr, CLOUD_TURNS)))
    plasma = PLASMA.replace("ANGLES", ", ".join(map(repr, PLASMA_ANGLES)))
    return {"v1": HEAD + STRIPES, "v2": HEAD + plasma, "v3": HEAD + "\n".join(definitions()) + clouds}


@dataclass(frozen=True)
class OpenGLPeer:
    name: str = "opengl"

    def available(self) -> str | None:
        if sys.platform != "linux":
            return "without a window there is OpenGL on Linux only"
        if find_library("EGL") is None:
            return "there is no EGL: apt install libegl1 libgl1 libgl1-mesa-dri"
        return missing("OpenGL", "PyOpenGL")

    def version(self) -> str:
        from OpenGL import GL

        return f"{GL.glGetString(GL.GL_RENDERER).decode()}, {versions('PyOpenGL')}"

    def prepare(self, kernel: str, width: int, height: int, threads: int) -> Prepared:
        # What counts for Mesa's renderers on the CPU, which else find an earlier run's shaders on the disk.
        os.environ |= {"LP_NUM_THREADS": str(threads), "MESA_SHADER_CACHE_DISABLE": "true", "PYOPENGL_PLATFORM": "egl"}
        _need_context()
        from OpenGL import GL

        _need_target(GL, width, height)
        linked = program(GL, (GL.GL_VERTEX_SHADER, VERTEX), (GL.GL_FRAGMENT_SHADER, sources()[kernel]))
        GL.glUseProgram(linked)
        GL.glUniform2f(GL.glGetUniformLocation(linked, "size"), width, height)
        at, planes, depths = (GL.glGetUniformLocation(linked, name) for name in ("time", "planes", "depths"))

        def draw(time: float) -> None:
            GL.glUniform1f(at, time)
            if planes >= 0:
                values = depth(time)
                GL.glUniform2uiv(planes, len(values), np.array([each[:2] for each in values], np.uint32))
                GL.glUniform1fv(depths, len(values), np.array([each[2] for each in values], np.float32))
            GL.glDrawArrays(GL.GL_TRIANGLES, 0, 3)
            GL.glFinish()

        def picture() -> Picture:
            out = np.empty((height, width, 4), np.uint8)
            GL.glReadPixels(0, 0, width, height, GL.GL_RGBA, GL.GL_UNSIGNED_BYTE, out)
            return out

        return Prepared(draw, picture)


def _need_context() -> None:
    """A context that belongs to no window, on Mesa's platform for that; the one there is, if there is one."""
    from OpenGL import EGL
    from OpenGL.EGL.EXT.platform_base import eglGetPlatformDisplayEXT

    if EGL.eglGetCurrentContext():
        return
    surfaceless = 0x31DD
    try:
        display = eglGetPlatformDisplayEXT(surfaceless, None, None)
        EGL.eglInitialize(display, ctypes.c_long(), ctypes.c_long())
    except Exception:  # drivers that know no such platform answer with errors of several kinds
        display = EGL.eglGetDisplay(EGL.EGL_DEFAULT_DISPLAY)
        EGL.eglInitialize(display, ctypes.c_long(), ctypes.c_long())
    EGL.eglBindAPI(EGL.EGL_OPENGL_API)
    wanted = (EGL.EGL_CONTEXT_MAJOR_VERSION, 3, EGL.EGL_CONTEXT_MINOR_VERSION, 3, EGL.EGL_NONE)
    context = EGL.eglCreateContext(display, None, None, (EGL.EGLint * len(wanted))(*wanted))
    EGL.eglMakeCurrent(display, EGL.EGL_NO_SURFACE, EGL.EGL_NO_SURFACE, context)


def _need_target(GL: Any, width: int, height: int) -> None:  # noqa: N803
    texture = GL.glGenTextures(1)
    GL.glBindTexture(GL.GL_TEXTURE_2D, texture)
    GL.glTexImage2D(GL.GL_TEXTURE_2D, 0, GL.GL_RGBA8, width, height, 0, GL.GL_RGBA, GL.GL_UNSIGNED_BYTE, None)
    GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, GL.glGenFramebuffers(1))
    GL.glFramebufferTexture2D(GL.GL_FRAMEBUFFER, GL.GL_COLOR_ATTACHMENT0, GL.GL_TEXTURE_2D, texture, 0)
    GL.glViewport(0, 0, width, height)
    GL.glBindVertexArray(GL.glGenVertexArrays(1))


def program(GL: Any, *shaders: tuple[Any, str]) -> int:  # noqa: N803
    """A program of shaders of these kinds. In a context. Raises RuntimeError."""
    made: int = GL.glCreateProgram()
    for kind, source in shaders:
        shader = GL.glCreateShader(kind)
        GL.glShaderSource(shader, source)
        GL.glCompileShader(shader)
        if not GL.glGetShaderiv(shader, GL.GL_COMPILE_STATUS):
            raise RuntimeError(GL.glGetShaderInfoLog(shader))
        GL.glAttachShader(made, shader)
    GL.glLinkProgram(made)
    if not GL.glGetProgramiv(made, GL.GL_LINK_STATUS):
        raise RuntimeError(GL.glGetProgramInfoLog(made))
    return made


PEERS = (OpenGLPeer(),)
