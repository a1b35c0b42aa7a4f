"""Measures what programs cost on this machine: per context and executor or device, and between devices."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import cycle
from types import MappingProxyType
from typing import Literal

import numpy as np

import weft
from weft.backends import hardware
from weft.backends.base import Backend, Compiled, Coordinator, Env, SampleBlock
from weft.backends.cpu import EXECUTORS, CpuBackend, executor_problem
from weft.backends.executors import Executable, Executor
from weft.backends.launch import Getter, Launch, Picture, StateMemory, StreamCoords, Value, blank_view, picture_coords
from weft.backends.native.executor import ExactExecutor, NativeExecutor
from weft.backends.native.llvm import plainest
from weft.backends.registry import Registry, load_registry
from weft.backends.select import Choice, Costs, KnownCosts, check_room, choose, needs_of, operations
from weft.codegen.kernel import Kernel, Unit
from weft.codegen.native.target import Isa
from weft.contexts import AUDIO, COMPUTE, VISUAL, ContextSpec, ContextTable, is_smoothed
from weft.errors import Source
from weft.media.sampled import read
from weft.names import StrandRef, is_view
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.films.offline import initial_inputs
from weft.runtime.program.coordinator import ProgramRunner, RunningSubgraph
from weft.runtime.program.program import HERE
from weft.runtime.sound.mixer import channels_of

# --- executors of the CPU -----------------------------------------------------------------------------------------

# Samples of sound in one block, as a sound device asks for them.
BLOCK = 512

# The reference machine is measured on this many pixels, or samples of sound; the cost of all is estimated from that.
_VM_PIXELS = 64 * 36
_VM_SAMPLES = 32

_FEWEST, _MOST = 3, 5000

# The value of strands of other contexts while one context is measured alone.
_ELSEWHERE = 0.5


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of some repetitions in milliseconds: the first, and percentiles of the later ones."""

    first: float
    p50: float
    p95: float

    def scaled(self, factor: float) -> Timing:
        return Timing(self.first * factor, self.p50 * factor, self.p95 * factor)


@dataclass(frozen=True, slots=True)
class ExecutorConfig:
    """How kernels are executed: the executor or the backend of another device, and the number of threads; for machine
    code also the tier of optimisation and the family of processors (None: this processor). `made` is what the others
    make of a kernel."""

    executor: str
    threads: int = 1
    tier: int = 1
    isa: Isa | None = None
    made: Literal["bytecode", "shader"] = "bytecode"

    @property
    def is_native(self) -> bool:
        return self.executor in (NativeExecutor.name, ExactExecutor.name)

    @property
    def text(self) -> str:
        """Its description for people."""
        parts = [self.executor, f"tier {self.tier}" if self.is_native else ""]
        parts += [f"for {self.isa.title}" if self.isa else "", f"× {self.threads}" if self.threads > 1 else ""]
        return " ".join(filter(None, parts))

    def loader(self) -> Executor:
        """A new executor of this kind."""
        if self.isa is not None:
            return NativeExecutor(plainest(self.isa))
        return EXECUTORS[self.executor]()


@dataclass(frozen=True, slots=True)
class Cost:
    """What one context of a patch costs with one configuration. `shape` (height, width) is what a tick computes."""

    context: str
    way: ExecutorConfig
    shape: tuple[int, int]
    load_ms: float
    timing: Timing
    estimated: bool
    budget_ms: float
    """The milliseconds that a tick may take."""
    refused: tuple[str, ...] = ()
    """What ran on another executor than intended, and why."""

    @property
    def elements_per_second(self) -> float:
        height, width = self.shape
        return width * height / (self.timing.p50 / 1e3)


def machine() -> dict[str, str | int]:
    """The facts about the machine that measures."""
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
    """Repeats some work for about `seconds`, and at least a few times."""
    times: list[float] = []
    started = time.perf_counter()
    while len(times) <= _FEWEST or (time.perf_counter() - started < seconds and len(times) < _MOST):
        before = time.perf_counter()
        work()
        times.append((time.perf_counter() - before) * 1e3)
    later = np.array(times[1:])
    return Timing(times[0], float(np.percentile(later, 50)), float(np.percentile(later, 95)))


