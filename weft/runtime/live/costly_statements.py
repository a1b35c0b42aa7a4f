"""The most expensive statements of the text that plays, for the figures over the picture.

A process finds them while figures are shown, once for each text. A thread waits for it, so a frame only takes what has
been found.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from weft.child import Child
from weft.runtime.inspect.cost_process import COST_FINDER, CostQuestion

# Seconds between two looks at a process that has not answered, and the processor time that an answer may take.
_GLANCE, _PATIENCE = 0.2, 30.0


class CostlyStatements:
    """What the figures say of the statements of one text after another."""

    def __init__(self) -> None:
        self._found: tuple[CostQuestion, tuple[str, ...]] | None = None
        self._thread: threading.Thread | None = None
        self._child: Child | None = None
        self._is_over = False

    def of(self, question: CostQuestion) -> tuple[str, ...]:
        """The lines about a text; none until they are found, which this begins."""
        if self._found is not None and self._found[0] == question:
            return self._found[1]
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._find, args=(question,), name="weft-costs", daemon=True)
            self._thread.start()
        return ()

    def close(self) -> None:
        """Ends the process. May be called twice."""
        self._is_over = True
        child = self._child
        if child is not None:
            with suppress(OSError):
                child.kill()

    def _find(self, question: CostQuestion) -> None:
        lines: tuple[str, ...] = ()
        with suppress(EOFError, OSError):
            child = self._child = Child(COST_FINDER)
            child.connection.send(question)
            while not self._is_over and child.spent < _PATIENCE:
                if child.connection.poll(_GLANCE):
                    lines = child.connection.recv()
                    break
            child.end()
        self._found = question, lines
