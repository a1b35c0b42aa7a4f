"""Sound on a graphics card, block by block: what its backends have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from weft.backends.base import Backend, Capabilities, Compiled, Coordinator, Env, Handle, NoHandle
from weft.backends.card import CardBackend
from weft.backends.card_sound import CardSound
from weft.backends.cpu_audio import CpuAudio, block_of
from weft.backends.launching import tick
from weft.backends.memory import StateMemory
from weft.backends.sound_code import SoundCode, sound_problem, sound_translated
from weft.backends.vector import VectorExecutor
from weft.codegen.clike.shader import UnsuitableError
from weft.codegen.unit import Unit
from weft.contexts import ContextSpec
from weft.names import StrandRef


class CardAudio(CardBackend):
    """Gives [channels, outputs, samples], computed in single precision, with one channel where all sound the same. The
    time of a block is brought down to one turn of whatever moves with it, in double precision; a program computes the
    samples, as a rule several blocks ahead.

    It goes before the backend of a library among the bases."""

    context = "audio"

    @classmethod
    def spec_of(cls, spec: ContextSpec) -> ContextSpec:
        return spec.by_blocks()

    @abstractmethod
    def sound(self, unit: Unit, code: SoundCode) -> CardSound:
        """A subgraph of sound. Raises WeftError if its program is refused, and what the device raises when it is
        lost."""

    def capabilities(self) -> Capabilities:
        return Capabilities(state=False, feedback=False, sources=frozenset({"picture"}))

    def rehearsing(self) -> Backend:
        return CpuAudio(VectorExecutor.name)

    def unsuitable(self, unit: Unit) -> str | None:
        return sound_problem(unit.kernel, self.dialect)

    def translate(self, unit: Unit, tier: int = 1) -> SoundCode | None:
        if tier > 1:
            return None
        try:
            return sound_translated(unit.kernel, self.dialect)
        except UnsuitableError:
            return None

    def compile_subgraph(self, unit: Unit, env: Env, coordinator: Coordinator) -> Compiled:
        code = unit.code
        if not isinstance(code, SoundCode):
            self.check(replace(unit, code=None))
            code = sound_translated(unit.kernel, self.dialect)
        return self.guarded(lambda: self.sound(unit, code))

    def tier(self, compiled: Compiled) -> int | None:
        return None

    def exchange(self, compiled: Compiled, code: object) -> None:
        """Keeps what was made for the processor, which goes on if the card fails."""
        if isinstance(compiled, CardSound):
            compiled.unit = replace(compiled.unit, code=code)

    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> npt.NDArray[Any]:
        if not isinstance(compiled, CardSound):
            raise TypeError(f"{compiled.unit.subgraph.name} runs elsewhere")
        block = block_of(env)
        launch = tick(compiled.unit.kernel, env, coordinator, (1, block.samples), {})
        return self.guarded(lambda: compiled.play(block, launch))

    def try_out(
        self, compiled: Compiled, env: Env, coordinator: Coordinator, raw: bool = False
    ) -> npt.NDArray[Any]:
        return self.execute_subgraph(compiled, env, coordinator)

    def get_handle(self, ref: StrandRef, compiled: Compiled) -> Handle:
        return NoHandle()

    def adopt(self, compiled: Compiled, old: Iterable[Compiled], copy: bool = False) -> list[str]:
        return Backend.adopt(self, compiled, old, copy)

    def remembered(self, compiled: Compiled) -> StateMemory:
        return compiled.memory
