"""The text that plays, over the picture: what is shown of it, and its pixels.

Each line has a dark plate that is as wide as its letters, so that the picture is seen around them. Three labels are
drawn: the letters with their plates, the values of parameters beside them, and the glow of what was edited. A label is
drawn when it changes, and sent to the card then; a frame only blends it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from weft.codes.rows import Severity
from weft.errors import blank_halves, columns as cells_of_text
from weft.media.lettering import Face
from weft.runtime.screens.overlay import (
    INKS, TAB, USUAL, Grid, Ink, TextLine, TextRun, face_size, grid_of, mark_height, ramp_of, untabbed
)
from weft.runtime.screens.panel_text import PanelCell
from weft.runtime.screens.screen import Label, Picture, Rect
from weft.runtime.screens.text_view import USUAL_STYLE, Corner, TextStyle, TextView, comment_start, first_line

# What the glow adds to red, green and blue at its beginning. Over a white picture, the dimmest letters still stand out
# by 4.5 to 1.
_GLOW = (16, 42, 76)
# The glow fades in this many steps.
_STEPS = 24
# Of a longer line, only the beginning is looked at.
_LONGEST = 1000
# The columns between a line and the values beside it.
_GAP = 2


@dataclass(frozen=True, slots=True)
class TextRoom:
    """The part of a frame (width, height) that is free for the text: what is above and below it in its corner is
    taken."""

    frame: tuple[int, int]
    above: int = 0
    below: int = 0


@dataclass(frozen=True, slots=True)
class TextPlace:
    """The part of a text that is shown: `count` lines from `first` on, cut to `columns`, and its rectangle."""

    first: int
    count: int
    columns: int
    place: Rect


def lay_out_text(view: TextView, room: TextRoom, grid: Grid, corner: Corner, before: int = 0) -> TextPlace | None:
    """Where the text is; None if there is no room for it. `before` is the first line that was shown."""
    width, height = room.frame
    above, below = (max(taken + grid.margin // 2, grid.margin) for taken in (room.above, room.below))
    columns = (width - 2 * grid.margin - 2 * grid.pad_x) // grid.column
    rows = (height - above - below) // grid.row
    if columns < 8 or rows < 1 or not view.lines:
        return None
    first = first_line(view, rows, before)
    shown = view.lines[first : first + rows]
    values = dict(view.values)
    longest = max(_width_of(line, values.get(first + at)) for at, line in enumerate(shown))
    columns = max(1, min(columns, longest))
    size = columns * grid.column + 2 * grid.pad_x, len(shown) * grid.row
    left = grid.margin if corner.endswith("left") else width - grid.margin - size[0]
    top = above if corner.startswith("top") else height - below - size[1]
    return TextPlace(first, len(shown), columns, Rect(left, top, *size))


def _width_of(line: str, value: str | None) -> int:
    return len(untabbed(line[:_LONGEST])) + (_GAP + len(value) if value is not None else 0)


# --- pixels ---------------------------------------------------------------------------------------------------------

_RAMPS: Mapping[Ink, NDArray[np.uint32]] = {ink: ramp_of(colour) for ink, colour in INKS.items()}


class TextPainter:
    """Turns views of the text into labels, drawing each of them when it changes."""

    def __init__(self, style: TextStyle = USUAL_STYLE) -> None:
        self.style = style
        self._face = Face(1)
        self._place: TextPlace | None = None
        self._first = 0
        self._drawn: tuple[object, ...] = ()
        self._letters: Label | None = None
        self._values: Label | None = None
        self._values_drawn: tuple[object, ...] = ()
        self._glow: Label | None = None
        self._glow_drawn: tuple[object, ...] = ()
        self._seen: tuple[TextView, TextRoom, float] | None = None

    def reserve(self, frame: tuple[int, int], scale: float) -> int:
        """The height below the text that is kept free for a note, in a frame of this width and height."""
        grid = self._grid(frame, scale)
        note = grid.size_of([TextLine((TextRun(" "),))])[1]
        # Faces of other sizes are rounded in another way.
        return ceil((note + 2 * grid.margin) / self.style.scale) + 4

    def labels(self, view: TextView, room: TextRoom, scale: float, now: float | None = None) -> tuple[Label, ...]:
        """The labels for a frame on a monitor with this content scale, at a moment of time.monotonic. Those that look
        as before are the same objects."""
        if self._seen is None or self._seen[0] is not view or self._seen[1:] != (room, scale):
            self._lay_out(view, room, scale)
            self._seen = view, room, scale
        if self._place is None:
            return ()
        self._draw_glow(view, self._place, time.monotonic() if now is None else now)
        return tuple(label for label in (self._letters, self._values, self._glow) if label is not None)

    def _grid(self, frame: tuple[int, int], scale: float) -> Grid:
        size = max(9, round(face_size(frame, scale) * self.style.scale))
        if size != self._face.size:
            self._face = Face(size)
            self._face.draw(USUAL)  # better now than with the first save
            self._drawn = self._values_drawn = self._glow_drawn = ()
        return grid_of(self._face)

    def _lay_out(self, view: TextView, room: TextRoom, scale: float) -> None:
        grid = self._grid(room.frame, scale) if all(room.frame) else None
        place = lay_out_text(view, room, grid, self.style.corner, self._first) if grid is not None else None
        self._place = place
        if place is None or grid is None:
            return
        self._first = place.first
        shown = view.lines[place.first : place.first + place.count]
        drawn = place, shown, view.marks
        if drawn != self._drawn:
            self._letters = Label(place.place, self._draw_letters(shown, view, place, grid))
            self._drawn = drawn
        values = {line - place.first: value for line, value in view.values}
        found = [(at, line, values[at]) for at, line in enumerate(shown) if at in values]
        if (place, found) != self._values_drawn:
            self._values = self._draw_values(found, place, grid)
            self._values_drawn = place, found

    def _draw_letters(self, shown: Sequence[str], view: TextView, place: TextPlace, grid: Grid) -> Picture:
        canvas = np.zeros((place.place.height, place.place.width), np.uint32)
        marks = dict(view.marks)
        for row, line in enumerate(shown):
            text = _cut(untabbed(line[:_LONGEST]), place.columns)
            severity = marks.get(place.first + row)
            if not text and severity is None:
                continue
            top = row * grid.row
            end = 2 * grid.pad_x + len(text) * grid.column
            canvas[top : top + grid.row, :end] = _RAMPS["text"][0]
            code = comment_start(text)
            self._write(canvas, top, grid.pad_x, text[:code], "text")
            self._write(canvas, top, grid.pad_x + code * grid.column, text[code:], "dim")
            if severity is not None:
                self._mark(canvas, top, text, severity, grid)
        return canvas.view(np.uint8).reshape(*canvas.shape, 4)

    def _write(self, canvas: NDArray[np.uint32], top: int, left: int, text: str, ink: Ink) -> None:
        mask = self._face.draw(text)
        canvas[top : top + self._face.height, left : left + mask.shape[1]] = _RAMPS[ink][mask]

    def _mark(self, canvas: NDArray[np.uint32], top: int, text: str, severity: Severity, grid: Grid) -> None:
        """A bar at the left of a line, and a line under its text."""
        ink, thickness = _RAMPS[severity][255], max(2, grid.column // 4)
        at = (grid.pad_x - thickness) // 2
        canvas[top : top + grid.row, at : at + thickness] = ink
        start, end = len(text) - len(text.lstrip()), len(text)
        under = top + self._face.height
        columns = slice(grid.pad_x + start * grid.column, grid.pad_x + max(end, start + 1) * grid.column)
        canvas[under : under + mark_height(self._face), columns] = ink

    def _draw_values(self, found: Sequence[tuple[int, str, str]], place: TextPlace, grid: Grid) -> Label | None:
        """The values beside lines, each with its row, in one label around all of them."""
        placed = []
        for row, line, value in found:
            start = len(untabbed(line[:_LONGEST])) + _GAP
            if start + len(value) <= place.columns:
                placed.append((row, start, value))
        if not placed:
            return None
        first, last = placed[0][0], placed[-1][0]
        left = min(start for _, start, _ in placed)
        columns = max(start + len(value) for _, start, value in placed) - left
        canvas = np.zeros(((last - first + 1) * grid.row, columns * grid.column + 2 * grid.pad_x), np.uint32)
        for row, start, value in placed:
            top, at = (row - first) * grid.row, (start - left) * grid.column
            # It begins where the plate of the line ends.
            begin, end = at + 2 * grid.pad_x - _GAP * grid.column, at + 2 * grid.pad_x + len(value) * grid.column
            canvas[top : top + grid.row, begin:end] = _RAMPS["text"][0]
            self._write(canvas, top, at + grid.pad_x, value, "hint")
        corner = place.place.left + left * grid.column, place.place.top + first * grid.row
        return Label(Rect(*corner, canvas.shape[1], canvas.shape[0]), canvas.view(np.uint8).reshape(*canvas.shape, 4))

    def _draw_glow(self, view: TextView, place: TextPlace, now: float) -> None:
        level = ceil(view.glow.strength(now) * _STEPS)
        drawn = level and (place, view.lines, view.values, view.glow.lines, level)
        if drawn and drawn == self._glow_drawn:
            return
        self._glow_drawn = drawn or ()
        self._glow = self._glowing(view, place, level / _STEPS) if level else None

    def _glowing(self, view: TextView, place: TextPlace, strength: float) -> Label | None:
        """What is added to the picture and the plates behind lines: a row of pixels for each of them."""
        grid = grid_of(self._face)
        rows = [line - place.first for line in view.glow.lines if 0 <= line - place.first < place.count]
        if not rows:
            return None
        first, last = min(rows), max(rows)
        pixels = np.zeros((last - first + 1, place.place.width, 4), np.uint8)
        colour, values = np.rint(np.array(_GLOW) * strength), dict(view.values)
        for row in rows:
            line = view.lines[place.first + row]
            width = min(_width_of(line, values.get(place.first + row)), place.columns)
            if width:
                pixels[row - first, : 2 * grid.pad_x + width * grid.column, :3] = colour
        rect = place.place
        top, height = rect.top + first * grid.row, len(pixels) * grid.row
        return Label(Rect(rect.left, top, rect.width, height), pixels)


def _cut(text: str, columns: int) -> str:
    return text if len(text) <= columns else text[: columns - 1] + "…"


def blend(picture: Picture, labels: Sequence[Label]) -> None:
    """Draws labels over a picture [height, width, RGBA], which changes, as a window does."""
    for label in labels:
        rect = label.place
        part = picture[max(rect.top, 0) : rect.top + rect.height, max(rect.left, 0) : rect.left + rect.width]
        pixels = label.pixels
        if len(pixels) != rect.height:
            pixels = np.repeat(pixels, rect.height // len(pixels), axis=0)
        pixels = pixels[: part.shape[0], : part.shape[1]]
        kept = part[..., :3].astype(np.uint16) * (255 - pixels[..., 3:].astype(np.uint16))
        part[..., :3] = np.minimum((kept + 127) // 255 + pixels[..., :3], 255)


class TextOverPictures:
    """Draws the text that plays over pictures of one size (width, height)."""

    def __init__(self, size: tuple[int, int]) -> None:
        self._room = TextRoom(size)
        self._painter = TextPainter()
        self._view = TextView()

    def show(self, view: TextView, style: TextStyle) -> None:
        """Shows this of the text from the next picture on."""
        self._view = view
        if style != self._painter.style:
            self._painter = TextPainter(style)

    def draw(self, picture: Picture) -> None:
        """Draws it over a picture [height, width, RGBA], which changes."""
        blend(picture, self._painter.labels(self._view, self._room, 1.0))


# --- a terminal -----------------------------------------------------------------------------------------------------


# The steps in which the glow fades in a terminal.
_LEVELS = 4


def text_cells(
    view: TextView, columns: int, rows: int, before: int, level: int
) -> tuple[int, list[list[PanelCell]]]:
    """The first line that is shown, and the rows of the text for a terminal with this much room for it. Each row is as
    wide as its line. `level` says how much its glow is left, from 0 to `_LEVELS`."""
    first = first_line(view, rows, before)
    marks, values = dict(view.marks), dict(view.values)
    strength = level / _LEVELS
    glowing = set(view.glow.lines) if level else set[int]()
    found = []
    for number, whole in enumerate(view.lines[first : first + rows], first):
        line = whole[:columns]
        code = len(cells_of_text(line[: comment_start(line)], TAB))
        text = cells_of_text(line, TAB)
        if len(text) > columns - 2:
            text = [*text[: columns - 3], "…"]
        text = blank_halves(text)
        ground = _added(_GROUND, strength) if number in glowing else _GROUND
        severity = marks.get(number)
        edge = PanelCell(" ", ground=ground) if severity is None else PanelCell("▎", INKS[severity], ground)
        cells = [PanelCell(each, INKS["text" if at < code else "dim"], ground) for at, each in enumerate(text)]
        value = values.get(number)
        if value is not None and len(text) + _GAP + len(value) <= columns - 2:
            cells += [PanelCell(each, INKS["hint"], ground) for each in " " * _GAP + value]
        found.append([edge, *cells, PanelCell(" ", ground=ground)] if cells or severity else [])
    return first, found


class TextInTerminal:
    """The text that plays, as rows of a terminal, which are made when it changes."""

    def __init__(self) -> None:
        self.rows: list[list[PanelCell]] = []
        self._first = 0
        self._made: tuple[TextView, int, int, int] | None = None

    def update(self, view: TextView, columns: int, rows: int, now: float) -> None:
        """Makes the rows for a terminal with this much room, at a moment of time.monotonic."""
        wanted = view, columns, rows, ceil(view.glow.strength(now) * _LEVELS)
        if self._made is None or self._made[0] is not view or self._made[1:] != wanted[1:]:
            self._made = wanted
            self._first, self.rows = text_cells(view, columns, rows, self._first, wanted[3])


_GROUND = (13, 15, 20)


def _added(colour: tuple[int, int, int], strength: float) -> tuple[int, int, int]:
    red, green, blue = (round(each + more * strength) for each, more in zip(colour, _GLOW, strict=True))
    return red, green, blue
