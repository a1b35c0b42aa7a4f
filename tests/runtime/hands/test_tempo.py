"""The tempo changes by the text, by taps and by outside clocks, and the beat never jumps."""

from __future__ import annotations

import numpy as np
import pytest

from weft.beats import Beats
from weft.runtime.hands.tempo import Tempo

AHEAD = 0.06
FPS = 60


def played(tempo: Tempo, start: float, end: float, ahead: float = AHEAD) -> np.ndarray:
    """The time and the beat of each frame. What the sound has computed ahead of it never changes."""
    found: list[tuple[float, float]] = []
    for frame in range(round(start * FPS), round(end * FPS)):
        now = frame / FPS
        known = [tempo.beats.at(now + seconds) for seconds in (0, ahead / 2, ahead)]
        tempo.advance(now, ahead)
        assert [tempo.beats.at(now + seconds) for seconds in (0, ahead / 2, ahead)] == pytest.approx(known, abs=1e-9)
        found.append((now, tempo.beats.at(now)))
    return np.array(found)


def tempos(frames: np.ndarray) -> np.ndarray:
    """The beats a minute between frames."""
    return np.asarray(60 * np.diff(frames[:, 1]) / np.diff(frames[:, 0]))


def apart(tempo: Tempo, moment: float, beat: float = 0.0, every: float = 1.0) -> float:
    """How many seconds the beat at this moment is off the wanted one, up to multiples of `every`."""
    return abs((tempo.beats.at(moment) - beat + every / 2) % every - every / 2) * 60 / tempo.bpm


def test_without_a_change_it_is_what_a_render_has() -> None:
    tempo = Tempo(97)
    frames = played(tempo, 0, 3)
    assert tempo.beats == Beats.steady(97)
    np.testing.assert_allclose(frames[:, 1], frames[:, 0] * 97 / 60, rtol=1e-12)


@pytest.mark.parametrize("ahead", [0.0, AHEAD, 0.7])
def test_another_tempo_begins_once_the_sound_knows_of_it(ahead: float) -> None:
    tempo = Tempo(120)
    played(tempo, 0, 2, ahead)
    tempo.set(75, "text")
    frames = played(tempo, 2, 5, ahead)
    found = tempos(frames)
    changes = np.flatnonzero(np.abs(found - 120) > 1e-6)
    assert frames[changes[0], 0] == pytest.approx(2 + ahead, abs=1.01 / FPS)
    assert found[changes[1] :] == pytest.approx(75)
    assert (tempo.bpm, tempo.source) == (75, "text")


def test_changes_in_quick_succession_do_not_make_it_jump() -> None:
    tempo = Tempo(120)
    found = []
    for number, bpm in enumerate((60, 180, 90, 91, 200, 60, 66)):
        tempo.set(bpm)
        found.append(played(tempo, number / 20, (number + 1) / 20))
    found.append(played(tempo, 7 / 20, 2))
    frames = np.concatenate(found)
    speeds = tempos(frames)
    assert (speeds.min(), speeds.max()) == (pytest.approx(60), pytest.approx(200))
    assert speeds[-1] == pytest.approx(66)


@pytest.mark.parametrize("first", [4.0, 4.13, 4.27, 4.49])
@pytest.mark.parametrize("bpm", [70.0, 100.0, 139.5])
def test_taps_set_the_tempo_and_lead_the_beat_to_them(first: float, bpm: float) -> None:
    tempo = Tempo(120)
    frames = [played(tempo, 0, first)]
    moments = first + np.arange(6) * 60 / bpm
    for number, moment in enumerate(moments):
        found = tempo.tap(moment)
        assert found == (None if number < 2 else pytest.approx(bpm))
        frames.append(played(tempo, moment, moment + 60 / bpm))
        if number < 2:
            assert tempos(frames[-1]) == pytest.approx(120), "a single interval is too inexact"
    frames.append(played(tempo, moments[-1] + 60 / bpm, 25))
    assert (tempo.bpm, tempo.source) == (pytest.approx(bpm), "tap")
    # A twentieth faster or slower at most, and half a beat takes ten beats of that.
    last = tempos(np.concatenate(frames[4:]))
    assert np.abs(last[5:] / bpm - 1).max() < 0.05 + 1e-6
    assert last[-1] == pytest.approx(bpm)
    for ahead in range(20, 30):
        assert apart(tempo, moments[-1] + ahead * 60 / bpm) < 0.005


