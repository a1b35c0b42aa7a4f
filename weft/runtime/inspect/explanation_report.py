"""An explanation as JSON, for `weft why --json` and for editors."""

from __future__ import annotations

import math
from typing import Any

from weft.errors import Span
from weft.runtime.inspect.explanation import Explanation


def report_of(found: Explanation) -> dict[str, Any]:
    """An explanation as JSON; docs/interfaces.md has its fields."""
    place, moment = found.place, found.place.moment
    return {
        "statement": found.sink,
        "context": found.context,
        "place": {"x": _json(place.x), "y": _json(place.y), "channel": _json(place.channel),
                  "time": _json(moment.abstime)},
        "pixel": found.pixel,
        "ticks": found.ticks,
        "ticks_before": found.ticks_before,
        "followed": found.followed,
        "outputs": found.outputs,
        "nodes": [
            {
                "kind": node.kind, "name": node.name, "value": _json(node.value), **_place(node.span),
                "at": [{"name": name, "value": _json(value)} for name, value in node.place],
                "taken": node.taken, "reads": node.reads,
            }
            for node in found.nodes
        ],
        "influences": [
            {
                "name": each.name, "value": _json(each.value), **_place(each.span), "effect": each.effect,
                "slopes": list(map(_json, each.slopes)), "change": _json(each.size), "is_partial": each.is_partial,
            }
            for each in found.influences
        ],
        "slopes": {
            "x": list(map(_json, found.slopes["x"])), "y": list(map(_json, found.slopes["y"])),
            "channel": list(map(_json, found.slopes["channel"])), "time": list(map(_json, found.slopes["abstime"])),
        },
        "notes": found.notes,
    }  # fmt: skip


def _place(span: Span | None) -> dict[str, object]:
    """The place of something in the text; null for what is not in a text."""
    if span is None:
        return {"file": None, "line": None, "column": None, "end_line": None, "end_column": None}
    (line, column), (end_line, end_column) = map(span.source.position, (span.start, span.end))
    return {"file": span.source.name, "line": line, "column": column, "end_line": end_line, "end_column": end_column}


def _json(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)

