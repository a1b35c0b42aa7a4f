"""Filters, delays and a compressor of the library, compared with standard units by their published difference
equations: both make the same of the same noise, sample by sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.std.values import Values, sound

RATE = 48_000
COUNT = 1200
NOISE = "(2 * hash(me@abssample, 5) - 1)"


def heard(library: str, expression: str) -> Values:
    return sound(library, f"audio({expression})", COUNT / RATE, RATE)[0]


@pytest.fixture(scope="module")
def noise() -> Values:
    return heard("std.synth", NOISE)


def difference_equation(x: Values, b: Sequence[float], a: Sequence[float]) -> Values:
    """a0 y(n) + a1 y(n - 1) + ... = b0 x(n) + b1 x(n - 1) + ..."""
    y = np.zeros(len(x))
    for n in range(len(x)):
        new = sum(c * x[n - k] for k, c in enumerate(b) if k <= n)
        y[n] = (new - sum(c * y[n - k] for k, c in enumerate(a) if 0 < k <= n)) / a[0]
    return y


# --- filters


def one_pole(kind: str, cutoff: float) -> tuple[list[float], list[float]]:
    """1 / (1 + s), s / (1 + s) and (1 - s) / (1 + s), through s = (1 - z^-1) / (k (1 + z^-1)): Oppenheim and Schafer,
    "Discrete-Time Signal Processing", the bilinear transform."""
    k = np.tan(np.pi * cutoff / RATE)
    return {"low": [k, k], "high": [1, -1], "all": [k - 1, k + 1]}[kind], [k + 1, k - 1]


def cookbook(kind: str, cutoff: float, q: float, db: float = 0) -> tuple[list[float], list[float]]:
    """Robert Bristow-Johnson, "Cookbook formulae for audio equalizer biquad filter coefficients"."""
    w = 2 * np.pi * cutoff / RATE
    c, alpha, amp = np.cos(w), np.sin(w) / (2 * q), 10 ** (db / 40)
    usual = [1 + alpha, -2 * c, 1 - alpha]
    root = 2 * np.sqrt(amp) * alpha
    up, down, minus, plus = amp + 1, amp - 1, (amp + 1) - (amp - 1) * c, (amp + 1) + (amp - 1) * c
    return {
        "low": ([(1 - c) / 2, 1 - c, (1 - c) / 2], usual),
        "high": ([(1 + c) / 2, -(1 + c), (1 + c) / 2], usual),
        "band": ([alpha, 0, -alpha], usual),
        "notch": ([1, -2 * c, 1], usual),
        "peak": ([1 + alpha * amp, -2 * c, 1 - alpha * amp], [1 + alpha / amp, -2 * c, 1 - alpha / amp]),
        "low shelf": (
            [amp * (minus + root), 2 * amp * (down - up * c), amp * (minus - root)],
            [plus + root, -2 * (down + up * c), plus - root],
        ),
        "high shelf": (
            [amp * (plus + root), -2 * amp * (down + up * c), amp * (plus - root)],
            [minus + root, 2 * (down - up * c), minus - root],
        ),
    }[kind]


@pytest.mark.parametrize(
    ("library", "word", "unit"),
    [
        ("std.synth", "lowpass({}, 1000)", one_pole("low", 1000)),
        ("std.synth", "highpass({}, 3000)", one_pole("high", 3000)),
        ("std.effects", "allpass1({}, 2000)", one_pole("all", 2000)),
        *(
            ("std.synth", f"svf({{}}, {cutoff}, {q})@{kind}", cookbook(kind, cutoff, q))
            for kind, cutoff, q in (("low", 500, 0.7), ("high", 9000, 2), ("band", 2000, 8), ("notch", 1000, 1))
        ),
        ("std.synth", "peak_eq({}, 1500, 2, 9)", cookbook("peak", 1500, 2, 9)),
        ("std.synth", "peak_eq({}, 1500, 2, -9)", cookbook("peak", 1500, 2, -9)),
        ("std.synth", "low_shelf({}, 400, -12)", cookbook("low shelf", 400, np.sqrt(0.5), -12)),
        ("std.synth", "high_shelf({}, 5000, 6)", cookbook("high shelf", 5000, np.sqrt(0.5), 6)),
    ],
)
def test_a_filter_is_its_difference_equation(
    library: str, word: str, unit: tuple[list[float], list[float]], noise: Values
) -> None:
    np.testing.assert_allclose(heard(library, word.format(NOISE)), difference_equation(noise, *unit), atol=1e-9)


# --- delays


def schroeder_allpass(x: Values) -> Values:
    """Schroeder, "Natural Sounding Artificial Reverberation", 1962: y(n) = -g x(n) + x(n - m) + g y(n - m)."""
    return difference_equation(x, [-0.7, *[0] * 46, 1], [1, *[0] * 46, -0.7])


def echoes(x: Values) -> Values:
    """A comb of one delay: y(n) = x(n - m) + g y(n - m)."""
    return difference_equation(x, [0] * 60 + [1], [1, *[0] * 59, -0.6])


def damped_comb(x: Values) -> Values:
    """The low-pass comb of Freeverb (Jezar, 2000), as in Smith, "Physical Audio Signal Processing": the delay z^-m in a
    loop with g (1 - d) / (1 - d z^-1)."""
    g, d, m = 0.84, 0.2, 53
    numerator = [0.0] * m + [1, -d]
    denominator = [1, -d, *[0.0] * (m - 2), -g * (1 - d)]
    return difference_equation(x, numerator, denominator)


def resonant_flanger(x: Values) -> Values:
    """The mean of a sound and a delay in a loop, (1 + z^-m / (1 - g z^-m)) / 2."""
    g, m = 0.5, 24
    return difference_equation(x, [0.5, *[0.0] * (m - 1), 0.5 * (1 - g)], [1, *[0.0] * (m - 1), -g])


def phaser(x: Values) -> Values:
    """Four first-order allpasses in a loop with one sample of delay, and the mean with the sound: Smith, "Physical
    Audio Signal Processing", phasing."""
    g = 0.6
    b, a = one_pole("all", 800)
    top, bottom = np.array([1.0]), np.array([1.0])
    for _ in range(4):
        top, bottom = np.convolve(top, b), np.convolve(bottom, a)
    loop = np.append(bottom, 0) - g * np.append(0, top)
    return difference_equation(x, list((loop + np.append(top, 0)) / 2), list(loop))


