"""The devices of OpenCL."""

from __future__ import annotations

import warnings
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from weft.backends.base import DeviceInfo
from weft.backends.compute.interface import ComputeError
from weft.backends.hardware import memory_free
from weft.backends.probing import print_devices, probed

_INSTALL = "pip install 'weft-live[opencl]'"
_DRIVER = "install the driver of the device, or PoCL, which computes on the processor (apt install pocl-opencl-icd)"


def library() -> Any:
    """The module pyopencl. Raises ComputeError."""
    try:
        import pyopencl
    except ImportError as failure:
        raise ComputeError(f"pyopencl cannot be imported ({failure})") from failure
    warnings.filterwarnings("ignore", category=pyopencl.CompilerWarning)  # that a compiler has said something
    return pyopencl


def is_installed() -> bool:
    """Whether there is a module pyopencl. Does not import it."""
    return find_spec("pyopencl") is not None


def found(cl: Any) -> list[Any]:
    """The devices of all platforms, by their numbers. Raises ComputeError, or what pyopencl raises."""
    try:
        platforms = cl.get_platforms()
    except cl.LogicError:  # there is no driver at all
        platforms = []
    devices = [device for platform in platforms for device in platform.get_devices()]
    if not devices:
        raise ComputeError("no driver of OpenCL has a device")
    return devices


def devices() -> list[DeviceInfo]:
    """The devices. Never raises: an unavailable one has a reason."""
    if not is_installed():
        return [DeviceInfo.absent("OpenCL", "pyopencl is not installed", _INSTALL)]
    return probed("weft.backends.opencl.platforms", "OpenCL", _DRIVER, _device)


def _device(about: dict[str, Any]) -> DeviceInfo:
    """A device whose free memory is not known has all of it free, or if it shares the computer's, what that has."""
    total = about["memory_total"]
    free = about["memory_free"] or (min(total, memory_free()) if about["unified"] else total)
    return replace(DeviceInfo(**about, platform="OpenCL"), memory_free=free)


def _about(cl: Any, index: int, device: Any) -> dict[str, Any]:
    compiles = bool(device.available and device.compiler_available)
    is_processor = bool(device.type & cl.device_type.CPU)
    try:
        free = sum(1024 * each for each in device.global_free_memory_amd[:1])
    except Exception:  # only AMD's driver says
        free = 0
    return {
        "index": index, "name": " ".join(device.name.split()), "available": compiles,
        "reason": None if compiles else "it is not ready, or has no compiler",
        "memory_total": int(device.global_mem_size), "memory_free": free,
        "unified": is_processor or bool(device.host_unified_memory), "software": is_processor,
        "compute": " ".join(device.version.split()[:2]), "cores": int(device.max_compute_units),
        "driver": f"{device.platform.name}, {device.driver_version}",
    }  # fmt: skip


def _listed() -> list[dict[str, Any]]:
    cl = library()
    return [_about(cl, index, device) for index, device in enumerate(found(cl))]


if __name__ == "__main__":
    print_devices(_listed)
