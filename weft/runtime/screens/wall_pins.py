"""Pinning the picture of a window to a wall by hand: corners that are dragged over a test card, and keys."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from weft.media.lettering import Face
from weft.runtime.screens.overlay import Grid, Panel, TextLine, TextRun, draw, face_size, grid_of, untabbed
from weft.runtime.screens.screen import Label, Picture, Rect
from weft.runtime.screens.warp import PLAIN, Point, Warp, WarpError, from_quad

_CORNERS = ("upper left", "upper right", "lower right", "lower left")

# How near to a corner a press takes it, in pixels of a monitor with the content scale 1; and how far keys move it
# without and with Shift, in pixels of the frame.
_NEAR = 40.0
_STEP, _FAR_STEP = 1.0, 10.0

_ARROWS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
# The points of a side of the grids that G gives, one after another.
_GRIDS = (3, 5, 9)

_LEVELS = {"equal": 0.02, "minus": -0.02}

_KEYS = (
    "Tab: next point · arrows, Shift: farther", "R: turn · X, Y: mirror · + −: brightness",
    "G: grid · 0: straight · W: done",
)  # fmt: skip

_GROUND, _LINES, _EDGE = 26, 110, 255


class WallPins:
    """Takes the mouse and keys of one window while its test card is shown. `changed` gets each new warp, and `kept` the
    last one when a corner is let go or the card is closed, if it is another one than before."""

    def __init__(self, changed: Callable[[Warp], None], kept: Callable[[Warp], None]) -> None:
        self.is_open = False
        self._changed, self._kept = changed, kept
        self._warp = self._before = PLAIN
        self._picture, self._frame, self._scale = (1, 1), (1, 1), 1.0
        self._point = 0
        """The corner that is moved, or the point of the grid."""
        self._dragged: tuple[float, float] | None = None
        """From the pointer to the point that is being dragged."""
        self._note = ""
        self._face = Face(1)
        self._drawn: object = None
        self._labels: tuple[Label, ...] = ()

    def open(self, warp: Warp, picture: tuple[int, int]) -> None:
        """Begins with a picture of this size, which lies like that."""
        self.is_open, self._warp, self._picture, self._note, self._dragged = True, warp, picture, "", None
        self._before = warp
        self._point = 0

    def close(self) -> None:
        """Ends, and keeps what was done."""
        if self.is_open:
            self.is_open = False
            self._keep()

    def press(self, x: float, y: float) -> None:
        """Takes the nearest point to a pixel of the frame, if one is near."""
        points = self._points
        away = [math.hypot(x - px, y - py) for px, py in points]
        nearest = min(range(len(points)), key=away.__getitem__)
        if away[nearest] <= _NEAR * self._scale:
            self._point = nearest
            self._dragged = points[nearest][0] - x, points[nearest][1] - y

    @property
    def _points(self) -> list[Point]:
        """The corners, or the points of the grid row by row, in pixels of the frame."""
        quad = self._warp.quad(self._picture, self._frame)
        if not self._warp.grid:
            return list(quad)
        flat = [(x, y, 1.0) for row in self._warp.grid for x, y in row]
        there = np.linalg.inv(from_quad(quad)) @ np.array(flat).T
        return [(float(x / w), float(y / w)) for x, y, w in there.T]

    def move(self, x: float, y: float) -> None:
        """Drags the point that was taken."""
        if self._dragged is not None:
            self._to(x + self._dragged[0], y + self._dragged[1])

    def release(self) -> None:
        """Lets the point go."""
        if self._dragged is not None:
            self._dragged = None
            self._keep()

    def _keep(self) -> None:
        if self._warp != self._before:
            self._before = self._warp
            self._kept(self._warp)

    def key(self, name: str, shift: bool) -> bool:
        """Whether a key was for the pins."""
        if name in _ARROWS:
            x, y = self._points[self._point]
            step = _FAR_STEP if shift else _STEP
            self._to(x + _ARROWS[name][0] * step, y + _ARROWS[name][1] * step)
        elif name == "tab":
            self._point = (self._point + (-1 if shift else 1)) % len(self._points)
        elif name == "g":
            now = len(self._warp.grid)
            self._point = 0
            self._take(self._warp.with_grid(next((sides for sides in _GRIDS if sides > now), 0)))
        elif name == "r":
            self._take(replace(self._warp, turn=(self._warp.turn + 90) % 360))
        elif name == "x":
            self._take(replace(self._warp, flip_x=not self._warp.flip_x))
        elif name == "y":
            self._take(replace(self._warp, flip_y=not self._warp.flip_y))
        elif name in _LEVELS:
            level = round(self._warp.brightness + _LEVELS[name], 2)
            self._take(replace(self._warp, brightness=min(max(level, 0.1), 2.0)))
        elif name == "0":
            self._point = 0
            self._take(replace(self._warp, corners=None, turn=0, flip_x=False, flip_y=False, grid=()))
        else:
            return False
        return True

    def _to(self, x: float, y: float) -> None:
        """Moves the point to a pixel of the frame, unless the picture would fold over itself."""
        pinned = self._warp.pinned(self._picture, self._frame)
        try:
            if pinned.grid:
                s, t, w = from_quad(pinned.quad(self._picture, self._frame)) @ (x, y, 1)
                row, column = divmod(self._point, len(pinned.grid[0]))
                self._take(pinned.with_point(row, column, float(s / w), float(t / w)))
            else:
                self._take(pinned.with_corner(self._point, x / self._frame[0], y / self._frame[1]))
        except WarpError as problem:
            self._note = f"not there: {problem}"

    def _take(self, warp: Warp) -> None:
        self._warp, self._note = warp, ""
        self._changed(warp)

    # --- what is shown ---

    def labels(self, frame: tuple[int, int], scale: float) -> tuple[Label, ...]:
        """A ring around the point that the keys move, and what they do, in a frame (width, height) on a monitor with
        this content scale."""
        self._frame, self._scale = frame, scale
        wanted = frame, scale, self._warp, self._point, self._note
        if wanted != self._drawn and all(frame):
            self._drawn, self._labels = wanted, tuple(self._made(frame, scale))
        return self._labels

    def _made(self, frame: tuple[int, int], scale: float) -> list[Label]:
        size = face_size(frame, scale)
        if size != self._face.size:
            self._face = Face(size)
        x, y = self._points[self._point]
        ring = _ring(max(8, size))
        half = len(ring) // 2
        made = [Label(Rect(round(x) - half, round(y) - half, len(ring), len(ring)), ring)]
        panel = _lay_out(self._words(), frame, grid_of(self._face))
        return [*made, Label(panel.place, draw(panel, self._face))] if panel is not None else made

    def _words(self) -> list[str]:
        warp = self._warp
        now = [f"turned {warp.turn}°"] * bool(warp.turn) + ["mirrored"] * (warp.flip_x or warp.flip_y)
        now += [f"brightness {warp.brightness:g}"] * (warp.brightness != 1)
        chosen = f"corner {_CORNERS[self._point % 4]}"
        if warp.grid:
            row, column = divmod(self._point, len(warp.grid[0]))
            chosen = f"point {column + 1} of row {row + 1}, grid of {len(warp.grid[0])}×{len(warp.grid)}"
        state = " · ".join([chosen, *now])
        return [self._note or state, *_KEYS]


def _lay_out(words: list[str], frame: tuple[int, int], grid: Grid) -> Panel | None:
    """The panel in the middle of the frame; None if there is no room."""
    columns = (frame[0] - 2 * grid.margin - 2 * grid.pad_x) // grid.column
    if columns < 8:
        return None
    lines = [TextLine((TextRun(untabbed(each)[:columns], "dim" if at else "text"),)) for at, each in enumerate(words)]
    width, height = grid.size_of(lines)
    if height > frame[1] - 2 * grid.margin:
        return None
    return Panel(Rect((frame[0] - width) // 2, (frame[1] - height) // 2, width, height), tuple(lines))


def _ring(radius: int) -> Picture:
    steps = np.arange(-radius - 2, radius + 3)
    share = np.clip(2.5 - np.abs(np.hypot(steps, steps[:, np.newaxis]) - radius), 0, 1)[..., np.newaxis]
    made: Picture = np.rint(share * np.array([255, 200, 60, 255])).astype(np.uint8)
    return made


def card_of(size: tuple[int, int], words: str) -> Picture:
    """A test card of a size (width, height): its outermost pixels are white, with a grid of squares, a circle and
    diagonals, and words in its middle."""
    width, height = size
    x, y = np.arange(width) + 0.5, (np.arange(height) + 0.5)[:, np.newaxis]
    step = max(8.0, width / 16)
    card = np.full((height, width), _GROUND, np.uint8)
    for places, side in ((x, width), (y, height)):
        distances = np.abs((places - side / 2 + step / 2) % step - step / 2)
        card[np.broadcast_to(distances < 0.75, card.shape)] = _LINES
    away = np.hypot(x - width / 2, y - height / 2)
    card[np.abs(away - min(width, height) * 0.4) < 1.2] = _EDGE
    for side in (1, -1):
        slope = (x / width - 0.5) * side - (y / height - 0.5)
        card[np.abs(slope) * min(width, height) < 0.7] = _LINES
    card[[0, -1], :] = card[:, [0, -1]] = _EDGE
    made = np.empty((height, width, 4), np.uint8)
    made[..., :3], made[..., 3] = card[..., np.newaxis], 255
    # An upper left corner that is seen to be one.
    reach = max(3, min(width, height) // 12)
    made[1:reach, 1:reach, :3] = (255, 90, 80)
    letters = Face(max(9, height // 16)).draw(words)[: height // 2, : width - 2]
    top, left = (height // 4 - letters.shape[0] // 2, (width - letters.shape[1]) // 2)
    part = made[top : top + letters.shape[0], left : left + letters.shape[1], :3]
    np.maximum(part, letters[..., np.newaxis], out=part)
    return made
