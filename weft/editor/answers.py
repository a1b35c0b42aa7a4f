"""The process that analyses texts: it answers one question after another about the documents of an editor."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from lsprotocol import types

from weft.backends.hardware import lower_priority
from weft.child import BEAT, Pulse
from weft.contexts import context_table
from weft.editor.checks import Checker
from weft.editor.documents import Documents
from weft.editor.explaining import hover_at, signature_at
from weft.editor.navigation import Navigator
from weft.editor.outlines import (
    colour_as_text, colours_of, folds_of, links_of, outline_of, selection_at, style_of, tokens_of
)
from weft.editor.proposals import Proposer
from weft.editor.questions import AnalystSetup, InstanceFacts, Question, RefusedRequestError, Unanswered
from weft.editor.read_texts import ReadText, TextReader
from weft.editor.reasons import reasons
from weft.editor.workspace_symbols import WorkspaceSymbols

# The generations of objects that are searched for garbage after this many heartbeats without a question: among all of
# them takes a tenth of a second, which the next question would often have to wait.
_COLLECTS = {1: 1, 12: 2}

# The seconds without a question that are a pause.
_PAUSE = 0.1


class Answers:
    """Answers questions about documents."""

    def __init__(self, setup: AnalystSetup) -> None:
        self.documents = Documents(setup.encoding)
        self._contexts = context_table()
        self._permissions = setup.permissions
        checker = Checker(self.documents, self._contexts, setup.permissions)
        self.diagnose, self.forecast, self.costs = checker.diagnose, checker.forecast, checker.costs
        self.curves, self.facts = checker.curves, checker.facts
        self._reader = TextReader(self.documents, self._contexts, setup.permissions)
        self._proposer = Proposer(self.documents, self._contexts, setup.permissions)
        self._navigator = Navigator(self.documents, self._reader, self._contexts, setup.permissions)
        self._symbols = WorkspaceSymbols(self.documents, self._contexts)
        self._facts: dict[str, Mapping[str, InstanceFacts]] = {}
        """What was known of the instances of each document when it was last without mistakes."""

    def learn(self, uri: str, facts: Mapping[str, InstanceFacts]) -> None:
        """Takes what is known of the instances of a document."""
        self._facts[uri] = facts

    # --- about a place ---

    def _at(self, uri: str, position: types.Position) -> tuple[ReadText, int]:
        reading = self._reader.reading(uri)
        return reading, reading.positions.offset(position)

    def _recent(self, uri: str, position: types.Position) -> tuple[ReadText, int]:
        reading = self._reader.recent(uri)
        return reading, reading.positions.offset(position)

    def hover(self, uri: str, position: types.Position) -> types.Hover | None:
        """What is to be said about a name."""
        return hover_at(*self._at(uri, position), self._facts.get(uri, {}))

    def signatures(self, uri: str, position: types.Position) -> types.SignatureHelp | None:
        """The parameters of the call around a place."""
        return signature_at(*self._recent(uri, position))

    def proposals(self, uri: str, position: types.Position, shares_place: bool) -> types.CompletionList:
        """What may be typed at a place."""
        found = self._proposer.proposals(*self._recent(uri, position), self._facts.get(uri, {}), shares_place)
        for item in found.items:
            if isinstance(item.data, dict):
                item.data["uri"] = uri
        return found

    def explained(self, item: types.CompletionItem) -> types.CompletionItem:
        """A proposal with its documentation."""
        uri = item.data.get("uri") if isinstance(item.data, dict) else None
        return self._proposer.explained(item, self._reader.reading(uri) if uri in self.documents.by_uri else None)

    def definition(self, uri: str, position: types.Position) -> list[types.Location]:
        """Where a name is bound."""
        return self._navigator.definition(uri, self._at(uri, position)[1])

    def references(self, uri: str, position: types.Position, with_definition: bool) -> list[types.Location]:
        """Where a symbol is mentioned."""
        return self._navigator.references(uri, self._at(uri, position)[1], with_definition)

    def highlights(self, uri: str, position: types.Position) -> list[types.DocumentHighlight]:
        """Where a symbol is mentioned in the same text."""
        return self._navigator.highlights(uri, self._at(uri, position)[1])

    def may_rename(self, uri: str, position: types.Position) -> types.Range:
        """The place of the name that would be renamed."""
        return self._navigator.may_rename(uri, self._at(uri, position)[1])

    def rename(self, uri: str, position: types.Position, name: str) -> types.WorkspaceEdit:
        """The edits that rename a symbol."""
        return self._navigator.rename(uri, self._at(uri, position)[1], name)

    def selections(self, uri: str, positions: Sequence[types.Position]) -> list[types.SelectionRange]:
        """What is selected step by step around some places."""
        return [selection_at(*self._at(uri, position)) for position in positions]

    # --- about all texts ---

    def symbols(self, query: str, folders: Sequence[str]) -> list[types.WorkspaceSymbol]:
        """What open texts, and patches in these folders, define under such a name."""
        return self._symbols.found(query, folders)

    # --- about a whole text ---

    def outline(self, uri: str) -> list[types.DocumentSymbol]:
        """The statements of a text."""
        return outline_of(self._reader.reading(uri))

    def folds(self, uri: str) -> list[types.FoldingRange]:
        """What folds."""
        return folds_of(self._reader.reading(uri))

    def tokens(self, uri: str) -> list[int]:
        """What each token is."""
        return tokens_of(self._reader.reading(uri))

    def colours(self, uri: str) -> list[types.ColorInformation]:
        """The colours that can be picked."""
        return colours_of(self._reader.reading(uri))

    def picked(self, uri: str, place: types.Range, colour: types.Color) -> list[types.ColorPresentation]:
        """How a picked colour is written."""
        reading, start = self._at(uri, place.start)
        text = colour_as_text(colour, reading.source.text[start : reading.positions.offset(place.end)])
        return [types.ColorPresentation(text, types.TextEdit(place, text))]

    def links(self, uri: str) -> list[types.DocumentLink]:
        """The files that a text names."""
        return links_of(self._reader.reading(uri), self.documents)

    def style(self, uri: str) -> list[types.TextEdit] | None:
        """The edits that bring a text in style."""
        return style_of(self._reader.reading(uri), self._contexts)

    def why(self, uri: str, place: Mapping[str, Any]) -> dict[str, Any]:
        """Why a pixel or a sample has its value."""
        return reasons(self.documents, self._contexts, self._permissions, uri, place)

    def prepare(self) -> None:
        """Does in a pause what a question would have to wait for."""
        self._reader.prepare()

    def answer(self, question: Question) -> object:
        """The answer to a question; `Unanswered` if finding it fails."""
        self.documents.update(question.changed)
        try:
            return getattr(self, question.method)(*question.arguments)
        except RefusedRequestError as refusal:
            return Unanswered(str(refusal), is_refused=True)
        except Exception as failure:
            return Unanswered(f"{type(failure).__name__}: {failure}")


def main(descriptor: str, lifeline: str) -> None:
    """Serves the socket with this descriptor until the server is gone. For the `lifeline` see `Child`."""
    pulse = Pulse(int(lifeline))
    with suppress(EOFError, OSError), Connection(int(descriptor)) as server:
        setup = server.recv()
        if setup.is_patient:
            lower_priority()
        answers = Answers(setup)
        server.send(None)  # it is ready
        # Most of what is made for a text lives until the next one, so garbage is collected in pauses.
        gc.disable()
        gc.freeze()
        while True:
            if not server.poll(_PAUSE):
                answers.prepare()
                idle = 0
                while not server.poll(BEAT):
                    pulse.beat()
                    idle += 1
                    if idle in _COLLECTS:
                        gc.collect(_COLLECTS[idle])
            server.send(answers.answer(server.recv()))
