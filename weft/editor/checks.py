"""Diagnostics as one types: at once from the kept build, and in a pause all that `weft check` says."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lsprotocol import types

from weft.contexts import ContextTable
from weft.editor.documents import Document, Documents
from weft.errors import Diagnostic, Source, WeftError, fault
from weft.media.sampled import header_if_whole
from weft.permissions import Permissions
from weft.runtime.compiling.kept import KeptBuild
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.inspect.forecast import Additions, check

# The number of files for which the last build is kept.
_MOST_KEPT = 4

_SEVERITIES = {"error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning}


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
class Diagnosis:
    """What was found about a document, and about the files that it includes, by what the editor calls these."""

    findings: Mapping[str, Sequence[Finding]] = field(default_factory=dict)


class Checker:
    """Finds the diagnostics of documents, one edit after another."""

    def __init__(self, documents: Documents, contexts: ContextTable, permissions: Permissions) -> None:
        self._documents = documents
        self._contexts = contexts
        self._permissions = permissions
        self._kept: OrderedDict[str, KeptBuild] = OrderedDict()

    def diagnose(self, uri: str) -> Diagnosis:
        """The errors of a document, and the warnings that a compile gives."""
        document = self._documents.by_uri[uri]
        kept = self._kept.setdefault(uri, KeptBuild())
        self._kept.move_to_end(uri)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        request = Request(
            document.source, self._contexts, probe=header_if_whole, permissions=self._permissions,
            read=self._documents.read,
        )  # fmt: skip
        try:
            found: Iterable[Diagnostic] = build(request, kept=kept).warnings
        except WeftError as failure:
            found = failure.diagnostics
        except Exception as failure:
            del self._kept[uri]  # it may be half of one build and half of another
            found = [fault("weft failed on this text", failure)]
        return self._diagnosis(document, found)

    def forecast(self, uri: str) -> Diagnosis:
        """All that `weft check` says of a document."""
        document = self._documents.by_uri[uri]
        try:
            found: Iterable[Diagnostic] = check(
                document.source, self._contexts, header_if_whole, self._permissions, _measure, self._documents.read
            )
        except Exception as failure:
            found = [fault("weft failed on this text", failure)]
        return self._diagnosis(document, found)

    def _diagnosis(self, document: Document, found: Iterable[Diagnostic]) -> Diagnosis:
        findings: dict[str, list[Finding]] = {document.uri: []}
        for each in found:
            uri = document.uri if each.span is None else self._documents.uri_of(each.span.source)
            findings.setdefault(uri, []).append(self._finding(each))
        return Diagnosis(findings)

    def _finding(self, found: Diagnostic) -> Finding:
        documents = self._documents
        nowhere = types.Position(0, 0)
        related = [types.DiagnosticRelatedInformation(documents.location(s), words) for s, words in found.related]
        shown = types.Diagnostic(
            range=documents.range(found.span) if found.span else types.Range(nowhere, nowhere),
            message=found.message + (f"\n{found.hint}" if found.hint else ""), severity=_SEVERITIES[found.severity],
            code=found.code, source="weft", related_information=related or None,
        )  # fmt: skip
        return Finding(shown, self._correction(found))

    def _correction(self, found: Diagnostic) -> Correction | None:
        if found.fix is None or found.span is None or found.fix[0].source is not found.span.source:
            return None
        place, text = found.fix
        return Correction(self._documents.range(place), text, True)


def _measure(program: Build, source: Source, additions: Additions) -> Sequence[Diagnostic]:
    from weft.runtime.inspect.pace import too_slow  # importing what draws takes as long as checking most patches

    return too_slow(program, source, additions)
