"""What to say about names that do not exist, and about remaps that reach what cannot be moved in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from weft.errors import Span, WeftError, did_you_mean, error
from weft.graph.fields import BASES, FIELDS
from weft.graph.resolve import RESERVED
from weft.names import StrandRef
from weft.syntax.ast import Access, Expression, Map
from weft.trampoline import Task

V = TypeVar("V")

# More names than this are no help.
_MOST_LISTED = 24


def check_field(owner: str, node: Access, known: Sequence[str]) -> None:
    """Raises WeftError if `owner` has no output of the name that is accessed."""
    if node.output not in known:
        raise no_output(owner, node, known)


def no_output(owner: str, node: Access, known: Sequence[str]) -> WeftError:
    """What to say about an access to something that is not among the known outputs."""
    listed = (*BASES, *FIELDS) if owner == "me" else known
    shown = f"it has {', '.join(listed)}" if len(listed) <= _MOST_LISTED else None
    what = f"there is no {owner}@{node.output}" if owner in RESERVED else f'{owner} has no output "{node.output}"'
    return error("unknown-output", what, node.output_span, did_you_mean(node.output, known) or shown)


def short(ref: StrandRef) -> str:
    """A strand as it is usually typed."""
    return str(ref).removesuffix("@val")


def time_map(maps: Sequence[Map]) -> Span | None:
    """Where a list of maps moves the time."""
    return next((m.target.span.to(m.value.span) for m in maps if _moves_time(m.target)), None)


def _moves_time(target: Access) -> bool:
    field = FIELDS.get(target.output)
    return target.output == "abstime" or (field is not None and field.base == "abstime")


def along_time(axes: Sequence[tuple[str, Expression]]) -> bool:
    """Whether a positional remap moves the time."""
    return any(axis == "time" for axis, _ in axes)


# Errors that lie in a map of the time, but are found in what it reaches.
_ABOUT_MAPS = frozenset({"map-reaches-state", "cannot-read-across"})


def under_map(task: Task[V], moves_time: Span | None) -> Task[V]:
    """What lies under a remap. If that cannot be read at another time, the map is what a performer has to change, so
    that it is shown first."""
    if moves_time is None:
        return task
    return _under_time_map(task, moves_time)


def _under_time_map(task: Task[V], moved_at: Span) -> Task[V]:
    try:
        value: V = yield task
    except WeftError as failure:
        found = failure.diagnostics[0]
        if found.code not in _ABOUT_MAPS or found.related or found.span is None:
            raise
        related = ((found.span, "this is what it reaches"),)
        raise WeftError(replace(found, span=moved_at, related=related)) from None
    return value
