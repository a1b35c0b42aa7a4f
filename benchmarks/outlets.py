"""Pictures for other programs: how many go out, and what they cost the thread that draws.

    .venv/bin/python -m benchmarks.outlets [--seconds 600] [--size 1920x1080] [--fps 60] [--to http,srt,rtmp]
        [--devices gl,wgpu,cuda]

For each kind, pictures that move are given to the process of an outlet at their times, as a performance gives them, and
a program of its own receives: a client of the page's stream for `http`, ffmpeg for the others. `drawn` are the pictures
that were given in time, `dropped` those that did not go out, of which the performer is told; the times are those of the
thread that draws, for each picture: looking at what the process says, sound, and handing the picture over. Frames that
this program itself was too late for are `late`. The receiver copies a stream and does not decode it; what it `received`
has the pictures of the three seconds before counting begins, too.

With `--devices`, these draw the pictures, without a window. The time is still that of handing them over: asking for the
pixels, and lending those of the picture before (the medians of both are said, too), not that of drawing.
"""

from __future__ import annotations

import argparse
import http.client
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.generated import percentile
from tests.support.ports import free_port
from weft.backends.base import Env, Values
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.errors import Source, WeftError
from weft.outlets import outlet_of
from weft.runtime.compiling.stages import Request, build
from weft.runtime.films.outlet_process import start_outlet
from weft.runtime.films.recording import LiveEncoder
from weft.runtime.live.record import PictureSender
from weft.runtime.program.coordinator import pictures_of
from weft.runtime.program.program import ProgramLoader

_RATE = 48_000
# Seconds in which a receiver has to be there, and so many pictures that move.
_PATIENCE, _PICTURES = 60.0, 8


def pictures(width: int, height: int) -> list[NDArray[np.uint8]]:
    """Waves that move, with letters' worth of sharp edges."""
    y, x = np.mgrid[:height, :width].astype(np.float32) / height
    made = []
    for turn in range(_PICTURES):
        at = turn / _PICTURES * 2 * np.pi
        red = 0.5 + 0.5 * np.sin(x * 9 + at)
        green = 0.5 + 0.5 * np.sin(np.hypot(x - 0.9, y - 0.5) * 25 - at)
        blue = ((x * 16 + turn / _PICTURES * 2).astype(int) + (y * 16).astype(int)) % 2
        picture = np.full((height, width, 4), 255, np.uint8)
        picture[..., :3] = np.rint(np.stack([red, green, blue], -1) * 255)
        made.append(picture)
    return made


# The same by a device.
_PATCH = """\
red = 0.5 + 0.5 * sin(me@x * 9 + me@time)
green = 0.5 + 0.5 * sin(sqrt((me@x - 0.5)^2 + (me@y - 0.5)^2) * 25 - me@time)
display(red, green, (floor(me@x * 28 + me@time * 2) + floor(me@y * 16)) % 2)
"""


def drawing_by(device: str, size: tuple[int, int], fps: int) -> tuple[Callable[[int], Values], str]:
    """A function that draws the picture of a frame, and what draws it. Raises WeftError."""
    chosen = choose(load_registry(), ["visual"], device)
    built = build(Request(Source("waves.weft", _PATCH), load_registry().contexts))
    loaded = ProgramLoader(chosen).prepare(built.compiled, size)

    def draw(number: int) -> Values:
        env = Env(*size, tick=number, abstime=number / fps, dt=1 / fps, pictures=loaded.pictures)
        shown = pictures_of(loaded.runner.run(env))[""]
        return shown.values

    about = chosen["visual"].device
    return draw, about.name + ", which is the processor in the place of a card" * about.software


def _one_of(made: Sequence[Values], number: int) -> Values:
    return made[number % len(made)]


