"""A picture in the cells of a terminal: two pixels in each, one above the other, as a half block in two colours.

A cell is six bytes, the red, green and blue of its upper pixel and then of its lower one.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.runtime.screens.frame import Rect
from weft.runtime.screens.screen import Picture

Cells: TypeAlias = NDArray[np.uint8]
"""[rows, columns, 6]"""

Colours: TypeAlias = Literal["true", "256"]
"""Which colours a terminal takes: any, or those of the table that xterm made common."""


def cells_of(picture: Picture | None, place: Rect, rows: int, columns: int) -> Cells:
    """The picture, scaled to `place`, with black around it. `place` counts in pixels, of which a cell has two."""
    pixels = np.zeros((2 * rows, columns, 3), np.uint8)
    if picture is not None:
        inside = slice(place.top, place.top + place.height), slice(place.left, place.left + place.width)
        pixels[inside] = scaled(picture, place.width, place.height)
    return pixels.reshape(rows, 2, columns, 3).transpose(0, 2, 1, 3).reshape(rows, columns, 6)


def scaled(picture: Picture, width: int, height: int) -> Picture:
    """The red, green and blue of a picture in another size [height, width, 3].

    Along an axis that shrinks, the mean over the area that each new pixel covers; along one that grows, the pixel
    that lies under its middle. Alpha is left out, as nothing lies behind the picture.
    """
    resized: NDArray[Any] = picture
    for axis, size in enumerate((height, width)):
        if size < picture.shape[axis]:
            resized = _means(resized, size, axis)
        elif size > picture.shape[axis]:
            middles = (2 * np.arange(size) + 1) * picture.shape[axis] // (2 * size)
            resized = resized.take(middles, axis)
    if resized.dtype == np.uint8:
        return resized[..., :3]
    # Rounding may carry a mean just over the edge.
    nearest: Picture = np.clip(np.rint(resized[..., :3]), 0, 255).astype(np.uint8)
    return nearest


def _means(values: NDArray[Any], size: int, axis: int) -> NDArray[np.float64]:
    """Means over `size` equal stretches of an axis, fewer than it has values, some of which lie in two of them."""
    edges = np.arange(size + 1) * values.shape[axis]
    whole = edges // size
    share = (edges % size / size).reshape(-1, *[1] * (values.ndim - axis - 1))
    sums = np.add.reduceat(values, whole[:-1], axis, np.float64 if values.dtype.kind == "f" else np.uint32)
    # Each stretch takes in the whole value at its start; the part of it that lies in front belongs to its neighbour.
    in_front = values.take(np.minimum(whole, values.shape[axis] - 1), axis) * share
    first, after = (in_front.take(np.arange(size) + step, axis) for step in (0, 1))
    means: NDArray[np.float64] = (sums - first + after) * (size / values.shape[axis])
    return means


def draw(cells: Cells, before: Cells | None, colours: Colours) -> bytes:
    """What a terminal has to be sent to show `cells` from its upper left corner on, where it shows `before`.

    Nothing for a cell that stays as it is. No Python code runs for a single cell: each gets text of the same length,
    with NUL where it needs less, and all NULs are taken out at the end.
    """
    rows, columns = cells.shape[:2]
    if before is None or before.shape != cells.shape:
        changed = np.ones((rows, columns), bool)
    else:
        changed = (cells != before).any(axis=2)
    row, column = np.nonzero(changed)
    if not len(row):
        return b""
    # Neighbours in a row need to be told only once where they stand.
    apart = np.ones(len(row), bool)
    apart[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1] + 1)
    drawn = cells[row, column]
    code = _true_colour if colours == "true" else _table_colour
    texts = [
        _only(apart, _places(row + 1, column + 1)),
        _only(_differs(drawn[:, :3]), code(b"\x1b[38;", drawn[:, :3])),
        _only(_differs(drawn[:, 3:]), code(b"\x1b[48;", drawn[:, 3:])),
        _same("▀".encode(), len(row)),
    ]
    return np.concatenate(texts, axis=1).tobytes().translate(None, b"\0")


_Texts: TypeAlias = NDArray[np.uint8]
"""[cells, characters]: ASCII of one length for every cell that is drawn, with NUL for what is left out."""


def _same(text: bytes, count: int) -> _Texts:
    return np.broadcast_to(np.frombuffer(text, np.uint8), (count, len(text)))


def _number(values: NDArray[np.intp], digits: int) -> _Texts:
    """Decimal numbers, without zeros in front."""
    powers = 10 ** np.arange(digits - 1, -1, -1)
    spelled = values[:, np.newaxis] // powers % 10 + ord("0")
    spelled[values[:, np.newaxis] < powers] = 0
    spelled[values == 0, -1] = ord("0")
    return spelled.astype(np.uint8)


def _only(where: NDArray[np.bool_], texts: _Texts) -> _Texts:
    """The texts of some cells."""
    return texts * where[:, np.newaxis]


def _places(row: NDArray[np.intp], column: NDArray[np.intp]) -> _Texts:
    count = len(row)
    parts = [_same(b"\x1b[", count), _number(row, 4), _same(b";", count), _number(column, 4), _same(b"H", count)]
    return np.concatenate(parts, axis=1)


def _differs(colour: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Where a colour is not that of the cell drawn before, so that it has to be sent."""
    differs = np.ones(len(colour), bool)
    differs[1:] = (colour[1:] != colour[:-1]).any(axis=1)
    return differs


_BYTES = _number(np.arange(256), 3)


def _true_colour(start: bytes, colour: NDArray[np.uint8]) -> _Texts:
    red, green, blue = (_BYTES[colour[:, channel]] for channel in range(3))
    semicolon = _same(b";", len(colour))
    front, end = _same(start + b"2;", len(colour)), _same(b"m", len(colour))
    return np.concatenate([front, red, semicolon, green, semicolon, blue, end], axis=1)


def _table_colour(start: bytes, colour: NDArray[np.uint8]) -> _Texts:
    front, end = _same(start + b"5;", len(colour)), _same(b"m", len(colour))
    return np.concatenate([front, _BYTES[nearest_in_table(colour)], end], axis=1)


# xterm's table from 16 on: a cube of six steps in each of red, green and blue, then 24 greys.
_STEPS = np.array([0, 95, 135, 175, 215, 255])
_STEP_OF = np.abs(np.arange(256)[:, np.newaxis] - _STEPS).argmin(axis=1)
_GREYS = 8 + 10 * np.arange(24)
# By the sum of red, green and blue.
_GREY_OF = np.abs(np.arange(3 * 255 + 1)[:, np.newaxis] - 3 * _GREYS).argmin(axis=1)


def nearest_in_table(colour: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The number in xterm's table of 256 colours of the nearest one to each colour [n, 3]."""
    wide = colour.astype(np.int64)
    steps = _STEP_OF[colour]
    grey = _GREY_OF[wide.sum(axis=1)]
    off_cube = ((_STEPS[steps] - wide) ** 2).sum(axis=1)
    off_grey = ((_GREYS[grey][:, np.newaxis] - wide) ** 2).sum(axis=1)
    in_cube = 16 + steps @ np.array([36, 6, 1])
    nearest: NDArray[np.uint8] = np.where(off_grey < off_cube, 232 + grey, in_cube).astype(np.uint8)
    return nearest
