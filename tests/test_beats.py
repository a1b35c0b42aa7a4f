"""The beat is one continuous function of the time, also where the tempo changes: in numbers, and on every machine."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gl import GlExecutor, graphics
from tests.support.kernels import MACHINES
from weft.backends.base import Env
from weft.backends.executors import Executor
from weft.backends.launch import Launch, StateMemory, picture_coords
from weft.beats import BPM, INPUTS, Beats, reads_beats
from weft.codegen.kernel import Kernel
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.runtime.compiling.stages import Request, build

__all__ = ["graphics"]

HOUR = 3600.0

# Faster and slower, soon and after an hour; the last one is what a render has.
TEMPOS = [
    Beats(7.25, 3.0, 90.0, 140.0), Beats(7300.6, HOUR + 1.1, 121.3, 63.7), Beats.steady(97.0),
]  # fmt: skip

Floats = NDArray[np.float64]


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beats", TEMPOS)
def test_a_change_of_the_tempo_bends_the_beat_and_does_not_break_it(beats: Beats) -> None:
    changed = beats.changed(beats.start + 5, 77.0)
    for made in (beats, changed):
        before, after = made.at(np.nextafter(made.start, 0)), made.at(np.nextafter(made.start, 1e9))
        assert after - before < 1e-9
        for seconds in (made.start - 2.5, made.start, made.start + 2.5):
            assert made.time_of(made.at(seconds)) == pytest.approx(seconds, abs=1e-9)
            steeper = (made.at(seconds + 1e-3) - made.at(seconds)) * 60e3
            assert steeper == pytest.approx(made.bpm_at(seconds), rel=1e-6)
    # The change adds nothing before it.
    assert [changed.at(beats.start + s) for s in (1, 4)] == pytest.approx([beats.at(beats.start + s) for s in (1, 4)])
    assert Beats.of(beats.inputs) == beats


def test_a_steady_tempo_is_what_a_render_has() -> None:
    for bpm, seconds in ((120.0, 1.7), (97.0, HOUR)):
        assert Beats.steady(bpm).at(seconds) == pytest.approx(seconds * bpm / 60, rel=1e-15)


# --- kernels ----------------------------------------------------------------------------------------------------------


@cache
def kernel(text: str) -> Kernel:
    (unit,) = build(Request(Source("test.weft", text), ContextTable())).units
    return unit.kernel


WIDTH, HEIGHT = 9, 3

# What varies with x is computed at every element, in single precision on most machines.
PICTURE = """
    me<bpm> = 97
    display(fract(me@beats), me@beatphase(me@time ~ me@time + me@x * 6 - 3), me@measurephase)
"""
OTHERS = """
    me<bpm> = 97
    display(me@bpm / 1000, (me@time(me@beats ~ me@beats + me@x * 8 - 4) - me@time) / 10, me@beat / 4)
"""
SOUND = """
    me<bpm> = 97
    pattern("0 1 [2 3] ~")::p<value, gate, since>
    audio(left: me@beats, right: me@measure, third: me@bpm, fourth: p@since, fifth: p@value)
