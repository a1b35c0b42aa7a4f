"""Frames that stay late: that is said once, with the statement that takes most of the work."""

from __future__ import annotations

from pathlib import Path

from tests.support.performance import Performance
from weft.contexts import context_table
from weft.errors import Source
from weft.runtime.build import build
from weft.runtime.findings import costliest

TEXT = """a = sin(me@x * 9 + me@time)
heavy = 0.5 + 0.5 * sum(<sin(me@x * i + sin(me@y * (i + 1) + me@time)) for i in (1 to 40)>)
display(a * heavy)
"""


def test_the_costliest_statement_is_that_of_most_operations() -> None:
    found = costliest(build(Source("p.weft", TEXT), context_table()).units, "p.weft")
    assert found is not None
    assert found[0] == "heavy"
    assert 0.8 < found[1] < 1


def test_late_frames_are_told_once(tmp_path: Path) -> None:
    patch = tmp_path / "p.weft"
    # No machine draws so many frames of this in a second.
    patch.write_text("me<fps> = 1000\nme<width> = 1920\nme<height> = 1080\n" + TEXT)
    with Performance(patch, "--headless", "--no-midi", "--no-audio") as playing:
        event = playing.wait_for("late")
        playing.wait_for("frames", count=5)
        assert (event["name"], event["line"], event["intended"]) == ("heavy", 5, 1000)
        assert playing.count("late") == 1
        playing.wait_for_words("heavy takes most of the work")
