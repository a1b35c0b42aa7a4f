"""The backends that run kernels on the CPU, for pictures, numbers and sound. They differ in what they make of the
outputs of a kernel."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import ClassVar

import numpy as np

from weft.backends import hardware
from weft.backends.base import Backend, Capabilities, Compiled, Coordinator, DeviceInfo, Env, SampleBlock
from weft.backends.executors import Executable, Executor, Pictures, Refusal, Refused, StagedCode
from weft.backends.launch import Array, Launch, StateMemory, Value, picture_coords, shape_of_level
from weft.backends.native.executor import ExactExecutor, NativeExecutor
from weft.backends.native.llvm import NativeCode, problem
from weft.backends.prologue import at_points, nowhere, tick
from weft.backends.registry import register_backend
from weft.backends.vector.machine import VectorExecutor
from weft.backends.vm import ReferenceExecutor
from weft.backends.wasm import WasmExecutor, wasm_problem
from weft.codegen.bytecode import disassemble
from weft.codegen.kernel import Unit
from weft.codegen.native.tiles import TileProgram
from weft.contexts import ContextSpec
from weft.names import StrandRef
from weft.recently_used import RecentlyUsed

EXECUTORS: Mapping[str, Callable[[], Executor]] = {
    "native": NativeExecutor, "exact": ExactExecutor, "vector": VectorExecutor, "wasm": WasmExecutor,
    "vm": ReferenceExecutor,
}  # fmt: skip
"""The fastest first, and the slowest last."""


IN_DOUBLE = (ReferenceExecutor.name, WasmExecutor.name)
"""The executors that compute pictures in double precision."""


def executor_problem(name: str) -> str | None:
    """Why an executor is not available on this machine, and how to get it; None if it is available."""
    if name == WasmExecutor.name:
        return wasm_problem()
    return problem() if name in (NativeExecutor.name, ExactExecutor.name) else None


# The number of subgraphs that are kept loaded. Each takes a few megabytes of scratch memory.
_KEPT = 12

# The number of picture sizes for which the places of the pixels are kept.
_SIZES = 8


@dataclass(frozen=True, slots=True)
class CpuCode:
    """An executor's translations of a unit: of its grid, and of each strand that others read."""

    grid: object = None
    points: Mapping[StrandRef, object] = field(default_factory=dict)


@dataclass
class CpuCompiled:
    """A subgraph loaded into an executor. Its memory is for one size of picture."""

    unit: Unit
    grid: Executable
    points: Mapping[StrandRef, Executable]
    memory: StateMemory
    packed: bool
    pictures: Pictures
    successor: Executor | None = None
    """The executor that takes over once it has code."""
    others: tuple[StateMemory, ...] = ()
    """The state of the channels after the first, for a sound that differs between channels. It runs once for each
    channel."""

    def run(self, memory: StateMemory, launch: Launch, sync: bool = True, out: Array | None = None) -> Array:
        if not self.packed:
            return self.grid.planes(memory, launch)
        if out is not None:
            self.grid.rgba8(memory, launch, out)
            return out
        return self.pictures.drawn(launch, lambda picture: self.grid.rgba8(memory, launch, picture))

    def value_at(self, ref: StrandRef, launch: Launch) -> Array:
        return np.asarray(self.points[ref].planes(self.memory, launch)[0, 0])

    def upgrade(self, code: object) -> None:
        match self.grid, code:
            case _, (NativeCode() | StagedCode()) if self.successor is not None:
                self.grid = self.successor.load(self.unit.kernel, {self.packed: code})
                self.successor = None
            case _ if self.successor is not None:
                self.successor = None  # there is no faster code
            case grid, better:
                grid.upgrade(better)

    def dump(self) -> str:
        return disassemble(self.unit.kernel)


