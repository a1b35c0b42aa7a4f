"""The backends that compute with Metal: pictures, numbers and sound."""

from __future__ import annotations

from typing import ClassVar

from weft.apple import AppleDevice
from weft.backends.base import DeviceInfo
from weft.backends.card import CardCompute, CardVisual, Dialect
from weft.backends.compute.backend import ComputeAudio, ComputeBackend
from weft.backends.compute.interface import ComputeDevice, ComputeError
from weft.backends.metal import libraries as metal
from weft.backends.registry import register_backend
from weft.codegen.msl import Msl
from weft.platform import system


class MetalBackend(ComputeBackend):
    """Computes the subgraphs of a context."""

    requires: ClassVar[tuple[str, ...]] = ("metalcompute",)
    library: ClassVar[str] = metal.MetalDevice.library
    dialect: ClassVar[Dialect] = Dialect(Msl.over_picture, Msl.over_points)

    @classmethod
    def probe(cls) -> list[DeviceInfo]:
        return metal.devices()

    @classmethod
    def may_have_hardware(cls) -> bool:
        return system.has_metal

    def opened(self, index: int) -> ComputeDevice:
        return metal.MetalDevice(index)


@register_backend
class MetalVisual(CardVisual, MetalBackend):
    """Gives a picture in memory that the device shares."""

    name = "metal_visual"

    def window_device(self) -> AppleDevice | None:
        try:
            device, _ = self.device()
        except ComputeError:
            return None
        own = device.own if isinstance(device, metal.MetalDevice) else None
        return own if isinstance(own, AppleDevice) else None


@register_backend
class MetalCompute(CardCompute, MetalBackend):
    """Gives numbers, through a picture of one pixel."""

    name = "metal_compute"


@register_backend
class MetalAudio(ComputeAudio, MetalBackend):
    """Sound, in memory that the device shares."""

    name = "metal_audio"
