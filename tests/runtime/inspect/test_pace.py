"""Frames that stay late: that is said once, with the statement that takes most of the work; and what would be late, is
said by `check`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cards import HARDWARE, card, registry_with
from tests.support.performance import Performance
from weft.backends.select import choose
from weft.contexts import context_table
from weft.errors import Diagnostic, Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.inspect.forecast import check
from weft.runtime.inspect.pace import too_slow
from weft.runtime.program.findings import costliest
from weft.runtime.program.program import ProgramLoader

TEXT = """a = sin(me@x * 9 + me@time)
heavy = 0.5 + 0.5 * sum(<sin(me@x * i + sin(me@y * (i + 1) + me@time)) for i in (1 to 40)>)
display(a * heavy)
"""


def test_the_costliest_statement_is_that_of_most_operations() -> None:
    found = costliest(build(Request(Source("p.weft", TEXT), context_table())).units, "p.weft")
    assert found is not None
    assert found[0] == "heavy"
    assert 0.8 < found[1] < 1


@pytest.mark.long
def test_late_frames_are_told_once(tmp_path: Path) -> None:
    patch = tmp_path / "p.weft"
    # No machine draws this many frames of it in a second.
    patch.write_text("me<fps> = 1000\nme<width> = 1920\nme<height> = 1080\n" + TEXT)
    with Performance(patch, "--headless", "--no-midi", "--no-audio") as playing:
        event = playing.wait_for("late")
        playing.wait_for("frames", count=5)
        assert (event["name"], event["line"], event["intended"]) == ("heavy", 5, 1000)
        assert playing.count("late") == 1
        playing.wait_for_words("heavy takes most of the work")



# No machine draws this many frames of these in a second, and all draw one in this many seconds.
FAST, SLOW = "me<fps> = 1000\nme<width> = 3840\nme<height> = 2160\n", "me<fps> = 1\nme<width> = 160\nme<height> = 90\n"


# Too many steps to be counted before a part of the picture is measured.
LONG = """spindle f(n) :: v {
  v = 0
  for i in (1 to n) { v += sin(me@x * i) * sin(me@y * i) }
}
display(f(4000), f(3999), 0)
"""


def slow(text: str) -> list[Diagnostic]:
    return [found for found in check(Source("p.weft", text), context_table(), measure=too_slow) if found.code == "slow"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (TEXT, "heavy"),
        ("#use std.picture\nfog = fbm(me@x * 5, me@y * 5)\nsoft = fog |> blur(0.03)\ndisplay(soft)\n", "soft"),
        ("#use std.picture\ndisplay(me@x * me@y |> bloom(0.1))\n", "display"),
        (LONG, "v"),
    ],
)
def test_check_names_what_will_not_keep_the_rate(text: str, place: str) -> None:
    (found,) = slow(FAST + text)
    assert found.severity == "warning"
    assert found.span is not None
    assert found.span.text == place
    assert f"; {place} takes most of the work" in found.message
    assert "instead of 1000 on" in found.message
    assert (found.hint or "").startswith("a smaller picture helps most: me<width> = 1920 and me<height> = 1080")


def test_check_says_nothing_about_what_is_drawn_in_time() -> None:
    assert slow(SLOW + TEXT) == []
    assert slow(FAST + "display(me@x)\n") == []
    assert slow(FAST + "audio(sin(me@time * 400 * tau))\n") == []


def test_check_says_nothing_about_it_where_nothing_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_BACKEND", "visual=null")
    assert slow(FAST + TEXT) == []


def test_where_a_card_draws_that_is_what_is_said() -> None:
    source = Source("p.weft", FAST + TEXT)
    program = build(Request(source, context_table()))
    on_card = ProgramLoader(choose(registry_with(card("metal_visual", [HARDWARE])), ["visual"]))
    on_cpu = ProgramLoader(choose(registry_with(), ["visual"]))
    (slower,) = too_slow(program, source, lambda size: 1e9, on_cpu)
    (faster,) = too_slow(program, source, lambda size: 1e9, on_card)
    assert "instead of 1000 on a card;" in faster.message
    assert " here;" in slower.message
