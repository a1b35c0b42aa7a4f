"""The choice of a backend: by what subgraphs cost and need on a device, and by the devices that are there."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

from weft.backends.base import Backend, DeviceInfo
from weft.backends.cpu import EXECUTORS, CpuBackend, executor_problem
from weft.backends.launch import shape_of_level, slot_bytes
from weft.backends.native.llvm import isa_problem
from weft.backends.registry import Registry, load_registry
from weft.codegen.kernel import Kernel, Unit
from weft.contexts import ContextTable
from weft.disk import cache_folder, keep, read_kept
from weft.errors import WeftError, did_you_mean, error
from weft.ir.rates import Rate
from weft.media.sampled import header_of, memory_of
from weft.media.sounds import AHEAD, SAMPLE_BYTES
from weft.names import is_sound, is_view, shown, sound_of
from weft.platform import system
from weft.sources import FILM, ends_as

# Placement of subgraphs on devices: whether one is worth the transfer to a graphics card.


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of work and transfers, in seconds. An operation is one value of a kernel at one element. The defaults
    are estimates for devices that have not been measured."""

    cpu_operation: float = 2.4e-10
    """On one core, as machine code: a core with AVX2 computes about 240 million pixels a second of the plasma in
    patches/bench, which has 17 operations (docs/performance.md)."""
    gpu_operation: float = 1.2e-11
    """For a small card, slower than an NVIDIA H200, which draws that plasma at 1280×720 in 0.07 ms."""
    launch: float = 5e-5
    """Until the driver has begun a draw: 19 µs on that card, the wait for its end included; 50 µs on machines that
    share their memory with the card (`weft bench` measures it)."""
    wait: float = 5e-5
    """Until values have been read back, even if there are few. Like `launch`, the larger of the known figures."""
    upload: float = 1e-10
    """For each byte of a picture that is sent to the screen: 10 GB a second."""


COSTS = Costs()
_PIXEL = 4


def operations(kernel: Kernel, shape: tuple[int, int]) -> int:
    """The number of operations in a launch over a shape (height, width). A loop counts as a single step."""
    height, width = shape_of_level(shape, kernel.level)
    counts = {Rate.ELEMENT: height * width, Rate.COLUMN: width, Rate.ROW: height}
    own = sum(len(section) * counts.get(section.rate, 1) for section in kernel.sections)
    return own + sum(operations(stage, shape) for stage in kernel.stages)


def stays_on_cpu(unit: Unit, shape: tuple[int, int], cores: int, costs: Costs = COSTS) -> str | None:
    """The reason why a subgraph that sweeps a shape (height, width) stays on a CPU with this number of cores although
    there is a graphics card; None if the card pays."""
    work = operations(unit.kernel, shape)
    shown = shape[0] * shape[1] * _PIXEL * costs.upload if unit.subgraph.sinks else 0.0
    here = work * costs.cpu_operation / max(1, cores) + shown
    reading = len(unit.points) * costs.wait
    there = costs.launch + work * costs.gpu_operation + reading
    if here > there:
        return None
    small = f"{work:,} operations take {here * 1e3:.2g} ms on the CPU"
    if reading > costs.launch:
        return f"{small}, and reading {len(unit.points)} strands back from a graphics card {reading * 1e3:.2g} ms"
    return f"{small}, and a graphics card {there * 1e3:.2g} ms before it has answered"


# Whether the CPU draws while the driver of a card makes a program.

# The share of the time for a frame that it may take. The time of an operation in a list of calls, which is ready at
# once, as a share of `cpu_operation`, which is that of roots and sines: 0.04 to 0.15 ns in generated patches, on a core
# with AVX-512.
_SHARE, _FIRST_TIER = 0.5, 0.35

# The seconds that a byte of remembered state takes to a card; the way back is faster.
_MOVED = 4e-10


def seconds_at_first(unit: Unit, shape: tuple[int, int], cores: int, costs: Costs = COSTS) -> float:
    """The time that a frame of a subgraph that sweeps a shape (height, width) takes as a list of calls on a CPU with
    this number of cores. It is infinite if there is no limit to it."""
    if unit.loops:
        return math.inf
    return _FIRST_TIER * operations(unit.kernel, shape) * costs.cpu_operation / max(1, cores)


