"""What a film costs the thread that draws: python -m benchmarks.films [--size 1920x1080] [--seconds 3] [BACKEND …]

A film of noise that moves is made first, at 60 frames a second. Each tick is drawn with the film as it plays, and as it
stands still; the difference is what a new frame costs. `in time` says how many ticks showed the very frame of their
time; the others showed one nearby.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import numpy as np

from weft.backends.base import Env
from weft.errors import Source, WeftError
from weft.media.films import FilmPicture
from weft.media.sampled import header_of
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.program import LoadedProgram, Setup

FPS = 60
PATCH = 'load("film.mp4")::f<r, g, b>\ndisplay(f{})\n'
WAYS = {
    "forwards": "@rgb", "backwards": "@rgb(me@time ~ -me@time)", "at double speed": "@rgb(me@time ~ me@time * 2)",
    "scratched": "@rgb(me@time ~ 1.5 + sin(me@time * 3))", "standing still": "@rgb(me@time ~ 1)",
}  # fmt: skip


def make_film(path: Path, width: int, height: int, seconds: int) -> None:
    import av

    noise = np.random.default_rng(1).integers(0, 255, (height // 8, width // 8, 3), np.uint8)
    large = np.kron(noise, np.ones((8, 8, 1), np.uint8))
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=FPS, options={"preset": "veryfast", "g": "60"})
        stream.width, stream.height, stream.pix_fmt = large.shape[1], large.shape[0], "yuv420p"
        for number in range(seconds * FPS):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(np.roll(large, 4 * number, 1)), format="rgb24")
            for packet in stream.encode(frame):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)


def play(loaded: LoadedProgram, seconds: float) -> tuple[np.ndarray[Any, Any], float]:
    """The milliseconds of each tick, in real time, and the share of ticks that showed the frame of their time."""
    films = [cast("FilmPicture", live) for live in loaded.live.values()]
    env, took, right = Env(*loaded.size, dt=1 / FPS), list[float](), 0
    began = time.perf_counter()
    for tick in range(round(seconds * FPS)):
        time.sleep(max(0.0, began + tick / FPS - time.perf_counter()))
        started = time.perf_counter()
        env = Env(*loaded.size, tick, started - began, 1 / FPS, pictures=loaded.pictures_at(started - began))
        results = loaded.runner.run(env)
        took.append((time.perf_counter() - started) * 1e3)
        np.asarray(results[0].array)  # waits for the card
        right += all(film.is_in_time for film in films)
    return np.array(took[FPS // 2 :]), right / (seconds * FPS)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("backends", nargs="*", default=["native", "gl"])
    parser.add_argument("--size", default="1920x1080")
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        make_film(Path(folder) / "film.mp4", width, height, 4)
        for backend in options.backends:
            print(f"{backend}, {width}×{height} at {FPS} frames a second: ms a tick in the drawing thread")
            try:
                name = str(Path(folder) / "patch.weft")
                contexts, loader = Setup(name, backend).open()
            except WeftError as problem:
                print(f"  {problem}")
                continue
            for way, read in WAYS.items():
                settings = {"width": float(width), "height": float(height), "fps": float(FPS)}
                made = build(Request(Source(name, PATCH.format(read)), contexts, settings, probe=header_of))
                loaded = loader.prepare(loader.translate(made.compiled), (width, height))
                took, right = play(loaded, options.seconds)
                half, most = np.percentile(took, [50, 95])
                print(f"  {way:16} median {half:6.2f}   95 %: {most:6.2f}   in time: {right:.0%}")


if __name__ == "__main__":
    main()
