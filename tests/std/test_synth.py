"""std.synth by measurement: pitch, overtones, aliases, times and responses, against formulas."""

from __future__ import annotations

from collections.abc import Callable

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
    away = np.min([np.abs(phase - edge) for edge in (0, 0.25, 0.5, 1)], axis=0) * RATE / 100 > 4
    found = heard(tone, LENGTH / RATE)
    np.testing.assert_allclose(found[away], formula(phase)[away], atol=1e-9)


@pytest.mark.parametrize("tone", ["saw_tone({})", "square_tone({})", "pulse_tone({}, 0.3)", "tri_tone({})"])
# 5 kHz itself, where the aliases lie on every kilohertz, and tones below whose aliases are next to their harmonics.
@pytest.mark.parametrize("freq", [1040, 4660, 4900, 5000])
def test_aliases_are_60_db_below_the_tone(tone: str, freq: int) -> None:
    lines = amplitudes(heard(tone.format(freq), LENGTH / RATE))
    harmonics = np.arange(freq, RATE / 2, freq, dtype=int) * LENGTH // RATE
    loudest = lines[harmonics].max()
    aliases = np.delete(lines, harmonics).max()
    assert 20 * np.log10(aliases / loudest) < -60


@pytest.mark.parametrize("width", [0.05, 0.2])
def test_aliases_of_a_narrow_pulse_are_60_db_below_full_level(width: float) -> None:
    lines = amplitudes(heard(f"pulse_tone(4900, {width})", LENGTH / RATE))
    assert 20 * np.log10(np.delete(lines, np.arange(4900, 24_000, 4900) * LENGTH // RATE).max()) < -60


def test_a_tone_without_smoothing_would_fail_that_test() -> None:
    lines = amplitudes(2 * (np.arange(LENGTH) * 4900 / RATE % 1) - 1)
    harmonics = np.arange(4900, RATE / 2, 4900, dtype=int) * LENGTH // RATE
    assert 20 * np.log10(np.delete(lines, harmonics).max() / lines[harmonics].max()) > -20


@pytest.mark.parametrize(("tone", "power"), [("saw_tone(1000)", 1), ("tri_tone(1000)", 2)])
def test_the_harmonics_have_their_levels_up_to_12_khz(tone: str, power: int) -> None:
    lines = amplitudes(heard(tone, LENGTH / RATE))[:: 1000 * LENGTH // RATE]
    order = np.arange(1, 13, power)
    levels = 20 * np.log10(lines[order] / (np.array([2 / np.pi, 8 / np.pi**2])[power - 1] / order**power))
    assert (levels > -1.5).all()
    assert (levels < 0.2).all()


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


def test_fm_without_feedback_is_fm_tone() -> None:
    np.testing.assert_array_equal(heard("fm(2000, 0.5, 1.5, 0)", 0.05), heard("fm_tone(2000, 0.5, 1.5)", 0.05))


def test_fm_with_feedback_has_the_harmonics_that_bessel_says() -> None:
    # A sine that moves its own phase solves Kepler's equation: its harmonics are 2 / (n b) J_n(n b). It is heard by how
    # it moves a tone a little: sin(t + depth * other) - sin(t) is nearly depth * other * cos(t).
    feedback, depth = 0.8, 0.001
    lines = amplitudes(heard(f"fm(20, 1, {depth}, {feedback}) - sine_tone(20)", LENGTH / RATE))
    assert lines[0] < depth
    turns = np.arange(1000) / 1000 * 2 * np.pi
    orders = np.arange(1, 8)
    bessel = np.mean(np.cos(orders[:, None] * (turns - feedback * np.sin(turns))), axis=1)
    other = 2 / (orders * feedback) * bessel
    times = np.arange(LENGTH) / LENGTH * 2 * np.pi
    wave = sum(a * np.sin(n * times) for n, a in zip(orders, other, strict=True))
    expected = amplitudes(np.cos(times) * wave) * depth
    np.testing.assert_allclose(lines[:6], expected[:6], atol=0.01 * depth)


def test_a_supersaw_is_seven_saws_of_equal_power() -> None:
    x = heard("supersaw(1200, 0.5)", 1)
    lines = amplitudes(x * 2 * np.hanning(len(x)))
    places = 1200 * 2 ** (0.5 / 12 * np.array([-1, -0.61, -0.23, 0, 0.17, 0.55, 1]))
    # A line between two others shows in both; the window makes them known by their power, of 3/2.
    power = [np.sum(lines[round(p) - 2 : round(p) + 3] ** 2) / 1.5 for p in places]
    np.testing.assert_allclose(np.sqrt(power), 2 / np.pi / np.sqrt(7), rtol=0.03)
    lines[sorted({n for p in places for n in range(round(p) - 4, round(p) + 5)})] = 0
    assert lines[1000:1400].max() < 0.003
    assert np.abs(x).max() < np.sqrt(7) * 1.08


@pytest.fixture(scope="module")
def string() -> Callable[[float, float], tuple[float, float]]:
    """How long the fundamental of a plucked string takes to fade by 60 dB, and by how many cents it is off. It is
    compiled once, and plucks notes of a quarter of a second one after another."""
    notes = [(f, b) for f in (55, 220, 1000) for b in (0.0, 0.5, 1.0)]
    freq, bright = (f"<{', '.join(str(n[i]) for n in notes)}>[me@time * 4]" for i in (0, 1))
    text = f"string = pluck({freq}, fract(me@time * 4) < 0.5, 0.4, {bright})\naudio(string)"
    x = heard(text, len(notes) / 4)
    found = {}
    for note, part in zip(notes, x.reshape(len(notes), -1), strict=True):
        times = np.arange(len(part)) / RATE
        smooth = np.hanning(round(4 * RATE / note[0]))
        # The fundamental is brought to 0 Hz, and the rest is smoothed away.
        line = np.convolve(part * np.exp(-2j * np.pi * note[0] * times), smooth / smooth.sum(), "valid")
        steady = slice(len(line) // 3, len(line) * 9 // 10)
        at = times[: len(line)][steady]
        fading = np.polyfit(at, 20 * np.log10(np.abs(line[steady])), 1)[0]
        off = np.polyfit(at, np.unwrap(np.angle(line[steady])), 1)[0] / (2 * np.pi)
        found[note] = (-60 / fading, 1200 * np.log2(1 + off / note[0]))
        assert 0.3 < np.abs(part).max() < 2
        assert abs(part[-2400:].mean()) < 1e-3
    return lambda freq, bright: found[freq, bright]


@pytest.mark.parametrize("bright", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("freq", [55, 220, 1000])
def test_a_string_is_in_tune_and_fades_in_its_time(
    string: Callable[[float, float], tuple[float, float]], freq: float, bright: float
) -> None:
    seconds, cents = string(freq, bright)
    assert abs(cents) < 0.5
    assert seconds == pytest.approx(0.4, rel=0.03)


def test_a_string_is_silent_until_it_is_plucked_and_dull_ones_lose_their_highs() -> None:
    def highs(bright: float) -> float:
        x = heard(f"string = pluck(220, me@time > 0.1, 1, {bright})\naudio(string)", 0.5)
        assert (x[: RATE // 10] == 0).all()
        lines = amplitudes(x[RATE // 4 :])
        return float((lines[1000:] ** 2).sum() / (lines**2).sum())

    assert highs(0) < 0.02 * highs(1)


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
    x = heard(f"adsr({on}, 0.05, 0.1, 0.4, 0.1)::e<level>\naudio(e@level)", 0.7, 4000)
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


def test_the_state_variable_filter_is_the_filter_and_its_notch() -> None:
    x = "(2 * hash(me@abssample, 1) - 1)"
    one = sound("std.synth", f"filter({x}, 2000, 3)::f<low, band, high>\naudio(f@low, f@band, f@high)", 0.05, RATE)
    other = sound(
        "std.synth", f"svf({x}, 2000, 3)::f<low, band, high, notch>\naudio(f@low, f@band, f@high, f@notch)", 0.05, RATE
    )
    np.testing.assert_array_equal(other[:3], one)
    np.testing.assert_allclose(other[3], one[0] + one[2], atol=1e-12)
    freqs, gains = response("svf(click, 2000, 3)::f<low, band, high, notch>\naudio(f@notch)")
    w = warped(freqs) / warped(2000)
    np.testing.assert_allclose(gains, np.abs(1 - w**2) / np.hypot(1 - w**2, w / 3), atol=5e-3)
    assert gains[freqs == 2000] < 1e-4


def ladder(x: Values, cutoff: float, resonance: float) -> Values:
    """The ladder with its loop solved by bisection."""
    gain = np.tan(np.pi * cutoff / RATE)
    part = gain / (1 + gain)
    state, found = np.zeros(4), np.empty(len(x))
    for n, signal in enumerate(x):
        rest = state @ [part**3, part**2, part, 1] / (1 + gain)
        low, high = -100.0, 100.0
        while high - low > 1e-13:
            middle = (low + high) / 2
            above = middle + part**4 * 4 * resonance * np.tanh(middle) > part**4 * signal + rest
            low, high = (low, middle) if above else (middle, high)
        y = signal - 4 * resonance * np.tanh(low)
        for i in range(4):
            # A one-pole by the rule of trapezes: its state advances by twice the step.
            step = part * (y - state[i])
            y = state[i] + step
            state[i] = y + step
        found[n] = y
    return found


@pytest.mark.parametrize(("cutoff", "resonance"), [(300, 0), (3000, 0), (12_000, 0), (3000, 0.5), (12_000, 0.9)])
def test_a_soft_sound_passes_the_ladder_as_four_one_poles_in_a_loop(cutoff: float, resonance: float) -> None:
    freqs, gains = response(f"audio(ladder(0.0001 * click, {cutoff}, {resonance}))")
    s = 1j * warped(freqs) / warped(cutoff)
    np.testing.assert_allclose(gains / 0.0001, np.abs(1 / ((1 + s) ** 4 + 4 * resonance)), atol=1e-6)


@pytest.mark.parametrize(("cutoff", "resonance", "level"), [(2000, 0.8, 1), (2000, 1.2, 8), (15_000, 1.2, 0.5)])
def test_a_loud_sound_passes_the_ladder_with_its_loop_solved(cutoff: float, resonance: float, level: float) -> None:
    noise = f"{level} * (2 * hash(me@abssample, 1) - 1)"
    found = heard(f"audio(ladder({noise}, {cutoff}, {resonance}))", 0.01)
    np.testing.assert_allclose(found, ladder(heard(noise, 0.01), cutoff, resonance), atol=1e-5)


def test_the_ladder_whistles_at_its_cutoff_and_stays_calm_however_fast_it_is_moved() -> None:
    x = heard("audio(ladder(me@abssample == 0, 2000, 1.3))", 0.3)[-LENGTH:]
    lines = amplitudes(x)
    assert lines.argmax() * RATE / LENGTH == pytest.approx(2000, rel=0.03)
    assert 0.2 < np.abs(x).max() < 2
    x = heard("f = ladder(white_noise(1), 20 * exp2(10 * hash(me@abssample, 2)), 5)\naudio(f)", 0.2)
    assert np.abs(x).max() < 30


@pytest.mark.parametrize(
    "patch",
    [
        "f = svf({}, 500, 3)@notch\naudio(f)",
        "f = ladder({}, 500, 0.9)\naudio(f)",
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


@pytest.mark.parametrize(
    "word",
    [
        "pluck({0}, fract(me@time * 40) < 0.5, {1}, {2})",
        "ladder(white_noise(1), {0}, {1})",
        "svf(white_noise(1), {0}, {1})@notch",
        "supersaw({0}, 0.1)",
        "fm(100, {2}, 1, {1})",
    ],
)
def test_arguments_out_of_range_are_no_harm(word: str) -> None:
    # Every argument in turn is too small, too large or no number for a while; then all are in their range.
    usual = ["440", "0.5", "0.5"]
    for place in range(3):
        odd = "(if me@time < 0.02 then <0, -3, 1000000000, 0 / 0>[me@time * 200] else {})"
        arguments = (odd.format(u) if n == place else u for n, u in enumerate(usual))
        x = heard(f"v = {word.format(*arguments)}\naudio(v)", 0.1)
        assert np.isfinite(x[-RATE // 20 :]).all()
        assert 0.05 < np.abs(x[-RATE // 20 :]).max() < 10


def test_a_cutoff_out_of_range_is_no_harm() -> None:
    for cutoff in (0, -5, 1e9):
        x = heard(f"filter(white_noise(1), {cutoff}, 0)::f<low, band, high>\naudio(f@low)", 0.05)
        assert np.abs(x).max() < 3