class CpuBackend(Backend):
    """Runs kernels with one of the executors: `native` (machine code), `vector` (numpy), or `vm`, the reference."""

    requires: ClassVar[tuple[str, ...]] = ("numpy",)
    packed: ClassVar[bool] = False
    """Whether outputs become pixels."""

    def __init__(self, executor: str = "vector") -> None:
        self._executor: Executor = EXECUTORS[executor]()
        # The last few units stay loaded: returning to an earlier text, or resizing the picture, loads nothing again.
        self._loaded: RecentlyUsed[str, tuple[Executable, dict[StrandRef, Executable]]] = RecentlyUsed(_KEPT)

    @classmethod
    def probe(cls) -> list[DeviceInfo]:
        total, free = hardware.memory()
        return [
            DeviceInfo(
                0, platform.processor() or platform.machine(), memory_total=total, memory_free=free,
                platform=platform.system(), simd=hardware.simd(), cores=hardware.cores(),
            )
        ]  # fmt: skip

    @classmethod
    def on(cls, device: DeviceInfo, executor: str = "") -> Backend:
        return cls(executor)

    def capabilities(self) -> Capabilities:
        fast = self._executor.name != "vm"
        return Capabilities(simd=fast, threads=fast, sources=frozenset({"picture"}))

    def shape(self, env: Env) -> tuple[int, int]:
        """Height and width of the sweep."""
        return 1, 1

    def compile_subgraph(self, unit: Unit, env: Env, coordinator: Coordinator) -> CpuCompiled:
        # These store state in the precision in which they compute.
        precision = self._executor.widest if self._executor.name in IN_DOUBLE else np.float32
        memory = StateMemory(unit.kernel.slots, self.shape(env), precision, unit.borrowed)
        grid, points = self._loaded.get_or_make(unit.hash, lambda: self._load(unit))
        return CpuCompiled(unit, grid, points, memory, self._packs(unit), Pictures(unit.kernel))

    def compile_at_once(self, unit: Unit, env: Env, coordinator: Coordinator) -> Compiled:
        if not isinstance(self._executor, NativeExecutor) or not self._packs(unit):
            return self.compile_subgraph(unit, env, coordinator)
        # Machine code takes long to compile. Until it is ready, numpy runs the kernel.
        standing_in = type(self)(VectorExecutor.name).compile_subgraph(replace(unit, code=None), env, coordinator)
        standing_in.successor = self._executor
        return standing_in

    def _packs(self, unit: Unit) -> bool:
        """Whether the outputs of a unit become pixels. A unit that is only read by others has no outputs."""
        return self.packed and bool(unit.kernel.outputs)

    def translate(self, unit: Unit, tier: int = 1) -> CpuCode | None:
        grid = self._executor.translate(unit.kernel, self._packs(unit), tier)
        if tier > 1:
            return CpuCode(grid) if grid is not None else None
        return CpuCode(grid, {ref: self._executor.translate(kernel, False) for ref, kernel in unit.points.items()})

    def code_serves_again(self, unit: Unit) -> bool:
        return self._packs(unit) and isinstance(unit.code, CpuCode) and isinstance(unit.code.grid, TileProgram)

    def refusal(self, code: object) -> str | None:
        grid = code.grid if isinstance(code, CpuCode) else None
        parts = grid.parts if isinstance(grid, StagedCode) else (grid,)
        return next((part.reason for part in parts if isinstance(part, Refused)), None)

    def refusals(self) -> list[Refusal]:
        return self._executor.refusals.take()

    def tier(self, compiled: Compiled) -> int | None:
        if not isinstance(compiled, CpuCompiled):
            return None
        return 0 if compiled.successor is not None else compiled.grid.tier

    def has_second_tier(self, unit: Unit) -> bool:
        executor, kernels = self._executor, (*unit.kernel.stages, unit.kernel)
        return isinstance(executor, NativeExecutor) and any(executor.plan(kernel).second for kernel in kernels)

    def upgrade(self, compiled: Compiled, code: object) -> None:
        if isinstance(compiled, CpuCompiled) and isinstance(code, CpuCode):
            compiled.upgrade(code.grid)

    def _load(self, unit: Unit) -> tuple[Executable, dict[StrandRef, Executable]]:
        """The kernels of a unit, ready to run: over its sweep, and over points."""
        load, code = self._executor.load, unit.code if isinstance(unit.code, CpuCode) else CpuCode()
        points = {ref: load(kernel, {False: code.points.get(ref)}) for ref, kernel in unit.points.items()}
        return load(unit.kernel, {self._packs(unit): code.grid}), points

    def try_out(self, compiled: Compiled, env: Env, coordinator: Coordinator, raw: bool = False) -> Array:
        launch = self.launch(compiled, env, coordinator)
        if raw and isinstance(compiled, CpuCompiled):
            # For a few small frames, compiling another form of machine code would take longer.
            plain = compiled.grid if self._executor.name == "vm" else VectorExecutor().load(compiled.unit.kernel)
            return plain.planes(compiled.memory, launch)
        # With an array of its own, a still picture is not skipped: the trial has to take as long as drawing does.
        out = np.empty((*launch.shape, 4), np.uint8) if self._packs(compiled.unit) else None
        return compiled.run(compiled.memory, launch, out=out)

    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Array:
        return compiled.run(compiled.memory, self.launch(compiled, env, coordinator))

    def launch(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Launch:
        """A launch of one tick over the whole sweep."""
        shape = self.shape(env)
        return tick(compiled.unit.kernel, env, coordinator, shape, self.coords(env, shape))

    def coords(self, env: Env, shape: tuple[int, int]) -> Mapping[str, Value]:
        """The coordinates of the sweep."""
        return nowhere(env)

    def get_value_at(
        self, ref: StrandRef, compiled: Compiled, coords: Mapping[str, Value], env: Env, coordinator: Coordinator
    ) -> Array:
        launch, shape = at_points(compiled.unit.points[ref], coords, env, coordinator)
        return compiled.value_at(ref, launch).reshape(shape)


@register_backend
class CpuVisual(CpuBackend):
    """Gives a picture [height, width, RGBA] of bytes."""

    name = "cpu_visual"
    context = "visual"
    packed = True

    @classmethod
    def spec_of(cls, spec: ContextSpec) -> ContextSpec:
        return replace(spec, in_one_memory=True)

    def __init__(self, executor: str = "vector") -> None:
        super().__init__(executor)
        # Each frame has the same arrays, which shows that nothing has changed.
        self._centres: RecentlyUsed[tuple[int, int], Mapping[str, Value]] = RecentlyUsed(_SIZES)

    def shape(self, env: Env) -> tuple[int, int]:
        return shape_of_level((env.height, env.width), env.level)

    def coords(self, env: Env, shape: tuple[int, int]) -> Mapping[str, Value]:
        centres = self._centres.get_or_make(shape, lambda: picture_coords(shape[1], shape[0]))
        return {**centres, "abstime": env.abstime}


@register_backend
class CpuCompute(CpuBackend):
    """Gives one number for each value of the `compute` statements, as [values, 1, 1]."""

    name = "cpu_compute"
    context = "compute"


@register_backend
class CpuOscSend(CpuBackend):
    """Gives one number for each value of an `osc_send` statement, as [values, 1, 1]. A performance sends them
    (`weft.runtime.hands.osc`); a render does not."""

    name = "cpu_osc_send"
    context = "osc_send"


@register_backend
class CpuMidi(CpuBackend):
    """Gives one number for each value of the `midi` statements, as [values, 1, 1]. A performance sends them
    (`weft.runtime.hands.midi`); a render does not."""

    name = "cpu_midi"
    context = "midi"


# Sound on the CPU, block by block.


@register_backend
class CpuAudio(CpuBackend):
    """Gives [channels, outputs, samples] in double precision, with one channel if all are the same."""

    name = "cpu_audio"
    context = "audio"

    def shape(self, env: Env) -> tuple[int, int]:
        return 1, block_of(env).samples

    def launch(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Launch:
        block, kernel = block_of(env), compiled.unit.kernel
        return tick(kernel, env, coordinator, self.shape(env), block.coords(kernel), block.even)

    def compile_subgraph(self, unit: Unit, env: Env, coordinator: Coordinator) -> CpuCompiled:
        made = super().compile_subgraph(unit, env, coordinator)
        block = block_of(env)
        if block.differs(unit.kernel):
            shape = made.memory.shape
            made.others = tuple(StateMemory(unit.kernel.slots, shape) for _ in range(block.channels - 1))
        return made

    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Array:
        launch, block = self.launch(compiled, env, coordinator), block_of(env)
        rows = []
        for channel, memory in enumerate(_memories(compiled)):
            own = replace(launch, coords=block.coords(compiled.unit.kernel, channel)) if channel else launch
            rows.append(compiled.run(memory, own)[:, 0, :])
        return np.stack(rows) if len(rows) > 1 else rows[0][np.newaxis]

    def try_out(self, compiled: Compiled, env: Env, coordinator: Coordinator, raw: bool = False) -> Array:
        return self.execute_subgraph(compiled, env, coordinator)

    def adopt(self, compiled: Compiled, old: Iterable[Compiled], copy: bool = False) -> list[str]:
        kept: list[str] = []
        for channel, memory, source, is_shared in _pairs(compiled, old):
            found = memory.adopt(source, copy or is_shared)
            kept += found if channel == 0 else []
        return kept

    def is_finite(self, compiled: Compiled, key: str) -> bool:
        return all(memory.is_finite(key) for memory in _memories(compiled))

    def begin_again(self, compiled: Compiled, keys: Sequence[str]) -> list[str]:
        found = (memory.begin_again(keys) for memory in _memories(compiled))
        return list(dict.fromkeys(chain.from_iterable(found)))

    def allocate(self, compiled: Compiled, old: Iterable[Compiled]) -> None:
        super().allocate(compiled, old)
        for memory in _memories(compiled)[1:]:
            memory.allocate()

    def copy_ahead(self, compiled: Compiled, old: Iterable[Compiled]) -> None:
        for _, memory, source, _ in _pairs(compiled, old):
            memory.copy_ahead(source)


def _pairs(compiled: Compiled, old: Iterable[Compiled]) -> Iterator[tuple[int, StateMemory, StateMemory, bool]]:
    """Each memory, by its channel, with the old memory that it continues, and whether an earlier channel continues the
    same one. State that was the same in all channels is copied to each of them."""
    mine = _memories(compiled)
    for other in old:
        its = _memories(other)
        for channel, memory in enumerate(mine):
            yield channel, memory, its[min(channel, len(its) - 1)], channel >= len(its)


def _memories(compiled: Compiled) -> tuple[StateMemory, ...]:
    return (compiled.memory, *(compiled.others if isinstance(compiled, CpuCompiled) else ()))


def block_of(env: Env) -> SampleBlock:
    """The block of a stream that is to be computed. Raises ValueError if there is none."""
    if env.block is None:
        raise ValueError("a stream can only be computed block by block")
    return env.block
