"""The process that compiles, as seen from the one that plays, which goes on undisturbed whatever a text asks of it.

It has Python's lock to itself, may be ended in the middle of a text that nobody waits for any more, and takes nothing
with it when it crashes. It answers every request with what it made of the text, then with the verdict of the trial, so
that the program can be loaded while it is tried out.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Literal, TypeAlias

from weft.codegen.unit import Unit
from weft.errors import Diagnostic
from weft.runtime.compiling.compiler import Made, Saved
from weft.runtime.compiling.trial import Moment
from weft.runtime.playable import Playable
from weft.runtime.setup import Setup

# How often, in seconds, somebody who waits for an answer looks up.
_GLANCE = 0.01

# The path to weft is handed over: it need not be that of a plain `python`, nor be led astray by files beside a patch.
_START = """\
import sys
sys.path[:] = sys.argv[2:]
from weft.runtime.compiling.server import main
from weft.runtime.setup import Setup
main(int(sys.argv[1]))
"""


class CompilerDiedError(Exception):
    """The process ended in the middle of a text, or could not be started. Carries the reason."""


@dataclass(frozen=True)
class Request:
    """A text, and where the performance is at which it would be swapped in. What the player's process has loaded
    already (`known`, by hash) need not be sent again. Answers bear the `number` of their request."""

    number: int
    saved: Saved
    moment: Moment
    known: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Wish:
    """Units that run already, for which there may be better code; for some, by their hashes, something stands in. What
    is `bridged` is to be translated for the devices that should run it."""

    number: int
    units: tuple[Unit, ...]
    stand_ins: frozenset[str] = frozenset()
    bridged: Playable | None = None


@dataclass(frozen=True)
class Improved:
    """Better code by the hashes of the units, and how many milliseconds it took; what was bridged, translated."""

    codes: Mapping[str, object]
    took: float
    translated: tuple[Unit, ...] = ()


Content: TypeAlias = Literal["begun"] | Made | Improved | tuple[Diagnostic, ...]


@dataclass(frozen=True)
class Answer:
    """That a text is begun, what was made of it, what is wrong with that when it is tried out; or better code."""

    number: int
    content: Content


class CompileProcess:
    """The process, started when it is needed. All but `kill` is for one thread."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._number = 0
        self._began: float | None = None

    def start(self) -> None:
        """Starts the process, unless it runs. It takes a moment to get ready, which nobody has to wait for. Raises
        CompilerDiedError."""
        if self._process is not None and self._process.poll() is None:
            return
        self.end()
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                # Neither a fork, which would share the window, nor multiprocessing, which would run the main script
                # anew. A session of its own, since Ctrl-C is for the player alone.
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _START, str(theirs.fileno()), *sys.path],
                    pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    start_new_session=True,
                )  # fmt: skip
            self._connection = Connection(ours.detach())
            self._connection.send(self._setup)
        except Exception as failure:
            self.end()
            raise CompilerDiedError(f"it cannot be started: {failure}") from failure

    def ask(self, saved: Saved, moment: Moment, known: frozenset[str]) -> None:
        """Hands over a text; what was asked before is not answered any more. Raises CompilerDiedError."""
        self._send(Request(self._next_number(), saved, moment, known))

    def change(self, setup: Setup) -> None:
        """What is compiled from now on runs elsewhere. Raises CompilerDiedError."""
        self._setup = setup
        if self._process is not None:
            self._send(setup)

    def improve(
        self, units: tuple[Unit, ...], stand_ins: frozenset[str], bridged: Playable, give_up: Callable[[], bool]
    ) -> Improved | None:
        """Better code for some units, and code for what is bridged; None if it was given up, which leaves the process
        at it until it is done. Raises CompilerDiedError."""
        self._send(Wish(self._next_number(), units, stand_ins, bridged if bridged.units else None))
        content = self._content(give_up, ends=False)
        return content if isinstance(content, Improved) else None

    def _next_number(self) -> int:
        self._number += 1
        self._began = None
        return self._number

    def _send(self, message: Request | Wish | Setup) -> None:
        self.start()
        try:
            self._open.send(message)
        except OSError as failure:
            self.end()
            raise CompilerDiedError(str(failure)) from failure

    @property
    def seconds(self) -> float:
        """How long it has been at the text; 0 while it is not ready for it."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    def made(self, give_up: Callable[[], bool]) -> Made | None:
        """What became of the text; None if it was given up, for which the process is ended. Raises
        CompilerDiedError."""
        content = self._content(give_up)
        return content if isinstance(content, Made) else None

    def verdict(self, give_up: Callable[[], bool]) -> tuple[Diagnostic, ...] | None:
        """What is wrong with the program that was made, when it was tried out. For None and errors see `made`."""
        content = self._content(give_up)
        return content if isinstance(content, tuple) else None

    def _content(self, give_up: Callable[[], bool], ends: bool = True) -> Content | None:
        """The next answer to what was asked last. Giving up `ends` the process, or leaves it at its work."""
        try:
            while True:
                while not self._open.poll(_GLANCE):
                    if give_up():
                        if ends:
                            self.end()
                        return None
                answer: Answer = self._open.recv()
                if answer.number != self._number:
                    continue
                if answer.content == "begun":
                    self._began = time.monotonic()
                    continue
                return answer.content
        except (EOFError, OSError) as failure:
            self.end()
            raise CompilerDiedError("it ended in the middle of this text") from failure
        except Exception as failure:  # whatever unpickling raises
            self.end()
            raise CompilerDiedError(f"its answer cannot be read: {failure}") from failure

    @property
    def _open(self) -> Connection:
        if self._connection is None:
            raise CompilerDiedError("it ended in the middle of this text")
        return self._connection

    def kill(self) -> None:
        """Ends the process, from any thread: whoever waits for an answer learns that it died."""
        process = self._process
        if process is not None:
            with suppress(OSError):
                process.kill()

    def end(self) -> None:
        """Ends the process at once, whatever it is at. May be called twice."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = self._connection = None
