"""Plugins: packages add backends by the entry point `weft.backends`, and contexts with them.

A backend imports numpy, and perhaps a device's library. Commands that run nothing need not import them if the package
names its context separately, by an entry point `weft.contexts` of the same name.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from weft.contexts import AUDIO, COMPUTE, VISUAL, ContextSpec, ContextTable

BACKENDS, CONTEXTS = "weft.backends", "weft.contexts"


def backend_points() -> list[EntryPoint]:
    """The backends of packages, by name."""
    return _points(BACKENDS)


def load_backend(point: EntryPoint) -> Any:
    """The class of a backend. The entry point names the class, or a function that returns it. Raises any exception of
    the package."""
    found = point.load()
    return found if isinstance(found, type) else found()


def context_table() -> ContextTable:
    """All contexts, for commands that run nothing. Packages that cannot be loaded are left out; commands that run
    something report why."""
    specs: dict[str, ContextSpec] = {spec.name: spec for spec in (VISUAL, AUDIO, COMPUTE)}
    alone = {point.name: point for point in _points(CONTEXTS)}
    for point in backend_points():
        try:
            spec: ContextSpec | None = alone[point.name].load() if point.name in alone else load_backend(point).spec
        except Exception:
            continue
        if spec is not None:
            specs.setdefault(spec.name, spec)
    return ContextTable(specs.values())


def _points(group: str) -> list[EntryPoint]:
    return sorted(entry_points(group=group), key=lambda point: point.name)
