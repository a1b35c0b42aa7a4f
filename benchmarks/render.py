"""How fast films are drawn: python -m benchmarks.render [--rounds 3] [--workers 2]

Each patch is rendered to an mp4 at 60 frames a second by one process, and by several. The frames a second are those of
the second half of a film: the time of a film of half the length is taken off, and with it the start of the processes.
Each half has two segments for each worker. `encoding` is the share of the encoder in the processor time of one process:
what a film takes more than its frames alone.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

FPS = 60
# Seconds: the length of two segments.
SEGMENTS = 4
PATCHES = Path(__file__).parents[1] / "patches"
NUMBERS = (
    "level<v> = integrate(sin(me@time * 3))\n"
    "display(fract(me@x * 9 + level@v), hash(me@px * me@py + level@v), me@y)\n"
)
LIGHT = "display(fract(me@x + me@time * 0.2), me@y, 0.5)\n"
FILMS = {
    "light, 720p": (LIGHT, "1280x720"),
    "plasma, 720p": ((PATCHES / "plasma.weft").read_text(encoding="utf-8"), "1280x720"),
    "voronoi, 360p, 9 samples": ((PATCHES / "voronoi.weft").read_text(encoding="utf-8"), "640x360 --samples 3"),
    "remembers numbers, 720p": (NUMBERS, "1280x720"),
}
_FILM = "-o film.mp4 --overwrite"


class _Took(NamedTuple):
    """Seconds of the clock, and of all processors."""

    wall: float
    processor: float


def rendered(folder: Path, size: str, seconds: float, words: str) -> _Took:
    """What a render takes. Raises CalledProcessError if it fails."""
    options = f"patch.weft --fps {FPS} --size {size} --duration {seconds} {words}".split()
    before, began = _processor(), time.perf_counter()
    run = [sys.executable, "-m", "weft", "render", *options]
    subprocess.run(run, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return _Took(time.perf_counter() - began, _processor() - before)


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def of_second_half(folder: Path, size: str, half_length: float, words: str) -> _Took:
    """What the second half of a film takes, without the start of the processes."""
    half, whole = (rendered(folder, size, length, words) for length in (half_length, 2 * half_length))
    return _Took(whole.wall - half.wall, whole.processor - half.processor)


def figures(folder: Path, size: str, rounds: int, workers: int) -> str:
    """One line of figures."""
    seconds = SEGMENTS * workers
    alone, shared, share = list[float](), list[float](), list[float]()
    for _ in range(rounds):
        one = of_second_half(folder, size, seconds, _FILM)
        several = of_second_half(folder, size, seconds, f"{_FILM} --workers {workers}")
        raw = of_second_half(folder, size, seconds, "-o - --format rgba")
        alone.append(seconds * FPS / one.wall)
        shared.append(seconds * FPS / several.wall)
        share.append(1 - raw.processor / one.processor)
    speed, faster = statistics.median(alone), statistics.median(s / a for s, a in zip(shared, alone, strict=True))
    return f"{speed:7.0f} frames/s   {workers} workers: {faster:4.2f} ×   encoding {statistics.median(share):4.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, (text, size) in FILMS.items():
            (folder / "patch.weft").write_text(text, encoding="utf-8")
            print(f"{title:25} {figures(folder, size, options.rounds, options.workers)}", flush=True)


if __name__ == "__main__":
    main()
