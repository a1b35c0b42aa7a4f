"""What a program costs on this machine, per context and executor."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

import weft
from weft.backends import hardware, llvm
from weft.backends.base import Block, Env
from weft.backends.cpu import EXECUTORS
from weft.backends.estimate import check_room, needs_of
from weft.backends.executor import Executable, Executor
from weft.backends.launch import Getter, Launch, Picture, StreamCoords, Value, blank_view, picture_coords
from weft.backends.memory import StateMemory
from weft.backends.native import NativeExecutor
from weft.codegen.base import Kernel
from weft.codegen.native.target import Isa
from weft.codegen.unit import Unit
from weft.contexts import ContextSpec, is_led
from weft.media.pictures import load_picture
from weft.names import StrandRef, is_view
from weft.runtime.build import Build
from weft.runtime.offline import initial_inputs
from weft.runtime.program import HERE
from weft.runtime.sound.mixer import channels_of

# Samples of sound in one block, as the loudspeaker asks for them.
BLOCK = 512

# The reference machine is measured on a picture of so many pixels, or so many samples of sound, and what it would take
# for all is an estimate.
_VM_PIXELS = 64 * 36
_VM_SAMPLES = 32

_FEWEST, _MOST = 3, 5000

# What a strand of another context gives while one is measured alone.
_ELSEWHERE = 0.5


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of some repetitions, in milliseconds: of the first, and of those behind it."""

    first: float
    p50: float
    p95: float

    def scaled(self, factor: float) -> Timing:
        return Timing(self.first * factor, self.p50 * factor, self.p95 * factor)


@dataclass(frozen=True, slots=True)
class Way:
    """A way to execute kernels: an executor, or another device's backend, with so many threads; for machine code also
    how much is done for speed, and for which family of processors (None: this very processor). `made` is what the
    others make of a kernel."""

    executor: str
    threads: int = 1
    tier: int = 1
    isa: Isa | None = None
    made: Literal["bytecode", "shader"] = "bytecode"

    @property
    def is_native(self) -> bool:
        return self.executor == NativeExecutor.name

    @property
    def text(self) -> str:
        """What people call it."""
        parts = [self.executor, f"tier {self.tier}" if self.is_native else ""]
        parts += [f"for {self.isa.title}" if self.isa else "", f"× {self.threads}" if self.threads > 1 else ""]
        return " ".join(filter(None, parts))

    def loader(self) -> Executor:
        """An executor of its own."""
        if self.isa is not None:
            return NativeExecutor(llvm.plainest(self.isa))
        return EXECUTORS[self.executor]()


@dataclass(frozen=True, slots=True)
class Cost:
    """What one context of a patch costs in one way. `shape` (height, width) is what a tick computes."""

    context: str
    way: Way
    shape: tuple[int, int]
    load_ms: float
    timing: Timing
    estimated: bool
    budget_ms: float
    """How long a tick may take."""
    refused: tuple[str, ...] = ()
    """What was measured on another executor than it should have been, and why."""

    @property
    def elements_per_second(self) -> float:
        height, width = self.shape
        return width * height / (self.timing.p50 / 1e3)


