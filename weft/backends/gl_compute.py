"""Numbers by OpenGL, once a tick."""

from __future__ import annotations

from weft.backends.base import Backend
from weft.backends.cpu_compute import CpuCompute
from weft.backends.gl.backend import GlBackend
from weft.backends.registry import register_backend
from weft.backends.vector import VectorExecutor


@register_backend
class GlCompute(GlBackend):
    """Gives one number for each value of the `compute` statements, as [values, 1, 1]: a picture of one pixel, which is
    waited for. What is not computed at the pixel is computed by the processor in double precision."""

    name = "gl_compute"
    context = "compute"

    def rehearsing(self) -> Backend:
        return CpuCompute(VectorExecutor.name)
