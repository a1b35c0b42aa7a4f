"""How a window's picture lies on a wall: pinned by its corners, turned and mirrored, in levels of its own, faded out
where it overlaps with that of another window, and masked.

Places in a frame are shares of its width and height, from the upper left corner. The upper left corner of a picture is
the one that is seen there, however it is turned.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.codes.rows import InternalError
from weft.runtime.screens.screen import Picture, Rect, letterbox

Point: TypeAlias = tuple[float, float]
Turn: TypeAlias = Literal[0, 90, 180, 270]

SQUARE: Final[tuple[Point, Point, Point, Point]] = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))
"""The corners of a picture in their order: upper left, upper right, lower right, lower left."""

USUAL_GAMMA = 2.2

# Corners may be this far outside of a frame, in frames. Masks have at most this many polygons and points.
_BEYOND = 2.0
_MOST_POLYGONS, _MOST_POINTS = 32, 256

GRID_SIDES = (2, 17)
"""The least and the most points of a side of a grid."""

# Each corner turns by at least this share of a right angle, or the picture is as good as a line.
_LEAST_TURN = 1e-3


class WarpError(InternalError):
    """A picture cannot lie like that. The message is the reason, in words for the player."""


@dataclass(frozen=True, slots=True)
class EdgeBlend:
    """How far the picture fades out at its edges, in shares of its width and height, and the gamma of the projectors:
    where two pictures overlap, their light adds up to that of one."""

    left: float = 0.0
    right: float = 0.0
    top: float = 0.0
    bottom: float = 0.0
    gamma: float = USUAL_GAMMA


@dataclass(frozen=True, slots=True)
class PictureMask:
    """A picture that masks a frame, over which it is stretched: its name, and which share of the light it lets through
    [height, width], from 0 to 255."""

    name: str
    light: Picture = field(compare=False, repr=False)


ReadMask: TypeAlias = Callable[[str], PictureMask]
"""What finds the picture of this name. Raises WarpError."""


@dataclass(frozen=True, slots=True)
class Warp:
    """How a picture lies in its frame. Without `corners`, it is as large as fits, with its own aspect. `turn` is
    clockwise, in degrees, and comes after mirroring. What is outside of all polygons of a `mask` is black, if it has
    any, and so is what is black in its `mask_picture`.

    A `grid` bends it: rows of points, each where the point that is evenly spaced between the corners goes, in shares of
    the picture as it lies between its corners.
    """

    corners: tuple[Point, ...] | None = None
    turn: int = 0
    flip_x: bool = False
    flip_y: bool = False
    brightness: float = 1.0
    black: float = 0.0
    blend: EdgeBlend = EdgeBlend()
    mask: tuple[tuple[Point, ...], ...] = ()
    grid: tuple[tuple[Point, ...], ...] = ()
    mask_picture: PictureMask | None = None

    @property
    def is_masked(self) -> bool:
        """Whether a part of it is black."""
        return bool(self.mask) or self.mask_picture is not None

    @property
    def is_plain(self) -> bool:
        """Whether it changes nothing."""
        return self == PLAIN

    def checked(self) -> Warp:
        """The warp itself. Raises WarpError for one that no picture can have."""
        if self.corners is not None:
            if len(self.corners) != 4 or not all(_is_near(*corner) for corner in self.corners):
                raise WarpError("a picture has four corners, each near its window")
            if not is_convex(self.corners):
                raise WarpError("the corners fold the picture over itself")
        if self.grid:
            self._check_grid()
        if self.turn not in (0, 90, 180, 270):
            raise WarpError("a picture is turned by 0, 90, 180 or 270 degrees")
        edges = self.blend.left, self.blend.right, self.blend.top, self.blend.bottom
        for what, value, low, high in (
            ("brightness", self.brightness, 0, 2), ("black", self.black, 0, 0.5), ("gamma", self.blend.gamma, 1, 4),
            *(("the part that is blended", edge, 0, 1) for edge in edges),
        ):  # fmt: skip
            if not low <= value <= high:  # false for NaN
                raise WarpError(f"{what} is {low:g} to {high:g}, not {value:g}")
        if len(self.mask) > _MOST_POLYGONS or any(not 3 <= len(each) <= _MOST_POINTS for each in self.mask):
            raise WarpError(f"a mask has up to {_MOST_POLYGONS} polygons of 3 to {_MOST_POINTS} points")
        if not all(_is_near(*point) for polygon in self.mask for point in polygon):
            raise WarpError("a mask is near its window")
        return self

    def _check_grid(self) -> None:
        rows, columns = len(self.grid), len(self.grid[0])
        least, most = GRID_SIDES
        if not (least <= rows <= most and least <= columns <= most and {*map(len, self.grid)} == {columns}):
            raise WarpError(f"a grid has {least} to {most} rows, each with {least} to {most} points")
        if not all(_is_near(*point) for row in self.grid for point in row):
            raise WarpError("a grid is near its picture")
        for upper, lower in pairwise(self.grid):
            for (a, b), (d, c) in zip(pairwise(upper), pairwise(lower), strict=True):
                if not is_convex((a, b, c, d)):
                    raise WarpError("the grid folds the picture over itself")

    def with_grid(self, sides: int) -> Warp:
        """The same with a straight grid of this many points a side; 0: with none."""
        steps = [at / (sides - 1) for at in range(sides)] if sides else []
        return replace(self, grid=tuple(tuple((x, y) for x in steps) for y in steps))

    def with_point(self, row: int, column: int, x: float, y: float) -> Warp:
        """The same with one point of the grid elsewhere. Raises WarpError if the picture would fold over itself."""
        rows = [list(each) for each in self.grid]
        rows[row][column] = x, y
        return replace(self, grid=tuple(map(tuple, rows))).checked()

    def quad(self, picture: tuple[int, int], frame: tuple[int, int]) -> tuple[Point, ...]:
        """The corners of the picture in pixels of the frame (each width, height)."""
        if self.corners is None:
            place = self.box(picture, frame)
            return tuple((place.left + x * place.width, place.top + y * place.height) for x, y in SQUARE)
        return tuple((x * frame[0], y * frame[1]) for x, y in self.corners)

    def box(self, picture: tuple[int, int], frame: tuple[int, int]) -> Rect:
        """The place of the picture without pinned corners."""
        return letterbox(picture if self.turn % 180 == 0 else picture[::-1], frame)

    def pinned(self, picture: tuple[int, int], frame: tuple[int, int]) -> Warp:
        """The same with corners, where they are now."""
        if self.corners is not None:
            return self
        quad = self.quad(picture, frame)
        return replace(self, corners=tuple((x / frame[0], y / frame[1]) for x, y in quad))

    def with_corner(self, number: int, x: float, y: float) -> Warp:
        """The same with one corner elsewhere. Raises WarpError if the picture would fold over itself."""
        corners = list(self.corners or SQUARE)
        corners[number] = x, y
        return replace(self, corners=tuple(corners)).checked()

    @property
    def turning(self) -> npt.NDArray[np.float64]:
        """The matrix [2, 3] that leads from a place in the picture as it is seen to the place in it as it is drawn."""
        a, b = {0: (1, 0), 90: (0, 1), 180: (-1, 0), 270: (0, -1)}[self.turn]
        # About the middle: a turn back, then mirrored.
        turned = np.array([[a, b], [-b, a]], float) * np.array([[-1 if self.flip_x else 1], [-1 if self.flip_y else 1]])
        return np.column_stack([turned, 0.5 - turned @ (0.5, 0.5)])

    def to_picture(
        self, picture: tuple[int, int], frame: tuple[int, int], x: float, y: float
    ) -> tuple[float, float]:
        """The place in the picture, 0…1, that is seen at a pixel of the frame."""
        s, t, w = from_quad(self.quad(picture, frame)) @ (x, y, 1)
        if not w:
            return math.inf, math.inf
        place = s / w, t / w
        u, v = self.turning @ (*(_unbent(self.grid, place) if self.grid else place), 1)
        return float(u), float(v)

    def from_picture(
        self, picture: tuple[int, int], frame: tuple[int, int], u: float, v: float
    ) -> tuple[float, float]:
        """The pixel of the frame at which a place in the picture is seen."""
        turning = self.turning
        s, t = np.linalg.solve(turning[:, :2], np.array([u, v]) - turning[:, 2])
        if self.grid:
            s, t = bent(self.grid, np.array([[s]]), np.array([[t]]))[0, 0]
        x, y, w = np.linalg.inv(from_quad(self.quad(picture, frame))) @ (s, t, 1)
        return float(x / w), float(y / w)


PLAIN = Warp()


def _is_near(x: float, y: float) -> bool:
    return all(math.isfinite(each) and -_BEYOND <= each <= 1 + _BEYOND for each in (x, y))


def is_convex(corners: Sequence[Point]) -> bool:
    """Whether four corners are those of a picture that is seen from the front, and not folded."""
    for at in range(4):
        (ax, ay), (bx, by), (cx, cy) = (corners[(at + step) % 4] for step in range(3))
        size = math.hypot(bx - ax, by - ay) * math.hypot(cx - bx, cy - by)
        if not (bx - ax) * (cy - by) - (by - ay) * (cx - bx) > _LEAST_TURN * size > 0:
            return False
    return True


def from_quad(quad: Sequence[Point]) -> npt.NDArray[np.float64]:
    """The matrix [3, 3] that leads from pixels of a frame to places in the picture as it is seen, 0…1, for a picture
    with these corners. (Heckbert, "Fundamentals of Texture Mapping and Image Warping", 1989.)"""
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = quad
    sx, sy = x0 - x1 + x2 - x3, y0 - y1 + y2 - y3
    ax, ay, bx, by = x1 - x2, y1 - y2, x3 - x2, y3 - y2
    area = ax * by - bx * ay
    g, h = (sx * by - bx * sy) / area, (ax * sy - sx * ay) / area
    onto = np.array([[x1 - x0 + g * x1, x3 - x0 + h * x3, x0], [y1 - y0 + g * y1, y3 - y0 + h * y3, y0], [g, h, 1.0]])
    return np.linalg.inv(onto)


# --- grids ---

# A place in a grid is searched for among this many points a side.
_FINE = 65


def bent(
    grid: Sequence[Sequence[Point]], s: npt.NDArray[np.float64], t: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Where a grid leads places of a picture, 0…1 [height, width] each; [height, width, 2]. It runs through its points
    in curves without kinks (Catmull and Rom, 1974)."""
    points = np.array(grid, float)
    across = _weights(s, points.shape[1])
    down = _weights(t, points.shape[0])
    found: npt.NDArray[np.float64] = np.einsum("hwr,hwc,rcp->hwp", down, across, points)
    return found


