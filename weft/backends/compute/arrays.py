"""State of subgraphs in buffers of a device, and arrays there for any other purpose."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import MemoryPool
from weft.backends.compute.interface import Arrival, ComputeDevice, RemoteDevice, Run, SharedDevice, failing
from weft.backends.launch import Array, Floats, StateMemory, in_size, make_finite
from weft.ir.expr import StateSlot


class ComputeMemory(StateMemory):
    """State with the rings of images in buffers of a device, and single numbers in the memory of the processor."""

    def __init__(self, slots: Iterable[StateSlot], shape: tuple[int, int], device: ComputeDevice) -> None:
        """Zeroed memory. Raises ComputeError if the device has no room."""
        super().__init__(slots, shape)
        self.running: Run | None = None
        """The last launch of the last tick, until it is waited for."""
        self.buffers: dict[str, Any] = {}
        with failing(f"there is no memory for what a picture of {shape[1]}×{shape[0]} remembers"):
            for slot in self.slots.values():
                if slot.image:
                    self.buffers[slot.key] = device.allocate(self._bytes(slot.key))

    def _bytes(self, key: str) -> int:
        """The bytes of a ring."""
        shape, dtype = self._form(key)
        return math.prod(shape) * dtype.itemsize

    def _is_here(self, slot: StateSlot) -> bool:
        return not slot.image

    def wait(self) -> None:
        """Waits until the last tick has finished."""
        running, self.running = self.running, None
        if running is not None:
            running.wait()

    @abstractmethod
    def finished(self) -> StateMemory:
        """A memory with the same values, from which another device can continue."""


class MappedMemory(ComputeMemory):
    """State in memory that the processor shares. Using a ring waits for the last launch."""

    def __init__(self, slots: Iterable[StateSlot], shape: tuple[int, int], device: SharedDevice) -> None:
        super().__init__(slots, shape, device)
        for key, buffer in self.buffers.items():
            wanted, dtype = self._form(key)
            self._rings[key] = device.view(buffer)[: self._bytes(key)].view(dtype).reshape(wanted)

    def ring(self, key: str) -> Floats:
        self.wait()
        return super().ring(key)

    def finished(self) -> StateMemory:
        self.wait()
        return self

    def _adopt_slot(self, key: str, old: StateMemory, copy: bool) -> None:
        self.wait()
        shares = isinstance(old, MappedMemory)
        super()._adopt_slot(key, old, copy or (key in self.buffers and not shares))
        if isinstance(old, MappedMemory) and key in self.buffers and self._rings[key] is old._rings[key]:
            self.buffers[key] = old.buffers[key]


class RemoteMemory(ComputeMemory):
    """State in memory of the device's own."""

    def __init__(self, slots: Iterable[StateSlot], shape: tuple[int, int], device: RemoteDevice) -> None:
        super().__init__(slots, shape, device)
        self.device = device
        self._read_back: tuple[tuple[int, int], StateMemory] | None = None
        """The last copy that was read back, and when."""
        self._looks: dict[str, Arrival] = {}
        """Images on their way, to see whether they are finite."""

    def here(self) -> StateMemory:
        known = self.ticks, self.takeovers
        if self._read_back is None or self._read_back[0] != known:
            self._read_back = known, self.read()
        return self._read_back[1]

    def finished(self) -> StateMemory:
        return self.read()

    def ring(self, key: str) -> Floats:
        """All cells of a slot. Those of an image are a copy that was read back: changing it has no effect."""
        if key not in self.buffers:
            return super().ring(key)
        wanted, dtype = self._form(key)
        with failing("what is remembered cannot be read"):
            return self.device.read(self.buffers[key])().view(dtype).reshape(wanted)

    def planes(self, key: str, ticks_ago: int) -> Floats:
        if key not in self.buffers:
            return super().planes(key, ticks_ago)
        with failing("what is remembered cannot be read"):
            return self._image(key, self._begun(key, ticks_ago)())

    def is_finite(self, key: str) -> bool:
        """The result of the last look; begins the next one. An image that was not looked at yet counts as finite."""
        if key not in self.buffers:
            return super().is_finite(key)
        last = self._looks.get(key)
        with failing("what is remembered cannot be read"):
            self._looks[key] = self._begun(key, 1)
            return last is None or bool(np.isfinite(self._image(key, last())).all())

    def _begun(self, key: str, ticks_ago: int) -> Arrival:
        """Begins to read an image."""
        size = self._cell_bytes(key)
        return self.device.read(self.buffers[key], None, int(self.cell(key, ticks_ago)) * size, size)

    def _image(self, key: str, found: npt.NDArray[np.uint8]) -> Floats:
        (_, *shape), dtype = self._form(key)
        return found.view(dtype).reshape(shape)

    def _cell_bytes(self, key: str) -> int:
        return self._bytes(key) // (self.slots[key].depth + 1)

    def _make_finite(self, key: str) -> bool:
        if key not in self.buffers:
            return super()._make_finite(key)
        self._looks.pop(key, None)
        self._read_back = None
        ring = self.ring(key)
        found = make_finite(ring)
        if found:
            with failing("what is remembered cannot be written"):
                self.device.write(self.buffers[key], ring)
        return found

    def _adopt_slot(self, key: str, old: StateMemory, copy: bool) -> None:
        if key not in self.buffers:
            super()._adopt_slot(key, old, copy)
            return
        self._looks.pop(key, None)
        is_near = isinstance(old, RemoteMemory) and old.device is self.device
        with failing("what is remembered cannot be taken over"):
            if is_near and self._form(key) == old._form(key):
                self._adopt_buffer(key, old, copy)
            else:
                self._adopt_images(key, old)

    def _adopt_buffer(self, key: str, old: Any, copy: bool) -> None:
        """Takes over a ring of the same form on the same device."""
        self._offsets[key] = old.ticks + old._offsets[key] - self.ticks
        if not copy:
            self.buffers[key] = old.buffers[key]
            return
        if self.buffers[key] is old.buffers[key]:  # it was taken over in the opposite direction earlier
            self.buffers[key] = self.device.allocate(self._bytes(key))
        self.device.copy(old.buffers[key], 0, self.buffers[key], 0, self._bytes(key))

    def _adopt_images(self, key: str, old: StateMemory) -> None:
        """Takes over the images of another size, depth or device, by way of the processor."""
        size, shape = self._cell_bytes(key), self._form(key)[0][2:]
        its = old.ring(key)
        for ticks_ago in range(1, 1 + self._common(key, old)):
            images = in_size(np.asarray(its[old.cell(key, ticks_ago)]), (shape[0], shape[1]))
            self.device.write(self.buffers[key], images.astype(np.float32), int(self.cell(key, ticks_ago)) * size)


