"""What recording costs, and how exact it is:
python -m benchmarks.recording [--seconds 8] [--drift 20] [--saves 5] [BACKEND …]

Each patch is drawn and recorded at 60 frames a second. Shown are the milliseconds of processor time that the thread
that draws spends on a frame for the recording, and those of the encoder. Then a performance is recorded whose pictures
show the time, and the moments at which they are shown are compared with its sound, at the beginning and at the end.
Meanwhile the patch is saved every few seconds, with another picture and another sound.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from weft.backends.base import Env
from weft.errors import Source, WeftError
from weft.runtime.compiling.stages import Request, build
from weft.runtime.hands.clock import Clock
from weft.runtime.live.events import EventLog, Reporter
from weft.runtime.live.record import Recorder
from weft.runtime.program.coordinator import pictures_of
from weft.runtime.program.program import Setup
from weft.runtime.sound.player import Sound
from weft.runtime.sound.renderer import SoundOptions

FPS, RATE = 60, 48000
PLASMA = Path(__file__).parents[1] / "patches" / "plasma.weft"
PATCHES = {
    "light, 1080p": ("display(fract(me@x + me@time * 0.2), me@y, 0.5)\n", (1920, 1080)),
    "plasma, 720p": (PLASMA.read_text(encoding="utf-8"), (1280, 720)),
}
DRIFT = (
    "me<width> = 320; me<height> = 180; me<fps> = 50\nnow<v> = fract(me@time)\ndisplay(now@v, now@v, now@v)\n"
    "loud<v> = if now@v < 0.5 then 0.5 else 0\naudio(loud@v)\n"
)
# Another picture of the same brightness, and a sound that is loud at the same moments.
SAVED = DRIFT.replace("now@v, now@v, now@v", "now@v * 1, now@v, 1 * now@v").replace("0.5 else", "0.4 else")


def record(text: str, size: tuple[int, int], backend: str, seconds: float, folder: Path) -> str:
    """Draws and records a patch; returns the figures."""
    setup = Setup(str(folder / "patch.weft"), backend)
    contexts, loader = setup.open()
    settings = {"width": float(size[0]), "height": float(size[1]), "fps": float(FPS)}
    made = build(Request(Source("patch.weft", text), contexts, settings))
    loaded = loader.prepare(loader.translate(made.compiled), size)
    said = list[str]()
    sound = Sound(setup, SoundOptions(is_silent=True))
    recorder, clock = Recorder(Reporter(EventLog(None), echo=said.append), sound, folder, "film"), Clock()
    recorder.start(size, FPS, RATE)
    recorder.begin()
    spent = _children()
    took, drawing, began = list[float](), list[float](), time.perf_counter()
    for tick in range(round(seconds * FPS)):
        time.sleep(max(0.0, began + tick / FPS - time.perf_counter()))
        moment = clock.tick()
        started = time.thread_time()
        env = Env(*size, tick, moment.time, moment.dt, dict(loaded.compiled.starts))
        shown = pictures_of(loaded.runner.run(env)).get("")
        drawn = time.thread_time()
        recorder.follow(None if shown is None else shown.values, clock, size, FPS, RATE)
        took.append((time.thread_time() - drawn) * 1e3)
        drawing.append((drawn - started) * 1e3)
    recorder.close()
    most = np.percentile(took, 95)
    encoding = (_children() - spent) / (seconds * FPS) * 1e3
    figures = f"recording {np.mean(took):5.2f} (95 %: {most:5.2f})   drawing {np.mean(drawing):6.2f}"
    return f"{figures}   encoder {encoding:6.2f}   {said[-1].rpartition('/')[2]}"


def _children() -> float:
    """The processor time of processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def lateness(path: Path) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """When the new pictures of a film are shown, and by how much that is later than the sound of the same moment, both
    in seconds; modulo a second."""
    import av

    with av.open(str(path)) as film:
        frames = film.decode(video=0)
        found = [(float(frame.time or 0), frame.to_ndarray(format="rgb24").mean() / 255) for frame in frames]
    with av.open(str(path)) as film:
        left = np.concatenate([frame.to_ndarray()[0] for frame in film.decode(audio=0)])
    times, shown = np.array(found).T
    edges = np.flatnonzero((left[1:] > 0.25) & (left[:-1] <= 0.25)) + 1
    edges = edges[np.diff(edges, prepend=-RATE) > 0.7 * RATE] / RATE
    is_new = (np.abs(np.diff(shown, prepend=shown[0])) > 0.01) & (shown > 0.05) & (shown < 0.95)
    is_new &= times > edges[0]
    times, shown = times[is_new], shown[is_new]
    # Against the last beginning of a second that was heard before: a drift would show in either.
    heard = times - edges[np.searchsorted(edges, times) - 1]
    return times, (heard - shown + 0.5) % 1 - 0.5


def drift(seconds: float, between: float, folder: Path) -> str:
    """Records a performance with saves; returns how late its pictures are at the beginning and at the end."""
    patch, saves = folder / "drift.weft", 0
    patch.write_text(DRIFT, encoding="utf-8")
    options = ["--headless", "--record", "drift.mp4", "--duration", str(seconds)]
    command = [sys.executable, "-m", "weft", "run", "drift.weft", *options]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(between)
            saves += 1
            patch.write_text((DRIFT, SAVED)[saves % 2], encoding="utf-8")
        if process.returncode:
            return process.communicate()[1]
        said = process.communicate()[1].splitlines()[-1]
    times, late = lateness(folder / "drift.mp4")
    first, last = (late[part] * 1e3 for part in (times < seconds / 4, times > seconds * 3 / 4))
    words = ", ".join(f"{name} {np.median(part):+.1f}" for name, part in (("beginning", first), ("end", last)))
    most = f"at most {np.abs(late).max() * 1e3:.1f} (a frame lasts 20)"
    return f"{saves} saves; {said}\npictures after their sound, ms: {words}, {most}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("backends", nargs="*", default=["native", "gl"])
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--drift", type=float, default=20)
    parser.add_argument("--saves", type=float, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print("milliseconds of processor time for a frame")
        for backend in options.backends:
            for name, (text, size) in PATCHES.items():
                try:
                    figures = record(text, size, f"visual={backend}", options.seconds, Path(folder))
                except WeftError as problem:
                    figures = str(problem)
                print(f"  {backend:7} {name:13} {figures}")
        print(drift(options.drift, options.saves, Path(folder)))


if __name__ == "__main__":
    main()
