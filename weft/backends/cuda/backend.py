"""The backends that compute with CUDA: pictures, numbers and sound."""

from __future__ import annotations

from typing import ClassVar

from weft.backends import hardware
from weft.backends.base import DeviceInfo
from weft.backends.card import CardCompute, CardVisual, Dialect
from weft.backends.compute.backend import ComputeAudio, ComputeBackend
from weft.backends.compute.interface import ComputeDevice
from weft.backends.cuda.cards import CardDevice
from weft.backends.cuda.driver import Maker, devices
from weft.backends.cuda.nvidia import Nvidia
from weft.backends.registry import register_backend
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


@register_backend
class CudaVisual(CardVisual, CudaBackend):
    """Gives a picture in the memory of a card."""

    name = "cuda_visual"


@register_backend
class CudaCompute(CardCompute, CudaBackend):
    """Gives numbers, through a picture of one pixel."""

    name = "cuda_compute"


@register_backend
class CudaAudio(ComputeAudio, CudaBackend):
    """Sound, in the memory of a card."""

    name = "cuda_audio"