def memory_on(device: ComputeDevice, slots: Iterable[StateSlot], shape: tuple[int, int]) -> ComputeMemory:
    """Zeroed state on a device. Raises ComputeError if it has no room."""
    match device:
        case SharedDevice():
            return MappedMemory(slots, shape, device)
        case RemoteDevice():
            return RemoteMemory(slots, shape, device)
    raise TypeError(f"{device} is neither shared nor remote")


# Arrays for any other purpose.


@dataclass(frozen=True)
class DeviceArray:
    """An array in a buffer of a device, from a byte on."""

    device: RemoteDevice
    buffer: Any
    start: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def fill(self, data: Array) -> None:
        with failing("an array cannot be written"):
            self.device.write(self.buffer, np.ascontiguousarray(data, self.dtype), self.start)

    def read(self) -> Array:
        with failing("an array cannot be read"):
            found = self.device.read(self.buffer, None, self.start, self.nbytes)()
        return found.view(self.dtype).reshape(self.shape)


class RemotePool(MemoryPool):
    """A buffer of a device, allocated piece by piece."""

    def __init__(self, device: RemoteDevice, size: int) -> None:
        """Raises ComputeError if there is not enough memory."""
        super().__init__(np.zeros(0, np.uint8))
        self.size = size
        self._device = device
        with failing(f"there is no memory for {size} bytes"):
            self._buffer = device.allocate(max(1, size))

    def take(self, shape: Sequence[int], dtype: npt.DTypeLike) -> DeviceArray:
        start = self.place(shape, dtype)
        return DeviceArray(self._device, self._buffer, start, tuple(shape), np.dtype(dtype))

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        with failing("an array cannot be copied"):
            size = min(source.nbytes, target.nbytes)
            self._device.copy(source.buffer, source.start, target.buffer, target.start, size)


def pool_on(device: ComputeDevice, size: int) -> MemoryPool:
    """An arena on a device. Raises ComputeError if it has no room."""
    if isinstance(device, RemoteDevice):
        return RemotePool(device, size)
    if not isinstance(device, SharedDevice):
        raise TypeError(f"{device} is neither shared nor remote")
    with failing(f"there is no memory for {size} bytes"):
        return MemoryPool(device.view(device.allocate(max(1, size)))[:size])
