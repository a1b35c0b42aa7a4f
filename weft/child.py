"""Child processes that run Python: they end with their parent, and are killed when they hang.

A child never outlives its parent, even if the parent is killed or the child is busy. The system kills the child where
it can (`weft.platform`), and a thread of the child waits until the other end of its lifeline, a socket, closes.

Over the same socket, an idle child sends a heartbeat several times a second. A child that works need not send one:
using the processor, or waiting for it, counts as a sign of life. A child without any sign for two seconds hangs and is
killed, so that its user learns that it has ended. Only seconds in which the parent itself ran are counted: if the
machine was suspended, or all its processes were stopped, nothing was missed.
"""

from __future__ import annotations

import _thread
import gc
import importlib
import os
import runpy
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from weft.platform import system

BEAT = 0.25
"""The seconds between the heartbeats of an idle child."""

# The longest time without a sign, the timeout of one wait for it, and the longest wait that counts: during a longer one
# this process was held up itself. All in seconds.
_STILL = 2.0
_GLANCE = 0.5
_COUNTS = 2 * _GLANCE

# The child gets this process's path. That of a plain `python` may lack weft, or begin with the folder of a patch.
_START = """\
import sys
sys.path[:] = sys.argv[5 + int(sys.argv[4]):]
from weft.child import main
main()
"""

_ALLOWED = struct.Struct("d")


class Child(subprocess.Popen[bytes]):
    """A process that runs a function, `module:name`. The function's first arguments are numbers, as strings: those of
    two sockets, which are the other end of `connection` and the lifeline, for `Pulse`, and those of the descriptors
    that it inherits. The process has neither stdin nor stdout, and does not get the signals of its parent's terminal.
    """

    def __init__(
        self, entry: str, *arguments: str, descriptors: Sequence[int] = (),
        environment: Mapping[str, str] | None = None, main_thread_works: bool = False, folder: Path | None = None,
    ) -> None:
        """It inherits the `descriptors`, and ends with the thread that calls this. Its current folder is `folder`, or
        that of this process. With `main_thread_works`, only its main thread shows signs of life. Raises OSError."""
        self.stood_still = False
        """Whether it was killed because it hung."""
        self.ended: Callable[[], None] = lambda: None
        """Called by another thread once it has ended."""
        self._main_thread_works = main_thread_works
        self._began = time.monotonic()
        ours, theirs = socket.socketpair()
        lifeline, its_lifeline = socket.socketpair()
        self.connection = Connection(ours.detach())
        try:
            with theirs, its_lifeline:
                # A fork would share the window, and multiprocessing would run the main script again.
                numbers = theirs.fileno(), its_lifeline.fileno()
                super().__init__(
                    _command(entry, numbers, arguments, descriptors), stdout=subprocess.DEVNULL, env=environment,
                    cwd=folder, **system.apart(), **system.inheriting(numbers, descriptors),
                )  # fmt: skip
                system.bind(self)
                system.hand_over(self, numbers, descriptors)
        except BaseException:
            self.connection.close()
            lifeline.close()
            raise
        self._lifeline = lifeline
        threading.Thread(target=self._watch, args=(lifeline,), name="weft-watch", daemon=True).start()

    @property
    def ending(self) -> str:
        """How it ended, in words that follow its name."""
        if self.stood_still:
            return "stood still"
        code = self.returncode
        known = {-number: number.name for number in signal.Signals if number > 0}
        return f"ended ({known.get(code, f'code {code}' if code >= 0 else f'signal {-code}')})"

    def end(self) -> None:
        """Ends it at once, even if it is busy. May be called twice."""
        self.connection.close()
        self.kill()
        self.wait()

    def interrupt(self) -> None:
        """Has its main thread handle a SIGINT. Does nothing if it has ended."""
        with suppress(OSError):
            system.interrupt(self, self._lifeline)

    @property
    def spent(self) -> float:
        """The seconds of processor time that it has used; if that is unknown, the seconds that it has run."""
        found = system.processor_time(self.pid) if self.returncode is None else None
        return time.monotonic() - self._began if found is None else found

    def _watch(self, lifeline: socket.socket) -> None:
        with lifeline:
            self._follow(lifeline)
        # It closes its files a moment before it has ended.
        with suppress(subprocess.TimeoutExpired):
            self.wait(_STILL)
        self.ended()

    def _follow(self, lifeline: socket.socket) -> None:
        """Waits for its end, and kills it when it hangs."""
        lifeline.settimeout(_GLANCE)
        allowed, silent, spent = 0.0, 0.0, -1.0
        while True:
            began = time.monotonic()
            try:
                signs = lifeline.recv(4096)
            except TimeoutError:
                pass
            except OSError:
                return
            else:
                if not signs:
                    return
                (allowed,) = _ALLOWED.unpack(signs[-_ALLOWED.size :])
                silent = 0.0
                continue
            found = system.process_state(self.pid, self._main_thread_works)
            if found.is_busy or found.spent != spent:
                spent, silent = found.spent, 0.0
                continue
            silent += min(time.monotonic() - began, _COUNTS)
            if silent >= (_STILL if found.is_stopped else max(allowed, _STILL)):
                self.stood_still = True
                with suppress(OSError):
                    self.kill()


