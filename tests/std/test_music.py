"""std.music against its formulas: pitch, time and patterns."""

from __future__ import annotations

import numpy as np
import pytest

from tests.std.values import line, sound, values

BPM = 90.0
SECONDS = np.linspace(0, 7.9, 80)
SCALES = {"major": [0, 2, 4, 5, 7, 9, 11], "minor": [0, 2, 3, 5, 7, 8, 10], "pentatonic": [0, 2, 4, 7, 9]}


def steps_of(call: str) -> list[np.ndarray]:
    """The three outputs of a clock at the moments of SECONDS."""
    before = f"{call}::t<index, phase, since>\n"
    wanted = [f"t@{name}(me@abstime ~ me@x)" for name in ("index", "phase", "since")]
    return [plane[0] for plane in values("std.music", wanted, SECONDS, before=before, bpm=BPM)]


def test_pitches() -> None:
    notes = np.linspace(-12, 140, 305)
    freqs = 440 * 2 ** ((notes - 69) / 12)
    np.testing.assert_allclose(line("std.music", "mtof(me@x)", notes), freqs, rtol=1e-12)
    np.testing.assert_allclose(line("std.music", "ftom(me@x)", freqs), notes, atol=1e-9)
    np.testing.assert_allclose(line("std.music", "semi(me@x)", notes), 2 ** (notes / 12), rtol=1e-12)
    assert line("std.music", "mtof(me@x)", [69, 57]).tolist() == [440, 220]


def test_decibels() -> None:
    db = np.linspace(-90, 12, 103)
    np.testing.assert_allclose(line("std.music", "db2amp(me@x)", db), 10 ** (db / 20), rtol=1e-12)
    np.testing.assert_allclose(line("std.music", "amp2db(-db2amp(me@x))", db), db, atol=1e-9)
    assert line("std.music", "amp2db(me@x)", [0, 1]).tolist() == [-np.inf, 0]


