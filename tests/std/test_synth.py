"""std.synth by measurement: pitch, overtones, aliases, times and responses, against formulas."""

from __future__ import annotations

import numpy as np
import pytest

from tests.std.values import Values, sound

RATE = 48_000
# A spectrum of this many samples has a line every 20 Hz: tones that are multiples of it need no window.
LENGTH = 2400
TONES = ["sine_tone({})", "saw_tone({})", "square_tone({})", "tri_tone({})", "fm_tone({}, 2, 0.5)"]


def heard(text: str, seconds: float, rate: int = RATE) -> Values:
    """The sound of a patch, or of an expression, on the left."""
    return sound("std.synth", text if "audio(" in text else f"audio({text})", seconds, rate)[0]


def amplitudes(x: Values) -> Values:
    """The amplitude of each line of a spectrum, that of 0 Hz first."""
    found: Values = np.abs(np.fft.rfft(x)) * 2 / len(x)
    return found


def response(text: str, seconds: float = 0.1) -> tuple[Values, Values]:
    """The frequencies and gains of a filter, from what it makes of a single click, `click`."""
    click = "click = me@abssample == 0\n"
    gains = np.abs(np.fft.rfft(heard(click + text, seconds)))
    return np.fft.rfftfreq(round(seconds * RATE), 1 / RATE), gains


def warped(freq: Values | float) -> Values:
    """Where an analogue filter has the frequency that a digital one has here: the bilinear transform."""
    found: Values = np.tan(np.pi * np.minimum(freq, RATE * 0.4999) / RATE)
    return found


# --- tones


@pytest.mark.parametrize("tone", TONES)
@pytest.mark.parametrize("freq", [100, 440, 2300])
def test_a_tone_has_its_pitch(tone: str, freq: int) -> None:
    lines = amplitudes(heard(tone.format(freq), LENGTH / RATE))
    assert lines.argmax() * RATE / LENGTH == freq
    assert lines[0] < 1e-9


def test_a_pure_tone_is_one_line() -> None:
    lines = amplitudes(heard("sine_tone(1000)", LENGTH / RATE))
    assert lines[50] == pytest.approx(1)
    assert np.delete(lines, 50).max() < 1e-9


@pytest.mark.parametrize(
    ("tone", "formula"),
    [
        ("saw_tone(100)", lambda p: 2 * p - 1),
        ("square_tone(100)", lambda p: np.where(p < 0.5, 1, -1)),
        ("pulse_tone(100, 0.25)", lambda p: np.where(p < 0.25, 1.5, -0.5)),
        ("tri_tone(100)", lambda p: 1 - 4 * np.abs(p - 0.5)),
    ],
)
def test_away_from_its_edges_a_tone_has_its_shape(tone: str, formula: object) -> None:
    assert callable(formula)
    phase = np.arange(LENGTH) * 100 / RATE % 1
    away = np.min([np.abs(phase - edge) for edge in (0, 0.25, 0.5, 1)], axis=0) * RATE / 100 > 2
    found = heard(tone, LENGTH / RATE)
    np.testing.assert_allclose(found[away], formula(phase)[away], atol=1e-9)


