"""What the children in tests do; each tells its number first."""

from __future__ import annotations

import ctypes
import os
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
    """Waits for a word, which it gives back."""
    parent, pulse = _begun(descriptor), Pulse(int(lifeline))
    while True:
        while not parent.poll(BEAT):
            pulse.beat()
        parent.send(parent.recv())


def busy(descriptor: str, lifeline: str) -> None:
    """Works without giving Python's lock away, as a long call of a library may."""
    _begun(descriptor)
    sum(range(10**12))


def allowed(descriptor: str, lifeline: str) -> None:
    """Waits for something, and has said so."""
    parent = _begun(descriptor)
    Pulse(int(lifeline)).allow(1000)
    parent.recv()


def locked(descriptor: str, lifeline: str) -> None:
    """Waits for a lock that nobody gives back."""
    lock = threading.Lock()
    lock.acquire()
    _begun(descriptor)
    lock.acquire()


def locked_for_all(descriptor: str, lifeline: str) -> None:
    """The same with Python's lock, so that no thread of it goes on."""
    _begun(descriptor)
    ctypes.PyDLL(None).sleep(1000)


def locked_but_for_a_thread(descriptor: str, lifeline: str) -> None:
    """The main thread waits for good, and another one works."""
    _begun(descriptor)
    working = threading.Thread(target=_work)
    working.start()
    working.join()


def _work() -> None:
    while True:
        sum(range(10**6))


def parent(*names: str) -> None:
    """Starts children, tells their numbers, and that none of them has ended with each line that it reads."""
    children = [Child(f"{__name__}:{name}", main_thread_works=False) for name in names]
    for child in children:
        print(child.connection.recv(), flush=True)
    for _ in sys.stdin:
        print(all(child.poll() is None and not child.stood_still for child in children), flush=True)


def asking() -> None:
    """Starts a child whose answer it waits for."""
    run(f"{__name__}:never", timeout=1000)


def never() -> None:
    """Tells its number, and nothing more."""
    told = Path(os.environ["TOLD"])
    told.with_suffix(".part").write_text(str(os.getpid()))
    told.with_suffix(".part").rename(told)
    time.sleep(1000)
