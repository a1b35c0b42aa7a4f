"""State of subgraphs in buffers of a device, and arrays there for any other purpose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import MemoryPool
from weft.backends.card_memory import CardArray, CardPool, CardState
from weft.backends.compute.interface import Arrival, ComputeDevice, RemoteDevice, Run, SharedDevice, failing
from weft.backends.launch import Array, Floats, StateMemory, make_finite
from weft.ir.expr import StateSlot


class ComputeMemory(CardState):
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
                    self.buffers[slot.key] = device.allocate(self.bytes_of(slot.key))

    def wait(self) -> None:
        """Waits until the last tick has finished."""
        running, self.running = self.running, None
        if running is not None:
            running.wait()


class MappedMemory(ComputeMemory):
    """State in memory that the processor shares. Using a ring waits for the last launch."""

    def __init__(self, slots: Iterable[StateSlot], shape: tuple[int, int], device: SharedDevice) -> None:
        super().__init__(slots, shape, device)
        for key, buffer in self.buffers.items():
            wanted, dtype = self._form(key)
            self._rings[key] = device.view(buffer)[: self.bytes_of(key)].view(dtype).reshape(wanted)

    def ring(self, key: str) -> Floats:
        self.wait()
        return super().ring(key)

    def here(self) -> StateMemory:
        return self

    def finished(self, into: StateMemory | None = None) -> StateMemory:
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
        self._looks: dict[str, Arrival] = {}
        """Images on their way, to see whether they are finite."""

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
        return self.bytes_of(key) // (self.slots[key].depth + 1)

    def _make_finite(self, key: str) -> bool:
        if key not in self.buffers:
            return super()._make_finite(key)
        self._looks.pop(key, None)
        self.read_back = None
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
            self.buffers[key] = self.device.allocate(self.bytes_of(key))
        self.device.copy(old.buffers[key], 0, self.buffers[key], 0, self.bytes_of(key))

    def _adopt_images(self, key: str, old: StateMemory) -> None:
        """Takes over the images of another size, depth or device, by way of the processor."""
        size, shape = self._cell_bytes(key), self._form(key)[0][2:]
        for cell, images in self.arriving(key, old, (shape[0], shape[1])):
            self.device.write(self.buffers[key], images.astype(np.float32), cell * size)


def memory_on(device: ComputeDevice, slots: Iterable[StateSlot], shape: tuple[int, int]) -> ComputeMemory:
    """Zeroed state on a device. Raises ComputeError if it has no room."""
    match device:
        case SharedDevice():
            return MappedMemory(slots, shape, device)
        case RemoteDevice():
            return RemoteMemory(slots, shape, device)
    raise TypeError(f"{device} is neither shared nor remote")


# Arrays for any other purpose.


class RemotePool(CardPool):
    """A buffer of a device."""

    def __init__(self, device: RemoteDevice, size: int) -> None:
        """Raises ComputeError if there is not enough memory."""
        super().__init__(size)
        self._device = device
        with failing(f"there is no memory for {size} bytes"):
            self.buffer = device.allocate(max(1, size))

    def write(self, start: int, data: Array) -> None:
        with failing("an array cannot be written"):
            self._device.write(self.buffer, data, start)

    def fetch(self, start: int, into: npt.NDArray[np.uint8]) -> None:
        with failing("an array cannot be read"):
            into[:] = self._device.read(self.buffer, None, start, into.size)()

    def copy(self, source: CardArray, target: CardArray) -> None:
        with failing("an array cannot be copied"):
            size = min(source.nbytes, target.nbytes)
            self._device.copy(source.pool.buffer, source.start, target.pool.buffer, target.start, size)


def pool_on(device: ComputeDevice, size: int) -> MemoryPool:
    """An arena on a device. Raises ComputeError if it has no room."""
    if isinstance(device, RemoteDevice):
        return RemotePool(device, size)
    if not isinstance(device, SharedDevice):
        raise TypeError(f"{device} is neither shared nor remote")
    with failing(f"there is no memory for {size} bytes"):
        return MemoryPool(device.view(device.allocate(max(1, size)))[:size])
