"""The measurement of one kernel, with all participants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.beside.turns import Result, best, ratio, take_turns
from benchmarks.beside.worker import PeerError, Worker
from benchmarks.sound_peers.job import ASKED, Job
from benchmarks.sound_peers.peer import RATE
from benchmarks.sound_peers.reference import sound, wrong
from benchmarks.sound_peers.registry import OURS, PEERS, RIVALS


def measure(
    kernel: str, peers: Sequence[str], seconds: float, rounds: int, tell: Callable[[str], None]
) -> list[Result[Job]]:
    """One kernel on all `peers`: `seconds` for each, in so many rounds. weft is also asked for as little at once as a
    sound card would ask for, by Python; the others have their loop over blocks in compiled code."""
    jobs = [Job(peer, kernel) for peer in peers]
    jobs += [Job(peer, kernel, ASKED) for peer in peers if peer in OURS]
    expected = sound(kernel, 0, RATE)

    def check(worker: Worker, job: Job, is_last: bool) -> None:
        peer = PEERS[job.peer]
        if is_last and peer.drifts:
            return
        first, heard = worker.show(float(is_last))
        problem = wrong(heard, sound(kernel, first, heard.shape[1]) if is_last else expected, peer.tolerance)
        if problem:
            raise PeerError(f"{problem}, from {first / RATE:g} s on")

    return take_turns(jobs, seconds, rounds, check, tell)


def realtime_factor(result: Result[Job]) -> float | None:
    """How many seconds of sound it computes in a second."""
    return 1 / result.seconds if result.seconds else None


def ours(results: Sequence[Result[Job]], asked: int = RATE) -> Result[Job] | None:
    """The best of weft, asked for so many samples at once."""
    return best([each for each in results if each.job.peer in OURS and each.job.asked == asked])


def rival(results: Sequence[Result[Job]], in_double: bool = False) -> Result[Job] | None:
    """The best of Faust; `in_double`, as weft computes, or in whichever precision."""
    theirs = [each for each in results if each.job.peer in RIVALS]
    return best([each for each in theirs if not (in_double and PEERS[each.job.peer].drifts)])


def ratios(results: Sequence[Result[Job]], asked: int = RATE) -> list[float | None]:
    """For each result how many times as fast the best of weft is."""
    found = ours(results, asked)
    return [ratio(each, found) for each in results]
