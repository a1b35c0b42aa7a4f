"""The Python processes that belong to this one: how they are started, end with it, and are missed when they hang.

A child never outlives its parent, however that ended and whatever the child is doing: the system kills it where it can
(Linux), and a thread of the child waits for the other end of its lifeline, a socket, to close.

Over the same socket, a child that is idle says several times a second that it is there. One that works need not: that
it uses the processor, or waits for its turn, is sign enough. One that gives no sign for two seconds stands still, and
is killed, so that whoever uses it learns of its end. Only seconds in which the parent itself ran are counted: a machine
that was suspended, or stopped with all its processes, has missed nothing.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import runpy
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

BEAT = 0.25
"""How often an idle child gives a sign, in seconds."""

# How long a child may go without a sign, how long a sign is waited for at a time, and the most of a wait that counts:
# one that took longer was held up itself. All in seconds.
_STILL = 2.0
_GLANCE = 0.5
_COUNTS = 2 * _GLANCE

# The path to weft is handed over: it need not be that of a plain `python`, nor be led astray by files beside a patch.
_START = """\
import sys
sys.path[:] = sys.argv[5 + int(sys.argv[4]):]
from weft.child import main
main()
"""

_ALLOWED = struct.Struct("d")
_PR_SET_PDEATHSIG = 1


class Child(subprocess.Popen[bytes]):
    """A process that runs a function, `module:name`. The function's first two arguments are the numbers of two sockets,
    as strings: the other end of `connection`, and the lifeline, for `Pulse`. The process has neither stdin nor stdout,
    and a session of its own, since Ctrl-C is for its parent alone."""

    def __init__(
        self,
        entry: str,
        *arguments: str,
        descriptors: Collection[int] = (),
        environment: Mapping[str, str] | None = None,
        main_thread_works: bool = False,
    ) -> None:
        """It inherits the `descriptors`, and ends with the thread that calls this. If it is the main thread that works
        in it, what others do is no sign of life. Raises OSError."""
        self.stood_still = False
        """Whether it was killed for that."""
        self.ended: Callable[[], None] = lambda: None
        """Called once it has ended, by another thread."""
        self._main_thread_works = main_thread_works
        self._began = time.monotonic()
        ours, theirs = socket.socketpair()
        lifeline, its_lifeline = socket.socketpair()
        self.connection = Connection(ours.detach())
        try:
            with theirs, its_lifeline:
                # Neither a fork, which would share the window, nor multiprocessing, which would run the main script
                # anew.
                numbers = str(theirs.fileno()), str(its_lifeline.fileno())
                super().__init__(
                    _command(entry, its_lifeline, (*numbers, *arguments)),
                    pass_fds=[theirs.fileno(), its_lifeline.fileno(), *descriptors], stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, start_new_session=True, env=environment,
                )  # fmt: skip
        except BaseException:
            self.connection.close()
            lifeline.close()
            raise
        threading.Thread(target=self._watch, args=(lifeline,), name="weft-watch", daemon=True).start()

    def end(self) -> None:
        """Ends it at once, whatever it is at. May be called twice."""
        self.connection.close()
        self.kill()
        self.wait()

    @property
    def spent(self) -> float:
        """How many seconds of the processor it has used; where that cannot be known, how long it has run."""
        found = _stat(f"/proc/{self.pid}/stat") if self.returncode is None else None
        return time.monotonic() - self._began if found is None else found.spent

    def _watch(self, lifeline: socket.socket) -> None:
        with lifeline:
            lifeline.settimeout(_GLANCE)
            self._follow(lifeline)
        self.ended()

    def _follow(self, lifeline: socket.socket) -> None:
        """Waits for its end, and brings it about when it stands still."""
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
            found = self._state()
            if found.is_busy or found.spent != spent:
                spent, silent = found.spent, 0.0
                continue
            silent += min(time.monotonic() - began, _COUNTS)
            if silent >= (_STILL if found.is_stopped else max(allowed, _STILL)):
                self.stood_still = True
                with suppress(OSError):
                    self.kill()

    def _state(self) -> _ProcessState:
        tasks = f"/proc/{self.pid}/task"
        try:
            numbers = [str(self.pid)] if self._main_thread_works else os.listdir(tasks)
        except OSError:
            return _told_by_ps(self.pid)
        threads = [found for number in numbers if (found := _stat(f"{tasks}/{number}/stat")) is not None]
        if not threads:
            return _told_by_ps(self.pid)
        states = {each.state for each in threads}
        # Running or waiting for its turn, for a disk, or at a debugger.
        return _ProcessState(bool(states & {"R", "D", "t"}), states == {"T"}, sum(each.spent for each in threads))


def run(entry: str, *arguments: str, timeout: float) -> subprocess.CompletedProcess[bytes]:
    """Runs a function as a child, or a module if only that is named, and gives what it wrote. Raises
    subprocess.TimeoutExpired when it takes longer, and OSError."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        return subprocess.run(
            _command(entry, theirs, arguments), pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            capture_output=True, timeout=timeout, check=False,
        )  # fmt: skip


