"""The backends that compute with Metal: pictures, numbers and sound."""

from __future__ import annotations

from typing import ClassVar

from weft.apple import AppleDevice
from weft.backends.base import DeviceInfo
from weft.backends.card import Dialect
from weft.backends.compute.backend import ComputeBackend, family
from weft.backends.compute.interface import ComputeDevice
from weft.backends.metal import libraries as metal
from weft.codegen.msl import Msl
from weft.platform import system


class MetalBackend(ComputeBackend):
    """Computes the subgraphs of a context."""

    requires: ClassVar[tuple[str, ...]] = ("metalcompute",)
    library: ClassVar[str] = metal.MetalDevice.library
    device_class: ClassVar[type[ComputeDevice]] = metal.MetalDevice
    dialect: ClassVar[Dialect] = Dialect(Msl.over_picture, Msl.over_points)

    @classmethod
    def probe(cls) -> list[DeviceInfo]:
        return metal.devices()

    @classmethod
    def may_have_hardware(cls) -> bool:
        return system.has_metal

    def window_device(self) -> AppleDevice | None:
        device = self.opened_device()
        own = device.own if isinstance(device, metal.MetalDevice) else None
        return own if isinstance(own, AppleDevice) else None


MetalVisual, MetalCompute, MetalAudio = family("metal", MetalBackend)
