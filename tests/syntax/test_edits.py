"""A text that is parsed again after an edit gives the program that it would give alone, and keeps the rest."""

from __future__ import annotations

import random

import pytest

from tests.support.edits import difference, place, session
from tests.support.mutations import mutated, programs
from tests.support.together import all_but
from weft.errors import Report, Source
from weft.syntax.ast import OutputStatement, Parameter
from weft.syntax.edits import EditedText
from weft.syntax.parser import parse
from weft.syntax.scanner import MAX_CHARACTERS

TEXTS = list(programs("patches", "weft/std").values())


def check(texts: EditedText, text: str) -> None:
    source, report, expected = Source("a.weft", text), Report(), Report()
    found, alone = texts.parse(source, report), parse(source, expected)
    assert repr(list(report)) == repr(list(expected))
    assert difference(found, alone) == ""
    placed = (OutputStatement, Parameter)
    for one, other in zip(found.statements, alone.statements, strict=True):
        assert place(texts.placed(one.span)) == place(other.span)
        if isinstance(one, placed):
            assert str(one.span) == str(other.span)
            assert one.span.text == other.span.text


@pytest.mark.parametrize("seed", all_but(4, range(12)))
def test_edits_of_patches(seed: int) -> None:
    chance, texts = random.Random(seed), EditedText()
    for text in session(chance.choice(TEXTS), chance, 25):
        check(texts, text)


@pytest.mark.parametrize("seed", all_but(4, range(12)))
def test_slips_of_the_hand(seed: int) -> None:
    chance, texts = random.Random(seed), EditedText()
    text = chance.choice(TEXTS)
    for _ in range(15):
        check(texts, text)
        check(texts, mutated(text, chance))


TEXT = "a = 1\nb = a + 2\nc = b\nd = c\ne = d\ndisplay(e)\n"


@pytest.mark.parametrize(
    ("edit", "kept"),
    [
        (TEXT, "abcde"),
        (TEXT.replace("c = b", "c = b * 2"), "abde"),
        (TEXT.replace("c = b", "c = b // note\n\n// another"), "abcde"),
        (TEXT.replace("c = b\n", ""), "abde"),
        (TEXT.replace("c = b\nd = c", "d = c\nc = b"), "abcde"),
        (TEXT.replace("e = d", "e = d\n  * 3"), "abcd"),
        (TEXT.replace("b = a", "/* b = a").replace("d = c", "*/ d = c"), ""),
        (TEXT + "x = 1 /* until\n here */\n", ""),
        (TEXT + "x = 2 sin(a)\n", "abcde"),
        (TEXT.replace("c = b", "c = (b"), "abde"),
        (TEXT.replace("c = b", "spindle f(a) :: v { v = a a }"), "abde"),
        (TEXT.replace("c = b", "spindle f(a) :: v { v = a"), ""),
        (TEXT.replace("c = b", "c = b }"), ""),
    ],
)
def test_what_is_kept(edit: str, kept: str) -> None:
    texts = EditedText()
    before = texts.parse(Source("a.weft", TEXT), Report())
    after = texts.parse(Source("a.weft", edit), Report())
    same = [s for s in before.statements if s in after.statements and not isinstance(s, OutputStatement)]
    assert "".join(s.name.name for s in same) == kept
    check(texts, edit)


def test_a_line_that_continues_the_one_before() -> None:
    texts = EditedText()
    check(texts, "a = 1\nb = 2\nc = 3\ndisplay(c)\n")
    check(texts, "a = 1\nb = 2 +\nc = 3\ndisplay(c)\n")
    check(texts, "a = 1\nb = 2\n  + 4\nc = 3\ndisplay(c)\n")
    check(texts, "a = 1; b = 2\nc = 3; display(c)\n")
    check(texts, "a = 1; b = 3\nc = 3; display(c)\n")
    check(texts, "a = 1; b = 3\nspindle f(x) :: v {\nc = 3; display(c)\n")
    check(texts, "")
    check(texts, "a = 1; b = 3\nc = 3; display(c)\n")


def test_a_warning_moves_and_goes() -> None:
    texts, slider = EditedText(), "#slider s<v> = 0, 1, 2\n"
    for edit in (slider, slider + TEXT + slider.replace("s<", "t<"), TEXT + slider, "\n" + TEXT + slider, TEXT,
                 slider.replace("2", "0.5") + TEXT, "a = 9; " + slider + TEXT, slider + slider.replace("s<", "t<")):
        check(texts, edit)  # fmt: skip
        check(texts, edit.replace("c = b", "c = b + 1"))
    before = texts.parse(Source("a.weft", slider + TEXT), Report())
    after = texts.parse(Source("a.weft", slider + TEXT + "f = 1\n"), Report())
    kept = [each for each in before.statements if each in after.statements]
    assert len(kept) == len(before.statements) - 1, "all but the output statement beside the edit"


def test_a_text_that_grows_too_large() -> None:
    texts, long = EditedText(), "// x\n" * (MAX_CHARACTERS // 5 - 20)
    check(texts, TEXT + long)
    check(texts, TEXT.replace("a = 1", "a = 1" + " " * 200) + long)
