"""The process that compiles: whatever a text asks of it, the one that plays goes on undisturbed.

It has Python's lock to itself, may be ended in the middle of a text that nobody waits for any more, and takes nothing
with it when it crashes. It answers every request twice: with what it made of the text, then with the verdict of the
trial, so that the program can be loaded while it is tried out.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from weft.errors import Diagnostic
from weft.runtime.compiler import Compiler, Made, Saved, Setup
from weft.runtime.trial import Moment, mistakes

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
    """The process as seen from the one that plays. All of it is for one thread."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    def start(self) -> None:
        """Starts the process, unless it runs. It takes a moment to get ready, which nobody has to wait for."""
        if self._process is not None and self._process.is_alive():
            return
        self.end()
        context = multiprocessing.get_context("spawn")  # a fork would share the window and the sound
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._setup), name="weft-compile", daemon=True)
        process.start()
        theirs.close()
        self._process, self._connection = process, ours

    def ask(self, request: Request) -> None:
        """Hands over a text. Raises CompilerDiedError."""
        self.start()
        try:
            self._open.send(request)
        except OSError as failure:
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
            self._process.join()
        self._process = self._connection = None


def _serve(connection: Connection, setup: Setup) -> None:
    """The process: answers requests until the other end is closed, or dies."""
    # Ctrl-C is for the player, who ends this process with its own.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    compiler = setup.compiler()
    # A text makes many objects at once that stay until it is answered: collecting garbage meanwhile is in vain.
    gc.disable()
    gc.freeze()
    with suppress(EOFError, OSError):
        while True:
            request = connection.recv()
            made = _attempt(compiler, request.saved)
            connection.send(made.with_codes(dict.fromkeys(request.known)))
            if made.playable is not None:
                connection.send(mistakes(made.playable, compiler.stage, request.moment, made.places))
            del request, made
            gc.collect()


def _attempt(compiler: Compiler, saved: Saved) -> Made:
    try:
        return compiler.compile(saved)
    except Exception as failure:
        words = f"weft itself failed on this text ({type(failure).__name__}: {failure})"
        hint = "this is a bug in weft: WEFT_DEBUG=1 weft check shows where"
        return Made(None, (Diagnostic("error", "internal", words, None, hint),))
