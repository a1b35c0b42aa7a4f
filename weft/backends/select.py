"""The choice of a backend for each context, from the user's request, the available devices and the measured costs."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from weft.backends.base import Backend, DeviceInfo
from weft.backends.cpu import EXECUTORS, CpuBackend, executor_problem
from weft.backends.placement import COSTS, Costs
from weft.backends.registry import Registry, load_registry
from weft.contexts import ContextTable
from weft.errors import WeftError, did_you_mean, error

# The order in which backends are preferred without a request.


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A backend by a name that `--backend` takes. `software` says whether its device must be software (True), must not
    be (False), or either (None)."""

    name: str
    software: bool | None = None


CPU = (ChainLink("native"), ChainLink("vector"))
"""What `cpu` stands for, the fastest first. The last one needs only numpy."""

CHAINS: Mapping[str, tuple[ChainLink, ...]] = {
    "visual": (
        ChainLink("metal", software=False), ChainLink("gl", software=False), *CPU, ChainLink("gl", software=True),
    ),
    "audio": CPU,
    "compute": CPU,
}

FAMILIES = ("gl", "metal")
"""Names that stand for a different backend in each context: for pictures, `gl` is `gl_visual`."""


def chain_of(context: str) -> tuple[ChainLink, ...]:
    """What is preferred for a context, the best first. The contexts of packages prefer the CPU."""
    return CHAINS.get(context, CPU)


# The costs that `weft bench` has measured on this machine, by device and driver, in a file in the user's cache folder.

_NAMES = tuple(each.name for each in fields(Costs))


def costs_file() -> Path:
    """The path of the file, which need not exist."""
    home = Path.home()
    match sys.platform:
        case "darwin":
            folder = home / "Library" / "Caches"
        case "win32":
            folder = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
        case _:
            folder = home / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or folder) / "weft" / "costs.json"


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
        found = json.loads(path.read_text(encoding="utf-8"))
        return KnownCosts({key: _costs(given) for key, given in found.items()})
    except FileNotFoundError:
        return KnownCosts()
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as failure:
        return KnownCosts({}, f"{path} is ignored because it cannot be read ({failure}); weft bench writes a new one")


def write_costs(backend: str, device: DeviceInfo, costs: Costs) -> Path:
    """Adds or replaces the costs of a device in the file; gives its path. Raises OSError."""
    path = costs_file()
    known = {**read_costs().costs, _key(backend, device): costs}
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_suffix(f".{os.getpid()}")
    made.write_text(json.dumps({key: asdict(each) for key, each in known.items()}, indent=2) + "\n", encoding="utf-8")
    made.replace(path)
    return path


def _key(backend: str, device: DeviceInfo) -> str:
    return f"{backend} · {device.name} · {device.driver or ''}"


def _costs(given: Any) -> Costs:
    """Costs from an entry of the file. Raises ValueError, TypeError or KeyError if it is malformed."""
    numbers = {name: float(given[name]) for name in _NAMES}
    for name, number in numbers.items():
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"{name} is {number}")
    return Costs(**numbers)


# The choice: what the user requested, else the first backend of the chain that is available.

OPTION, VARIABLE = "--backend", "WEFT_BACKEND"


@dataclass(frozen=True)
class Choice:
    """What runs a context: a backend on a device, its `name` for `--backend`, its `executor` (empty if it has only
    one), and the reason for the choice. `rest` has the fallbacks, the best first and the CPU last, for subgraphs that
    the backend cannot run and for when its device fails. `costs` decide which subgraphs are worth the transfer to its
    device. `passed` has a line for each unavailable backend that WEFT_BACKEND names first, and for unreadable costs."""

    context: str
    name: str
    backend: type[Backend]
    executor: str
    reason: str
    device: DeviceInfo
    asked: bool = False
    """Whether the user named it."""
    rest: tuple[Choice, ...] = ()
    passed: tuple[str, ...] = ()
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
        fields = (self.executor, self.reason, self.device, self.asked, self.rest, self.passed, self.costs)
        return _named, (self.context, self.name, self.backend.name, *fields)


def _named(context: str, name: str, backend: str, *fields: Any) -> Choice:
    return Choice(context, name, load_registry().backend(backend), *fields)


@dataclass(frozen=True)
class _Problem:
    """Why something is not available, and what helps."""

    reason: str
    remedy: str | None = None

    def __str__(self) -> str:
        return f"{self.reason} ({self.remedy})" if self.remedy else self.reason


@dataclass(frozen=True)
class _BackendConfig:
    """A backend with an executor, and the name of the combination."""

    name: str
    backend: type[Backend]
    executor: str = ""


def parse_request(text: str | None) -> dict[str, list[str]]:
    """The names requested for each context, `*` for all: `visual=gl:1,compute=vector`, `gl,cpu`."""
    request: dict[str, list[str]] = {}
    for part in (text or "").split(","):
        context, equals, name = part.strip().partition("=")
        if not part.strip():
            continue
        request.setdefault(context if equals else "*", []).append(name if equals else context)
    return request


