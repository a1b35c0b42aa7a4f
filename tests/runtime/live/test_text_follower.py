"""What is shown of the text that plays: which lines an edit has changed, where mistakes are, and values."""

from __future__ import annotations

import time

import pytest

from weft.errors import Diagnostic, Source, Span
from weft.runtime.compiling.compiler import Saved
from weft.runtime.compiling.worker import LoadResult
from weft.runtime.hands.parameters import ParameterBank, ParameterSpec
from weft.runtime.live.text_follower import TextFollower, changed_lines, line_in, lines_of, statement_lines
from weft.runtime.screens.text_view import TextView

TEXT = """\
// Waves
#slider speed<v> = 0, 2, 0.3

wave = sin(me@x * 9) *
  cos(me@y)
spindle half(a) :: b {
  b = a / 2
}
display(wave, 0, 0)
"""


class Receiver:
    """Notes what it is shown."""

    def __init__(self) -> None:
        self.wants_text = True
        self.shown: list[TextView] = []

    def show_text(self, view: TextView) -> None:
        self.shown.append(view)


def saved(text: str, name: str = "a.weft", turned: bool = False) -> LoadResult:
    return LoadResult(Saved(text.encode(), 0.0, name=name, turned_from="hash" if turned else ""), None, ())


def error_at(text: str, words: str, name: str = "a.weft") -> Diagnostic:
    start = text.index(words)
    return Diagnostic("error", "code", "wrong", Span(Source(name, text), start, start + len(words)))


@pytest.mark.parametrize(("before", "now", "found"), [
    ("a b c", "a x c", [range(1, 2)]),
    ("a b c", "a b c d", [range(3, 4)]),
    ("a b c", "a c", [range(1, 1)]),
    ("a b c d e", "x b c d y", [range(1), range(4, 5)]),
    ("a", "a", []),
    ("", "a b", [range(2)]),
])  # fmt: skip
def test_the_lines_that_an_edit_has_changed(before: str, now: str, found: list[range]) -> None:
    assert [*changed_lines(before.split(), now.split())] == found


def test_many_differences_are_one_edit() -> None:
    before, now = [f"a{n}" for n in range(500)], [f"{'ab'[n % 2]}{n}" for n in range(500)]
    assert changed_lines(before, now) == (range(1, 500),)


@pytest.mark.parametrize(("edited", "whole"), [
    (range(3, 4), range(3, 5)), (range(4, 5), range(3, 5)), (range(6, 7), range(6, 7)), (range(8, 9), range(8, 9)),
    (range(1, 2), range(1, 2)), (range(2, 3), range(2, 3)), (range(4, 7), range(3, 7)),
])  # fmt: skip
def test_the_statement_of_an_edited_line(edited: range, whole: range) -> None:
    assert statement_lines(lines_of(TEXT), edited) == whole


def test_a_text_that_cannot_be_read_has_lines_only() -> None:
    assert statement_lines(["a = (", "$ ] } §", "((("], range(1, 2)).start <= 1
    assert statement_lines([], range(0)) == range(0)


def test_an_edit_glows_for_two_beats_and_is_what_the_text_scrolls_to() -> None:
    follower, receiver = TextFollower(ParameterBank()), Receiver()
    follower.follow(saved(TEXT), 90)
    follower.show((), receiver)
    assert receiver.shown[-1].lines == lines_of(TEXT)
    assert not receiver.shown[-1].glow.lines
    follower.follow(saved(TEXT.replace("cos", "sin")), 90)
    before = time.monotonic()
    follower.show((), receiver)
    view = receiver.shown[-1]
    assert (view.edited, view.glow.lines) == (3, (3, 4))
    assert view.glow.seconds == pytest.approx(2 * 60 / 90)
    assert view.glow.strength(before) > 0.5
    assert view.glow.strength(before + 1.5) == 0
    # Nothing has changed since.
    follower.show((), receiver)
    assert receiver.shown[-1] is view
    # Another patch begins at its beginning.
    follower.follow(saved("display(0)", "b.weft"), 90)
    follower.show((), receiver)
    assert (receiver.shown[-1].edited, receiver.shown[-1].glow.lines) == (0, ())


def test_what_nobody_wants_to_see_is_not_looked_for() -> None:
    follower, receiver = TextFollower(ParameterBank()), Receiver()
    receiver.wants_text = False
    follower.follow(saved(TEXT), 120)
    follower.show((), receiver)
    assert receiver.shown == []
    receiver.wants_text = True
    follower.show((), receiver)
    assert receiver.shown[-1].lines


def test_a_number_that_is_turned_glows_without_scrolling() -> None:
    follower = TextFollower(ParameterBank())
    follower.follow(saved(TEXT), 120)
    follower.view(())
    follower.follow(saved(TEXT.replace("9", "8.5"), turned=True), 120)
    view = follower.view(())
    assert "8.5" in view.lines[3]
    assert (view.edited, view.glow.lines) == (0, (3,))


def test_a_mistake_is_marked_in_the_text_that_plays() -> None:
    lines = lines_of(TEXT)
    assert line_in(lines, error_at(TEXT, "cos"), "a.weft") == 4
    assert line_in(lines, error_at(TEXT, "cos"), "other.weft") is None
    # Two lines that the text that plays does not have, and a mistake after them, before them, and in one of them.
    later = TEXT.replace("spindle", "new = 1\nother = 2\nspindle")
    assert line_in(lines, error_at(later, "display"), "a.weft") == 8
    assert line_in(lines, error_at(later, "cos"), "a.weft") == 4
    assert line_in(lines, error_at(later, "other"), "a.weft") in (4, 5)
    assert line_in(lines, error_at(TEXT.replace("cos", "cso"), "cso"), "a.weft") == 4
    assert line_in((), error_at(TEXT, "cos"), "a.weft") is None
    follower = TextFollower(ParameterBank())
    follower.follow(saved(TEXT), 120)
    follower.view(())
    view = follower.view((error_at(TEXT.replace("cos", "cso"), "cso"),))
    assert view.marks == ((4, "error"),)
    assert follower.view(()).marks == ()


def test_values_are_beside_the_lines_of_their_parameters() -> None:
    bank = ParameterBank()
    follower = TextFollower(bank)
    spec = ParameterSpec("slider", "speed", ("v",), (0.3,), 0.0, 2.0, "speed", True, "a.weft", 2)
    other = ParameterSpec("slider", "lib", ("v",), (0.3,), 0.0, 2.0, "lib", True, "lib.weft", 1)
    bank.adopt([spec, other], "a.weft")
    follower.follow(saved(TEXT), 120)
    assert follower.view(()).values == ((1, "0.3"),)
    bank.set("speed@v", 1.23456)
    assert follower.view(()).values == ((1, "1.23"),)


def test_lines_of_windows_and_blank_ends() -> None:
    assert lines_of("a = 1\r\nb = 2\r\n\r\n") == ("a = 1", "b = 2")
    assert lines_of("") == ("",)


def test_the_text_follows_the_cursor_of_an_editor_where_it_is_known() -> None:
    follower = TextFollower(ParameterBank())
    follower.follow(saved(TEXT), 120)
    problems = (error_at(TEXT, "wave = "),)
    assert follower.view(problems).wanted == 3
    follower.cursor = 7
    assert follower.view(problems).wanted == 7
    follower.cursor = 100
    assert follower.view(problems).wanted == len(follower.view(problems).lines) - 1
    follower.cursor = None
    assert follower.view(problems).wanted == 3
