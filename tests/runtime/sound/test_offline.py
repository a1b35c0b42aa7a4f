"""Sound off stage: the same wherever it is cut, and in step with the pictures that it reads, and that read it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.tolerances import SINGLE
from weft.backends.base import Env
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.errors import Source, WeftError
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.films.offline import Offline, raw
from weft.runtime.hands.inputs import InputState
from weft.runtime.program.program import ProgramLoader
from weft.runtime.sound.mixer import BLOCK, Rendering

RATE = 8000
FPS = 50
SIZE = (16, 4)
HEAD = f"me<width> = {SIZE[0]}\nme<height> = {SIZE[1]}\nme<fps> = {FPS}\nme<rate> = {RATE}\n"


def built(text: str) -> Build:
    return build(Request(Source("patch.weft", HEAD + text), load_registry().contexts))


def offline(text: str, executor: str = "vector", clips: bool = False) -> Offline:
    """The program, with values as they are instead of pixels."""
    registry = load_registry()
    choices = choose(registry, [spec.name for spec in registry.contexts], executor)
    planes = raw(choices["visual"])
    assert planes is not None
    return Offline(built(text), {**choices, "visual": planes}, clips=clips)


def heard(text: str, start: float, end: float, executor: str = "vector") -> NDArray[np.float32]:
    return np.concatenate(list(offline(text, executor).samples(start, end)))


# --- sound by itself --------------------------------------------------------------------------------------------------

ECHO = "saw = phasor(110) - 0.5\necho = saw * 0.25 + 0.5 * delay(echo, 400, 400)\naudio(echo, 2 * echo)\n"
TOUCH = """\
trail<v> = prev(trail@v) * 0.5 + fract(me@abstime * 7 + me@x)
display(trail@v)
level<v> = trail@v(me@x ~ mouse@x, me@y ~ 0.5)
audio(level@v, phasor(100) + level@v)
"""


FORGETS = "audio(sin(me@time * 441 * tau) * 0.5 + white_noise(1) * 0.1, me@x)\ndisplay(me@x + me@time)\n"
FORGETS = "#use std.synth\n" + FORGETS


@pytest.mark.parametrize("executor", ["vm", "vector", "native"])
@pytest.mark.parametrize("text", [ECHO, TOUCH, FORGETS], ids=["alone", "with a picture", "without memory"])
def test_wherever_it_is_cut_it_is_a_piece_of_the_whole(text: str, executor: str) -> None:
    whole = heard(text, 0, 0.25, executor)
    assert whole.shape == (round(0.25 * RATE), 2)
    assert np.abs(whole).max() > 0.1
    frame = 1 / FPS
    for start, end in ((0, 1 / RATE), (0, 0.1), (0.03, 0.031), (frame, 2 * frame), (0.0637, 0.2001), (0.249, 0.25)):
        first, behind = round(start * RATE), round(end * RATE)
        assert np.array_equal(heard(text, start, end, executor), whole[first:behind])


def film_sound(text: str, frames: range) -> tuple[NDArray[np.float32], list[str]]:
    """The sound of some frames, and what is computed before it."""
    rendering, pieces, before = offline(text), list[NDArray[np.float32]](), list[str]()
    rendering.ahead = lambda what, share: before.append(what)
    for _ in rendering.film(frames, frames, pieces.append).frames:
        pass
    return np.concatenate(pieces), before


def test_what_depends_on_nothing_before_begins_where_it_is_wanted() -> None:
    text = FORGETS.replace("white_noise(1)", "me@y")
    whole, _ = film_sound(text, range(40))
    late, before = film_sound(text, range(35, 40))
    assert not before
    assert np.array_equal(late, whole[-len(late) :])
    _, before = film_sound(ECHO + "display(me@x)\n", range(35, 40))
    assert set(before) == {"the sound"}
    alone = offline(text)
    alone.ahead = lambda what, share: before.clear()
    assert sum(map(len, alone.samples(1600, 1600.1))) == RATE // 10
    assert before, "nothing was computed before"


def test_what_a_picture_remembers_is_said_to_be_computed_first() -> None:
    rendering, before = offline("display(me@x * integrate(1))\n"), list[tuple[str, float]]()
    rendering.ahead = lambda what, share: before.append((what, share))
    assert [number for number, _ in rendering.play(rendering.steps([30]))] == [30]
    assert before[0] == ("what it remembers", 0)
    assert before[-1] == ("what it remembers", 29 / 30)


def test_samples_are_as_they_are_or_clipped_on_demand() -> None:
    text = "audio(3, 0 / 0)\n"
    as_they_are = np.concatenate(list(offline(text).samples(0, 0.1)))
    assert (as_they_are[:, 0] == 3).all()
    assert np.isnan(as_they_are[:, 1]).all()
    clipped = np.concatenate(list(offline(text, clips=True).samples(0, 0.1)))
    assert np.unique(clipped, axis=0).tolist() == [[1, 0]]


def test_parameters_stand_as_they_start() -> None:
    assert np.unique(heard('#slider level<v> = 0, 1, 0.25\naudio(level@v)\n', 0, 0.1)).tolist() == [0.25]


@pytest.mark.parametrize("text", ["display(1)\n", "compute(phasor(3))\n"])
def test_what_has_no_sound_is_an_error(text: str) -> None:
    with pytest.raises(WeftError, match="nothing to play"):
        list(offline(text).samples(0, 1))
    assert not offline(text).sounds


def test_a_sound_that_nothing_runs_is_left_out() -> None:
    choices = choose(load_registry(), ["visual", "compute"], "vector")
    quiet = Offline(built("audio(me@time)\ndisplay(me@x)\n"), choices)
    assert not quiet.sounds
    assert quiet.at(0.0).any()
    with pytest.raises(WeftError) as caught:
        list(quiet.samples(0, 1))
    assert "audio is left out" in (caught.value.diagnostics[0].hint or "")


# --- pictures that read sound -----------------------------------------------------------------------------------------

HERTZ = 200
SCOPE = f"osc<v> = sin(phasor({HERTZ}) * tau)\naudio(osc@v)\ndisplay(osc@v(me@time ~ me@time - me@x * 0.02))\n"


def columns() -> NDArray[np.float64]:
    return (np.arange(SIZE[0]) + 0.5) / SIZE[0]


def samples_of(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The samples of SCOPE that began last at these moments."""
    numbers = np.floor(seconds * RATE + 1e-3)
    return np.where(numbers < 0, 0.0, np.sin(2 * np.pi * HERTZ * numbers / RATE))


