"""An evening in short: a patch that sounds and shows, saved again and again while others want Python's lock.

Run as a program it is the performer's `weft`, in which a thread keeps Python's lock for 20 ms at a time.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

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
    """What became of it: how many saves were swapped in, what was heard, and the last event about the sound."""

    swaps: int
    heard: Samples
    audio: Event

    @property
    def hertz(self) -> float:
        return frequency(self.heard)

    @property
    def breaks(self) -> int:
        """Samples that do not go on from those before them."""
        return len(breaks(self.heard, HERTZ))


def spend(folder: Path, loudspeaker: SoundServer, seconds: float, every: float = 1.0) -> Evening:
    """Plays for so many seconds, with a save every so often."""
    patch = folder / "evening.weft"
    _save(patch, 0)
    with loudspeaker.recorded(folder / "heard") as file:
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
    longest = max(stretches, key=len)
    swaps = sum(event["event"] == "swap" for event in events)
    return Evening(swaps, longest[_EDGE:-_EDGE], [e for e in events if e["event"] == "audio"][-1])


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
