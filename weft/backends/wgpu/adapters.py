"""The devices of WebGPU, which it calls adapters."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from weft.backends.base import DeviceInfo
from weft.backends.compute.interface import ComputeError, failing
from weft.backends.hardware import memory
from weft.backends.probing import print_devices, probed

_INSTALL = "pip install 'weft-live[wgpu]', with Python 3.11 or later"
_DRIVER = "install the driver of the device, or Mesa's for the processor (apt install mesa-vulkan-drivers)"


def library() -> Any:
    """The module wgpu. Raises ComputeError."""
    with failing("wgpu cannot be imported"):  # its own library may be missing, too
        import wgpu
        from wgpu.backends.wgpu_native import extras
    # It logs what it raises as well.
    logging.getLogger("wgpu").setLevel(logging.CRITICAL + 1)
    # OpenGL has a backend of its own, with which drivers that are opened twice would interfere.
    with suppress(RuntimeError):  # it has been told, and has begun
        extras.set_instance_extras(backends=["Primary"])
    return wgpu


def is_installed() -> bool:
    """Whether there is a package wgpu. Does not import it."""
    return find_spec("wgpu") is not None


def found() -> list[Any]:
    """The adapters of all drivers, by their numbers. Raises ComputeError, or what wgpu raises."""
    # What drivers load prints an error where no folder has the sockets of screens, though nothing is shown there.
    folder = os.environ.setdefault("XDG_RUNTIME_DIR", os.devnull)
    try:
        adapters: list[Any] = library().gpu.enumerate_adapters_sync()
    finally:
        if folder == os.devnull:
            os.environ.pop("XDG_RUNTIME_DIR", None)
    if not adapters:
        raise ComputeError("no driver of WebGPU has a device")
    return adapters


def devices() -> list[DeviceInfo]:
    """The devices. Never raises: an unavailable one has a reason."""
    if not is_installed():
        return [DeviceInfo.absent("WebGPU", "wgpu is not installed", _INSTALL)]
    return probed("weft.backends.wgpu.adapters", "WebGPU", _DRIVER, _device)


def _device(about: dict[str, Any]) -> DeviceInfo:
    """A device. Its memory is known if it is the computer's."""
    made = DeviceInfo(**about, platform="WebGPU")
    return replace(made, memory_total=memory().total, memory_free=memory().free) if made.unified else made


def _about(index: int, adapter: Any) -> dict[str, Any]:
    info = adapter.info
    return {
        "index": index, "name": " ".join(info["device"].split()) or info["backend_type"],
        "unified": info["adapter_type"] != "DiscreteGPU", "software": info["adapter_type"] == "CPU",
        "compute": info["backend_type"], "driver": info["description"] or info["vendor"],
    }  # fmt: skip


if __name__ == "__main__":
    print_devices(lambda: [_about(index, adapter) for index, adapter in enumerate(found())])
