"""Draws what is written over the picture, and only when it has changed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from weft.media.lettering import Face
from weft.runtime.screens.frame import Label
from weft.runtime.screens.overlay_layout import Grid, Ink, Line, Panel, face_size, lay_out
from weft.runtime.screens.screen import Overlay, Picture

# Dark enough that all inks can be read on it over white, and light enough that a picture is seen to move behind it.
_GROUND = (13, 15, 20, 224)
# The letters that most texts need.
_USUAL = "".join(map(chr, range(32, 127))) + "│…·×"
_INKS: Mapping[Ink, tuple[int, int, int]] = {
    "text": (236, 239, 244),
    "dim": (164, 173, 187),
    "hint": (136, 192, 255),
    "error": (255, 122, 116),
    "warning": (250, 200, 99),
}


def grid_of(face: Face) -> Grid:
    """Cells of this face, with room for the line under a marked place."""
    return Grid(face.width, face.height + mark_height(face) + 1)


def mark_height(face: Face) -> int:
    """The thickness of the line under a marked place, in pixels."""
    return max(2, round(face.size / 8))


class Annotator:
    """Turns overlays into labels, drawing each panel once."""

    def __init__(self) -> None:
        self._face = Face(1)
        self._asked: tuple[Overlay, tuple[int, int], float] | None = None
        self._labels: dict[Panel, Label] = {}

    def labels(self, overlay: Overlay, frame: tuple[int, int], scale: float) -> tuple[Label, ...]:
        """What to lay over a frame of this width and height, on a monitor with this content scale."""
        asked = (overlay, frame, scale)
        if asked != self._asked:
            self._draw(overlay, frame, scale)
            self._asked = asked
        return tuple(self._labels.values())

    def _draw(self, overlay: Overlay, frame: tuple[int, int], scale: float) -> None:
        if overlay == Overlay():
            self._labels.clear()
            return
        size = face_size(frame, scale)
        if size != self._face.size:
            self._face = Face(size)
            self._face.draw(_USUAL)  # when an error comes, every millisecond counts more than when a window opens
            self._labels.clear()
        panels = lay_out(overlay, frame, grid_of(self._face)) if all(frame) else ()
        kept = self._labels
        self._labels = {panel: kept.get(panel) or Label(panel.place, draw(panel, self._face)) for panel in panels}


def draw(panel: Panel, face: Face) -> Picture:
    """The panel's pixels [height, width, RGBA], colours multiplied by alpha."""
    grid = grid_of(face)
    canvas = np.full((panel.place.height, panel.place.width), _ramp("text")[0], np.uint32)
    for line, top in zip(panel.lines, grid.tops(panel.lines), strict=False):
        _draw_line(canvas, line, top, grid, face)
    pixels = canvas.view(np.uint8).reshape(*canvas.shape, 4)
    _round_corners(pixels, grid.row // 3)
    return pixels


def _draw_line(canvas: NDArray[np.uint32], line: Line, top: int, grid: Grid, face: Face) -> None:
    left = grid.pad_x
    for run in line.runs:
        mask = face.draw(run.text)
        canvas[top : top + face.height, left : left + mask.shape[1]] = _ramp(run.ink)[mask]
        left += mask.shape[1]
    if line.mark:
        start = grid.pad_x + line.mark.start * grid.column
        end = start + line.mark.length * grid.column
        canvas[top + face.height : top + face.height + mark_height(face), start:end] = _ramp(line.mark.ink)[255]
    if line.edge:
        thickness = max(2, grid.column // 4)
        at = (grid.pad_x - thickness) // 2
        canvas[top : top + grid.height_of(line), at : at + thickness] = _ramp(line.edge)[255]


def _ramp(ink: Ink) -> NDArray[np.uint32]:
    """The pixel for each of the 256 coverages, from the bare ground to nothing but ink."""
    return _RAMPS[ink]


def _make_ramp(ink: tuple[int, int, int]) -> NDArray[np.uint32]:
    opacity = _GROUND[3] / 255
    ground = np.array([*(channel * opacity for channel in _GROUND[:3]), _GROUND[3]])
    share = np.linspace(0, 1, 256)[:, np.newaxis]
    colours = np.rint(ground * (1 - share) + np.array([*ink, 255]) * share).astype(np.uint8)
    return colours.view(np.uint32)[:, 0]


_RAMPS = {ink: _make_ramp(colour) for ink, colour in _INKS.items()}


def _round_corners(pixels: Picture, radius: int) -> None:
    radius = min(radius, pixels.shape[0] // 2, pixels.shape[1] // 2)
    if not radius:
        return
    steps = radius - 0.5 - np.arange(radius)
    inside = np.clip(radius + 0.5 - np.hypot(steps, steps[:, np.newaxis]), 0, 1)[..., np.newaxis]
    for flipped in (pixels, pixels[:, ::-1], pixels[::-1], pixels[::-1, ::-1]):
        corner = flipped[:radius, :radius]
        corner[...] = np.rint(corner * inside)