def _weights(places: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """The share of each of `count` points in places between the first and the last, 0…1 [height, width, count]."""
    at = np.clip(places, 0, 1) * (count - 1)
    first = np.minimum(np.floor(at), count - 2)
    part = at - first
    shares = (
        -0.5 * part + part**2 - 0.5 * part**3, 1 - 2.5 * part**2 + 1.5 * part**3,
        0.5 * part + 2 * part**2 - 1.5 * part**3, -0.5 * part**2 + 0.5 * part**3,
    )  # fmt: skip
    weights = np.zeros((*places.shape, count))
    for step, share in enumerate(shares, -1):
        number = first.astype(int) + step
        # Beyond the ends, the points continue in a straight line.
        for beyond, edge, inner in ((number < 0, 0, 1), (number >= count, count - 1, count - 2)):
            _add(weights, np.full_like(number, edge), share * 2 * beyond)
            _add(weights, np.full_like(number, inner), -share * beyond)
        _add(weights, np.clip(number, 0, count - 1), share * ((number >= 0) & (number < count)))
    return weights


def _add(weights: npt.NDArray[np.float64], number: npt.NDArray[np.int64], share: npt.NDArray[np.float64]) -> None:
    before = np.take_along_axis(weights, number[..., np.newaxis], axis=-1)
    np.put_along_axis(weights, number[..., np.newaxis], before + share[..., np.newaxis], axis=-1)


def _unbent(grid: Sequence[Sequence[Point]], place: tuple[float, float]) -> tuple[float, float]:
    """Which place of a picture a grid leads to one, about; places outside of the picture stay outside."""
    steps = np.linspace(0, 1, _FINE)
    s, t = np.meshgrid(steps, steps)
    away = np.hypot(*np.moveaxis(bent(grid, s, t) - place, -1, 0))
    row, column = np.unravel_index(int(np.argmin(away)), away.shape)
    if away[row, column] > 2 / _FINE:
        return place if not all(0 <= each <= 1 for each in place) else (-1.0, -1.0)
    return float(steps[column]), float(steps[row])


# --- as JSON, in which walls are kept ---

_EDGES = ("left", "right", "top", "bottom")


def warp_to_json(warp: Warp) -> dict[str, Any]:
    """What is not usual of a warp, as JSON."""
    found: dict[str, Any] = {}
    for each in fields(warp):
        value = getattr(warp, each.name)
        if value == getattr(PLAIN, each.name):
            continue
        if isinstance(value, EdgeBlend):
            value = {name: getattr(value, name) for name in (*_EDGES, "gamma")}
        if isinstance(value, PictureMask):
            value = value.name
        found[each.name] = value
    return found


def warp_from_json(data: Any, read: ReadMask | None = None) -> Warp:
    """The warp that `warp_to_json` wrote, or a person. `read` finds its picture. Raises WarpError."""
    if not isinstance(data, dict):
        raise WarpError("it is no list of settings")
    known = {each.name for each in fields(Warp)}
    for name in data:
        if name not in known:
            raise WarpError(f'"{name}" is no setting of a wall; there are {", ".join(sorted(known))}')
    try:
        made = dict(data)
        if made.get("corners") is not None:
            made["corners"] = _points(made["corners"])
        for name in ("mask", "grid"):
            if name in made:
                made[name] = tuple(_points(line) for line in made[name])
        if made.get("mask_picture") is not None:
            made["mask_picture"] = _mask_called(str(made["mask_picture"]), read)
        if "blend" in made:
            made["blend"] = EdgeBlend(**{str(name): float(value) for name, value in made["blend"].items()})
        for name in ("brightness", "black"):
            if name in made:
                made[name] = float(made[name])
        if not all(isinstance(made.get(name, False), bool) for name in ("flip_x", "flip_y")):
            raise WarpError("flip_x and flip_y are true or false")
        return Warp(**made).checked()
    except (TypeError, ValueError, AttributeError, OverflowError) as problem:
        raise WarpError("its settings are not of the right kinds") from problem


def _mask_called(name: str, read: ReadMask | None) -> PictureMask:
    if read is None:
        raise WarpError("there is no folder for the picture of a mask")
    return read(name)


def _points(data: Any) -> tuple[Point, ...]:
    return tuple((float(x), float(y)) for x, y in data)


# --- as an option: turn:90,flip:x,brightness:0.9 ---

OPTION_EXAMPLE = "beamer=turn:180,brightness:0.9,blend-right:0.2"


def warp_from_words(words: str, read: ReadMask | None = None) -> Warp:
    """The warp that a text like `turn:90,flip:x,blend-right:0.2` gives. `read` finds its picture. Raises WarpError."""
    made, blend = PLAIN, dict[str, float]()
    for entry in filter(None, (part.strip() for part in words.split(","))):
        name, colon, value = (part.strip() for part in entry.partition(":"))
        if name == "flip" and value in ("x", "y", "xy"):
            made = replace(made, flip_x="x" in value, flip_y="y" in value)
        elif name == "pin" and colon:
            numbers = [_number(name, each) for each in value.split("/")]
            if len(numbers) != 8:
                raise WarpError("pin takes the four corners, x/y/x/y/x/y/x/y from the upper left one clockwise")
            made = replace(made, corners=tuple(zip(numbers[::2], numbers[1::2], strict=True)))
        elif name == "mask" and value:
            made = replace(made, mask_picture=_mask_called(value, read))
        elif name == "turn":
            made = replace(made, turn=_number(name, value))  # type: ignore[arg-type]  # checked below
        elif name in ("brightness", "black"):
            made = replace(made, **{name: _number(name, value)})  # type: ignore[arg-type]
        elif name == "gamma" or name.removeprefix("blend-") in _EDGES:
            blend[name.removeprefix("blend-")] = _number(name, value)
        else:
            raise WarpError(f'"{entry}" is no setting of a wall; write it like {OPTION_EXAMPLE}')
    made = replace(made, blend=EdgeBlend(**blend)).checked()
    return replace(made, turn=int(made.turn))


def _number(name: str, value: str) -> float:
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise WarpError(f"{name} is a number, not {json.dumps(value)}")
    return found
