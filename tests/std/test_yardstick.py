"""Filters, delays and a compressor of the library beside standard units by their published difference equations: both
make the same of the same noise, sample by sample."""

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
