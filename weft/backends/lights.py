"""The statement `lights` on the CPU: levels of lamps, once a frame."""

from __future__ import annotations

from weft.backends.cpu import CpuBackend
from weft.backends.registry import register_backend
from weft.contexts import LIGHTS


@register_backend
class CpuLights(CpuBackend):
    """Gives one number for each value of a `lights` statement, as [values, 1, 1]. A performance sends them
    (`weft.runtime.hands.light_sender`); a render does not."""

    name = "cpu_lights"
    context = LIGHTS.name