@pytest.mark.parametrize(
    ("word", "unit"),
    [
        (f"allpass({NOISE}, 47 / me@rate, 0.7)", schroeder_allpass),
        (f"echo({NOISE}, 60 / me@rate, 0.6)", echoes),
        (f"comb({NOISE}, 53 / me@rate, 0.84, 0.2)", damped_comb),
        (f"flanger({NOISE}, 0, 0.002, 0.5)", resonant_flanger),
        (f"phaser({NOISE}, 0, 1, 0.6)", phaser),
    ],
)
def test_a_delay_is_its_difference_equation(word: str, unit: Callable[[Values], Values], noise: Values) -> None:
    np.testing.assert_allclose(heard("std.effects", word), unit(noise), atol=1e-9)


# --- strings and rooms


def test_a_string_is_its_difference_equation() -> None:
    """Jaffe and Smith, "Extensions of the Karplus-Strong Plucked-String Algorithm", 1983: a loop of a delay, a mean of
    two samples, an allpass for the fraction of a sample, and a loss."""
    freq, seconds, bright = 441, 0.3, 0.4
    period = RATE / freq
    w = 2 * np.pi / period
    stretch = 0.5 - 0.5 * bright
    mean = 1 - stretch + stretch * np.exp(-1j * w)
    whole = int(period + np.angle(mean) / w - 0.3)
    fraction = period + np.angle(mean) / w - whole
    c = np.sin((1 - fraction) * w / 2) / np.sin((1 + fraction) * w / 2)
    loss = 0.001 ** (1 / (freq * seconds)) / abs(mean)

    burst = heard("std.synth", f"highpass(if me@abssample < {period} then white_noise(11) else 0, {freq / 2})")
    y, loop = np.zeros(len(burst)), np.zeros(len(burst))
    for n in range(len(burst)):
        if n > whole:
            soft, before = ((1 - stretch) * y[n - whole - k] + stretch * y[n - whole - k - 1] for k in (0, 1))
            loop[n] = c * soft + before - c * loop[n - 1]
        elif n == whole:
            loop[n] = c * (1 - stretch) * y[0]
        y[n] = burst[n] + (loss * loop[n] if n >= period else 0)
    np.testing.assert_allclose(heard("std.synth", f"pluck({freq}, 1, {seconds}, {bright})"), y, atol=1e-9)


