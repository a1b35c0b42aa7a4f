"""A performance in short: a patch with sound and picture, saved again and again under contention for Python's lock.

Run as a program it is the performer's `weft`, in which a thread keeps Python's lock for 20 ms at a time.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support.flaws import Flaw, listened
from tests.support.performance import Event, Performance
from tests.support.sound import RATE, SoundServer, frequency, sounding

HERTZ = 440.0
_ROOT = Path(__file__).parents[2]

# The tone stays the same. With each save, the sound around it changes, at an inaudible level, and so does the picture,
# which reads the sound.
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
    """The result: the number of swaps, the seconds of sound, its frequency, its flaws, those among them that weft may
    be to blame for, the last event about the sound, the number of stalls of the machine, and the probability that these
    explain a flaw by coincidence."""

    swaps: int
    seconds: float
    hertz: float
    flaws: list[Flaw]
    unexplained: list[Flaw]
    audio: Event
    stalls: int
    chance: float

    def count(self, kind: str) -> int:
        """The number of flaws of this kind."""
        return sum(flaw.kind == kind for flaw in self.flaws)


def spend(folder: Path, loudspeaker: SoundServer, seconds: float, every: float = 1.0) -> Evening:
    """Plays for this many seconds, and saves the patch every `every` seconds."""
    patch = folder / "evening.weft"
    _save(patch, 0)
    with listened(loudspeaker, folder / "heard", _EDGE) as listening:
        program = ("-m", __spec__.name)
        with Performance(patch, "--headless", "--size", "160x90", python=program, cwd=_ROOT) as performance:
            performance.wait_for("audio")
            ends = time.monotonic() + seconds
            save = 0
            while time.monotonic() < ends:
                save += 1
                _save(patch, save)
                time.sleep(every)
                listening.note_late(performance.latest("audio")["late"])
            events = performance.events
        time.sleep(0.5)
    swaps = sum(event["event"] == "swap" for event in events)
    heard = sounding(listening.heard()[1])
    audio = [event for event in events if event["event"] == "audio"][-1]
    return Evening(
        swaps, sum(map(len, heard)) / RATE, frequency(max(heard, key=len)), listening.flaws(HERTZ),
        listening.unexplained(HERTZ), audio, len(listening.stalls.times), listening.chance(),
    )  # fmt: skip


def _save(patch: Path, save: int) -> None:
    new = patch.with_suffix(".new")
    new.write_text(_PATCH.format(save=save, hertz=HERTZ))
    new.replace(patch)


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
