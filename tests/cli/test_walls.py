"""`weft run --warp`: what it is told wrong."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("warp", "words"),
    [
        ("turn:45", "0, 90, 180 or 270 degrees"),
        ("side=spin:3", '"spin:3" is no setting of a wall'),
        ("pin:0/0/1/1/1/0/0/1", "fold the picture over itself"),
        ("mask:nowhere.png", "the mask nowhere.png cannot be read"),
        ("brightness:bright", "brightness is a number"),
    ],
)
def test_what_no_wall_can_be(weft, warp, words):
    assert words in weft("run", "plain.weft", "--warp", warp, code=2).stderr


def test_a_window_that_the_patch_does_not_have_is_told(weft):
    assert 'no display(…, to: "sdie") is in the patch' in weft(
        "run", "plain.weft", "--warp", "sdie=turn:90", "--frames", "1", "--no-audio", code=2
    ).stderr  # fmt: skip


def test_an_outlet_has_no_wall(weft):
    assert "http:8080 is no window" in weft("run", "plain.weft", "--warp", "http:8080=turn:90", code=2).stderr


def test_without_a_window_there_is_no_wall(weft):
    assert "--headless shows nothing" in weft("run", "plain.weft", "--headless", "--warp", "turn:90", code=2).stderr


def test_the_frame_rate_of_a_monitor_needs_a_window(weft):
    assert "--fps monitor needs a window" in weft("run", "plain.weft", "--headless", "--fps", "monitor", code=2).stderr
    words = "'often' is not a number from 0.1 to 1,000, nor monitor"
    assert words in weft("run", "plain.weft", "--fps", "often", code=2).stderr
