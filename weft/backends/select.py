"""Which backend runs which context: what the user asked for, else the first of a chain that is available."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weft.backends.base import Backend, DeviceInfo
from weft.backends.cpu import EXECUTORS, CpuBackend, executor_problem
from weft.backends.registry import Registry
from weft.errors import WeftError, did_you_mean, error

# The executors in the order of their speed; `cpu` stands for the first of them that there is.
CPU_CHAIN = ("native", "vector")

# Named by the interface, and not in this version.
LATER = frozenset({"gl", "metal"})


@dataclass(frozen=True)
class Choice:
    """What runs a context: a backend, how it executes (`vector`, `vm`; empty where there is no choice), and why."""

    context: str
    backend: type[Backend]
    executor: str
    reason: str
    device: DeviceInfo

    @property
    def shown(self) -> str:
        return self.executor or self.backend.name

    def make(self) -> Backend:
        """A backend, ready to compile."""
        if issubclass(self.backend, CpuBackend):
            return self.backend(self.executor)
        return self.backend()


def parse_request(text: str | None) -> dict[str, list[str]]:
    """The chain of names asked for each context, `*` for all: `visual=vm,compute=vector`, `vector,vm`."""
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
    Raises WeftError for a name that is unknown, or that cannot run the context it is asked for."""
    wanted, fallback = parse_request(asked), parse_request(environment)
    _check_names(registry, wanted, "--backend")
    _check_names(registry, fallback, "WEFT_BACKEND")
    choices: dict[str, Choice] = {}
    for context in contexts:
        choice = _choose(registry, context, wanted, fallback)
        if choice is not None:
            choices[context] = choice
    return choices


def _choose(
    registry: Registry, context: str, wanted: Mapping[str, list[str]], fallback: Mapping[str, list[str]]
) -> Choice | None:
    for request, reason in ((wanted, "asked for with --backend"), (fallback, "asked for with WEFT_BACKEND")):
        for name in [*request.get(context, ()), *request.get("*", ())]:
            found = _named(registry, context, name, reason)
            if found is not None:
                return found
        if request.get(context):
            names = ", ".join(request[context])
            problems = [f"{name}: {problem}" for name in request[context] if (problem := _problem(name))]
            hint = "; ".join(problems) or "weft devices lists what can"
            raise error("backend-not-available", f"{names} cannot run {context}", hint=hint)
    for backend in registry.of_context(context):
        if backend.context != "*":
            if issubclass(backend, CpuBackend):
                executor, reason = fastest_executor()
                return _with(backend, context, executor, reason)
            return _with(backend, context, "", "the only one for this context")
    return None


def unavailable(registry: Registry) -> dict[str, DeviceInfo]:
    """The contexts that have backends, and no device that is available: with the first device, which says why."""
    found: dict[str, DeviceInfo] = {}
    for spec in registry.contexts:
        devices = [d for b in registry.of_context(spec.name) if b.context == spec.name for d in b.probe()]
        if devices and not any(device.available for device in devices):
            found[spec.name] = devices[0]
    return found


def fastest_executor() -> tuple[str, str]:
    """The first executor of the chain that can be had, and why it is taken."""
    reasons: list[str] = []
    for name in CPU_CHAIN:
        problem = executor_problem(name)
        if problem is None:
            return name, "; ".join(["the fastest here", *reasons])
        reasons.append(f"{name} is faster, but {problem}")
    raise LookupError("the last of the chain needs nothing")


def _problem(name: str) -> str | None:
    return executor_problem(name) if name in EXECUTORS else None


def _named(registry: Registry, context: str, name: str, reason: str) -> Choice | None:
    name = fastest_executor()[0] if name == "cpu" else name.partition(":")[0]
    for backend in registry.of_context(context):
        if backend.name == name:
            return _with(backend, context, fastest_executor()[0], reason)
        if name in EXECUTORS and executor_problem(name) is None and issubclass(backend, CpuBackend):
            return _with(backend, context, name, reason)
    return None


def _with(backend: type[Backend], context: str, executor: str, reason: str) -> Choice | None:
    device = next((d for d in backend.probe() if d.available), None)
    if device is None:
        return None
    return Choice(context, backend, executor if issubclass(backend, CpuBackend) else "", reason, device)


def _check_names(registry: Registry, request: Mapping[str, list[str]], origin: str) -> None:
    known = ["cpu", *EXECUTORS, *registry.backends]
    for context, names in request.items():
        if context != "*" and context not in registry.contexts:
            raise error("unknown-context", f'{origin}: there is no context "{context}"',
                        hint=did_you_mean(context, [c.name for c in registry.contexts]))  # fmt: skip
        for name in names:
            if name.partition(":")[0] not in known:
                raise refused(name, known)


def refused(name: str, known: Iterable[str]) -> WeftError:
    """What to raise for a backend that cannot be used: one that this version lacks, or a name that means nothing."""
    listed = f"there are {', '.join(known)}"
    if name.partition(":")[0] in LATER:
        return error("backend-not-available", f'this version has no backend "{name}" yet', hint=listed)
    return error("unknown-backend", f'there is no backend "{name}"', hint=did_you_mean(name, known) or listed)
