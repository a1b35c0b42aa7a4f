"""Analyses of sounds, held against exact signals: tones of known loudness and pitch, and hits at known times."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from weft.media.analysis import (
    ANALYSES, FLOOR_DB, NEVER, PEAK_RELEASE, SPECTRUM_RELEASE, Loudness, Onset, Peak, Pitch, Rows, Samples, Spectrum,
    TempoEstimate
)
from weft.names import hop_length
from weft.sources import SOURCES

RATE = 48000
HOP = hop_length(RATE)
HOP_SECONDS = HOP / RATE
NAMES = sorted(ANALYSES)


def seconds(duration: float, rate: int = RATE) -> np.ndarray:
    return np.arange(round(duration * rate)) / rate


def sine(frequency: float, level: float = 1.0, duration: float = 0.3, rate: int = RATE) -> Samples:
    return (level * np.sin(2 * np.pi * frequency * seconds(duration, rate))).astype(np.float32)


def ends(rows: Rows) -> np.ndarray:
    """The time at the end of each row's hop."""
    return (np.arange(len(rows)) + 1) * HOP / RATE


def struck(kind: str, times: np.ndarray, tone: float, duration: float) -> Samples:
    """Hits at given times, every other one softer, over a steady tone and noise at −40 dB."""
    noise = np.random.default_rng(5)
    sound = np.zeros(round(duration * RATE))
    for number, time in enumerate(times):
        place = round(time * RATE)
        u = seconds(0.3)[: len(sound) - place]
        shapes = {
            "click": np.exp(-u / 0.0007),
            "burst": 0.35 * noise.standard_normal(len(u)) * np.exp(-u / 0.03),
            "kick": np.sin(2 * np.pi * (50 * u + 4 * (1 - np.exp(-30 * u)))) * np.exp(-u / 0.09),
        }
        sound[place : place + len(u)] += (0.9 if number % 2 else 0.6) * shapes[kind]
    faded = np.minimum(1, seconds(duration) / 0.5)
    sound += faded * (0.1 * np.sin(2 * np.pi * tone * seconds(duration)) + 0.01 * noise.standard_normal(len(sound)))
    return sound.astype(np.float32)


def begins(rows: Rows) -> np.ndarray:
    """The times that an onset's `age` points to, one for each hit."""
    ages = rows[:, 1]
    is_new = np.diff(ages, prepend=NEVER) < 0
    return ends(rows)[is_new] - ages[is_new]


# ---- the interface -----------------------------------------------------------------------------------------------

SOUND = struck("kick", np.array([0.1, 0.31, 0.52]), 330, 0.6)
EVEN = struck("click", np.arange(0.2, 2.3, 0.4), 330, 2.3)  # a tempo takes longer
WHOLE = {name: make(RATE).feed(SOUND) for name, make in ANALYSES.items()}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "tempo"])
@given(cuts=st.lists(st.integers(0, len(SOUND)), max_size=12))
def test_rows_do_not_depend_on_how_the_samples_are_cut(name: str, cuts: list[int]) -> None:
    analyser = ANALYSES[name](RATE)
    rows = [analyser.feed(part) for part in np.split(SOUND, sorted(cuts))]
    assert np.array_equal(np.concatenate(rows), WHOLE[name])
    assert WHOLE[name].any()


@pytest.mark.parametrize("length", [64, 511, 512, 4096])
def test_rows_of_a_tempo_do_not_depend_on_it_either(length: int) -> None:
    tempo = TempoEstimate(RATE)
    rows = [tempo.feed(EVEN[start : start + length]) for start in range(0, len(EVEN), length)]
    whole = TempoEstimate(RATE).feed(EVEN)
    assert np.array_equal(np.concatenate(rows), whole)
    assert whole[-1].all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rate", [1000, 8000, 44100, 96000])
