"""The libraries through which Metal is used, on a device of the tests: metalcompute and pyobjc."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from tests.support.metal.apple import modules
from tests.support.metal.device import CpuDevice, error
from weft.apple import AppleDevice


class About(NamedTuple):
    """The module's description of a device."""

    deviceName: str  # noqa: N815 - as metalcompute has it
    recommendedWorkingSetSize: int  # noqa: N815
    maxTransferRate: int  # noqa: N815
    hasUnifiedMemory: bool  # noqa: N815


DEVICE = About("a processor", 2**30, 0, True)


class Metalcompute(ModuleType):
    """The parts of metalcompute that weft uses."""

    error = error

    def __init__(self, device: Any) -> None:
        super().__init__("metalcompute")
        self._device = device

    def get_devices(self) -> tuple[About, ...]:
        return (DEVICE,)

    def Device(self, index: int = 0) -> Any:  # noqa: N802 - as metalcompute has it
        return self._device


def hide(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a library not be found."""
    monkeypatch.setitem(sys.modules, {"pyobjc": "AppKit"}.get(name, name), None)


def in_place(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has weft compute on a device by the library that the device is of; without a real one, by metalcompute."""
    if isinstance(device, CpuDevice):
        monkeypatch.setitem(sys.modules, "metalcompute", Metalcompute(device))
    if not isinstance(device, AppleDevice):
        hide("pyobjc", monkeypatch)


def apple_in_place(device: CpuDevice, monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """Has weft compute on a device by pyobjc, whose modules are replaced."""
    made = modules(device)
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    return made


@pytest.fixture(params=["metalcompute", "pyobjc"])
def either(request: pytest.FixtureRequest, device: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The device by one library and then by the other, on which weft computes."""
    if isinstance(device, CpuDevice) and request.param == "pyobjc":
        apple_in_place(device, monkeypatch)
        return AppleDevice()
    if isinstance(device, AppleDevice) != (request.param == "pyobjc"):
        pytest.skip("this device is of the other library")
    in_place(device, monkeypatch)
    return device
