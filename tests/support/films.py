"""Films that tests make: each frame is gray, with a level that says its number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

STEP = 5
"""The difference between the levels of two frames, which outlasts compression."""


def gray_film(
    path: Path, count: int, rate: int = 30, codec: str = "libx264", size: tuple[int, int] = (32, 16),
    stamps: Sequence[int] | None = None, keys: int = 12, aspect: Fraction | None = None, turned: int = 0,
) -> Path:  # fmt: skip
    """A film of `count` frames, `size` wide and high. `stamps` are their times in 1/1000 s, `keys` is the distance
    between key frames, `aspect` that of a pixel; it says that it is `turned` by some degrees."""
    width, height = size
    pictures = [np.full((height, width, 3), STEP * number, np.uint8) for number in range(count)]
    return film_of(path, pictures, rate, codec, stamps, keys, aspect, turned)


def film_of(
    path: Path, pictures: Iterable[np.ndarray[Any, Any]], rate: int = 30, codec: str = "libx264",
    stamps: Sequence[int] | None = None, keys: int = 12, aspect: Fraction | None = None, turned: int = 0,
) -> Path:  # fmt: skip
    """A film of these pictures [height, width, 3]."""
    with av.open(str(path), "w") as container:
        stream: Any = None
        for number, picture in enumerate(pictures):
            if stream is None:
                stream = container.add_stream(codec, rate=rate, options={"g": str(keys)})
                stream.bit_rate = 8_000_000
                stream.height, stream.width = picture.shape[:2]
                stream.pix_fmt = "bgr0" if codec == "ffv1" else "yuv420p"
                if aspect is not None:
                    stream.sample_aspect_ratio = aspect
                if turned:
                    stream.set_display_rotation(turned)
                if stamps is not None:
                    stream.codec_context.time_base = Fraction(1, 1000)
            frame: Any = av.VideoFrame.from_ndarray(picture, format="rgb24")
            if stamps is not None:
                frame.pts, frame.time_base = stamps[number], Fraction(1, 1000)
            for packet in stream.encode(frame):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return path


def number_in(level: Any) -> Any:
    """The numbers of the frames with these levels, 0…1."""
    return np.round(np.asarray(level, np.float64) * 255 / STEP).astype(int)
