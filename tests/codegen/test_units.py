"""A save that tunes a number gives the same kernels with another number, as a build from scratch would."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.support.edits import unlike
from tests.support.mutations import programs
from weft.codegen.kernel import Kernel, structure_hash
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.media.sampled import header_of
from weft.runtime.compiling.kept import KeptBuild
from weft.runtime.compiling.stages import Build, Request, build

_NUMBER = re.compile(r'(?<![\w.#"])\d+\.\d+(?![\w.])')


def built(text: str, kept: KeptBuild | None = None, path: Path = Path("p.weft")) -> Build:
    """The build of a text, from scratch or from what is kept."""
    return build(Request(Source(str(path), text), ContextTable(), probe=header_of), kept=kept or KeptBuild())


def kernels(made: Build) -> list[Kernel]:
    return [kernel for unit in made.units for kernel in unit.kernels]


def are_tuned(before: Build, after: Build) -> bool:
    """Whether the kernels are those of before, apart from numbers."""
    return list(map(structure_hash, kernels(before))) == list(map(structure_hash, kernels(after)))


PATCHES = programs("patches")
# A few of them with one edit after another, and all with one in a long run.
SOME = [
    pytest.param(path, 1 + (at % 9 == 4), marks=[] if at % 9 == 4 else pytest.mark.long, id=path.stem)
    for at, path in enumerate(PATCHES)
]


@pytest.mark.parametrize(("path", "count"), SOME)
def test_kernels_with_other_constants_are_those_of_a_build_from_nothing(path: Path, count: int) -> None:
    chance, text, kept = random.Random(path.stem), PATCHES[path], KeptBuild()
    last = built(text, kept, path)
    for _ in range(count):
        if not (numbers := list(_NUMBER.finditer(text))):
            return
        found = chance.choice(numbers)
        new = chance.choice([f"{float(found[0]) * 0.999:.5f}", chance.choice(numbers)[0], "0.0", "1.0"])
        text = f"{text[: found.start()]}{new}{text[found.end() :]}"
        try:
            alone = built(text, path=path)
            last = built(text, kept, path)
        except WeftError:
            return
        assert not (words := unlike(alone, last)), f"{words}\n{text}"
        assert kernels(alone) == kernels(last), text


TEXT = """
spindle wave(x) :: v { v = sin(x * 3.25) * 0.5 }
ring = wave(me@x) + wave(me@y * 2.5) * 0.5
trail = max(ring * 0.5, prev(trail) * 0.75)
display(trail + 0.5 + hash(me@x))
play(sin(me@abstime * 440.5) * 0.5)
"""


@pytest.mark.parametrize(
    "edit",
    [
        ("3.25", "3.5"),
        ("2.5)", "2.75)"),
        ("0.75", "0.5"),  # there is such a number already
        ("prev(trail) * 0.75", "prev(trail) * 0.7"),
        ("y * 2.5) * 0.5", "y * 2.5) * 0.25"),  # one of several that are equal
        ("trail + 0.5", "trail + 0.125"),
        ("440.5", "441.5"),
    ],
)
def test_a_number_is_tuned(edit: tuple[str, str]) -> None:
    kept, text = KeptBuild(), TEXT.replace(*edit)
    before, alone = built(TEXT, kept), built(text)
    after = built(text, kept)
    assert not unlike(alone, after)
    assert are_tuned(before, after)
    again = built(TEXT, kept)
    assert not unlike(before, again)
    assert are_tuned(before, again)


IMAGES = """
cloud = noise(me@x * 6.5, me@y * 4.75) * 0.5
kept = image(cloud)
soft = kept(me@x ~ me@x + 0.25) + cloud * 0.75 + kept * 0.75
again = image(soft * 1.5)
half = image(cloud * 0.4375, 1)(me@x ~ me@x * 0.9375)
trail = max(half + again(me@y ~ me@y * 0.875), prev(trail) * 0.625)
display(trail + delay(cloud * 0.375, 2, 3))
"""


@pytest.mark.parametrize(
    "edit",
    [
        ("6.5", "6.25"),  # within an image
        ("0.25", "0.125"),  # where it is read
        ("cloud * 0.75", "cloud * 0.7"),  # beside it, in a stage
        ("kept * 0.75", "kept * 0.7"),
        ("soft * 1.5", "soft * 1.75"),
        ("0.875", "0.8"),
        ("0.4375", "0.4"),  # in an image of half the size
        ("0.9375", "0.9"),
        ("0.625", "0.6"),
        ("cloud * 0.375", "cloud * 0.3"),  # beside it, in memory
    ],
)
def test_a_number_of_a_picture_with_images_is_tuned(edit: tuple[str, str]) -> None:
    kept, text = KeptBuild(), IMAGES.replace(*edit)
    before, alone = built(IMAGES, kept), built(text)
    assert len(before.units[0].kernel.stages) == 3
    after = built(text, kept)
    assert not unlike(alone, after)
    assert are_tuned(before, after)
    assert not unlike(before, built(IMAGES, kept))


@pytest.mark.parametrize(
    "edit",
    [
        ("3.25", "0.0"),  # a product that is left out
        ("sin(x", "cos(x"),
        ("me@y * 2.5", "me@x * 1.0"),  # both waves are one
        ("+ 0.5", "- 0.5"),
    ],
)
def test_what_is_more_than_a_number_is_built_again(edit: tuple[str, str]) -> None:
    kept, text = KeptBuild(), TEXT.replace(*edit)
    before, alone = built(TEXT, kept), built(text)
    after = built(text, kept)
    assert not unlike(alone, after)
    assert not are_tuned(before, after)


def test_stages_that_an_edit_does_not_reach_are_those_of_before() -> None:
    kept = KeptBuild()
    before = built(IMAGES, kept).units[0].kernel
    text = IMAGES.replace("delay(cloud", "0.5 - delay(cloud")
    after = built(text, kept).units[0].kernel
    assert len(before.stages) == 3
    assert all(one.sections is other.sections for one, other in zip(before.stages, after.stages, strict=True))
    assert [after] == [unit.kernel for unit in built(text).units]
