"""A performance with a save every so often, one in five of them broken: how soon a save is on the screen, whether the
picture waits for it, and how memory grows.

    scripts/headless .venv/bin/python -m benchmarks.saves [--seconds 60] [--every 1] [--size 160x90] [--patch FILE]

As much time goes by without a save at first, so that the frames of both can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Event = dict[str, Any]

_BROKEN = "\nbroken = 2 sin(me@x)\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="with saves")
    parser.add_argument("--control", type=float, help="seconds without, before them; as many if not given")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between saves")
    parser.add_argument("--patch", type=Path, default=Path("patches/bench/fifty.weft"))
    parser.add_argument("--headless", action="store_true", help="no window")
    parser.add_argument("--size", help="instead of the patch's")
    asked = parser.parse_args()
    options = ["--headless"] * asked.headless + (["--size", asked.size] if asked.size else [])
    with tempfile.TemporaryDirectory() as folder, playing(Path(folder), asked.patch, options) as (process, patch):
        wait_for_frames(patch)
        began = now(patch)
        time.sleep(asked.seconds if asked.control is None else asked.control)
        between = now(patch)
        memory = save_and_weigh(process, patch, asked.seconds, asked.every)
        ended = now(patch)
        report(events(patch), began, between, ended)
        report_growth(memory)


@contextmanager
def playing(folder: Path, original: Path, options: list[str]) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A performance of a copy of a patch."""
    patch = folder / original.name
    patch.write_text(original.read_text())
    command = [sys.executable, "-m", "weft", "run", str(patch), "--events", str(folder / "events"), *options]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield process, patch
    finally:
        process.terminate()
        process.wait()


def events(patch: Path) -> list[Event]:
    lines = (patch.parent / "events").read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def wait_for_frames(patch: Path, patience: float = 60) -> None:
    """Waits until the picture moves, which takes a while on a busy machine."""
    deadline = time.monotonic() + patience
    while not ((patch.parent / "events").exists() and any(e["event"] == "frames" for e in events(patch))):
        if time.monotonic() > deadline:
            raise SystemExit("the performance does not begin")
        time.sleep(0.1)


def now(patch: Path) -> float:
    """The moment of the last event, on the performance's own clock."""
    return float(events(patch)[-1]["t"])


def variants(text: str) -> Iterator[str]:
    """Texts that each differ from the one before in a number, as a player's do; one in five is broken."""
    numbers = [found.span() for found in re.finditer(r"(?<![\w.#\"])\d+\.\d+(?![\w.])", text)]
    count = 0
    while True:
        start, end = numbers[count % len(numbers)]
        count += 1
        changed = f"{float(text[start:end]) * 0.999:.5f}"
        yield text[:start] + changed + text[end:] + (_BROKEN if count % 5 == 0 else f"// {count}\n")


def save_and_weigh(
    process: subprocess.Popen[bytes], patch: Path, seconds: float, every: float
) -> list[tuple[float, int]]:
    """Saves for so long; gives moments, in seconds, with the bytes that the performance takes."""
    texts = variants(patch.read_text())
    began = time.monotonic()
    memory = []
    while (moment := time.monotonic() - began) < seconds:
        saving = patch.with_suffix(".saving")
        saving.write_text(next(texts))
        os.replace(saving, patch)
        memory.append((moment, resident(process.pid)))
        time.sleep(max(0.0, every - (time.monotonic() - began - moment)))
    return memory


def resident(pid: int) -> int:
    """The bytes that a process and its children have in memory."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,rss="], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = [[int(number) for number in line.split()] for line in listed.splitlines()]
    return sum(rss for each, parent, rss in rows if pid in (each, parent)) * 1024


def report(found: list[Event], began: float, between: float, ended: float) -> None:
    swaps = [event for event in found if event["event"] == "swap"]
    latency = sorted(event["latency_ms"] for event in swaps)
    compiled = [event["parse_ms"] + event["graph_ms"] + event["compile_ms"] for event in swaps]
    broken = sum(event["event"] == "error" for event in found)
    print(f"{len(swaps)} swaps, {broken} broken saves")
    print(f"save → frame    p50 {statistics.median(latency):.1f} ms, p95 {percentile(latency, 0.95):.1f} ms")
    print(f"compile         p50 {statistics.median(compiled):.1f} ms")
    for name, start, end in (("without saves", began, between), ("with saves", between, ended)):
        seconds = [e for e in found if e["event"] == "frames" and start < e["t"] <= end]
        dropped = sum(event["dropped"] for event in seconds)
        slowest = statistics.median(event["p99_ms"] for event in seconds)
        shown = statistics.mean(event["fps"] for event in seconds)
        print(f"{name:15} {shown:.1f} frames a second, p99 {slowest:.1f} ms, {dropped} dropped in {len(seconds)} s")


def percentile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def report_growth(memory: list[tuple[float, int]]) -> None:
    """The slope of a straight line through the second half, when all that is remembered is full."""
    settled = memory[len(memory) // 2 :]
    moments, sizes = [m for m, _ in settled], [float(s) for _, s in settled]
    slope = statistics.linear_regression(moments, sizes).slope if len(settled) > 2 else float("nan")
    print(f"memory          {sizes[-1] / 1e6:.0f} MB, growing by {slope * 3600 / 1e6:.1f} MB an hour")


if __name__ == "__main__":
    main()