def test_uneven_taps_are_averaged() -> None:
    rng = np.random.default_rng(1)
    tempo = Tempo(120)
    moments = 1 + np.arange(9) * 60 / 110 + rng.normal(0, 0.01, 9)
    for moment in moments:
        found = tempo.tap(moment)
    assert found == pytest.approx(60 * 8 / (moments[-1] - moments[0]))
    # Eight intervals are the most.
    late = moments[-1] + 0.5
    assert tempo.tap(late) == pytest.approx(60 * 8 / (late - moments[1]))


def test_a_series_of_taps_ends_with_a_pause_a_missed_tap_and_a_restart() -> None:
    tempo = Tempo(120)
    assert [tempo.tap(at) for at in (1.0, 1.5, 2.0)] == [None, None, pytest.approx(120)]
    assert tempo.tap(4.1) is None, "more than two seconds later it is a first one"
    assert [tempo.tap(at) for at in (4.7, 5.3)] == [None, pytest.approx(100)]
    assert tempo.tap(5.35) is None, "a finger that bounces"
    assert tempo.tap(5.9) == pytest.approx(100)
    # A tap is missed: the interval is twice as long, and the tempo is not that of a mean with it.
    assert tempo.tap(7.1) is None
    assert tempo.tap(7.7) is None, "it is uneven again"
    assert tempo.tap(8.3) == pytest.approx(100)
    tempo.restart()
    assert tempo.tap(8.9) is None


def test_after_a_restart_it_counts_from_0_in_the_tempo_that_was_tapped() -> None:
    tempo = Tempo(120)
    for at in (1.1, 1.7, 2.3):
        tempo.tap(at)
    played(tempo, 2.3, 3)
    tempo.restart()
    assert tempo.beats == Beats.steady(tempo.bpm)
    assert tempo.bpm == pytest.approx(100)
    assert not tempo.advance(0.0, AHEAD)


@pytest.mark.parametrize(("every", "beat"), [(1.0, 17.6), (4.0, 18.9), (4.0, 3.0)])
def test_it_follows_an_outside_clock(every: float, beat: float) -> None:
    """A clock that is read 24 times a beat, a little unevenly."""
    tempo, rng = Tempo(120), np.random.default_rng(2)
    bpm, began = 128.0, 3.0
    frames = [played(tempo, 0, began)]
    now = began
    while now < 25:
        late = rng.normal(0, 0.0005)
        tempo.follow(bpm * (1 + rng.normal(0, 1e-4)), beat + (now - began) * bpm / 60, now + late, "midi", every)
        frames.append(played(tempo, now, now + 60 / bpm / 24))
        now += 60 / bpm / 24
    speeds = tempos(np.concatenate(frames))
    assert speeds.min() > 0.95 * 120 - 0.1
    assert speeds.max() < 1.05 * bpm + 0.1
    assert apart(tempo, now, beat + (now - began) * bpm / 60, every) < 0.006
    assert (tempo.bpm, tempo.source) == (pytest.approx(bpm, rel=1e-3), "midi")
    # Once it agrees, it is left alone.
    assert len(set(np.round(speeds[-200:], 3))) < 10


def test_a_tempo_stays_in_its_range() -> None:
    tempo = Tempo(120)
    tempo.set(1e9)
    assert tempo.bpm == 10000
    tempo.follow(0.0, 0.0, 0.0, "midi")
    assert tempo.bpm == pytest.approx(0.1)


def test_a_beat_that_was_tapped_is_met_though_the_sound_learns_of_it_too_late() -> None:
    tempo = Tempo(120)
    played(tempo, 0, 3)
    taps = [1.1, 1.7, 2.3, 2.9]
    for tap in taps:
        tempo.tap(tap)
    before = tempo.beats
    assert tempo.advance(3, AHEAD)
    planned = tempo.beats
    assert planned.start < 3.5
    heard = before.at(3.7), 3.7
    tempo.advance(3.6, AHEAD, heard)
    assert tempo.beats == planned._replace(then=heard[0], start=heard[1])
    frames = played(tempo, 3.6, 12)
    assert tempos(frames)[-1] == pytest.approx(100)
    assert apart(tempo, taps[-1] + 6) == pytest.approx(0, abs=1e-3)
