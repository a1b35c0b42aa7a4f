"""A performance with a save every so often: how soon each kind of edit is on the screen, whether the picture waits for
it, and how memory grows.

    scripts/headless .venv/bin/python -m benchmarks.saves [--seconds 60] [--every 1] [--size 160x90] [--patch FILE]
    scripts/headless .venv/bin/python -m benchmarks.saves --generated [--seed 1] [--count 22] --seconds 20

Edits come in turn: a number in the first or last third of the text, a statement that comes, is read and goes, the
spindle that is used most, a library, a comment, and a mistake with its correction. As much time goes by without a save
at first, so that the frames of both can be compared. Of generated patches, a line each is printed, and the worst.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import generated
from benchmarks.generated import GeneratedPatch, percentile
from weft.runtime.compiling.compiler import Saved

Event = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="with saves")
    parser.add_argument("--control", type=float, help="seconds without, before them; as many if not given")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between saves")
    parser.add_argument("--patch", type=Path, default=Path("patches/bench/fifty.weft"))
    parser.add_argument("--headless", action="store_true", help="no window")
    parser.add_argument("--size", help="instead of the patch's")
    parser.add_argument("--backend", help="instead of the best one")
    parser.add_argument("--generated", action="store_true", help="patches that nobody tuned for")
    generated.add_options(parser)
    asked = parser.parse_args()
    if asked.generated:
        report_generated(generated.patches(asked.seed, asked.count), asked)
        return
    performed = perform(asked.patch.name, asked.patch.read_text(encoding="utf-8"), asked)
    report(performed)
    report_growth(performed.memory)


class Performance(NamedTuple):
    """What was found of a performance with saves. `kinds` are those of the edits, by the hashes of the texts; the saves
    `began` after a time without them; all moments are in seconds."""

    found: list[Event]
    kinds: dict[str, str]
    memory: list[tuple[float, int]]
    without_saves: float
    began: float
    ended: float

    @property
    def answers(self) -> list[Event]:
        return [event for event in self.found if event["event"] in ("swap", "error") and event["hash"] in self.kinds]

    @property
    def by_kind(self) -> dict[str, list[float]]:
        """Milliseconds until the frame or the message, for each kind of edit."""
        took: dict[str, list[float]] = {kind: [] for kind in dict.fromkeys(self.kinds.values())}
        for event in self.answers:
            took[self.kinds[event["hash"]]].append(event["latency_ms"])
        return {kind: times for kind, times in took.items() if times}

    @property
    def refused(self) -> list[Event]:
        """The answers to texts without a mistake that are messages."""
        return [e for e in self.answers if e["event"] == "error" and self.kinds[e["hash"]] != "mistake"]

    def seconds(self, start: float, end: float) -> list[Event]:
        """What was reported of the frames of each second."""
        return [e for e in self.found if e["event"] == "frames" and start < e["t"] <= end]


def perform(name: str, text: str, asked: argparse.Namespace) -> Performance:
    """Plays a patch, first without saves and then with edits of all kinds."""
    options = ["--headless"] * asked.headless
    for option in ("size", "backend"):
        options += [f"--{option}", getattr(asked, option)] if getattr(asked, option) else []
    with tempfile.TemporaryDirectory() as folder, playing(Path(folder) / name, text, options) as (process, patch):
        wait_for_frames(patch)
        without_saves = now(patch)
        time.sleep(asked.seconds if asked.control is None else asked.control)
        began = now(patch)
        kinds, memory = save_and_weigh(process, patch, asked.seconds, asked.every)
        return Performance(events(patch), kinds, memory, without_saves, began, now(patch))


def report_generated(patches: Sequence[GeneratedPatch], asked: argparse.Namespace) -> None:
    """A line for each patch and for each kind of edit, and the worst of both. Drops are those of seconds with saves."""
    by_patch, by_kind = dict[str, list[float]](), dict[str, list[float]]()
    print("from save to frame or message, ms")
    for patch in patches:
        performed = perform(f"{patch.name}.weft", patch.text, asked)
        for kind, times in performed.by_kind.items():
            by_patch.setdefault(patch.name, []).extend(times)
            by_kind.setdefault(kind, []).extend(times)
        dropped, before = (
            sum(event["dropped"] for event in performed.seconds(start, end))
            for start, end in ((performed.began, performed.ended), (performed.without_saves, performed.began))
        )
        frames = f"{dropped} frames dropped, {before} without saves, {len(performed.refused)} refused"
        print(_line(patch.name, by_patch.get(patch.name, [])), frames, flush=True)
    print(*(_line(kind, times) for kind, times in by_kind.items()), sep="\n")
    print(generated.worst(by_patch, "patch"), generated.worst(by_kind, "kind of edit"), sep="\n")


def _line(name: str, took: Sequence[float]) -> str:
    shares = " ".join(f"{percentile(took, share):7.1f}" for share in (0.5, 0.95, 0.99)) if took else " " * 23
    return f"{name:19} p50, p95, p99 {shares}   {len(took)} times"


@contextmanager
def playing(patch: Path, text: str, options: list[str]) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A performance of a text, which is written to `patch`."""
    patch.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "weft", "run", str(patch), "--events", str(patch.parent / "events"), *options]
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


def save_and_weigh(
    process: subprocess.Popen[bytes], patch: Path, seconds: float, every: float
) -> tuple[dict[str, str], list[tuple[float, int]]]:
    """Saves for so long; gives the kinds of the edits by the hashes of the texts, and moments, in seconds, with the
    bytes that the performance takes."""
    texts = generated.edits(patch.read_text(encoding="utf-8"))
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


def report(performed: Performance) -> None:
    swaps = [event for event in performed.answers if event["event"] == "swap"]
    broken = len(performed.answers) - len(swaps)
    print(f"{len(swaps)} swaps, {broken} broken saves; from save to frame or message, ms:")
    for kind, took in {**performed.by_kind, "all swaps": [event["latency_ms"] for event in swaps]}.items():
        print(_line(kind, took))
    stages = dict.fromkeys(name for event in swaps for name in event["stages"])
    medians = (statistics.median(event["stages"].get(name, 0.0) for event in swaps) for name in stages)
    print("stages (p50)    " + ", ".join(f"{name} {took:.1f}" for name, took in zip(stages, medians, strict=True)))
    spans = (performed.without_saves, performed.began), (performed.began, performed.ended)
    for name, span in zip(("without saves", "with saves"), spans, strict=True):
        seconds = performed.seconds(*span)
        dropped = sum(event["dropped"] for event in seconds)
        slowest = statistics.median(event["p99_ms"] for event in seconds)
        shown = statistics.mean(event["fps"] for event in seconds)
        print(f"{name:15} {shown:.1f} frames a second, p99 {slowest:.1f} ms, {dropped} dropped in {len(seconds)} s")


def report_growth(memory: list[tuple[float, int]]) -> None:
    """The slope of a straight line through the second half, when all that is remembered is full."""
    settled = memory[len(memory) // 2 :]
    moments, sizes = [m for m, _ in settled], [float(s) for _, s in settled]
    slope = statistics.linear_regression(moments, sizes).slope if len(settled) > 2 else float("nan")
    print(f"memory          {sizes[-1] / 1e6:.0f} MB, growing by {slope * 3600 / 1e6:.1f} MB an hour")


if __name__ == "__main__":
    main()