@contextmanager
def receiver(kind: str, port: int) -> Iterator[subprocess.Popen[str]]:
    """A program that receives, and at its end prints how many pictures it got."""
    if kind == "http":
        command = [sys.executable, "-m", "benchmarks.outlets", "--receive", str(port)]
    else:
        program = shutil.which("ffmpeg") or sys.exit("ffmpeg is missing")
        address = {
            "srt": f"srt://127.0.0.1:{port}?mode=listener", "rtmp": f"rtmp://127.0.0.1:{port}/app/key",
            "udp": f"udp://127.0.0.1:{port}?fifo_size=100000",
        }[kind]  # fmt: skip
        listen = ["-listen", "1"] if kind == "rtmp" else []
        # What it says is read at the end only: more often, it would fill the pipe within minutes, and stand still.
        telling = ["-v", "error", "-nostats", "-stats_period", "30", "-progress", "pipe:1"]
        command = [program, *telling, *listen, "-i", address, "-map", "0:v", "-c", "copy", "-f", "null", "-"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def received(process: subprocess.Popen[str]) -> str:
    """How many pictures a receiver got, once it has ended."""
    try:
        said, _ = process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
    numbers = [line.partition("=")[2] for line in said.splitlines() if line.startswith("frame=")]
    return numbers[-1] if numbers else "?"


def receive_page(port: int) -> None:
    """Receives the stream of the page until it ends."""
    deadline, count = time.monotonic() + _PATIENCE, 0
    while time.monotonic() < deadline:
        try:
            asked = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            asked.request("GET", "/stream")
            answer = asked.getresponse()
            while data := answer.read1(1 << 20):
                count += data.count(b"Content-Type: image")
            break
        except OSError:
            if count:
                break
            time.sleep(0.2)
    print(f"frame={count}", flush=True)


class Drawing:
    """The part of a performance that gives pictures and sound to one outlet."""

    def __init__(self, encoder: LiveEncoder, with_sound: bool) -> None:
        self._encoder = encoder
        self._sender = PictureSender(encoder)
        self._with_sound = with_sound
        self.took: list[float] = []
        self.lending: list[float] = []
        self.asking: list[float] = []
        self.drawn = self.dropped = self.told_dropped = 0
        self.words: list[str] = []
        self.is_connected = not with_sound

    def frame(self, picture: Values, number: int, fps: int) -> None:
        """Gives one picture, and the sound up to it."""
        at = np.arange(number * _RATE // fps, (number + 1) * _RATE // fps) / _RATE
        tone = (np.sin(2 * np.pi * 440 * at) * 0.3).astype(np.float32)
        sound = np.stack([tone, tone], 1)
        began = time.perf_counter()
        self._encoder.poll()
        while self._encoder.told:
            kind, said = self._encoder.told.pop(0)
            if isinstance(said, int):
                self.told_dropped += said
            else:
                self.words.append(f"{kind}: {said}")
                self.is_connected = self.is_connected or kind == "well"
        if self._with_sound:
            self._encoder.hear(sound)
        lends = time.perf_counter()
        self._sender.fetch()
        asks = time.perf_counter()
        is_taken = self._sender.send(picture, number)
        ended = time.perf_counter()
        self.took.append((ended - began) * 1e3)
        self.lending.append((asks - lends) * 1e3)
        self.asking.append((ended - asks) * 1e3)
        self.drawn += is_taken
        self.dropped += not is_taken

    def forget(self) -> None:
        """Begins to count."""
        for times in (self.took, self.lending, self.asking):
            times.clear()
        self.drawn = self.dropped = self.told_dropped = 0


def measure(kind: str, seconds: float, size: tuple[int, int], fps: int, draw: Callable[[int], Values]) -> None:
    """Says what became of the pictures of one kind of outlet."""
    port = free_port(socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
    target = {"http": f"http:{port}", "rtmp": f"rtmp://127.0.0.1:{port}/app/key"}.get(kind, f"{kind}://127.0.0.1:{port}")
    outlet = outlet_of(target)
    assert outlet is not None
    spec = outlet.spec
    with receiver(kind, port) as program:
        encoder = start_outlet(spec, outlet.place.text, size, fps, _RATE if spec.has_sound else 0, "secret")
        drawing = Drawing(encoder, spec.has_sound)
        deadline = time.monotonic() + _PATIENCE
        while not encoder.is_ready and not encoder.is_done and time.monotonic() < deadline:
            encoder.poll(0.02)
        number = counted_from = late = 0
        began = time.monotonic()
        is_counting = False
        while not encoder.is_done:
            if not is_counting and drawing.is_connected and time.monotonic() - began > 3:
                drawing.forget()
                is_counting, counted_from, late = True, number, 0
            if is_counting and (number - counted_from) / fps >= seconds:
                break
            if not is_counting and time.monotonic() - began > _PATIENCE:
                break
            drawing.frame(draw(number), number, fps)
            number += 1
            wait = began + number / fps - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            elif -wait > 1 / fps:
                missed = int(-wait * fps)
                late, number = late + missed, number + missed
        encoder.close()
        took, got = drawing.took or [0.0], received(program)
        times = ", ".join(f"p{round(share * 100)} {percentile(took, share):.3f}" for share in (0.5, 0.95, 0.99))
        print(
            f"{kind:5} {size[0]}×{size[1]} at {fps} for {len(took) / fps:.0f} s: drawn {drawing.drawn}, "
            f"dropped {drawing.dropped + drawing.told_dropped}, late {late}, received {got}; "
            f"the thread that draws: {times}, at most {max(took):.1f} ms", flush=True,
        )  # fmt: skip
        asked, lent = (f"{percentile(times or [0.0], 0.5):.3f}" for times in (drawing.asking, drawing.lending))
        print(f"      asking for pixels {asked}, lending those of the picture before {lent} (medians)")
        for words in dict.fromkeys([*drawing.words, *([encoder.failure] if encoder.failure else [])]):
            print(f"      told: {words}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--size", default="1920x1080")
    parser.add_argument("--fps", type=int, default=60)
    parser.add_argument("--to", default="http,srt,rtmp", help="of http, srt, rtmp, udp")
    parser.add_argument("--devices", default="", help="such as gl,wgpu,cuda; the processor's pictures if left out")
    parser.add_argument("--receive", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.receive:
        receive_page(asked.receive)
        return
    width, height = map(int, asked.size.split("x"))
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors", flush=True)
    for device in asked.devices.split(","):
        if device:
            try:
                draw, about = drawing_by(device, (width, height), asked.fps)
            except WeftError as problem:
                print(f"{device}: {problem}")
                continue
            print(f"{device}: {about}", flush=True)
        else:
            made = pictures(width, height)
            draw = partial(_one_of, made)
        for kind in asked.to.split(","):
            measure(kind, asked.seconds, (width, height), asked.fps, draw)
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
