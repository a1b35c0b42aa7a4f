"""Calls of sources: what they give, over which axes, and of which file."""

from __future__ import annotations

from weft.errors import error
from weft.graph.arguments import match_arguments
from weft.sources import MediaKind, SourceSpec
from weft.syntax.ast import Call, Text


def source_shape(call: Call, spec: SourceSpec) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Outputs and axes of a source call; for `load` these depend on the kind of file."""
    if not spec.media:
        return spec.outputs, spec.axes
    path = source_text(call, spec)
    kind = media_kind(path.value, spec)
    if kind is None:
        endings = ", ".join(e for m in spec.media for e in m.endings)
        raise error("unknown-media", f'"{path.value}" does not end like a picture, film or sound', path.span,
                    f"known endings: {endings}")  # fmt: skip
    return kind.outputs, kind.axes


def media_kind(path: str, spec: SourceSpec) -> MediaKind | None:
    """The kind of file that a path names, by its ending."""
    ending = path.rpartition(".")[2].lower()
    return next((m for m in spec.media if ending in m.endings), None)


def source_text(call: Call, spec: SourceSpec) -> Text:
    """The string that a source is called with. Raises WeftError if it is not a string literal."""
    values = match_arguments(spec.name, spec.params, call.args, call.span)
    for param, value in zip(spec.params, values, strict=True):
        if param.kind == "text" and value is not None:
            if isinstance(value, Text):
                return value
            raise error("needs-a-string", f'{spec.name} needs "{param.name}" as text in quotes', value.span,
                        f"for example {spec.example}")  # fmt: skip
    raise TypeError(f"{spec.name} takes no string")
