"""Pictures by Metal."""

from __future__ import annotations

from weft.apple import AppleDevice
from weft.backends.card_contexts import CardVisual
from weft.backends.metal.backend import MetalBackend
from weft.backends.metal.library import MetalError
from weft.backends.registry import register_backend


@register_backend
class MetalVisual(CardVisual, MetalBackend):
    """Gives a picture in memory that the device shares."""

    name = "metal_visual"

    def window_device(self) -> AppleDevice | None:
        try:
            device, _ = self.device()
        except MetalError:
            return None
        return device if isinstance(device, AppleDevice) else None
