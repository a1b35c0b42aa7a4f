"""Microphones: from what a device hears to what a patch plays."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.support.forks import ran
from tests.support.performance import Performance
from tests.support.sound import RATE, Samples, SoundServer, breaks, eventually, read as recorded, until_heard
from weft.names import MicrophoneName, is_microphone, microphone_of
from weft.runtime.sound.device import Devices
from weft.runtime.sound.microphone import Intake, Microphones

BLOCK = 64
HERTZ = 440.0


def numbered(first: int, count: int, channels: int = 2) -> np.ndarray:
    """Samples whose values are their numbers, from 1; those of the second channel are negative."""
    numbers = np.arange(first + 1, first + count + 1, dtype=np.float32)
    return np.stack([numbers, -numbers], axis=1)[:, :channels]


# Both sides move one block in each round, but a round may bring two blocks at once after one that brought none.
@given(st.lists(st.booleans(), min_size=2, max_size=60))
def test_what_is_heard_goes_on_without_a_gap_and_is_two_blocks_late_at_most(late: list[bool]) -> None:
    intake, written, waiting = Intake(BLOCK), 0, 0
    taken: list[np.ndarray] = []
    for turn, is_late in enumerate([False, False, *late]):
        waiting += BLOCK
        if not is_late or waiting > BLOCK:
            intake.write(numbered(written, waiting))
            written, waiting = written + waiting, 0
        taken.append(intake.section(turn * BLOCK, BLOCK)[0].copy())
    heard = np.concatenate(taken)
    began = int(np.flatnonzero(heard)[0])
    assert np.array_equal(np.diff(heard[began:]), np.ones(len(heard) - began - 1))
    # By the time at which a sample is played, this many have come since it was heard.
    delay = np.arange(1, len(heard) + 1)[began:] - heard[began:] + BLOCK - 1
    assert delay.max() < 2 * BLOCK + BLOCK


def test_all_programs_hear_the_same() -> None:
    intake = Intake(BLOCK)
    intake.write(numbered(0, 4 * BLOCK))
    one = intake.section(0, BLOCK)
    assert one is intake.section(0, BLOCK)
    assert intake.section(BLOCK, BLOCK)[0, 0] == one[0, -1] + 1
    assert np.array_equal(one[1], -one[0])


def test_a_microphone_with_one_channel_is_heard_on_both_sides() -> None:
    intake = Intake(BLOCK)
    intake.write(numbered(0, 2 * BLOCK, channels=1))
    left, right = intake.section(0, BLOCK)[:2]
    assert left.any()
    assert np.array_equal(left, right)


def test_too_much_that_waits_is_left_out() -> None:
    intake = Intake(BLOCK)
    intake.write(numbered(0, 2 * BLOCK))
    intake.section(0, BLOCK)
    intake.write(numbered(2 * BLOCK, 20 * BLOCK))
    assert intake.section(BLOCK, BLOCK)[0, -1] == 21 * BLOCK, "all but the margin"


@pytest.mark.parametrize("still", ["microphone", "loudspeaker"])
@pytest.mark.parametrize("blocks", [1, 3, 9])
def test_after_one_side_stood_still_it_goes_on_without_a_click(still: str, blocks: int) -> None:
    intake, taken, written = Intake(BLOCK), [], 0
    voice = np.sin(2 * np.pi * HERTZ * np.arange(50 * BLOCK) / RATE).astype(np.float32)[:, np.newaxis]
    for block in range(50):
        is_still = 20 <= block < 20 + blocks
        if not (is_still and still == "microphone"):
            intake.write(voice[written : (block + 1) * BLOCK])
            written = (block + 1) * BLOCK
        if not (is_still and still == "loudspeaker"):
            taken.append(intake.section(block * BLOCK, BLOCK)[0].copy())
    heard = np.concatenate(taken)
    steps = np.abs(np.diff(heard[int(np.flatnonzero(heard)[0]) + 1 :]))
    # That of the tone, and what a fade adds between values that differ by 2 at most.
    assert steps.max() <= 2 * np.pi * HERTZ / RATE + 2 / (BLOCK - 1)
    assert np.abs(heard[-4 * BLOCK :]).max() > 0.9, "it goes on"


def test_without_microphones_nothing_is_opened_and_all_is_silent() -> None:
    microphones = Microphones(RATE, BLOCK, is_muted=True)

    def opening() -> Devices:
        raise AssertionError("a device is opened")

    name = MicrophoneName("", 0).name
    assert not microphones.sample(name, 0, BLOCK).any()
    assert microphones.update(opening) == []


def test_a_name_says_device_and_channel() -> None:
    for name in (MicrophoneName("", 1), MicrophoneName("USB @ home", 7)):
        assert is_microphone(name.name)
        assert microphone_of(name.name) == name


def usual_frequency(samples: Samples) -> float:
    """The frequency of a tone, by the time that its waves usually take: where a machine stood still, one is shorter."""
    rises = np.flatnonzero((samples[:-1] < 0) & (samples[1:] >= 0))
    places = rises - samples[rises] / (samples[rises + 1] - samples[rises])
    return RATE / float(np.median(np.diff(places)))


def longest(samples: Samples, hertz: float) -> int:
    """The most samples of a tone in a row that are not broken."""
    loud = np.trim_zeros(samples)
    return int(np.diff(breaks(loud, hertz), prepend=0, append=len(loud)).max()) if len(loud) else 0


PATCH = """\
mic()::m<l, r>
audio(m@l * 0.5, delay(m@r, 100, 100) * 0.5)
display(m@l(me@time ~ me@time - me@x * 0.01) + 0.5, 0, 0)
compute(m@l)
"""


def test_a_patch_plays_what_the_microphone_hears(loudspeaker: SoundServer, tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(PATCH)
    times = np.arange(20 * RATE) / RATE
    voice = np.stack([np.sin(2 * np.pi * HERTZ * times), np.sin(2 * np.pi * 1.5 * HERTZ * times)], axis=1) * 0.5
    with (
        loudspeaker.spoken(voice),
        loudspeaker.recorded(tmp_path / "heard") as file,
        Performance(patch, "--headless", "--size", "32x2", "--buffer", "2048") as performance,
    ):
        until_heard(file, RATE)
        performance.wait_for("compute", when=lambda event: event["values"][0] != 0)
        # A machine that stood still is caught up with now and then, and not from block to block.
        eventually(
            lambda: all(longest(*each) > 4 * 2048 for each in zip(recorded(file).T, (HERTZ, 1.5 * HERTZ), strict=True)),
            "more than four blocks without a break",
        )
    left, right = recorded(file).T
    for channel, hertz in ((left, HERTZ), (right, 1.5 * HERTZ)):
        loud = channel[np.flatnonzero(channel)[0] :]
        assert usual_frequency(loud) == pytest.approx(hertz, abs=0.5)
        assert np.abs(loud).max() == pytest.approx(0.25, abs=0.01)
    assert "listening to" in performance.stderr


def test_a_performer_may_forbid_it(loudspeaker: SoundServer, tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(PATCH.replace("audio(m@l * 0.5", "audio(m@l * 0.5 + 0.125"))
    with (
        loudspeaker.spoken(np.ones((5 * RATE, 1))),
        loudspeaker.recorded(tmp_path / "heard") as file,
        Performance(patch, "--headless", "--size", "32x2", "--no-mic") as performance,
    ):
        until_heard(file, RATE // 4)
    assert recorded(file)[:, 0].max() <= 0.125
    assert "listening" not in performance.stderr


def test_a_render_is_silent_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "patch.weft").write_text(PATCH)
    done = ran(["render", "patch.weft", "-o", "out.wav", "--duration", "0.1"], tmp_path, os.environ)
    assert done.returncode == 0, done.stderr
    assert "the microphone is silent here" in done.stderr


def test_it_cannot_be_heard_at_another_time_in_a_sound(tmp_path: Path) -> None:
    (tmp_path / "patch.weft").write_text("mic()::m<l, r>\naudio(m@l(me@time ~ me@time - 1))\n")
    done = ran(["check", "patch.weft"], tmp_path, os.environ)
    assert done.returncode == 1
    assert "patch.weft:2:" in done.stderr
    assert "mic, which is heard now" in done.stderr
    assert "delay" in done.stderr