@pytest.mark.parametrize("name", ["major", "minor", "pentatonic"])
def test_a_scale_goes_on_over_octaves(name: str) -> None:
    steps = SCALES[name]
    degrees = np.arange(-15, 16)
    expected = [steps[d % len(steps)] + 12 * (d // len(steps)) for d in degrees]
    assert line("std.music", f"{name}(me@x)", degrees).tolist() == expected
    assert line("std.music", f"{name}(me@x)", degrees + 0.6).tolist() == expected


def test_beats_are_counted_from_the_start() -> None:
    (found,) = values("std.music", ["beats()(me@abstime ~ me@x)"], SECONDS, bpm=BPM)
    np.testing.assert_allclose(found[0], SECONDS * BPM / 60, rtol=1e-12)


@pytest.mark.parametrize("per_beat", [4, 1, 0.25])
def test_a_clock_divides_the_beats(per_beat: float) -> None:
    index, phase, since = steps_of(f"clock({per_beat})")
    place = SECONDS * BPM / 60 * per_beat
    np.testing.assert_allclose(index + phase, place, atol=1e-9)
    assert (index == np.floor(place)).all()
    np.testing.assert_allclose(since, SECONDS - index * 60 / BPM / per_beat, atol=1e-9)


@pytest.mark.parametrize("amount", [0, 1 / 3, 0.6])
def test_every_second_step_of_a_swing_is_late(amount: float) -> None:
    index, phase, since = steps_of(f"swing(2, {amount!r})")
    step = 60 / BPM / 2
    begins = step * (index + amount * (index % 2))
    lengths = step * (1 + amount * np.where(index % 2, -1, 1))
    assert (begins - 1e-9 <= SECONDS).all()
    assert (begins + lengths + 1e-9 > SECONDS).all()
    np.testing.assert_allclose(since, SECONDS - begins, atol=1e-9)
    np.testing.assert_allclose(phase, since / lengths, atol=1e-9)


def test_a_gate_is_on_for_its_part_of_each_step() -> None:
    (on,) = values("std.music", ["gate(2, 0.3)(me@abstime ~ me@x)"], SECONDS, bpm=BPM)
    place = SECONDS * BPM / 30 % 1
    assert (on[0] == (place < 0.3))[np.abs(place - 0.3) > 1e-9].all()


def test_steps_come_in_turn() -> None:
    index = np.arange(-3, 20)
    assert (line("std.music", "step4(1, 2, 3, 4, me@x)", index) == index % 4 + 1).all()
    assert (line("std.music", "step8(1, 2, 3, 4, 5, 6, 7, 8, me@x + 0.5)", index) == index % 8 + 1).all()


@pytest.mark.parametrize(("hits", "count"), [(1, 4), (3, 8), (5, 8), (7, 16), (4, 4), (0, 5), (2, 5)])
def test_euclid_spreads_hits_evenly(hits: int, count: int) -> None:
    index = np.arange(3 * count)
    on = line("std.music", f"euclid({hits}, {count}, me@x)", index)
    assert on.tolist() == [*on[:count]] * 3
    assert on[:count].sum() == hits
    assert on[0] == (hits > 0)
    gaps = np.diff(np.flatnonzero(on))
    assert hits == 0 or set(gaps) <= {count // hits, -(-count // hits)}


@pytest.mark.parametrize("rotate", [2, -3, 11])
def test_a_rhythm_begins_with_any_of_its_steps(rotate: int) -> None:
    index = np.arange(16)
    on = line("std.music", "euclid(5, 8, me@x)", index)
    assert line("std.music", f"euclid(5, 8, me@x, {rotate})", index).tolist() == np.roll(on, -rotate).tolist()


def test_what_is_left_out_has_a_value() -> None:
    short = {
        "clock()@since": "clock(1)@since", "swing()@since": "swing(2, 1 / 3)@since", "gate()": "gate(1, 0.5)",
        "euclid()": "euclid(3, 8, beats() * 4)", "euclid(5, rotate: 1)": "euclid(5, 8, beats() * 4 + 1)",
        "chance()": "chance(0.5, beats(), 0)", "decay(me@x)": "decay(me@x, 0.3)", "ad(me@x)": "ad(me@x, 0.005, 0.3)",
        "asr(me@x)": "asr(me@x, 0.01, 0.2, 0.2)",
    }  # fmt: skip
    shifted = [f"({call})(me@abstime ~ me@x)" for call in (*short, *short.values())]
    found = values("std.music", shifted, SECONDS, bpm=BPM)
    for call, ours, expected in zip(short, found[: len(short)], found[len(short) :], strict=True):
        assert (ours == expected).all(), call
        assert np.ptp(ours) > 0, call


def test_the_best_known_rhythm_is_the_tresillo() -> None:
    assert line("std.music", "euclid(3, 8, me@x)", np.arange(8)).tolist() == [1, 0, 0, 1, 0, 0, 1, 0]


def test_chance_keeps_its_odds_and_its_throws() -> None:
    index = np.arange(20_000)
    for odds in (0, 0.3, 1):
        thrown = line("std.music", f"chance({odds}, me@x, 5)", index)
        assert abs(thrown.mean() - odds) < 4 * np.sqrt(0.25 / len(index))
        assert (thrown == line("std.music", f"chance({odds}, me@x + 0.9, 5)", index)).all()
    one, other = (line("std.music", f"chance(0.5, me@x, {seed})", index) for seed in (1, 2))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.05


def test_envelopes_are_their_formulas() -> None:
    since = np.linspace(-0.5, 3, 141)
    begun = since >= 0
    fallen = 10.0 ** (-3 * np.maximum(since, 0) / 0.7)
    np.testing.assert_allclose(line("std.music", "decay(me@x, 0.7)", since), fallen * begun, rtol=1e-9)
    later = 10.0 ** (-3 * (since - 0.25) / 0.7)
    rise = np.where(since < 0.25, since / 0.25, later) * begun
    np.testing.assert_allclose(line("std.music", "ad(me@x, 0.25, 0.7)", since), rise, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(line("std.music", "ad(me@x, 0, 0.7)", since), fallen * begun, rtol=1e-9)
    held = np.interp(since, [0, 0.2, 1.1, 1.6], [0, 1, 1, 0])
    np.testing.assert_allclose(line("std.music", "asr(me@x, 0.2, 1.1, 0.5)", since), held, atol=1e-9)
    assert line("std.music", "asr(me@x, 0, 1, 0.5)", [0]) == 1


def test_a_picture_and_a_sound_keep_the_same_time() -> None:
    made = "clock(3)::t<index, phase, since>\nlevel = decay(t@since, 0.2) * chance(0.5, t@index, 1)\n"
    heard = sound("std.music", f"{made}audio(level)", 1, bpm=140)[0]
    for sample in (0, 1000, 3333, 7999):
        (shown,) = values("std.music", ["level"], 0.5, before=made, z=sample / 8000, bpm=140)
        np.testing.assert_allclose(shown[0, 0], heard[sample], rtol=1e-6, atol=1e-9)