def measure(program: Build, context: str, way: ExecutorConfig, seconds: float) -> Cost | None:
    """The cost of a tick of one context alone: strands of other contexts are constants. None if the program has nothing
    in that context."""
    units = [unit for unit in units_of(program) if unit.subgraph.context == context]
    if not units:
        return None
    spec, settings = program.contexts[context], program.patch.settings
    whole = shape_of(spec, settings)
    shape = _reduced(whole) if way.executor == "vm" else whole
    needs = [need for unit in units for need in needs_of(unit, shape, _channels(program, spec, unit.kernel))]
    check_room({HERE: needs}, {HERE: hardware.memory_free()})
    loader = way.loader()
    started = time.perf_counter()
    loaded = []
    for unit in units:
        packed = _shows(spec, unit)
        loaded.append(loader.load(unit.kernel, {packed: loader.translate(unit.kernel, packed, way.tier)}))
    load_ms = (time.perf_counter() - started) * 1e3
    rig = _ContextRig(program, spec, shape, way.threads)
    steps = [rig.step(unit, executable) for unit, executable in zip(units, loaded, strict=True)]
    timing = timed(lambda: [step() for step in steps], seconds)
    factor = (whole[0] * whole[1]) / (shape[0] * shape[1])
    refused = tuple(map(str, loader.refusals.take()))
    budget_ms = tick_budget_ms(spec, settings)
    return Cost(context, way, whole, load_ms, timing.scaled(factor), shape != whole, budget_ms, refused)


def _channels(program: Build, spec: ContextSpec, kernel: Kernel) -> int:
    """The number of channels of a sound that have their own state."""
    differ = spec.streams and any(name == "channel" for name, _ in kernel.coords)
    return channels_of(program.compiled) if differ else 1


def contexts(program: Build) -> list[str]:
    """The contexts in which a program computes something."""
    return list(dict.fromkeys(unit.subgraph.context for unit in units_of(program)))


def units_of(program: Build) -> list[Unit]:
    """All units, and those that compute the feeds of streams once a frame."""
    feeding = (unit.feeding for unit in program.units)
    return [*program.units, *(unit for unit in feeding if unit is not None)]


def _shows(spec: ContextSpec, unit: Unit) -> bool:
    """Whether the outputs of a unit become pixels."""
    return spec.sweeps_plane and bool(unit.subgraph.sinks)


def shape_of(spec: ContextSpec, settings: Mapping[str, float]) -> tuple[int, int]:
    """What a tick of a context computes (height, width): a picture, a block of sound, or one element."""
    if spec.sweeps_plane:
        return int(settings["height"]), int(settings["width"])
    return (1, BLOCK) if spec.raster else (1, 1)


def tick_budget_ms(spec: ContextSpec, settings: Mapping[str, float]) -> float:
    """The milliseconds that a tick of a context may take."""
    return 1e3 * BLOCK / settings["rate"] if spec.raster else 1e3 / (spec.rate or settings["fps"])


def _reduced(shape: tuple[int, int]) -> tuple[int, int]:
    """The shape of a smaller picture of about the same aspect, or of fewer samples."""
    height, width = shape
    if height == 1:
        return 1, min(width, _VM_SAMPLES)
    factor = min(1.0, (_VM_PIXELS / (height * width)) ** 0.5)
    return max(1, round(height * factor)), max(1, round(width * factor))


class _ContextRig:
    """Launches of one context, tick after tick."""

    def __init__(self, program: Build, spec: ContextSpec, shape: tuple[int, int], threads: int) -> None:
        settings = program.patch.settings
        self._spec = spec
        self._shape = shape
        self._threads = threads
        self._rate = settings["rate"]
        self._program = program
        self._tick_seconds = shape[1] / self._rate if spec.raster else 1 / (spec.rate or settings["fps"])
        self._centres = picture_coords(shape[1], shape[0])
        dt = 1 / self._rate if spec.raster else self._tick_seconds
        self._env = Env(int(settings["width"]), int(settings["height"]), dt=dt, inputs=given_inputs(program))

    def step(self, unit: Unit, executable: Executable) -> Callable[[], None]:
        """A function that runs the next tick of a kernel, as its context does: to pixels or to planes."""
        kernel = unit.kernel
        channels = _channels(self._program, self._spec, kernel)
        memories = [StateMemory(kernel.slots, self._shape) for _ in range(channels)]
        pictures = _pictures([unit])
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
            even = SampleBlock(tick * width, width, self._rate).even
            coords = StreamCoords(even, width, {**coords, **self._env.constant_controls(kernel, width)})
        env = self._env._replace(tick=tick, pictures=pictures)
        uniforms = {name: env.uniform(name) for name in kernel.uniforms}
        strands: dict[StrandRef, Getter] = dict.fromkeys(kernel.strands, constant)
        return Launch(self._shape, coords, uniforms, strands, pictures, self._threads, even)


