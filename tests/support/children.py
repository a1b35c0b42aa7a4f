"""The children in tests. Each reports its process number first."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from weft.child import BEAT, Child, Pulse, run


def _begun(descriptor: str) -> Connection:
    parent = Connection(int(descriptor))
    parent.send(os.getpid())
    return parent


def idle(descriptor: str, lifeline: str) -> None:
    """Waits for a message, and returns it."""
    parent, pulse = _begun(descriptor), Pulse(int(lifeline))
    while True:
        while not parent.poll(BEAT):
            pulse.beat()
        parent.send(parent.recv())


def complaining(descriptor: str, lifeline: str) -> None:
    """Writes to stderr, and then idles."""
    print("a complaint", file=sys.stderr)
    idle(descriptor, lifeline)


def busy(descriptor: str, lifeline: str) -> None:
    """Works without releasing Python's lock, as a long call of a library may."""
    _begun(descriptor)
    sum(range(10**12))


def allowed(descriptor: str, lifeline: str) -> None:
    """Waits for something, after announcing it."""
    parent = _begun(descriptor)
    Pulse(int(lifeline)).allow(1000)
    parent.recv()


def locked(descriptor: str, lifeline: str) -> None:
    """Waits for a lock that is never released."""
    lock = threading.Lock()
    lock.acquire()
    _begun(descriptor)
    lock.acquire()


def locked_for_all(descriptor: str, lifeline: str) -> None:
    """The same with Python's lock, so that all threads wait."""
    _begun(descriptor)
    ctypes.PyDLL(None).sleep(1000)


def locked_but_for_a_thread(descriptor: str, lifeline: str) -> None:
    """The main thread waits forever, while another one works."""
    _begun(descriptor)
    working = threading.Thread(target=_work)
    working.start()
    working.join()


def _work() -> None:
    while True:
        sum(range(10**6))


def parent(*names: str) -> None:
    """Starts children and prints their numbers. For each line that it reads, prints whether all of them still run."""
    children = [Child(f"{__name__}:{name}", main_thread_works=False) for name in names]
    for child in children:
        print(child.connection.recv(), flush=True)
    for _ in sys.stdin:
        print(all(child.poll() is None and not child.stood_still for child in children), flush=True)


def asking() -> None:
    """Starts a child whose answer it waits for."""
    run(f"{__name__}:never", timeout=1000)


def never() -> None:
    """Reports its number, and nothing more."""
    file = Path(os.environ["TOLD"])
    file.with_suffix(".part").write_text(str(os.getpid()))
    file.with_suffix(".part").rename(file)
    time.sleep(1000)


def leaving() -> None:
    """Starts what stays after it, with its streams, and says its number."""
    command = [sys.executable, "-c", "import time; time.sleep(1000)"]
    print(subprocess.Popen(command, stdout=sys.stdout, stderr=sys.stderr).pid)
