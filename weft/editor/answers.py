"""The process that analyses texts: it answers one question after another about the documents of an editor."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

from weft.backends.hardware import lower_priority
from weft.child import BEAT, Pulse
from weft.contexts import context_table
from weft.editor.checks import Checker
from weft.editor.documents import Document, Documents
from weft.permissions import Permissions


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
    """In place of an answer: the analysis failed for this reason."""

    reason: str


class Answers:
    """Answers questions about documents."""

    def __init__(self, setup: AnalystSetup) -> None:
        self.documents = Documents(setup.encoding)
        contexts = context_table()
        checker = Checker(self.documents, contexts, setup.permissions)
        self.diagnose, self.forecast = checker.diagnose, checker.forecast

    def answer(self, question: Question) -> object:
        """The answer to a question; `Unanswered` if finding it fails."""
        self.documents.update(question.changed)
        try:
            return getattr(self, question.method)(*question.arguments)
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
        while True:
            while not server.poll(BEAT):
                pulse.beat()
            server.send(answers.answer(server.recv()))