def _pictures(units: Iterable[Unit]) -> dict[str, Picture]:
    """The pictures that units sample."""
    paths = {path for unit in units for path in unit.kernel.pictures}
    return {path: blank_view() if is_view(path) else read(path) for path in paths}


def given_inputs(program: Build) -> dict[str, float]:
    """The initial values of mouse, keys and parameters, and constants for what streams read from others and from each
    other, by name."""
    given = (kernel.outputs for unit in program.units for kernel in (unit.kernel, unit.feeds) if kernel is not None)
    fed = (label for labels in given for label in labels if is_smoothed(label))
    return {**dict.fromkeys(fed, _ELSEWHERE), **initial_inputs(program.patch)}


def constant(*coordinates: Value) -> Value:
    """The getter of a strand of another context while one context is measured alone."""
    shape = np.broadcast_shapes(*(np.shape(c) for c in coordinates)) if coordinates else ()
    return np.full(shape, _ELSEWHERE)


# --- other devices, such as graphics cards ------------------------------------------------------------------------

_CONTEXTS = (VISUAL, AUDIO, COMPUTE)

# Sound may be computed ahead: the time of a block is the mean over this many in a row.
_BLOCKS = 64

# The tier that is made in the background.
_BEST = 2


def find_cards(registry: Registry) -> tuple[list[Choice], dict[str, str]]:
    """The devices other than the CPU that run one of weft's own contexts, and the problems of backends by name."""
    found: list[Choice] = []
    problems: dict[str, str] = {}
    for spec in _CONTEXTS:
        for backend in registry.of_context(spec.name):
            if backend.context == "*" or issubclass(backend, CpuBackend):
                continue
            for device in backend.probe():
                if device.available:
                    asked = f"{spec.name}={backend.name}:{device.index}"
                    found.append(choose(registry, [spec.name], asked)[spec.name])
                else:
                    remedy = f" ({device.remedy})" if device.remedy else ""
                    problems[backend.name] = f"{device.reason or 'it is not available'}{remedy}"
    return found, problems


def measure_card(program: Build, card: Choice, seconds: float) -> Cost | None:
    """The cost of a tick of the card's context alone: strands of other contexts are constants. A tick ends when the
    device has finished. None if the program has nothing in that context. The program is compiled for the card
    (`contexts_of`).

    Raises WeftError for a program that the card cannot run."""
    units = [unit for unit in units_of(program) if unit.subgraph.context == card.context]
    if not units:
        return None
    spec, settings = program.contexts[card.context], program.patch.settings
    rig = _CardRig(program, card.make(), spec.streams)
    started = time.perf_counter()
    rig.load(units)
    load_ms = (time.perf_counter() - started) * 1e3
    rig.improve()
    timing = timed(rig.tick, seconds)
    if spec.streams:
        # Most blocks were computed ahead and cost nothing, so the median of single blocks would mean nothing.
        several = timed(partial(rig.tick, _BLOCKS), seconds).scaled(1 / _BLOCKS)
        timing = replace(several, first=timing.first)
    way = ExecutorConfig(card.shown, made="shader")
    return Cost(card.context, way, shape_of(spec, settings), load_ms, timing, False, tick_budget_ms(spec, settings))


@dataclass(frozen=True)
class _Elsewhere:
    """A coordinator of subgraphs that are measured alone: every strand that they read is a constant."""

    def expose(self, ref: StrandRef, backend: Backend, compiled: Compiled) -> None:
        pass

    def lookup(self, ref: StrandRef) -> Getter:
        return constant