@pytest.mark.parametrize("tone", ["saw_tone({})", "square_tone({})", "pulse_tone({}, 0.2)", "tri_tone({})"])
@pytest.mark.parametrize("freq", [460, 2300, 4660])
def test_aliases_cannot_be_heard(tone: str, freq: int) -> None:
    def aliases(x: Values) -> float:
        lines = amplitudes(x)
        lines[:: freq * LENGTH // RATE] = 0
        return float(20 * np.log10(lines[: 10_000 * LENGTH // RATE].max()))

    naive = 2 * (np.arange(LENGTH) * freq / RATE % 1) - 1
    found = aliases(heard(tone.format(freq), LENGTH / RATE))
    assert found < -70
    assert found < aliases(naive) - 40


@pytest.mark.parametrize("tone", TONES)
def test_a_tone_keeps_its_phase_when_its_frequency_changes(tone: str) -> None:
    jumping = heard(tone.format("if me@time < 0.0301 then 97 else 131"), 0.1)
    phase = np.concatenate([[0], np.cumsum(np.where(np.arange(1, 4800) / RATE - 1 / RATE < 0.0301, 97, 131))]) / RATE
    steady = heard(tone.format(100), 0.01)
    expected = np.interp(phase % 1, np.arange(480) / 480, steady)
    # Near the edges of a saw or a square, its steepness depends on the pitch.
    assert np.quantile(np.abs(jumping - expected), 0.9) < 0.05


def test_a_frequency_of_nothing_or_backwards_is_no_harm() -> None:
    for tone in ("saw_tone", "square_tone", "tri_tone"):
        assert np.ptp(heard(f"{tone}(0)", 0.01)) == 0
        forwards, backwards = (heard(f"{tone}({freq})", 0.01) for freq in (1000, -1000))
        np.testing.assert_allclose(backwards[1:], forwards[:0:-1], atol=1e-6)


def test_fm_has_the_sidebands_that_bessel_says() -> None:
    lines = amplitudes(heard("fm_tone(2000, 0.5, 1.5)", LENGTH / RATE))
    turns = np.arange(1000) / 1000 * 2 * np.pi
    for order, freq in ((0, 2000), (1, 3000), (2, 4000)):
        bessel = np.mean(np.cos(order * turns - 1.5 * np.sin(turns)))
        # What falls below 0 Hz comes back from there.
        folded = np.mean(np.cos((4 + order) * turns - 1.5 * np.sin(turns)))
        assert lines[freq * LENGTH // RATE] == pytest.approx(abs(bessel), abs=abs(folded) + 1e-9)


# --- noises


def octaves(x: Values) -> Values:
    """The power in each octave from 40 Hz to 20 kHz, in decibels."""
    power = np.abs(np.fft.rfft(x)) ** 2
    freqs = np.fft.rfftfreq(len(x), 1 / RATE)
    edges = 40 * 2.0 ** np.arange(10)
    found: Values = 10 * np.log10([power[(freqs >= a) & (freqs < 2 * a)].sum() for a in edges[:-1]])
    return found


@pytest.mark.parametrize(("noise", "slope", "off"), [("white_noise(3)", 3.01, 0.7), ("pink_noise(3)", 0, 1.5)])
def test_a_noise_has_its_colour(noise: str, slope: float, off: float) -> None:
    x = heard(noise, 8)
    flat = octaves(x) - slope * np.arange(9)
    assert np.abs(flat - flat.mean()).max() < off
    assert abs(x.mean()) < 0.02
    assert np.abs(x).max() <= 1


def test_white_noise_is_evenly_spread_and_seeds_have_nothing_in_common() -> None:
    one, other = heard("white_noise(1)", 1), heard("white_noise(2)", 1)
    assert np.abs(np.histogram(one, 10, (-1, 1))[0] / len(one) - 0.1).max() < 0.01
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.02
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 0.02


def test_dust_is_as_dense_as_it_is_asked_for() -> None:
    x = heard("dust(500, 1)", 8)
    clicks = x[x > 0]
    assert abs(len(clicks) - 4000) < 4 * np.sqrt(4000)
    assert clicks.max() <= 1
    assert clicks.mean() == pytest.approx(0.5, abs=0.03)


# --- envelopes and glides


def test_ar_rises_and_falls_in_its_times() -> None:
    x = heard("a = ar(me@time >= 0.1 and me@time < 0.3, 0.05, 0.2)\naudio(a)", 0.6, 4000)
    t = np.arange(len(x)) / 4000
    assert (x[t < 0.1] == 0).all()
    np.testing.assert_allclose(x[t < 0.3], np.interp(t[t < 0.3], [0.1, 0.15], [0, 1]), atol=0.006)
    falling = t >= 0.3
    np.testing.assert_allclose(x[falling], 0.001 ** ((t[falling] - 0.3) / 0.2), rtol=0.01)


def test_adsr_goes_up_and_down_and_stays_and_starts_anew() -> None:
    on = "me@time < 0.3 or me@time >= 0.6"
    x = heard(f"adsr({on}, 0.05, 0.1, 0.4, 0.1)::e<level, top>\naudio(e@level)", 0.7, 4000)
    t = np.arange(len(x)) / 4000
    np.testing.assert_allclose(x[t < 0.05], t[t < 0.05] / 0.05, atol=0.006)
    assert x.max() == pytest.approx(1)
    assert x[round(0.299 * 4000)] == pytest.approx(0.4, abs=1e-3)
    assert x[round(0.4 * 4000)] == pytest.approx(0.4e-3, rel=0.02)
    assert x[round(0.65 * 4000)] == pytest.approx(1, abs=0.02)
    assert (np.abs(np.diff(x)) < 0.04).all()


def test_a_glide_starts_where_it_is_and_arrives_in_its_time() -> None:
    x = heard("g = glide(if me@time < 0.1 then 3 else 5, 0.2)\naudio(g)", 0.4, 4000)
    t = np.arange(len(x)) / 4000
    np.testing.assert_allclose(x[t < 0.1], 3)
    later = t >= 0.1
    np.testing.assert_allclose(x[later], 5 - 2 * 0.001 ** ((t[later] - 0.1 + 1 / 4000) / 0.2), atol=1e-9)


# --- filters


@pytest.mark.parametrize("cutoff", [200, 3000, 15_000])
def test_the_gentle_filters_have_their_cutoff(cutoff: float) -> None:
    freqs, low = response(f"f = lowpass(click, {cutoff})\naudio(f)")
    freqs, high = response(f"f = highpass(click, {cutoff})\naudio(f)")
    w = warped(freqs) / warped(cutoff)
    np.testing.assert_allclose(low, 1 / np.hypot(1, w), atol=2e-3)
    np.testing.assert_allclose(high, w / np.hypot(1, w), atol=2e-3)
    for gains in (low, high):
        assert 20 * np.log10(gains[freqs == cutoff]) == pytest.approx(-3.01, abs=0.02)


@pytest.mark.parametrize("q", [0.7071067811865476, 5])
@pytest.mark.parametrize("cutoff", [500, 8000])
def test_the_filter_has_its_cutoff_and_its_resonance(cutoff: float, q: float) -> None:
    for output, power, factor in (("low", 0, 1), ("band", 1, 1 / q), ("high", 2, 1)):
        freqs, gains = response(f"filter(click, {cutoff}, {q!r})::f<low, band, high>\naudio(f@{output})")
        w = warped(freqs) / warped(cutoff)
        expected = factor * w**power / np.hypot(1 - w**2, w / q)
        np.testing.assert_allclose(gains, expected, atol=5e-3 * q)
        assert gains[freqs == cutoff] == pytest.approx(q * factor, rel=1e-3)


def test_the_filter_stays_calm_however_fast_it_is_moved() -> None:
    # The cutoff jumps over the whole range at every sample; the last third has no input.
    x = heard(
        "s = if me@time < 0.1 then white_noise(1) else 0\n"
        "filter(s, 20 * exp2(10 * hash(me@abssample, 2)), 100)::f<low, band, high>\naudio(f@low, f@band)",
        0.3,
    )
    assert np.isfinite(x).all()
    assert np.abs(x).max() < 200
    # What is left in the two integrators can only shrink.
    blocks = np.abs(x[4800:]).reshape(-1, 480).max(axis=1)
    assert blocks[-1] < blocks[0]
    assert (blocks <= np.abs(x[:4800]).max()).all()


@pytest.mark.parametrize(
    "patch",
    [
        "f = lowpass({}, 500)\naudio(f)",
        "f = highpass({}, 500)\naudio(f)",
        "filter({}, 500, 3)::f<low, band, high>\naudio(f@low)",
        "f = ar({}, 0.01, 0.1)\naudio(f)",
        "f = glide({}, 0.01)\naudio(f)",
    ],
)
def test_a_moment_of_nonsense_is_forgotten(patch: str) -> None:
    for nonsense in ("0 / 0", "1 / 0"):
        x = heard(patch.format(f"(if me@abssample == 100 then {nonsense} else sin(tau * 600 * me@time))"), 0.1)
        assert np.isfinite(x[101:]).all()
        assert 0.05 < np.abs(x[-1000:]).max() < 10


def test_a_cutoff_out_of_range_is_no_harm() -> None:
    for cutoff in (0, -5, 1e9):
        x = heard(f"filter(white_noise(1), {cutoff}, 0)::f<low, band, high>\naudio(f@low)", 0.05)
        assert np.abs(x).max() < 3
