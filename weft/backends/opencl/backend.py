"""The backends that compute with OpenCL: pictures, numbers and sound."""

from __future__ import annotations

from typing import ClassVar

from weft.backends import hardware
from weft.backends.base import DeviceInfo
from weft.backends.card import Dialect
from weft.backends.compute.backend import ComputeBackend, family
from weft.backends.compute.interface import ComputeDevice
from weft.backends.opencl import platforms
from weft.backends.opencl.queue import ClDevice
from weft.codegen.opencl import OpenCl


class ClBackend(ComputeBackend):
    """Computes the subgraphs of a context."""

    requires: ClassVar[tuple[str, ...]] = ("pyopencl",)
    library: ClassVar[str] = ClDevice.library
    device_class: ClassVar[type[ComputeDevice]] = ClDevice
    dialect: ClassVar[Dialect] = Dialect(OpenCl.over_picture, OpenCl.over_points)

    @classmethod
    def probe(cls) -> list[DeviceInfo]:
        return platforms.devices()

    @classmethod
    def may_have_hardware(cls) -> bool:
        return platforms.is_installed() and hardware.may_have_card()


ClVisual, ClCompute, ClAudio = family("opencl", ClBackend)