def choose(
    registry: Registry, contexts: Iterable[str], asked: str | None = None, environment: str | None = None
) -> dict[str, Choice]:
    """A choice for every context that some backend can run; `asked` is `--backend`, `environment` is `WEFT_BACKEND`.
    Only the devices that matter are probed. Raises WeftError for an unknown name, and for an unavailable backend in
    --backend."""
    wanted, fallback = parse_request(asked), parse_request(environment)
    _check_names(registry, wanted, OPTION)
    _check_names(registry, fallback, VARIABLE)
    chooser = _Chooser(registry)
    found = {context: chooser.choose(context, wanted, fallback) for context in contexts}
    return {context: choice for context, choice in found.items() if choice is not None}


def unavailable(registry: Registry, choices: Mapping[str, Choice]) -> dict[str, DeviceInfo]:
    """The contexts whose backends have no available device, each with its first device, which says why."""
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


def passed(choices: Mapping[str, Choice]) -> list[str]:
    """A line for each unavailable backend that WEFT_BACKEND names, and for unreadable costs."""
    return list(dict.fromkeys(line for choice in choices.values() for line in choice.passed))


class _Chooser:
    """Chooses for one context after another. Each backend is probed once, when it is needed."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._probed: dict[type[Backend], list[DeviceInfo]] = {}
        self._known: KnownCosts | None = None

    def choose(self, context: str, wanted: Mapping[str, list[str]], fallback: Mapping[str, list[str]]) -> Choice | None:
        lines: tuple[str, ...] = ()
        found = self._from_option(context, wanted)
        if found is None:
            found, lines = self._from_environment(context, fallback)
        found = found or self._auto(context)
        if found is None:
            return None
        names = [*_names_for(context, wanted), *_names_for(context, fallback)]
        rest = tuple(self._fallbacks(context, found, names))
        if self._known is not None and self._known.problem is not None:
            lines = (*lines, self._known.problem)
        return replace(found, rest=rest, passed=lines)

    def _from_option(self, context: str, wanted: Mapping[str, list[str]]) -> Choice | None:
        """What --backend names for a context; None if it names nothing. Raises WeftError if that is not available."""
        for name in _names_for(context, wanted):
            match self._by_name(context, name, f"asked for with {OPTION}"):
                case Choice() as choice:
                    return choice
                case _Problem(reason, remedy):
                    raise error("backend-not-available", f"{name} cannot run {context}: {reason}", hint=remedy)
        if wanted.get(context):
            names = ", ".join(wanted[context])
            hint = "weft devices lists what can"
            raise error("backend-not-available", f"{names} cannot run {context}", hint=hint)
        return None

    def _from_environment(
        self, context: str, fallback: Mapping[str, list[str]]
    ) -> tuple[Choice | None, tuple[str, ...]]:
        """The first available backend that WEFT_BACKEND names for a context, with a line for each one before it."""
        lines: list[str] = []
        for name in _names_for(context, fallback):
            match self._by_name(context, name, f"asked for with {VARIABLE}"):
                case Choice() as choice:
                    return choice, tuple(lines)
                case _Problem() as problem:
                    lines.append(f"{VARIABLE}: {name} is not available: {problem}")
        return None, tuple(lines)

    def _auto(self, context: str) -> Choice | None:
        faster: list[str] = []
        for link in chain_of(context):
            found = self._of_link(context, link)
            if isinstance(found, Choice):
                return replace(found, reason="; ".join(["the fastest here", *faster]))
            if found is not None:
                faster.append(f"{link.name} is faster, but {found.reason}")
        for backend in self._registry.of_context(context):
            if backend.context == context and not issubclass(backend, CpuBackend):
                only = self._on(context, _BackendConfig(backend.name, backend))
                if isinstance(only, Choice):
                    return replace(only, reason="the only one for this context")
        return None

    def _of_link(self, context: str, link: ChainLink) -> Choice | _Problem | None:
        """What a link gives for a context; None if there is nothing of the kind, which needs no message."""
        if link.software is False and not self._may_have_hardware(context, link.name):
            return None
        found = [self._on(context, config, software=link.software) for config in self._configs(context, link.name)]
        return next((each for each in found if isinstance(each, Choice)), found[0] if found else None)

    def _by_name(self, context: str, name: str, reason: str) -> Choice | _Problem | None:
        """What a name such as `gl:1` means for a context; None if it means nothing there."""
        base, colon, number = name.partition(":")
        problem: _Problem | None = None
        for config in self._configs(context, base):
            found = self._on(context, config, index=int(number) if colon else None)
            if isinstance(found, Choice):
                return replace(found, reason=reason, asked=True)
            problem = problem or found
        if problem is None and base in FAMILIES and not _family(self._registry, base):
            return _Problem("this version has no such backend yet")
        return problem

    def _configs(self, context: str, name: str) -> Iterator[_BackendConfig]:
        """The backends of a context that a name stands for, the best first."""
        here = self._registry.of_context(context)
        executors = [link.name for link in CPU]
        runner = next((backend for backend in here if issubclass(backend, CpuBackend)), None)
        if runner is not None and (name in ("cpu", runner.name) or name in EXECUTORS):
            yield from (_BackendConfig(each, runner, each) for each in ([name] if name in EXECUTORS else executors))
            return
        for backend in map(self._registry.backend, self._names(context, name)):
            own = executors if issubclass(backend, CpuBackend) else [""]
            yield from (_BackendConfig(backend.name, backend, each) for each in own)

    def _names(self, context: str, name: str) -> list[str]:
        """The own names of the backends of a context that a name stands for."""
        wanted = (name, f"{name}_{context}") if name in FAMILIES else (name,)
        return [known for known in self._registry.names_of(context) if known in wanted]

    def _may_have_hardware(self, context: str, name: str) -> bool:
        return any(map(self._registry.may_have_hardware, self._names(context, name)))

    def _on(
        self, context: str, config: _BackendConfig, index: int | None = None, software: bool | None = None
    ) -> Choice | _Problem:
        """A backend on a device: the one with this index, or the first available one; hardware before software."""
        found = next(self._each(context, config, index, software), None)
        return found or self._problem(config, index, software)

    def _each(
        self, context: str, config: _BackendConfig, index: int | None = None, software: bool | None = None
    ) -> Iterator[Choice]:
        """A backend on each available device, or on the one with this index; hardware before software."""
        name, backend, executor = config.name, config.backend, config.executor
        if executor and executor_problem(executor) is not None:
            return
        for device in self._devices_for(config, index, software):
            if device.available:
                yield Choice(context, name, backend, executor, "", device, costs=self._costs(config, device))

    def _devices_for(self, config: _BackendConfig, index: int | None, software: bool | None) -> list[DeviceInfo]:
        found = [device for device in self._devices(config.backend) if index is None or device.index == index]
        kind = [device for device in found if software is None or device.software == software]
        return sorted(kind, key=lambda device: device.software)

    def _problem(self, config: _BackendConfig, index: int | None, software: bool | None) -> _Problem:
        """Why a backend has no device."""
        problem = executor_problem(config.executor) if config.executor else None
        if problem is not None:
            return _Problem(problem)
        devices = self._devices(config.backend)
        if index is not None and all(device.index != index for device in devices):
            listed = ", ".join(f"{device.index}: {device.name}" for device in devices)
            return _Problem(f"it has no device {index}", f"there is {listed}" if listed else None)
        kind = self._devices_for(config, index, software)
        if not kind:
            return _Problem("there is no such device")
        return _Problem(kind[0].reason or f"{kind[0].name} is not available", kind[0].remedy)

    def _fallbacks(self, context: str, choice: Choice, names: Sequence[str]) -> Iterator[Choice]:
        """The fallbacks for a choice: the other requested `names`, then the preferred chain. They end with the CPU,
        which is always available and has no fallbacks itself."""
        if choice.is_cpu:
            return
        own = [] if choice.asked else [ChainLink(choice.backend.name, choice.device.software)]
        known, has_cpu = {_identity(choice)}, False
        for at, link in enumerate((*map(ChainLink, names), *own, *chain_of(context))):
            if has_cpu and link.name not in ("cpu", *EXECUTORS):
                continue
            for found in self._all(context, link):
                if _identity(found) not in known:
                    known.add(_identity(found))
                    has_cpu = has_cpu or found.is_cpu
                    yield replace(found, asked=at < len(names))

    def _all(self, context: str, link: ChainLink) -> Iterator[Choice]:
        """Everything available that a link names, device by device. Probes lazily."""
        base, colon, number = link.name.partition(":")
        if link.software is False and not self._may_have_hardware(context, base):
            return
        for config in self._configs(context, base):
            yield from self._each(context, config, int(number) if colon else None, link.software)

    def _costs(self, config: _BackendConfig, device: DeviceInfo) -> Costs:
        """The costs of a device. The file is read only if a device other than the CPU is chosen."""
        if issubclass(config.backend, CpuBackend):
            return COSTS
        self._known = self._known or read_costs()
        return self._known.of(config.backend.name, device)

    def _devices(self, backend: type[Backend]) -> list[DeviceInfo]:
        if backend not in self._probed:
            self._probed[backend] = backend.probe()
        return self._probed[backend]


def _names_for(context: str, request: Mapping[str, list[str]]) -> list[str]:
    """What a request names for a context, the best first."""
    return [*request.get(context, ()), *request.get("*", ())]


def _identity(choice: Choice) -> tuple[str, str, int]:
    return choice.backend.name, choice.executor, choice.device.index


def _family(registry: Registry, name: str) -> list[str]:
    """The backends of a family."""
    return [known for known in registry.names if known.startswith(f"{name}_")]


def _check_names(registry: Registry, request: Mapping[str, list[str]], origin: str) -> None:
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
