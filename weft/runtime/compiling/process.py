"""The process that compiles: as the player sees it, and what runs in it."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import FrameType
from typing import Literal, TypeAlias

from weft.child import BEAT, Child, Pulse
from weft.codegen.kernel import Unit
from weft.errors import Diagnostic, WeftError, fault
from weft.runtime.compiled import CompiledProgram
from weft.runtime.compiling import SERVER
from weft.runtime.compiling.compiler import Compiler, CompileResult, Saved, TrialMoment, mistakes
from weft.runtime.program import Setup

# The process that compiles, as seen from the one that plays, which goes on undisturbed whatever a text asks of it.
#
# It has Python's lock to itself, leaves a text that nobody waits for any more, and takes nothing with it when it
# crashes. It answers every request with what it made of the text, then with the verdict of the trial, so that the
# program can be loaded while it is tried out.
#
# A text that is abandoned is left within milliseconds: SIGINT makes the process look whether it is asked to, in the
# middle of Python code. Only machine code and libraries go on until they return. The process is killed for that when it
# has spent twice as much since as it takes to start another one.

# How often, in seconds, somebody who waits for an answer looks up.
_GLANCE = 0.01

# Seconds that a process may take to end.
_LEAVE = 1.0

# What the start of a process costs, in seconds of the processor, until one has been measured, and the most that is
# believed.
_START_COSTS, _MOST_COSTS = 1.0, 3.0


_NO_PROCESS = "ended"


class CompilerDiedError(Exception):
    """The process ended in the middle of a text, or could not be started. Carries the reason, in words that follow its
    name."""


@dataclass(frozen=True)
class CompileRequest:
    """A text, and where the performance is at which it would be swapped in. What the player's process has loaded
    already (`known`, by hash) need not be sent again. Answers bear the `number` of their request."""

    number: int
    saved: Saved
    moment: TrialMoment
    known: frozenset[str] = frozenset()


@dataclass(frozen=True)
class OptimizeRequest:
    """Units that run already, for which there may be better code; for some, by their hashes, something stands in. What
    is `bridged` is to be translated for the devices that should run it."""

    number: int
    units: tuple[Unit, ...]
    stand_ins: frozenset[str] = frozenset()
    bridged: CompiledProgram | None = None


@dataclass(frozen=True)
class OptimizeResult:
    """Better code by the hashes of the units, and how many milliseconds it took; what was bridged, translated; and what
    stays as it is because better code could not be made, with the reasons, by the hashes of the units."""

    codes: Mapping[str, object]
    took: float
    translated: tuple[Unit, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AbandonRequest:
    """Nobody waits for the answer of this number any more, if it is not on its way."""

    number: int


Content: TypeAlias = Literal["begun", "abandoned"] | CompileResult | OptimizeResult | tuple[Diagnostic, ...]


@dataclass(frozen=True)
class CompileAnswer:
    """That a text is begun or abandoned, what was made of it, what is wrong with that when it is tried out; or better
    code."""

    number: int
    content: Content


class CompileProcess:
    """The process, started when it is needed. All but `kill` is for one thread."""

    def __init__(
        self, setup: Setup, ended: Callable[[], None] = lambda: None, ahead: Child | None = None
    ) -> None:
        """`ended` is called, by another thread, whenever a process has ended. One that runs `SERVER` may have been
        started `ahead`."""
        self._setup = setup
        self._ended = ended
        self._ahead = ahead
        self._process: Child | None = None
        self._number = 0
        self._began: float | None = None
        self._is_new = True
        self._start_costs = _START_COSTS

    def start(self) -> None:
        """Starts the process, unless it runs. It takes a moment to get ready, which nobody has to wait for. Raises
        CompilerDiedError."""
        if self._process is not None and self._process.poll() is None:
            return
        self.end()
        try:
            ahead, self._ahead = self._ahead, None
            self._process = ahead or Child(SERVER)
            self._process.ended = self._ended
            self._is_new = True
            self._process.connection.send(self._setup)
        except Exception as failure:
            self.end()
            raise CompilerDiedError(f"cannot be started: {failure}") from failure

    def died(self) -> str | None:
        """What it ended of, if that happened while nothing was asked of it; told once."""
        process = self._process
        if process is None or process.poll() is None:
            return None
        self.end()
        return _how(process)

    def ask(self, saved: Saved, moment: TrialMoment, known: frozenset[str]) -> None:
        """Hands over a text; what was asked before is not answered any more. Raises CompilerDiedError."""
        self._send(CompileRequest(self._next_number(), saved, moment, known))

    def change(self, setup: Setup) -> None:
        """What is compiled from now on runs elsewhere. Raises CompilerDiedError."""
        self._setup = setup
        if self._process is not None:
            self._send(setup)

    def improve(
        self, units: tuple[Unit, ...], stand_ins: frozenset[str], bridged: CompiledProgram, give_up: Callable[[], bool]
    ) -> OptimizeResult | None:
        """Better code for some units, and code for what is bridged; None if it was given up. Raises
        CompilerDiedError."""
        self._send(OptimizeRequest(self._next_number(), units, stand_ins, bridged if bridged.units else None))
        content = self._content(give_up)
        return content if isinstance(content, OptimizeResult) else None

    def _next_number(self) -> int:
        self._number += 1
        self._began = None
        return self._number

    def _send(self, message: CompileRequest | OptimizeRequest | Setup) -> None:
        self.start()
        try:
            self._open.send(message)
        except OSError as failure:
            raise CompilerDiedError(self._reason()) from failure

    @property
    def spent(self) -> float | None:
        """How many seconds of the processor it has spent on the text, which tell of the text and not of what else the
        machine is at; None while it has not begun."""
        began, process = self._began, self._process
        return None if began is None or process is None else process.spent - began

    @property
    def has_begun(self) -> bool:
        """Whether it is at the text. For any thread."""
        return self._began is not None

    def made(self, give_up: Callable[[], bool]) -> CompileResult | None:
        """What became of the text; None if it was given up. Raises CompilerDiedError."""
        content = self._content(give_up)
        return content if isinstance(content, CompileResult) else None

    def verdict(self, give_up: Callable[[], bool]) -> tuple[Diagnostic, ...] | None:
        """What is wrong with the program that was made, when it was tried out. For None and errors see `made`."""
        content = self._content(give_up)
        return content if isinstance(content, tuple) else None

    def _content(self, give_up: Callable[[], bool]) -> Content | None:
        """The next answer to what was asked last; None if it was given up before there was one."""
        abandoned: float | None = None
        try:
            while True:
                while not self._open.poll(_GLANCE):
                    if abandoned is None and give_up():
                        self._abandon()
                        abandoned = self.spent or 0.0
                    elif abandoned is not None and (self.spent or 0.0) > abandoned + 2 * self._start_costs:
                        self.end()
                        return None
                answer: CompileAnswer = self._open.recv()
                if answer.number != self._number:
                    continue
                if answer.content == "begun":
                    self._has_begun()
                    if abandoned is not None:
                        self._abandon()
                    continue
                return None if answer.content == "abandoned" else answer.content
        except (EOFError, OSError) as failure:
            raise CompilerDiedError(self._reason()) from failure
        except CompilerDiedError:
            raise
        except Exception as failure:  # whatever unpickling raises
            self.end()
            raise CompilerDiedError(f"gave an answer that cannot be read: {failure}") from failure

    def _abandon(self) -> None:
        """Asks it to leave the text. One that has not begun yet finds the message when it does."""
        self._open.send(AbandonRequest(self._number))
        if self._began is not None and self._process is not None:
            self._process.send_signal(signal.SIGINT)

    def _has_begun(self) -> None:
        if self._process is not None:
            self._began = self._process.spent
            if self._is_new:
                self._is_new = False
                self._start_costs = min(self._began, _MOST_COSTS)

    def _reason(self) -> str:
        """What the process ended of, that has closed its socket."""
        process = self._process
        if process is None:
            return _NO_PROCESS
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LEAVE)
        self.end()
        return _how(process)

    @property
    def _open(self) -> Connection:
        if self._process is None:
            raise CompilerDiedError(_NO_PROCESS)
        return self._process.connection

    def kill(self) -> None:
        """Ends the process, from any thread: whoever waits for an answer learns that it died."""
        process = self._process
        if process is not None:
            with suppress(OSError):
                process.kill()

    def end(self) -> None:
        """Ends the process at once, whatever it is at. May be called twice."""
        process, self._process = self._process, None
        if process is not None:
            process.end()


def _how(process: Child) -> str:
    """What became of a process that has ended: words that follow its name."""
    if process.stood_still:
        return "stood still"
    code = process.returncode
    try:
        return f"ended ({signal.Signals(-code).name if code < 0 else f'code {code}'})"
    except ValueError:
        return f"ended (signal {-code})"


# What runs in the process that compiles: it answers texts over a socket until the player's process is gone.


class _Abandoned(BaseException):
    """Nobody waits for what is being made. Not an `Exception`: whoever catches those goes on with the text."""


def main(descriptor: str, lifeline: str) -> None:
    """Serves the socket of this number. The first message is the `Setup`. For the `lifeline` see `Child`."""
    with suppress(EOFError, OSError), Connection(int(descriptor)) as player:
        _CompileServer(player, Pulse(int(lifeline))).serve()


class _CompileServer:
    """Answers one message after another."""

    def __init__(self, player: Connection, pulse: Pulse) -> None:
        self._player = player
        self._pulse = pulse
        self._may_leave = False
        """Whether it is at something that may be abandoned."""
        signal.signal(signal.SIGINT, self._interrupted)
        sys.unraisablehook = self._not_raised

    def serve(self) -> None:
        """Until the player is gone, which raises EOFError or OSError."""
        compiler: Compiler | CompileResult = CompileResult(None, ())
        is_new = True
        while True:
            message = self._next()
            if isinstance(message, Setup):
                compiler = _compiler(message)
                if is_new:
                    # A text makes many objects at once that stay until it is answered: collecting garbage meanwhile is
                    # in vain.
                    gc.disable()
                    gc.freeze()
                    is_new = False
            elif not isinstance(message, AbandonRequest):
                self._answer(compiler, message)
                del message
                gc.collect()

    def _next(self) -> CompileRequest | OptimizeRequest | AbandonRequest | Setup:
        while not self._player.poll(BEAT):
            self._pulse.beat()
        message: CompileRequest | OptimizeRequest | AbandonRequest | Setup = self._player.recv()
        return message

    def _answer(self, compiler: Compiler | CompileResult, message: CompileRequest | OptimizeRequest) -> None:
        number = message.number
        contents = _contents(compiler, message) if isinstance(message, CompileRequest) else _better(compiler, message)
        self._player.send(CompileAnswer(number, "begun"))
        try:
            while (content := self._made(contents)) is not None:
                self._player.send(CompileAnswer(number, content))
        except _Abandoned:
            self._player.send(CompileAnswer(number, "abandoned"))

    def _made(self, contents: Iterator[Content]) -> Content | None:
        """The next of these. Raises _Abandoned."""
        try:
            self._may_leave = True
            self._interrupted()
            return next(contents, None)
        finally:
            self._may_leave = False

    def _interrupted(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Asks whether the answer is still wanted. Meanwhile only an `AbandonRequest` can arrive."""
        if self._may_leave and self._player.poll():
            self._may_leave = False
            raise _Abandoned

    def _not_raised(self, what: sys.UnraisableHookArgs) -> None:
        """Nobody can catch what is raised in a callback or a destructor: it is tried again after it."""
        if what.exc_type is _Abandoned:
            self._may_leave = True
            signal.raise_signal(signal.SIGINT)
        else:
            sys.__unraisablehook__(what)


