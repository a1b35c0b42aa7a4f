"""The process that compiles, as seen from the one that plays, which goes on undisturbed whatever a text asks of it.

It has Python's lock to itself, may be ended in the middle of a text that nobody waits for any more, and takes nothing
with it when it crashes. It answers every request twice: with what it made of the text, then with the verdict of the
trial, so that the program can be loaded while it is tried out.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

from weft.errors import Diagnostic
from weft.runtime.compiler import Made, Saved, Setup
from weft.runtime.trial import Moment

# How often, in seconds, somebody who waits for an answer looks up.
_GLANCE = 0.05


class CompilerDiedError(Exception):
    """The process ended in the middle of a text."""


@dataclass(frozen=True)
class Request:
    """A text, and where the performance is at which it would be swapped in. What the player's process has loaded
    already (`known`, by hash) need not be sent again."""

    saved: Saved
    moment: Moment
    known: frozenset[str] = frozenset()


class CompileProcess:
    """The process, started when it is needed. All of it is for one thread."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def start(self) -> None:
        """Starts the process, unless it runs. It takes a moment to get ready, which nobody has to wait for."""
        if self._process is not None and self._process.poll() is None:
            return
        self.end()
        ours, theirs = socket.socketpair()
        with theirs:
            # Neither a fork, which would share the window, nor multiprocessing, which would run the main script anew.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "weft.runtime.compile_server", str(theirs.fileno())],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        self._connection = Connection(ours.detach())
        self._connection.send(self._setup)

    def ask(self, request: Request) -> None:
        """Hands over a text. Raises CompilerDiedError."""
        try:
            self.start()
            self._open.send(request)
        except OSError as failure:
            self.end()
            raise CompilerDiedError from failure

    def made(self, give_up: Callable[[], bool]) -> Made | None:
        """What became of the text; None if it was given up. Raises CompilerDiedError."""
        answer = self._answer(give_up)
        return answer if isinstance(answer, Made) else None

    def verdict(self, give_up: Callable[[], bool]) -> tuple[Diagnostic, ...] | None:
        """What is wrong with the program made last, when it was tried out. For None and errors see `made`."""
        answer = self._answer(give_up)
        return answer if isinstance(answer, tuple) else None

    def _answer(self, give_up: Callable[[], bool]) -> object:
        try:
            while not self._open.poll(_GLANCE):
                if give_up():
                    self.end()
                    return None
            return self._open.recv()
        except (EOFError, OSError) as failure:
            self.end()
            raise CompilerDiedError from failure

    @property
    def _open(self) -> Connection:
        if self._connection is None:
            raise CompilerDiedError
        return self._connection

    def end(self) -> None:
        """Ends the process at once, whatever it is at. May be called twice."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = self._connection = None
