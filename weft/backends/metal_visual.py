"""Pictures by Metal."""

from __future__ import annotations

from weft.backends.base import Backend, Env
from weft.backends.cpu_visual import CpuVisual
from weft.backends.metal.backend import MetalBackend
from weft.backends.registry import register_backend
from weft.backends.vector import VectorExecutor


@register_backend
class MetalVisual(MetalBackend):
    """Gives a picture in memory that the device shares."""

    name = "metal_visual"
    context = "visual"
    packed = True

    def shape(self, env: Env) -> tuple[int, int]:
        return env.height, env.width

    def rehearsing(self) -> Backend:
        return CpuVisual(VectorExecutor.name)
