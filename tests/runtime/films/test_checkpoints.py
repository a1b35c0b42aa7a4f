"""A program that continues from a checkpoint draws the same as after all frames before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings

from tests.support.choices import on_processor
from tests.support.program_texts import program_texts
from tests.support.together import examples
from weft.backends.registry import load_registry
from weft.errors import Source, WeftError
from weft.runtime.compiling.stages import Request, build
from weft.runtime.films.offline import Offline

HEAD = "#use std.picture\nme<width> = 12\nme<height> = 5\nme<fps> = 30\n"
# State that is found from the time, the size, other state, another subgraph, a delay, a loop and a word of the library.
NUMBERS = """\
a<v> = phasor(me@width * 0.3)
b<v> = prev(b@v) * 0.75 + sin(me@time * 9) * a@v
c<v> = delay(b@v, 7, 20) + hold(me@time, me@frame % 4 == 0)
n<v> = integrate(b@v * c@v)
compute(n@v)
blur(<fract(me@x + a@v)>, 0.1)::soft<v>
display(fract(me@x * 9 + b@v), c@v + soft@v, fract(n@v * me@y))
"""
# What depends on pictures, which a program of one pixel does not have.
PICTURES = {
    "each pixel remembers": "a<v> = prev(a@v) + me@x\ndisplay(fract(a@v))\n",
    "a number is read from a picture that is remembered": (
        "a<v> = prev(a@v) + me@x\nb<v> = prev(b@v) + a@v(me@x ~ 0.7, me@y ~ 0.5)\ndisplay(fract(b@v))\n"
    ),
    "a number is read from a picture of the same frame": (
        "blur(<fract(me@x * 3 + me@time)>, 0.4)::a<v>\nb<v> = prev(b@v) + a@v(me@x ~ 0.7, me@y ~ 0.5)\n"
        "display(fract(b@v))\n"
    ),
}


def offline(text: str, executor: str) -> Offline:
    return Offline(build(Request(Source("patch.weft", HEAD + text), load_registry().contexts)), on_processor(executor))


def frames(program: Offline, first: int, last: int) -> dict[int, np.ndarray]:
    return {number: picture.copy() for number, picture in program.play(range(first, last + 1))}


@pytest.mark.parametrize("executor", ["vm", "vector", "native"])
def test_frames_are_the_same_without_those_before(executor):
    whole, part = frames(offline(NUMBERS, executor), 0, 25), frames(offline(NUMBERS, executor), 21, 25)
    assert len({picture.tobytes() for picture in whole.values()}) == len(whole)
    for number, picture in part.items():
        assert (picture == whole[number]).all()
    # Checkpoints may be taken in any order, and from one process to another.
    program = offline(NUMBERS, executor)
    known = dict(program.checkpoints([18, 0, 9]))
    for number in 18, 0, 9:
        for at, picture in program.play(range(number, number + 3), known[number]):
            assert (picture == whole[at]).all()


@pytest.mark.long
def test_a_moment_is_the_same_without_the_frames_before():
    program = offline(NUMBERS, "native")
    assert program.steps([24]) == range(24, 25)
    assert (program.at(24 / 30) == frames(offline(NUMBERS, "native"), 0, 24)[24]).all()


@pytest.mark.parametrize("text", PICTURES.values(), ids=PICTURES)
def test_what_depends_on_pictures_has_no_checkpoints(text):
    program = offline(text, "vector")
    assert program.undivided is not None
    assert program.steps([24]) == range(25)


@pytest.mark.long
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=program_texts())
def test_random_programs_go_on_from_checkpoints(text):
    note(text)
    try:
        program = offline(text, "vector")
    except WeftError:
        return
    if program.remembers and program.undivided is None:
        whole, part = frames(program, 0, 6), frames(offline(text, "vector"), 5, 6)
        for number, picture in part.items():
            assert (picture == whole[number]).all()
