"""What the backends that compute with Metal have in common."""

from __future__ import annotations

import sys
from typing import Any, ClassVar
from weakref import WeakSet

import numpy as np

from weft.backends.base import Backend, Capabilities, Compiled, Coordinator, DeviceInfo, Env, MemoryPool, Scope
from weft.backends.card import CardBackend
from weft.backends.memory import StateMemory
from weft.backends.metal import library as metal
from weft.backends.metal.compiled import MetalCompiled
from weft.backends.metal.program import PictureBuffers
from weft.backends.shader_code import Dialect
from weft.codegen import msl
from weft.codegen.unit import Unit


class MetalBackend(CardBackend):
    """Computes the subgraphs of a context."""

    requires: ClassVar[tuple[str, ...]] = ("metalcompute",)
    library: ClassVar[str] = "Metal"
    dialect: ClassVar[Dialect] = Dialect(msl.pixels, msl.points)
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
            raise TypeError(f"{compiled.unit.subgraph.name} runs elsewhere")
        return compiled

    def device(self) -> tuple[Any, PictureBuffers]:
        """The device, which is opened when it is needed first, with the pictures on it. Raises MetalError."""
        if self._opened is None:
            device = metal.open_device(self._index)
            self._opened = device, PictureBuffers(device)
        return self._opened
