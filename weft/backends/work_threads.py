"""Threads that work in places of their own, such as the contexts of a graphics library."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, ExitStack
from queue import SimpleQueue
from typing import Generic, TypeVar

P = TypeVar("P")
T = TypeVar("T")

# Seconds to wait for a thread to end, and between two looks whether there are threads at all.
_LEAVE, _GLANCE = 2.0, 1.0

CLOSED = "the window is closed"
"""Why nothing is drawn, or made ready, any more."""


class WorkThreads(Generic[P]):
    """Threads that make programs ready, each in a place that it enters once: it takes some drivers tens of milliseconds
    to make a context current in another thread."""

    def __init__(
        self, name: str, places: Sequence[Callable[[], AbstractContextManager[P]]], failure: type[Exception]
    ) -> None:
        """`failure` is what a place raises that cannot be entered, and `do` for threads that have ended."""
        self._failure = failure
        self._jobs: SimpleQueue[Callable[[P | Exception], None] | None] = SimpleQueue()
        self._threads = [threading.Thread(target=self._run, args=(each,), name=name, daemon=True) for each in places]
        for each in self._threads:
            each.start()

    def do(self, work: Callable[[P], T]) -> T:
        """The result of some work in one of the places, or what it raises. The work must not call this. Raises the
        failure once the threads have ended."""
        result = Future[T]()

        def job(place: P | Exception) -> None:
            try:
                if isinstance(place, Exception):
                    raise place
                result.set_result(work(place))
            except BaseException as failure:
                result.set_exception(failure)

        self._jobs.put(job)
        while not wait([result], _GLANCE).done:
            if not any(each.is_alive() for each in self._threads):
                raise self._failure(CLOSED)
        return result.result()

    def close(self) -> None:
        """Ends the threads. Waits for a while for those that are at work."""
        for _ in self._threads:
            self._jobs.put(None)
        for each in self._threads:
            each.join(_LEAVE)

    def _run(self, enter: Callable[[], AbstractContextManager[P]]) -> None:
        with ExitStack() as stack:
            place: P | Exception
            try:
                place = stack.enter_context(enter())
            except self._failure as failure:
                place = failure
            while (job := self._jobs.get()) is not None:
                job(place)
                del job  # what it has made belongs to others
