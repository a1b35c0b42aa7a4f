"""The poster of a page: its picture at a moment, for previews of links, and small in the page until it plays."""

from __future__ import annotations

import base64
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft.media.pictures import reduced_picture

MOMENT = 5.0
"""The second of a picture that stands still, unless another is asked for."""

# How wide the pictures are at most. What reads links shows about as much of one, and the page enlarges its own.
_WIDTH, _PREVIEW_WIDTH = 640, 320


class Poster(NamedTuple):
    """A poster: the PNG that stands next to the page as `name`, its size, and a small one as an address of data."""

    seconds: float
    name: str
    png: bytes
    size: tuple[int, int]
    preview: str


def poster_of(pixels: NDArray[np.uint8], seconds: float, name: str) -> Poster:
    """The poster with pixels [height, width, RGBA]. What is transparent is black, as in a page of its own."""
    png, size = reduced_picture(pixels, _WIDTH, "PNG")
    small, _ = reduced_picture(pixels, _PREVIEW_WIDTH, "JPEG")
    return Poster(seconds, name, png, size, f"data:image/jpeg;base64,{base64.b64encode(small).decode()}")
