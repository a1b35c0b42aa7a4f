"""The vector machine: bytecode as calls of numpy on tiles that fit into the cache, in single precision."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.bands import BandPool
from weft.backends.executor import NOTHING, Executable, Refusal, Refusals, Refused, RefusedError, check, making
from weft.backends.interpreter import Interpreter
from weft.backends.launch import Launch, Reals
from weft.backends.memory import StateMemory
from weft.backends.pixels import channels, check_picture
from weft.backends.vector_emit import Emitter
from weft.backends.vector_program import ArrayValue
from weft.backends.vector_results import PixelPlan, return_pixels, return_planes
from weft.backends.vector_series import VectorSeries, series_of
from weft.backends.vector_stage import Code, TileBuffers
from weft.backends.vector_steps import Task
from weft.backends.vector_translate import translate
from weft.backends.vm import ReferenceExecutable
from weft.codegen.base import Kernel
from weft.ir.rates import Rate

# How many sizes of launch a kernel is kept ready for.
_STAGES = 4

# What is computed once in a launch: numbers, which the interpreter computes faster than numpy.
_ONCE = (Rate.CONSTANT, Rate.FRAME)


class VectorExecutor:
    """Makes kernels ready for the vector machine. `dtype` is what the element section computes in."""

    name = "vector"
    widest = np.float64

    def __init__(self, dtype: npt.DTypeLike = np.float32, tile_elements: int | None = None) -> None:
        """`tile_elements` fixes the size of tiles, which else depends on the kernel."""
        self._real = np.dtype(dtype)
        self._tile_elements = tile_elements
        self._pool = BandPool()
        self.refusals = Refusals()

    def translate(self, kernel: Kernel, packed: bool, tier: int = 1) -> Code | Refused | None:
        if packed:
            channels(len(kernel.outputs))
        if tier > 1 or _one_by_one(kernel):
            return None
        try:
            return _translate(kernel, packed)
        except RefusedError as failure:
            return Refused(str(failure))

    def refuse(self, kernel: Kernel, reason: str) -> None:
        """Notes that a kernel runs on the reference machine because it could not be translated for this one."""
        self.refusals.add(Refusal(kernel.name, self.name, "vm", reason))

    def load(self, kernel: Kernel, codes: Mapping[bool, object] = NOTHING) -> Executable:
        if _one_by_one(kernel):
            return self._series(kernel)
        refused = next((code for code in codes.values() if isinstance(code, Refused)), None)
        if refused is not None:
            self.refuse(kernel, refused.reason)
            return ReferenceExecutable(kernel)
        # What is computed sample by sample counts them over hours.
        real = np.dtype(np.float64) if kernel.tick == "element" else self._real
        return VectorExecutable(kernel, self, codes, real, self._tile_elements, self._pool)

    def _series(self, kernel: Kernel) -> Executable:
        try:
            with making("rows"):
                series = series_of(kernel)
        except RefusedError as failure:
            self.refuse(kernel, str(failure))
            series = None
        return VectorSeries(kernel, series) if series else ReferenceExecutable(kernel)


def _one_by_one(kernel: Kernel) -> bool:
    """Whether each element needs the state that the one before it leaves."""
    return kernel.sweep == "grid" and kernel.tick == "element" and bool(kernel.slots)


class VectorExecutable:
    """A kernel on the vector machine; see `Executable`."""

    tier = None

    def __init__(
        self,
        kernel: Kernel,
        executor: VectorExecutor,
        codes: Mapping[bool, object],
        real: np.dtype[Any],
        tile_elements: int | None,
        pool: BandPool,
    ) -> None:
        self.kernel = kernel
        self._executor = executor
        self._real = real
        self._tile_elements = tile_elements
        self._pool = pool
        once = tuple(section for section in kernel.sections if section.rate in _ONCE)
        self._interpreter = Interpreter(replace(kernel, sections=once))
        self._code = {packed: code for packed, code in codes.items() if isinstance(code, Code)}
        self._refused: set[bool] = set()
        """Whether planes, and pixels, are left to the reference machine."""
        self._stages: dict[tuple[bool, tuple[int, int]], TileBuffers] = {}
        self._lock = threading.Lock()

    def planes(self, memory: StateMemory, launch: Launch) -> Reals:
        check(self.kernel, memory, launch)
        if not self._is_translated(packed=False):
            return self._plain.planes(memory, launch)
        task = self._task(memory, launch)
        task.planes = planes = np.empty((len(self.kernel.outputs), *launch.shape), self._real)
        self._run(task, packed=False)
        return planes

    def rgba8(self, memory: StateMemory, launch: Launch, out: npt.NDArray[np.uint8]) -> None:
        channels(len(self.kernel.outputs))
        check(self.kernel, memory, launch)
        check_picture(out, launch.shape)
        if not self._is_translated(packed=True):
            self._plain.rgba8(memory, launch, out)
            return
        task = self._task(memory, launch)
        task.pixels = out.view(np.uint32)[:, :, 0]
        self._run(task, packed=True)

    @functools.cached_property
    def _plain(self) -> ReferenceExecutable:
        """For what cannot be translated."""
        return ReferenceExecutable(self.kernel)

    def _is_translated(self, packed: bool) -> bool:
        """Whether there is code, which is made once if nobody has given it."""
        with self._lock:
            if packed not in self._code and packed not in self._refused:
                try:
                    self._code[packed] = _translate(self.kernel, packed)
                except RefusedError as failure:
                    self._refused.add(packed)
                    self._executor.refuse(self.kernel, str(failure))
            return packed in self._code

    def _task(self, memory: StateMemory, launch: Launch) -> Task:
        flat = {path: np.ascontiguousarray(launch.pictures[path]).reshape(-1) for path in self.kernel.pictures}
        return Task(launch, memory, int(self.kernel.sweep == "points"), flat_pictures=flat)

    def _run(self, task: Task, packed: bool) -> None:
        with self._lock, np.errstate(all="ignore"):
            machine = self._interpreter.begin(task.memory, task.launch)
            stage = self._stage(task, packed)
            stage.prepare(machine, task)
            stage.run_tiles(task, self._pool)
        if self.kernel.sweep == "grid":
            height, width = task.launch.shape
            task.memory.advance(height * width if self.kernel.tick == "element" else 1)
        if machine.loop_stopped or task.loop_stopped:
            task.launch.loop_stopped()
        task.release()

    def _stage(self, task: Task, packed: bool) -> TileBuffers:
        """What a size of launch needs; that of the last few is kept."""
        key = (packed, task.launch.shape)
        stage = self._stages.pop(key, None)
        if stage is None:
            stage = TileBuffers(self._code[packed], task, self._real, self._tile_elements)
        self._stages[key] = stage
        while len(self._stages) > _STAGES:
            del self._stages[next(iter(self._stages))]
        return stage


def _translate(kernel: Kernel, packed: bool) -> Code:
    """The code of a kernel. Raises RefusedError."""
    with making("numpy code"):
        return _code(kernel, packed)


def _code(kernel: Kernel, packed: bool) -> Code:
    plan = PixelPlan()

    def finish(program: Emitter, values: list[ArrayValue]) -> None:
        nonlocal plan
        if packed:
            plan = return_pixels(program, values)
        else:
            return_planes(program, values)

    element = translate(kernel, Rate.ELEMENT, finish=finish)
    wanted = {line.key for line in (*element.lines, *plan.sources) if line.source == "local"}
    kept = frozenset(number for number in wanted if isinstance(number, int))
    column, row = (translate(kernel, rate, kept) for rate in (Rate.COLUMN, Rate.ROW))
    return Code(element, column, row, plan)
