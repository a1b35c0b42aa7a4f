"""A performance on Windows, under Wine: saves of every kind while its window shows it, its sound is recorded from a
loudspeaker that is none, and a film is made of it. At the end it is killed.

    .venv/bin/python -m benchmarks.windows [--seconds 600] [--saves 100]

Saves come by a rename, in place, while another program has the file for itself, broken, and in two halves. Half a
minute of a tone of Wine itself, which weft has nothing to do with, is heard before, to compare with.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean

from benchmarks.generated import percentile

HERTZ = 440
TEXT = (
    f"tone<v> = sin(me@time * {HERTZ * 2} * 3.14159265358979) * 0.25\n"
    "display(0.5 + 0.5 * sin(me@x * 9 + me@time), me@y, {shade})\naudio(tone@v)\n"
)
KINDS = "rename", "in place", "locked", "broken", "half"

_BLOCK = 1024
_CONTROL = 30.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--saves", type=int, default=100)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    match asked.inside:
        case "perform":
            perform(asked.seconds, asked.saves)
        case "tone":
            play_tone(asked.seconds)
        case _:
            listen(asked)


# --- outside ----------------------------------------------------------------------------------------------------------


def listen(asked: argparse.Namespace) -> None:
    """Runs both under Wine, and reports what was heard."""
    from tests.support.sound import private_sound

    with tempfile.TemporaryDirectory() as name, private_sound(Path(name) / "server") as loudspeaker:
        loudspeaker.start()
        for inside, seconds in (("tone", _CONTROL), ("perform", asked.seconds)):
            command = ["scripts/headless", "scripts/windows", "python", "-m", "benchmarks.windows", "--inside", inside]
            options = ["--seconds", str(seconds), "--saves", str(asked.saves)]
            environment = {**os.environ, **loudspeaker.environment}
            with loudspeaker.recorded(Path(name) / inside) as file:
                subprocess.run([*command, *options], env=environment, check=True)
            report_sound(inside, file)


def report_sound(name: str, file: Path) -> None:
    from tests.support.sound import RATE, breaks, frequency, read, stretches

    heard = read(file)[:, 0]
    parts = stretches(heard)
    found = [heard[part] for part in parts if part.stop - part.start > RATE // 10]
    if not found:
        print(f"{name}: nothing is heard")
        return
    longest = max(found, key=len)
    gaps = [after.start - before.stop for before, after in pairwise(parts)]
    jumps = sum(len(breaks(each, HERTZ, 2e-3)) for each in found)
    print(
        f"{name}: {sum(map(len, found)) / RATE:.1f} s are heard, at {frequency(longest[: 10 * RATE]):.2f} Hz; "
        f"{len(gaps)} gaps, of {sum(gaps) / RATE * 1e3:.0f} ms together; it jumps at {jumps} samples",
        flush=True,
    )


# --- inside -----------------------------------------------------------------------------------------------------------


def play_tone(seconds: float) -> None:
    """A sine by PortAudio alone."""
    import numpy as np
    import pyaudio

    player = pyaudio.PyAudio()
    rate = 48000
    stream = player.open(rate, 2, pyaudio.paFloat32, output=True, frames_per_buffer=_BLOCK)
    for first in range(0, int(seconds * rate), _BLOCK):
        sine = 0.25 * np.sin(np.arange(first, first + _BLOCK) * (2 * np.pi * HERTZ / rate))
        stream.write(np.repeat(sine, 2).astype(np.float32).tobytes())
    stream.close()
    player.terminate()


def perform(seconds: float, saves: int) -> None:
    """Plays, saves, and reports figures of the events."""
    from tests.support.performance import Performance
    from tests.windows.processes import children, eventually
    from weft.media.decoding import times_of

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        patch, film = Path(name) / "show.weft", Path(name) / "show.mp4"
        patch.write_text(TEXT.replace("{shade}", "0.5"), encoding="utf-8")
        with Performance(patch, "--size", "640x360", "--record", str(film)) as performance:
            performance.wait_for("frames", 3)
            save_in_turn(performance, seconds, saves)
            events, number = performance.events, performance.process.pid
            partial = film.with_name("show.part.mp4")
            played = float(events[-1]["t"])
            print(f"{len(children(number))} processes besides; the film has {partial.stat().st_size / 1e6:.1f} MB")
            performance.process.kill()
            began = time.monotonic()
            eventually(lambda: not children(number), "the end of its processes")
            print(f"killed: none is left after {time.monotonic() - began:.2f} s; ", end="")
            print(f"{times_of(partial)[1]:.1f} s of a film of {played:.1f} s play")
        report_events(events)


def save_in_turn(performance: object, seconds: float, saves: int) -> None:
    from tests.support.performance import Performance
    from tests.windows.processes import Held

    assert isinstance(performance, Performance)
    patch, began = performance.patch, time.monotonic()
    for number in range(saves):
        text = TEXT.replace("{shade}", f"{(number + 1) / (saves + 1):.4f}")
        match KINDS[number % len(KINDS)]:
            case "rename":
                performance.save(text)
            case "in place":
                patch.write_text(text, encoding="utf-8")
            case "locked":
                patch.write_text(text, encoding="utf-8")
                with Held(patch):
                    time.sleep(0.3)
            case "broken":
                patch.write_text(text + "display(1, 1", encoding="utf-8")
            case "half":
                half = len(text) // 2
                with patch.open("w", encoding="utf-8") as file:
                    file.write(text[:half])
                    file.flush()
                    time.sleep(0.01)
                    file.write(text[half:])
        time.sleep(max(0.0, began + seconds * (number + 1) / saves - time.monotonic()))


def report_events(events: Sequence[dict[str, object]]) -> None:
    swaps = [event for event in events if event["event"] == "swap"]
    took = [float(str(event["latency_ms"])) for event in swaps]
    errors = sum(event["event"] == "error" for event in events)
    print(f"{len(swaps)} swaps and {errors} errors; from save to frame", end=" ")
    print(f"p50 {percentile(took, 0.5):.0f} p95 {percentile(took, 0.95):.0f} ms" if took else "nothing")
    frames = [event for event in events if event["event"] == "frames"]
    shown, dropped = (mean(float(str(event[name])) for event in frames) for name in ("fps", "dropped"))
    print(f"{shown:.1f} frames a second, of which {dropped:.1f} are dropped")
    heard = [event for event in events if event["event"] == "audio"]
    print("sound: " + (", ".join(f"{k} {v}" for k, v in heard[-1].items() if k != "event") if heard else "none"))
    print("also: " + ", ".join(sorted({str(event["event"]) for event in events})), flush=True)


if __name__ == "__main__":
    sys.exit(main())
