"""Pictures on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

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
    _shape = (0, 0)
    _centres: Mapping[str, Value] = MappingProxyType({})

    def shape(self, env: Env) -> tuple[int, int]:
        return env.height, env.width

    def coords(self, env: Env, shape: tuple[int, int]) -> Mapping[str, Value]:
        if shape != self._shape:
            # The same arrays for each frame: who reads them can tell that nothing has changed.
            self._shape, self._centres = shape, picture_coords(shape[1], shape[0])
        return {**self._centres, "abstime": env.abstime}
