"""What is written in weft on the page for those who know other tools works, and takes no more lines than elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.sound import steps
from tests.test_patches import FASTEST, SIZE, pictures, sound
from weft.backends.registry import load_registry
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.inspect.forecast import check

TEXT = (Path(__file__).parents[1] / "docs" / "coming-from.md").read_text(encoding="utf-8")
PAIRS = re.findall(r"^```(?!weft)\w+\n(.*?)^```\n\n```weft\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
PICTURES = [here for _, here in PAIRS if "display(" in here]
SOUNDS = [here for _, here in PAIRS if "audio(" in here]

# What the words in the tables are used with.
FOR_PICTURES = """
#use std.picture
#use std.sdf
#use std.color
#use std.blend
s = bars(4)
t = bars(7) |> turned(0.8)
o = prev(o) * 0.9 + s * 0.1
"""
FOR_SHADERS = """
#use std.picture
#use std.coord
#use std.map
#use std.sdf
p<x, y> = centre()
v<x, y, z> = unit(<me@x, 1, 0.5>)
n<x, y, z> = unit(<0, 1, me@y>)
x = me@x
s = bars(4)
"""
FOR_SOUNDS = """
#use std.synth
#use std.music
#use std.effects
x = saw_tone(110) * 0.1
t = me@beatphase < 0.5
"""


def words(section: str) -> list[str]:
    """What stands on the right side of the table in a section."""
    text = TEXT.partition(f"## From {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `[^`]+` \| `([^`]+)` \|$", text, re.MULTILINE)


def problems(text: str) -> list[str]:
    return [diagnostic.render() for diagnostic in check(Source("here.weft", text), load_registry().contexts)]


def test_there_are_eight_sketches_five_sounds_and_a_drum_machine() -> None:
    assert (len(PICTURES), len(SOUNDS)) == (8, 6)
    assert TEXT.count("```weft\n") == len(PAIRS), "each stands behind what it is elsewhere"


@pytest.mark.parametrize(("there", "here"), PAIRS, ids=range(len(PAIRS)))
def test_it_takes_no_more_lines_here(there: str, here: str) -> None:
    assert len(here.splitlines()) <= len(there.splitlines())
    assert problems(here) == []


@pytest.mark.parametrize("text", PICTURES, ids=range(len(PICTURES)))
def test_a_picture_shows_something_that_moves(text: str) -> None:
    made = build(Request(Source("here.weft", text), load_registry().contexts, {**SIZE, "fps": 5.0}))
    before, after = pictures(made, FASTEST, 0.2, 1.0)
    assert after[..., :3].std() > 10
    assert np.abs(after - before).max() > 20


@pytest.mark.skipif(FASTEST != "native", reason="without llvmlite, this takes minutes")
@pytest.mark.parametrize("text", SOUNDS, ids=range(len(SOUNDS)))
def test_a_sound_is_heard_and_does_not_click(text: str) -> None:
    made = build(Request(Source("here.weft", text), load_registry().contexts, SIZE))
    heard = sound(made, FASTEST, 1.1)
    assert steps(heard, made.patch.settings["rate"]) == []
    assert 0.1 < np.abs(heard).max() < 0.95


def test_the_words_in_the_tables_are_right() -> None:
    """All of one table at once: each is read by a strand of its own."""
    shaders = "GLSL, Shadertoy and Processing"
    for section, prelude, least in (("Hydra", FOR_PICTURES, 30), (shaders, FOR_SHADERS, 28), ("Faust", FOR_SOUNDS, 20)):
        found = words(section)
        assert len(found) >= least
        lines = [f"word_{at} = {word}" for at, word in enumerate(found)]
        shown = " + ".join(f"sum(word_{at}) * 0.001" for at in range(len(found)))
        statement = "audio" if section == "Faust" else "display"
        assert problems("\n".join([prelude, *lines, f"{statement}({shown})"])) == []