@pytest.mark.parametrize("executor", ["vm", "vector", "native"])
def test_an_oscilloscope_shows_the_sound_that_has_just_been_heard(executor: str) -> None:
    player = offline(SCOPE, executor)
    for number, picture in player.play(range(4)):
        # At first there is nothing to be seen of what was before the start.
        expected = samples_of(number / FPS - columns() * 0.02)
        assert SINGLE.scaled(10).agreement(picture[:, :, 0], expected).all()


def test_a_frame_is_the_same_whichever_others_are_asked_for() -> None:
    pictures = {number: picture.copy() for number, picture in offline(SCOPE).play(range(6))}
    assert offline(SCOPE).steps([5]) == [5], "only the sound remembers"
    assert np.array_equal(offline(SCOPE).at(5 / FPS), pictures[5])
    # Within a frame, what has been heard by then is shown.
    between = 5.5 / FPS
    assert SINGLE.scaled(10).agreement(
        offline(SCOPE).at(between)[:, :, 0], samples_of(between - columns() * 0.02)
    ).all()


def test_what_is_yet_to_come_is_the_newest_sample() -> None:
    text = SCOPE.replace("me@time - me@x * 0.02", "me@time + 1")
    picture = offline(text).at(3 / FPS)
    assert SINGLE.scaled(10).agreement(picture, samples_of(np.array(3 / FPS))).all()


# --- sounds that read pictures ----------------------------------------------------------------------------------------


