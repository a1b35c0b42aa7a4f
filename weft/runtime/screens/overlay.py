"""The overlay of a window: the layout of its panels, and drawing them when they have changed.

The layout counts in cells of a monospaced face: a line is a row, a code point a column. Errors are at the lower left,
the note is below them, and the figures are in the upper right corner. A recording is in the upper left corner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from weft.errors import Diagnostic, Role, SourceLine, cut_out, visible
from weft.media.lettering import Face
from weft.runtime.screens.screen import Label, Overlay, Picture, Rect

Ink = Literal["text", "dim", "hint", "error", "warning"]

# Longer lines are hard to read even in a wide frame.
_MOST_COLUMNS = 96
# In a large frame, errors leave this share of the height free, but they may always take a few rows.
_PICTURE_SHARE = 1 / 3
_FEWEST_ROWS = 12
TAB = 4
"""Columns from one tab to the next."""


@dataclass(frozen=True, slots=True)
class TextRun:
    """Text of one colour."""

    text: str
    ink: Ink = "text"


@dataclass(frozen=True, slots=True)
class Mark:
    """An underline of `length` columns from column `start`."""

    start: int
    length: int
    ink: Ink


@dataclass(frozen=True, slots=True)
class TextLine:
    """One row, or a gap of half a row if there are no runs. `edge` is the colour of the bar at its left, if any."""

    runs: tuple[TextRun, ...] = ()
    mark: Mark | None = None
    edge: Ink | None = None

    @property
    def columns(self) -> int:
        return sum(len(run.text) for run in self.runs)


@dataclass(frozen=True, slots=True)
class Grid:
    """The sizes of a row and a column in pixels, and the distances that follow from them."""

    column: int
    row: int

    @property
    def pad_x(self) -> int:
        """From a panel's left or right edge to its text."""
        return self.column + self.column // 2

    @property
    def pad_y(self) -> int:
        """From a panel's upper or lower edge to its text."""
        return self.row // 3

    @property
    def margin(self) -> int:
        """From the frame's edge to a panel, and between panels."""
        return max(2, self.row // 2)

    def height_of(self, line: TextLine) -> int:
        return self.row if line.runs else self.row // 2

    def tops(self, lines: Iterable[TextLine]) -> list[int]:
        """The upper edges of the lines from the top of the panel, followed by the lower edge of the last line."""
        return list(accumulate(map(self.height_of, lines), initial=self.pad_y))

    def size_of(self, lines: Sequence[TextLine]) -> tuple[int, int]:
        """Width and height of a panel with these lines."""
        columns = max(line.columns for line in lines)
        return columns * self.column + 2 * self.pad_x, self.tops(lines)[-1] + self.pad_y


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines on a dark background, and their part of the frame."""

    place: Rect
    lines: tuple[TextLine, ...]


def face_size(frame: tuple[int, int], scale: float) -> int:
    """The em in pixels for a frame (width, height) on a monitor with this content scale.

    It grows with the frame. It is large enough to be read on that monitor, unless the frame is too small for a few such
    lines, and always large enough to be read at all.
    """
    width, height = frame
    wanted = max(height / 48, 13 * scale)
    return round(max(9.0, min(wanted, height / 15, width / 25)))


def lay_out(overlay: Overlay, frame: tuple[int, int], grid: Grid) -> tuple[Panel, ...]:
    """The panels for a frame of this width and height, without overlaps. If there is no room for all, the figures are
    left out first, then the note, and errors last."""
    columns = min(_MOST_COLUMNS, (frame[0] - 2 * grid.margin - 2 * grid.pad_x) // grid.column)
    room = frame[1] - 2 * grid.margin
    if columns < 3 or room < grid.row + 2 * grid.pad_y:
        return ()
    note = [TextLine((TextRun(_shortened(overlay.note, columns)),))] if overlay.note else []
    figures = [TextLine((TextRun(_shortened(text, columns), "dim"),)) for text in overlay.figures if text]
    recording = [TextLine(recording_runs(overlay, columns))] if overlay.recording else []
    most = max(round(frame[1] * (1 - _PICTURE_SHARE)), _FEWEST_ROWS * grid.row)
    for shown_note, shown_figures in ((note, figures), (note, []), ([], [])):
        above = max((shown_figures, recording), key=len)
        left = room - sum(grid.size_of(lines)[1] + grid.margin for lines in (shown_note, above) if lines)
        errors, fits = list[TextLine](), left >= -grid.margin
        if overlay.errors:
            errors, fits = _fitting(overlay, columns, min(left, most) - 2 * grid.pad_y, grid)
        if fits:
            break
    panels = []
    bottom = frame[1] - grid.margin
    for lines in (shown_note, errors):
        if lines:
            width, height = grid.size_of(lines)
            panels.append(Panel(Rect(grid.margin, bottom - height, width, height), tuple(lines)))
            bottom -= height + grid.margin
    start = grid.margin
    width, height = grid.size_of(recording) if recording else (0, 0)
    if recording and max(start + height - bottom, start + width + grid.margin - frame[0]) <= 0:
        panels.append(Panel(Rect(grid.margin, grid.margin, width, height), tuple(recording)))
        start += width + grid.margin
    if shown_figures and start + grid.size_of(shown_figures)[0] + grid.margin <= frame[0]:
        width, height = grid.size_of(shown_figures)
        panels.append(Panel(Rect(frame[0] - grid.margin - width, grid.margin, width, height), tuple(shown_figures)))
    return tuple(panels)


def recording_runs(overlay: Overlay, columns: int) -> tuple[TextRun, ...]:
    """A red dot, and the words about the recording."""
    return TextRun("● ", "error"), TextRun(_shortened(overlay.recording, max(1, columns - 2)))


def _fitting(overlay: Overlay, columns: int, room: int, grid: Grid) -> tuple[list[TextLine], bool]:
    """As many errors as fit into a height of `room`, and the number of the others; at least the start of the first.
    Also whether the whole of the first fits."""
    lines: list[TextLine] = []
    for shown, diagnostic in enumerate(overlay.errors):
        left = len(overlay.errors) - shown + overlay.left_out
        block = [TextLine()] * bool(lines) + _block(diagnostic, columns)
        if _tall(lines + block + _more(left - 1, columns), grid) > room:
            if lines:
                return lines + _more(left, columns), True
            more = _more(left - 1, columns)
            if _tall(block[:1] + more, grid) > room:
                more = []
            return block[: max(0, room - _tall(more, grid)) // grid.row] + more, False
        lines += block
    return lines + _more(overlay.left_out, columns), True


def _more(number: int, columns: int) -> list[TextLine]:
    return [TextLine(), TextLine((TextRun(_shortened(f"and {number} more", columns), "dim"),))] if number else []


def _tall(lines: list[TextLine], grid: Grid) -> int:
    return sum(map(grid.height_of, lines))


def _block(diagnostic: Diagnostic, columns: int) -> list[TextLine]:
    """One diagnostic: its message and place, the line of the text with the place underlined, related places, and the
    hint."""
    ink: Ink = diagnostic.severity
    inks: Mapping[Role, Ink] = {"severity": ink, "place": "dim", "related": "dim", "label": "hint"}
    lines: list[TextLine] = []
    for line in diagnostic.layout():
        # The place comes last, and is one word.
        parts = sorted((part for part in line.parts if part.role != "code"), key=lambda part: part.role == "place")
        words = [
            TextRun(word, inks.get(role, "text"))
            for role, text in parts
            for word in ([text] if role == "place" else text.split())
        ]
        lines += _wrapped(words, columns, "  " if lines else "")
        if line.source and parts[0].role == "severity":
            lines.append(_excerpt(line.source, columns, ink))
    return [TextLine(line.runs, line.mark, ink) for line in lines]


def _wrapped(words: list[TextRun], columns: int, indent: str) -> list[TextLine]:
    """Words in lines of at most `columns`. Every line begins with `indent` if that leaves room for a word."""
    indent = indent if len(indent) + 8 <= columns else ""
    lines: list[list[TextRun]] = []
    free, most = 0, columns - len(indent)
    for word in words:
        for at in range(0, len(word.text), most):
            piece = TextRun(word.text[at : at + most], word.ink)
            if lines and len(piece.text) < free:
                lines[-1] += [TextRun(" "), piece]
                free -= len(piece.text) + 1
            else:
                lines.append([TextRun(indent), piece] if indent else [piece])
                free = most - len(piece.text)
    return [TextLine(tuple(line)) for line in lines]


def _excerpt(line: SourceLine, columns: int, ink: Ink) -> TextLine:
    """A line of the text with a mark under the part that the span covers, or under the place where something is
    missing."""
    gutter = f"{line.number} │ "
    if columns < len(gutter) + 8:
        gutter = ""
    first, last = (len(untabbed(line.text[:at])) for at in (line.first, line.last))
    shown, start, length = cut_out(untabbed(line.text), first, max(1, last - first), max(3, columns - len(gutter)))
    text = "".join(shown).ljust(start + length)
    return TextLine((TextRun(gutter, "dim"), TextRun(text)), Mark(len(gutter) + start, length, ink))


def untabbed(text: str) -> str:
    """A line as it is shown: invisible characters as escapes, and tabs as spaces."""
    return "".join(c if c == "\t" else visible(c) for c in text).expandtabs(TAB)


def _shortened(text: str, columns: int) -> str:
    text = visible(" ".join(text.split()))
    return text if len(text) <= columns else text[: columns - 1] + "…"


# --- drawing ------------------------------------------------------------------------------------------------------

# Dark enough that all inks can be read over a white picture, and light enough that its movement shows through.
GROUND = (13, 15, 20, 224)
USUAL = "".join(map(chr, range(32, 127))) + "│…·×●"
"""The letters of most texts."""

INKS: Mapping[Ink, tuple[int, int, int]] = {
    "text": (236, 239, 244), "dim": (164, 173, 187), "hint": (136, 192, 255), "error": (255, 122, 116),
    "warning": (250, 200, 99),
}  # fmt: skip


def grid_of(face: Face) -> Grid:
    """Cells of this face, with room for an underline."""
    return Grid(face.width, face.height + mark_height(face) + 1)


def mark_height(face: Face) -> int:
    """The thickness of an underline, in pixels."""
    return max(2, round(face.size / 8))


class Annotator:
    """Turns overlays into labels, drawing each panel once."""

    def __init__(self) -> None:
        self._face = Face(1)
        self._drawn: tuple[Overlay, tuple[int, int], float] | None = None
        self._labels: dict[Panel, Label] = {}

    def labels(self, overlay: Overlay, frame: tuple[int, int], scale: float) -> tuple[Label, ...]:
        """The labels for a frame of this width and height, on a monitor with this content scale."""
        wanted = (overlay, frame, scale)
        if wanted != self._drawn:
            self._draw(overlay, frame, scale)
            self._drawn = wanted
        return tuple(self._labels.values())

    def _draw(self, overlay: Overlay, frame: tuple[int, int], scale: float) -> None:
        if overlay == Overlay():
            self._labels.clear()
            return
        size = face_size(frame, scale)
        if size != self._face.size:
            self._face = Face(size)
            self._face.draw(USUAL)  # a delay now is better than one when an error appears
            self._labels.clear()
        panels = lay_out(overlay, frame, grid_of(self._face)) if all(frame) else ()
        kept = self._labels
        self._labels = {panel: kept.get(panel) or Label(panel.place, draw(panel, self._face)) for panel in panels}


def draw(panel: Panel, face: Face) -> Picture:
    """The panel's pixels [height, width, RGBA], colours multiplied by alpha."""
    grid = grid_of(face)
    canvas = np.full((panel.place.height, panel.place.width), _RAMPS["text"][0], np.uint32)
    for line, top in zip(panel.lines, grid.tops(panel.lines), strict=False):
        _draw_line(canvas, line, top, grid, face)
    pixels = canvas.view(np.uint8).reshape(*canvas.shape, 4)
    round_corners(pixels, grid.row // 3)
    return pixels


def _draw_line(canvas: NDArray[np.uint32], line: TextLine, top: int, grid: Grid, face: Face) -> None:
    left = grid.pad_x
    for run in line.runs:
        mask = face.draw(run.text)
        canvas[top : top + face.height, left : left + mask.shape[1]] = _RAMPS[run.ink][mask]
        left += mask.shape[1]
    if line.mark:
        start = grid.pad_x + line.mark.start * grid.column
        end = start + line.mark.length * grid.column
        canvas[top + face.height : top + face.height + mark_height(face), start:end] = _RAMPS[line.mark.ink][255]
    if line.edge:
        thickness = max(2, grid.column // 4)
        at = (grid.pad_x - thickness) // 2
        canvas[top : top + grid.height_of(line), at : at + thickness] = _RAMPS[line.edge][255]


@cache
def ramp_of(ink: tuple[int, int, int]) -> NDArray[np.uint32]:
    """The pixels for the 256 coverages, from only the background to only ink."""
    opacity = GROUND[3] / 255
    ground = np.array([*(channel * opacity for channel in GROUND[:3]), GROUND[3]])
    share = np.linspace(0, 1, 256)[:, np.newaxis]
    colours = np.rint(ground * (1 - share) + np.array([*ink, 255]) * share).astype(np.uint8)
    return colours.view(np.uint32)[:, 0]


_RAMPS = {ink: ramp_of(colour) for ink, colour in INKS.items()}


def round_corners(pixels: Picture, radius: int) -> None:
    radius = min(radius, pixels.shape[0] // 2, pixels.shape[1] // 2)
    if not radius:
        return
    steps = radius - 0.5 - np.arange(radius)
    inside = np.clip(radius + 0.5 - np.hypot(steps, steps[:, np.newaxis]), 0, 1)[..., np.newaxis]
    for flipped in (pixels, pixels[:, ::-1], pixels[::-1], pixels[::-1, ::-1]):
        corner = flipped[:radius, :radius]
        corner[...] = np.rint(corner * inside)
