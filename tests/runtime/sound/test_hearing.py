"""What analyses hear in the sounds of a patch, offline: held against analyses of the same samples by themselves."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.runtime.sound.test_offline import RATE, heard, offline
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.media.analysis import ANALYSES, NEVER, Analyser, Spectrum
from weft.names import hop_length
from weft.runtime.compiling.stages import Request, build
from weft.runtime.sound.mixer import BLOCK

HOP = hop_length(RATE) / RATE
TIMES = (0.3, 0.4217, 0.9, 1.33)
# A tone that is struck four times a second and falls, with a memory, so that it belongs to the sound.
STRUCK = """\
ring = exp(-8 * fract(me@abstime * 4))
tone = sin(tau * phasor(220 + 30 * floor(me@abstime * 4))) * ring
"""


def rows_of(analyser: Analyser, sound: str, seconds: float) -> NDArray[np.float64]:
    """What an analysis hears in `audio(sound)`, with a row of silence before."""
    silence = type(analyser)(RATE).feed(np.zeros(analyser.hop, np.float32)) if not isinstance(analyser, Spectrum) else (
        np.zeros((1, analyser.width))
    )
    samples = heard(f"{STRUCK}audio({sound})\n", 0, seconds)[:, 0]
    return np.concatenate((silence, analyser.feed(samples))).astype(float)


def between(rows: NDArray[np.float64], time: float) -> NDArray[np.float64]:
    """The values at a time, between the ends of two hops."""
    place = time / HOP
    number = int(place)
    found: NDArray[np.float64] = rows[number] + (rows[number + 1] - rows[number]) * (place - number)
    return found


@pytest.mark.parametrize(("call", "outputs"), [
    ("rms(tone)", "v"), ("peak(tone)", "v"), ("pitch(tone)", "frequency confidence"),
])
def test_a_picture_shows_what_is_heard(call: str, outputs: str) -> None:
    names = outputs.split()
    shown = offline(f"{STRUCK}{call}::a<{', '.join(names)}>\ndisplay(a@{names[0]}, a@{names[-1]}, 0)\n")
    rows = rows_of(ANALYSES[call.partition("(")[0]](RATE), "tone", 1.5)
    for time in TIMES:
        picture = shown.at(time)
        assert np.ptp(picture, axis=(0, 1)).max() == 0
        assert picture[0, 0, :2] == pytest.approx(between(rows, time)[[0, -1]], rel=1e-4, abs=1e-5)
    assert rows.max() > 0.1


def test_a_spectrum_is_read_between_bands_and_at_earlier_times() -> None:
    shown = offline(f"""{STRUCK}
f = fft(tone, bands: 8)
display(f@band(me@x * 9 - 1), f@band(f@k ~ 4, me@time ~ me@time - me@y), f@mid)
""")
    rows = rows_of(Spectrum(RATE, 8), "tone", 1.5)
    for time in (1.1, 1.33):
        picture = shown.at(time)
        height, width = picture.shape[:2]
        bands = between(rows, time)[3:]
        places = np.clip((np.arange(width) + 0.5) / width * 9 - 1, 0, 7)
        assert picture[0, :, 0] == pytest.approx(np.interp(places, np.arange(8), bands), abs=1e-4)
        earlier = [between(rows, time - (n + 0.5) / height)[3 + 4] for n in range(height)]
        assert picture[:, 0, 1] == pytest.approx(np.array(earlier), abs=1e-3)
        assert picture[0, 0, 2] == pytest.approx(between(rows, time)[1], abs=1e-4)
        assert bands.max() > 0.5


def test_the_future_is_what_is_heard_now_and_before_the_start_there_is_silence() -> None:
    shown = offline(f"""{STRUCK}
