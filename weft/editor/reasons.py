"""Why a pixel or a sample of a text in an editor has its value: the command `weft.why`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from weft.contexts import ContextTable
from weft.editor.documents import Documents
from weft.editor.questions import RefusedRequestError
from weft.errors import WeftError
from weft.permissions import Permissions
from weft.runtime.films.offline import initial_inputs
from weft.runtime.hands.clock import Moment
from weft.runtime.inspect.explanation import PlaceAndTime, WhyQuestion, explain
from weft.runtime.inspect.explanation_report import report_of
from weft.runtime.inspect.explanation_text import explanation_rows, rows_as_text
from weft.runtime.inspect.strands import read_patch

# What a place may say, besides the name of an output statement or strand; and what it says if it is silent.
_USUAL: Mapping[str, float] = {"x": 0.5, "y": 0.5, "time": 0.0, "channel": 0.0}


def reasons(
    documents: Documents, contexts: ContextTable, permissions: Permissions, uri: str, place: Mapping[str, Any]
) -> dict[str, Any]:
    """The report of `weft why --json` about a document, and its lines for people. Raises RefusedRequestError for a
    place that is none, and with the first mistake of the text."""
    document = documents.by_uri.get(uri)
    if document is None:
        raise RefusedRequestError("this text is not open")
    x, y, seconds, channel = (_number(place, name) for name in _USUAL)
    name = place.get("name")
    if unknown := place.keys() - _USUAL.keys() - {"name"}:
        raise RefusedRequestError(f"a place has {', '.join(_USUAL)} and a name, and no {', '.join(sorted(unknown))}")
    if name is not None and not isinstance(name, str):
        raise RefusedRequestError("the name is that of an output statement or a strand")
    try:
        patch = read_patch(document.source, contexts, permissions, documents.read)
        moment = Moment(math.floor(seconds * patch.settings["fps"] + 1e-3), seconds, inputs=initial_inputs(patch))
        question = WhyQuestion(
            document.source, contexts, PlaceAndTime(x, y, channel, moment), name, permissions=permissions,
            read=documents.read,
        )  # fmt: skip
        found = explain(question, patch)
    except WeftError as failure:
        raise RefusedRequestError(failure.diagnostics[0].message) from failure
    return {**report_of(found), "text": rows_as_text(explanation_rows(found))}


def _number(place: Mapping[str, Any], name: str) -> float:
    value = place.get(name, _USUAL[name])
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise RefusedRequestError(f"{name} is a number from 0")
    if name in ("x", "y") and value > 1:
        raise RefusedRequestError(f"{name} is a place in the picture, from 0 to 1")
    return float(value)
