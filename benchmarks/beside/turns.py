"""The measurement: all participants in turns, so that whatever else the machine does hits all alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from benchmarks.beside.worker import Job, PeerError, Worker

J = TypeVar("J", bound=Job)


@dataclass
class Result(Generic[J]):
    """What came out of a job. There are times only if all that it gave was right."""

    job: J
    version: str = ""
    first_ms: float | None = None
    turns: list[float] = field(default_factory=list)
    """For each round the median time of a step, in seconds."""
    reason: str = ""
    """Why there are no times."""

    @property
    def seconds(self) -> float | None:
        return statistics.median(self.turns) if self.turns else None

    def fails(self, reason: str) -> None:
        self.reason, self.first_ms, self.turns = reason, None, []


def take_turns(
    jobs: Sequence[J],
    seconds: float,
    rounds: int,
    check: Callable[[Worker, J, bool], None],
    tell: Callable[[str], None],
) -> list[Result[J]]:
    """Measures all `jobs`: `seconds` for each, in so many rounds. `check(worker, job, is_last)` is called before the
    first round and behind the last one, and raises PeerError if anything is wrong."""
    results = [Result(job) for job in jobs]
    with ExitStack() as stack:
        workers: list[tuple[Result[J], Worker]] = []
        for result in results:
            reason = result.job.unavailable()
            if reason:
                result.fails(reason)
                continue
            tell(str(result.job))
            with _told_in(result):
                worker = Worker(result.job)
                stack.callback(worker.close)
                result.version, result.first_ms = worker.version, worker.first_ms
                check(worker, result.job, False)
                workers.append((result, worker))
        for number in range(rounds):
            tell(f"round {number + 1} of {rounds}")
            for result, worker in workers:
                if not result.reason:
                    with _told_in(result):
                        result.turns.append(worker.turn(seconds / rounds))
        for result, worker in workers:
            if not result.reason:
                with _told_in(result):
                    check(worker, result.job, True)
    return results


def best(results: Sequence[Result[J]]) -> Result[J] | None:
    """The fastest of them; None if there is none with times."""
    return min((each for each in results if each.turns), key=lambda each: each.seconds or 0, default=None)


def ratio(result: Result[J], ours: Result[J] | None) -> float | None:
    """How many times as fast `ours` is: the median over the rounds, each of which compares what was measured at about
    the same time."""
    if ours is None or not (result.turns and ours.turns):
        return None
    return statistics.median(their / our for their, our in zip(result.turns, ours.turns, strict=True))


@contextmanager
def _told_in(result: Result[J]) -> Iterator[None]:
    try:
        yield
    except PeerError as problem:
        result.fails(str(problem))
