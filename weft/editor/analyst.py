"""The server's side of a process that analyses texts: it starts when it is needed, and again when it has failed."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from weft.child import Child
from weft.codes.rows import InternalError
from weft.editor import ANALYST
from weft.editor.documents import Document
from weft.editor.questions import AnalystSetup, Question, RefusedRequestError, Unanswered

# Seconds between two looks at a process that has not answered yet.
_GLANCE = 0.2

# The seconds of processor time that an answer may take. The longest text needs a third of that on a slow machine.
PATIENCE = 60.0

# Seconds that a process may take to end.
_LEAVE = 1.0


class AnalysisError(InternalError):
    """There is no answer. The message is the reason, in words that follow "the analysis"."""


class Analyst:
    """Asks a process about documents, one question after another. Its methods are for one event loop."""

    def __init__(self, setup: AnalystSetup, patience: float = PATIENCE) -> None:
        self._setup = setup
        self._patience = patience
        self._is_over = False
        self._child: Child | None = None
        self._known: dict[str, Document] = {}
        """The documents that the process has."""
        # A child ends with the thread that started it, so all is done by one thread.
        self._thread = ThreadPoolExecutor(1, "weft-analyst")

    async def ask(self, documents: Mapping[str, Document], method: str, *arguments: object) -> object:
        """The answer of a method of `Answers`, given these documents. Raises AnalysisError, and RefusedRequestError."""
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, self._asked, dict(documents), method, arguments
        )

    def end(self) -> None:
        """Ends the process, for good. A wait for its answer ends as well."""
        self._is_over = True
        child = self._child
        if child is not None:
            with suppress(OSError):
                child.kill()
        self._thread.shutdown(wait=False, cancel_futures=True)

    # --- by the thread ---

    def _asked(self, documents: Mapping[str, Document], method: str, arguments: tuple[object, ...]) -> object:
        """See `ask`. A process that has ended since the last question, or ends at this one, is replaced once."""
        reason = ""
        for _ in range(2):
            if self._is_over:
                raise AnalysisError("is over")
            try:
                child = self._started()
                answer = self._answer(child, documents, method, arguments)
            except (EOFError, OSError):
                reason = self._ended()
                continue
            if isinstance(answer, Unanswered) and answer.is_refused:
                raise RefusedRequestError(answer.reason)
            if isinstance(answer, Unanswered):
                raise AnalysisError(f"failed ({answer.reason})")
            return answer
        raise AnalysisError(reason)

    def _started(self) -> Child:
        if self._child is None or self._child.poll() is not None:
            self._ended()
            self._child = Child(ANALYST)
            self._child.connection.send(self._setup)
            self._child.connection.recv()  # starting it takes time that no question takes
        return self._child

    def _answer(
        self, child: Child, documents: Mapping[str, Document], method: str, arguments: tuple[object, ...]
    ) -> object:
        changed: dict[str, Document | None] = {
            uri: document for uri, document in documents.items() if self._known.get(uri) is not document
        }
        changed |= dict.fromkeys(self._known.keys() - documents.keys())
        began = child.spent
        child.connection.send(Question(changed, method, arguments))
        self._known = dict(documents)
        while not child.connection.poll(_GLANCE):
            if child.spent - began > self._patience:
                self._ended()
                raise AnalysisError("took too long")
        return child.connection.recv()

    def _ended(self) -> str:
        """Ends the process, and says how it has ended."""
        child, self._child, self._known = self._child, None, {}
        if child is None:
            return "has ended"
        with suppress(subprocess.TimeoutExpired):
            child.wait(_LEAVE if child.connection.closed or child.poll() is not None else 0.1)
        child.end()
        return child.ending
