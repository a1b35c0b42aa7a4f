"""Numbers by Metal, once a tick."""

from __future__ import annotations

from weft.backends.card_contexts import CardCompute
from weft.backends.metal.backend import MetalBackend
from weft.backends.registry import register_backend


@register_backend
class MetalCompute(CardCompute, MetalBackend):
    """Gives numbers, through a picture of one pixel."""

    name = "metal_compute"