def test_every_rate_has_hops_of_the_same_time_and_rows_that_are_numbers(name: str, rate: int) -> None:
    analyser = ANALYSES[name](rate)
    rows = analyser.feed(sine(200, 0.5, 1.0, rate))
    assert analyser.hop == round(rate * HOP_SECONDS)
    assert rows.shape == (rate // analyser.hop, analyser.width)
    assert np.isfinite(rows).all()


@pytest.mark.parametrize("name", NAMES)
def test_samples_that_are_no_numbers_are_silence(name: str) -> None:
    broken, silent = SOUND.copy(), SOUND.copy()
    broken[6000:6300:3], broken[6001:6300:3], broken[6002:6300:3] = np.nan, np.inf, -np.inf
    silent[6000:6300] = 0
    assert np.array_equal(ANALYSES[name](RATE).feed(broken), ANALYSES[name](RATE).feed(silent))


@pytest.mark.parametrize("name", ["rms", "peak", "fft"])
def test_the_delay_is_how_long_a_click_takes_to_show_most(name: str) -> None:
    sound = np.zeros(RATE, np.float32)
    sound[20 * HOP] = 1
    analyser = ANALYSES[name](RATE)
    rows = analyser.feed(sound)[:, -1]
    found = ends(rows[:, None])[rows.argmax()] - 20 * HOP / RATE
    assert abs(found - analyser.delay) <= HOP_SECONDS / 2 + 1e-9


def test_a_picture_has_the_outputs_of_the_source_in_its_planes() -> None:
    assert set(ANALYSES) == {name for name, spec in SOURCES.items() if spec.is_analysis}
    for name, make in ANALYSES.items():
        analyser = make(RATE)
        picture = analyser.picture(analyser.feed(SOUND))
        columns = 32 if name == "fft" else 1
        assert picture.shape == (len(SOUND) // HOP, columns, 4)
        outputs = [picture[:, :, plane] for plane in range(len(SOURCES[name].outputs))]
        assert all(np.isin(rows, WHOLE[name]).all() for rows in outputs)


# ---- loudness and peak -------------------------------------------------------------------------------------------


@given(frequency=st.floats(50, 15000), level=st.floats(1e-4, 4))
def test_the_loudness_of_a_sine_is_its_level_by_the_root_of_two(frequency: float, level: float) -> None:
    rows = Loudness(RATE).feed(sine(frequency, level, 0.15))[4:, 0]
    assert rows == pytest.approx(level / math.sqrt(2), rel=5e-3)


def test_the_loudness_of_noise_is_its_deviation() -> None:
    noise = np.random.default_rng(3).normal(0, 0.2, 2 * RATE).astype(np.float32)
    assert np.sqrt((Loudness(RATE).feed(noise)[4:] ** 2).mean()) == pytest.approx(noise.std(), rel=0.02)


def test_a_peak_is_the_greatest_magnitude_and_falls_exponentially() -> None:
    sound = np.zeros(RATE // 2, np.float32)
    sound[700], sound[720] = 0.5, -0.8
    rows = Peak(RATE).feed(sound)[:, 0]
    fallen = 0.8 * np.exp(-(ends(rows[:, None]) - ends(rows[:, None])[1]) / PEAK_RELEASE)
    assert rows[0] == 0
    assert rows[1:] == pytest.approx(fallen[1:], rel=1e-5)


# ---- spectrum ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bands", [2, 7, 32, 64])
def test_a_sine_in_the_middle_of_a_band_has_its_loudness_there(bands: int) -> None:
    spectrum = Spectrum(RATE, bands)
    assert spectrum.edges[3][0] == pytest.approx(40)
    assert spectrum.edges[-1][1] == pytest.approx(16000)
    for number, (start, end) in list(enumerate(spectrum.edges))[3 :: max(1, bands // 8)]:
        for decibels in (0, -30):
            row = Spectrum(RATE, bands).feed(sine(math.sqrt(start * end), 10 ** (decibels / 20), 0.5))[-1]
            # A tone of 40 Hz overlaps with its mirror image, at -40 Hz.
            assert row[number] == pytest.approx(1 - decibels / FLOOR_DB, abs=2e-3 if start > 100 else 0.03)
            assert row[3:].max() <= row[number] + 0.03
            is_far = [end < start / 2 - 80 or other > end * 2 + 80 for other, _ in spectrum.edges[3:]]
            assert (row[3:][is_far] < 0.15).all()


def test_low_mid_and_high_are_what_sounds_there() -> None:
    for place, frequency in enumerate((100, 1000, 8000)):  # what begins is wide, and falls first
        row = Spectrum(RATE).feed(sine(frequency, 1, 0.5))[-1]
        assert row[place] == pytest.approx(1, abs=0.01)
        assert max(row[n] for n in range(3) if n != place) < 0.1


def test_pink_noise_has_the_same_level_in_all_bands_above_the_resolution() -> None:
    shape = np.fft.rfft(np.random.default_rng(1).standard_normal(4 * RATE))
    shape[1:] /= np.sqrt(np.arange(1, len(shape)))
    noise = np.fft.irfft(shape)
    spectrum = Spectrum(RATE, 16)
    rows = spectrum.feed((noise / noise.std() * 0.1).astype(np.float32))[8:, 9:]
    assert np.ptp(rows.mean(axis=0)) < 0.06


def test_levels_rise_at_once_and_fall_evenly() -> None:
    sound = np.concatenate((sine(1000, 1, 0.2), np.zeros(RATE, np.float32)))
    rows = Spectrum(RATE).feed(sound)[:, 1]
    falling = rows[(rows > 0.05) & (rows < 0.95) & (np.arange(len(rows)) > 19)]
    assert len(falling) > 30
    assert np.diff(falling) == pytest.approx(-HOP_SECONDS / SPECTRUM_RELEASE, abs=1e-5)
    assert rows[-1] == 0


# ---- onsets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["click", "burst", "kick"])
@pytest.mark.parametrize(("bpm", "tone"), [(70, 220), (133, 110), (174, 440), (348, 660)])
def test_onsets_are_found_within_30_ms_none_missed_and_none_invented(kind: str, bpm: float, tone: float) -> None:
    times = np.arange(0.7, 3.5, 60 / bpm) + 0.0037
    rows = Onset(RATE).feed(struck(kind, times, tone, 3.8))
    found = begins(rows)
    assert len(found) == len(times)
    assert np.abs(found - times).max() < 0.03
    is_new = np.diff(rows[:, 1], prepend=NEVER) < 0
    assert (ends(rows)[is_new] - times).max() < 0.03, "told too late"
    assert (rows[is_new, 0] > 0).all()
    # The strength is there for 50 ms after it has risen, for two hops at most.
    assert np.count_nonzero(rows[:, 0]) <= 8 * len(times)
    assert all(rows[(ends(rows) > time) & (ends(rows) < time + 0.03), 0].max() > 0.05 for time in times)


@pytest.mark.parametrize("sound", [
    np.zeros(RATE), sine(220, 0.5, 1) * np.minimum(1, seconds(1)),
    np.random.default_rng(2).standard_normal(RATE) * 0.1 * np.minimum(1, seconds(1)),
    np.sin(2 * np.pi * (440 * seconds(1) + 2 * np.sin(2 * np.pi * 5 * seconds(1)))) * np.minimum(1, seconds(1) * 2),
], ids=["silence", "tone", "noise", "vibrato"])
def test_what_does_not_begin_has_no_onset(sound: np.ndarray) -> None:
    rows = Onset(RATE).feed(sound.astype(np.float32))
    assert not rows[10:, 0].any()
    silence = Onset(RATE).feed(np.zeros(RATE, np.float32))
    assert (silence[:, 1] == NEVER).all()


# ---- pitch -------------------------------------------------------------------------------------------------------


@given(frequency=st.floats(51, 1990), level=st.floats(0.01, 1))
def test_the_pitch_of_a_sine_is_its_frequency(frequency: float, level: float) -> None:
    rows = Pitch(RATE).feed(sine(frequency, level, 0.1))[4:]
    assert rows[:, 0] == pytest.approx(frequency, rel=1e-3)
    assert (rows[:, 1] > 0.98).all()


@given(frequency=st.floats(55, 1000), harmonics=st.integers(2, 8))
def test_the_pitch_of_a_rich_tone_is_its_fundamental(frequency: float, harmonics: int) -> None:
    rich = sum(sine(n * frequency, 0.4 / n, 0.1) for n in range(1, harmonics + 1))
    rows = Pitch(RATE).feed(np.asarray(rich, np.float32))[4:]
    assert rows[:, 0] == pytest.approx(frequency, rel=5e-3)
    assert (rows[:, 1] > 0.9).all()


def test_silence_keeps_the_pitch_and_noise_has_none() -> None:
    noise = np.random.default_rng(4).standard_normal(RATE).astype(np.float32) * 0.1
    pitch = Pitch(RATE)
    assert not pitch.feed(np.zeros(RATE // 10, np.float32)).any()
    pitch.feed(sine(330, 0.5))
    quiet = pitch.feed(np.zeros(RATE // 2, np.float32))[8:]
    assert quiet[:, 0] == pytest.approx(330, rel=0.01)
    assert not quiet[:, 1].any()
    assert np.median(pitch.feed(noise)[:, 1]) < 0.3


# ---- tempo -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "bpm"), [("click", 70), ("kick", 95), ("burst", 120), ("kick", 128), ("click", 174)])
def test_the_tempo_of_even_hits(kind: str, bpm: float) -> None:
    times = np.arange(0.6, 9, 60 / bpm) + 0.0037
    rows = TempoEstimate(RATE).feed(struck(kind, times, 330, 9))
    late = ends(rows) > 6
    assert rows[late, 0] == pytest.approx(bpm, rel=2e-3)
    assert (rows[late, 2] > 0.6).all()
    phase = ((ends(rows) - times[0]) * bpm / 60) % 1
    assert np.abs((rows[late, 1] - phase[late] + 0.5) % 1 - 0.5).max() < 0.05


def test_a_beat_with_hats_between_has_the_tempo_of_the_beat() -> None:
    beats = np.arange(0.6, 9, 60 / 110)
    sound = struck("kick", beats, 330, 9) + 0.15 * struck("burst", np.arange(0.6, 9, 30 / 110), 330, 9)
    assert TempoEstimate(RATE).feed(sound)[-1, 0] == pytest.approx(110, rel=5e-3)


def test_in_silence_the_tempo_stays_and_its_phase_runs_on() -> None:
    tempo = TempoEstimate(RATE)
    before = tempo.feed(struck("click", np.arange(0.5, 8, 0.5), 330, 8))[-1]
    rows = tempo.feed(np.zeros(12 * RATE, np.float32))
    assert rows[-1, 0] == pytest.approx(before[0], rel=0.01)
    assert rows[-1, 2] == 0
    steps = np.diff(rows[-100:, 1]) % 1
    assert steps == pytest.approx(rows[-1, 0] / 60 * HOP_SECONDS, abs=1e-4)


@pytest.mark.parametrize("sound", [np.zeros(3 * RATE), sine(220, 0.5, 3)], ids=["silence", "tone"])
def test_without_beats_there_is_no_tempo(sound: np.ndarray) -> None:
    assert not TempoEstimate(RATE).feed(sound.astype(np.float32)).any()
