"""The measurement of one kernel, with all participants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.beside.turns import Result, best, ratio, take_turns
from benchmarks.beside.worker import PeerError, Worker
from benchmarks.peers.job import START, Job
from benchmarks.peers.reference import picture, wrong
from benchmarks.peers.registry import OURS

# When pictures are held against the reference before any time is taken, in seconds: first of all that of the first
# frame, then one that is late enough to show a phase that has lost its digits.
CHECKED = (START, 0.0, 100.3)

# And after the last turn, for what goes wrong only now and then.
CHECKED_LAST = 12.34


def measure(
    kernel: str,
    size: tuple[int, int],
    peers: Sequence[str],
    threads: Sequence[int],
    seconds: float,
    rounds: int,
    tell: Callable[[str], None],
    fps: float = 0.0,
) -> list[Result[Job]]:
    """One kernel on all `peers`, with each number of `threads`: `seconds` for each, in so many rounds; `fps` pictures a
    second, or one behind the other."""
    expected = {at: picture(kernel, *size, at) for at in (*CHECKED, CHECKED_LAST)}

    def check(worker: Worker, job: Job, is_last: bool) -> None:
        for at in [CHECKED_LAST] if is_last else CHECKED:
            problem = wrong(worker.show(at), expected[at])
            if problem:
                raise PeerError(f"{problem}, at {at} s")

    jobs = [Job(peer, kernel, *size, count, fps) for peer in peers for count in threads]
    return take_turns(jobs, seconds, rounds, check, tell)


def mpixel_per_s(result: Result[Job]) -> float | None:
    return result.job.width * result.job.height / result.seconds / 1e6 if result.seconds else None


def ratios(results: Sequence[Result[Job]]) -> list[float | None]:
    """For each result how many times as fast the best of weft is with as many threads."""
    ours = [each for each in results if each.job.peer in OURS]
    return [ratio(each, best([our for our in ours if our.job.threads == each.job.threads])) for each in results]
