"""How text from outside stands in what weft says: names, lines of a patch, paths of files, words of other libraries.

None of it can move a terminal's cursor or reverse a line, each character is counted as wide as a terminal draws it, and
nothing is longer than a person reads. All limits on lengths are here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

LONGEST_QUOTE: Final = 32
"""Characters of a text that a message repeats as it was typed."""

LONGEST_WORD: Final = 80
"""Characters of a name in a message; a longer one is cut in the middle."""

LONGEST_PATH: Final = 240
"""Characters of a file's path in a message."""

LONGEST_MESSAGE: Final = 600
"""Characters of a whole message, or of a hint."""

LONGEST_LINE: Final = 96
"""Columns of a line of a patch. A longer one would wrap in most terminals, and push the caret away from its place."""

LONGEST_CHAIN: Final = 7
"""Names in a chain such as a cycle; of a longer one its beginning and end are shown."""

# More marks than these on one letter are no writing, and reach into the lines above.
_MOST_MARKS: Final = 4

_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")
# A wide character, and one that takes no column; ASCII has neither.
_WIDE: Final = frozenset("WF")
_MARKS: Final = frozenset(("Mn", "Me"))
# Vowels and final consonants of Hangul join the syllable before them.
_JOINING: Final = range(0x1160, 0x1200)


def visible(text: str) -> str:
    """The text with each character that cannot be seen as its escape: `\\x1b`, `\\u202e`. Spaces stay as they are."""
    return text if text.isprintable() else "".join(map(_visible, text))


def visible_lines(text: str) -> str:
    """The same for a text of several lines, whose ends and tabs stay as they are."""
    return "".join(c if c in "\n\t" else _visible(c) for c in text) if not text.isprintable() else text


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    number = ord(character)
    if character in "\t\n\r":
        return {"\t": "\\t", "\n": "\\n", "\r": "\\r"}[character]
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


@lru_cache(maxsize=4096)
def columns_of_character(character: str) -> int:
    """How many columns of a terminal a character that can be seen takes: 2, 1, or none for a mark on the one before."""
    if character.isascii():
        return 1
    if unicodedata.category(character) in _MARKS or ord(character) in _JOINING:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def columns(text: str, tab: int | None = None) -> list[str]:
    """What each column of a terminal shows of a text: a character with its marks, a part of an escape, or nothing for
    the right half of a wide character. A tab stays a column by itself, unless it goes to multiples of `tab`."""
    found: list[str] = []
    for letter in text:
        if letter == "\t":
            found += ["\t"] if tab is None else [" "] * (tab - len(found) % tab)
            continue
        for shown in _visible(letter):
            width = columns_of_character(shown)
            if width:
                found += [shown, ""][:width]
                continue
            at = -2 if found and found[-1] == "" else -1
            if not found or found[at] == "\t":
                found.append(" " + shown)
            elif len(found[at]) <= _MOST_MARKS:
                found[at] += shown
    return found


def mended(row: Sequence[str]) -> list[str]:
    """Columns that were cut out of a row, with a space for each half that is left of a wide character."""
    if not row:
        return []
    is_left = [shown != "" and columns_of_character(shown[0]) == 2 for shown in row]
    is_right = [shown == "" for shown in row]
    halved = (left and not right for left, right in zip(is_left, [*is_right[1:], False], strict=True))
    orphans = (right and not left for left, right in zip([False, *is_left[:-1]], is_right, strict=True))
    broken = map(any, zip(halved, orphans, strict=True))
    return [" " if is_broken else shown for shown, is_broken in zip(row, broken, strict=True)]


def excerpt(line: str, first: int, last: int, width: int = LONGEST_LINE) -> tuple[str, str]:
    """A line of a patch, cut around its range `first … last`, and the carets that stand below that range.

    Tabs keep their place under tabs, so that the carets stay in their columns however wide tabs are drawn.
    """
    # Of a long line no more is looked at than can be shown.
    start, stop = max(0, first - width), first + 2 * width
    before, behind = columns(line[start:first]), columns(line[first:stop])
    row = before + behind
    at, length = len(before), max(1, min(len(columns(line[first : min(last, stop)])), len(behind)))
    is_cut = len(row) > width or start > 0 or stop < len(line)
    if is_cut:
        row += [" "] * (at + 1 - len(row))
        cut = max(0, min(at - width // 3, len(row) - width))
        goes_on = cut + width < len(row) or stop < len(line)
        row = row[cut : cut + width]
        if cut or start:
            row[:1] = ["…"]
        if goes_on:
            row[-1:] = ["…"]
        row = mended(row)
        at -= cut
        length = min(length, width - at)
    indent = "".join("\t" if shown == "\t" else " " for shown in row[:at]).ljust(at)
    return "".join(row), indent + "^" * length


def shortened(text: str, most: int) -> str:
    """The text with its middle left out where it is longer than `most` characters."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 3
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def path_of(path: str) -> str:
    """The path of a file as a message shows it."""
    return visible(shortened(path, LONGEST_PATH))


def steps_of(names: Sequence[str]) -> str:
    """Names that lead from one to the next; of many, the first and the last ones, and how many are left out."""
    if len(names) > LONGEST_CHAIN + 1:
        tail = LONGEST_CHAIN // 2
        first, last = names[: LONGEST_CHAIN - tail], names[len(names) - tail :]
        names = [*first, f"… {len(names) - LONGEST_CHAIN:,} more …", *last]
    return " → ".join(shortened(name, LONGEST_WORD) for name in names)


def fitting(message: str) -> str:
    """A message of a length that can be read: long names are cut in the middle, and so is the whole."""
    if len(message) <= LONGEST_WORD:
        return message
    return shortened(_WORD.sub(_fitting_word, message), LONGEST_MESSAGE)


def _fitting_word(word: re.Match[str]) -> str:
    return shortened(word[0], LONGEST_PATH if "/" in word[0] else LONGEST_WORD)
