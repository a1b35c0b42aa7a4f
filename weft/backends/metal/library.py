"""The library through which Metal is used, and the devices that it knows."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from weft.backends.base import DeviceInfo

_REMEDY = "pip install metalcompute (on a Mac with Apple's processor, with Python up to 3.13)"


class MetalError(Exception):
    """Metal that cannot be had, or that fails. Carries the reason, in plain words."""


def library() -> Any:
    """The module metalcompute. Raises MetalError."""
    try:
        return importlib.import_module("metalcompute")
    except ImportError as failure:
        raise MetalError("metalcompute is not installed" if _is_mac() else "Metal is on Macs alone") from failure


def devices() -> list[DeviceInfo]:
    """The devices; never raises. The memory of one is what it may work with at once."""
    try:
        found = library().get_devices()
    except MetalError as failure:
        return [_missing(str(failure), _REMEDY if _is_mac() else None)]
    except Exception as failure:
        return [_missing(f"Metal does not start ({failure})", None)]
    return [_described(at, device) for at, device in enumerate(found)] or [_missing("Metal has no device", None)]


def open_device(index: int) -> Any:
    """A device. Raises MetalError."""
    try:
        return library().Device(index)
    except MetalError:
        raise
    except Exception as failure:
        raise MetalError(f"the device {index} cannot be opened ({failure})") from failure


def _is_mac() -> bool:
    return sys.platform == "darwin"


def _missing(reason: str, remedy: str | None) -> DeviceInfo:
    return DeviceInfo(0, "Metal", available=False, reason=reason, remedy=remedy, platform="Metal")


def _described(index: int, device: Any) -> DeviceInfo:
    # The fields are: name, working set in bytes, rate of transfers, and whether memory is unified.
    name, working_set, _, unified = tuple(device)[:4]
    return DeviceInfo(
        index, str(name), memory_total=int(working_set), unified=bool(unified), compute="MSL 2.3", platform="Metal"
    )
