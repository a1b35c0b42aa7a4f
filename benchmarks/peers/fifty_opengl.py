"""patches/bench/fifty.weft by OpenGL: by weft, and by hand (`fifty.glsl`), drawn and in tiles.

Each way by hand has a context of its own, in which all that a frame needs stays bound. The calls go straight to the
driver, with arguments that are ready.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.fifty import Moment, by_backend, fill, turned_text
from benchmarks.peers.opengl_peer import VERTEX, definitions, program
from benchmarks.peers.peer import Picture
from weft.backends.gl.backend import GlVisual
from weft.backends.gl.egl import Context, Egl

SOURCE = Path(__file__).with_name("fifty.glsl")

# The sides of tiles that are tried.
TILES = (8, 16)

_UINT, _INT, _ADDRESS = ctypes.c_uint, ctypes.c_int, ctypes.c_void_p


@dataclass(frozen=True)
class OpenGLWay:
    """Draws a frame by its number, and gives its picture, while its context is current."""

    draw: Callable[[int], None]
    picture: Callable[[], Picture]
    context: Context


def by_weft(width: int, height: int) -> tuple[OpenGLWay, str]:
    """The same by weft; and who draws."""
    # OpenGL may be missing.
    from weft.backends.gl.offscreen import offscreen

    graphics, shown = offscreen(), list[Any]()
    backend = GlVisual(graphics)
    begin = by_backend(backend, width, height)

    def draw(number: int) -> None:
        shown[:] = [begin(number)]
        backend.sync()

    entered = ExitStack()

    def enter() -> None:
        entered.enter_context(graphics.drawing())

    return OpenGLWay(draw, lambda: np.asarray(shown[0].read()), Context(enter, entered.close)), graphics.about.renderer


def by_hand(width: int, height: int, turned: bool, tile: int, filtered: bool) -> OpenGLWay:
    """Drawn by a triangle (0), or in tiles with so many pixels a side. The numbers of the patch are inputs if they can
    be `turned`; the trail can be `filtered` by the card. Raises GraphicsError, and RuntimeError if the driver refuses
    the shader."""
    context = Egl().context()
    context.enter()
    from weft.backends.gl.graphics import GL

    text, numbers = SOURCE.read_text(encoding="utf-8"), np.zeros(0, np.float32)
    if turned:
        text, numbers = turned_text(text, "uniform float numbers[{}];")
    chosen = [f"#define TILE {tile}"] * bool(tile) + ["#define FILTER"] * filtered
    text = "\n".join([f"#version {430 if tile else 400}", *definitions(), *chosen, text])
    shaders = [(GL.GL_COMPUTE_SHADER, text)] if tile else [(GL.GL_VERTEX_SHADER, VERTEX), (GL.GL_FRAGMENT_SHADER, text)]
    number = program(GL, *shaders)
    GL.glUseProgram(number)
    GL.glUniform2f(GL.glGetUniformLocation(number, "size"), width, height)
    if turned:
        GL.glUniform1fv(GL.glGetUniformLocation(number, "numbers"), numbers.size, numbers)
    picture = _texture(GL, GL.GL_RGBA8, width, height)
    trails = [_texture(GL, GL.GL_R32F, width, height) for _ in range(2)]
    places = [GL.glGetUniformLocation(number, name) for name in ("moment", "seeds")]
    kind = _in_tiles if tile else _drawn
    draw = _frames(places, trails, kind(GL, picture, trails, (width, height), tile))
    context.leave()

    def read() -> Picture:
        out = np.empty((height, width, 4), np.uint8)
        if tile:
            GL.glMemoryBarrier(GL.GL_ALL_BARRIER_BITS)
        GL.glBindTexture(GL.GL_TEXTURE_2D, picture)  # the next frame binds the one that it samples
        GL.glGetTexImage(GL.GL_TEXTURE_2D, 0, GL.GL_RGBA, GL.GL_UNSIGNED_BYTE, out)
        return out

    return OpenGLWay(draw, read, context)


def _frames(places: Sequence[int], trails: Sequence[int], work: Callable[[int], None]) -> Callable[[int], None]:
    """Draws a frame by its number: fills in what varies, and does the work of even frames (0) or odd ones (1)."""
    bind, finish = _call("glBindTexture", _UINT, _UINT), _call("glFinish")
    floats, wholes = (_call(name, _INT, _INT, _ADDRESS) for name in ("glUniform4fv", "glUniform2uiv"))
    moment, flat, (at_floats, at_wholes) = Moment(), 0x0DE1, places
    first = ctypes.addressof(moment)
    behind = first + Moment.grain.offset

    def draw(number: int) -> None:
        fill(moment, number)
        floats(at_floats, 3, first)
        wholes(at_wholes, 1, behind)
        bind(flat, trails[number % 2])
        work(number % 2)
        finish()

    return draw


def _drawn(
    GL: Any, picture: int, trails: Sequence[int], size: tuple[int, int], side: int  # noqa: N803
) -> Callable[[int], None]:  # fmt: skip
    """Draws to the picture, and to the trail that is not sampled."""
    GL.glViewport(0, 0, *size)
    GL.glDisable(GL.GL_DITHER)
    GL.glBindVertexArray(GL.glGenVertexArrays(1))
    points, targets = (GL.GL_COLOR_ATTACHMENT0, GL.GL_COLOR_ATTACHMENT1), []
    for trail in reversed(trails):
        targets.append(int(GL.glGenFramebuffers(1)))
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, targets[-1])
        for point, texture in zip(points, (picture, trail), strict=True):
            GL.glFramebufferTexture2D(GL.GL_FRAMEBUFFER, point, GL.GL_TEXTURE_2D, texture, 0)
        GL.glDrawBuffers(2, (_UINT * 2)(*points))
    bind, draw = _call("glBindFramebuffer", _UINT, _UINT), _call("glDrawArrays", _UINT, _INT, _INT)
    framebuffer, triangles = int(GL.GL_FRAMEBUFFER), int(GL.GL_TRIANGLES)

    def work(odd: int) -> None:
        bind(framebuffer, targets[odd])
        draw(triangles, 0, 3)

    return work


def _in_tiles(
    GL: Any, picture: int, trails: Sequence[int], size: tuple[int, int], side: int  # noqa: N803
) -> Callable[[int], None]:  # fmt: skip
    """Computes the picture, and the trail that is not sampled."""
    GL.glBindImageTexture(0, picture, 0, False, 0, GL.GL_WRITE_ONLY, GL.GL_RGBA8)
    bind = _call("glBindImageTexture", _UINT, _UINT, _INT, ctypes.c_ubyte, _INT, _UINT, _UINT)
    compute, barrier = _call("glDispatchCompute", _UINT, _UINT, _UINT), _call("glMemoryBarrier", _UINT)
    across, down = (-(-each // side) for each in size)
    only, kind, fetch = int(GL.GL_WRITE_ONLY), int(GL.GL_R32F), int(GL.GL_TEXTURE_FETCH_BARRIER_BIT)

    def work(odd: int) -> None:
        bind(1, trails[1 - odd], 0, 0, 0, only, kind)
        compute(across, down, 1)
        barrier(fetch)

    return work


def _texture(GL: Any, kind: int, width: int, height: int) -> int:  # noqa: N803
    """A texture of zeros, which is sampled as a patch samples what it remembers."""
    texture = int(GL.glGenTextures(1))
    # PyOpenGL converts an array of another type, to one with as many items.
    form, words, zeros = (
        (GL.GL_RED, GL.GL_FLOAT, np.zeros((height, width), np.float32))
        if kind == GL.GL_R32F else (GL.GL_RGBA, GL.GL_UNSIGNED_BYTE, np.zeros((height, width, 4), np.uint8))
    )  # fmt: skip
    GL.glBindTexture(GL.GL_TEXTURE_2D, texture)
    GL.glTexImage2D(GL.GL_TEXTURE_2D, 0, kind, width, height, 0, form, words, zeros)
    for name in (GL.GL_TEXTURE_MIN_FILTER, GL.GL_TEXTURE_MAG_FILTER):
        GL.glTexParameteri(GL.GL_TEXTURE_2D, name, GL.GL_LINEAR)
    for name in (GL.GL_TEXTURE_WRAP_S, GL.GL_TEXTURE_WRAP_T):
        GL.glTexParameteri(GL.GL_TEXTURE_2D, name, GL.GL_CLAMP_TO_EDGE)
    GL.glTexParameteri(GL.GL_TEXTURE_2D, GL.GL_TEXTURE_MAX_LEVEL, 0)
    return texture


def _call(name: str, *takes: Any) -> Callable[..., None]:
    """A function of the driver, without what PyOpenGL does around it. In a context."""
    from weft.backends.gl.graphics import address_of

    return ctypes.CFUNCTYPE(None, *takes)(address_of(name))