def test_a_room_is_a_network_of_delays() -> None:
    """Jot and Chaigne, "Digital delay networks for designing artificial reverberators", 1991: delays with absorbing
    filters, in a loop with an orthogonal matrix. The sound passes four pairs of sums and differences before."""
    rate, count, seconds, dark = 4000, 1200, 0.8, 0.6

    def late(x: Values, milliseconds: float) -> Values:
        # Between two samples, the delays before the network are linear.
        whole, part = divmod(milliseconds * rate / 1000, 1)
        delayed = [np.append(np.zeros(int(whole) + k), x)[: len(x)] for k in (0, 1)]
        return np.asarray((1 - part) * delayed[0] + part * delayed[1])

    p = q = np.eye(1, count)[0]
    q = late(p, 3.7)
    for milliseconds in (7.9, 16.3, 30.1):
        p, q = p + q, late(p - q, milliseconds)
    into = [(p + q) / 4, (p - q) / 4]

    two = np.array([[1, 1], [1, -1]])
    matrix = np.kron(two, np.kron(two, two)) / np.sqrt(8)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(8), atol=1e-12)
    ticks = np.floor(np.array([41.3, 47.9, 53.7, 61.3, 68.9, 77.3, 86.9, 97.7]) * rate / 1000).astype(int)
    low, high = (10 ** (-3 * ticks / (rate * s)) for s in (seconds, seconds / (1 + 3 * dark)))
    pole = (low - high) / (low + high)
    rows, out = np.zeros((count, 8)), np.zeros((count, 8))
    for n in range(count):
        back = np.array([rows[n - t, k] if n >= t else 0 for k, t in enumerate(ticks)])
        out[n] = pole * out[n - 1] + (1 - pole) * low * back
        rows[n] = matrix @ out[n] + np.array([side[n] for side in into] * 4)
    found = sound(
        "std.effects",
        f"reverb(me@abssample == 0, {seconds}, {dark})::room<l, r>\naudio(room@l, room@r)",
        count / rate,
        rate,
    )
    np.testing.assert_allclose(found, [0.3 * out[:, side::2].sum(axis=1) for side in (0, 1)], atol=1e-9)
    assert np.abs(found).max() > 0.03


# --- loudness


def test_the_compressor_is_its_formulas() -> None:
    """Giannoulis, Massberg and Reiss, "Digital Dynamic Range Compressor Design", 2012, in decibels: the soft knee, of
    6 dB, and the smooth, decoupled peak detector."""
    threshold, ratio, attack, release = -20, 4, 0.002, 0.01
    x = f"{NOISE} * (if me@time < 0.01 then 1 else 0.05)"
    noise = heard("std.effects", x)
    level = 20 * np.log10(np.maximum(np.abs(noise), 1e-6))
    over = level - threshold
    knee = level + (1 / ratio - 1) * (over + 3) ** 2 / (2 * 6)
    curve = np.where(2 * over < -6, level, np.where(2 * np.abs(over) <= 6, knee, threshold + over / ratio))
    to_attack, to_release = np.exp(-1 / (np.array([attack, release]) * RATE))
    peak = turned = 0.0
    expected = np.empty(len(noise))
    for n, wanted in enumerate(level - curve):
        peak = max(wanted, to_release * peak + (1 - to_release) * wanted)
        turned = to_attack * turned + (1 - to_attack) * peak
        expected[n] = noise[n] * 10 ** (-turned / 20)
    found = heard("std.effects", f"compressor({x}, {threshold}, {ratio}, {attack}, {release})")
    np.testing.assert_allclose(found, expected, atol=1e-9)
