"""The outlet `glow`: sends the mean colour of each picture to a program of this machine, as a line of text by UDP."""

from __future__ import annotations

import socket

import numpy as np
from numpy.typing import NDArray

from weft.outlets import OutletError, OutletPlace, OutletSpec
from weft.runtime.films.outlet import OutletOpening, PictureOutlet


def port(text: str) -> OutletPlace:
    """The port that the text after `glow:` says."""
    if not (text.isascii() and text.isdecimal() and 1024 <= int(text) <= 65535):
        raise OutletError("this is no port", "from 1024 to 65535, such as glow:9000")
    return OutletPlace(text, "machine")


class Glow(PictureOutlet):
    """Gives the mean colour."""

    spec = OutletSpec("glow", "the mean colour, by UDP", "glow:9000", port)

    def __init__(self, opening: OutletOpening) -> None:
        super().__init__(opening)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._target = "127.0.0.1", int(opening.place)

    def show(self, pixels: NDArray[np.uint8], number: int) -> None:
        colour = pixels[..., :3].mean((0, 1))
        self._socket.sendto(" ".join(f"{level:.0f}" for level in colour).encode(), self._target)
