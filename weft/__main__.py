"""The entry point of `weft` and `python -m weft`. It imports very little, so that Ctrl-C works from the start."""

from __future__ import annotations

# `signal` imports far more than is needed here.
import _signal  # type: ignore[import-not-found]
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import NoReturn

ASKING = {
    getattr(_signal, name): word
    for name, word in {
        "SIGINT": "interrupted", "SIGBREAK": "interrupted", "SIGTERM": "terminated", "SIGHUP": "terminated",
    }.items()
    if hasattr(_signal, name)
}  # fmt: skip
"""The signals that ask a command to end, each with what it says then."""

_ONE_REQUEST = 1.0
"""The seconds in which several signals are one request: a terminal that closes may send two, a key is held down."""


class Ended(KeyboardInterrupt):
    """A signal has asked this process to end. It is an interruption, whatever the signal, and cleaned up after as
    such."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.word = ASKING[number]
        self.code = _code_of(number)


def _raise(number: int) -> NoReturn:
    raise Ended(number)


class Asked:
    """The handler of `ASKING` while there is something to clean up. Signals that follow within a moment are part of the
    same request, and do not interrupt the cleaning up. A later one does, as its sender does not want to wait."""

    def __init__(self, end: Callable[[int], NoReturn] = _raise) -> None:
        self._end = end
        self._until = 0.0

    @property
    def is_noted(self) -> bool:
        """Whether a request was heard."""
        return self._until > 0

    def note(self) -> Asked:
        """A request was heard by another handler."""
        self._until = time.monotonic() + _ONE_REQUEST
        return self

    def __call__(self, number: int, _frame: FrameType | None = None) -> None:
        if time.monotonic() >= self._until:
            self.note()
            self._end(number)


def main() -> int:
    """Runs the command line of this process, and returns its exit code. Signals end it from the first moment to the
    last. SIGINT does even if the parent process ignored it, as a shell does for jobs in the background."""
    _handle(interrupted)
    import gc

    # Imports make many objects that live to the end, so there is no garbage to look for.
    gc.disable()
    from weft.cli import main as run

    code = run()
    # The rest of the process may take a moment, and does not handle an interruption either. What was asked for is not
    # asked for again.
    heard = _signal.getsignal(_signal.SIGINT)
    was_asked = code > _SIGNALLED or (isinstance(heard, Asked) and heard.is_noted)
    _handle(Asked(lambda _: os._exit(code)).note() if was_asked else interrupted)
    # The remaining objects end with the process. Python would look through all of them several times.
    gc.freeze()
    return code


def interrupted(number: int, _frame: FrameType | None) -> None:
    """Ends this process while exceptions cannot be caught: during imports they may be raised, or lost, anywhere."""
    try:
        os.write(2, f"weft: {ASKING[number]}\n".encode())
    except OSError:
        pass  # the terminal is gone
    finally:
        os._exit(_code_of(number))


def _handle(handler: Callable[[int, FrameType | None], None]) -> None:
    """Sets the handler of `ASKING`. A SIGHUP that was ignored stays ignored: with nohup, the terminal may close."""
    for number in ASKING:
        if number != getattr(_signal, "SIGHUP", None) or _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, handler)


_SIGNALLED = 128
"""What is added to the number of a signal for an exit code, as shells have it."""


def _code_of(number: int) -> int:
    """The exit code after a signal. Ctrl-Break has that of Ctrl-C."""
    return _SIGNALLED + (_signal.SIGINT if ASKING[number] == ASKING[_signal.SIGINT] else number)


if __name__ == "__main__":
    # Import the module by its own name, as all others do.
    from weft.__main__ import main as begin

    sys.exit(begin())
