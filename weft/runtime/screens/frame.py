"""What lies where in a window's frame or on a monitor."""

from __future__ import annotations

from dataclasses import dataclass

from weft.runtime.screens.screen import Picture


@dataclass(frozen=True, slots=True)
class Rect:
    """A part of a frame or of the desktop, in its pixels; `top` counts from its upper edge."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """Something that lies over the picture: `pixels` fill the rectangle, their colours multiplied by their alpha."""

    place: Rect
    pixels: Picture


def letterbox(picture: tuple[int, int], frame: tuple[int, int]) -> Rect:
    """Where a picture lies in a frame (each width, height), as large as fits, centred, with its own aspect."""
    scale = min(frame[0] / picture[0], frame[1] / picture[1])
    width = max(1, round(picture[0] * scale))
    height = max(1, round(picture[1] * scale))
    return Rect((frame[0] - width) // 2, (frame[1] - height) // 2, width, height)


def fitted(picture: tuple[int, int], area: Rect | None) -> tuple[int, int]:
    """Width and height of a window for a picture: the picture's own, or what the area has room for, if one is known."""
    if area is None or (picture[0] <= area.width and picture[1] <= area.height):
        return picture
    fitting = letterbox(picture, (area.width, area.height))
    return fitting.width, fitting.height


def shared(one: Rect, other: Rect) -> int:
    """How many pixels two rectangles have in common."""
    across = min(one.left + one.width, other.left + other.width) - max(one.left, other.left)
    down = min(one.top + one.height, other.top + other.height) - max(one.top, other.top)
    return max(across, 0) * max(down, 0)
