"""A process that runs one kernel with one participant: libraries with threads and settings of their own do not meet,
and one that crashes takes nobody along."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Protocol

# Steps that a turn begins with and that do not count: the processor's caches are still full of another's data.
_SETTLING = 2
_FEWEST = 3


class PeerError(Exception):
    """A participant cannot take part; says why."""


@dataclass(frozen=True)
class Begun:
    """A job under way, in its process. `first_ms` leads from the text to the first result, `show` gives what is held
    against the reference, and `turn` works for so many seconds and gives the median of what a step took."""

    version: str
    first_ms: float
    show: Callable[[float], Any]
    turn: Callable[[float], float]


class Job(Protocol):
    """What one worker does. It can be pickled."""

    @property
    def kernel(self) -> str: ...

    @property
    def peer(self) -> str: ...

    @property
    def patience(self) -> float:
        """The longest that its worker may be silent, in seconds."""
        ...

    def unavailable(self) -> str | None:
        """Why it cannot be done here; None if it can."""
        ...

    def begin(self) -> Begun:
        """Compiles, and takes the first step. Called in the process of the worker."""
        ...


class Worker:
    """The process of a job. Between two calls it sleeps."""

    def __init__(self, job: Job) -> None:
        """Waits for the job to begin. Raises PeerError."""
        self.job = job
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, job), daemon=True)
        self._process.start()
        theirs.close()
        try:
            self.version, self.first_ms = self._answer()
        except PeerError:
            self.close()
            raise

    def show(self, at: float) -> Any:
        return self._ask("show", at)

    def turn(self, seconds: float) -> float:
        """Works for so many seconds, and gives the median of what a step took, in seconds."""
        return float(self._ask("turn", seconds))

    def close(self) -> None:
        self._connection.close()
        self._process.join(1)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _ask(self, request: str, value: float) -> Any:
        try:
            self._connection.send((request, value))
        except OSError as problem:
            raise PeerError("the process has ended") from problem
        return self._answer()

    def _answer(self) -> Any:
        try:
            if not self._connection.poll(self.job.patience):
                raise PeerError(f"no answer within {self.job.patience:g} seconds")
            done, value = self._connection.recv()
        except (EOFError, OSError) as problem:
            raise PeerError("the process has ended") from problem
        if not done:
            raise PeerError(value)
        return value


def median_step(step: Callable[[], object], seconds: float, apart: float = 0.0) -> float:
    """Takes steps for so many seconds, and gives the median of what they took, in seconds. One follows at once, or
    begins so many seconds after the one before."""
    for _ in range(_SETTLING):
        step()
    took: list[float] = []
    started = time.perf_counter()
    while len(took) < _FEWEST or time.perf_counter() - started < seconds:
        before = time.perf_counter()
        step()
        took.append(time.perf_counter() - before)
        if apart:
            time.sleep(max(0.0, apart - took[-1]))
    return sorted(took)[len(took) // 2]


def _serve(connection: Connection, job: Job) -> None:
    """What runs in the process: answers (True, result) or (False, what went wrong)."""
    os.dup2(2, 1)  # what a library says on its own is no result
    try:
        begun = job.begin()
        connection.send((True, (begun.version, begun.first_ms)))
        while True:
            request, value = connection.recv()
            connection.send((True, begun.show(value) if request == "show" else begun.turn(value)))
    except (EOFError, OSError, KeyboardInterrupt):
        return
    except Exception as problem:  # whatever a library raises
        connection.send((False, f"{type(problem).__name__}: {problem}".splitlines()[0]))
