"""std.react, offline: held against analyses of the same samples by themselves."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.runtime.sound.test_offline import FPS, RATE, heard, offline
from weft.media.analysis import ANALYSES, Spectrum
from weft.names import hop_length

HOP = hop_length(RATE) / RATE
SOUND = "s = sin(tau * phasor(300)) * exp(-6 * fract(me@abstime * 2))\n"
USE = f"#use std.react\n{SOUND}"
FRAMES = range(60, 75)


@cache
def samples() -> NDArray[np.float32]:
    return heard(f"{SOUND}audio(s)\n", 0, 2)[:, 0]


def rows(name: str) -> NDArray[np.float64]:
    return np.concatenate((np.zeros((1, len(ANALYSES[name].spec.outputs))), ANALYSES[name](RATE).feed(samples())))


def at_frames(values: NDArray[np.float64], numbers: range = FRAMES) -> NDArray[np.float64]:
    return np.interp(np.array(numbers) / FPS, np.arange(len(values)) * HOP, values)


def shown(*calls: str) -> NDArray[np.float64]:
    """What up to three calls give at each of the frames: [frames, calls]."""
    program = offline(f"{USE}display({', '.join((*calls, '0', '0')[:3])})\n")
    steps = program.play(range(FRAMES.stop))
    return np.array([picture[0, 0, : len(calls)] for number, picture in steps if number >= FRAMES.start])


def test_levels_are_those_of_the_analyses() -> None:
    found = shown("loudness(s)", "loudness(s, floor: 20)", "swell(s, 0, 0)")
    level = at_frames(rows("rms")[:, 0]) * np.sqrt(2)
    assert found[:, 0] == pytest.approx(np.clip(1 + 20 * np.log10(level) / 48, 0, 1), abs=1e-3)
    assert found[:, 1] == pytest.approx(np.clip(1 + 20 * np.log10(level) / 20, 0, 1), abs=1e-3)
    assert found[:, 2] == pytest.approx(level, abs=1e-3)


def test_a_swell_falls_in_its_own_time() -> None:
    level, expected, before = at_frames(rows("rms")[:, 0], range(FRAMES.stop)) * np.sqrt(2), [], 0.0
    for number, now in enumerate(level):
        seconds = 0.05 if now > before else 0.4
        before += (now - before) * (1 - np.exp(-(number > 0) / FPS / seconds))
        expected.append(before)
    assert shown("swell(s, 0.05, 0.4)")[:, 0] == pytest.approx(np.array(expected)[FRAMES.start :], abs=2e-3)


def test_gates_and_flashes_follow_hits() -> None:
    found = shown("gated(s, 0.5)", "flash(s, 0.4)")
    peaks = at_frames(rows("peak")[:, 0])
    is_on = False
    for number, peak in zip(FRAMES, peaks, strict=True):
        is_on = found[number - FRAMES.start, 0] == 1
        if abs(peak - 0.5) > 0.02 and abs(peak - 0.25) > 0.02 and not 0.25 < peak < 0.5:
            assert is_on == (peak > 0.5)
    # A hit at 1 s, which shows a hop or two later.
    ages = np.array(FRAMES) / FPS - 1
    assert found[4:, 1] == pytest.approx(np.clip(1 - ages[4:] / 0.4, 0, 1) ** 2, abs=0.12)


def test_bands_are_those_of_the_spectrum() -> None:
    found = shown("lows(s)", "mids(s)", "highs(s)")
    levels = np.concatenate((np.zeros((1, 35)), Spectrum(RATE).feed(samples())))
    assert found == pytest.approx(np.stack([at_frames(levels[:, n]) for n in range(3)], axis=1), abs=1e-3)
    assert found[:, 1].max() > 0.5


def test_a_spectrum_is_read_at_a_place_and_meters_stand_as_high() -> None:
    program = offline(f"{USE}display(spectrum(s), spectrum(s, 0.3, 0.5), meters(s, 4, 0))\n")
    picture = program.at(1.1)
    levels = np.concatenate((np.zeros((1, 51)), Spectrum(RATE, 48).feed(samples())))[:, 3:]

    def at(time: float, place: float) -> float:
        bands = [np.interp(time, np.arange(len(levels)) * HOP, band) for band in levels.T]
        return float(np.interp(place * 47, np.arange(48), bands))

    width = picture.shape[1]
    across = [at(1.1, (n + 0.5) / width) for n in range(width)]
    assert picture[0, :, 0] == pytest.approx(np.array(across), abs=1e-3)
    assert picture[0, 0, 1] == pytest.approx(at(0.6, 0.3), abs=1e-3)
    rows_up = 1 - (np.arange(picture.shape[0]) + 0.5) / picture.shape[0]
    heights = np.array([at(1.1, (np.floor((n + 0.5) / width * 4) + 0.5) / 4) for n in range(width)])
    assert np.array_equal(picture[:, :, 2], (rows_up[:, None] < heights).astype(picture.dtype))


def test_on_the_beat_it_is_bright() -> None:
    program = offline(f"{USE}t = tempo(s)\ndisplay(on_beat(s), t@phase, t@confidence)\n")
    for time in (3.5, 3.6, 3.7):
        value, phase, confidence = program.at(time)[0, 0, :3]
        assert value == pytest.approx(np.exp(-4 * phase) * min(1, 2 * confidence), rel=1e-3)
        assert confidence > 0.3
