"""A performance with a save every so often: how soon each kind of edit is on the screen, whether the picture waits for
it, and how memory grows.

    scripts/headless .venv/bin/python -m benchmarks.saves [--seconds 60] [--every 1] [--size 160x90] [--patch FILE]

Edits come in turn: a number in the first or last third of the text, a statement, a number in the spindle that is used
most, a library, a comment, and a mistake with its correction. As much time goes by without a save at first, so that the
frames of both can be compared.
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
from itertools import count
from pathlib import Path
from typing import Any

from weft.runtime.compiling.compiler import Saved

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
        kinds, memory = save_and_weigh(process, patch, asked.seconds, asked.every)
        ended = now(patch)
        report(events(patch), kinds, began, between, ended)
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


_NUMBER = re.compile(r"(?<![\w.#\"])\d+\.\d+(?![\w.])")
_SPINDLE = re.compile(r"^spindle (\w+)\(.*?^}", re.MULTILINE | re.DOTALL)
_STATEMENT, _LIBRARY, _COMMENT = "added = fract(me@x * 3 + me@time)\n", "#use std.map\n", "// a comment\n"


def edits(text: str) -> Iterator[tuple[str, str]]:
    """Texts that each differ from the one before as a player's do, with the kind of the edit."""
    spindle = max(_SPINDLE.finditer(text), key=lambda found: text.count(f"{found[1]}("), default=None)
    for turn in count():
        for start, end, kind in ((0, 1 / 3, "number, early"), (2 / 3, 1, "number, late")):
            text = _changed(text, turn, int(start * len(text)), int(end * len(text)))
            yield kind, text
        text = _toggled(text, _STATEMENT)
        yield "statement", text
        if spindle is not None:
            found = next(each for each in _SPINDLE.finditer(text) if each[1] == spindle[1])
            text = _changed(text, turn, *found.span())
            yield "spindle", text
        text = _toggled(text, _LIBRARY)
        yield "library", text
        text = _toggled(text, _COMMENT)
        yield "comment", text
        yield "mistake", text + _BROKEN
        text = _changed(text, turn, 0, len(text))
        yield "correction", text


def _changed(text: str, turn: int, start: int, end: int) -> str:
    """The text with another number, one of those between two places; the same if there is none."""
    numbers = [found.span() for found in _NUMBER.finditer(text, start, end)]
    if not numbers:
        return text
    first, last = numbers[turn * 7 % len(numbers)]
    return f"{text[:first]}{float(text[first:last]) * 0.999:.5f}{text[last:]}"


def _toggled(text: str, line: str) -> str:
    return text.replace(line, "") if line in text else line + text


def save_and_weigh(
    process: subprocess.Popen[bytes], patch: Path, seconds: float, every: float
) -> tuple[dict[str, str], list[tuple[float, int]]]:
    """Saves for so long; gives the kinds of the edits by the hashes of the texts, and moments, in seconds, with the
    bytes that the performance takes."""
    texts = edits(patch.read_text())
    began = time.monotonic()
    kinds, memory = dict[str, str](), list[tuple[float, int]]()
    while (moment := time.monotonic() - began) < seconds:
        kind, text = next(texts)
        saved = Saved(text.encode(), moment)
        kinds.setdefault(saved.hash, kind)
        saving = patch.with_suffix(".saving")
        saving.write_bytes(saved.data)
        os.replace(saving, patch)
        # To count the bytes takes the processor too, so it waits until the save is on the screen.
        time.sleep(every / 2)
        memory.append((moment, resident(process.pid)))
        time.sleep(max(0.0, every - (time.monotonic() - began - moment)))
    return kinds, memory


def resident(pid: int) -> int:
    """The bytes that a process and its children have in memory."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,rss="], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = [[int(number) for number in line.split()] for line in listed.splitlines()]
    return sum(rss for each, parent, rss in rows if pid in (each, parent)) * 1024


def report(found: list[Event], kinds: dict[str, str], began: float, between: float, ended: float) -> None:
    answers = [event for event in found if event["event"] in ("swap", "error") and event["hash"] in kinds]
    swaps = [event for event in answers if event["event"] == "swap"]
    print(f"{len(swaps)} swaps, {len(answers) - len(swaps)} broken saves; from save to frame or message, ms:")
    by_kind = {kind: [e for e in answers if kinds[e["hash"]] == kind] for kind in dict.fromkeys(kinds.values())}
    for kind, group in {**by_kind, "all swaps": swaps}.items():
        if group:
            latency = sorted(event["latency_ms"] for event in group)
            shares = " ".join(f"{percentile(latency, share):7.1f}" for share in (0.5, 0.95, 0.99))
            print(f"{kind:15} p50, p95, p99 {shares}   {len(group)} times")
    stages = dict.fromkeys(name for event in swaps for name in event["stages"])
    medians = (statistics.median(event["stages"].get(name, 0.0) for event in swaps) for name in stages)
    print("stages (p50)    " + ", ".join(f"{name} {took:.1f}" for name, took in zip(stages, medians, strict=True)))
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
