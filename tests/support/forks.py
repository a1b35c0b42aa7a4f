"""Forks of a process that has imported weft: they save the import, which takes most of the time of a short command."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from weft.cli import COMMANDS

# For each request, a fork runs `weft` with these arguments; from outside it looks like a new process. It leaves the
# loop and ends like any process, with everything that Python does at the end.
_SERVER = """
import importlib, json, os, signal, socket, sys

for module in sys.argv[2:]:
    importlib.import_module(module)
requests = socket.socket(fileno=int(sys.argv[1]))
while True:
    request, (out, errors), _, _ = socket.recv_fds(requests, 1 << 20, 2)
    child = os.fork() if request else None
    if not child:
        break
    os.close(out)
    os.close(errors)
    requests.sendall(b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
if request:
    requests.close()
    os.dup2(out, 1)
    os.dup2(errors, 2)
    given = json.loads(request)
    os.chdir(given["folder"])
    os.environ.clear()
    os.environ.update(given["environment"])
    sys.argv = ["weft", *given["arguments"]]
    from weft.__main__ import main
    sys.exit(main())
"""

# Commands that a fork may run: those that neither play nor measure.
FORKED = ("check", "compile", "devices", "eval", "graph", "help", "render")

# Variables that Python itself reads, only when it starts.
_OF_PYTHON = ("PYTHON", "LC_", "LANG", "LD_")

# A command that takes longer has failed, in seconds.
_PATIENCE = 60.0


class Forks:
    """Runs command lines by forks of a process that has imported their modules."""

    def __init__(self, requests: socket.socket, environment: Mapping[str, str]) -> None:
        self._requests = requests
        self._of_python = _of_python(environment)

    def suit(self, environment: Mapping[str, str]) -> bool:
        """Whether a fork is equivalent to a new process with this environment."""
        return _of_python(environment) == self._of_python

    def run(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Runs `weft` with these arguments in a folder. Raises TimeoutError if it does not end."""
        request = {"arguments": list(arguments), "folder": str(folder), "environment": dict(environment)}
        with TemporaryFile() as out, TemporaryFile() as errors:
            socket.send_fds(self._requests, [json.dumps(request).encode()], [out.fileno(), errors.fileno()])
            code = int(self._requests.recv(16))
            out.seek(0)
            errors.seek(0)
            return subprocess.CompletedProcess(["weft", *arguments], code, _text(out.read()), _text(errors.read()))


@contextmanager
def forks(modules: Sequence[str], environment: Mapping[str, str] = os.environ) -> Iterator[Forks]:
    """Forks of a process that has imported these modules, in an environment."""
    ours, theirs = socket.socketpair()
    ours.settimeout(_PATIENCE)
    command = [sys.executable, "-c", _SERVER, str(theirs.fileno()), *modules]
    with ours, subprocess.Popen(
        command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=environment
    ) as server:
        theirs.close()
        try:
            yield Forks(ours, environment)
        finally:
            server.kill()


def started(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs a command line by a new process."""
    command = [sys.executable, "-m", "weft", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


@contextmanager
def commands_beside(package: Path) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Runs command lines in a folder with this package, by forks where they suit; variables are those of `weft`."""
    beside = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])}
    beside.pop("WEFT_BACKEND", None)
    if sys.platform != "linux":  # frameworks of macOS do not outlive a fork
        yield lambda folder, *arguments, **more: started(arguments, folder, {**beside, **more})
        return
    with forks([COMMANDS[name].module for name in FORKED], beside) as found:

        def run(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
            by = found.run if arguments[0] in FORKED else started
            return by(arguments, folder, {**beside, **more})

        yield run


def _of_python(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_OF_PYTHON)}


def _text(data: bytes) -> str:
    return data.decode().replace("\r\n", "\n")
