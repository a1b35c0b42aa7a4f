"""What the server and the processes that analyse say to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from lsprotocol import types

from weft.codes.rows import InternalError
from weft.editor.documents import Document
from weft.permissions import Permissions

# --- questions ---


@dataclass(frozen=True)
class AnalystSetup:
    """The first message: how the editor counts, and what patches may open."""

    encoding: str
    permissions: Permissions
    is_patient: bool
    """Whether its answers may come late."""


@dataclass(frozen=True)
class Question:
    """A method of `Answers` to call, after the documents have `changed`."""

    changed: Mapping[str, Document | None]
    method: str
    arguments: tuple[object, ...] = ()


@dataclass(frozen=True)
class Unanswered:
    """In place of an answer: the analysis failed for this reason, or the request is refused for it."""

    reason: str
    is_refused: bool = False


class RefusedRequestError(InternalError):
    """A request of the editor that is refused. The message says why, to the performer."""


# --- answers ---


@dataclass(frozen=True)
class Correction:
    """A text that corrects the mistake of a diagnostic, and its place. It is `sure` if `weft check --fix` would write
    it."""

    range: types.Range
    text: str
    is_sure: bool


@dataclass(frozen=True)
class Finding:
    """A diagnostic as editors show it, and what corrects it in the same file, if that is known."""

    shown: types.Diagnostic
    correction: Correction | None = None


@dataclass(frozen=True)
class InstanceFacts:
    """What a build shows of an instance: its outputs, each with how often it is computed in words; and the contexts
    that evaluate it."""

    outputs: Mapping[str, str]
    contexts: Sequence[str]


@dataclass(frozen=True)
class Diagnosis:
    """What was found about a document, and about the files that it includes, by what the editor calls these."""

    findings: Mapping[str, Sequence[Finding]] = field(default_factory=dict)


TOKEN_TYPES: Final = (
    "variable", "property", "function", "parameter", "keyword", "number", "string", "operator", "comment", "macro",
    "namespace",
)  # fmt: skip
"""The kinds of tokens, by their numbers."""

TOKEN_MODIFIERS: Final = ("declaration", "defaultLibrary", "readonly")
"""What a token may be besides, each a bit."""
