"""Numbers by Metal, once a tick."""

from __future__ import annotations

from weft.backends.base import Backend
from weft.backends.cpu_compute import CpuCompute
from weft.backends.metal.backend import MetalBackend
from weft.backends.registry import register_backend
from weft.backends.vector import VectorExecutor


@register_backend
class MetalCompute(MetalBackend):
    """Gives one number for each value of the `compute` statements, as [values, 1, 1]: a picture of one pixel, which is
    waited for. What is not computed at the pixel is computed by the processor in double precision."""

    name = "metal_compute"
    context = "compute"

    def rehearsing(self) -> Backend:
        return CpuCompute(VectorExecutor.name)
