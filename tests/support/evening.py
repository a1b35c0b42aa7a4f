"""An evening in short: a patch that sounds and shows, saved again and again while others want Python's lock.

Run as a program it is the performer's `weft`, in which a thread keeps Python's lock for 20 ms at a time.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.live.performance import Event, Performance
from tests.support.sound import RATE, Samples, SoundServer, breaks, frequency, read, sounding

HERTZ = 440.0
_ROOT = Path(__file__).parents[2]

# The tone stays as it is. The sound around it is another one with each save, at a level that nobody hears; and so is
# the picture, which reads the sound.
_PATCH = """\
// save {save}
tone = sin(me@time * {hertz} * tau) * 0.4
other = sin(phasor(100 + {save} % 7) * tau) * 0.00000001
audio(tone + other)
bar = step(me@x, {save} % 10 / 10)
display(tone@val(me@time ~ me@time - me@x * 0.01), bar, 0)
"""

# Sound comes and goes within this many samples.
_EDGE = RATE // 20


@dataclass(frozen=True)
class Evening:
    """What became of it: how many saves were swapped in, what was heard between one silence and the next, the last
    event about the sound, and how often the machine itself stood still meanwhile."""

    swaps: int
    heard: list[Samples]
    audio: Event
    stalls: int

    @property
    def hertz(self) -> float:
        return frequency(max(self.heard, key=len))

    @property
    def seconds(self) -> float:
        return sum(map(len, self.heard)) / RATE

    @property
    def gaps(self) -> int:
        """How often there was silence in between."""
        return len(self.heard) - 1

    @property
    def breaks(self) -> int:
        """How often sound did not go on from what was before it, apart from silences: 5 ms apart are two."""
        found = (breaks(stretch, HERTZ) for stretch in self.heard)
        return sum(1 + int(np.sum(np.diff(places) > RATE // 200)) for places in found if len(places))


def spend(folder: Path, loudspeaker: SoundServer, seconds: float, every: float = 1.0) -> Evening:
    """Plays for so many seconds, with a save every so often."""
    patch = folder / "evening.weft"
    _save(patch, 0)
    with loudspeaker.recorded(folder / "heard") as file, _watched() as watch:
        program = ("-m", __spec__.name)
        with Performance(patch, "--headless", "--size", "160x90", python=program, cwd=_ROOT) as performance:
            performance.wait_for("audio")
            ends = time.monotonic() + seconds
            save = 0
            while time.monotonic() < ends:
                save += 1
                _save(patch, save)
                time.sleep(every)
            events = performance.events
        time.sleep(0.5)
    stretches = sounding(read(file)[:, 0])
    stretches[0], stretches[-1] = stretches[0][_EDGE:], stretches[-1][:-_EDGE]
    swaps = sum(event["event"] == "swap" for event in events)
    return Evening(swaps, stretches, [e for e in events if e["event"] == "audio"][-1], watch.stalls)


class _Watch:
    """A process that asks for nothing but to be woken every millisecond, before all others, and notes when it was not:
    then the machine stood still, as one does that is shared with others."""

    _PROGRAM = """
import os, sys, time
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(9))
except (OSError, AttributeError):
    pass
last = time.monotonic()
while True:
    time.sleep(0.001)
    now = time.monotonic()
    if now - last > 0.0107:
        print("stall", flush=True)
    last = now
"""

    def __init__(self) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", self._PROGRAM], stdout=subprocess.PIPE)
        self.stalls = 0

    def end(self) -> None:
        self._process.kill()
        told, _ = self._process.communicate()
        self.stalls = told.count(b"stall")


@contextmanager
def _watched() -> Iterator[_Watch]:
    watch = _Watch()
    try:
        yield watch
    finally:
        watch.end()


def _save(patch: Path, save: int) -> None:
    beside = patch.with_suffix(".new")
    beside.write_text(_PATCH.format(save=save, hertz=HERTZ))
    beside.replace(patch)


def _hold() -> None:
    # Unlike CDLL, this keeps Python's lock while it sleeps.
    sleep = ctypes.PyDLL(None).usleep
    while True:
        sleep(20_000)
        time.sleep(0.04)


if __name__ == "__main__":
    from weft.cli import main

    threading.Thread(target=_hold, daemon=True).start()
    sys.exit(main())
