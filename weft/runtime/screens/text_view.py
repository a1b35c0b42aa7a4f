"""What an audience is shown of the text that plays: its lines, their marks, and which of them are seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from weft.codes.rows import Severity

Corner: TypeAlias = Literal["top-left", "top-right", "bottom-left", "bottom-right"]

CORNERS: tuple[Corner, ...] = ("top-left", "top-right", "bottom-left", "bottom-right")

# Lines above and below the one that was edited, if there is room for them.
_CONTEXT = 3


@dataclass(frozen=True, slots=True)
class TextStyle:
    """In which corner of a window the text is, and how large: 1 is the size of messages."""

    corner: Corner = "top-left"
    scale: float = 1.0


USUAL_STYLE = TextStyle()


@dataclass(frozen=True, slots=True)
class Glow:
    """Lines of a text, from 0, that glow for some `seconds` since a moment of time.monotonic."""

    lines: tuple[int, ...] = ()
    since: float = 0.0
    seconds: float = 1.0

    def strength(self, now: float) -> float:
        """1 at the beginning, 0 at the end and after it."""
        return max(0.0, 1 - (now - self.since) / self.seconds) if self.lines else 0.0


@dataclass(frozen=True, slots=True)
class TextView:
    """The lines of the text that plays. `edited` is the line at which it was edited last, and `cursor` the one at which
    an editor is, if that is known. `marks` are the lines with errors and warnings, and `values` are written beside
    their lines. All lines count from 0."""

    lines: tuple[str, ...] = ()
    edited: int = 0
    marks: tuple[tuple[int, Severity], ...] = ()
    glow: Glow = Glow()
    values: tuple[tuple[int, str], ...] = ()
    cursor: int | None = None

    @property
    def wanted(self) -> int:
        """The line that is to be seen: that of the cursor, or else the first one with an error, or else the one that
        was edited last."""
        if self.cursor is not None:
            return min(self.cursor, max(0, len(self.lines) - 1))
        errors = [line for line, severity in self.marks if severity == "error"]
        return min(errors, default=self.edited)


def first_line(view: TextView, rows: int, before: int) -> int:
    """The first line to show in this many rows. It stays the one `before` for as long as the wanted line is seen with a
    few lines around it."""
    last = max(0, len(view.lines) - rows)
    around = min(_CONTEXT, (rows - 1) // 2)
    wanted = view.wanted
    if before + around <= wanted < before + rows - around:
        return min(before, last)
    near_top = wanted < rows - around
    return 0 if near_top else min(max(0, wanted - rows // 2), last)


def comment_start(line: str) -> int:
    """The column at which the comment of a line begins, or its end."""
    is_quoted = False
    for at, letter in enumerate(line):
        if letter == '"':
            is_quoted = not is_quoted
        elif not is_quoted and line.startswith(("//", "/*"), at):
            return at
    return len(line)