class _CardRig:
    """Subgraphs on one backend, tick after tick."""

    def __init__(self, program: Build, backend: Backend, streams: bool) -> None:
        settings = program.patch.settings
        self._backend = backend
        self._elsewhere: Coordinator = _Elsewhere()
        self._loaded: list[Compiled] = []
        self._channels = channels_of(program.compiled)
        self._streams = streams
        self._rate = settings["rate"]
        self._size = int(settings["width"]), int(settings["height"])
        self._seconds = 1 / self._rate if streams else 1 / settings["fps"]
        self._inputs = given_inputs(program)
        self._pictures: dict[str, Picture] = {}
        self._tick = 0

    def load(self, units: list[Unit]) -> None:
        """Loads units, and waits until the device has them."""
        self._pictures = _pictures(units)
        env = self._env(units[0])
        self._loaded = [self._backend.compile_subgraph(unit, env, self._elsewhere) for unit in units]
        self._backend.sync("device")

    def improve(self) -> None:
        """Exchanges the code for that of the best tier, as a performance does in the background."""
        for compiled in self._loaded:
            code = self._backend.translate(compiled.unit, tier=_BEST)
            if code is not None:
                self._backend.upgrade(compiled, code)

    def tick(self, count: int = 1) -> None:
        """Runs the next `count` ticks, and waits after each until the device has finished it."""
        for _ in range(count):
            for compiled in self._loaded:
                self._backend.execute_subgraph(compiled, self._env(compiled.unit), self._elsewhere)
            self._backend.sync("device")
            self._tick += 1

    def _env(self, unit: Unit) -> Env:
        abstime = self._tick * (BLOCK if self._streams else 1) * self._seconds
        env = Env(*self._size, self._tick, abstime, self._seconds, self._inputs, self._pictures)
        if not self._streams:
            return env
        constants = env.constant_controls(unit.kernel, BLOCK)
        return env._replace(block=SampleBlock(self._tick * BLOCK, BLOCK, self._rate, self._channels, constants))


# --- transfers between devices, as programs pay for them: through backend and coordinator -------------------------

# A picture so small that drawing it takes no time compared to sending values.
_SIZE = (64, 36)

# The side of a picture that is sent to a card.
_LARGE = 512

# The number of numbers that a program reads, of places at which it reads a strand, and of values that are read at once.
_NUMBERS, _BOUND, _BATCH = 26, 8, 4096

_FAR = StrandRef("far", "v")
_FAR_TEXT = "far<v> = prev(far@v) * 0.5 + me@x\ndisplay(far@v)\ncompute(far@v)\n"


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer of `bytes` from one device to another. `claimed_us` is the time that is claimed for machines whose
    processor and card share one memory, if any is."""

    source: str
    target: str
    mechanism: str
    bytes: int
    p50_us: float
    claimed_us: float | None = None


def transfers(seconds: float, cards: Sequence[Choice]) -> list[Transfer]:
    """Measures transfers within the CPU, and between it and each card that draws pictures, for about `seconds` each.
    Raises WeftError if a card fails."""
    found = list(_reads("cpu", choose(load_registry(), [VISUAL.name], "cpu")[VISUAL.name].make(), seconds))
    for card in cards:
        if card.context == VISUAL.name:
            backend = card.make()
            for measured in (_bound_on_card, _to_card, _reads, _raw_bytes):
                found += measured(card.shown, backend, seconds)
    return found


def _reads(name: str, backend: Backend, seconds: float) -> Iterator[Transfer]:
    """The time to read one value from a picture's backend, and that for a batch of them."""
    rig = _TransferRig(backend, _FAR_TEXT)
    rig.tick()
    for count in (1, _BATCH):
        coords: Mapping[str, Value] = {"x": np.linspace(0, 1, count), "y": np.full(count, 0.5)}
        took = timed(partial(rig.ask, _FAR, coords), seconds).p50 * 1e3
        mechanism, claimed = "read", 50 + (0.002 * count if count > 1 else 0)
        if name == "cpu":
            mechanism, claimed = "call", 0.005 * count
        yield Transfer(name, "cpu", mechanism, count * np.dtype(np.float64).itemsize, took, claimed)


def _bound_on_card(name: str, backend: Backend, seconds: float) -> Iterator[Transfer]:
    """The time to read a strand of one subgraph on the card at one more place for every pixel of another subgraph,
    which is bound there without a copy."""
    if backend.capabilities().handles:
        several, single = (_TransferRig(backend, _chain_text(count)) for count in (_BOUND, 1))
        took = _difference_us(several.tick, single.tick, seconds) / (_BOUND - 1)
        yield Transfer(name, name, "bind", math.prod(_SIZE) * np.dtype(np.float32).itemsize, took, 0.01)


