"""The command line: `python -m benchmarks.peers --help`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from benchmarks.beside.command import machine_line, number, parser, rounded, tell
from benchmarks.beside.turns import Result
from benchmarks.peers.job import Job
from benchmarks.peers.measure import measure, mpixel_per_s, ratios
from benchmarks.peers.reference import KERNELS
from benchmarks.peers.registry import PEERS
from weft.backends.hardware import cores
from weft.runtime.inspect.measure import machine


def main() -> None:
    options = _options()
    width, height = map(int, options.size.split("x"))
    threads = sorted({1, options.threads})
    made: list[dict[str, Any]] = []
    for kernel in options.kernels:
        results = measure(
            kernel, (width, height), options.peers, threads, options.seconds, options.rounds, tell, options.fps
        )
        if options.json:
            made += [_row(result, ratio) for result, ratio in zip(results, ratios(results), strict=True)]
        else:
            print("\n".join(_table(kernel, results, threads)), end="\n\n", flush=True)
    if options.json:
        print(json.dumps({"machine": machine(), "size": options.size, "results": made}, indent=2))
    else:
        print(machine_line(options.size))


def _options() -> argparse.Namespace:
    made = parser("python -m benchmarks.peers", "Pictures of weft beside other tools.", PEERS, KERNELS)
    made.add_argument("--size", default="1280x720", help="of the picture")
    made.add_argument("--threads", type=int, default=cores(), help="measured besides one; default: all cores")
    made.add_argument("--fps", type=float, default=0.0, help="pictures a second; default: one behind the other")
    return made.parse_args()


def _row(result: Result[Job], ratio: float | None) -> dict[str, Any]:
    job = result.job
    figures = {
        "first_ms": result.first_ms,
        "p50_ms": result.seconds and result.seconds * 1e3,
        "mpix_per_s": mpixel_per_s(result),
        "weft_ratio": ratio,
    }
    named = {"kernel": job.kernel, "peer": job.peer, "version": result.version, "threads": job.threads}
    return {**named, **rounded(figures), "reason": result.reason or None}


def _table(kernel: str, results: Sequence[Result[Job]], threads: Sequence[int]) -> list[str]:
    """A line for each participant. The first frame is that of the number of threads that was faster with it."""
    heads = [f"Mpixel/s × {count}" for count in threads] + ["first frame ms"]
    heads += [f"weft / it × {count}" for count in threads]
    lines = [f"{kernel:14}" + "".join(f"{head:>16}" for head in heads)]
    compared = list(zip(results, ratios(results), strict=True))
    for peer in dict.fromkeys(result.job.peer for result in results):
        own = [(result, ratio) for result, ratio in compared if result.job.peer == peer]
        speeds = [number(mpixel_per_s(result)) for result, _ in own]
        first = number(min((result.first_ms for result, _ in own if result.first_ms is not None), default=None))
        times = [number(ratio) for _, ratio in own]
        told = dict.fromkeys(result.reason or result.version for result, _ in own)
        cells = [*speeds, first, *times] if any(result.turns for result, _ in own) else []
        lines.append(f"{peer:14}" + "".join(f"{cell:>16}" for cell in cells) + "  " + "; ".join(told))
    return lines


if __name__ == "__main__":
    main()
