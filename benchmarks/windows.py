"""A performance on Windows, under Wine: saves of every kind while its window shows it, its sound is recorded from a
loudspeaker that is none, and a film is made of it. At the end it is killed.

    .venv/bin/python -m benchmarks.windows [--seconds 600] [--saves 100] [--turns 3] [--alone] [--preferred]
    .venv/bin/python -m benchmarks.windows --stops 10 20 40 80

Saves come by a rename, in place, while another program has the file for itself, broken, and in two halves. To compare
with, each turn is played without sound as well, next to a tone of PortAudio alone: by the same device of Wine, in
blocks of the same length, and on a machine that is as busy. `--alone` leaves the tone out.

With `--stops`, the process that plays stands still a few times for each number of milliseconds, while the rest of the
machine goes on, and the gaps are counted. This says what a gap takes, whatever else the machine does.

Wine 8 keeps the priorities that a program asks for to itself. With `--preferred`, Linux gives them: to the process that
plays, of either kind, and to the server of Wine, for which both wait.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
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

_COMMAND = "scripts/headless", "scripts/windows", "python", "-m", "benchmarks.windows"
_PLAYS = b"weft.runtime.sound.server:main", b"--inside\0tone"
"""Parts of the command lines of the processes that play."""
_NICER = -10

_STOPS = 8
"""How often what plays stands still for each length."""
_BETWEEN = 0.5
_TO_SETTLE = 2.0
_MORE = 15.0
"""Seconds for which both play on, so that no part of a recording is cut off."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--saves", type=int, default=100)
    parser.add_argument("--turns", type=int, default=1, help="parts, each of which is compared with Wine's own tone")
    parser.add_argument("--alone", action="store_true", help="without Wine's own tone")
    parser.add_argument("--stops", type=int, nargs="+", metavar="MS", help="have what plays stand still")
    parser.add_argument("--preferred", action="store_true", help="give sound its priority, which Wine does not")
    parser.add_argument("--inside", choices=("perform", "compare", "tone"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    match asked.inside:
        case "perform" | "compare":
            perform(asked.seconds, asked.saves, is_compared=asked.inside == "compare")
        case "tone":
            play_tone(asked.seconds)
        case _ if asked.stops:
            stop_and_listen(asked.stops)
        case _:
            listen(asked)


# --- outside ----------------------------------------------------------------------------------------------------------


def listen(asked: argparse.Namespace) -> None:
    """Runs both under Wine, and reports what was heard."""
    from tests.support.sound import private_sound

    with tempfile.TemporaryDirectory() as name, private_sound(Path(name) / "server") as loudspeaker:
        loudspeaker.start()
        for turn in range(asked.turns):
            for inside in ("perform",) if asked.alone else ("compare", "perform"):
                length = ["--seconds", str(asked.seconds / asked.turns), "--saves", str(asked.saves // asked.turns)]
                options = ["--inside", inside, *length]
                environment = {**os.environ, **loudspeaker.environment}
                preference = preferring() if asked.preferred else nullcontext()
                with loudspeaker.recorded(Path(name) / inside) as file, preference:
                    subprocess.run([*_COMMAND, *options], env=environment, check=True)
                report_sound(f"{turn + 1} {inside}, at load {os.getloadavg()[0]:.1f}", file)


@contextmanager
def preferring() -> Iterator[None]:
    """Within this context, Linux gives priority to what plays, and to what that waits for."""
    ended = threading.Event()

    def prefer() -> None:
        while not ended.wait(0.2):
            for process in processes(*_PLAYS, b"wineserver"):
                with suppress(OSError):
                    for task in Path(f"/proc/{process}/task").iterdir():
                        os.setpriority(os.PRIO_PROCESS, int(task.name), _NICER)

    thread = threading.Thread(target=prefer)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def processes(*parts: bytes) -> list[int]:
    """The processes of this folder's Wine with any of these parts in their command line."""
    prefix, found = b"WINEPREFIX=" + bytes(Path.cwd() / ".wine" / "prefix"), []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes()
            # Shells and Python on Linux name what they start as well.
            is_wine = command.partition(b"\0")[0].endswith((b".exe", b"wineserver", b"wineserver64"))
            if is_wine and any(part in command for part in parts) and prefix in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def stop_and_listen(lengths: Sequence[int]) -> None:
    """Has each of both stand still, and reports the gaps."""
    from tests.support.sound import RATE, private_sound, read, stretches, until_heard

    seconds = _MORE + sum(_STOPS * (_BETWEEN + length / 1e3) for length in lengths)
    with tempfile.TemporaryDirectory() as name, private_sound(Path(name) / "server") as loudspeaker:
        loudspeaker.start()
        patch, environment = Path(name) / "tone.weft", {**os.environ, **loudspeaker.environment}
        patch.write_text(TEXT.replace("{shade}", "0.5"), encoding="utf-8")
        tone = [*_COMMAND, "--inside", "tone", "--seconds", str(seconds)]
        weft = [*_COMMAND[:2], "weft", "run", str(patch), "--size", "64x36", "--duration", str(seconds)]
        for kind, command in (("tone", tone), ("weft", weft)):
            with loudspeaker.recorded(Path(name) / kind) as file, subprocess.Popen(command, env=environment):
                until_heard(file, RATE)
                time.sleep(_TO_SETTLE)
                parts = [(length, stand_still(file, length)) for length in lengths]
                heard = read(file)[:, 0]
            for length, part in parts:
                sounds = stretches(heard[part])
                gaps = [after.start - before.stop for before, after in pairwise(sounds)]
                words = f"{_STOPS} times {length} ms: {len(gaps)} gaps, of {sum(gaps) / RATE * 1e3:.0f} ms together"
                print(f"{kind}, at load {os.getloadavg()[0]:.1f}, {words}", flush=True)


def stand_still(recording: Path, length: int) -> slice:
    """Stops what plays a few times for this many milliseconds. Returns the samples of the recording meanwhile."""
    from tests.support.sound import read

    first = len(read(recording))
    for _ in range(_STOPS):
        playing = processes(*_PLAYS)
        for number, seconds in ((signal.SIGSTOP, length / 1e3), (signal.SIGCONT, _BETWEEN)):
            for process in playing:
                with suppress(ProcessLookupError):
                    os.kill(process, number)
            time.sleep(seconds)
    return slice(first, len(read(recording)))


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
    """A sine by PortAudio alone, as weft opens its stream."""
    import numpy as np
    import pyaudio

    from weft.runtime.sound.renderer import SoundOptions

    player, options, first = pyaudio.PyAudio(), SoundOptions(), 0

    def called(_: object, frames: int, times: object, status: int) -> tuple[bytes, int]:
        nonlocal first
        sine = 0.25 * np.sin(np.arange(first, first + frames) * (2 * np.pi * HERTZ / options.rate))
        first += frames
        return np.repeat(sine, options.channels).astype(np.float32).tobytes(), pyaudio.paContinue

    stream = player.open(
        options.rate, options.channels, pyaudio.paFloat32, output=True, frames_per_buffer=options.frames,
        stream_callback=called,
    )  # fmt: skip
    time.sleep(seconds)
    stream.close()
    player.terminate()


def perform(seconds: float, saves: int, is_compared: bool) -> None:
    """Plays, saves, and reports figures of the events. If it `is_compared`, another process makes the sound."""
    from tests.support.performance import Performance
    from tests.windows.processes import children, eventually
    from weft.media.decoding import times_of

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        patch, film = Path(name) / "show.weft", Path(name) / "show.mp4"
        patch.write_text(TEXT.replace("{shade}", "0.5"), encoding="utf-8")
        options = ["--size", "640x360", "--record", str(film), *(["--no-audio"] if is_compared else [])]
        with Performance(patch, *options) as performance:
            performance.wait_for("frames", 3)
            if is_compared:
                tone = [sys.executable, "-m", "benchmarks.windows", "--inside", "tone", "--seconds", str(seconds)]
                with subprocess.Popen(tone):
                    save_in_turn(performance, seconds, saves)
                return
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
    main()
