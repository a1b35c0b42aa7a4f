"""What is said about a pixel, over the picture: a ring around the pixel, and a panel on the other side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weft.media.lettering import Face
from weft.runtime.screens.overlay import USUAL, Grid, Ink, Panel, TextLine, TextRun, draw, face_size, grid_of, untabbed
from weft.runtime.screens.screen import ExplainedPixel, Label, Picture, Rect

_INKS: Mapping[str, Ink] = {"heading": "text", "plain": "text", "value": "hint", "strong": "warning", "dim": "dim"}

# The letters are a little smaller than those of messages, and never take more than this share of the width.
_SIZE = 0.85
_WIDTH_SHARE = 0.62

_LEAST_COLUMNS, _MOST_COLUMNS = 12, 96


class ExplainedPainter:
    """Turns what is said about a pixel into labels, drawing them when it changes."""

    def __init__(self) -> None:
        self._face = Face(1)
        self._drawn: object = None
        self._labels: tuple[Label, ...] = ()

    def labels(
        self, pixel: ExplainedPixel | None, picture: Rect, frame: tuple[int, int], scale: float
    ) -> tuple[Label, ...]:
        """The labels for a frame (width, height) in which the picture has this place, on a monitor with this content
        scale."""
        wanted = pixel, picture, frame, scale
        if wanted != self._drawn:
            self._drawn = wanted
            self._labels = self._made(pixel, picture, frame, scale) if pixel is not None and all(frame) else ()
        return self._labels

    def room(self, frame: tuple[int, int], scale: float) -> tuple[int, int]:
        """The columns and rows that there are for what is said, in a frame of this size."""
        self._take_face(frame, scale)
        return _room(frame, grid_of(self._face))

    def _take_face(self, frame: tuple[int, int], scale: float) -> int:
        """Has letters for a frame, and returns their size."""
        size = max(9, round(face_size(frame, scale) * _SIZE))
        if size != self._face.size:
            self._face = Face(size)
            self._face.draw(USUAL)
        return size

    def _made(self, pixel: ExplainedPixel, picture: Rect, frame: tuple[int, int], scale: float) -> tuple[Label, ...]:
        size = self._take_face(frame, scale)
        x, y = round(picture.left + pixel.x * picture.width), round(picture.top + pixel.y * picture.height)
        ring = _ring(max(6, size // 2))
        half = len(ring) // 2
        ringed = Label(Rect(x - half, y - half, len(ring), len(ring)), ring)
        panel = lay_out_explained(pixel, frame, grid_of(self._face), x > frame[0] // 2)
        return (ringed, Label(panel.place, draw(panel, self._face))) if panel is not None else (ringed,)


def lay_out_explained(pixel: ExplainedPixel, frame: tuple[int, int], grid: Grid, is_left: bool) -> Panel | None:
    """The panel, at the left or right edge of a frame (width, height), in the middle of its height; None if there is no
    room for it. Lines are cut where there is none."""
    columns, rows = _room(frame, grid)
    if columns < _LEAST_COLUMNS or rows < 1:
        return None
    lines = [_line(row, columns) for row in pixel.rows]
    while sum(map(grid.height_of, lines)) > rows * grid.row:
        del lines[-1]
    width, height = grid.size_of(lines)
    left = grid.margin if is_left else frame[0] - grid.margin - width
    return Panel(Rect(left, (frame[1] - height) // 2, width, height), tuple(lines))


def _room(frame: tuple[int, int], grid: Grid) -> tuple[int, int]:
    columns = int(frame[0] * _WIDTH_SHARE - 2 * grid.pad_x) // grid.column
    return min(columns, _MOST_COLUMNS), (frame[1] - 2 * grid.margin - 2 * grid.pad_y) // grid.row


def _line(row: tuple[tuple[str, str], ...], columns: int) -> TextLine:
    runs: list[TextRun] = []
    left = columns
    for role, text in row:
        shown = untabbed(text)
        if len(shown) > left:
            shown = shown[: max(0, left - 1)] + "…" if left else ""
        if shown:
            runs.append(TextRun(shown, _INKS.get(role, "text")))
        left -= len(shown)
    return TextLine(tuple(runs))


def _ring(radius: int) -> Picture:
    """A bright ring with a dark edge, seen over any picture, [size, size, RGBA], colours multiplied by alpha."""
    steps = np.arange(-radius - 2, radius + 3)
    away = np.abs(np.hypot(steps, steps[:, np.newaxis]) - radius)
    dark, bright = (np.clip(width + 0.5 - away, 0, 1)[..., np.newaxis] for width in (1.8, 0.6))
    made: Picture = np.rint(np.concatenate([np.repeat(bright, 3, axis=2), dark], axis=2) * 255).astype(np.uint8)
    return made
