"""The backends that compute with CUDA: pictures, numbers and sound."""

from __future__ import annotations

from typing import ClassVar

from weft.backends import hardware
from weft.backends.base import DeviceInfo
from weft.backends.card import Dialect
from weft.backends.compute.backend import ComputeBackend, family
from weft.backends.compute.interface import ComputeDevice
from weft.backends.cuda.cards import CardDevice
from weft.backends.cuda.driver import Maker, devices
from weft.backends.cuda.nvidia import Nvidia
from weft.codegen.cuda import Cuda


class CudaDevice(CardDevice):
    """A card of NVIDIA."""

    maker: ClassVar[Maker] = Nvidia()
    library: ClassVar[str] = Nvidia.library
    option: ClassVar[str] = "--dump-cuda"


class CudaBackend(ComputeBackend):
    """Computes the subgraphs of a context."""

    requires: ClassVar[tuple[str, ...]] = ("cuda-pathfinder", "nvidia-cuda-nvrtc")
    library: ClassVar[str] = CudaDevice.library
    dialect: ClassVar[Dialect] = Dialect(Cuda.over_picture, Cuda.over_points)
    device_class: ClassVar[type[CardDevice]] = CudaDevice

    @classmethod
    def probe(cls) -> list[DeviceInfo]:
        return devices(cls.device_class.maker)

    @classmethod
    def may_have_hardware(cls) -> bool:
        return hardware.may_have_card()

    def opened(self, index: int) -> ComputeDevice:
        return self.device_class(index)


CudaVisual, CudaCompute, CudaAudio = family("cuda", CudaBackend)
