"""The process that `forks.py` forks: it has imported the modules that its arguments name, those that there have to be
and those that may be missing, and has done nothing with them.

For each request, a fork runs `weft` with some arguments; from outside it looks like a new process. What a process
reports of it, on a socket of its own: its number, and its exit code when it has ended.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import termios
import threading
import traceback
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from weft.child import Child, main as enter
from weft.platform import system

# All that a request may carry.
_MOST = 1 << 20


def main() -> None:
    """Serves requests until no process can make one."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    prepare(*(argument.split(",") for argument in sys.argv[2:]))
    server = os.getpid()
    running: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for ready in select.select([requests, *running], [], [])[0]:
            if ready is not requests:
                _ended(ready, *running.pop(ready))
                continue
            request, descriptors, _, _ = socket.recv_fds(requests, _MOST, 4)
            if not request:
                return
            given, (*streams, report) = json.loads(request), descriptors
            if given["draws"]:
                _know_graphics()
            process = os.fork()
            if not process:
                requests.close()
                _run(given, streams, server)
            for stream in streams:
                os.close(stream)
            reports = socket.socket(fileno=report)
            reports.sendall(b"%d\n" % process)
            running[os.pidfd_open(process)] = process, reports


def prepare(needed: Iterable[str], wanted: Iterable[str]) -> None:
    """Imports modules that there have to be, and those that may be missing, and makes what every command line needs and
    is the same in all of them."""
    for module in needed:
        importlib.import_module(module)
    for module in wanted:
        with suppress(Exception):  # without its library, PyOpenGL raises errors of many kinds
            importlib.import_module(module)
    from weft.syntax.parser import grammar

    grammar()
    # The other threads are those of numpy's BLAS, which has prepared for forks.
    warnings.filterwarnings("ignore", ".*multi-threaded.*fork", DeprecationWarning)
    gc.collect()
    gc.freeze()


def _ended(number: int, process: int, reports: socket.socket) -> None:
    os.close(number)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with reports, suppress(OSError):  # it may not be of interest any more
        reports.sendall(b"%d\n" % code)


def _know_graphics() -> None:
    """Has all forks know what OpenGL there is, which takes a process of its own to find out."""
    from weft.backends.gl import probe

    probe.devices()


class ForkedChild(Child):
    """The process that a command starts ahead of its own imports, when there is no other thread: a fork as well. Those
    that take its place are started by the commands' modules, and are new processes."""

    def _execute_child(self, args: list[str], _1: object, _2: object, _3: object, kept: tuple[int, ...],
                       *_: object) -> None:  # fmt: skip
        self.pid = os.fork()
        self._child_created = True
        if not self.pid:
            _be_child(args, kept)
        os.close(self._devnull)


def _be_child(command: list[str], kept: tuple[int, ...]) -> NoReturn:
    """Continues as a new process with this command would, with these descriptors."""
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1):
            os.dup2(nothing, number)
        for number in map(int, os.listdir("/proc/self/fd")):
            if number > 2 and number not in kept:
                with suppress(OSError):  # that of the list itself
                    os.close(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = ["-c", *command[3:]]
        enter()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _path(environment: Mapping[str, str]) -> list[str]:
    return environment["PYTHONPATH"].split(os.pathsep) if environment.get("PYTHONPATH") else []


def _run(given: dict[str, Any], streams: list[int], server: int) -> NoReturn:
    system.end_with_parent()
    if os.getppid() != server:  # it has ended before the request took effect
        os._exit(1)
    if given["own_session"]:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if given["at_terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    for number in given["ignored"]:
        signal.signal(number, signal.SIG_IGN)
    os.chdir(given["folder"])
    before, after = (_path(each) for each in (os.environ, given["environment"]))
    sys.path[: 1 + len(before)] = [given["folder"], *(folder or given["folder"] for folder in after)]
    os.environ.clear()
    os.environ.update(given["environment"])
    sys.argv = ["weft", *given["arguments"]]
    from weft import child
    from weft.__main__ import main

    child.Child = ForkedChild  # type: ignore[misc]
    code = main()
    if given["ends_as_python"]:
        sys.exit(code)
    # All that Python does at the end, but for taking every object apart.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests, which end this process
    main()
