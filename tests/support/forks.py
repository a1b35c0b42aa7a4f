"""Forks of a process that has imported weft: they save the imports, which take most of the time of a short command, and
a good part of the start of a performance."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import Any

from tests.support.ends import tied
from weft.cli import COMMANDS

_SERVER = Path(__file__).with_name("fork_server.py")

# Commands that a fork may run: those that neither play nor measure. The others take apart what they have at their end,
# like any process: they have threads, drivers and devices.
FORKED = ("check", "compile", "completion", "devices", "eval", "examples", "graph", "help", "new", "render", "send")

# What commands import when they need it, where it is installed.
WHEN_NEEDED = (
    "importlib.metadata", "pyaudio", "soundfile", "weft.backends.gl.backend",
    "weft.runtime.screens.display", "weft.runtime.screens.window", "weft.runtime.screens.terminal",
    "weft.backends.gl.drawing", "llvmlite.binding", "weft.media.letters", "PIL.GifImagePlugin", "PIL.JpegImagePlugin",
)  # fmt: skip

# Variables that are read when Python starts, or a library.
_READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "PYOPENGL_", "PYGLFW_", "WAYLAND_", "XDG_SESSION_", "LIBGL_", "OMP_")

# Signals that are ignored from the start where the parent ignores them.
_MAY_BE_IGNORED = [
    getattr(signal, name) for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM") if hasattr(signal, name)
]

# Modules that Python imports when it starts, if there are any.
_CUSTOM = ("sitecustomize", "usercustomize")

# A command that takes longer has failed, in seconds.
_PATIENCE = 60.0

# How tests were started: within one, variables may be others.
_AT_FIRST = MappingProxyType(dict(os.environ))


class Fork:
    """A process, as `subprocess.Popen` has them."""

    def __init__(self, reports: socket.socket) -> None:
        self._reports = reports
        self._unread = b""
        reports.settimeout(_PATIENCE)
        self.pid = self._report()
        self.returncode: int | None = None

    def _report(self) -> int:
        while b"\n" not in self._unread:
            data = self._reports.recv(64)
            if not data:
                raise ConnectionError("the process that is forked has ended")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return int(line)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises TimeoutError if it does not end in time."""
        if self.returncode is None:
            self._reports.settimeout(timeout)
            self.returncode = self._report()
            self._reports.close()
        return self.returncode

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        try:
            return self.wait(0.0)
        except (TimeoutError, BlockingIOError):
            return None

    def send_signal(self, number: int) -> None:
        """Sends a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


class Forks:
    """Starts processes of `weft` by forks of one that has imported its modules."""

    def __init__(self, requests: socket.socket, environment: Mapping[str, str]) -> None:
        self._requests = requests
        self._read_at_start = _read_at_start(environment)
        self._path = _path(environment)

    def suit(self, environment: Mapping[str, str]) -> bool:
        """Whether a fork is equivalent to a new process with this environment."""
        added = set(_path(environment)) - set(self._path)
        return _read_at_start(environment) == self._read_at_start and all(map(_only_adds, added))

    def start(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], out: int = 1, errors: int = 2,
        own_session: bool = False, terminal: int | None = None,
    ) -> Fork:  # fmt: skip
        """Starts a command line in a folder, with these streams, or at a terminal, which is that of its own session
        then. What is not in `FORKED` ends as Python does."""
        ours, theirs = socket.socketpair()
        request: dict[str, Any] = {
            "arguments": list(arguments), "folder": str(folder), "environment": dict(environment),
            "own_session": own_session or terminal is not None, "at_terminal": terminal is not None,
            "ignored": [number for number in _MAY_BE_IGNORED if signal.getsignal(number) is signal.SIG_IGN],
            "ends_as_python": not {*arguments[:1]} <= {*FORKED},
            "draws": not {*arguments[:1]}.isdisjoint(["bench", "devices"]) or any("gl" in each for each in arguments),
        }  # fmt: skip
        with theirs, open(os.devnull) as nothing:
            streams = [nothing.fileno(), out, errors] if terminal is None else [terminal] * 3
            socket.send_fds(self._requests, [json.dumps(request).encode()], [*streams, theirs.fileno()])
        return Fork(ours)

    def run(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command line in a folder. Raises TimeoutError if it does not end."""
        with TemporaryFile() as out, TemporaryFile() as errors:
            process = self.start(arguments, folder, environment, out.fileno(), errors.fileno())
            try:
                code = process.wait(_PATIENCE)
            finally:
                process.kill()
            out.seek(0)
            errors.seek(0)
            return subprocess.CompletedProcess(["weft", *arguments], code, _text(out.read()), _text(errors.read()))


@contextmanager
def forks(environment: Mapping[str, str] = _AT_FIRST) -> Iterator[Forks]:
    """Forks of a process that has imported all commands, in an environment."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # which keeps a request in one piece
    modules = [",".join(command.module for command in COMMANDS.values()), ",".join(WHEN_NEEDED)]
    command = [sys.executable, str(_SERVER), str(theirs.fileno()), *modules]
    # In a session of its own, since Ctrl-C is for the tests.
    with ours, subprocess.Popen(
        tied(command), pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=environment, start_new_session=True
    ) as server:
        theirs.close()
        try:
            yield Forks(ours, environment)
        finally:
            server.kill()


@cache
def usual_forks() -> Forks | None:
    """Forks in the environment that the tests were started with, until they end. None but on Linux: frameworks of macOS
    do not outlive a fork."""
    if sys.platform != "linux":
        return None
    return _UNTIL_THE_END.enter_context(forks())


_UNTIL_THE_END = ExitStack()
atexit.register(_UNTIL_THE_END.close)


def started(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs a command line by a new process."""
    command = [sys.executable, "-m", "weft", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def ran(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs a command line by a fork if that is equivalent to a new process."""
    found = usual_forks()
    by = started if found is None or not found.suit(environment) else found.run
    return by(arguments, folder, environment)


def at_terminal(arguments: Sequence[str], folder: Path, terminal: int) -> Fork | subprocess.Popen[bytes]:
    """Starts a command line at a terminal, by a fork if that is equivalent to a new process."""
    found = usual_forks()
    if found is not None and found.suit(os.environ):
        return found.start(arguments, folder, os.environ, terminal=terminal)
    command = [sys.executable, "-m", "weft", *arguments]
    return subprocess.Popen(command, cwd=folder, stdin=terminal, stdout=terminal, stderr=terminal)


def command_beside(package: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs command lines in a folder with this package; variables are those of `weft`."""

    def run(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path, **more}
        environment.pop("WEFT_BACKEND", None)
        return ran(arguments, folder, environment)

    return run


def _path(environment: Mapping[str, str]) -> list[str]:
    return environment.get("PYTHONPATH", "").split(os.pathsep)


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a fork cannot have of its own. It can have its own path if that only adds to this one."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_READ_AT_START) and name != "PYTHONPATH"
    }


@cache
def _only_adds(folder: str) -> bool:
    """Whether a folder on Python's path changes nothing of what is imported already."""
    names = {path.name.partition(".")[0] for path in Path(folder or ".").glob("[!_]*")}
    return not any(name in _CUSTOM or (name.isidentifier() and find_spec(name)) for name in names)


def _text(data: bytes) -> str:
    return data.decode().replace("\r\n", "\n")