def run(entry: str, *arguments: str, timeout: float) -> subprocess.CompletedProcess[bytes]:
    """Runs a function as a child, or a module if only that is named, and returns its output. Raises
    subprocess.TimeoutExpired if it takes longer than `timeout`, and OSError."""
    ours, theirs = socket.socketpair()
    # Pipes would end with the last process that has them. A driver may start one that stays, such as a desktop's.
    with ours, theirs, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        numbers = (theirs.fileno(),)
        child = subprocess.Popen(
            _command(entry, numbers, arguments), stdout=output, stderr=errors, **system.inheriting(numbers)
        )
        with child:
            try:
                system.bind(child)
                system.hand_over(child, numbers)
                # Given a timeout, `Popen.wait` looks again every 50 ms, and what is asked delays the start.
                waiting = threading.Thread(target=child.wait, name="weft-wait", daemon=True)
                waiting.start()
                waiting.join(timeout)
                if waiting.is_alive():
                    raise subprocess.TimeoutExpired(child.args, timeout)
            except BaseException:
                child.kill()
                raise
        written = []
        for file in (output, errors):
            file.seek(0)
            written.append(file.read())
        return subprocess.CompletedProcess(child.args, child.returncode, *written)


def _command(
    entry: str, sockets: Sequence[int], arguments: tuple[str, ...], descriptors: Sequence[int] = ()
) -> list[str]:
    """The last of the sockets is the lifeline."""
    numbers = "+".join(",".join(map(str, each)) for each in (sockets, descriptors))
    return [
        sys.executable, "-c", _START, entry, str(os.getpid()), numbers, str(len(arguments)), *arguments, *sys.path
    ]  # fmt: skip


# --- in the child -----------------------------------------------------------------------------------------------------


class Pulse:
    """Sends the signs of life of a child."""

    def __init__(self, lifeline: int) -> None:
        """`lifeline` is the number of the socket that it was started with."""
        self._socket = _adopted(lifeline)
        self._next = 0.0

    def beat(self) -> None:
        """Sends a heartbeat if one is due. May be called as often as convenient."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + BEAT
            self._send(0.0)

    def allow(self, seconds: float) -> None:
        """Allows the process to wait for something for this many seconds, until the next sign."""
        self._next = 0.0
        self._send(seconds)

    def _send(self, allowed: float) -> None:
        # A parent that does not read must not block it.
        with suppress(OSError):
            system.send_now(self._socket, _ALLOWED.pack(allowed))


def _adopted(number: int) -> socket.socket:
    """A socket of its own for one that was inherited, which stays open."""
    inherited = socket.socket(fileno=number)
    inherited.set_inheritable(False)
    found = inherited.dup()
    inherited.detach()
    return found


def main() -> None:
    """The start of a child: binds it to its parent, then runs its function or module."""
    entry, parent, given, count, *rest = sys.argv[1:]
    sockets, descriptors = ([int(number) for number in each.split(",") if number] for each in given.split("+"))
    numbers = system.inherited(sockets, descriptors)
    arguments = [*(map(str, numbers) if len(numbers) > 1 else ()), *rest[: int(count)]]
    _end_with(int(parent), numbers[len(sockets) - 1])
    sys.argv[1:] = arguments
    system.ignore_background()
    # When a machine or a service stops, all its processes are asked to end, and the parent ends this one in order. What
    # this one starts does not inherit a handler; it would inherit that signals are ignored.
    for number in system.ending_signals():
        if number != signal.SIGINT:
            signal.signal(number, lambda *_: None)
    module, _, name = entry.partition(":")
    if name:
        gc.disable()  # imports leave no garbage
        function = getattr(importlib.import_module(module), name)
        gc.enable()
        function(*arguments)
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def _end_with(parent: int, lifeline: int) -> None:
    """Arranges that this process is killed when its parent ends, and interrupted when it sends a byte."""
    system.end_with_parent()
    if os.getppid() != parent:
        # The parent ended before the request took effect.
        os._exit(1)
    watch = _adopted(lifeline)

    def wait() -> None:
        with suppress(OSError):
            while watch.recv(1):
                _thread.interrupt_main()
        system.end_now()

    threading.Thread(target=wait, name="weft-lifeline", daemon=True).start()