def _command(entry: str, lifeline: socket.socket, arguments: tuple[str, ...]) -> list[str]:
    begun = [sys.executable, "-c", _START, entry, str(os.getpid()), str(lifeline.fileno()), str(len(arguments))]
    return [*begun, *arguments, *sys.path]


# --- how a process is -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ProcessState:
    """How a process is. `spent` grows with what it does, in whatever unit."""

    is_busy: bool
    is_stopped: bool
    spent: float


@dataclass(frozen=True)
class _Stat:
    """The state of a thread or a process, as one letter, and the seconds of the processor it has used."""

    state: str
    spent: float


def _stat(path: str) -> _Stat | None:
    """What Linux shows of a thread or a process; None where it does not, or for one that has ended."""
    try:
        fields = Path(path).read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return _Stat(fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))


def _told_by_ps(process: int) -> _ProcessState:
    """The same for a whole process, from what POSIX has: it is asked only when no sign of life has come."""
    try:
        told = subprocess.run(
            ["ps", "-o", "state=,time=", "-p", str(process)], capture_output=True, text=True, timeout=5, check=True
        ).stdout.split()
        spent = 0.0
        for part in told[1].replace("-", ":").split(":"):
            spent = 60 * spent + float(part)
        return _ProcessState(told[0][0] in "RUD", told[0][0] == "T", spent)
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        # Nobody knows, and what goes on must not be interrupted.
        return _ProcessState(True, False, 0.0)


# --- in the child -----------------------------------------------------------------------------------------------------


class Pulse:
    """What a child gives its signs of life with."""

    def __init__(self, lifeline: int) -> None:
        """`lifeline` is the number of the socket that it was started with."""
        self._socket = socket.socket(fileno=os.dup(lifeline))
        self._next = 0.0

    def beat(self) -> None:
        """The process goes on, and says so again before long. May be called as often as anybody likes."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + BEAT
            self._send(0.0)

    def allow(self, seconds: float) -> None:
        """It may wait for something else for so many seconds, until the next sign."""
        self._next = 0.0
        self._send(seconds)

    def _send(self, allowed: float) -> None:
        # A parent that does not read must not hold it up.
        with suppress(OSError):
            self._socket.send(_ALLOWED.pack(allowed), socket.MSG_DONTWAIT)


def main() -> None:
    """What a child does first: it binds itself to its parent, then runs what it was started for."""
    entry, parent, lifeline, count, *rest = sys.argv[1:]
    arguments = rest[: int(count)]
    _end_with(int(parent), int(lifeline))
    sys.argv[1:] = arguments
    module, _, name = entry.partition(":")
    if name:
        getattr(importlib.import_module(module), name)(*arguments)
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def _end_with(parent: int, lifeline: int) -> None:
    """Has this process killed when its parent is gone."""
    os.set_inheritable(lifeline, False)
    if sys.platform == "linux":
        # Also in the middle of machine code, and where the process is stopped.
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # It was gone before it was asked for.
        os._exit(1)
    watch = socket.socket(fileno=os.dup(lifeline))

    def wait() -> None:
        with suppress(OSError):
            watch.recv(1)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="weft-lifeline", daemon=True).start()
