"""Pictures and numbers on a graphics card: what its backends for these contexts have in common.

The classes go before the backend of a library among the bases.
"""

from __future__ import annotations

from weft.backends.base import Backend, Env
from weft.backends.card import CardBackend
from weft.backends.cpu_compute import CpuCompute
from weft.backends.cpu_visual import CpuVisual
from weft.backends.vector import VectorExecutor


class CardVisual(CardBackend):
    """Gives a picture on the card."""

    context = "visual"
    packed = True

    def shape(self, env: Env) -> tuple[int, int]:
        return env.height, env.width

    def rehearsing(self) -> Backend:
        return CpuVisual(VectorExecutor.name)


class CardCompute(CardBackend):
    """Gives one number for each value of the `compute` statements, as [values, 1, 1]: a picture of one pixel, which is
    waited for. What is not computed at the pixel is computed by the processor in double precision."""

    context = "compute"

    def rehearsing(self) -> Backend:
        return CpuCompute(VectorExecutor.name)
