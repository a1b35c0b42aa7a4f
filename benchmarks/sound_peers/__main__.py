"""The command line: `python -m benchmarks.sound_peers --help`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.beside.command import machine_line, number, parser, rounded, tell
from benchmarks.beside.turns import Result, ratio
from benchmarks.sound_peers.job import ASKED, Job
from benchmarks.sound_peers.measure import measure, ours, ratios, realtime_factor, rival
from benchmarks.sound_peers.peer import RATE
from benchmarks.sound_peers.reference import KERNELS
from benchmarks.sound_peers.registry import PEERS
from weft.runtime.inspect.measure import machine

# How the libraries of numpy are told, before they are loaded, to take one core as all others do.
_ONE_CORE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def main() -> None:
    made = parser("python -m benchmarks.sound_peers", "Sounds of weft beside other tools.", PEERS, KERNELS)
    made.add_argument("--markdown", action="store_true", help="one table, as docs/performance.md has it")
    options = made.parse_args()
    os.environ.update(_ONE_CORE)
    found: dict[str, list[Result[Job]]] = {}
    for kernel in options.kernels:
        found[kernel] = measure(kernel, options.peers, options.seconds, options.rounds, tell)
        if not (options.json or options.markdown):
            print("\n".join(_table(kernel, found[kernel])), end="\n\n", flush=True)
    if options.json:
        rows = [row for results in found.values() for row in _rows(results)]
        print(json.dumps({"machine": machine(), "rate": RATE, "results": rows}, indent=2))
        return
    if options.markdown:
        print("\n".join(_markdown(found)), end="\n\n")
    print(machine_line())


def _rows(results: Sequence[Result[Job]]) -> list[dict[str, Any]]:
    found = []
    for result, times in zip(results, ratios(results), strict=True):
        job = result.job
        named = {"kernel": job.kernel, "peer": job.peer, "version": result.version, "asked": job.asked}
        figures = {"first_ms": result.first_ms, "realtime_factor": realtime_factor(result), "weft_ratio": times}
        found.append({**named, **rounded(figures), "reason": result.reason or None})
    return found


def _table(kernel: str, results: Sequence[Result[Job]]) -> list[str]:
    """A line for each participant, and one for the best of both."""
    heads = ["× real time", "first block ms", "weft / it", f"weft by {ASKED} / it"]
    lines = [f"{kernel:24}" + "".join(f"{head:>18}" for head in heads)]
    for result, times, by_few in zip(results, ratios(results), ratios(results, ASKED), strict=True):
        cells = [realtime_factor(result), result.first_ms, times, by_few] if result.turns else []
        told = result.reason or result.version
        lines.append(f"{result.job.name:24}" + "".join(f"{number(cell):>18}" for cell in cells) + f"  {told}")
    lines += [f"{words}: {number(times)}" for words, (times,) in _against_rival([results]).items()]
    return lines


def _against_rival(found: Sequence[Sequence[Result[Job]]]) -> dict[str, list[float | None]]:
    """How many times as fast as the best of Faust the best of weft is, with each kernel; by what is compared."""
    told = {}
    for in_double, rival_words in ((False, "the best of Faust"), (True, "the best of Faust in double precision")):
        for asked, our_words in ((RATE, "weft"), (ASKED, f"weft by {ASKED}")):
            pairs = [(rival(results, in_double), ours(results, asked)) for results in found]
            told[f"{our_words} / {rival_words}"] = [ratio(their, our) if their else None for their, our in pairs]
    return told


def _markdown(found: Mapping[str, Sequence[Result[Job]]]) -> list[str]:
    """A line for each participant that was there, with all kernels; and one for the best of both."""
    lines = [f"| tool | {' | '.join(found)} | first block, ms |", "| --- " * (len(found) + 2) + "|"]
    for name in dict.fromkeys(result.job.name for results in found.values() for result in results):
        own = [next(result for result in results if result.job.name == name) for results in found.values()]
        if any(result.turns for result in own):
            speeds = " | ".join(number(realtime_factor(result)) for result in own)
            lines.append(f"| {name} | {speeds} | {' / '.join(number(result.first_ms) for result in own)} |")
    for words, times in _against_rival(list(found.values())).items():
        lines.append(f"| {words} | {' | '.join(map(number, times))} | |")
    told = dict.fromkeys(
        f"{result.job.kernel}: {result.job.peer} is {result.version}" if result.turns else
        f"{result.job.kernel}: {result.job.name} is left out: {result.reason}"
        for results in found.values() for result in results
    )  # fmt: skip
    return [*lines, "", *told]


if __name__ == "__main__":
    main()
