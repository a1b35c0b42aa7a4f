"""Pictures on the CPU."""

from __future__ import annotations

from collections.abc import Mapping

from weft.backends.base import Env
from weft.backends.cpu import CpuBackend
from weft.backends.launch import Value, picture_coords
from weft.backends.registry import register_backend


@register_backend
class CpuVisual(CpuBackend):
    """Gives a picture [height, width, RGBA] of bytes."""

    name = "cpu_visual"
    context = "visual"
    packed = True

    def shape(self, env: Env) -> tuple[int, int]:
        return env.height, env.width

    def coords(self, env: Env, shape: tuple[int, int]) -> Mapping[str, Value]:
        return picture_coords(shape[1], shape[0], env.abstime)