def _to_card(name: str, backend: Backend, seconds: float) -> Iterator[Transfer]:
    """The time to send one more number in every frame, and that to send a picture."""
    given, plain = (_TransferRig(backend, _numbers_text(keys)) for keys in (True, False))
    took = _difference_us(given.tick, plain.tick, seconds) / _NUMBERS
    yield Transfer("cpu", name, "uniform", np.dtype(np.float32).itemsize, took, 0.1)
    changing, steady = (_TransferRig(backend, *_sampling(film)) for film in ("c", "d"))
    frames = cycle([_sampling("c")[1] for _ in range(2)])
    took = _difference_us(lambda: changing.tick(next(frames)), steady.tick, seconds)
    yield Transfer("cpu", name, "buffer", _picture().nbytes, took, 0.1)


def _raw_bytes(name: str, backend: Backend, seconds: float) -> Iterator[Transfer]:
    """The time to move the bytes of a picture to the memory of a device, back, and within it, without any program."""
    given = _picture()
    pool = backend.pool(3 * given.nbytes)
    one, other = (pool.take(given.shape, given.dtype) for _ in range(2))
    backend.upload(given, one)

    def finished(work: Callable[[], object]) -> None:
        work()
        backend.sync("device")

    for source, target, mechanism, work in (
        ("cpu", name, "upload", partial(backend.upload, given, one)),
        (name, "cpu", "download", partial(backend.download, one)),
        (name, name, "copy", partial(pool.copy, one, other)),
    ):
        yield Transfer(source, target, mechanism, given.nbytes, timed(partial(finished, work), seconds).p50 * 1e3)


def _picture() -> Picture:
    return np.full((_LARGE, _LARGE, 4), 0.5, np.float32)


def _sampling(film: str) -> tuple[str, dict[str, Picture]]:
    """A picture that samples another one, and that one by its path. A backend may cache pictures by path, so each
    `film` has its own."""
    terms = " + ".join(f"p@r(me@x ~ me@x + {at / _BOUND})" for at in range(_BOUND))
    return f'p<r, g, b> = load("{film}.png")\ndisplay(fract(me@time) + {terms})\n', {f"{film}.png": _picture()}


def _chain_text(places: int) -> str:
    """A picture that reads a strand of another picture at `places` places. A number that depends on the other and that
    this one shows separates them into two subgraphs."""
    terms = (f"far@v(me@x ~ me@x + {at / places})" for at in range(places))
    between = "between = integrate(far@v(me@x ~ 0.5, me@y ~ 0.5))\ncompute(between)\n"
    return f"far<v> = prev(far@v) * 0.5 + me@x\n{between}display(between + {' + '.join(terms)})\n"


def _numbers_text(keys: bool) -> str:
    """A picture that reads as many numbers as there are letters, from keys or as constants."""
    letters = [chr(ord("a") + at) for at in range(_NUMBERS)]
    factors = [f"key@{letter}" if keys else f"{at / _NUMBERS}" for at, letter in enumerate(letters)]
    terms = " + ".join(f"{factor} * sin(me@x * {at + 1})" for at, factor in enumerate(factors))
    return f"display(fract(me@time) * ({terms}))\n"


def _difference_us(more: Callable[[], object], less: Callable[[], object], seconds: float) -> float:
    """How much longer one takes than the other, in µs, at least 0; they take turns."""
    differences: list[float] = []

    def pair() -> None:
        started = time.perf_counter()
        more()
        between = time.perf_counter()
        less()
        differences.append((between - started) - (time.perf_counter() - between))

    timed(pair, seconds)
    return max(0.0, float(np.median(differences[1:])) * 1e6)


