"""Numbers on the CPU, once a tick."""

from __future__ import annotations

from weft.backends.cpu import CpuBackend
from weft.backends.registry import register_backend


@register_backend
class CpuCompute(CpuBackend):
    """Gives one number for each value of the `compute` statements, as [values, 1, 1]."""

    name = "cpu_compute"
    context = "compute"
