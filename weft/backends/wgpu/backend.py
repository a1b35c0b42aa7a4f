"""The backends that compute with WebGPU: pictures, numbers and sound."""

from __future__ import annotations

from typing import ClassVar

from weft.backends import hardware
from weft.backends.base import DeviceInfo
from weft.backends.card import Dialect
from weft.backends.compute.backend import ComputeBackend, family
from weft.backends.compute.interface import ComputeDevice
from weft.backends.wgpu import adapters
from weft.backends.wgpu.webgpu import WgpuDevice
from weft.codegen.wgsl import Wgsl


class WgpuBackend(ComputeBackend):
    """Computes the subgraphs of a context."""

    requires: ClassVar[tuple[str, ...]] = ("wgpu",)
    library: ClassVar[str] = WgpuDevice.library
    device_class: ClassVar[type[ComputeDevice]] = WgpuDevice
    dialect: ClassVar[Dialect] = Dialect(Wgsl.over_picture, Wgsl.over_points)

    @classmethod
    def probe(cls) -> list[DeviceInfo]:
        return adapters.devices()

    @classmethod
    def may_have_hardware(cls) -> bool:
        return adapters.is_installed() and hardware.may_have_card()

    def window_device(self) -> WgpuDevice | None:
        device = self.opened_device()
        return device if isinstance(device, WgpuDevice) else None


WgpuVisual, WgpuCompute, WgpuAudio = family("wgpu", WgpuBackend)
