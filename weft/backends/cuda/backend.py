"""Cards of NVIDIA: CUDA, by the library of the driver and by NVRTC, and the backends that compute with them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import c_char_p, c_int, c_uint64, c_void_p
from typing import Any, ClassVar, Literal

from weft.backends import hardware
from weft.backends.base import DeviceInfo
from weft.backends.card import Dialect
from weft.backends.compute.backend import ComputeBackend, family
from weft.backends.compute.interface import MissingError, opened
from weft.backends.cuda.cards import CardDevice
from weft.backends.cuda.driver import LibraryCalls, Maker, devices
from weft.codegen.cuda import Cuda
from weft.platform import system

REMEDY = "pip install 'weft-live[cuda]'"


class Nvidia(Maker):
    """Its cards share their context with everything else in the process that uses CUDA."""

    name: ClassVar[str] = "NVIDIA"
    library: ClassVar[str] = "CUDA"
    dialect: ClassVar[Literal["cuda", "hip"]] = "cuda"
    integrated: ClassVar[int] = 18
    compute: ClassVar[str] = "compute capability"

    def driver(self) -> ctypes.CDLL:
        return opened(system.library_names(["libcuda.so.1"], ["nvcuda.dll"]), "there is no driver of NVIDIA")

    def compiler(self) -> ctypes.CDLL:
        try:
            from cuda.pathfinder import load_nvidia_dynamic_lib

            return ctypes.CDLL(load_nvidia_dynamic_lib("nvrtc").abs_path)
        except Exception as failure:  # of a package that is missing, or does not find the library
            raise MissingError("NVIDIA's compiler NVRTC is not installed", REMEDY) from failure

    def words(self, driver: ctypes.CDLL, error: int) -> str:
        found = c_char_p()
        driver.cuGetErrorName(error, ctypes.byref(found))
        name = (found.value or b"").decode()
        return name.removeprefix("CUDA_ERROR_").replace("_", " ").lower() or f"error {error}"

    def choosing(self, driver: ctypes.CDLL, calls: LibraryCalls, device: int) -> tuple[Callable[[Any], int], Any]:
        context = c_void_p()
        calls.done(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), c_int(device)))
        driver.cuCtxSetCurrent.argtypes = (c_void_p,)
        return driver.cuCtxSetCurrent, context.value

    def options(self, capability: tuple[int, int]) -> Sequence[str]:
        # Exact quotients and roots take several times as long.
        architecture = "{}{}".format(*capability)
        return f"--gpu-architecture=sm_{architecture}", "--std=c++17", "--prec-div=false", "--prec-sqrt=false"

    def free(self, driver: ctypes.CDLL, device: int, total: int) -> int:
        """Asked of the library of NVIDIA's tools: without a context, which would take some of it."""
        try:
            tools = ctypes.CDLL(system.library_names(["libnvidia-ml.so.1"], ["nvml.dll"])[0])
            place, card = ctypes.create_string_buffer(64), c_void_p()
            memory = (c_uint64 * 3)()  # all, free and used
            failed = (
                driver.cuDeviceGetPCIBusId(place, len(place), c_int(device))
                or tools.nvmlInit_v2()
                or tools.nvmlDeviceGetHandleByPciBusId_v2(place, ctypes.byref(card))
                or tools.nvmlDeviceGetMemoryInfo(card, memory)
            )
            return total if failed else int(memory[1])
        except (OSError, AttributeError):
            return total


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


CudaVisual, CudaCompute, CudaAudio = family("cuda", CudaBackend)