def machine() -> dict[str, str | int]:
    """What is measured on."""
    return {
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "simd": hardware.simd(),
        "cores": hardware.cores(),
        "memory": hardware.memory_total(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "weft": weft.__version__,
    }


def timed(work: Callable[[], object], seconds: float) -> Timing:
    """Repeats some work for about so many seconds, a few times at least."""
    times: list[float] = []
    started = time.perf_counter()
    while len(times) <= _FEWEST or (time.perf_counter() - started < seconds and len(times) < _MOST):
        before = time.perf_counter()
        work()
        times.append((time.perf_counter() - before) * 1e3)
    later = np.array(times[1:])
    return Timing(times[0], float(np.percentile(later, 50)), float(np.percentile(later, 95)))


def measure(program: Build, context: str, way: Way, seconds: float) -> Cost | None:
    """What the subgraphs of one context cost in a tick, on their own: what they read of other contexts is a constant.
    None if the program has nothing in that context."""
    units = [unit for unit in units_of(program) if unit.subgraph.context == context]
    if not units:
        return None
    spec, settings = program.contexts[context], program.patch.settings
    whole = shape_of(spec, settings)
    shape = _reduced(whole) if way.executor == "vm" else whole
    channels = channels_of(program.playable)
    needs = [need for unit in units for need in needs_of(unit, shape, channels if _differs(spec, unit.kernel) else 1)]
    check_room({HERE: needs}, {HERE: hardware.memory_free()})
    loader = way.loader()
    started = time.perf_counter()
    loaded = [_loaded(loader, unit, spec, way.tier) for unit in units]
    load_ms = (time.perf_counter() - started) * 1e3
    rig = _Rig(program, spec, shape, way.threads)
    steps = [rig.step(unit, executable) for unit, executable in zip(units, loaded, strict=True)]
    timing = timed(lambda: [step() for step in steps], seconds)
    factor = (whole[0] * whole[1]) / (shape[0] * shape[1])
    return Cost(
        context=context,
        way=way,
        shape=whole,
        load_ms=load_ms,
        timing=timing.scaled(factor),
        estimated=shape != whole,
        budget_ms=tick_budget_ms(spec, settings),
        refused=tuple(map(str, loader.refusals.take())),
    )


def _differs(spec: ContextSpec, kernel: Kernel) -> bool:
    """Whether each channel of a sound remembers on its own."""
    return spec.streams and any(name == "channel" for name, _ in kernel.coords)


def contexts(program: Build) -> list[str]:
    """The contexts that a program has something to compute in."""
    return list(dict.fromkeys(unit.subgraph.context for unit in units_of(program)))


def units_of(program: Build) -> list[Unit]:
    """All that is computed, with what streams are given once a frame."""
    feeding = (unit.feeding for unit in program.units)
    return [*program.units, *(unit for unit in feeding if unit is not None)]


def _loaded(loader: Executor, unit: Unit, spec: ContextSpec, tier: int) -> Executable:
    packed = _shows(spec, unit)
    return loader.load(unit.kernel, {packed: loader.translate(unit.kernel, packed, tier)})


def _shows(spec: ContextSpec, unit: Unit) -> bool:
    """Whether the outputs of a unit become pixels."""
    return spec.sweeps_plane and bool(unit.subgraph.sinks)


def shape_of(spec: ContextSpec, settings: Mapping[str, float]) -> tuple[int, int]:
    """What a tick of a context computes (height, width): a picture, a block of sound, or one element."""
    if spec.sweeps_plane:
        return int(settings["height"]), int(settings["width"])
    return (1, BLOCK) if spec.raster else (1, 1)


def tick_budget_ms(spec: ContextSpec, settings: Mapping[str, float]) -> float:
    """How long a tick of a context may take."""
    return 1e3 * BLOCK / settings["rate"] if spec.raster else 1e3 / (spec.rate or settings["fps"])


def _reduced(shape: tuple[int, int]) -> tuple[int, int]:
    """A smaller picture, of about the same form, or fewer samples."""
    height, width = shape
    if height == 1:
        return 1, min(width, _VM_SAMPLES)
    factor = min(1.0, (_VM_PIXELS / (height * width)) ** 0.5)
    return max(1, round(height * factor)), max(1, round(width * factor))


class _Rig:
    """Launches of one context, tick after tick."""

    def __init__(self, program: Build, spec: ContextSpec, shape: tuple[int, int], threads: int) -> None:
        settings = program.patch.settings
        self._spec = spec
        self._shape = shape
        self._threads = threads
        self._rate = settings["rate"]
        self._channels = channels_of(program.playable)
        self._tick_seconds = shape[1] / self._rate if spec.raster else 1 / (spec.rate or settings["fps"])
        self._centres = picture_coords(shape[1], shape[0])
        self._env = Env(
            width=int(settings["width"]),
            height=int(settings["height"]),
            dt=1 / self._rate if spec.raster else self._tick_seconds,
            inputs=given_inputs(program),
        )

    def step(self, unit: Unit, executable: Executable) -> Callable[[], None]:
        """A function that runs the next tick of a kernel, up to what its context makes of the outputs."""
        kernel = unit.kernel
        channels = self._channels if _differs(self._spec, kernel) else 1
        memories = [StateMemory(kernel.slots, self._shape) for _ in range(channels)]
        paths = kernel.pictures
        pictures = {path: blank_view() if is_view(path) else load_picture(Path(path)) for path in paths}
        pixels = np.empty((*self._shape, 4), np.uint8)
        shows = _shows(self._spec, unit)
        tick = 0

        def run() -> None:
            nonlocal tick
            launch = self._launch(kernel, tick, pictures)
            for channel, memory in enumerate(memories):
                own = replace(launch, coords={**launch.coords, "channel": float(channel)}) if channel else launch
                if shows:
                    executable.rgba8(memory, own, pixels)
                else:
                    executable.planes(memory, own)
            tick += 1

        return run

    def _launch(self, kernel: Kernel, tick: int, pictures: Mapping[str, Picture]) -> Launch:
        start = tick * self._tick_seconds
        width = self._shape[1]
        coords: Mapping[str, Value] = {"x": 0.5, "y": 0.5, "abstime": start, "channel": 0.0}
        even = None
        if self._spec.sweeps_plane:
            coords = {**self._centres, "abstime": start}
        elif self._spec.raster:
            even = Block(tick * width, width, self._rate).even
            coords = StreamCoords(even, width, {**coords, **self._env.standing(kernel, width)})
        uniforms = {name: float(tick) if name == "absframe" else self._env.uniform(name) for name in kernel.uniforms}
        strands: dict[StrandRef, Getter] = dict.fromkeys(kernel.strands, constant)
        return Launch(self._shape, coords, uniforms, strands, pictures, self._threads, even)


def given_inputs(program: Build) -> dict[str, float]:
    """Mouse, keys and parameters as they are at the start, and what streams are given by others, and by one another,
    by the names that it arrives as."""
    given = (kernel.outputs for unit in program.units for kernel in (unit.kernel, unit.feeds) if kernel is not None)
    fed = (label for labels in given for label in labels if is_led(label))
    return {**dict.fromkeys(fed, _ELSEWHERE), **initial_inputs(program.patch)}


def constant(*coordinates: Value) -> Value:
    """What a strand of another context gives while one is measured alone."""
    shape = np.broadcast_shapes(*(np.shape(c) for c in coordinates)) if coordinates else ()
    return np.full(shape, _ELSEWHERE)
