"""The devices of WebGPU, which it calls adapters."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from weft.backends.base import DeviceInfo
from weft.backends.compute.interface import ComputeError
from weft.backends.hardware import answer, memory

OLDEST_PYTHON = (3, 11)
"""The first version of Python that the package is made for."""

_INSTALL = "pip install 'weft-live[wgpu]'"
_DRIVER = "install the driver of the device, or Mesa's for the processor (apt install mesa-vulkan-drivers)"

# What has drivers that compute. OpenGL has a backend of its own, which its drivers would interfere with.
_INTERFACES = ("Primary",)


def library() -> Any:
    """The module wgpu. Raises ComputeError."""
    try:
        import wgpu
        from wgpu.backends.wgpu_native import extras
    except Exception as failure:  # its own library may be missing, too
        raise ComputeError(f"wgpu cannot be imported ({failure})") from failure
    # It logs what it raises as well.
    logging.getLogger("wgpu").setLevel(logging.CRITICAL + 1)
    with suppress(RuntimeError):  # it has been told, and has begun
        extras.set_instance_extras(backends=_INTERFACES)
    return wgpu


def is_installed() -> bool:
    """Whether there is a package wgpu. Does not import it."""
    return find_spec("wgpu") is not None


def found() -> list[Any]:
    """The adapters of all drivers, by their numbers. Raises ComputeError, or what wgpu raises."""
    with _quiet():
        adapters: list[Any] = library().gpu.enumerate_adapters_sync()
    if not adapters:
        raise ComputeError("no driver of WebGPU has a device")
    return adapters


@contextmanager
def _quiet() -> Iterator[None]:
    """Names a folder for sockets of screens where the system names none: what drivers load would print that it is
    missing, though nothing is shown there."""
    missing = "XDG_RUNTIME_DIR" not in os.environ
    if missing:
        os.environ["XDG_RUNTIME_DIR"] = os.devnull
    try:
        yield
    finally:
        if missing:
            os.environ.pop("XDG_RUNTIME_DIR", None)


def devices() -> list[DeviceInfo]:
    """The devices. Never raises: an unavailable one has a reason."""
    if not is_installed():
        if sys.version_info < OLDEST_PYTHON:
            return [_missing(f"wgpu needs Python {'.'.join(map(str, OLDEST_PYTHON))}", "use a newer Python")]
        return [_missing("wgpu is not installed", _INSTALL)]
    # A driver that is open may interfere with others, and one that fails may end the process.
    told = answer("weft.backends.wgpu.adapters", "WebGPU")
    return [_missing(told["reason"], _DRIVER)] if "reason" in told else [_device(about) for about in told["devices"]]


def _missing(reason: str, remedy: str) -> DeviceInfo:
    return DeviceInfo(0, "WebGPU", available=False, reason=reason, remedy=remedy, platform="WebGPU")


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


def main() -> None:
    """Prints the devices as JSON."""
    try:
        listed = [_about(index, adapter) for index, adapter in enumerate(found())]
    except Exception as failure:  # drivers fail in many ways
        print(json.dumps({"reason": str(failure)}))
    else:
        print(json.dumps({"devices": listed}))


if __name__ == "__main__":
    main()