def test_a_sound_is_led_to_what_a_picture_shows_frame_by_frame() -> None:
    level = heard(TOUCH, 0, 0.2)[:, 0].astype(np.float64)
    x = InputState()["mouse@x"]
    shown: list[float] = []
    for frame in range(10):
        place = np.clip(x * SIZE[0] - 0.5, 0, SIZE[0] - 1)
        here, share = int(place), place % 1
        values = (frame / FPS * 7 + (np.arange(SIZE[0]) + 0.5) / SIZE[0]) % 1
        picture = values * (1 - share) + np.roll(values, -1) * share
        shown.append((shown[-1] * 0.5 if shown else 0.0) + picture[here])
    frame_length = RATE // FPS
    # The first frame comes before the first sample.
    np.testing.assert_allclose(level[: frame_length + 1], shown[0], atol=1e-5)
    for frame, (before, now) in enumerate(itertools.pairwise(shown), 1):
        # From the sample after the frame's moment on, in a block, or in the part of one before the next frame.
        first = frame * frame_length + 1
        length = min(BLOCK, frame_length)
        ramp = before + (now - before) * np.arange(1, length + 1) / length
        np.testing.assert_allclose(level[first : first + length], ramp[: len(level) - first], atol=1e-5)


def test_numbers_read_pictures_and_sounds() -> None:
    registry = load_registry()
    loader = ProgramLoader(choose(registry, [spec.name for spec in registry.contexts], "vector"))
    text = (
        "ramp<v> = prev(ramp@v) * 0 + me@x\ndisplay(ramp@v)\n"
        f"osc<v> = sin(phasor({HERTZ}) * tau)\naudio(osc@v)\n"
        "compute(ramp@v(me@x ~ 0.25, me@y ~ 0.5), osc@v, osc@v(me@time ~ me@time - 0.001))\n"
    )
    compiled = built(text).compiled
    rendering = Rendering(loader, compiled, {})
    loaded = replace(loader, stream_getter=rendering.getter).prepare(compiled, SIZE)
    assert [unit.subgraph.context for unit in loaded.elsewhere] == ["audio"]
    for number in range(3):
        time = number / FPS
        for _ in rendering.until(round(time * RATE) + 1):
            pass
        (numbers,) = (r for r in loaded.runner.run(Env(*SIZE, tick=number, abstime=time)) if r.context == "compute")
        expected = [0.25, *samples_of(np.array([time, time - 0.001]))]
        assert numbers.values.reshape(-1) == pytest.approx(expected, abs=1e-5)


def test_a_picture_and_a_sound_that_read_each_other() -> None:
    text = (
        "osc<v> = sin(phasor(200 + 100 * glow@v(me@x ~ 0.5, me@y ~ 0.5)) * tau)\n"
        "glow<v> = prev(glow@v) * 0.5 + abs(osc@v) + 0 * me@x\n"
        "audio(osc@v)\ndisplay(glow@v)\n"
    )
    samples = heard(text, 0, 4 / FPS)[:, 0].astype(np.float64)
    glow, phase, level, expected = 0.0, 0.0, 0.0, []
    for frame in range(-1, 4):
        first, behind = (max(0, number * RATE // FPS + 1) for number in (frame, frame + 1))
        ramp = level + (glow - level) * np.arange(1, behind - first + 1) / (behind - first)
        level = glow
        for value in ramp:
            expected.append(np.sin(2 * np.pi * phase))
            phase += (200 + 100 * value) / RATE
        glow = glow * 0.5 + abs(expected[-1])
    np.testing.assert_allclose(samples, expected[: len(samples)], atol=1e-4)


def test_there_and_back() -> None:
    text = (
        "a<v> = sin(phasor(200) * tau)\n"
        "b<v> = prev(b@v) * 0 + abs(a@v) + 0 * me@x\n"
        "c<v> = prev(c@v) * 0 + b@v(me@x ~ 0.5, me@y ~ 0.5) + 10 * a@v\n"
        "audio(c@v)\ndisplay(b@v)\n"
    )
    samples = heard(text, 0, 0.1)[:, 0].astype(np.float64)
    own = 10 * np.sin(2 * np.pi * 200 * np.arange(len(samples)) / RATE)
    # What the last frame has left, at the end of each.
    ends = np.arange(1, 5) * RATE // FPS
    shown = [abs(samples_of(np.array(number / FPS))) for number in range(4)]
    np.testing.assert_allclose((samples - own)[ends], shown, atol=1e-5)
