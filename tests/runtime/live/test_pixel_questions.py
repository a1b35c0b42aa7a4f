"""Pixels that are pointed at while a patch plays: the answer comes from a process of its own, and is shown there."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.support.performance import Performance
from tests.support.windows import on_x11, screen, xdotool
from weft.permissions import DEFAULT_PERMISSIONS
from weft.runtime.hands.clock import Moment
from weft.runtime.inspect.pixel_process import PixelQuestion, answer_to
from weft.runtime.live.pixel_questions import PixelQuestions
from weft.runtime.screens.screen import ExplainedPixel, Pointing, Screen

TEXT = b'#slider s<v> = 0, 1, 0.25\na<v> = me@x * s@v\ndisplay(a@v)\ndisplay(me@y, to: "side")\n'


def question(x=0.3, y=0.5, text=TEXT, window="", inputs=None):
    moment = Moment(3, 0.05, 1 / 60, inputs or {"s@v": 0.75})
    return PixelQuestion("patch.weft", text, (100, 50), window, x, y, moment, DEFAULT_PERMISSIONS)


def words(rows):
    return "\n".join("".join(text for _, text in row) for row in rows)


def test_an_answer_is_about_the_middle_of_the_pixel_with_the_inputs_of_the_moment():
    answer = answer_to(question())
    assert (answer.x, answer.y) == (0.305, 0.51)
    told = words(answer.rows)
    assert told.startswith("display pixel 30,25 at")
    assert f"{0.305 * 0.75:.6g}" in told
    assert "display:side" in words(answer_to(question(window="side")).rows)


def test_what_cannot_be_explained_says_why():
    assert "nosuch" in words(answer_to(question(text=b"display(nosuch(1))")).rows)


class PointedScreen(Screen):
    """Somebody points at it."""

    def __init__(self):
        super().__init__()
        self.pointing: Pointing | None = None
        self.shown: list[ExplainedPixel | None] = []

    def take_pointing(self):
        found, self.pointing = self.pointing, None
        return found

    def explain(self, pixel):
        self.shown.append(pixel)


class Played:
    """A text that plays, and its frame."""

    class saved:  # noqa: N801
        name, data = "patch.weft", TEXT

    loaded = object()

    class env:  # noqa: N801
        tick, abstime, dt, inputs, size = 3, 0.05, 1 / 60, {"s@v": 0.5}, (100, 50)


def test_who_points_gets_an_answer_until_another_text_plays():
    there, asking = PointedScreen(), PixelQuestions(DEFAULT_PERMISSIONS)
    try:
        there.pointing = Pointing("", 0.3, 0.5)
        deadline = time.monotonic() + 30
        while len(there.shown) < 2:
            asking.follow(there, Played, lambda loaded: Played.env)
            assert time.monotonic() < deadline, "no answer"
            time.sleep(0.01)
        waiting, answer = there.shown
        assert words(waiting.rows) == "computing…"
        assert f"{0.305 * 0.5:.6g}" in words(answer.rows)
        asking.forget(there)
        asking.forget(there)
        assert there.shown[2:] == [None]
        there.pointing = Pointing("", 2, 2, is_on=False)
        asking.follow(there, Played, lambda loaded: Played.env)
        assert there.shown[3:] == []
    finally:
        asking.close()
        asking.close()


@pytest.mark.long
def test_a_process_that_dies_is_told_and_replaced():
    there, asking = PointedScreen(), PixelQuestions(DEFAULT_PERMISSIONS)
    try:
        for _ in range(2):
            there.shown.clear()
            there.pointing = Pointing("", 0.3, 0.5)
            deadline = time.monotonic() + 30
            while len(there.shown) < 2:
                asking.follow(there, Played, lambda loaded: Played.env)
                assert time.monotonic() < deadline, "no answer"
                time.sleep(0.01)
            assert "display" in words(there.shown[1].rows)
            asking._child.kill()
            asking._child.wait()
    finally:
        asking.close()


@on_x11
@pytest.mark.long
def test_alt_and_a_click_explain_a_pixel_over_the_picture(tmp_path, display):
    patch = tmp_path / "patch.weft"
    patch.write_text("me<width> = 640\nme<height> = 360\n#slider s<v> = 0, 1, 0.5\ndisplay(s@v)\n")

    def covered():
        """The share of the picture that is not gray."""
        seen = screen(tmp_path)[:360, :640].astype(int)
        return (np.abs(seen - 128).max(axis=2) > 2).mean()

    def wait_for(low, high):
        deadline = time.monotonic() + 30
        while not low <= covered() <= high:
            assert time.monotonic() < deadline, f"{covered():.3f} of the picture is covered"
            time.sleep(0.05)

    with Performance(patch, "--no-audio") as performance:
        performance.wait_for("started")
        xdotool("mousemove", 100, 100)
        wait_for(0, 0.02)
        xdotool("keydown", "alt", "click", 1, "keyup", "alt")
        wait_for(0.15, 0.7)
        xdotool("keydown", "alt", "click", 3, "keyup", "alt")
        wait_for(0, 0.02)
        xdotool("key", "Escape")
        assert performance.ended() == 0
