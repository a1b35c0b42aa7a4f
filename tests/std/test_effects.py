"""std.effects by measurement: where echoes come, how rooms fade, and what is kept of the power."""

from __future__ import annotations

import numpy as np
import pytest

from tests.std.values import Values, sound

RATE = 8000
CLICK = "click = me@abssample == 0\n"


def heard(text: str, seconds: float, rate: int = RATE) -> Values:
    """Both channels of a patch, or of an expression."""
    return sound("std.effects", text if "audio(" in text else f"audio({text})", seconds, rate)


def test_panning_keeps_the_power() -> None:
    left, right = heard("pan(1, 1.4 * me@time - 0.2)::p<l, r>\naudio(p@l, p@r)", 1)
    np.testing.assert_allclose(left**2 + right**2, 1, atol=1e-6)
    assert (np.diff(left) <= 1e-7).all()
    np.testing.assert_allclose([left[0], right[0], left[-1], right[-1]], [1, 0, 0, 1], atol=1e-6)
    assert left[RATE // 2] == pytest.approx(np.sqrt(0.5), abs=1e-3)


def test_a_crossfade_keeps_the_power() -> None:
    (a,), (b,) = heard("crossfade(1, 0, me@time)", 1), heard("crossfade(0, 1, me@time)", 1)
    np.testing.assert_allclose(a**2 + b**2, 1, atol=1e-6)
    assert (a[0], b[0]) == (1, 0)


def test_echoes_come_when_they_should() -> None:
    (x,) = heard(CLICK + "w = echo(click, 0.1, 0.5)\naudio(w)", 1)
    expected = np.zeros(RATE)
    expected[RATE // 10 :: RATE // 10] = 0.5 ** np.arange(9)
    np.testing.assert_allclose(x, expected, atol=1e-12)


def test_an_echo_between_two_samples_is_shared_by_them() -> None:
    (x,) = heard(CLICK + "w = echo(click, 10.25 / me@rate, 0)\naudio(w)", 0.01)
    np.testing.assert_allclose(x[9:13], [0, 0.75, 0.25, 0], atol=1e-9)


def test_an_allpass_changes_no_colour() -> None:
    (x,) = heard(CLICK + "a = allpass(click, 0.005, 0.6)\naudio(a)", 1)
    np.testing.assert_allclose(np.abs(np.fft.rfft(x)), 1, atol=1e-6)
    assert np.flatnonzero(np.abs(x) > 1e-9)[:3].tolist() == [0, 40, 80]


ROOM = "reverb({}, {}, {})::room<l, r>\naudio(room@l, room@r)"


@pytest.mark.parametrize("seconds", [0.4, 1.2])
def test_a_room_fades_in_its_time(seconds: float) -> None:
    both = heard(CLICK + ROOM.format("click", seconds, 0), 1)
    for x in both:
        energy = 10 * np.log10(np.cumsum((x**2)[::-1])[::-1] + 1e-30)
        # The slope from a little after the beginning on, over what is there of the next 40 dB.
        first = round(0.15 * RATE)
        last = min(np.flatnonzero(energy > energy[first] - 40)[-1], round(0.7 * RATE))
        slope = (energy[last] - energy[first]) / (last - first) * RATE
        assert slope == pytest.approx(-60 / seconds, rel=0.12)


def test_a_room_is_dense_and_wide_and_gets_darker() -> None:
    left, right = heard(CLICK + ROOM.format("click", 2, 0), 0.6)
    late = slice(round(0.3 * RATE), None)
    assert np.count_nonzero(np.abs(left[late]) > 1e-6) > 0.25 * len(left[late])
    assert abs(np.corrcoef(left[late], right[late])[0, 1]) < 0.3
    bright, dark = (heard(CLICK + ROOM.format("click", 2, d), 0.6)[0][late] for d in (0, 1))

    def highs(x: Values) -> float:
        power = np.abs(np.fft.rfft(x)) ** 2
        return float(power[len(power) // 2 :].sum() / power.sum())

    assert highs(dark) < 0.3 * highs(bright)


def test_a_room_is_never_louder_than_the_power_put_in_allows() -> None:
    (x, _) = heard(ROOM.format("2 * hash(me@abssample) - 1", 10, 0), 1)
    assert np.abs(x).max() < 6
    assert not heard(ROOM.format("0", 10, 0), 0.05).any()


def test_a_chorus_is_three_voices_of_about_the_same_power() -> None:
    dry = "dry = 2 * hash(me@abssample, 1) - 1\n"
    left, right = heard(dry + "chorus(dry, 0.7, 0.004)::c<l, r>\naudio(c@l, c@r)", 1)
    power = 1 / 3
    for x in (left, right):
        # A delay between two samples takes away some of what is high.
        assert 0.4 * power < np.mean(x[400:] ** 2) < 1.1 * power
    assert 0.2 < np.corrcoef(left[400:], right[400:])[0, 1] < 0.8
    steady = heard("chorus(1, 0.7, 0.004)::c<l, r>\naudio(c@l, c@r)", 0.1)
    np.testing.assert_allclose(steady[:, 200:], np.sqrt(2), rtol=1e-9)


def test_a_chorus_moves_the_pitch() -> None:
    (x, _) = heard("chorus(sin(tau * 1000 * me@time), 2, 0.004)::c<l, r>\naudio(c@l, c@r)", 1)
    lines = np.abs(np.fft.rfft(x[:RATE] * np.hanning(RATE)))
    away = np.abs(np.fft.rfftfreq(RATE, 1 / RATE) - 1000)
    assert lines[(away > 5) & (away < 80)].max() > 0.2 * lines.max()
    assert lines[away > 150].max() < 0.02 * lines.max()


def test_drive_is_its_formula() -> None:
    for amount in (0.5, 4):
        (x,) = heard(f"drive(2 * me@time - 1, {amount})", 1)
        wave = 2 * np.arange(RATE) / RATE - 1
        np.testing.assert_allclose(x, np.tanh(wave * amount) / np.tanh(amount), atol=1e-6)


def test_crush_leaves_so_many_levels() -> None:
    (x,) = heard("crush(2 * me@time - 1, 3)", 1)
    assert set(np.round(x * 4, 6)) == {*range(-4, 5)}
    assert np.abs(x - (2 * np.arange(RATE) / RATE - 1)).max() <= 1 / 8 + 1e-6


def test_coarse_takes_samples_and_holds_them() -> None:
    (x,) = heard("coarse(me@time, 100)", 0.1)
    # The clock of the samples starts at 0, and rounding may put a step one sample off.
    assert np.count_nonzero(np.diff(x)) == 9
    assert np.abs(np.arange(len(x)) / RATE - x).max() <= 0.01 + 1 / RATE


@pytest.mark.parametrize(
    "patch",
    ["w = echo({}, 0.01, 0.5)\naudio(w)", "w = allpass({}, 0.01, 0.5)\naudio(w)", ROOM.format("{}", 0.5, 0.5)],
)
def test_a_moment_of_nonsense_is_forgotten(patch: str) -> None:
    for nonsense in ("0 / 0", "1 / 0"):
        wave = f"(if me@abssample == 9 then {nonsense} else sin(tau * 600 * me@time))"
        x = heard(patch.format(wave), 0.5)
        assert np.isfinite(x[:, -1000:]).all()
        assert 0.05 < np.abs(x[:, -1000:]).max() < 5
