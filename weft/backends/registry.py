"""The backends that this installation has: weft's own, and those that packages bring along."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint

from weft.backends.base import Backend
from weft.contexts import AUDIO, COMPUTE, VISUAL, ContextSpec, ContextTable
from weft.errors import Diagnostic
from weft.plugins import backend_points, load_backend

# Importing one of these registers it. They come in the order in which `weft devices` lists them.
_OWN = (
    "weft.backends.cpu_visual", "weft.backends.cpu_audio", "weft.backends.cpu_compute", "weft.backends.null",
)  # fmt: skip

_registered: dict[str, type[Backend]] = {}


def register_backend(backend: type[Backend]) -> type[Backend]:
    """Adds a backend; used as a decorator. Raises ValueError if another one has its name."""
    known = _registered.setdefault(backend.name, backend)
    if known is not backend and known.__qualname__ != backend.__qualname__:
        raise ValueError(f"there are two backends named {backend.name!r}")
    return backend


@dataclass(frozen=True)
class Registry:
    """The backends by name, the contexts that they serve, and what went wrong with packages that should bring more."""

    backends: Mapping[str, type[Backend]]
    contexts: ContextTable
    problems: tuple[Diagnostic, ...] = ()

    def of_context(self, context: str) -> list[type[Backend]]:
        """The backends that can run a context, in the order they were registered."""
        return [b for b in self.backends.values() if b.context in (context, "*")]


def load_registry() -> Registry:
    """Imports every backend and freezes the result. A package that fails to load is a warning, not an end."""
    for module in _OWN:
        importlib.import_module(module)
    problems: list[Diagnostic] = []
    for point in backend_points():
        try:
            register_backend(load_backend(point))
        except Exception as failure:
            problems.append(_problem(point, failure))
    return Registry(dict(_registered), ContextTable(_specs()), tuple(problems))


def _specs() -> Iterator[ContextSpec]:
    yield from (VISUAL, AUDIO, COMPUTE)
    for backend in _registered.values():
        if backend.spec is not None:
            yield backend.spec


def _problem(point: EntryPoint, failure: Exception) -> Diagnostic:
    return Diagnostic(
        "warning", "backend-not-loaded", f"the backend {point.name} ({point.value}) could not be loaded: {failure}"
    )
