"""From one program of sound to the next: as loud as before, without a click, and without touching what stays."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.runtime.sound.hall import BLOCK, RATE, Hall, Samples, level, moments
from weft.runtime.sound.mixer import _MOST_PROGRAMS, VoiceFade

FADE = 0.03
# White, and different for each seed.
NOISE = "spindle white(seed) :: <v> {{ v = hash(me@abssample, seed) * 2 - 1 }}\naudio({})\n"


def noise(*parts: tuple[float, int]) -> str:
    """A sum of noises, each at its level."""
    return NOISE.format(" + ".join(f"white({seed}) * {weight!r}" for weight, seed in parts))


def tone(hertz: float, at: float = 0.25) -> str:
    return f"audio(sin(phasor({hertz}) * tau) * {at!r})\n"


def faded(before: str, after: str, fade: float, at: int = 0, rest: float = 0.0) -> Samples:
    """One channel of what is heard from the moment on at which the second program enters: `at` samples into a block."""
    hall = Hall()
    hall.enter(before)
    hall.play(4 * BLOCK)
    hall.enter(after, fade, (hall.played + at) / RATE)
    return hall.play(round((fade + rest) * RATE) + at)[at:, 0].astype(np.float64)


@cache
def usual_level(text: str) -> float:
    """The power of a program that continues for a second."""
    return level(faded(text, text, 0.0, rest=1.0))


# --- as loud as before ------------------------------------------------------------------------------------------------

HALF = 0.5**0.5


PROGRAMS = pytest.mark.parametrize(
    ("before", "after"),
    [
        (noise((0.5, 1)), noise((0.5, 2))),
        (noise((0.5, 1)), noise((0.5, 1), (0.0, 2))),
        (noise((0.5 * HALF, 1), (0.5 * HALF, 2)), noise((0.5 * HALF, 1), (0.5 * HALF, 3))),
    ],
    ids=["unrelated", "identical", "partly alike"],
)


@PROGRAMS
@pytest.mark.parametrize("at", [0, 100, BLOCK - 1])
@pytest.mark.parametrize("fade", [FADE, 0.5])
def test_power_stays(before: str, after: str, at: int, fade: float) -> None:
    heard = faded(before, after, fade, at)
    usual = usual_level(before)
    # Long enough for the level of noise to be known, and short enough for a dip in the middle to be seen.
    for part in np.array_split(heard, 5 if fade < 0.1 else 20):
        assert level(part) == pytest.approx(usual, abs=1), "it swells or dips"


@PROGRAMS
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.8])
def test_power_stays_where_a_fade_is_interrupted_by_a_program_that_keeps_a_sound(
    before: str, after: str, share: float
) -> None:
    usual, fade = usual_level(before), 0.5
    hall = Hall()
    hall.enter(before)
    hall.play(4 * BLOCK)
    hall.enter(after, fade)
    heard = [hall.play(round(fade * share * RATE))]
    loaded = hall.enter(f"{after}audio(0)\n", fade).loaded
    assert loaded.changed == ("audio/audio.2",)
    heard.append(hall.play(round(fade * RATE)))
    for part in np.array_split(np.concatenate(heard)[:, 0].astype(np.float64), 30):
        assert level(part) == pytest.approx(usual, abs=1), "it swells or dips"


def test_sounds_of_different_levels_go_from_one_to_the_other() -> None:
    heard = faded(noise((0.5, 1)), noise((0.05, 2)), 0.5, rest=0.1)
    levels = np.array([level(part) for part in np.array_split(heard, 12)])
    assert (np.diff(levels) < 0.7).all(), "it never swells"
    assert levels[0] - levels[-1] == pytest.approx(20, abs=0.7)


def test_what_a_sound_is_like_may_only_show_later() -> None:
    usual = level(faded(tone(440), tone(440), 0.0, rest=0.5))
    silent_at_first = f"audio(sin(phasor(440) * tau) * 0.25 * step({8 * BLOCK / RATE!r}, me@abstime))\n"
    heard = faded(tone(440), silent_at_first, 0.2)
    # From a little after its first sound on.
    assert max(level(part) for part in np.array_split(heard, 10)[4:]) < usual + 1


# --- no click ---------------------------------------------------------------------------------------------------------


def steps(samples: Samples) -> float:
    """The largest difference between two samples that follow each other."""
    return float(np.abs(np.diff(samples)).max())


def test_no_step_is_larger_than_those_of_the_sounds() -> None:
    allowed = max(steps(faded(tone(hertz), tone(hertz), 0.0, rest=0.1)) for hertz in (440, 660))
    for at in (0, 1, 200, BLOCK - 1):
        heard = faded(tone(440), tone(660), FADE, at, rest=0.05)
        # Both at their full steps at once, at gains that together are √2.
        assert steps(heard) < 2**0.5 * allowed


@pytest.mark.parametrize("times", [2, 3, 6])
def test_a_fade_that_is_interrupted_again_and_again(times: int) -> None:
    hall = Hall()
    hall.enter("audio(0.25)\n")
    hall.play(BLOCK)
    pieces = []
    for number in range(times):
        hall.enter(f"audio({(-1) ** number * 0.25 + 0.01 * number!r})\n", fade=0.5)
        pieces.append(hall.play(3000))
    pieces.append(hall.play(RATE // 2))
    heard = np.concatenate(pieces)[:, 0].astype(np.float64)
    # The fastest change of a gain, within this many samples, and the end of a program for which there is no more room.
    quickest = np.pi / 2 / (0.5 * RATE)
    most = 0.6 * (quickest * 2 + (1 / BLOCK if times > _MOST_PROGRAMS else 0))
    assert steps(heard) < most
    last = (-1) ** (times - 1) * 0.25 + 0.01 * (times - 1)
    assert heard[-1] == np.float32(last)


def test_of_more_programs_than_can_be_heard_the_oldest_ends_within_a_block() -> None:
    hall = Hall()
    hall.enter("audio(0.5, 0)\n")
    hall.play(BLOCK)
    for number in range(_MOST_PROGRAMS):
        assert hall.play(BLOCK)[:, 0].min() > 0.4
        hall.enter(f"audio(0, {number} / 100)\n", fade=10.0)
    # Its place is taken with the last.
    ending = hall.play(BLOCK)[:, 0]
    assert (np.diff(ending) < 0).all()
    assert ending[0] > 0.4
    assert not hall.play(BLOCK)[:, 0].any()


def test_what_is_removed_fades_out() -> None:
    hall = Hall()
    hall.enter("audio(0.5)\naudio(0.25)\n")
    hall.play(BLOCK)
    hall.enter("audio(0.5)\n", fade=FADE)
    length = round(FADE * RATE)
    heard = hall.play(length)[:, 0].astype(np.float64)
    gains = (heard - 0.5) / 0.25
    np.testing.assert_allclose(gains, np.cos(np.arange(1, length + 1) / length * np.pi / 2), atol=1e-6)
    assert (hall.play(BLOCK) == 0.5).all()


def test_what_is_new_fades_in_and_silence_follows_the_last_statement() -> None:
    hall = Hall()
    hall.enter("compute(1)\n")
    hall.play(BLOCK)
    hall.enter("audio(0.5)\n", fade=FADE)
    length = round(FADE * RATE)
    gains = hall.play(length)[:, 0] / 0.5
    np.testing.assert_allclose(gains, np.sin(np.arange(1, length + 1) / length * np.pi / 2), atol=1e-6)
    hall.enter("compute(1)\n", fade=FADE)
    np.testing.assert_allclose(hall.play(length)[:, 0] / 0.5, gains[::-1], atol=2e-3)
    assert not hall.play(BLOCK).any()


# --- what goes on -----------------------------------------------------------------------------------------------------

ECHO = "saw = phasor(110) - 0.5\necho = saw * 0.25 + 0.5 * delay(echo, 4800, 4800)\naudio(echo, 0)\n"


@pytest.mark.parametrize("executor", ["vector", "native"])
def test_what_is_not_changed_goes_on_bit_for_bit(executor: str) -> None:
    alone, changing = Hall(executor), Hall(executor)
    for hall in (alone, changing):
        hall.enter(ECHO)
        hall.play(3 * BLOCK + 100)
    swaps = [changing.enter(f"// another comment\n{ECHO}audio(0, sin(me@time * {hertz}))\n", fade=FADE).loaded
             for hertz in (440, 441)]  # fmt: skip
    for _ in range(3):
        assert np.array_equal(alone.play(1000)[:, 0], changing.play(1000)[:, 0])
    assert swaps[1].kept
    assert swaps[1].changed == ("audio/audio.2",)


@pytest.mark.parametrize("executor", ["vector", "native"])
@pytest.mark.parametrize("fade", [0.0, FADE])
def test_a_phase_goes_on_when_the_frequency_changes(executor: str, fade: float) -> None:
    text = "audio(phasor({}) - 0.5)\n"
    hall = Hall(executor)
    hall.enter(text.format(100))
    played = 3 * BLOCK + 100
    hall.play(played)
    hall.enter(text.format(150), fade, (played + 33) / RATE)
    heard = hall.play(RATE // 10)[:, 0]
    phases = np.concatenate([moments(0, played + 33) * 100, (played + 33) * 100 / RATE + moments(0, RATE // 10) * 150])
    expected = phases[played : played + len(heard)]
    behind = round(fade * RATE) + 33
    off = (heard[behind:] + 0.5 - expected[behind:] + 0.5) % 1 - 0.5
    assert np.abs(off).max() < 1e-6
    off = (heard[:33] + 0.5 - expected[:33] + 0.5) % 1 - 0.5
    assert np.abs(off).max() < 1e-6


def test_while_they_fade_both_remember_for_themselves() -> None:
    hall = Hall()
    hall.enter("n<v> = prev(n@v) + 1\naudio(n@v / 65536, 0)\n")
    hall.play(BLOCK)
    hall.enter("n<v> = prev(n@v) + 100\naudio(0, n@v / 65536)\n", fade=1.0)
    left, right = hall.play(BLOCK).T.astype(np.float64)
    angles = np.arange(1, BLOCK + 1) / RATE * np.pi / 2
    numbers = np.arange(1, BLOCK + 1)
    np.testing.assert_allclose(left * 65536 / np.cos(angles), BLOCK + numbers, rtol=1e-6)
    np.testing.assert_allclose(right * 65536 / np.sin(angles), BLOCK + 100 * numbers, rtol=1e-6)


# --- gains ------------------------------------------------------------------------------------------------------------


def test_a_fade_of_nothing_is_over_at_once() -> None:
    fade = VoiceFade(0, {"a": 1.0}, ["b"])
    assert fade.is_over
    assert fade.voices == {"b"}
    assert fade.now() == {"b": 1.0}


def test_a_fade_goes_on_from_where_another_one_was() -> None:
    sounds = {name: np.ones((1, 100)) for name in "abc"}
    fade = VoiceFade(1000, {"a": 1.0}, ["b"])
    for name in "bcba":
        for _ in range(3):
            fade.mix({v: s for v, s in sounds.items() if v in fade.voices}, np.zeros((1, 100)))
        before = fade.now()
        fade = VoiceFade(1000, before, [name])
        after = fade.now()
        assert after == pytest.approx({name: 0.0, **before})
    assert all(0 <= gain <= 1 for gain in after.values())
