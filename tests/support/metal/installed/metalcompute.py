"""What `import metalcompute` finds in a process that has this folder on its path: a device that is the processor."""

from __future__ import annotations

from tests.support.metal.device import CpuDevice as Device, error
from tests.support.metal.library import DEVICE, About

__all__ = ["Device", "error", "get_devices"]


def get_devices() -> tuple[About, ...]:
    return (DEVICE,)