def _compiler(setup: Setup) -> Compiler | CompileResult:
    """The compiler, or what to answer in place of it."""
    try:
        return Compiler.of(setup)
    except WeftError as failure:
        return CompileResult(None, failure.diagnostics)
    except Exception as failure:
        return CompileResult(None, (fault("nothing can be compiled", failure),))


def _contents(compiler: Compiler | CompileResult, request: CompileRequest) -> Iterator[Content]:
    """What became of a text; if it became a program, also what is wrong with it."""
    if isinstance(compiler, CompileResult):
        yield compiler
        return
    try:
        made = compiler.compile(request.saved)
        yield made.with_codes(dict.fromkeys(request.known))
    except (EOFError, OSError):
        raise
    except Exception as failure:
        yield CompileResult(None, (fault("weft failed on this text", failure),))
        return
    if made.compiled is not None:
        yield mistakes(made.compiled, compiler.loader, request.moment, made.places)


def _better(compiler: Compiler | CompileResult, wish: OptimizeRequest) -> Iterator[Content]:
    """Better code for units that run already; none where that fails, since what runs can go on."""
    codes: dict[str, object] = {}
    translated: tuple[Unit, ...] = ()
    refused: dict[str, str] = {}

    def refuse(unit: Unit, reason: str) -> None:
        refused[unit.hash] = reason

    started = time.perf_counter()
    if isinstance(compiler, Compiler):
        with suppress(Exception):
            if wish.bridged is not None:
                translated = compiler.loader.translate(wish.bridged).units
            codes = compiler.loader.improve(wish.units, wish.stand_ins, refuse)
    yield OptimizeResult(codes, (time.perf_counter() - started) * 1e3, translated, refused)