def can_shrink(unit: Unit) -> bool:
    """Whether a subgraph may be drawn with fewer pixels for a moment. It may not if it remembers images, since these
    keep their size."""
    return not any(slot.image and slot.outlives for slot in unit.kernel.slots)


def bridging_level(
    unit: Unit, shape: tuple[int, int], frame: float, cores: int, costs: Costs = COSTS
) -> int | None:
    """The level at which a CPU draws the picture of a subgraph while the program of a card is made; None if it does not
    draw it. The state has to move in less than a `frame`, which is in seconds. Level 0, the whole picture, must take at
    most half a frame. Otherwise level 1, a quarter of the pixels, must do so."""
    if unit.kernel.strands:
        return None  # it may read what the card has computed
    moved = sum(slot_bytes(slot, shape) for slot in unit.kernel.slots if slot.image and slot.outlives)
    seconds = seconds_at_first(unit, shape, cores, costs)
    if moved * _MOVED > frame:
        return None
    if seconds <= _SHARE * frame:
        return 0
    return 1 if can_shrink(unit) and seconds / 4 <= _SHARE * frame else None


def starting_level(unit: Unit, shape: tuple[int, int], frame: float, cores: int, costs: Costs = COSTS) -> int:
    """The level at which a CPU draws the picture of a subgraph while it is a list of calls: 1 if the whole picture
    takes longer than a `frame`."""
    is_late = frame < seconds_at_first(unit, shape, cores, costs) < math.inf
    return int(is_late and can_shrink(unit))


# How much memory subgraphs need, checked before any is allocated.

# Bytes for each pixel of a drawn picture, which has two buffers.
_DRAWN = 2 * 4

# The number of the largest needs that an error names.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Need:
    """Something that takes memory: what it is, for messages, and its bytes."""

    what: str
    bytes: int


def needs_of(unit: Unit, shape: tuple[int, int], copies: int = 1) -> Iterator[Need]:
    """The memory of a subgraph that sweeps a shape (height, width): the picture that it draws, and its state. Sound
    that differs between channels has several `copies` of its state."""
    height, width = shape
    if unit.subgraph.sinks and height > 1:
        yield Need(f"the picture of {unit.subgraph.name}, {width}×{height}", _DRAWN * height * width)
    for slot in unit.kernel.slots:
        back = f"{slot.key} alone goes back {slot.depth} ticks" if slot.depth > 1 else slot.key
        yield Need(back, copies * slot_bytes(slot, shape))


def pictures_of(kernels: Iterable[Kernel], on_cpu: bool) -> Iterator[Need]:
    """The pictures and sounds that kernels sample, each once, with sizes from their files; unreadable ones count as
    nothing. Of a sound, the CPU needs at first only the part of the file that it reads. The rest is loaded if there is
    room."""
    paths = {path for kernel in kernels for path in kernel.pictures if not is_view(path)}
    for path in sorted(paths):
        if is_sound(path):
            found, sound = header_of(path), sound_of(path)
            length = 0 if isinstance(found, str) else round(SAMPLE_BYTES * found.seconds * sound.rate)
            needed = min(length, AHEAD) if on_cpu else length
            what = f"the sound of {sound.path}" if ends_as(sound.path, FILM) else sound.path
        else:
            needed, what = memory_of(path), shown(path)
        if needed:
            yield Need(what, needed)


def by_device(needs: Mapping[tuple[str, str], Iterable[Need]]) -> dict[str, set[Need]]:
    """The needs of each device, from needs by device and subgraph. A picture of several subgraphs counts once."""
    found: dict[str, set[Need]] = {}
    for (device, _), each in needs.items():
        found.setdefault(device, set()).update(each)
    return found


def total(needs: Iterable[Need]) -> int:
    """The sum of the bytes."""
    return sum(need.bytes for need in needs)


def check_room(wanted: Mapping[str, Iterable[Need]], free: Mapping[str, int]) -> None:
    """Raises WeftError if a device, by its name, has less free memory than is wanted; a free memory of 0 means
    unknown."""
    for device, needs in wanted.items():
        listed = sorted(needs, key=lambda need: -need.bytes)
        there, needed = free.get(device, 0), total(listed)
        if not there or needed <= there:
            continue
        words = f"this patch would take {size_text(needed)} of memory on {device}, and {size_text(there)} are free"
        largest = ", ".join(f"{need.what} ({size_text(need.bytes)})" for need in listed[:_NAMED])
        raise error("not-enough-memory", words, None, f"{largest}: remember fewer ticks, or make the picture smaller")


