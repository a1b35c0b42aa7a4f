"""What packages bring along: backends, by the entry point `weft.backends`, and with them contexts.

A backend imports numpy, and perhaps a device's library. A package spares the commands that run nothing from that if it
names its context by itself, by an entry point `weft.contexts` of the same name.
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
    """The class of a backend. A point names it, or what makes it. Raises whatever goes wrong with that."""
    found = point.load()
    return found if isinstance(found, type) else found()


def context_table() -> ContextTable:
    """All contexts, for commands that run nothing. Packages that cannot be loaded are left out: the commands that run
    something say why."""
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
