"""The numbers of texts: where they are, and which have other values in another text."""

from __future__ import annotations

import pytest

from weft.syntax.number_places import NumberedLines, lines_in_both, numbers_of, numbers_to_turn

TEXT = "a = 1 + 2.5\nb = a\nc = 3\nb = a\n"


def test_numbers_have_their_places() -> None:
    assert numbers_of(TEXT.encode()) == {(1, 5): (4, 5), (1, 9): (8, 11), (3, 5): (22, 23)}
    assert numbers_of(b"\xff 1") == {}


@pytest.mark.parametrize(("other", "lines"), [
    (TEXT, {0: 0, 1: 1, 2: 2, 3: 3, 4: 4}),
    (TEXT.replace("2.5", "0.125"), {0: 0, 1: 1, 2: 2, 3: 3, 4: 4}),
    ("// new\n" + TEXT, {0: 1, 1: 2, 2: 3, 3: 4, 4: 5}),
    (TEXT.replace("c = 3", "d = 4"), {0: 0, 1: 1, 3: 3, 4: 4}),
    ("x = 1\n" + TEXT + "y = 1\n", {0: 1, 2: 3, 4: 6}),
    (TEXT.replace("2.5", "0.125").replace("\n", "\r\n"), {0: 0, 1: 1, 2: 2, 3: 3, 4: 4}),
    ("", {4: 0}),
])  # fmt: skip
def test_lines_are_found_in_another_text(other: str, lines: dict[int, int]) -> None:
    assert lines_in_both(NumberedLines(TEXT), NumberedLines(other)) == lines


def test_numbers_are_turned_where_the_text_was_changed() -> None:
    new = "// new\n" + TEXT.replace("2.5", "7").replace("3", "8")
    playing, other = NumberedLines(TEXT), NumberedLines(new)
    assert numbers_to_turn(playing, other, {1}) == {(1, 9): 7.0}
    assert numbers_to_turn(playing, other, {1}, also={(1, 5)}) == {(1, 5): 1.0, (1, 9): 7.0}
    assert numbers_to_turn(playing, other, {1, 3}) == {(1, 9): 7.0, (3, 5): 8.0}
    assert numbers_to_turn(playing, NumberedLines(""), {0}) == {}