class _TransferRig:
    """The pictures of a program, drawn by a backend tick by tick. The rest of the program is replaced by constants."""

    def __init__(self, backend: Backend, text: str, pictures: Mapping[str, Picture] = MappingProxyType({})) -> None:
        """`pictures` are those that it samples, by path. Raises WeftError for what the backend cannot run."""
        # State of numbers belongs to compute here, as in a patch with sound it belongs to audio.
        contexts = ContextTable((VISUAL, replace(COMPUTE, state_rank=-1)))
        settings = {"width": float(_SIZE[0]), "height": float(_SIZE[1])}
        program = build(Request(Source("(measured)", text), contexts, settings))
        self._backend = backend
        self._runner = ProgramRunner(contexts)
        self._env = Env(*_SIZE, dt=1 / 60, pictures=pictures)
        parts = []
        for unit in program.units:
            if unit.subgraph.context == VISUAL.name:
                compiled = backend.compile_subgraph(unit, self._env, self._runner)
                parts.append(RunningSubgraph(unit, backend, compiled))
                for ref in unit.subgraph.exposes:
                    self._runner.expose(ref, backend, compiled)
            else:
                for ref in unit.subgraph.exposes:
                    self._runner.expose_getter(ref, constant)
        self._runner.parts = tuple(parts)

    def tick(self, pictures: Mapping[str, Picture] | None = None) -> None:
        """Draws the next picture, with new `pictures` to sample if they are given, and waits for it."""
        env = self._env
        shown = env.pictures if pictures is None else pictures
        self._env = env._replace(tick=env.tick + 1, abstime=env.abstime + env.dt, pictures=shown)
        self._runner.run(self._env)
        self._backend.sync("device")

    def ask(self, ref: StrandRef, coords: Mapping[str, Value]) -> None:
        """Reads a strand at coordinates."""
        self._runner.values({ref: coords}, self._env)


# --- the costs by which a picture is given to the CPU or to a graphics card ---------------------------------------

# A picture of common operations, in which everything moves.
_TEXT = """\
a = sin(me@x * 13 + me@time) + sin(me@y * 11 - me@time * 1.3)
b = sqrt(abs(a * me@x - 0.3)) + 1 / (1 + a * a + me@y)
display(fract(a * b + me@time), a * 0.3 + 0.5, clamp(b * me@x - a * me@y, 0, 1))
"""

# The sizes of pictures: one that takes no time beyond its launch, one for the CPU, and one for a card.
_TINY, _ON_CPU, _ON_CARD = (16, 16), (512, 256), (2048, 1024)

# The smallest cost in seconds, instead of 0.
_LEAST = 1e-15


@dataclass(frozen=True, slots=True)
class MeasuredCosts:
    """The measured costs of a card, and those that the choice would have assumed."""

    card: Choice
    measured: Costs
    believed: Costs

    def lines(self) -> Iterator[tuple[str, float, float]]:
        """Each cost in seconds by name: as measured, and as assumed."""
        for each in fields(Costs):
            yield each.name, getattr(self.measured, each.name), getattr(self.believed, each.name)


def measure_costs(
    cards: Iterable[Choice], routes: Sequence[Transfer], known: KnownCosts, seconds: float
) -> list[MeasuredCosts]:
    """Measures the costs of the cards that draw pictures, for about `seconds` in each of four measurements; `routes`
    are the transfers to and from them. Raises WeftError if a card fails."""
    return [
        MeasuredCosts(card, _measured(card, routes, seconds), known.of(card.backend.name, card.device))
        for card in cards
        if card.context == VISUAL.name
    ]


def _measured(card: Choice, routes: Sequence[Transfer], seconds: float) -> Costs:
    def on_card(program: Build) -> Cost | None:
        return measure_card(program, card, seconds)

    def on_cpu(program: Build) -> Cost | None:
        name = next(name for name in EXECUTORS if executor_problem(name) is None)
        return measure(program, VISUAL.name, ExecutorConfig(name, 1), seconds)

    (tiny, least), (large, most) = (_drawn(size, on_card) for size in (_TINY, _ON_CARD))
    count, took = _drawn(_ON_CPU, on_cpu)
    reads = [route.p50_us for route in routes if (route.source, route.mechanism) == (card.shown, "read")]
    sends = [r.p50_us / r.bytes for r in routes if (r.target, r.mechanism) == (card.shown, "upload")]
    return Costs(
        cpu_operation=max(_LEAST, took / count),
        gpu_operation=max(_LEAST, (most - least) / (large - tiny)),
        launch=max(_LEAST, least),
        wait=max(_LEAST, min(reads, default=least * 1e6) * 1e-6),
        upload=max(_LEAST, min(sends, default=Costs().upload * 1e6) * 1e-6),
    )


def _drawn(size: tuple[int, int], cost: Callable[[Build], Cost | None]) -> tuple[int, float]:
    """The number of operations for a picture of this size, and the seconds that it takes to draw it."""
    settings = dict(zip(("width", "height"), map(float, size), strict=True))
    program = build(Request(Source("(measured)", _TEXT), ContextTable((VISUAL,)), settings))
    (unit,), measured = program.units, cost(program)
    assert measured is not None, "the program has a picture"
    return operations(unit.kernel, size[::-1]), measured.timing.p50 * 1e-3
