"""What is heard of a program: sums, channels, what is clipped, what comes from outside, and when a program enters."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtime.sound.hall import BLOCK, RATE, Hall, moments
from weft.beats import Beats
from weft.names import StrandRef
from weft.runtime.sound.mixer import LED

SINGLE = 2e-7


def sine(hertz: float, first: int, count: int) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * moments(first, count))


def tone(hertz: float, level: float = 0.25) -> str:
    return f"audio(sin(me@time * {hertz} * tau) * {level})\n"


# --- sums -------------------------------------------------------------------------------------------------------------


def test_before_the_first_program_there_is_silence() -> None:
    assert not Hall().play(BLOCK).any()


def test_statements_are_added() -> None:
    hall = Hall()
    hall.enter(f"{tone(440)}{tone(660)}play(0.125)\n")
    heard = hall.play(2 * BLOCK)
    expected = (sine(440, 0, 2 * BLOCK) + sine(660, 0, 2 * BLOCK)) / 4 + 0.125
    assert np.array_equal(heard[:, 0], heard[:, 1])
    np.testing.assert_allclose(heard[:, 0], expected, atol=SINGLE)


def test_left_right_and_both() -> None:
    hall = Hall()
    hall.enter("audio(0.5, -0.25)\naudio(right: 0.125, left: 0)\naudio(0.0625)\n")
    assert np.unique(hall.play(BLOCK), axis=0).tolist() == [[0.5625, -0.0625]]


def test_one_loudspeaker_plays_both_sides() -> None:
    hall = Hall(channels=1)
    hall.enter("audio(0.5, -0.25)\n")
    assert np.unique(hall.play(BLOCK)).tolist() == [0.25]


def test_more_channels_than_a_statement_names() -> None:
    hall = Hall(channels=4)
    hall.enter("audio(0.5, 0.25)\naudio(me@channel / 8)\n")
    assert np.unique(hall.play(BLOCK), axis=0).tolist() == [[0.5, 0.375, 0.25, 0.375]]


def test_what_is_too_loud_is_clipped_after_the_sum() -> None:
    hall = Hall()
    hall.enter("audio(1.5, -3)\naudio(-0.75, 0)\n")
    assert np.unique(hall.play(BLOCK), axis=0).tolist() == [[0.75, -1]]


@pytest.mark.parametrize("shared", [False, True], ids=["by itself", "with a strand of the others"])
def test_what_is_no_number_silences_nothing_else(shared: bool) -> None:
    hall = Hall()
    lost = "s@v / 0 * 0" if shared else "0 / 0"
    hall.enter(f"s<v> = sin(phasor(100) * tau) * 0.25\naudio(s@v)\naudio({lost})\naudio(0, (me@time - me@time) / 0)\n")
    heard = hall.play(BLOCK)
    np.testing.assert_allclose(heard[:, 0], sine(100, 0, BLOCK) / 4, atol=SINGLE)
    assert np.array_equal(heard[:, 0], heard[:, 1])


def test_what_is_infinite_is_silent() -> None:
    hall = Hall()
    hall.enter("audio(1 / 0, -1 / 0)\naudio(-0.5)\n")
    assert np.unique(hall.play(BLOCK)).tolist() == [-0.5]


def test_a_sound_that_has_grown_without_end_begins_again_when_its_formula_changes() -> None:
    hall, text = Hall(), "y = 0.25 + {share} * prev(y)\nz = 0.125 + prev(z) * 1e9\naudio(y, z)\n"
    hall.enter(text.format(share=1e9))
    hall.play(BLOCK)
    assert not hall.play(BLOCK).any()
    assert [keys for keys, _ in hall.mixer.take_lost()] == ["audio/y@val/prev/0 audio/z@val/prev/0"]
    hall.enter(text.format(share=0.5))
    for _ in range(20):
        heard = hall.play(BLOCK)
    np.testing.assert_allclose(heard[-1], [0.5, 0], atol=SINGLE)  # z would grow again
    hall.mixer.begin_again()
    assert hall.play(BLOCK)[0, 1] == 0.125


def test_off_stage_nothing_is_clipped_and_what_is_no_number_is_named() -> None:
    hall = Hall(clips=False)
    hall.enter("audio(1.5, 0 / 0)\naudio(0.25)\n")
    heard = hall.play(BLOCK)
    assert (heard[:, 0] == 1.75).all()
    assert np.isnan(heard[:, 1]).all()
    assert hall.mixer.not_numbers == ["audio.right"]


def test_off_stage_what_is_beyond_single_precision_is_infinite_without_a_warning() -> None:
    hall = Hall(clips=False)
    hall.enter("audio(1e300 * sign(me@channel - 0.5))\naudio(right: 1 / 0, left: 0)\naudio(right: -1 / 0, left: 0)\n")
    heard = hall.play(BLOCK)
    assert (heard[:, 0] == -np.inf).all()
    assert np.isnan(heard[:, 1]).all()


HEARS_ANOTHER = (
    "n<v> = prev(n@v) + 1{own}\nshown<v> = prev(shown@v) * 0 + n@v + 0 * me@x\n"
    "sum<v> = prev(sum@v) + n@v + 0 * shown@v(me@x ~ 0.5, me@y ~ 0.5, me@channel ~ 0)\n"
    "audio(sum@v / 65536)\ndisplay(shown@v)\n"
)


@pytest.mark.parametrize("executor", ["vm", "vector", "native"])
def test_what_is_different_in_each_channel_is_heard_so_by_others(executor: str) -> None:
    hall = Hall(executor, channels=3)
    loaded = hall.enter(HEARS_ANOTHER.format(own=" + me@channel")).loaded
    assert len(loaded.runner.parts) == 2
    sums = np.outer([1, 2, 3], np.cumsum(np.arange(1, 101)))
    np.testing.assert_allclose(hall.play(100, 33).T * 65536, sums, rtol=1e-6)


def test_what_hears_another_goes_on_where_that_becomes_different_in_each_channel() -> None:
    hall = Hall()
    hall.enter(HEARS_ANOTHER.format(own=""))
    hall.play(100)
    hall.enter(HEARS_ANOTHER.format(own=" + me@channel"))
    further = np.cumsum(100 + np.outer([1, 2], np.arange(1, 51)), axis=1)
    np.testing.assert_allclose(hall.play(50).T * 65536, 5050 + further, rtol=1e-6)


# --- several patches --------------------------------------------------------------------------------------------------


COUNTS = "n<v> = prev(n@v) + 1\naudio(n@v / 65536 + {})\n"


@pytest.mark.parametrize("executor", ["vector", "native"])
def test_each_patch_has_a_state_of_its_own_and_goes_on_where_it_was_left(executor: str) -> None:
    hall = Hall(executor)
    hall.enter(COUNTS.format(0), file="a.weft")
    assert hall.play(100)[-1, 0] * 65536 == 100
    hall.enter(COUNTS.format(0), file="b.weft")
    assert hall.play(30)[-1, 0] * 65536 == 30
    hall.enter(COUNTS.format("0.5"), file="a.weft")
    assert (hall.play(50)[-1, 0] - 0.5) * 65536 == 150
    hall.enter(COUNTS.format(0), file="b.weft")
    assert hall.play(10)[-1, 0] * 65536 == 40


def test_a_patch_that_comes_back_while_it_fades_out_goes_on_too() -> None:
    hall = Hall()
    hall.enter(COUNTS.format(0), file="a.weft")
    hall.play(100)
    hall.enter("audio(0)\n", fade=1.0, file="b.weft")
    hall.play(100)
    hall.enter(COUNTS.format(0), file="a.weft")
    assert hall.play(100)[-1, 0] * 65536 == 300


def test_what_fades_out_keeps_its_parameters() -> None:
    hall = Hall()
    hall.given["level@v"] = 0.25
    hall.enter("#slider level<v> = 0, 1, 0.25\naudio(level, 0)\n", file="a.weft")
    hall.play(BLOCK)
    hall.given["level@v"] = 0.75
    hall.enter("#slider level<v> = 0, 1, 0.75\naudio(0, level)\n", fade=1.0, file="b.weft")
    heard = hall.play(3 * BLOCK)
    shares = np.arange(1, 3 * BLOCK + 1) / RATE
    np.testing.assert_allclose(heard[:, 1], 0.75 * np.sin(shares * np.pi / 2), atol=1e-3)
    np.testing.assert_allclose(heard[:, 0], 0.25 * np.cos(shares * np.pi / 2), atol=1e-3)


# --- what comes from outside ------------------------------------------------------------------------------------------


def test_the_mouse_is_led_over_one_block_and_does_not_click() -> None:
    hall = Hall()
    hall.given["mouse@x"] = 0.25
    hall.enter("audio(mouse@x)\n")
    assert (hall.play(BLOCK) == 0.25).all(), "it begins where it is"
    hall.given["mouse@x"] = 0.75
    steps = np.diff(np.concatenate([[[0.25, 0.25]], hall.play(BLOCK)]), axis=0)
    np.testing.assert_allclose(steps, 0.5 / BLOCK, atol=1e-6)
    assert (hall.play(BLOCK) == 0.75).all()


@pytest.mark.parametrize("block", [1, 64, 512, 1000])
def test_a_parameter_that_jumps_is_led_for_as_long_with_every_device(block: int) -> None:
    hall = Hall()
    hall.given["mouse@x"] = 0.25
    hall.enter("audio(mouse@x)\n")
    hall.play(3 * block, block)
    hall.given["mouse@x"] = 0.75
    heard = hall.play(3000, block)[:, 0].astype(np.float64)
    length = max(block, round(LED * RATE))
    np.testing.assert_allclose(heard, 0.25 + 0.5 * np.minimum(np.arange(1, 3001) / length, 1), atol=SINGLE)
    assert (heard[length - 1 :] == 0.75).all()


def test_a_raw_parameter_jumps() -> None:
    hall = Hall()
    hall.given.update({"a@v": 0.25, "b@v": 0.25})
    hall.enter("#slider a<v> = 0, 1, 0.25 raw\n#slider b<v> = 0, 1, 0.25\naudio(a, b)\n")
    hall.play(BLOCK)
    hall.given.update({"a@v": 0.75, "b@v": 0.75})
    heard = hall.play(BLOCK)
    assert (heard[:, 0] == 0.75).all()
    assert heard[0, 1] < 0.26


def test_what_jumps_again_and_again_makes_no_larger_steps() -> None:
    hall = Hall()
    hall.enter("audio(mouse@x)\n")
    heard = []
    for number in range(40):
        hall.given["mouse@x"] = float(number % 3 == 0)
        heard.append(hall.play(64, 64))
    assert np.abs(np.diff(np.concatenate(heard)[:, 0])).max() <= 1 / (LED * RATE) + SINGLE


@pytest.mark.parametrize("lost", [np.nan, np.inf])
def test_after_what_was_no_number_it_goes_on(lost: float) -> None:
    hall = Hall(clips=False)
    hall.enter("audio(mouse@x)\n")
    for given in (0.5, lost, 0.25):
        hall.given["mouse@x"] = given
        np.testing.assert_array_equal(hall.play(BLOCK)[-1], given)


def test_a_program_that_enters_within_a_block_does_not_hurry_it() -> None:
    hall = Hall()
    hall.enter("audio(mouse@x)\n")
    hall.play(BLOCK)
    hall.given["mouse@x"] = 1.0
    hall.enter("audio(mouse@x * 1)\naudio(0)\n", at=(BLOCK + 3) / RATE)
    np.testing.assert_allclose(hall.play(BLOCK)[:, 0], np.arange(1, BLOCK + 1) / BLOCK, atol=SINGLE)


def test_what_nobody_has_read_for_a_while_begins_where_it_is() -> None:
    hall = Hall()
    for text, mouse in (("audio(mouse@x)\n", 0.0), ("audio(0.5)\n", 0.5), ("audio(mouse@x)\n", 1.0)):
        hall.given["mouse@x"] = mouse
        hall.enter(text)
        heard = hall.play(BLOCK)
    assert (heard == 1).all()


# --- what others hear -------------------------------------------------------------------------------------------------

SCOPE = "osc<v> = sin(phasor({}) * tau) * 2\naudio(osc@v / 4)\ndisplay(osc@v(me@time ~ me@time - me@x * 0.02))\n"


def test_rings_hold_what_is_heard_as_it_is() -> None:
    hall = Hall()
    hall.enter(SCOPE.format(100))
    hall.play(3 * BLOCK)
    read = hall.recent.getter(StrandRef("osc", "v"))
    # Neither clipped nor at the level of the loudspeaker.
    np.testing.assert_allclose(read(moments(0, 3 * BLOCK)), sine(100, 0, 3 * BLOCK) * 2, atol=2 * SINGLE)
    assert read(moments(3 * BLOCK, 1)) == read(moments(3 * BLOCK - 1, 1)), "what is yet to come is the newest"


def test_while_programs_fade_the_one_that_enters_is_shown() -> None:
    hall = Hall()
    hall.enter(SCOPE.format(100))
    hall.play(BLOCK)
    hall.enter("osc<v> = prev(osc@v) * 0 + 7\naudio(osc@v / 40)\n"
               "display(osc@v(me@time ~ me@time - me@x * 0.02))\n", fade=1.0)  # fmt: skip
    hall.play(BLOCK)
    read = hall.recent.getter(StrandRef("osc", "v"))
    assert (np.asarray(read(moments(BLOCK, BLOCK))) == 7).all()
    assert np.asarray(read(moments(BLOCK - 1, 1))) == pytest.approx(sine(100, BLOCK - 1, 1) * 2)


# --- entries ----------------------------------------------------------------------------------------------------------


def test_without_a_fade_a_program_is_cut_at_its_sample() -> None:
    hall = Hall()
    hall.enter("audio(0.25)\n")
    hall.play(BLOCK)
    at = 2 * BLOCK + 77
    hall.enter("audio(-0.5)\n", at=at / RATE)
    heard = hall.play(3 * BLOCK)[:, 0]
    assert np.array_equal(heard, np.where(moments(BLOCK, 3 * BLOCK) < at / RATE, 0.25, -0.5))


@pytest.mark.parametrize("at", [None, 0.0, (BLOCK - 1) / RATE], ids=["at once", "long ago", "just missed"])
def test_a_program_whose_moment_is_over_enters_at_once(at: float | None) -> None:
    hall = Hall()
    hall.enter("audio(0.25)\n")
    hall.play(BLOCK)
    hall.enter("audio(-0.5)\n", at=at)
    assert (hall.play(BLOCK) == -0.5).all()


def test_a_program_that_waits_gives_way_to_the_next() -> None:
    hall = Hall()
    hall.enter("audio(0.25)\n")
    hall.play(BLOCK)
    hall.enter("audio(-0.5)\n", at=1.0)
    hall.play(BLOCK)
    hall.enter("audio(0.75)\n")
    assert (hall.play(2 * BLOCK) == 0.75).all()
    assert (hall.play(RATE) == 0.75).all(), "the one that was replaced never comes"


def test_what_was_prepared_beside_one_that_never_played_goes_on_where_the_sound_is() -> None:
    hall = Hall()
    counting = "n<v> = prev(n@v) + {}\naudio(n@v / 65536)\n"
    hall.enter(counting.format(1))
    last = hall.play(BLOCK)[-1, 0] * 65536
    hall.enter(counting.format(2), at=1.0)
    hall.enter(counting.format(2) + "audio(0)\n")
    assert (hall.play(BLOCK)[:2, 0] * 65536).tolist() == [last + 2, last + 4]



# --- the tempo --------------------------------------------------------------------------------------------------------


def test_over_a_change_of_the_tempo_every_event_begins_where_its_beat_is() -> None:
    hall, samples = Hall(), 3 * RATE
    tempos = [Beats.steady(120), Beats(2.0, 1.0, 120, 77), Beats(2.0 + 77 / 60, 2.0, 77, 205)]
    hall.enter('pattern("0 1 [2 3] 4")::p<value, gate, since>\naudio(left: p@value / 8, right: p@since)\n')
    heard, passed = [], []
    for beats in tempos:
        # Known before it begins, as in a performance; in the middle of a block it begins nevertheless.
        hall.given.update(beats.inputs)
        times = moments(hall.played, samples // 3)
        heard.append(hall.play(samples // 3))
        passed.append([beats.at(seconds) for seconds in times])
    value, since = np.concatenate(heard).T
    events = np.searchsorted([0, 1, 2, 2.5, 3], np.concatenate(passed) % 4 + 1e-6, side="right") - 1
    np.testing.assert_array_equal(value * 8, events)
    # The seconds since each event continue through both changes.
    new = np.diff(events, prepend=-1) != 0
    steps = np.diff(since)[~new[1:]]
    np.testing.assert_allclose(steps, 1 / RATE, atol=2e-6)


def test_a_tempo_may_change_within_a_block() -> None:
    hall, beats = Hall(), Beats(0.1, (BLOCK + 77) / RATE, 97, 300)
    hall.given.update(beats.inputs)
    hall.enter("audio(left: me@beats, right: me@bpm / 1000)\n")
    counted, bpm = hall.play(3 * BLOCK).T
    expected = [beats.at(seconds) for seconds in moments(0, 3 * BLOCK)]
    np.testing.assert_allclose(counted, expected, atol=SINGLE)
    # `me@bpm` is that of the beginning of a block.
    np.testing.assert_allclose(bpm, np.repeat([0.097, 0.097, 0.3], BLOCK), atol=SINGLE)
