"""A performance whose sound a graphics card computes, or a driver in its place: recorded from the loudspeaker."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from tests.support.gl import Graphics, graphics
from tests.support.performance import Performance
from tests.support.sound import RATE, Samples, SoundServer, frequency, read, sounding, until_heard

__all__ = ["graphics"]

PICTURE = "me<width> = 16\nme<height> = 9\ndisplay(me@x)\n"
LEVEL = 0.4
# Sound comes and goes within this many samples.
EDGE = RATE // 20
PIECE = RATE // 10

TONE = f"{PICTURE}audio(sin(me@time * {{}} * tau) * {LEVEL})\n"
REMEMBERS = f"{PICTURE}audio(sin(phasor({{}}) * tau) * {LEVEL})\n"


def tones(file: Path) -> list[float]:
    """The frequencies that are heard one after another, in Hz: of pieces that a driver in software, on a machine with
    other work, may leave gaps between."""
    pieces: list[Samples] = []
    for stretch in sounding(read(file)[:, 0]):
        inner = stretch[EDGE:-EDGE]
        pieces += [inner[start : start + PIECE] for start in range(0, len(inner) - PIECE, PIECE)]
    return [frequency(piece) for piece in pieces]


def check_tone(family: str, loudspeaker: SoundServer, folder: Path) -> None:
    """Has a family of devices play a sine, and listens to it."""
    patch = folder / "patch.weft"
    patch.write_text(TONE.format(440))
    with loudspeaker.recorded(folder / "heard") as file:
        with Performance(patch, "--headless", "--backend", f"audio={family}") as performance:
            assert performance.wait_for("started")["backends"]["audio"] == f"{family}_audio"
            until_heard(file, 3 * RATE // 2)
        time.sleep(0.2)
        heard, level = tones(file), np.abs(read(file)).max()
    assert "Traceback" not in performance.stderr
    assert len(heard) > 5
    assert heard == pytest.approx([440] * len(heard), abs=1)
    assert level == pytest.approx(LEVEL, abs=0.01)


def test_it_plays_what_is_written(graphics: Graphics, loudspeaker: SoundServer, tmp_path: Path) -> None:
    check_tone("gl", loudspeaker, tmp_path)


def test_what_does_not_suit_it_is_played_by_the_processor_and_saves_cross_over(
    graphics: Graphics, loudspeaker: SoundServer, tmp_path: Path
) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(REMEMBERS.format(440))
    told = "weft: audio/audio runs on native, not gl_audio: each of its samples needs the one before"
    with loudspeaker.recorded(tmp_path / "heard") as file:
        with Performance(patch, "--headless", "--backend", "audio=gl") as performance:
            until_heard(file, RATE // 2)
            performance.wait_for_words(told)
            for number, text in enumerate((TONE.format(550), REMEMBERS.format(330)), 1):
                performance.save(text)
                performance.wait_for("swap", number)
                until_heard(file, 6 * RATE // 10, anew=True)
        time.sleep(0.2)
        heard = tones(file)
    assert performance.stderr.count(told) == 1
    clear = [hertz for wanted in (440, 550, 330) for hertz in heard if abs(hertz - wanted) < 2]
    assert len(clear) > 0.7 * len(heard), "the rest is of the fades"
    # Each is heard, in its turn.
    assert [hertz for hertz in heard if hertz in clear] == clear
    assert {round(hertz, -1) for hertz in clear} == {440, 550, 330}
