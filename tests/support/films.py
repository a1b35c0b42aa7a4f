"""Films that tests make: each frame is gray, with a level that encodes its number, and so may be the sound."""

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


SOUND_RATE = 48_000


def sounding_film(
    path: Path, count: int, rate: Fraction = Fraction(30), codec: str = "ffv1", sound: str = "flac", late: float = 0.0,
    part: tuple[float, float] = (0.0, 1.0), level: float = 1 / 64, missing: tuple[float, float] | None = None,
) -> Path:  # fmt: skip
    """A film as `gray_film` makes it, whose sound during frame n is n times `level`, on the right the negative of that.
    It has the `part` of this sound between two shares of its length, except for what is `missing` between two others,
    and is as many seconds `late` against the pictures."""
    times = np.arange(round(count / rate * SOUND_RATE)) / SOUND_RATE
    left = np.floor(times * float(rate) + 1e-9) * level
    pictures = [np.full((16, 32, 3), STEP * number, np.uint8) for number in range(count)]
    first, last = (round(share * len(times)) for share in part)
    sections = [(first, last)]
    if missing is not None:
        gap = [round(share * len(times)) for share in missing]
        sections = [(first, gap[0]), (gap[1], last)]
    samples = np.stack([left, -left], axis=1).astype(np.float32)
    given = [(round(late * SOUND_RATE) + start, samples[start:end]) for start, end in sections]
    return film_of(path, pictures, rate, codec, sound=(sound, given))


def film_of(
    path: Path, pictures: Iterable[np.ndarray[Any, Any]], rate: int | Fraction = 30, codec: str = "libx264",
    stamps: Sequence[int] | None = None, keys: int = 12, aspect: Fraction | None = None, turned: int = 0,
    sound: tuple[str, Sequence[tuple[int, np.ndarray[Any, Any]]]] | None = None,
) -> Path:  # fmt: skip
    """A film of these pictures [height, width, 3], with a `sound`: its codec, and samples [samples, 2] each from a
    place on."""
    with av.open(str(path), "w") as container:
        stream: Any = None
        heard: Any = None if sound is None else container.add_stream(sound[0], rate=SOUND_RATE, layout="stereo")
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
        if sound is not None:
            _mux_sound(container, heard, sound[1])
    return path


def _mux_sound(container: Any, stream: Any, sections: Sequence[tuple[int, np.ndarray[Any, Any]]]) -> None:
    for start, samples in sections:
        frame: Any = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="flt", layout="stereo")
        frame.sample_rate, frame.pts, frame.time_base = SOUND_RATE, start, Fraction(1, SOUND_RATE)
        size = stream.codec_context.frame_size or None
        suits = av.AudioResampler(stream.format.name, "stereo", SOUND_RATE, size)
        for made in (*suits.resample(frame), *suits.resample(None)):
            container.mux(stream.encode(made))
    container.mux(stream.encode())


def number_in(level: Any) -> Any:
    """The numbers of the frames with these levels, 0…1."""
    return np.round(np.asarray(level, np.float64) * 255 / STEP).astype(int)
