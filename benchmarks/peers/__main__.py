"""The command line: `python -m benchmarks.peers --help`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.measure import Result, measure, ratios
from benchmarks.peers.reference import KERNELS
from benchmarks.peers.registry import PEERS
from weft.backends.hardware import cores
from weft.runtime.measure import machine


def main() -> None:
    options = _options()
    width, height = map(int, options.size.split("x"))
    threads = sorted({1, options.threads})
    facts = machine()
    made: list[dict[str, Any]] = []
    for kernel in options.kernels:
        results = measure(kernel, (width, height), options.peers, threads, options.seconds, options.rounds, _tell)
        if options.json:
            made += [_row(result, ratio) for result, ratio in zip(results, ratios(results), strict=True)]
        else:
            print("\n".join(_table(kernel, results, threads)), end="\n\n", flush=True)
    if options.json:
        print(json.dumps({"machine": facts, "size": options.size, "results": made}, indent=2))
    else:
        told = (facts["processor"], facts["simd"], f"{facts['cores']} cores", f"Python {facts['python']}", options.size)
        print(" · ".join(map(str, told)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="weft beside other tools.")
    parser.add_argument("--peers", type=_names(PEERS), default=list(PEERS), help=f"of {', '.join(PEERS)}")
    parser.add_argument("--kernels", type=_names(KERNELS), default=list(KERNELS), help=f"of {', '.join(KERNELS)}")
    parser.add_argument("--size", default="1280x720", help="of the picture")
    parser.add_argument("--threads", type=int, default=cores(), help="measured besides one; default: all cores")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each measurement, all rounds together")
    parser.add_argument("--rounds", type=int, default=8, help="how many turns each takes")
    parser.add_argument("--json", action="store_true", help="the results as JSON on stdout")
    return parser.parse_args()


def _names(known: Any) -> Any:
    def names(text: str) -> list[str]:
        found = [part.strip() for part in text.split(",") if part.strip()]
        unknown = [name for name in found if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"there is no {', '.join(unknown)}, only {', '.join(known)}")
        return found

    return names


def _tell(line: str) -> None:
    if sys.stderr.isatty():
        print(line, file=sys.stderr)


def _row(result: Result, ratio: float | None) -> dict[str, Any]:
    job = result.job
    figures = {
        "first_ms": result.first_ms,
        "p50_ms": result.seconds and result.seconds * 1e3,
        "mpix_per_s": result.mpixel_per_s,
        "weft_ratio": ratio,
    }
    rounded = {name: None if value is None else float(f"{value:.4g}") for name, value in figures.items()}
    names = {"kernel": job.kernel, "peer": job.peer, "version": result.version, "threads": job.threads}
    return {**names, **rounded, "reason": result.reason or None}


def _table(kernel: str, results: Sequence[Result], threads: Sequence[int]) -> list[str]:
    """A line for each participant. The first frame is that of the number of threads that was faster with it."""
    heads = [f"Mpixel/s × {count}" for count in threads] + ["first frame ms"]
    heads += [f"weft / it × {count}" for count in threads]
    lines = [f"{kernel:14}" + "".join(f"{head:>16}" for head in heads)]
    compared = list(zip(results, ratios(results), strict=True))
    for peer in dict.fromkeys(result.job.peer for result in results):
        own = [(result, ratio) for result, ratio in compared if result.job.peer == peer]
        speeds = [_number(result.mpixel_per_s) for result, _ in own]
        first = _number(min((result.first_ms for result, _ in own if result.first_ms is not None), default=None))
        times = [_number(ratio) for _, ratio in own]
        told = dict.fromkeys(result.reason or result.version for result, _ in own)
        cells = [*speeds, first, *times] if any(result.turns for result, _ in own) else []
        lines.append(f"{peer:14}" + "".join(f"{cell:>16}" for cell in cells) + "  " + "; ".join(told))
    return lines


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