level = rms(tone)
display(level, level(me@time ~ me@time + 0.3), level(me@time ~ me@time - 3))
""")
    rows = rows_of(ANALYSES["rms"](RATE), "tone", 1.5)
    picture = shown.at(0.9)[0, 0]
    assert picture[1] == pytest.approx(float(rows[int(0.9 / HOP) + 1, 0]), rel=1e-3)
    assert picture[2] == 0


def test_age_and_phase_run_on_between_hops() -> None:
    shown = offline(f"{STRUCK}o = onset(tone)\nt = tempo(tone)\ndisplay(o@age, t@phase, t@bpm)\n")
    ages, beats = (rows_of(ANALYSES[name](RATE), "tone", 4.2) for name in ("onset", "tempo"))
    assert shown.at(0.0)[0, 0, 0] == pytest.approx(NEVER)
    for number in range(4 * 50 - 9, 4 * 50):
        time = number / 50
        picture = shown.at(time)[0, 0]
        row = int(time / HOP)
        passed = time - row * HOP
        assert picture[0] == pytest.approx(ages[row, 1] + passed, abs=1e-4)
        assert picture[1] == pytest.approx((beats[row, 1] + passed * beats[row, 0] / 60) % 1, abs=1e-4)
    assert beats[-1, 0] == pytest.approx(120, rel=0.02)


@pytest.mark.parametrize("executor", ["vector", "native"])
def test_a_sound_that_reads_what_is_heard_in_it_is_the_same_wherever_it_is_cut(executor: str) -> None:
    text = f"{STRUCK}audio(tone * (1 - 5 * rms(tone)))\n"
    whole = heard(text, 0, 0.8, executor)[:, 0]
    dry = heard(f"{STRUCK}audio(tone)\n", 0, 0.8, executor)[:, 0]
    # It knows the hops before its block, and is late by as many as are needed for that.
    late = (-(-BLOCK // hop_length(RATE)) + 1) * HOP
    rows = np.concatenate(([0.0], ANALYSES["rms"](RATE).feed(dry)[:, 0]))
    levels = np.interp(np.arange(len(dry)) / RATE - late, np.arange(len(rows)) * HOP, rows, left=0)
    assert whole == pytest.approx(dry * (1 - 5 * levels), abs=1e-4)
    assert np.abs(whole - dry).max() > 0.05
    assert np.array_equal(heard(text, 0.3, 0.5, executor)[:, 0], whole[round(0.3 * RATE) : round(0.5 * RATE)])


def test_a_sound_may_depend_on_what_is_heard_in_itself() -> None:
    # The louder it was, the softer it is.
    levels = np.abs(heard("s = sin(tau * phasor(300)) * (1 - 0.9 * rms(s))\naudio(s)\n", 0, 1)[:, 0])
    assert levels[:60].max() > 0.99
    assert 0.4 < levels[-400:].max() < 0.8


def test_spindles_analyse_what_they_are_given() -> None:
    shown = offline(f"""
spindle louder(s, times) :: v {{ q = s * times; out v = rms(q) }}
{STRUCK}
display(louder(tone, 2), prev(louder(tone, 0.5)), rms(tone))
""")
    frames = [picture[0, 0].copy() for _, picture in shown.play(range(30))]
    for before, now in pairwise(frames[10:]):
        assert now[0] == pytest.approx(2 * now[2], rel=1e-3)
        assert now[1] == pytest.approx(before[2] / 2, rel=1e-3)


def test_analyses_of_one_strand_hear_the_same_samples() -> None:
    text = f"{STRUCK}f = fft(tone)\ndisplay(f@low, rms(tone), peak(tone))\n"
    made = build(Request(Source("patch.weft", text), ContextTable()))
    (sound,) = made.compiled.streaming.units
    assert len(sound.subgraph.exposes) == 1
    assert len(made.compiled.heard) == 3


def test_only_what_is_heard_and_nothing_to_play_is_no_sound() -> None:
    with pytest.raises(WeftError, match="nothing to play"):
        heard(f"{STRUCK}display(rms(tone))\n", 0, 0.1)
