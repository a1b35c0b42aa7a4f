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


def test_width_scales_what_differs_and_keeps_what_is_alike() -> None:
    sides = "one<l, r> = <sin(tau * 100 * me@time), cos(tau * 150 * me@time)>\n"
    for amount in (0, 1, 1.7):
        left, right = heard(sides + f"width(one, {amount})::w<l, r>\naudio(w@l, w@r)", 0.1)
        t = np.arange(RATE // 10) / RATE
        one, other = np.sin(2 * np.pi * 100 * t), np.cos(2 * np.pi * 150 * t)
        np.testing.assert_allclose(left + right, one + other, atol=1e-9)
        np.testing.assert_allclose(left - right, amount * (one - other), atol=1e-9)


def test_a_comb_rings_where_it_should_and_its_highs_fade_first() -> None:
    (x,) = heard(CLICK + "w = comb(click, 0.005, 0.9, 0)\naudio(w)", 0.1)
    expected = np.zeros(RATE // 10)
    expected[40::40] = 0.9 ** np.arange(19)
    np.testing.assert_allclose(x, expected, atol=1e-12)
    (x,) = heard(CLICK + "w = comb(click, 0.005, -0.9, 0.4)\naudio(w)", 1)
    z = np.exp(-2j * np.pi * np.fft.rfftfreq(RATE, 1 / RATE) / RATE)
    expected = np.abs(z**40 / (1 + 0.9 * z**40 * 0.6 / (1 - 0.4 * z)))
    np.testing.assert_allclose(np.abs(np.fft.rfft(x)), expected, atol=1e-6)
    # Its peaks are near 100, 300, ... Hz: the low-pass is a little late.
    np.testing.assert_allclose([expected[n : n + 200].argmax() + n for n in (0, 200)], [100, 300], atol=6)


def test_a_first_order_allpass_turns_by_a_quarter_at_its_cutoff() -> None:
    (x,) = heard(CLICK + "w = allpass1(click, 500)\naudio(w)", 1)
    response = np.fft.rfft(x)
    np.testing.assert_allclose(np.abs(response), 1, atol=1e-9)
    freqs = np.fft.rfftfreq(RATE, 1 / RATE)
    expected = -2 * np.arctan(np.tan(np.pi * freqs / RATE) / np.tan(np.pi * 500 / RATE))
    # At the end, half a turn either way is the same.
    np.testing.assert_allclose(np.angle(response[:-1]), expected[:-1], atol=1e-9)
    assert np.angle(response[500]) == pytest.approx(-np.pi / 2)


def test_a_phaser_has_its_notches_and_sweeps_them() -> None:
    (x,) = heard(CLICK + "w = phaser(click, 0, 1, 0)\naudio(w)", 1)
    gains = np.abs(np.fft.rfft(x))
    # Four stages are half a turn late where each is by an eighth, and a turn and a half where each is by three eighths.
    for eighths in (1, 3):
        freq = RATE / np.pi * np.arctan(np.tan(np.pi * 800 / RATE) * np.tan(eighths * np.pi / 8))
        assert gains[round(freq) - 5 : round(freq) + 6].min() < 0.01
    assert gains.max() == pytest.approx(1, abs=1e-3)
    moving = heard("phaser(2 * hash(me@abssample) - 1, 2, 1, 0)", 0.5)[0]

    def notch(at: float) -> float:
        part = moving[round(at * RATE) - 200 : round(at * RATE) + 200] * np.hanning(400)
        noise = heard("2 * hash(me@abssample) - 1", 0.5)[0][round(at * RATE) - 200 : round(at * RATE) + 200]
        gains = np.abs(np.fft.rfft(part)) / np.abs(np.fft.rfft(noise * np.hanning(400)))
        smooth = np.convolve(gains, np.ones(3) / 3, "valid")
        return float(smooth[3:150].argmin() + 4) * RATE / 400

    # Two octaves up after an eighth of a second, and two down after three.
    assert notch(0.125) > 4 * notch(0.375)


def test_a_flanger_drifts_as_far_as_it_should() -> None:
    (x,) = heard(CLICK + "w = flanger(click, 0, 0.004, 0)\naudio(w)", 0.01)
    np.testing.assert_allclose(x[[0, 4]], 0.5, atol=1e-12)
    assert np.count_nonzero(np.abs(x) > 1e-12) == 2
    # Half a turn later, the copy is as late as it can be.
    click = "click = me@abssample == 1600\n"
    (x,) = heard(click + "w = flanger(click, 2.5, 0.004, 0)\naudio(w)", 0.25)
    assert x[1600] == 0.5
    assert x[1635:1637].sum() == pytest.approx(0.5, rel=0.01)
    assert x[1635:1637] @ [35, 36] / x[1635:1637].sum() == pytest.approx((0.0005 + 0.004) * RATE, abs=0.05)


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


def fading(x: Values, band: slice) -> float:
    """The seconds in which a part of the spectrum fades by 60 dB."""
    windows = np.lib.stride_tricks.sliding_window_view(x, 256)[::64] * np.hanning(256)
    level = 10 * np.log10((np.abs(np.fft.rfft(windows)) ** 2)[:, band].sum(axis=1) + 1e-30)
    times = np.arange(len(level)) * 64 / RATE
    first = int(np.searchsorted(times, 0.12))
    heard = (times >= times[first]) & (level > level[first] - 60)
    return -60 / float(np.polyfit(times[heard], level[heard], 1)[0])


@pytest.mark.parametrize("dark", [0, 0.5, 1])
def test_a_room_fades_at_both_ends_of_the_spectrum_in_the_times_that_are_asked_for(dark: float) -> None:
    for x in heard(CLICK + ROOM.format("click", 1.2, dark), 1):
        assert fading(x, slice(1, 7)) == pytest.approx(1.2, rel=0.12)
        assert fading(x, slice(123, 129)) == pytest.approx(1.2 / (1 + 3 * dark), rel=0.12)


HALL = "hall({}, {}, {}, {})::room<l, r>\naudio(room@l, room@r)"


def test_a_hall_has_a_size_and_a_mix() -> None:
    for size in (0.1, 0.4):
        for x in heard(CLICK + HALL.format("click", size, 0, 1), 1):
            # The sound alone is not heard, and the walls are as far away as they should be.
            assert np.abs(x[: round(0.0123 * RATE)]).max() < 1e-9
            assert fading(x, slice(1, 9)) == pytest.approx(0.3 * 2 ** (5 * size), rel=0.12)
    dry, wet, both = (heard(CLICK + HALL.format("click", 0.4, 0.5, mix), 0.3) for mix in (0, 1, 0.3))
    np.testing.assert_array_equal(dry[:, :2], [[1, 0], [1, 0]])
    assert not dry[:, 1:].any()
    np.testing.assert_allclose(both, 0.7 * dry + 0.3 * wet, atol=1e-12)


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


# --- loudness


def settled(word: str, levels: Values) -> Values:
    """What becomes of steady sounds of some levels in decibels, which follow one another, in decibels."""
    each = 0.1
    step = f"<{', '.join(str(10 ** (level / 20)) for level in levels)}>[me@time / {each}]"
    (x,) = heard(f"v = {word.format(step)}\naudio(v)", each * len(levels))
    found: Values = 20 * np.log10(x.reshape(len(levels), -1)[:, -1] + 1e-30)
    return found


def test_a_compressor_has_its_curve_and_its_times() -> None:
    levels = np.array([-60.0, -33, -31, -30, -29, -27, -20, -10, 0])
    over = levels + 30
    expected = np.where(over >= 3, -30 + over / 4, levels - 0.75 * np.clip(over + 3, 0, None) ** 2 / 12)
    np.testing.assert_allclose(settled("compressor({}, -30, 4, 0.002, 0.01)", levels), expected, atol=1e-2)
    # Of 15 dB, a third is left to go after the attack, and the same after the release on the way back.
    loud = "(if me@time < 0.1 then 0.01 else if me@time < 0.6 then 1 else 0.01)"
    (gain,) = heard(f"g = compression({loud}, -20, 4, 0.05, 0.1)\naudio(g)", 1)
    db = 20 * np.log10(gain)
    assert db[RATE // 10 - 1] == pytest.approx(0)
    assert db[round(0.15 * RATE)] == pytest.approx(-15 * (1 - np.exp(-1)), rel=0.01)
    assert db[round(0.6 * RATE) - 1] == pytest.approx(-15, rel=1e-3)
    t = np.arange(len(db) - round(0.6 * RATE)) / RATE
    # Both stages one after the other: the release, and what the attack makes of it.
    back = -15 * (np.exp(-t / 0.1) / (1 - 0.5) - np.exp(-t / 0.05) / (1 / 0.5 - 1))
    np.testing.assert_allclose(db[round(0.6 * RATE) :], back, atol=0.05)


def test_a_limiter_lets_nothing_through_that_is_too_loud_and_nothing_else_is_changed() -> None:
    noise = "(2 * hash(me@abssample, 1) - 1)"
    level = "(if me@time < 0.1 or me@time > 0.2 then 0.4 else 6)"
    (x,) = heard(f"v = limiter({level} * {noise}, -6, 0.02)\naudio(v)", 1)
    (dry,) = heard(noise, 1)
    ceiling = 10 ** (-6 / 20)
    assert np.abs(x).max() == pytest.approx(ceiling, rel=0.02)
    assert np.abs(x).max() <= ceiling * (1 + 1e-12)
    soft = slice(127, RATE // 10 - 127)
    np.testing.assert_allclose(x[soft], 0.4 * dry[: soft.stop - 127], atol=1e-9)
    # What is missing returns to nothing: two thirds of it in the release, and here seven times that.
    late = round(0.2 * RATE) + 254 + round(7 * 0.02 * RATE)
    np.testing.assert_allclose(x[late:], 0.4 * dry[late - 127 : -127], atol=0.4 * np.exp(-7))
    # A steady sound comes out as its lower gain says, without distortion.
    (x,) = heard("v = limiter(2 * sin(tau * 1000 * me@time), -6, 0.1)\naudio(v)", 0.5)
    lines = np.abs(np.fft.rfft(x[-1600:])) / 800
    assert np.delete(lines, 200).max() < 1e-3 * lines[200]


def test_a_gate_opens_above_its_level_and_closes_6_db_below() -> None:
    word = "noise_gate({}, -20, 0.001, 0.01)"
    up = settled(word, np.array([-60.0, -21, -19, -10, -25, -27, -21]))
    np.testing.assert_allclose(up[[2, 3, 4]], [-19, -10, -25], atol=1e-6)
    assert (up[[0, 1, 5, 6]] < -150).all()


def test_a_gate_opens_and_closes_in_its_times() -> None:
    (x,) = heard("g = noise_gate(if me@time >= 0.1 and me@time < 0.3 then 1 else 0.01, -20, 0.05, 0.1)\naudio(g)", 0.6)
    t = np.arange(len(x)) / RATE
    assert (x[t < 0.1] == 0).all()
    opening = (t >= 0.1) & (t < 0.15)
    np.testing.assert_allclose(x[opening], (t[opening] - 0.1) / 0.05, atol=0.005)
    assert x[round(0.3 * RATE) - 1] == 1
    # It stays open for 20 ms, and then falls by 60 dB in its time.
    closing = t > 0.322
    np.testing.assert_allclose(x[closing], 0.01 * 0.001 ** ((t[closing] - 0.32) / 0.1), rtol=0.02)


# --- dirt


def test_drive_is_its_formula() -> None:
    for amount in (0.5, 4):
        (x,) = heard(f"drive(2 * me@time - 1, {amount})", 1)
        wave = 2 * np.arange(RATE) / RATE - 1
        np.testing.assert_allclose(x, np.tanh(wave * amount) / np.tanh(amount), atol=1e-6)


def test_overdrive_is_drive_without_its_aliases() -> None:
    late = (np.arange(4800) - 15) / 48_000
    (x,) = heard("overdrive(sin(tau * 500 * me@time), 3)", 0.1, 48_000)
    np.testing.assert_allclose(x[50:], (np.tanh(3 * np.sin(2 * np.pi * 500 * late)) / np.tanh(3))[50:], atol=2e-3)
    for amount, least in ((3, 65), (10, 55)):
        (x,) = heard(f"overdrive(sin(tau * 5000 * me@time), {amount})", 0.1, 48_000)
        (rough,) = heard(f"drive(sin(tau * 5000 * me@time), {amount})", 0.1, 48_000)
        assert aliases(rough, 5000) > -25
        assert aliases(x, 5000) < -least
        assert np.abs(x).max() < 1.2


def aliases(x: Values, freq: int) -> float:
    """The loudest line of a spectrum that is no odd multiple of a frequency, relative to the line of the frequency."""
    lines = np.abs(np.fft.rfft(x[-2400:])) / 1200
    harmonics = np.arange(freq, 24_000, 2 * freq) // 20
    return float(20 * np.log10(np.delete(lines, harmonics).max() / lines[harmonics[0]]))


def test_a_fold_turns_back_at_the_full_level_and_is_smooth_between_the_samples() -> None:
    (x,) = heard("wavefold(2 * me@time - 1, 7)", 1)
    wave = 7 * (2 * (np.arange(RATE) - 15) / RATE - 1)
    folded = np.arcsin(np.sin(np.pi / 2 * wave)) * 2 / np.pi
    np.testing.assert_allclose(x[100:], folded[100:], atol=2e-3)
    (x,) = heard("wavefold(sin(tau * 1900 * me@time), 3)", 0.1, 48_000)
    times = np.arange(4800) / 48_000
    rough = np.arcsin(np.sin(np.pi / 2 * 3 * np.sin(2 * np.pi * 1900 * times))) * 2 / np.pi
    assert aliases(rough, 1900) > -35
    assert aliases(x, 1900) < -55


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
    [
        ROOM.format("{}", 0.5, 0.5),
        HALL.format("{}", 0.2, 0.5, 0.5),
        *(
            f"w = {word}\naudio(w)"
            for word in (
                "echo({}, 0.01, 0.5)",
                "allpass({}, 0.01, 0.5)",
                "allpass1({}, 500)",
                "comb({}, 0.01, 0.5, 0.5)",
                "flanger({}, 1, 0.003, 0.7)",
                "phaser({}, 1, 1, 0.7)",
                "compressor({}, -10, 4, 0.01, 0.01)",
                "limiter({}, -6, 0.01)",
                "noise_gate({}, -20, 0.01, 0.01)",
                "overdrive({}, 2)",
                "wavefold({}, 2)",
            )
        ),
    ],
)
def test_a_moment_of_nonsense_is_forgotten(patch: str) -> None:
    for nonsense in ("0 / 0", "1 / 0"):
        wave = f"(if me@abssample == 9 then {nonsense} else sin(tau * 600 * me@time))"
        x = heard(patch.format(wave), 0.5)
        assert np.isfinite(x[:, -1000:]).all()
        assert 0.05 < np.abs(x[:, -1000:]).max() < 5


@pytest.mark.parametrize(
    "word",
    [
        "comb(dry, {0}, {1}, {2})",
        "allpass1(dry, {0})",
        "flanger(dry, {0}, {1} / 100, {2})",
        "phaser(dry, {0}, {1}, {2})",
        "compressor(dry, -{0}, 1 + {1}, {2}, {2})",
        "limiter(dry, -{0}, {1})",
        "noise_gate(dry, -20 * {0}, {1} / 100, {2})",
        "overdrive(dry, {0})",
        "wavefold(dry, 2 * {0})",
        "hall(dry, {0}, {1}, {2})@l",
        "reverb(dry, {0}, {1})@r",
    ],
)
def test_arguments_out_of_range_are_no_harm(word: str) -> None:
    # Every argument in turn is too small, too large or no number for a while; then all are in their range.
    dry = "dry = 2 * hash(me@abssample) - 1\n"
    for place in range(3):
        odd = "(if me@time < 0.02 then <0, -3, 1000000000, 0 / 0>[me@time * 200] else 0.5)"
        arguments = (odd if n == place else "0.5" for n in range(3))
        (x,) = heard(f"{dry}v = {word.format(*arguments)}\naudio(v)", 1)
        assert np.isfinite(x[-RATE // 2 :]).all()
        assert 0.02 < np.abs(x[-RATE // 2 :]).max() < 10
