"""Threads that share the tiles of a launch."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import TypeAlias

_Jobs: TypeAlias = "SimpleQueue[Callable[[], None] | None]"
_Results: TypeAlias = "SimpleQueue[BaseException | None]"


class BandPool:
    """Threads that wait for work for as long as the pool lives. They are started when they are first needed."""

    def __init__(self) -> None:
        self._jobs: _Jobs = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._here = threading.local()
        weakref.finalize(self, _end, self._jobs, self._threads)

    def run(self, work: Callable[[int], None], workers: int) -> None:
        """Calls `work` with each of 0 … workers - 1 at once, 0 in the calling thread; comes back when all are done.
        Raises what one of them raised.

        Work that itself wants to share work does that alone: its threads are all taken.
        """
        if getattr(self._here, "working", False):
            for number in range(workers):
                work(number)
            return
        self._start(workers - 1)
        results: _Results = SimpleQueue()
        for number in range(1, workers):
            self._jobs.put(partial(self._report, work, number, results))
        self._report(work, 0, results)
        raised = [_awaited(results) for _ in range(workers)]
        for exception in raised:
            if exception is not None:
                raise exception

    def _report(self, work: Callable[[int], None], number: int, results: _Results) -> None:
        self._here.working = True
        raised: BaseException | None = None
        try:
            work(number)
        except BaseException as exception:  # for the thread that waits for all of them
            raised = exception
        finally:
            self._here.working = False
            results.put(raised)

    def _start(self, count: int) -> None:
        while len(self._threads) < count:
            thread = threading.Thread(target=_serve, args=(self._jobs,), name="weft-band", daemon=True)
            self._threads.append(thread)
            thread.start()


def _awaited(results: _Results) -> BaseException | None:
    """What one of the threads raised. Whatever interrupts the wait is raised when it is over: what the threads work on
    is theirs until then."""
    interruption: BaseException | None = None
    while True:
        try:
            raised = results.get()
        except BaseException as exception:
            interruption = exception
        else:
            return raised or interruption


def _serve(jobs: _Jobs) -> None:
    while (job := jobs.get()) is not None:
        job()
        del job  # it knows the pool, which shall be free to end while this thread waits


def _end(jobs: _Jobs, threads: list[threading.Thread]) -> None:
    for _ in threads:
        jobs.put(None)
