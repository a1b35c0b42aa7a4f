"""Diagnostics as one types: at once from the kept build, and in a pause all that `weft check` says."""

from __future__ import annotations

import gc
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from lsprotocol import types

from weft.contexts import VISUAL, ContextSpec, ContextTable, Sweep
from weft.editor.documents import Document, Documents
from weft.editor.questions import Correction, Diagnosis, Finding, InstanceFacts
from weft.errors import CLOSE_NAME, Diagnostic, Source, WeftError, fault
from weft.media.sampled import header_if_whole
from weft.names import StrandRef
from weft.permissions import Permissions
from weft.recently_used import RecentlyUsed
from weft.runtime.compiling.kept import KeptBuild
from weft.runtime.compiling.stages import Build, CheckedMeaning, Request, build, understood
from weft.runtime.inspect.forecast import Additions, check
from weft.runtime.inspect.statement_costs import costs_of_statements
from weft.runtime.inspect.time_curves import TimeCurves
from weft.runtime.program.findings import place_named

# The number of files for which the last build is kept.
_MOST_KEPT = 4

# The most strands of a document that are followed.
_MOST_CURVES = 12

# From the most frequent to the rarest.
_RATES: Mapping[Sweep, str] = {
    "element": "each sample", "row": "each row", "column": "each column", "frame": "each frame", "once": "once",
}  # fmt: skip

# A hint that is nothing but a name.
_MEANT = re.compile(rf'{CLOSE_NAME} "([^"\s]+)"\?')

_SEVERITIES = {"error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning}


class Checker:
    """Finds the diagnostics of documents, one edit after another."""

    def __init__(self, documents: Documents, contexts: ContextTable, permissions: Permissions) -> None:
        self._documents = documents
        self._contexts = contexts
        self._permissions = permissions
        self._kept: RecentlyUsed[str, KeptBuild] = RecentlyUsed(_MOST_KEPT)
        self._meant: RecentlyUsed[str, tuple[Document, CheckedMeaning]] = RecentlyUsed(_MOST_KEPT)
        """What documents mean that were without mistakes when they were looked at last."""
        self._curves: tuple[Document, TimeCurves | None] | None = None
        """What can be evaluated of the document that was asked about last."""

    def diagnose(self, uri: str) -> Diagnosis:
        """The errors of a document, and the warnings that a compile gives."""
        document = self._documents.by_uri[uri]
        kept = self._kept.get_or_make(uri, KeptBuild)
        self._meant.forget(uri)
        try:
            meaning = understood(self._request(document), kept)
            self._meant.keep(uri, (document, meaning))
            found: Iterable[Diagnostic] = meaning.warnings
        except WeftError as failure:
            found = failure.diagnostics
        except Exception as failure:
            self._kept.forget(uri)  # it may be half of one build and half of another
            found = [fault("weft failed on this text", failure)]
        return self._diagnosis(document, found)

    def facts(self, uri: str) -> Mapping[str, InstanceFacts] | None:
        """What is known of the instances of a document; None if it has changed since it was looked at, or has mistakes.
        It takes longer than to find mistakes, and is for a pause."""
        known, kept = self._meant.find(uri), self._kept.find(uri)
        if known is None or kept is None or known[0] is not self._documents.by_uri[uri]:
            return None
        if kept.has_grown:
            self._diagnose_anew(uri)
            known, kept = self._meant.find(uri), self._kept.find(uri)
        return self._facts(known[1], kept) if known is not None and kept is not None else None

    def _diagnose_anew(self, uri: str) -> Diagnosis:
        """The errors of a document, found from scratch: all is dropped that earlier texts have left."""
        self._kept.forget(uri)
        found = self.diagnose(uri)
        gc.collect()
        return found

    def _request(self, document: Document) -> Request:
        return Request(
            document.source, self._contexts, probe=header_if_whole, permissions=self._permissions,
            read=self._documents.read,
        )  # fmt: skip

    def _facts(self, made: CheckedMeaning, kept: KeptBuild) -> Mapping[str, InstanceFacts]:
        graph = made.checked.graph(self._contexts)
        over, contexts = kept.over(), {ref: strand.contexts for ref, strand in graph.strands().items()}
        found: dict[str, InstanceFacts] = {}
        for name, instance in made.patch.instances.items():
            refs = {output: StrandRef(name, output) for output in instance.outputs}
            among = list(dict.fromkeys(each for ref in refs.values() for each in contexts.get(ref, ())))
            specs = [self._contexts[each] for each in among]
            rates = {output: _rate(over[ref], specs) if ref in over else "" for output, ref in refs.items()}
            found[name] = InstanceFacts(rates, among)
        return found

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

    def costs(self, uri: str) -> Mapping[int, float]:
        """The shares of the work at each pixel that the statements of a document have, by their lines from 0."""
        document = self._documents.by_uri[uri]
        request = self._request(document)
        try:
            costs = costs_of_statements(build(request).units, document.source)
        except WeftError:
            return {}
        return {each.place.source.position(each.place.start)[0] - 1: each.share for each in costs if each.place}

    def curves(self, uri: str, now: float, given: Mapping[str, float]) -> Mapping[int, Sequence[float]]:
        """What the strands of a document that change with the time alone have been up to a time of a performance, by
        their lines from 0. `given` are the values of parameters."""
        document = self._documents.by_uri[uri]
        if self._curves is None or self._curves[0] is not document:
            self._curves = document, self._curves_of(document)
        curves = self._curves[1]
        found: dict[int, Sequence[float]] = {}
        for strand, values in (curves.until(now, given) if curves is not None else {}).items():
            if (place := place_named(document.source, strand.partition("@")[0])) is not None:
                found[document.source.position(place.start)[0] - 1] = values
        return found

    def _curves_of(self, document: Document) -> TimeCurves | None:
        request = self._request(document)
        kept = KeptBuild()
        try:
            made = understood(request, kept)
        except WeftError:
            return None
        parameters = {each.name.name for each in made.patch.parameters}
        strands = [
            f"{name}@{next(iter(facts.outputs))}" for name, facts in self._facts(made, kept).items()
            if set(facts.outputs.values()) == {_RATES["frame"]} and name.isidentifier() and name not in parameters
        ]  # fmt: skip
        return TimeCurves.among(request, strands[:_MOST_CURVES])

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
        if found.span is None:
            return None
        if found.fix is not None and found.fix[0].source is found.span.source:
            place, text = found.fix
            is_windows = "\r\n" in place.source.text
            return Correction(self._documents.range(place), text.replace("\n", "\r\n") if is_windows else text, True)
        meant = _MEANT.fullmatch(found.hint or "")
        if meant is None:
            return None
        is_quoted = found.span.text.startswith('"')
        return Correction(self._documents.range(found.span), f'"{meant[1]}"' if is_quoted else meant[1], False)


def _rate(over: Collection[str], contexts: Sequence[ContextSpec]) -> str:
    """How often a strand that depends on this is computed, in words."""
    if not over:
        return "constant"
    found = []
    for spec in contexts or (VISUAL,):
        sweeps = {"frame" if each == "tick" else spec.sweep_of(each) for each in over}
        if {"row", "column"} <= sweeps:
            found.append("each pixel")
        else:
            found.append(next(_RATES[sweep] for sweep in _RATES if sweep in sweeps))
    return ", ".join(dict.fromkeys(found))


def _measure(program: Build, source: Source, additions: Additions) -> Sequence[Diagnostic]:
    from weft.runtime.inspect.pace import too_slow  # importing what draws takes as long as checking most patches

    return too_slow(program, source, additions)
