"""Pictures by OpenGL."""

from __future__ import annotations

from weft.backends.base import Backend, Env
from weft.backends.cpu_visual import CpuVisual
from weft.backends.gl.backend import GlBackend
from weft.backends.registry import register_backend
from weft.backends.vector import VectorExecutor


@register_backend
class GlVisual(GlBackend):
    """Gives a picture on the graphics card."""

    name = "gl_visual"
    context = "visual"
    packed = True

    def shape(self, env: Env) -> tuple[int, int]:
        return env.height, env.width

    def rehearsing(self) -> Backend:
        return CpuVisual(VectorExecutor.name)
