"""The backends that compute with Metal: pictures, numbers and sound."""

from __future__ import annotations

import sys
from typing import Any, ClassVar
from weakref import WeakSet

import numpy as np

from weft.apple import AppleDevice
from weft.backends.base import Backend, Capabilities, Compiled, Coordinator, DeviceInfo, Env, MemoryPool, Scope
from weft.backends.card import CardAudio, CardBackend, CardCompute, CardSound, CardVisual, Dialect, SoundCode
from weft.backends.launch import StateMemory
from weft.backends.metal import subgraph as metal
from weft.backends.metal.subgraph import MetalCompiled, MetalError, MetalSounding, PictureBuffers
from weft.backends.registry import register_backend
from weft.codegen import msl
from weft.codegen.kernel import Unit


class MetalBackend(CardBackend):
    """Computes the subgraphs of a context."""

    requires: ClassVar[tuple[str, ...]] = ("metalcompute",)
    library: ClassVar[str] = "Metal"
    dialect: ClassVar[Dialect] = Dialect(msl.over_picture, msl.over_points)
    failure: ClassVar[type[Exception]] = metal.MetalError

    def __init__(self, index: int = 0) -> None:
        self._index = index
        self._opened: tuple[Any, PictureBuffers] | None = None
        self._compiled: WeakSet[MetalCompiled] = WeakSet()

    @classmethod
    def probe(cls) -> list[DeviceInfo]:
        return metal.devices()

    @classmethod
    def may_have_hardware(cls) -> bool:
        return sys.platform == "darwin"

    @classmethod
    def on(cls, device: DeviceInfo, executor: str = "") -> Backend:
        return cls(device.index)

    def capabilities(self) -> Capabilities:
        return Capabilities(handles=True, sources=frozenset({"picture"}))

    def open(self) -> None:
        self.guarded(self.device)

    def compile_subgraph(self, unit: Unit, env: Env, coordinator: Coordinator) -> Compiled:
        self.check(unit)
        made = self.guarded(lambda: MetalCompiled(unit, self.code(unit), *self.device(), self.shape(env)))
        self._compiled.add(made)
        return made

    def remembered(self, compiled: Compiled) -> StateMemory:
        own = self.own(compiled)
        own.memory.wait()
        return own.memory

    def pool(self, size: int) -> MemoryPool:
        device, _ = self.guarded(self.device)
        block = np.frombuffer(self.guarded(lambda: device.buffer(max(1, size))), np.uint8)[:size]
        block[...] = 0
        return MemoryPool(block)

    def sync(self, scope: Scope = "device") -> None:
        for compiled in tuple(self._compiled):
            compiled.memory.wait()

    def barrier(self) -> None:
        self.sync()

    def own(self, compiled: Compiled) -> MetalCompiled:
        if not isinstance(compiled, MetalCompiled):
            raise TypeError(f"{compiled.unit.subgraph.name} runs on another backend")
        return compiled

    def device(self) -> tuple[Any, PictureBuffers]:
        """The device, opened at the first call, with the pictures on it. Raises MetalError."""
        if self._opened is None:
            device = metal.open_device(self._index)
            self._opened = device, PictureBuffers(device)
        return self._opened


@register_backend
class MetalVisual(CardVisual, MetalBackend):
    """Gives a picture in memory that the device shares."""

    name = "metal_visual"

    def window_device(self) -> AppleDevice | None:
        try:
            device, _ = self.device()
        except MetalError:
            return None
        return device if isinstance(device, AppleDevice) else None


@register_backend
class MetalCompute(CardCompute, MetalBackend):
    """Gives numbers, through a picture of one pixel."""

    name = "metal_compute"


@register_backend
class MetalAudio(CardAudio, MetalBackend):
    """Sound, in memory that the device shares."""

    name = "metal_audio"

    def sound(self, unit: Unit, code: SoundCode) -> CardSound:
        return CardSound(unit, code, MetalSounding(*self.device(), unit.kernel, code))
