"""A device of Metal: how it is found and opened, and what it does."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from weft import apple
from weft.backends import hardware
from weft.backends.base import DeviceInfo
from weft.backends.compute.interface import Arrival, Bytes, CompileError, ComputeError, Run, SharedDevice, as_bytes
from weft.backends.waits import DeviceWaits
from weft.platform import system

# The libraries for Metal, and the devices that they list: Apple's own interface if pyobjc is installed, else
# metalcompute. The other modules use both in the same way.

_REMEDY = "pip install pyobjc-framework-Metal pyobjc-framework-Quartz"


def devices() -> list[DeviceInfo]:
    """The devices; never raises. The memory of a device is its working set."""
    try:
        found = _by_apple() if apple.is_installed() else _by_metalcompute()
    except ComputeError as failure:
        return [DeviceInfo.absent("Metal", str(failure), _REMEDY if _is_mac() else None)]
    except Exception as failure:
        return [DeviceInfo.absent("Metal", f"Metal does not start ({failure})")]
    return found or [DeviceInfo.absent("Metal", "Metal has no device")]


def open_device(index: int) -> Any:
    """A device of either library. Raises ComputeError."""
    try:
        return apple.AppleDevice(index) if apple.is_installed() else metalcompute().Device(index)
    except ComputeError:
        raise
    except Exception as failure:
        raise ComputeError(f"the device {index} cannot be opened ({failure})") from failure


def metalcompute() -> Any:
    """The module metalcompute. Raises ComputeError."""
    try:
        import metalcompute
    except ImportError as failure:
        reason = "neither pyobjc's Metal nor metalcompute is installed" if _is_mac() else "Metal exists only on Macs"
        raise ComputeError(reason) from failure
    return metalcompute


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
    return system.has_metal


# What a device does.

# Finds the line in the compiler's errors: "program_source:12:3: error: …".
_LINE = re.compile(r":(\d+):\d+: (?:fatal )?error: (.*)")

# The value of a sample until the device has computed it: a NaN with bits that no computation gives.
_NOT_YET = np.uint32(0x7FA5_5A2A)

# Releasing a run waits for it with Python's lock held, which would hold up the sound. So the samples are polled, for at
# most this many seconds, with the lock free in between.
_PATIENCE = 0.1
_LOOK = 0.0002


class MetalRun:
    """A launch under way. Releasing the library's object waits for it, which with metalcompute has no end."""

    def __init__(self, own: Any, waits: DeviceWaits) -> None:
        self._own = own
        self._waits = waits

    def wait(self) -> None:
        own = self._own
        if isinstance(own, apple.DeviceWork):
            try:
                self._waits.until(lambda: own.is_over)
            finally:
                own.device.is_hung = self._waits.is_hung
        self._own = None


class MetalDevice(SharedDevice):
    """A device, by either library. Its memory is shared with the processor, which waits for a tick before the next
    one."""

    library: ClassVar[str] = "Metal"
    option: ClassVar[str] = "--dump-msl"
    ahead: ClassVar[int] = 0
    late: ClassVar[bool] = False

    def __init__(self, index: int) -> None:
        """Raises ComputeError."""
        self.own = open_device(index)

    def allocate(self, size: int) -> Any:
        made = self.own.buffer(size)
        self.view(made)[...] = 0
        return made

    def send(self, data: npt.NDArray[Any], before: Any = None) -> Any:
        return self.own.buffer(as_bytes(data))  # a launch under way may still read the one before

    def view(self, buffer: Any) -> Bytes:
        return np.frombuffer(buffer, np.uint8)

    def compile(self, text: str, entry: str) -> Any:
        try:
            return self.own.kernel(text).function(entry)
        except Exception as failure:  # its type belongs to the library
            found = _LINE.search(str(failure))
            words, at = (found[2], int(found[1])) if found else (str(failure), 0)
            raise CompileError(words, at) from failure

    def launch(self, kernel: Any, count: int, buffers: Sequence[Any]) -> Run:
        return MetalRun(kernel(count, *buffers), self.waits)

    def read(self, buffer: Any, after: Run | None = None, start: int = 0, size: int | None = None) -> Arrival:
        def fetch() -> Bytes:
            if after is not None:
                after.wait()
            return self.view(buffer)[start : None if size is None else start + size].copy()

        return fetch

    def samples(self, count: int) -> Any:
        return self.send(np.full(max(1, count), _NOT_YET))

    def read_samples(self, buffer: Any, after: Run) -> Arrival:
        begun = self.read(buffer, after)

        def fetch() -> Bytes:
            last = time.monotonic() + _PATIENCE
            while (self.view(buffer).view(np.uint32) == _NOT_YET).any() and time.monotonic() < last:
                time.sleep(_LOOK)
            return begun()

        return fetch
