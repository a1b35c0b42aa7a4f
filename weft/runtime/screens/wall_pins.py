"""Pinning the picture of a window to a wall by hand: corners that are dragged over a test card, and keys."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from weft.media.lettering import Face
from weft.runtime.screens.overlay import Grid, Panel, TextLine, TextRun, draw, face_size, grid_of, untabbed
from weft.runtime.screens.screen import Label, Picture, Rect
from weft.runtime.screens.warp import PLAIN, Warp, WarpError

_CORNERS = ("upper left", "upper right", "lower right", "lower left")

# Pixels of the frame: how near to a corner a press takes it, and how far keys move it without and with Shift.
_NEAR = 40.0
_STEP, _FAR_STEP = 1.0, 10.0

_ARROWS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
_LEVELS = {"equal": 0.02, "minus": -0.02}

_KEYS = (
    "Tab: next corner · arrows, Shift: farther", "R: turn · X, Y: mirror · + −: brightness", "0: straight · W: done"
)  # fmt: skip

_GROUND, _LINES, _EDGE = 26, 110, 255


class WallPins:
    """Takes the mouse and keys of one window while its test card is shown. `changed` gets each new warp, and `kept` the
    last one when a corner is let go or the card is closed."""

    def __init__(self, changed: Callable[[Warp], None], kept: Callable[[Warp], None]) -> None:
        self.is_open = False
        self._changed, self._kept = changed, kept
        self._warp = PLAIN
        self._picture, self._frame = (1, 1), (1, 1)
        self._corner = 0
        self._dragged: tuple[float, float] | None = None
        """From the pointer to the corner that is being dragged."""
        self._note = ""
        self._face = Face(1)
        self._drawn: object = None
        self._labels: tuple[Label, ...] = ()

    def open(self, warp: Warp, picture: tuple[int, int]) -> None:
        """Begins with a picture of this size, which lies like that."""
        self.is_open, self._warp, self._picture, self._note, self._dragged = True, warp, picture, "", None

    def close(self) -> None:
        """Ends, and keeps what was done."""
        if self.is_open:
            self.is_open = False
            self._kept(self._warp)

    def press(self, x: float, y: float) -> None:
        """Takes the nearest corner to a pixel of the frame, if one is near."""
        quad = self._warp.quad(self._picture, self._frame)
        away = [math.hypot(x - cx, y - cy) for cx, cy in quad]
        nearest = min(range(4), key=away.__getitem__)
        if away[nearest] <= _NEAR:
            self._corner = nearest
            self._dragged = quad[nearest][0] - x, quad[nearest][1] - y

    def move(self, x: float, y: float) -> None:
        """Drags the corner that was taken."""
        if self._dragged is not None:
            self._to(x + self._dragged[0], y + self._dragged[1])

    def release(self) -> None:
        """Lets the corner go."""
        if self._dragged is not None:
            self._dragged = None
            self._kept(self._warp)

    def key(self, name: str, shift: bool) -> bool:
        """Whether a key was for the pins."""
        if name in _ARROWS:
            x, y = self._warp.quad(self._picture, self._frame)[self._corner]
            step = _FAR_STEP if shift else _STEP
            self._to(x + _ARROWS[name][0] * step, y + _ARROWS[name][1] * step)
        elif name == "tab":
            self._corner = (self._corner + (3 if shift else 1)) % 4
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
            self._take(replace(self._warp, corners=None, turn=0, flip_x=False, flip_y=False))
        else:
            return False
        return True

    def _to(self, x: float, y: float) -> None:
        """Moves the corner to a pixel of the frame, unless the picture would fold over itself."""
        pinned = self._warp.pinned(self._picture, self._frame)
        try:
            self._take(pinned.with_corner(self._corner, x / self._frame[0], y / self._frame[1]))
        except WarpError as problem:
            self._note = f"not there: {problem}"

    def _take(self, warp: Warp) -> None:
        self._warp, self._note = warp, ""
        self._changed(warp)

    # --- what is shown ---

    def labels(self, frame: tuple[int, int], scale: float) -> tuple[Label, ...]:
        """A ring around the corner that the keys move, and what they do, in a frame (width, height) on a monitor with
        this content scale."""
        self._frame = frame
        wanted = frame, scale, self._warp, self._corner, self._note
        if wanted != self._drawn and all(frame):
            self._drawn, self._labels = wanted, tuple(self._made(frame, scale))
        return self._labels

    def _made(self, frame: tuple[int, int], scale: float) -> list[Label]:
        size = face_size(frame, scale)
        if size != self._face.size:
            self._face = Face(size)
        x, y = self._warp.quad(self._picture, frame)[self._corner]
        ring = _ring(max(8, size))
        half = len(ring) // 2
        made = [Label(Rect(round(x) - half, round(y) - half, len(ring), len(ring)), ring)]
        panel = _lay_out(self._words(), frame, grid_of(self._face))
        return [*made, Label(panel.place, draw(panel, self._face))] if panel is not None else made

    def _words(self) -> list[str]:
        warp = self._warp
        now = [f"turned {warp.turn}°"] * bool(warp.turn) + ["mirrored"] * (warp.flip_x or warp.flip_y)
        now += [f"brightness {warp.brightness:g}"] * (warp.brightness != 1)
        state = " · ".join([f"corner {_CORNERS[self._corner]}", *now])
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
