"""What stands below the picture in a terminal: errors, and one line with the note and the figures.

All text is laid out in the columns of the terminal, where a character may take two columns or none. Nothing of it can
be taken for a command by the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from weft.errors import Diagnostic, Severity
from weft.runtime.screens.screen import Overlay
from weft.wording import columns, mended

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
# What stands between figures.
_BETWEEN = " · "


@dataclass(frozen=True, slots=True)
class Column:
    """What one column shows: a character with the marks that belong to it, or nothing for the right half of a wide
    character."""

    text: str
    ink: Ink = "text"


Row = list[Column]


def rows_of(overlay: Overlay, width: int, most: int) -> list[Row]:
    """The rows for a terminal of this width, at most `most` of them: the errors, then the note with the figures."""
    below = _status(overlay, width)
    if overlay.errors:
        below = below[: max(1, most // 3)]
    errors = [row for diagnostic in overlay.errors for row in _block(diagnostic, width)]
    room = most - len(below)
    if len(errors) > room or (overlay.left_out and errors):
        kept = min(max(room - 1, 0), len(errors))
        hidden = [f"{len(errors) - kept} more lines"] if kept < len(errors) else []
        hidden += [f"{overlay.left_out} more errors and warnings"] if overlay.left_out else []
        more = columns_of(f"… {' and '.join(hidden)}", "dim")
        errors = [*errors[:kept], cut_out(more, 0, width)][: max(room, 0)]
    return [*errors, *below][:most]


def painted(row: Row, colourful: bool) -> bytes:
    """The row as a terminal takes it, in UTF-8. Colours are left out if it is not to be colourful."""
    parts = []
    for ink, same in groupby(row, key=lambda column: column.ink):
        text = "".join(column.text for column in same).encode(errors="replace")
        style = _STYLES[ink] if colourful else b""
        parts.append(b"\x1b[%bm%b\x1b[0m" % (style, text) if style else text)
    return b"".join(parts)


def columns_of(text: str, ink: Ink = "text") -> Row:
    """One entry for each column that a text takes from the left edge on. What cannot be seen is shown as its escape."""
    return [Column(shown, ink) for shown in columns(text, _TAB)]


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
    whole = mended([column.text for column in row])
    return [Column(text, column.ink) for column, text in zip(row, whole, strict=True)]


def _status(overlay: Overlay, width: int) -> list[Row]:
    """The note and the figures in as many rows as they need, broken only between figures."""
    pieces = [columns_of(overlay.note)] if overlay.note else []
    pieces += [columns_of(part, "dim") for figure in overlay.figures if figure for part in figure.split(_BETWEEN)]
    rows: list[Row] = []
    for piece in pieces:
        between = columns_of(_BETWEEN, "dim")
        if rows and len(rows[-1]) + len(between) + len(piece) <= width:
            rows[-1] += between + piece
        else:
            rows.append(cut_out(piece, 0, width))
    return rows


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
    gutter = columns_of(line[:body])
    if len(gutter) + 8 > width:
        gutter = []
    room = width - len(gutter)
    row = columns_of(line[body:])
    start, count = len(columns_of(marks[body : marks.index("^")])), marks.count("^")
    row += [Column(" ")] * (start + 1 - len(row))
    cut = max(0, min(start - room // 3, len(row) - room))
    length = max(1, min(count, room - (start - cut)))
    yield gutter + cut_out(row, cut, room)
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
