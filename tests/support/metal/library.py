"""The module metalcompute, on a device of the tests."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from tests.support.metal.device import error


class About(NamedTuple):
    """What the module tells of a device."""

    deviceName: str  # noqa: N815 - as metalcompute has it
    recommendedWorkingSetSize: int  # noqa: N815
    maxTransferRate: int  # noqa: N815
    hasUnifiedMemory: bool  # noqa: N815


DEVICE = About("a processor", 2**30, 0, True)


class Metalcompute(ModuleType):
    """What `import metalcompute` gives, as far as weft asks it."""

    error = error

    def __init__(self, device: Any) -> None:
        super().__init__("metalcompute")
        self._device = device

    def get_devices(self) -> tuple[About, ...]:
        return (DEVICE,)

    def Device(self, index: int = 0) -> Any:  # noqa: N802 - as metalcompute has it
        return self._device


def in_place(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has `import metalcompute` give the device, unless the library itself is there."""
    if find_spec("metalcompute") is None:
        monkeypatch.setitem(sys.modules, "metalcompute", Metalcompute(device))
