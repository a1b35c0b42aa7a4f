"""Threads that share the tiles of a launch."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import TypeAlias

from weft.backends import hardware

_Jobs: TypeAlias = "SimpleQueue[Callable[[], None] | None]"


class _Outcome:
    """What became of one share of the work. To wait for it again after an interruption does no harm."""

    def __init__(self) -> None:
        self.raised: BaseException | None = None
        self.is_there = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def arrive(self, raised: BaseException | None) -> None:
        self.raised = raised
        self.is_there = True
        self._lock.release()

    def wait(self) -> None:
        while not self.is_there:
            self._lock.acquire()


class BandPool:
    """Threads that wait for work for as long as the pool lives. They are started when they are first needed."""

    def __init__(self) -> None:
        self._jobs: _Jobs = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._here = threading.local()
        self._kept_off: tuple[int, int] | None = None
        """The core that the threads are kept off, and how many they were."""
        weakref.finalize(self, _end, self._jobs, self._threads)

    def run(self, work: Callable[[int], None], workers: int) -> None:
        """Calls `work` with each of 0 … workers - 1 at once, 0 in the calling thread; comes back when all are done.
        Raises what one of them raised.

        Work that itself wants to share work does that alone: its threads are all taken.
        """
        is_working = getattr(self._here, "working", False)
        if not is_working:
            self._start(workers - 1)
        if is_working or (workers > 1 and not self._threads):
            for number in range(workers):
                work(number)
            return
        self._keep_off()
        others = [_Outcome() for _ in range(workers - 1)]
        for number, outcome in enumerate(others, 1):
            self._jobs.put(partial(self._report, work, number, outcome))
        own = _Outcome()
        raised: BaseException | None = None
        # An interruption is raised when all are done: what the threads work on is theirs until then.
        while not all(outcome.is_there for outcome in (own, *others)):
            try:
                if not own.is_there:
                    self._report(work, 0, own)
                for outcome in others:
                    outcome.wait()
            except BaseException as exception:
                raised = exception
                own.is_there = True
        for outcome in (own, *others):
            raised = raised or outcome.raised
        if raised is not None:
            raise raised

    def _report(self, work: Callable[[int], None], number: int, outcome: _Outcome) -> None:
        self._here.working = True
        raised: BaseException | None = None
        try:
            work(number)
        except BaseException as exception:  # for the thread that waits for all of them
            raised = exception
        finally:
            self._here.working = False
            outcome.arrive(raised)

    def _keep_off(self) -> None:
        """Has the threads run elsewhere than this one. The system likes to wake a thread where it ran last; if that is
        here, it waits until this one has done all the work, though another core has nothing to do."""
        core = hardware.current_core()
        if core is not None and self._kept_off != (core, len(self._threads)):
            self._kept_off = core, len(self._threads)
            hardware.keep_off(core, [thread.native_id for thread in self._threads if thread.native_id is not None])

    def _start(self, count: int) -> None:
        while len(self._threads) < count:
            thread = threading.Thread(target=_serve, args=(self._jobs,), name="weft-band", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return  # the system gives no more: those that there are have more to do
            self._threads.append(thread)


def _serve(jobs: _Jobs) -> None:
    while (job := jobs.get()) is not None:
        job()
        del job  # it knows the pool, which shall be free to end while this thread waits


def _end(jobs: _Jobs, threads: list[threading.Thread]) -> None:
    for _ in threads:
        jobs.put(None)
