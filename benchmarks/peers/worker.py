"""A process that draws one kernel with one participant: libraries with threads and settings of their own do not meet,
and one that crashes takes nobody along."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.peers.peer import Picture, Prepared
from benchmarks.peers.reference import KERNELS
from benchmarks.peers.registry import PEERS

# The longest that a worker may be silent, in seconds.
_PATIENCE = 120

# The picture that a tool draws before it is measured, so that it has done all that it does only once.
_SMALL = (64, 36)

# Frames that a turn begins with and that do not count: the processor's caches are still full of another's data.
_SETTLING = 2
_FEWEST = 3

# The time of the first frame, in seconds. The others follow at 60 a second.
START = 1.7


class PeerError(Exception):
    """A participant cannot draw; says why."""


@dataclass(frozen=True, slots=True)
class Job:
    """What one worker draws."""

    peer: str
    kernel: str
    width: int
    height: int
    threads: int


class Worker:
    """The process of a job. Between two calls it sleeps."""

    def __init__(self, job: Job) -> None:
        """Compiles and draws the first frame. Raises PeerError."""
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

    def picture(self, time: float) -> Picture:
        drawn: Picture = self._ask("picture", time)
        return drawn

    def turn(self, seconds: float) -> float:
        """Draws frames for so many seconds, and gives the median of what they took, in seconds."""
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
            if not self._connection.poll(_PATIENCE):
                raise PeerError(f"no answer within {_PATIENCE} seconds")
            done, value = self._connection.recv()
        except (EOFError, OSError) as problem:
            raise PeerError("the process has ended") from problem
        if not done:
            raise PeerError(value)
        return value


def _serve(connection: Connection, job: Job) -> None:
    """What runs in the process: answers (True, result) or (False, what went wrong)."""
    os.dup2(2, 1)  # what a library says on its own is no result
    try:
        prepared, version, first = _prepared(job)
        connection.send((True, (version, first * 1e3)))
        frames = 0
        while True:
            request, value = connection.recv()
            if request == "picture":
                prepared.draw(value)
                connection.send((True, prepared.picture()))
            else:
                took = _turn(prepared.draw, value, frames)
                frames += len(took)
                connection.send((True, sorted(took)[len(took) // 2]))
    except (EOFError, OSError, KeyboardInterrupt):
        return
    except Exception as problem:  # whatever a library raises
        connection.send((False, f"{type(problem).__name__}: {problem}".splitlines()[0]))


def _prepared(job: Job) -> tuple[Prepared, str, float]:
    """The kernel, with what has drawn it and the seconds from the text to the first frame, in a tool that has already
    drawn another one."""
    peer = PEERS[job.peer]
    other = next(kernel for kernel in KERNELS if kernel != job.kernel)
    peer.prepare(other, *_SMALL, job.threads).draw(START)
    before = time.perf_counter()
    prepared = peer.prepare(job.kernel, job.width, job.height, job.threads)
    prepared.draw(START)
    took = time.perf_counter() - before
    return prepared, peer.version(), took


def _turn(draw: Callable[[float], None], seconds: float, frame: int) -> list[float]:
    for number in range(_SETTLING):
        draw(START + (frame + number) / 60)
    took: list[float] = []
    started = time.perf_counter()
    while len(took) < _FEWEST or time.perf_counter() - started < seconds:
        before = time.perf_counter()
        draw(START + (frame + len(took)) / 60)
        took.append(time.perf_counter() - before)
    return took
