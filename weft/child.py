"""Child processes that run Python: they end with their parent, and are killed when they hang.

A child never outlives its parent, even if the parent is killed or the child is busy. Linux kills the child; on other
systems a thread of the child waits until the other end of its lifeline, a socket, closes.

Over the same socket, an idle child sends a heartbeat several times a second. A child that works need not send one:
using the processor, or waiting for it, counts as a sign of life. A child without any sign for two seconds hangs and is
killed, so that its user learns that it has ended. Only seconds in which the parent itself ran are counted: if the
machine was suspended, or all its processes were stopped, nothing was missed.
"""

from __future__ import annotations

import ctypes
import gc
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
from typing import Any

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

# Ctrl-C is only for the parent. But in a session of its own, a child would get as much of the processor as its parent,
# since Linux first divides it among sessions, whatever the priorities of threads are.
_APART: dict[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}

_ALLOWED = struct.Struct("d")
_PR_SET_PDEATHSIG = 1


class Child(subprocess.Popen[bytes]):
    """A process that runs a function, `module:name`. The function's first two arguments are the numbers of two sockets,
    as strings: the other end of `connection`, and the lifeline, for `Pulse`. The process has neither stdin nor stdout,
    and does not get the signals of its parent's terminal."""

    def __init__(
        self, entry: str, *arguments: str, descriptors: Collection[int] = (),
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
                numbers = str(theirs.fileno()), str(its_lifeline.fileno())
                super().__init__(
                    _command(entry, its_lifeline, (*numbers, *arguments)),
                    pass_fds=[theirs.fileno(), its_lifeline.fileno(), *descriptors], stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, env=environment, cwd=folder, **_APART,
                )  # fmt: skip
        except BaseException:
            self.connection.close()
            lifeline.close()
            raise
        threading.Thread(target=self._watch, args=(lifeline,), name="weft-watch", daemon=True).start()

    @property
    def ending(self) -> str:
        """How it ended, in words that follow its name."""
        if self.stood_still:
            return "stood still"
        code = self.returncode
        known = {-number: number.name for number in signal.Signals}
        return f"ended ({known.get(code, f'code {code}' if code >= 0 else f'signal {-code}')})"

    def end(self) -> None:
        """Ends it at once, even if it is busy. May be called twice."""
        self.connection.close()
        self.kill()
        self.wait()

    @property
    def spent(self) -> float:
        """The seconds of processor time that it has used; if that is unknown, the seconds that it has run."""
        found = _stat(f"/proc/{self.pid}/stat") if self.returncode is None else None
        return time.monotonic() - self._began if found is None else found[1]

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
            return _state_by_ps(self.pid)
        threads = [found for number in numbers if (found := _stat(f"{tasks}/{number}/stat")) is not None]
        if not threads:
            return _state_by_ps(self.pid)
        states = {state for state, _ in threads}
        # Running or ready to run, waiting for a disk, or stopped by a debugger.
        return _ProcessState(bool(states & {"R", "D", "t"}), states == {"T"}, sum(spent for _, spent in threads))


def run(entry: str, *arguments: str, timeout: float) -> subprocess.CompletedProcess[bytes]:
    """Runs a function as a child, or a module if only that is named, and returns its output. Raises
    subprocess.TimeoutExpired if it takes longer than `timeout`, and OSError."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        return subprocess.run(
            _command(entry, theirs, arguments), pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            capture_output=True, timeout=timeout, check=False,
        )  # fmt: skip


def _command(entry: str, lifeline: socket.socket, arguments: tuple[str, ...]) -> list[str]:
    begun = [sys.executable, "-c", _START, entry, str(os.getpid()), str(lifeline.fileno()), str(len(arguments))]
    return [*begun, *arguments, *sys.path]


# --- the state of a process -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ProcessState:
    """The state of a process. `spent` grows with the processor time that it uses, in some unit."""

    is_busy: bool
    is_stopped: bool
    spent: float


def _stat(path: str) -> tuple[str, float] | None:
    """The state of a thread or a process on Linux, as one letter, and the seconds of processor time that it has used;
    None on other systems, or if it has ended."""
    try:
        fields = Path(path).read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _state_by_ps(process: int) -> _ProcessState:
    """The state of a whole process on any POSIX system. It is slow, and used only when no sign of life has come."""
    try:
        state, used = subprocess.run(
            ["ps", "-o", "state=,time=", "-p", str(process)], capture_output=True, text=True, timeout=5, check=True
        ).stdout.split()[:2]
        spent = 0.0
        for part in used.replace("-", ":").split(":"):
            spent = 60 * spent + float(part)
        return _ProcessState(state[0] in "RUD", state[0] == "T", spent)
    except (OSError, subprocess.SubprocessError, ValueError):
        # Unknown. A process that may be working must not be killed.
        return _ProcessState(True, False, 0.0)


# --- in the child -----------------------------------------------------------------------------------------------------


class Pulse:
    """Sends the signs of life of a child."""

    def __init__(self, lifeline: int) -> None:
        """`lifeline` is the number of the socket that it was started with."""
        self._socket = socket.socket(fileno=os.dup(lifeline))
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
            self._socket.send(_ALLOWED.pack(allowed), socket.MSG_DONTWAIT)


def main() -> None:
    """The start of a child: binds it to its parent, then runs its function or module."""
    entry, parent, lifeline, count, *rest = sys.argv[1:]
    arguments = rest[: int(count)]
    _end_with(int(parent), int(lifeline))
    sys.argv[1:] = arguments
    if hasattr(signal, "SIGTTOU"):
        # A terminal may be set to stop processes that write to it from the background, where a child is.
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    module, _, name = entry.partition(":")
    if name:
        gc.disable()  # imports leave no garbage
        function = getattr(importlib.import_module(module), name)
        gc.enable()
        function(*arguments)
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Asks Linux to send this process a signal when the thread that has started it ends. SIGKILL ends it even in the
    middle of machine code, and if it is stopped. Does nothing on other systems."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def _end_with(parent: int, lifeline: int) -> None:
    """Arranges that this process is killed when its parent ends."""
    os.set_inheritable(lifeline, False)
    end_with_parent()
    if os.getppid() != parent:
        # The parent ended before the request took effect.
        os._exit(1)
    watch = socket.socket(fileno=os.dup(lifeline))

    def wait() -> None:
        with suppress(OSError):
            watch.recv(1)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="weft-lifeline", daemon=True).start()
