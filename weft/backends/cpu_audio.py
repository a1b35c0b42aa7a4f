"""Sound on the CPU, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import Block, Compiled, Coordinator, Env
from weft.backends.cpu import CpuBackend, CpuCompiled
from weft.backends.launch import Value
from weft.backends.memory import StateMemory
from weft.backends.registry import register_backend
from weft.codegen.unit import Unit


@dataclass
class SoundCompiled(CpuCompiled):
    """A subgraph of sound. One that depends on the channel runs once for each of them, and remembers for each."""

    memories: tuple[StateMemory, ...] = ()


@register_backend
class CpuAudio(CpuBackend):
    """Gives [channels, outputs, samples] in double precision, with one channel where all sound the same."""

    name = "cpu_audio"
    context = "audio"

    def shape(self, env: Env) -> tuple[int, int]:
        return 1, _block(env).samples

    def coords(self, env: Env, shape: tuple[int, int]) -> Mapping[str, Value]:
        block = _block(env)
        return {"abstime": block.times, "channel": 0.0, **block.led}

    def compile_subgraph(self, unit: Unit, env: Env, coordinator: Coordinator) -> SoundCompiled:
        made = super().compile_subgraph(unit, env, coordinator)
        differs = any(name == "channel" for name, _ in unit.kernel.coords)
        others = (_block(env).channels if differs else 1) - 1
        more = tuple(StateMemory(unit.kernel.slots, made.memory.shape) for _ in range(others))
        return SoundCompiled(**vars(made), memories=(made.memory, *more))

    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> npt.NDArray[Any]:
        launch = self.launch(compiled, env, coordinator)
        rows = []
        for channel, memory in enumerate(_memories(compiled)):
            own = replace(launch, coords={**launch.coords, "channel": float(channel)}) if channel else launch
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


def _block(env: Env) -> Block:
    if env.block is None:
        raise ValueError("a stream can only be computed block by block")
    return env.block
