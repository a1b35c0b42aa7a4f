"""Cards of AMD: HIP, by the libraries of ROCm. Nothing of it has been tried on a card yet."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import c_char_p, c_int, c_size_t
from typing import Any, ClassVar, Literal

from weft.backends.card import Dialect
from weft.backends.compute.backend import family
from weft.backends.compute.interface import opened
from weft.backends.cuda.backend import CudaBackend
from weft.backends.cuda.cards import CardDevice
from weft.backends.cuda.driver import LibraryCalls, Maker
from weft.codegen.cuda import Hip
from weft.platform import system

_VERSIONS = ("", ".7", ".6", ".5")
_FOLDERS = ("", "/opt/rocm/lib/")


def _libraries(name: str, windows: Sequence[str]) -> Sequence[str]:
    linux = [f"{folder}lib{name}.so{version}" for folder in _FOLDERS for version in _VERSIONS]
    return system.library_names(linux, windows)


class Amd(Maker):
    """Its cards are chosen by their numbers."""

    name: ClassVar[str] = "AMD"
    library: ClassVar[str] = "HIP"
    dialect: ClassVar[Literal["cuda", "hip"]] = "hip"
    integrated: ClassVar[int] = 16
    compute: ClassVar[str] = "generation"

    def driver(self) -> ctypes.CDLL:
        names = _libraries("amdhip64", ["amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"])
        return opened(names, "ROCm is not installed (libamdhip64)")

    def compiler(self) -> ctypes.CDLL:
        names = _libraries("hiprtc", ["hiprtc0700.dll", "hiprtc0600.dll", "hiprtc.dll"])
        return opened(names, "the compiler of ROCm is not installed (libhiprtc)")

    def words(self, driver: ctypes.CDLL, error: int) -> str:
        driver.hipGetErrorString.restype = c_char_p
        return (driver.hipGetErrorString(error) or f"error {error}".encode()).decode()

    def choosing(self, driver: ctypes.CDLL, calls: LibraryCalls, device: int) -> tuple[Callable[[Any], int], Any]:
        driver.hipSetDevice.argtypes = (c_int,)
        return driver.hipSetDevice, device

    def options(self, capability: tuple[int, int]) -> Sequence[str]:
        # It compiles for the card of the calling thread. Exact quotients and roots take several times as long.
        return "-std=c++17", "-O3", "-fno-hip-fp32-correctly-rounded-divide-sqrt"

    def free(self, driver: ctypes.CDLL, device: int, total: int) -> int:
        free, all_of_it = c_size_t(), c_size_t()
        failed = driver.hipSetDevice(device) or driver.hipMemGetInfo(ctypes.byref(free), ctypes.byref(all_of_it))
        return total if failed else free.value


class HipDevice(CardDevice):
    """A card of AMD."""

    maker: ClassVar[Maker] = Amd()
    library: ClassVar[str] = Amd.library
    option: ClassVar[str] = "--dump-hip"


class HipBackend(CudaBackend):
    """Computes the subgraphs of a context."""

    requires: ClassVar[tuple[str, ...]] = ()
    library: ClassVar[str] = HipDevice.library
    dialect: ClassVar[Dialect] = Dialect(Hip.over_picture, Hip.over_points)
    device_class: ClassVar[type[CardDevice]] = HipDevice


HipVisual, HipCompute, HipAudio = family("hip", HipBackend)