"""


def shown(made: Kernel, executor: Executor, beats: Beats, seconds: float) -> Floats:
    """The red, the green and the blue of a picture [height, width]."""
    env = Env(WIDTH, HEIGHT, abstime=seconds, inputs=beats.inputs)
    launch = Launch((HEIGHT, WIDTH), picture_coords(WIDTH, HEIGHT, seconds), {n: env.uniform(n) for n in made.uniforms})
    return np.array(executor.load(made).planes(StateMemory(made.slots, (HEIGHT, WIDTH)), launch), np.float64)


def turns(difference: Any) -> Floats:
    """A difference of phases, which go round."""
    return np.abs((np.asarray(difference) + 0.5) % 1 - 0.5)


@pytest.fixture(params=[*MACHINES, "glsl"])
def machine(request: pytest.FixtureRequest) -> Executor:
    if request.param == "glsl":
        return GlExecutor(request.getfixturevalue("graphics"))
    return MACHINES[request.param]


@pytest.mark.parametrize("beats", TEMPOS)
def test_a_picture_has_the_beat_of_this_function(machine: Executor, beats: Beats) -> None:
    x = (np.arange(WIDTH) + 0.5) / WIDTH
    for seconds in (beats.start + 0.31, beats.start - 0.02, HOUR + 2.3):
        red, green, blue = shown(kernel(PICTURE), machine, beats, seconds)
        assert turns(red - beats.at(seconds)).max() < 2e-6
        # An hour has 7000 beats, which single precision resolves to 0.0005: elements have to be given less.
        assert turns(green - [beats.at(each) for each in seconds + x * 6 - 3]).max() < 6e-4
        assert turns(blue - beats.at(seconds) / 4).max() < 2e-6
        if beats.before == beats.bpm:
            assert turns(green - [beats.at(each) for each in seconds + x * 6 - 3]).max() < 5e-6


@pytest.mark.parametrize("beats", TEMPOS)
def test_maps_of_the_beat_go_through_the_same_function(machine: Executor, beats: Beats) -> None:
    x = (np.arange(WIDTH) + 0.5) / WIDTH
    for seconds in (beats.start + 0.31, beats.start - 0.02):
        red, green, blue = shown(kernel(OTHERS), machine, beats, seconds)
        assert red[0, 0] * 1000 == pytest.approx(beats.bpm_at(seconds), rel=1e-6)
        expected = [beats.time_of(beats.at(seconds) + each) - seconds for each in x * 8 - 4]
        assert np.abs(green * 10 - expected).max() < 6e-4
        assert blue[0, 0] * 4 == np.floor(beats.at(seconds)) % 4


@pytest.mark.parametrize("beats", TEMPOS)
@pytest.mark.parametrize("name", MACHINES)
def test_a_sound_has_the_beat_of_this_function(name: str, beats: Beats) -> None:
    rate, count = 8000, 4000
    times = beats.start - 0.25 + np.arange(count) / rate
    env = Env(16, 9, abstime=float(times[0]), inputs=beats.inputs)
    made = kernel(SOUND)
    launch = Launch((1, count), {"abstime": times}, {each: env.uniform(each) for each in made.uniforms})
    found, measure, bpm, since, value = MACHINES[name].load(made).planes(StateMemory(made.slots), launch)[:, 0]
    passed = np.array([beats.at(each) for each in times])
    assert np.abs(found - passed).max() < 1e-8
    np.testing.assert_array_equal(measure, np.floor(passed / 4))
    assert (bpm == beats.bpm_at(float(times[0]))).all()
    # The onsets of the pattern, in beats of its cycle; the seconds since then are those of both tempos.
    onsets = np.array([0, 1, 2, 2.5])
    latest = np.searchsorted(onsets, passed % 4 + 1e-6, side="right") - 1
    begun = np.array([beats.time_of(each) for each in passed - passed % 4 + onsets[latest]])
    np.testing.assert_array_equal(value, latest)
    assert np.abs(since - np.maximum(times - begun, 0)).max() < 1e-5


def test_what_reads_no_beat_has_no_part_in_it() -> None:
    assert not reads_beats(kernel("display(me@x, fract(me@time), mouse@x)").uniforms)
    for text in ("me@beat", "me@bpm", "me@beatphase", "me@measure(me@time ~ 1)"):
        assert reads_beats(kernel(f"display({text} / 99)").uniforms)
    texts = [f"me<bpm> = {bpm}\ndisplay(me@x, fract(me@beats), me@bpm / 1000)" for bpm in (60, 180)]
    assert len({kernel(text) for text in texts}) == 1, "another tempo is no other kernel"
    assert not any("@" in name for name in (*INPUTS, BPM)), "sounds would smooth it, and a strand might have its name"


# --- what is decided when a patch is compiled -------------------------------------------------------------------------


def test_how_much_is_remembered_goes_by_the_tempo_of_the_text() -> None:
    made = kernel("me<bpm> = 80\ne = sin(me@time) + 0.5 * delay(e, 60 / me@bpm * me@rate, 60 / me@bpm * me@rate)\n"
                  "audio(e)")  # fmt: skip
    assert [slot.depth for slot in made.slots] == [36000]
    with pytest.raises(WeftError, match="must be a constant"):
        kernel("audio(delay(me@time, 5, me@beat))")
