"""`weft why`."""

from __future__ import annotations

import math

import pytest


def test_json_has_the_promised_shape(weft):
    found = weft.json("why", "plain.weft", "--at", "x=0.5,y=0.25,time=1")
    assert found["statement"] == "display"
    assert found["place"] == {"x": 0.5, "y": 0.25, "channel": 0, "time": 1}
    assert found["pixel"] == [640, 180]
    values = [found["nodes"][at]["value"] for at in found["outputs"]]
    assert values == pytest.approx([math.sin(1.5) + 1, 0.5, 0.25])
    assert [found["nodes"][at]["name"] for at in found["nodes"][0]["reads"]] == ["a"]
    (number,) = found["influences"]
    assert (number["name"], number["line"], number["column"]) == ("3", 1, 19)
    assert number["slopes"] == pytest.approx([0.5 * math.cos(1.5), 0, 0])
    assert found["slopes"]["time"] == [1, 0, 0]


def test_memory_parameters_and_axes(weft):
    found = weft.json("why", "rich.weft", "--at", "frame=3,s=0.5,mouse@x=0.25,x=0.5")
    assert (found["ticks"], found["ticks_before"]) == (3, 3)
    red, _, blue = (found["nodes"][at]["value"] for at in found["outputs"])
    assert red == pytest.approx(4 * found["place"]["x"])
    assert blue == 52.5
    names = {each["name"]: each["slopes"] for each in found["influences"]}
    assert names["s@v"] == [0, 0, 100]
    assert names["mouse@x"] == [0, 0, 10]


def test_for_people(weft):
    told = weft("why", "plain.weft", "--at", "x=0.5,time=1").stdout
    assert told.startswith("display pixel 640,360 at x=0.5 y=0.5 time=1\n3  display(a@v, b@r, b@g)\n")
    assert "└ a" in told
    assert "\x1b" not in told
    assert max(map(len, told.splitlines())) <= 80


def test_a_sound_by_its_sample(weft):
    found = weft.json("why", "rich.weft", "--name", "audio", "--at", "sample=2")
    assert found["context"] == "audio"
    assert [found["nodes"][at]["value"] for at in found["outputs"]] == [0.5]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--at", "z=1"), 'the patch has no "z"'),
        (("--at", "px=1280"), "the picture has px=0 to px=1279"),
        (("--at", "y=-0.1"), "y=-0.1 is outside of the picture"),
        (("--at", "time=-1"), "a performance begins at time=0"),
        (("--at", "x=0.5,px=3"), "there is no place with"),
        (("--name", "hall"), 'no output statement "hall"'),
    ],
)
def test_places_and_statements_that_do_not_exist(weft, options, words):
    assert words in weft("why", "plain.weft", *options, code=2).stderr


def test_a_sound_has_no_x(weft):
    assert "x and y of a sound follow from its time" in weft("why", "rich.weft", "--name", "audio", "--at", "x=0.5",
                                                            code=2).stderr  # fmt: skip
    assert "channels 0 to 63" in weft("why", "rich.weft", "--name", "audio", "--at", "channel=64", code=2).stderr


def test_mistakes_are_those_of_check(weft):
    assert "[missing-expression]" in weft("why", "broken.weft", code=1).stderr


def test_a_patch_without_an_output(weft):
    weft.file("none.weft", "a = me@x\n")
    assert "no output statement" in weft("why", "none.weft", code=1).stderr
    assert weft.json("why", "none.weft", "--name", "a", "--at", "x=0.25")["nodes"][0]["value"] == 0.25
