"""A source: stripes that wander."""

import math

import numpy as np

from weft.media.source import LivePicture, LiveSource, PictureError
from weft.sources import SourceParam, SourceSpec


class Stripes(LiveSource):
    spec = SourceSpec(
        "stripes", (SourceParam("count", "number", 4),), ("r", "g", "b"), ("x", "y"),
        "stripes that wander one to the right in a second", "stripes(6)::s<r, g, b>", owner="visual",
    )

    def size(self, args):
        (count,) = args
        return (int(count), 1) if 1 <= count <= 1000 else "there are 1 to 1000 stripes"

    def still(self, args):
        return np.zeros((1, 1, 4), np.float32)

    def open(self, args, offline):
        if args == (13.0,):
            raise PictureError("nobody likes thirteen stripes", "one more would do")
        return WanderingStripes(int(args[0]))


class WanderingStripes(LivePicture):
    def __init__(self, count):
        self._pictures = []
        for first in range(2):
            picture = np.ones((1, count, 4), np.float32)
            picture[0, :, :3] = ((np.arange(count) + first) % 2)[:, np.newaxis]
            self._pictures.append(picture)

    def at(self, seconds):
        return self._pictures[math.floor(seconds) % 2]

    def close(self):
        pass
