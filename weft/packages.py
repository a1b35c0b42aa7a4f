"""What other packages bring: backends, contexts, sources and outlets, each by an entry point."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Row = TypeVar("Row")


def points(group: str) -> list[EntryPoint]:
    """The entry points of packages in a group, by name."""
    from importlib.metadata import entry_points  # it takes long to import, and most processes do not need it

    return sorted(entry_points(group=group), key=lambda point: point.name)


def add_rows(
    kind: str, rows: dict[str, Row], classes: dict[str, Any], row_of: Callable[[str, Any], Row]
) -> tuple[str, ...]:  # fmt: skip
    """Adds what packages bring of a kind, such as `source`, to a table: their classes, and the row of each, which
    `row_of` makes of its name and its class. Returns the problems of those that cannot be loaded. A package never
    replaces a row of weft."""
    problems = []
    for point in points(f"weft.{kind}s"):
        try:
            found = point.load()
            row = row_of(point.name, found)
        except Exception as failure:
            problems.append(f"the {kind} {point.name} ({point.value}) could not be loaded: {failure}")
            continue
        if point.name in rows:
            problems.append(f"the {kind} {point.name} ({point.value}) is not used: weft has one of this name")
            continue
        rows[point.name], classes[point.name] = row, found
    return tuple(problems)


def class_of(name: str, own: Mapping[str, tuple[str, str]], brought: Mapping[str, Any]) -> Any:
    """The class of a row: one of weft's own, which are given by module and name, or else one that a package has
    brought. The module is imported when its class is wanted."""
    if name not in own:
        return brought[name]
    module, kind = own[name]
    return getattr(importlib.import_module(module), kind)


def backend_points() -> list[EntryPoint]:
    """The backends of packages, by name."""
    return points("weft.backends")


def load_backend(point: EntryPoint) -> Any:
    """The class of a backend. The entry point names the class, or a function that returns it. Raises any exception of
    the package."""
    found = point.load()
    return found if isinstance(found, type) else found()
