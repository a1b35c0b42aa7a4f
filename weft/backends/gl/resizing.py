"""Copies one image of a ring to another, in another size if it must be."""

from __future__ import annotations

from typing import Any

from weft.backends.gl.graphics import ContextState, Graphics
from weft.backends.gl.opengl import GL
from weft.backends.gl.programs import linked
from weft.backends.gl.textures import TextureArray, bind
from weft.codegen.glsl import resampling


class Resizer:
    """The program that does it, in the way in which state is sampled."""

    def __init__(self, graphics: Graphics) -> None:
        """In a context of the graphics."""
        self._program: Any = linked(resampling())
        self._layer = GL.glGetUniformLocation(self._program, "layer")
        self._size = GL.glGetUniformLocation(self._program, "size")

    def copy(self, place: ContextState, source: TextureArray, layer: int, to: TextureArray, to_layer: int) -> None:
        """Fills a layer with the image of another."""
        GL.glUseProgram(self._program)
        GL.glUniform1i(self._layer, layer)
        GL.glUniform2f(self._size, to.shape[1], to.shape[0])
        bind(0, GL.GL_TEXTURE_2D_ARRAY, source.number)
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, place.aside)
        GL.glFramebufferTextureLayer(GL.GL_FRAMEBUFFER, GL.GL_COLOR_ATTACHMENT0, to.number, 0, to_layer)
        GL.glDrawBuffers(1, [GL.GL_COLOR_ATTACHMENT0])
        GL.glViewport(0, 0, to.shape[1], to.shape[0])
        GL.glDrawArrays(GL.GL_TRIANGLES, 0, 3)
