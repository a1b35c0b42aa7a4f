"""What runs in the process that compiles: it answers texts over a socket until the player's process is gone."""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from types import FrameType

from weft.child import BEAT, Pulse
from weft.codegen.unit import Unit
from weft.errors import WeftError, fault
from weft.runtime.compiling.compiler import Compiler, Made
from weft.runtime.compiling.process import Abandon, Answer, Content, Improved, Request, Wish
from weft.runtime.compiling.trial import mistakes
from weft.runtime.setup import Setup


class _Abandoned(BaseException):
    """Nobody waits for what is being made. Not an `Exception`: whoever catches those goes on with the text."""


def main(descriptor: str, lifeline: str) -> None:
    """Serves the socket of this number. The first message is the `Setup`. For the `lifeline` see `Child`."""
    with suppress(EOFError, OSError), Connection(int(descriptor)) as player:
        _Server(player, Pulse(int(lifeline))).serve()


class _Server:
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
        compiler: Compiler | Made = Made(None, ())
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
            elif not isinstance(message, Abandon):
                self._answer(compiler, message)
                del message
                gc.collect()

    def _next(self) -> Request | Wish | Abandon | Setup:
        while not self._player.poll(BEAT):
            self._pulse.beat()
        message: Request | Wish | Abandon | Setup = self._player.recv()
        return message

    def _answer(self, compiler: Compiler | Made, message: Request | Wish) -> None:
        number = message.number
        contents = _contents(compiler, message) if isinstance(message, Request) else _better(compiler, message)
        self._player.send(Answer(number, "begun"))
        try:
            while (content := self._made(contents)) is not None:
                self._player.send(Answer(number, content))
        except _Abandoned:
            self._player.send(Answer(number, "abandoned"))

    def _made(self, contents: Iterator[Content]) -> Content | None:
        """The next of these. Raises _Abandoned."""
        try:
            self._may_leave = True
            self._interrupted()
            return next(contents, None)
        finally:
            self._may_leave = False

    def _interrupted(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Somebody asks whether this is still wanted. While something is made, nothing but `Abandon` can come."""
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


def _compiler(setup: Setup) -> Compiler | Made:
    """The compiler, or what to answer in place of it."""
    try:
        return Compiler.of(setup)
    except WeftError as failure:
        return Made(None, failure.diagnostics)
    except Exception as failure:
        return Made(None, (fault("nothing can be compiled", failure),))


def _contents(compiler: Compiler | Made, request: Request) -> Iterator[Content]:
    """What became of a text; if it became a program, also what is wrong with it."""
    if isinstance(compiler, Made):
        yield compiler
        return
    try:
        made = compiler.compile(request.saved)
        yield made.with_codes(dict.fromkeys(request.known))
    except (EOFError, OSError):
        raise
    except Exception as failure:
        yield Made(None, (fault("weft failed on this text", failure),))
        return
    if made.playable is not None:
        yield mistakes(made.playable, compiler.stage, request.moment, made.places)


def _better(compiler: Compiler | Made, wish: Wish) -> Iterator[Content]:
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
                translated = compiler.stage.translate(wish.bridged).units
            codes = compiler.stage.improve(wish.units, wish.stand_ins, refuse)
    yield Improved(codes, (time.perf_counter() - started) * 1e3, translated, refused)
