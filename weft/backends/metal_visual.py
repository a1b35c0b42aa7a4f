"""Pictures by Metal."""

from __future__ import annotations

from weft.backends.card_contexts import CardVisual
from weft.backends.metal.backend import MetalBackend
from weft.backends.registry import register_backend


@register_backend
class MetalVisual(CardVisual, MetalBackend):
    """Gives a picture in memory that the device shares."""

    name = "metal_visual"
