"""What stands below the picture in a terminal: errors, and one line with the note and the figures.

All text is laid out in the columns of the terminal, where a character may take two columns or none. Nothing of it can
be taken for a command by the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from rich.cells import get_character_cell_size

from weft.errors import Diagnostic, Severity
from weft.runtime.screens.screen import Overlay

Ink = Literal["text", "dim", "error", "warning", "error mark", "warning mark"]

_STYLES: dict[Ink, bytes] = {
    "text": b"",
    "dim": b"2",
    "error": b"1;31",
    "warning": b"1;33",
    "error mark": b"31",
    "warning mark": b"33",
}
_MARKS: dict[Severity, Ink] = {"error": "error mark", "warning": "warning mark"}
_TAB = 4


@dataclass(frozen=True, slots=True)
class Column:
    """What one column shows: a character with the marks that belong to it, or nothing for the right half of a wide
    character."""

    text: str
    ink: Ink = "text"


Row = list[Column]


def rows_of(overlay: Overlay, width: int, most: int) -> list[Row]:
    """The rows for a terminal of this width, at most `most` of them: the errors, then the note with the figures."""
    status = _status(overlay, width)
    below = [status] if status else []
    errors = [row for diagnostic in overlay.errors for row in _block(diagnostic, width)]
    room = most - len(below)
    if len(errors) > room:
        kept = max(room - 1, 0)
        more = columns_of(f"… {len(errors) - kept} more lines", "dim")
        errors = [*errors[:kept], cut_out(more, 0, width)][: max(room, 0)]
    return [*errors, *below][:most]


def painted(row: Row, colourful: bool) -> bytes:
    """The row as a terminal takes it, in UTF-8. Colours are left out if it is not to be colourful."""
    parts = []
    for ink, columns in groupby(row, key=lambda column: column.ink):
        text = "".join(column.text for column in columns).encode(errors="replace")
        style = _STYLES[ink] if colourful else b""
        parts.append(b"\x1b[%bm%b\x1b[0m" % (style, text) if style else text)
    return b"".join(parts)


def columns_of(text: str, ink: Ink = "text") -> Row:
    """One entry for each column that a text takes from the left edge on. What cannot be printed becomes �."""
    columns: Row = []
    for letter in text:
        if letter == "\t":
            columns += [Column(" ", ink)] * (_TAB - len(columns) % _TAB)
            continue
        shown = letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}"
        size = get_character_cell_size(shown)
        if size == 0 and columns:
            at = -2 if columns[-1].text == "" else -1
            columns[at] = Column(columns[at].text + shown, ink)
        elif size == 0:
            columns.append(Column(" " + shown, ink))
        else:
            columns += [Column(shown, ink), Column("", ink)][:size]
    return columns


def cut_out(row: Row, first: int, width: int) -> Row:
    """The columns from `first` on, as many as fit. An end where something is missing shows …"""
    shown = row[first : first + width]
    if first and shown:
        shown[0] = Column("…", shown[0].ink)
    if first + width < len(row) and shown:
        shown[-1] = Column("…", shown[-1].ink)
    return _mended(shown)


def _mended(row: Row) -> Row:
    """The row with a space for each half that is left of a wide character."""

    def is_left_half(column: Column) -> bool:
        return column.text != "" and get_character_cell_size(column.text[0]) == 2

    mended = list(row)
    for at, column in enumerate(row):
        orphan = column.text == "" and (at == 0 or not is_left_half(row[at - 1]))
        halved = is_left_half(column) and (at + 1 == len(row) or row[at + 1].text != "")
        if orphan or halved:
            mended[at] = Column(" ", column.ink)
    return mended


def _status(overlay: Overlay, width: int) -> Row:
    note = columns_of(overlay.note)
    for figure in filter(None, overlay.figures):
        note += columns_of(f"{' · ' if note else ''}{figure}", "dim")
    return cut_out(note, 0, width)


def _block(diagnostic: Diagnostic, width: int) -> Iterator[Row]:
    """One diagnostic as `Diagnostic.render` puts it: words are wrapped, lines of the patch are cut."""
    lines = diagnostic.render().split("\n")
    severity = diagnostic.severity
    front, word, rest = lines[0].partition(f"{severity}: ")
    # Tabs count from the start of a text, and this one is put together.
    first = columns_of(front.expandtabs(1)) + columns_of(word, severity) + columns_of(rest.expandtabs(1))
    yield from _wrapped(first, width)
    marked = False
    for line, following in zip(lines[1:], [*lines[2:], ""], strict=True):
        if marked:
            marked = False
        elif _is_mark(following):
            marked = True
            yield from _excerpt(line, following, width, _MARKS[severity])
        else:
            yield from _wrapped(columns_of(line.expandtabs(1)), width)


def _is_mark(line: str) -> bool:
    gutter, bar, marks = line.partition(" | ")
    return bool(bar) and not gutter.strip() and set(marks.strip()) == {"^"}


def _excerpt(line: str, marks: str, width: int, ink: Ink) -> Iterator[Row]:
    """A line of the patch and the carets below it, both cut such that the first caret is seen."""
    body = marks.index(" | ") + len(" | ")
    text = line[body:]
    gutter = columns_of(line[:body])
    if len(gutter) + 8 > width:
        gutter = []
    room = width - len(gutter)
    first, last = marks.index("^") - body, len(marks) - body
    columns = columns_of(text)
    start, end = (len(columns_of(text[:at])) for at in (first, last))
    columns += [Column(" ")] * (start + 1 - len(columns))
    cut = max(0, min(start - room // 3, len(columns) - room))
    length = max(1, min(end - start, room - (start - cut)))
    yield gutter + cut_out(columns, cut, room)
    yield [Column(" ")] * (len(gutter) + start - cut) + [Column("^", ink)] * length


def _wrapped(row: Row, width: int) -> Iterator[Row]:
    """Words in as many rows as they need; a word is broken only if it would leave half of a row empty."""
    leading = next((at for at, column in enumerate(row) if column.text != " "), 0)
    indent = [Column(" ")] * min(leading + 2, width // 3)
    while len(row) > width:
        cut = next((at for at in range(width, width // 2, -1) if row[at].text == " "), width)
        if row[cut].text == "" and cut > 1:
            cut -= 1
        yield _mended(row[:cut])
        rest = next((at for at in range(cut, len(row)) if row[at].text != " "), None)
        if rest is None:
            return
        row = indent + row[rest:]
    yield _mended(row)
