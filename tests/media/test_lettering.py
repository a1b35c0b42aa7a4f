"""Letters as pixels: each in a cell of its own, and a box for what the font lacks."""

from __future__ import annotations

import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given, strategies as st

from weft.media.lettering import Face

FACE = Face(16)
LACKED = FACE.draw("漢")


@given(st.text(st.characters(codec=None), max_size=40), st.sampled_from([FACE, Face(9), Face(33)]))
def test_any_text_takes_a_cell_for_each_code_point(text: str, face: Face) -> None:
    assert face.draw(text).shape == (face.height, face.width * len(text))


def test_a_letter_looks_the_same_wherever_it_stands() -> None:
    text = "weft ~ «wēft» Ωя"
    cells = np.split(FACE.draw(text), len(text), axis=1)
    assert all(np.array_equal(cell, FACE.draw(letter)) for cell, letter in zip(cells, text, strict=True))


@pytest.mark.parametrize("size", [9, 13, 16, 45])
def test_what_a_text_editor_types_is_there_and_fits_into_its_cell(size: int) -> None:
    face = Face(size)
    letters = [chr(n) for n in range(0x21, 0x180) if chr(n).isprintable()] + list("αβγΩабвЯ→←↑↓─│┌∞≤≥≠±×·…–—„“”‘’€")
    lacked = face.draw("漢")
    for letter in letters:
        drawn = face.draw(letter)
        assert drawn.max() > 64, unicodedata.name(letter)
        assert not np.array_equal(drawn, lacked), unicodedata.name(letter)
    assert len({face.draw(chr(n)).tobytes() for n in range(0x20, 0x7F)}) == 0x7F - 0x20


@pytest.mark.parametrize("letter", ["\U0001f600", "\udc80", "\x00", "\n", "\t", "\x1b", "\u202e", chr(sys.maxunicode)])
def test_what_it_lacks_or_cannot_show_is_a_box(letter: str) -> None:
    drawn = FACE.draw(letter)
    assert np.array_equal(drawn, LACKED) or np.array_equal(drawn, FACE.draw("�"))
    assert LACKED.max() > 128


def test_letters_are_crisp() -> None:
    # Stems and bars lie on whole pixels: some row and some column of an L are nothing but ink.
    drawn = FACE.draw("L")
    assert (drawn.max(axis=0) == 255).any()
    assert (drawn.max(axis=1) == 255).any()
