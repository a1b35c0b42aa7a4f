"""What packages bring along: backends, by the entry point `weft.backends`, and with them contexts."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from weft.contexts import AUDIO, COMPUTE, VISUAL, ContextSpec, ContextTable

ENTRY_POINTS = "weft.backends"


def backend_points() -> list[EntryPoint]:
    """The entry points of packages, by name."""
    return sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name)


def context_table() -> ContextTable:
    """All contexts, for commands that run nothing. Packages that cannot be loaded are left out: the commands that run
    something say why."""
    specs: dict[str, ContextSpec] = {spec.name: spec for spec in (VISUAL, AUDIO, COMPUTE)}
    for point in backend_points():
        try:
            spec: ContextSpec | None = point.load().spec
        except Exception:
            continue
        if spec is not None:
            specs.setdefault(spec.name, spec)
    return ContextTable(specs.values())
