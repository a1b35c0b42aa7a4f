"""Sound on the CPU, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import Compiled, Coordinator, Env, SampleBlock
from weft.backends.cpu import CpuBackend, CpuCompiled
from weft.backends.launch import Launch
from weft.backends.launching import tick
from weft.backends.memory import StateMemory
from weft.backends.registry import register_backend
from weft.codegen.unit import Unit


@dataclass
class SoundCompiled(CpuCompiled):
    """A subgraph of sound. One that is different in each channel runs once for each of them, and remembers for each."""

    memories: tuple[StateMemory, ...] = ()


@register_backend
class CpuAudio(CpuBackend):
    """Gives [channels, outputs, samples] in double precision, with one channel where all sound the same."""

    name = "cpu_audio"
    context = "audio"

    def shape(self, env: Env) -> tuple[int, int]:
        return 1, block_of(env).samples

    def launch(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Launch:
        block, kernel = block_of(env), compiled.unit.kernel
        return replace(tick(kernel, env, coordinator, self.shape(env), block.coords(kernel)), even=block.even)

    def compile_subgraph(self, unit: Unit, env: Env, coordinator: Coordinator) -> SoundCompiled:
        made = super().compile_subgraph(unit, env, coordinator)
        block = block_of(env)
        others = (block.channels if block.differs(unit.kernel) else 1) - 1
        more = tuple(StateMemory(unit.kernel.slots, made.memory.shape) for _ in range(others))
        return SoundCompiled(**vars(made), memories=(made.memory, *more))

    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> npt.NDArray[Any]:
        launch, block = self.launch(compiled, env, coordinator), block_of(env)
        rows = []
        for channel, memory in enumerate(_memories(compiled)):
            own = replace(launch, coords=block.coords(compiled.unit.kernel, channel)) if channel else launch
            rows.append(compiled.run(memory, own)[:, 0, :])
        return np.stack(rows)

    def try_out(
        self, compiled: Compiled, env: Env, coordinator: Coordinator, raw: bool = False
    ) -> npt.NDArray[Any]:
        return self.execute_subgraph(compiled, env, coordinator)

    def adopt(self, compiled: Compiled, old: Iterable[Compiled], copy: bool = False) -> list[str]:
        kept: list[str] = []
        for channel, memory, source, is_shared in _pairs(compiled, old):
            found = memory.adopt(source, copy or is_shared)
            kept += found if channel == 0 else []
        return kept

    def copy_ahead(self, compiled: Compiled, old: Iterable[Compiled]) -> None:
        for _, memory, source, _ in _pairs(compiled, old):
            memory.copy_ahead(source)


def _pairs(compiled: Compiled, old: Iterable[Compiled]) -> Iterator[tuple[int, StateMemory, StateMemory, bool]]:
    """Each memory, by its channel, with that which it goes on from, and whether another one does as well: what was the
    same in all channels goes on in each of them."""
    mine = _memories(compiled)
    for other in old:
        its = _memories(other)
        for channel, memory in enumerate(mine):
            yield channel, memory, its[min(channel, len(its) - 1)], channel >= len(its)


def _memories(compiled: Compiled) -> tuple[StateMemory, ...]:
    return compiled.memories if isinstance(compiled, SoundCompiled) else (compiled.memory,)


def block_of(env: Env) -> SampleBlock:
    """The block of a stream that is to be computed."""
    if env.block is None:
        raise ValueError("a stream can only be computed block by block")
    return env.block
