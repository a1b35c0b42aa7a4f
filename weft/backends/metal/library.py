"""The libraries for Metal, and the devices that they list: Apple's own interface if pyobjc is installed, else
metalcompute. The other modules use both in the same way."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

from weft import apple
from weft.backends import hardware
from weft.backends.base import DeviceInfo

T = TypeVar("T")

_REMEDY = "pip install pyobjc-framework-Metal pyobjc-framework-Quartz"


class MetalError(Exception):
    """Metal is not available, or failed. Carries the reason, in plain words."""


def devices() -> list[DeviceInfo]:
    """The devices; never raises. The memory of a device is its working set."""
    try:
        found = _by_either(_by_apple, _by_metalcompute)
    except MetalError as failure:
        return [_missing(str(failure), _REMEDY if _is_mac() else None)]
    except Exception as failure:
        return [_missing(f"Metal does not start ({failure})", None)]
    return found or [_missing("Metal has no device", None)]


def open_device(index: int) -> Any:
    """A device. Raises MetalError."""
    try:
        return _by_either(lambda: apple.AppleDevice(index), lambda: metalcompute().Device(index))
    except MetalError:
        raise
    except Exception as failure:
        raise MetalError(f"the device {index} cannot be opened ({failure})") from failure


def metalcompute() -> Any:
    """The module metalcompute. Raises MetalError."""
    try:
        import metalcompute
    except ImportError as failure:
        reason = "neither pyobjc's Metal nor metalcompute is installed" if _is_mac() else "Metal exists only on Macs"
        raise MetalError(reason) from failure
    return metalcompute


def _by_either(by_apple: Callable[[], T], by_metalcompute: Callable[[], T]) -> T:
    """Calls the function for the installed library."""
    return by_apple() if apple.is_installed() else by_metalcompute()


def _by_apple() -> list[DeviceInfo]:
    """The devices. All of a working set that this process has not allocated counts as free."""
    found = apple.frameworks().metal.MTLCopyAllDevices()
    return [
        _described("pyobjc", at, device.name(), (total := int(device.recommendedMaxWorkingSetSize())),
                   total - int(device.currentAllocatedSize()), device.hasUnifiedMemory())
        for at, device in enumerate(found)
    ]  # fmt: skip


def _by_metalcompute() -> list[DeviceInfo]:
    # The fields are: name, working set in bytes, rate of transfers, and whether memory is unified.
    found = [tuple(device)[:4] for device in metalcompute().get_devices()]
    return [
        _described("metalcompute", at, name, total, min(total, hardware.memory_free()) if unified else 0, unified)
        for at, (name, total, _, unified) in enumerate(found)
    ]


def _described(driver: str, index: int, name: str, total: int, free: int, unified: bool) -> DeviceInfo:
    return DeviceInfo(
        index, str(name), memory_total=total, memory_free=max(0, free), unified=bool(unified), compute="MSL 2.3",
        driver=driver, platform="Metal",
    )  # fmt: skip


def _is_mac() -> bool:
    return sys.platform == "darwin"


def _missing(reason: str, remedy: str | None) -> DeviceInfo:
    return DeviceInfo(0, "Metal", available=False, reason=reason, remedy=remedy, platform="Metal")
