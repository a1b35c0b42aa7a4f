"""What the tests of sound take for a flaw of weft, and what for one of the machine."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.sound.conftest import Player
from tests.support.flaws import Listening, Timeline, Watch, listened
from tests.support.sound import RATE, SoundServer, Tone
from weft.runtime.sound.microphone import Microphones
from weft.runtime.sound.renderer import SoundOptions
from weft.runtime.sound.shared import Controls, Rings

HERTZ = 440.0
# Sound comes and goes within this many samples.
EDGE = RATE // 100
GAP = 512


def heard(folder: Path, tone: np.ndarray, *late: int) -> Listening:
    """A recording of this sound, made while the machine never stood still. `late` is how many late blocks there had
    been by its beginning, a second later, and so on."""
    file = folder / "heard"
    np.repeat(tone[:, np.newaxis], 2, axis=1).astype(np.float32).tofile(file)
    timeline = Timeline()
    timeline.note(len(tone))
    listening = Listening(file, timeline, Watch(), EDGE)
    for second, blocks in enumerate(late):
        listening.note_late(blocks, timeline.moment(0) + second)
    return listening


def tone(count: int) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * HERTZ / RATE * (np.arange(count) + 0.5))


@pytest.mark.parametrize(
    ("late", "blamed"),
    [
        pytest.param((0, 0, 0, 0), 0, id="not-for-weft"),
        pytest.param((0, 1, 1, 1), 1, id="perhaps-for-weft"),
        pytest.param((0, 0, 0, 1), 0, id="for-weft-but-later"),
        pytest.param((0, 0), 1, id="which-is-not-known-yet"),
        pytest.param((), 1, id="which-is-not-known"),
    ],
)
def test_a_device_waits(tmp_path: Path, late: tuple[int, ...], blamed: int) -> None:
    recording = heard(tmp_path, np.insert(tone(4 * RATE), RATE // 2, np.zeros(GAP)), *late)
    assert [flaw.is_inserted for flaw in recording.flaws(HERTZ)] == [True]
    assert len(recording.unexplained(HERTZ)) == blamed


def test_silence_that_weft_plays_is_never_excused(tmp_path: Path) -> None:
    whole = tone(4 * RATE)
    whole[RATE // 2 : RATE // 2 + GAP] = 0
    assert [flaw.kind for flaw in heard(tmp_path, whole, 0, 0, 0, 0).unexplained(HERTZ)] == ["gap"]


def test_a_jump_is_never_excused(tmp_path: Path) -> None:
    whole = np.delete(tone(4 * RATE), slice(RATE // 2, RATE // 2 + 20))
    assert [flaw.kind for flaw in heard(tmp_path, whole, 0, 0, 0, 0).unexplained(HERTZ)] == ["break"]


class Selfish(Tone):
    """A tone that keeps Python's lock for a while whenever there is a message."""

    def take(self, message: object) -> None:
        # Unlike CDLL, this keeps the lock while it sleeps.
        ctypes.PyDLL(None).usleep(150_000)
        super().take(message)


def selfish(options: SoundOptions, controls: Controls, rings: Rings, microphones: Microphones) -> Selfish:
    return Selfish(options.rate)


def test_a_sound_process_that_holds_itself_up_is_late(loudspeaker: SoundServer, tmp_path: Path) -> None:
    player = Player(SoundOptions(renderer=f"{__name__}:selfish"))
    try:
        player.sound.send(HERTZ, keep="program")
        player.sound.start()
        player.until(lambda: player.hears("playing"))
        with listened(loudspeaker, tmp_path / "heard", EDGE) as listening:
            player.play(0.3)
            before = player.sound.figures.late
            player.sound.send(HERTZ, keep="program")
            player.until(lambda: player.sound.figures.late > before)
            player.play(0.3)
    finally:
        player.sound.close()
    assert "gap" in {flaw.kind for flaw in listening.flaws(HERTZ)}
