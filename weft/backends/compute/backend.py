"""The base of the backends of devices that compute into buffers."""

from __future__ import annotations

from functools import partial
from typing import ClassVar
from weakref import ref

from weft.backends.base import Backend, Compiled, Coordinator, DeviceInfo, DeviceLostError, Env, MemoryPool, Scope
from weft.backends.card import CardAudio, CardBackend, CardCompute, CardSound, CardVisual, SoundCode
from weft.backends.compute.arrays import pool_on
from weft.backends.compute.interface import ComputeDevice, ComputeError, RemoteDevice, failing
from weft.backends.compute.subgraph import ComputeCompiled, ComputeSounding, PictureBuffers
from weft.backends.registry import members
from weft.codegen.kernel import Unit


class ComputeBackend(CardBackend):
    """Computes the subgraphs of a context. A device's own backends say how it is probed and opened, and list before
    this one the class of their context."""

    failure: ClassVar[type[Exception]] = ComputeError
    device_class: ClassVar[type[ComputeDevice]]

    def __init__(self, index: int = 0) -> None:
        self._index = index
        self._opened: tuple[ComputeDevice, PictureBuffers] | None = None
        self._compiled: tuple[ref[ComputeCompiled], ...] = ()
        self._telling = failing("what was asked of the device fails", partial(DeviceLostError, self.context))

    def opened(self, index: int) -> ComputeDevice:
        """A device. Raises ComputeError."""
        return self.device_class(index)

    @classmethod
    def on(cls, device: DeviceInfo, executor: str = "") -> Backend:
        return cls(device.index)

    def open(self) -> None:
        self.guarded(self.device)

    def device(self) -> tuple[ComputeDevice, PictureBuffers]:
        """The device, opened at the first call, with the pictures on it. Raises ComputeError."""
        if self._opened is None:
            device = self.opened(self._index)
            device.waits.most = self.most_seconds
            self._opened = device, PictureBuffers(device)
        return self._opened

    def compile_subgraph(self, unit: Unit, env: Env, coordinator: Coordinator) -> Compiled:
        self.check(unit)
        made = self.guarded(
            lambda: ComputeCompiled(unit, self.code(unit), *self.device(), self.shape(env), self.dialect)
        )
        self._compiled = (*(each for each in self._compiled if each() is not None), ref(made))
        return self.at_known_tier(made)

    def own(self, compiled: Compiled) -> ComputeCompiled:
        if not isinstance(compiled, ComputeCompiled):
            raise TypeError(f"{compiled.unit.subgraph.name} runs on another backend")
        return compiled

    def sync(self, scope: Scope = "device") -> None:
        device = None if self._opened is None else self._opened[0]
        if isinstance(device, RemoteDevice):  # copies of arrays are under way, too
            with self._telling:
                device.wait()
            return
        for each in self._compiled:
            compiled = each()
            if compiled is not None and compiled.memory.running is not None:
                self.guarded(compiled.memory.wait)

    def barrier(self) -> None:
        self.sync()

    def pool(self, size: int) -> MemoryPool:
        return self.guarded(lambda: pool_on(self.device()[0], size))

    def opened_device(self) -> ComputeDevice | None:
        """The device, or none if it cannot be opened."""
        try:
            return self.device()[0]
        except ComputeError:
            return None


class ComputeAudio(CardAudio, ComputeBackend):
    """Sound, in buffers of the device."""

    def sound(self, unit: Unit, code: SoundCode) -> CardSound:
        return CardSound(unit, code, ComputeSounding(*self.device(), unit.kernel, code))


def family(name: str, base: type[ComputeBackend]) -> tuple[type[ComputeBackend], ...]:
    """The backends of a kind of device: they compute pictures, numbers and sound."""
    return members(name, base, (CardVisual, CardCompute, ComputeAudio))
