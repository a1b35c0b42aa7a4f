"""The shortest backend. It runs nothing, for any context, and shows what a performance costs without that context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from weft.backends.base import Backend, Capabilities, Compiled, Coordinator, DeviceInfo, Env, Values
from weft.backends.launch import Array, Launch, StateMemory, Value
from weft.backends.registry import register_backend
from weft.codegen.kernel import Unit
from weft.names import StrandRef


@dataclass
class NullCompiled:
    """A subgraph that gives zeros."""

    unit: Unit
    memory: StateMemory = field(default_factory=lambda: StateMemory(()))

    def run(self, memory: StateMemory, launch: Launch, sync: bool = True, out: Array | None = None) -> Array:
        return np.zeros((len(self.unit.kernel.outputs), *launch.shape), np.float32) if out is None else out

    def value_at(self, ref: StrandRef, launch: Launch) -> Array:
        return np.zeros(launch.shape[1])

    def dump(self) -> str:
        return "nothing\n"


@register_backend
class Null(Backend):
    """Takes every subgraph and gives black, silence and zeros."""

    name = "null"
    context = "*"

    @classmethod
    def probe(cls) -> list[DeviceInfo]:
        return [DeviceInfo(0, "nothing")]

    def capabilities(self) -> Capabilities:
        return Capabilities(sources=frozenset({"picture"}))

    def compile_subgraph(self, unit: Unit, env: Env, coordinator: Coordinator) -> NullCompiled:
        return NullCompiled(unit)

    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Values:
        if compiled.unit.subgraph.context == "visual":
            return np.zeros((env.height, env.width, 4), np.uint8)
        return compiled.run(compiled.memory, Launch((1, 1), {}))

    def get_value_at(
        self, ref: StrandRef, compiled: Compiled, coords: Mapping[str, Value], env: Env, coordinator: Coordinator
    ) -> Array:
        return np.zeros(np.broadcast_shapes(*(np.shape(v) for v in coords.values())))