def size_text(count: int) -> str:
    """Bytes as text: `3.7 MB`."""
    power = min(3, int(math.log10(max(1, count)) // 3))
    return f"{count} B" if power == 0 else f"{count / 1000**power:.1f} {('kB', 'MB', 'GB')[power - 1]}"


# The choice of a backend for each context, from the user's request, the available devices and the measured costs.

# The order in which backends are preferred without a request.


@dataclass(frozen=True, slots=True)
class BackendRequest:
    """A backend by a name that `--backend` takes, with the index of a device if one is wanted. `software` says whether
    its device must be software (True), must not be (False), or either (None)."""

    name: str
    index: int | None = None
    software: bool | None = None

    @classmethod
    def parsed(cls, text: str) -> BackendRequest:
        """What a name such as `gl:1` requests."""
        name, colon, number = text.partition(":")
        return cls(name, int(number) if colon else None)


CPU = (BackendRequest("native"), BackendRequest("vector"))
"""The backends that `cpu` means, the fastest first. The last one needs only numpy."""

FAMILIES = ("metal", "gl", "cuda", "hip", "opencl", "wgpu", "gles")
"""Names that mean a different backend in each context, the best first: for pictures, `gl` is `gl_visual`."""

# Where OpenGL is old, or translated by a layer, what speaks to the system's own interface comes before it.
_BEFORE_GL: Mapping[str, tuple[str, ...]] = {"darwin": ("metal", "wgpu"), "win32": ("wgpu",)}


# A window shows what OpenGL has drawn where it is. A picture that goes to a file is read back from every card, which
# CUDA does three to eight times as fast.
_FIRST_IN_FILES = ("metal", "cuda", "hip")


def families_on(name: str, in_files: bool = False) -> tuple[str, ...]:
    """The families in the order in which a system, by Python's name for it, prefers them: for a window, or for
    pictures that only go to files."""
    first = (*(_FIRST_IN_FILES if in_files else ()), *_BEFORE_GL.get(name, ()))
    return tuple(dict.fromkeys((*first, *FAMILIES)))


def chain_of(context: str, in_files: bool = False) -> tuple[BackendRequest, ...]:
    """The backends that are preferred for a context, the best first. The contexts of packages prefer the CPU."""
    if context != "visual":
        return CPU
    cards = (BackendRequest(name, software=False) for name in families_on(system.name, in_files))
    return *cards, *CPU, BackendRequest("gl", software=True)


# The costs that `weft bench` has measured on this machine, by device and driver, in a file in the user's cache folder.

def costs_file() -> Path:
    """The path of the file, which need not exist."""
    return cache_folder() / "costs"


_KEPT = "costs 1"


@dataclass(frozen=True)
class KnownCosts:
    """The measured costs of devices; `problem` says why there are none although there is a file."""

    costs: Mapping[str, Costs] = field(default_factory=dict)
    problem: str | None = None

    def of(self, backend: str, device: DeviceInfo) -> Costs:
        """The costs of a backend on a device; estimates if it has not been measured."""
        return self.costs.get(_key(backend, device), COSTS)


def read_costs() -> KnownCosts:
    """The costs in the file. Never raises: an unreadable file gives no costs."""
    path = costs_file()
    try:
        found = json.loads(read_kept(path, _KEPT))
        return KnownCosts({key: _costs(given) for key, given in found.items()})
    except FileNotFoundError:
        return KnownCosts()
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as failure:
        reason = getattr(failure, "strerror", None) or failure
        return KnownCosts({}, f"{path} is ignored because it cannot be read ({reason}); weft bench writes a new one")


def write_costs(backend: str, device: DeviceInfo, costs: Costs) -> Path:
    """Adds or replaces the costs of a device in the file. Returns its path. Raises OSError."""
    path = costs_file()
    known = {**read_costs().costs, _key(backend, device): costs}
    keep(path, _KEPT, json.dumps({key: asdict(each) for key, each in known.items()}).encode())
    return path


def _key(backend: str, device: DeviceInfo) -> str:
    return f"{backend} · {device.name} · {device.driver or ''}"


def _costs(given: Any) -> Costs:
    """Costs from an entry of the file. Raises ValueError, TypeError or KeyError if it is malformed."""
    numbers = {each.name: float(given[each.name]) for each in fields(Costs)}
    for name, number in numbers.items():
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"{name} is {number}")
    return Costs(**numbers)


# The choice: the backend that the user requested, else the first available backend of the chain.

OPTION, VARIABLE = "--backend", "WEFT_BACKEND"


@dataclass(frozen=True)
class Choice:
    """What runs a context: a backend on a device, its `name` for `--backend`, its `executor` (empty if it has only
    one), and the reason for the choice.

    `fallbacks`, the best first and the CPU last, are for subgraphs that the backend cannot run, and for the case that
    its device fails. `costs` decide which subgraphs are worth the transfer to its device. `warnings` has a line for
    each unavailable backend that WEFT_BACKEND names first, for a WEFT_ISA that this processor does not run, and for
    unreadable costs.
    """

    context: str
    name: str
    backend: type[Backend]
    executor: str
    reason: str
    device: DeviceInfo
    requested: bool = False
    """Whether the user named it."""
    fallbacks: tuple[Choice, ...] = ()
    warnings: tuple[str, ...] = ()
    costs: Costs = COSTS

    @property
    def shown(self) -> str:
        return f"{self.name}:{self.device.index}" if self.device.index else self.name

    @property
    def is_cpu(self) -> bool:
        """Whether it runs on the CPU."""
        return issubclass(self.backend, CpuBackend)

    def make(self) -> Backend:
        """A backend, ready to compile."""
        return self.backend.on(self.device, self.executor)

    def __reduce__(self) -> tuple[Callable[..., Choice], tuple[Any, ...]]:
        # It is pickled with the name of the backend, since a package may define the class in a function.
        return _unpickled, ({**vars(self), "backend": self.backend.name},)


def _unpickled(values: dict[str, Any]) -> Choice:
    return Choice(**{**values, "backend": _registered(values["backend"])})


@functools.cache
def _registered(name: str) -> type[Backend]:
    """The backend of a name. It is looked up once: that takes milliseconds, and each sound brings its choices."""
    return load_registry().backend(name)


@dataclass(frozen=True)
class _Problem:
    reason: str
    remedy: str | None = None

    def __str__(self) -> str:
        return f"{self.reason} ({self.remedy})" if self.remedy else self.reason


_Request: TypeAlias = dict[str, list[str]]
"""The names requested for each context, `*` for all."""


def parse_request(text: str | None) -> _Request:
    """The names that `visual=gl:1,compute=vector` or `gl,cpu` requests."""
    request: _Request = {}
    for part in (text or "").split(","):
        context, equals, name = part.strip().partition("=")
        if not part.strip():
            continue
        request.setdefault(context if equals else "*", []).append(name if equals else context)
    return request


def choose(
    registry: Registry, contexts: Iterable[str], option: str | None = None, environment: str | None = None,
    in_files: bool = False,
) -> dict[str, Choice]:
    """A choice for every context that some backend can run; `option` is `--backend`, `environment` is `WEFT_BACKEND`.
    `in_files` says that no window shows the pictures. Only the devices that matter are probed. Raises WeftError for an
    unknown name, and for an unavailable backend in --backend."""
    requests = parse_request(option), parse_request(environment)
    for request, origin in zip(requests, (OPTION, VARIABLE), strict=True):
        _check_names(registry, request, origin)
    chooser = _Chooser(registry, *requests, in_files)
    found = {context: chooser.choose(context) for context in contexts}
    return {context: choice for context, choice in found.items() if choice is not None}


def unavailable(registry: Registry, choices: Mapping[str, Choice]) -> dict[str, DeviceInfo]:
    """The contexts whose backends have no available device, each with its first device, which has the reason."""
    found: dict[str, DeviceInfo] = {}
    for spec in registry.contexts:
        if spec.name not in choices:
            own = (backend for backend in registry.of_context(spec.name) if backend.context == spec.name)
            devices = [device for backend in own for device in backend.probe()]
            found |= {spec.name: devices[0]} if devices else {}
    return found


def contexts_of(registry: Registry, choices: Mapping[str, Choice]) -> ContextTable:
    """All contexts, as programs have to be compiled for the chosen backends."""
    return ContextTable(
        choices[spec.name].backend.spec_of(spec) if spec.name in choices else spec for spec in registry.contexts
    )


def warnings_of(choices: Mapping[str, Choice]) -> list[str]:
    """A line for each unavailable backend that WEFT_BACKEND names, for WEFT_ISA, and for unreadable costs."""
    return list(dict.fromkeys(line for choice in choices.values() for line in choice.warnings))


class _Chooser:
    """Chooses for one context after another. Each backend is probed once, when it is needed."""

    def __init__(self, registry: Registry, option: _Request, environment: _Request, in_files: bool) -> None:
        self._registry = registry
        self._in_files = in_files
        self._option = option
        self._environment = environment
        self._probed: dict[type[Backend], list[DeviceInfo]] = {}
        self._known: KnownCosts | None = None

    def choose(self, context: str) -> Choice | None:
        lines: list[str] = []
        found = self._from_option(context) or self._from_environment(context, lines) or self._preferred(context)
        if found is None:
            return None
        fallbacks = tuple(self._fallbacks(context, found))
        reason = isa_problem()
        if reason is not None and not found.requested and not any(reason in line for line in lines):
            lines.append(f"{reason}; without machine code, numpy plays (vector), which is slower")
        if self._known is not None and self._known.problem is not None:
            lines.append(self._known.problem)
        return replace(found, fallbacks=fallbacks, warnings=tuple(lines))

    def _from_option(self, context: str) -> Choice | None:
        """The choice that --backend names for a context; None if it names none. Raises WeftError if that is not
        available."""
        for name in _names_for(context, self._option):
            match self._named(context, name):
                case Choice() as choice:
                    return replace(choice, reason=f"asked for with {OPTION}", requested=True)
                case _Problem(reason, remedy):
                    raise error("backend-not-available", f"{name} cannot run {context}: {reason}", hint=remedy)
        if self._option.get(context):
            words = f"{', '.join(self._option[context])} cannot run {context}"
            raise error("backend-not-available", words, hint="weft devices lists what can")
        return None

    def _from_environment(self, context: str, lines: list[str]) -> Choice | None:
        """The first available backend that WEFT_BACKEND names for a context. Adds a line for each one before it."""
        for name in _names_for(context, self._environment):
            match self._named(context, name):
                case Choice() as choice:
                    return replace(choice, reason=f"asked for with {VARIABLE}", requested=True)
                case _Problem() as problem:
                    lines.append(f"{VARIABLE}: {name} is not available: {problem}")
        return None

    def _preferred(self, context: str) -> Choice | None:
        faster: list[str] = []
        for request in chain_of(context, self._in_files):
            match self._first(context, request):
                case Choice() as choice:
                    return replace(choice, reason="; ".join(["the fastest here", *faster]))
                case _Problem(reason):
                    faster.append(f"{request.name} is faster, but {reason}")
        for backend in self._registry.of_context(context):
            if backend.context == context and not issubclass(backend, CpuBackend):
                only = self._first(context, BackendRequest(backend.name))
                if isinstance(only, Choice):
                    return replace(only, reason="the only one for this context")
        return None

    def _named(self, context: str, name: str) -> Choice | _Problem | None:
        """The request that a name such as `gl:1` makes for a context; None if it means nothing there."""
        request = BackendRequest.parsed(name)
        found = self._first(context, request)
        if found is None and request.name in FAMILIES and not _family(self._registry, request.name):
            return _Problem("this version has no such backend yet")
        return found

    def _first(self, context: str, request: BackendRequest) -> Choice | _Problem | None:
        """The best backend that a request means, else the first problem; None if it means nothing here."""
        problem: _Problem | None = None
        for found in self._found(context, request):
            if isinstance(found, Choice):
                return found
            problem = problem or found
        return problem

    def _found(self, context: str, request: BackendRequest) -> Iterator[Choice | _Problem]:
        """The backends that a request means in a context, the best first: each on each of its available devices,
        hardware before software, or the problem of a backend without one. Devices are probed only when they are
        reached."""
        names = self._names(context, request.name)
        if request.software is False and not any(map(self._registry.may_have_hardware, names)):
            return
        for name, backend, executor in self._variants(context, request.name):
            problem = executor_problem(executor)
            if problem is not None:
                yield _Problem(problem)
                continue
            if backend not in self._probed:
                self._probed[backend] = backend.probe()
            devices = self._probed[backend]
            numbered = [device for device in devices if request.index in (None, device.index)]
            kind = [device for device in numbered if request.software in (None, device.software)]
            kind.sort(key=lambda device: device.software)
            available = [device for device in kind if device.available]
            for device in available:
                yield Choice(context, name, backend, executor, "", device, costs=self._costs(backend, device))
            if not numbered and request.index is not None:
                listed = ", ".join(f"{device.index}: {device.name}" for device in devices)
                yield _Problem(f"it has no device {request.index}", f"there is {listed}" if listed else None)
            elif not kind:
                yield _Problem("there is no such device")
            elif not available:
                yield _Problem(kind[0].reason or f"{kind[0].name} is not available", kind[0].remedy)

    def _variants(self, context: str, name: str) -> Iterator[tuple[str, type[Backend], str]]:
        """The backends of a context that a name means, each with its own name and its executor, the best first."""
        executors = [request.name for request in CPU]
        here = self._registry.of_context(context)
        runner = next((backend for backend in here if issubclass(backend, CpuBackend)), None)
        if runner is not None and (name in ("cpu", runner.name) or name in EXECUTORS):
            yield from ((each, runner, each) for each in ([name] if name in EXECUTORS else executors))
            return
        for backend in map(self._registry.backend, self._names(context, name)):
            own = executors if issubclass(backend, CpuBackend) else [""]
            yield from ((backend.name, backend, each) for each in own)

    def _names(self, context: str, name: str) -> list[str]:
        """The own names of the backends of a context that a name means."""
        wanted = (name, f"{name}_{context}") if name in FAMILIES else (name,)
        return [known for known in self._registry.names_of(context) if known in wanted]

    def _fallbacks(self, context: str, choice: Choice) -> Iterator[Choice]:
        """The fallbacks for a choice: the other backends that the user named, then the preferred chain. They end with
        the CPU, which is always available and has no fallbacks itself."""
        if choice.is_cpu:
            return
        names = [*_names_for(context, self._option), *_names_for(context, self._environment)]
        named = [BackendRequest.parsed(name) for name in names]
        own = [] if choice.requested else [BackendRequest(choice.backend.name, software=choice.device.software)]
        known, has_cpu = {_identity(choice)}, False
        for at, request in enumerate((*named, *own, *chain_of(context, self._in_files))):
            if has_cpu and request.name not in ("cpu", *EXECUTORS):
                continue
            for found in self._found(context, request):
                if isinstance(found, Choice) and _identity(found) not in known:
                    known.add(_identity(found))
                    has_cpu = has_cpu or found.is_cpu
                    yield replace(found, requested=at < len(named))

    def _costs(self, backend: type[Backend], device: DeviceInfo) -> Costs:
        """The costs of a device. The file is read only if a device other than the CPU is chosen."""
        if issubclass(backend, CpuBackend):
            return COSTS
        self._known = self._known or read_costs()
        return self._known.of(backend.name, device)


def _names_for(context: str, request: _Request) -> list[str]:
    return [*request.get(context, ()), *request.get("*", ())]


def _identity(choice: Choice) -> tuple[str, str, int]:
    return choice.backend.name, choice.executor, choice.device.index


def _family(registry: Registry, name: str) -> list[str]:
    return [known for known in registry.names if known.startswith(f"{name}_")]


def _check_names(registry: Registry, request: _Request, origin: str) -> None:
    families = [name for name in FAMILIES if _family(registry, name)]
    known = ["cpu", *EXECUTORS, *families, *registry.names]
    for context, names in request.items():
        if context != "*" and context not in registry.contexts:
            raise error("unknown-context", f'{origin}: there is no context "{context}"',
                        hint=did_you_mean(context, [c.name for c in registry.contexts]))  # fmt: skip
        for name in names:
            base, colon, number = name.partition(":")
            if base not in known and not (origin == VARIABLE and base in FAMILIES):
                raise refused(name, known)
            if colon and not (number.isascii() and number.isdigit()):
                raise error("unknown-backend", f'{origin}: "{number}" is not the number of a device',
                            hint=f"for example {base}:0; weft devices lists them")  # fmt: skip


def refused(name: str, known: Iterable[str]) -> WeftError:
    """The error for a name of a backend that this version lacks, or that is unknown."""
    listed = f"there are {', '.join(known)}"
    if name.partition(":")[0] in FAMILIES:
        return error("backend-not-available", f'this version has no backend "{name}" yet', hint=listed)
    return error("unknown-backend", f'there is no backend "{name}"', hint=did_you_mean(name, known) or listed)
