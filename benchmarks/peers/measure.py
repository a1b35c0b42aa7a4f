"""The measurement of one kernel: all participants in turns, so that whatever else the machine does hits all alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from benchmarks.peers.peer import Picture
from benchmarks.peers.reference import picture, wrong
from benchmarks.peers.registry import OURS, PEERS
from benchmarks.peers.worker import START, Job, PeerError, Worker

# When pictures are held against the reference before any time is taken, in seconds: first of all that of the first
# frame, then one that is late enough to show a phase that has lost its digits.
CHECKED = (START, 0.0, 100.3)

# And after the last turn, for what goes wrong only now and then.
CHECKED_LAST = 12.34


@dataclass
class Result:
    """What came out of a job. There are times only if every picture was right."""

    job: Job
    version: str = ""
    first_ms: float | None = None
    turns: list[float] = field(default_factory=list)
    """For each round the median time of a frame, in seconds."""
    reason: str = ""
    """Why there are no times."""

    @property
    def seconds(self) -> float | None:
        return statistics.median(self.turns) if self.turns else None

    @property
    def mpixel_per_s(self) -> float | None:
        return self.job.width * self.job.height / self.seconds / 1e6 if self.seconds else None

    def fails(self, reason: str) -> None:
        self.reason, self.first_ms, self.turns = reason, None, []


def measure(
    kernel: str,
    size: tuple[int, int],
    peers: Sequence[str],
    threads: Sequence[int],
    seconds: float,
    rounds: int,
    tell: Callable[[str], None],
) -> list[Result]:
    """One kernel on all `peers`, with each number of `threads`: `seconds` for each, in so many rounds."""
    results = [Result(Job(peer, kernel, *size, count)) for peer in peers for count in threads]
    expected = {at: picture(kernel, *size, at) for at in (*CHECKED, CHECKED_LAST)}
    with ExitStack() as stack:
        workers: list[tuple[Result, Worker]] = []
        for result in results:
            reason = PEERS[result.job.peer].available()
            if reason:
                result.fails(reason)
                continue
            tell(f"{kernel}: {result.job.peer} × {result.job.threads}")
            with _told_in(result):
                worker = Worker(result.job)
                stack.callback(worker.close)
                result.version, result.first_ms = worker.version, worker.first_ms
                _check(worker, expected, CHECKED)
                workers.append((result, worker))
        for number in range(rounds):
            tell(f"{kernel}: round {number + 1} of {rounds}")
            for result, worker in workers:
                if not result.reason:
                    with _told_in(result):
                        result.turns.append(worker.turn(seconds / rounds))
        for result, worker in workers:
            if not result.reason:
                with _told_in(result):
                    _check(worker, expected, [CHECKED_LAST])
    return results


def ratios(results: Sequence[Result]) -> list[float | None]:
    """For each result how many times as fast the best of weft is with as many threads: the median over the rounds,
    each of which compares what was measured at about the same time."""
    found: list[float | None] = []
    for result in results:
        ours = [each for each in results if each.job.peer in OURS and each.job.threads == result.job.threads]
        best = min((each for each in ours if each.turns), key=lambda each: each.seconds or 0, default=None)
        if best is None or not result.turns:
            found.append(None)
        else:
            found.append(statistics.median(theirs / our for theirs, our in zip(result.turns, best.turns, strict=True)))
    return found


def _check(worker: Worker, expected: dict[float, Picture], times: Sequence[float]) -> None:
    """Raises PeerError if a picture is wrong."""
    for at in times:
        problem = wrong(worker.picture(at), expected[at])
        if problem:
            raise PeerError(f"{problem}, at {at} s")


@contextmanager
def _told_in(result: Result) -> Iterator[None]:
    try:
        yield
    except PeerError as problem:
        result.fails(str(problem))
