"""Places in a text as editors count them, and as weft does.

Editors count lines, which end in `\\n`, `\\r\\n` or `\\r`, and in a line the units of an encoding, usually UTF-16. weft
counts characters from the beginning of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

from lsprotocol import types

from weft.errors import Span

_LINE_END = re.compile(r"\r\n|\n|\r")


class TextPositions:
    """The places of one text."""

    def __init__(self, text: str, encoding: str = types.PositionEncodingKind.Utf16) -> None:
        self.text = text
        self._encoding = encoding

    @cached_property
    def _lines(self) -> list[int]:
        """The offset of each line."""
        return [0, *(end.end() for end in _LINE_END.finditer(self.text))]

    @cached_property
    def _is_plain(self) -> bool:
        """Whether each character is one unit."""
        return self._encoding == types.PositionEncodingKind.Utf32 or self.text.isascii()

    def position(self, offset: int) -> types.Position:
        """The position of an offset."""
        line = bisect_right(self._lines, offset) - 1
        before = self.text[self._lines[line] : offset]
        return types.Position(line, len(before) if self._is_plain else self._units(before))

    def offset(self, position: types.Position) -> int:
        """The offset of a position. One after the end of its line is that end, and one after the text is its end. One
        in the middle of a character is its beginning."""
        if position.line >= len(self._lines):
            return len(self.text)
        start = self._lines[position.line]
        end = self._lines[position.line + 1] if position.line + 1 < len(self._lines) else len(self.text)
        line = self.text[start:end].rstrip("\r\n") if end > start else ""
        if self._is_plain:
            return start + min(position.character, len(line))
        units = 0
        for number, character in enumerate(line):
            units += self._units(character)
            if units > position.character:
                return start + number
        return start + len(line)

    def range(self, start: int, end: int) -> types.Range:
        """The range of the offsets `start … end`."""
        return types.Range(self.position(start), self.position(end))

    def of(self, span: Span) -> types.Range:
        """The range of a place in this text."""
        return self.range(span.start, span.end)

    def _units(self, text: str) -> int:
        if self._encoding == types.PositionEncodingKind.Utf8:
            return len(text.encode(errors="surrogatepass"))
        return len(text) + sum(character > "\uffff" for character in text)
