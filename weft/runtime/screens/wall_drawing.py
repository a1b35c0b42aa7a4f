"""What a graphics card is given to show a picture on a wall: triangles, a few numbers, and a mask. All that is hard is
computed here, once for each change; the shaders of OpenGL, WebGPU and Metal are a few lines that do the same.

Light adds up where projectors overlap, and a projector makes light of a level by its gamma. So the share of the light
is taken to the power of one over gamma. Of two pictures that overlap, these shares are f(t) and f(1 - t), which are 1
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.runtime.screens.screen import Picture
from weft.runtime.screens.warp import Point, Warp, bent, from_quad

# The cells of a bent picture, in each direction: between them, it is drawn straight.
_CELLS = 32

# A mask is drawn with this many samples a pixel in each direction.
_FINE = 2

# The corners of the two triangles of a cell, in cells.
_TRIANGLES = ((0, 0), (1, 0), (1, 1), (0, 0), (1, 1), (0, 1))


@dataclass(frozen=True, slots=True, eq=False)
class WallParts:
    """What draws a picture of one size on a wall. `corners` has a row for each corner of its triangles: the position as
    shaders give it (x, y, 0, w; y upwards), its place in the picture as it is seen, and that in the picture as it is
    drawn. `numbers` are how far it fades out on the left, top, right and bottom; the level of black, the levels from
    there to white, one over gamma, and whether there is a mask. `mask` is [height, width] of the frame."""

    corners: npt.NDArray[np.float32]
    numbers: npt.NDArray[np.float32]
    mask: Picture | None


@dataclass(slots=True)
class WallDrawing:
    """The parts of a warp, which are computed again only if something has changed."""

    _made: tuple[object, WallParts | None] = (None, None)
    _masked: tuple[object, Picture | None] = field(default=(None, None))

    def parts(self, warp: Warp, size: tuple[int, int], frame: tuple[int, int]) -> WallParts:
        """What draws a picture of a size (width, height) in a frame. The same object as before if nothing has
        changed."""
        wanted = warp, size, frame
        known, made = self._made
        if made is None or known != wanted:
            made = WallParts(corners_of(warp, size, frame), _numbers(warp), self._mask(warp, frame))
            self._made = wanted, made
        return made

    def _mask(self, warp: Warp, frame: tuple[int, int]) -> Picture | None:
        if not warp.is_masked:
            return None
        wanted = warp.mask, warp.mask_picture, frame
        if self._masked[0] != wanted:
            self._masked = wanted, mask_pixels(warp, frame)
        return self._masked[1]


def corners_of(warp: Warp, size: tuple[int, int], frame: tuple[int, int]) -> npt.NDArray[np.float32]:
    """See `WallParts.corners`; [corners, 8]."""
    cells = _CELLS if warp.grid else 1
    steps = np.linspace(0, 1, cells + 1)
    seen = np.stack(np.meshgrid(steps, steps), axis=-1)
    placed = bent(warp.grid, seen[..., 0], seen[..., 1]) if warp.grid else seen
    quad = warp.quad(size, frame)
    there = _with_one(placed) @ (np.linalg.inv(from_quad(quad)) * _in_front(quad)).T
    x, y, w = np.moveaxis(there, -1, 0)
    position = np.stack([2 * x / frame[0] - w, w - 2 * y / frame[1], np.zeros_like(w), w], axis=-1)
    nodes = np.concatenate([position, seen, _with_one(seen) @ warp.turning.T], axis=-1)
    corners = [nodes[down : down + cells, across : across + cells] for across, down in _TRIANGLES]
    return np.ascontiguousarray(np.stack(corners, axis=2).reshape(-1, nodes.shape[-1]), np.float32)


def _with_one(places: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.concatenate([places, np.ones_like(places[..., :1])], axis=-1)


def _numbers(warp: Warp) -> npt.NDArray[np.float32]:
    blend = warp.blend
    edges = blend.left, blend.top, blend.right, blend.bottom
    return np.array([*edges, warp.black, warp.brightness - warp.black, 1 / blend.gamma, warp.is_masked], np.float32)


def mask_pixels(warp: Warp, frame: tuple[int, int]) -> Picture:
    """Which pixels of a frame (width, height) a mask shows [height, width]: 255 inside of its polygons, 0 outside; less
    where its picture is darker than white."""
    width, height = frame[0] * _FINE, frame[1] * _FINE
    shown = np.full((height, width), not warp.mask)
    for polygon in warp.mask:
        shown |= _inside([(x * width, y * height) for x, y in polygon], width, height)
    parts = shown.reshape(frame[1], _FINE, frame[0], _FINE)
    light = parts.mean(axis=(1, 3)) * (255 if warp.mask_picture is None else _stretched(warp.mask_picture.light, frame))
    made: Picture = np.rint(light).astype(np.uint8)
    return made


def _stretched(light: Picture, frame: tuple[int, int]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A picture in the size of a frame (width, height) [height, width], with straight lines between its pixels."""
    made = light.astype(np.float64)
    for count in (frame[1], frame[0]):
        at = np.clip((np.arange(count) + 0.5) / count * len(made) - 0.5, 0, len(made) - 1)
        first = np.minimum(at.astype(int), max(0, len(made) - 2))
        part = (at - first)[:, np.newaxis]
        made = (made[first] * (1 - part) + made[np.minimum(first + 1, len(made) - 1)] * part).T
    return made


def _inside(polygon: Sequence[Point], width: int, height: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which samples are inside of a polygon [height, width]: those with an odd number of its edges on their left."""
    edges = np.zeros((height, width + 1), bool)
    for (ax, ay), (bx, by) in zip(polygon, (*polygon[1:], polygon[0]), strict=True):
        rows = np.arange(*(int(np.clip(np.ceil(y - 0.5), 0, height)) for y in sorted((ay, by))))
        if len(rows):
            across = ax + (rows + 0.5 - ay) * (bx - ax) / (by - ay)
            edges[rows, np.clip(np.ceil(across - 0.5), 0, width).astype(int)] ^= True
    return np.logical_xor.accumulate(edges, axis=1)[:, :width]


def _in_front(quad: Sequence[Point]) -> float:
    """1, or −1 if the perspective of a picture with these corners is negative where it is: it may be scaled by any
    number."""
    middle = np.mean(quad, axis=0)
    return 1.0 if float(from_quad(quad)[2] @ (*middle, 1.0)) > 0 else -1.0
