"""Pictures one after another, as Pillow reads them: the files of a sequence (`shots/%04d.png`), and the frames of a
webp that moves. For the process that decodes films, they are a film (`weft.media.decoding`)."""

from __future__ import annotations

import os
import re
import struct
from bisect import bisect_right
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.media.frames import FrameMemory
from weft.media.pictures import load_bytes, open_animation, probe_picture
from weft.media.shown import fitted, weighted
from weft.media.source import PictureError, open_media
from weft.sources import PICTURE, SEQUENCE_RATE, ends_as, is_sequence

# The most pictures of a sequence, and those that are decoded ahead.
_MOST = 100_000
_AHEAD = 4
# Times that were rounded down by less than this still belong to their picture, in seconds.
_EARLY = 1e-5
# Browsers show a picture that lasts 10 ms or less for as long as this, in seconds, and makers of animations know that.
_SHORTEST, _INSTEAD = 0.010, 0.1

Bytes: TypeAlias = NDArray[np.uint8]


class DecodedFrame(NamedTuple):
    """A frame, and when it is shown, in seconds."""

    start: float
    end: float
    frame: Any


class AnimationHeader(NamedTuple):
    """The size of the first picture, and how long each lasts, in seconds."""

    width: int
    height: int
    lasts: tuple[float, ...]
    has_alpha: bool


def is_animation(path: Path) -> bool:
    """Whether Pillow reads its pictures rather than FFmpeg: by its name."""
    return is_sequence(str(path)) or path.suffix.lower() == ".webp"


def files_of(path: Path) -> list[Path]:
    """The files of a sequence in the order of their numbers. Raises PictureError if there are none."""
    before, digits, after = re.fullmatch(r"(.*)%0?(\d?)d(.*)", path.name).groups()  # type: ignore[union-attr]
    least = int(digits or 1)
    named = re.compile(rf"{re.escape(before)}(\d{{{least},9}}){re.escape(after)}", re.ASCII)
    try:
        names = os.listdir(path.parent)
    except OSError as problem:
        raise PictureError(f"its folder cannot be read ({problem.strerror})") from None
    found = sorted((int(match[1]), name) for name in names if (match := named.fullmatch(name)) is not None)
    if not found:
        raise PictureError("there are no such files", f"for example {before}{1:0{least}d}{after}")
    if len(found) > _MOST:
        raise PictureError(f"there are {len(found):,} such files", f"at most {_MOST:,} are shown")
    return [path.with_name(name) for _, name in found]


def files_at(path: Path) -> list[Path]:
    """The files that are read for a path: one, or those of a sequence. Raises PictureError."""
    return files_of(path) if is_sequence(str(path)) else [path]


def animation_header(path: Path) -> AnimationHeader:
    """The header of a sequence or a webp. Of a sequence, the first picture counts. Raises PictureError."""
    if not is_sequence(str(path)):
        info = probe_picture(path)
        return AnimationHeader(*fitted(info.width, info.height), _lasts_of_webp(path, info.frames), info.has_alpha)
    files = files_of(path)
    if not ends_as(str(path), PICTURE):
        raise PictureError("its files are no pictures", f"of {', '.join(PICTURE.endings)}")
    info = probe_picture(_own(files[0]))
    return AnimationHeader(*fitted(info.width, info.height), (1 / SEQUENCE_RATE,) * len(files), info.has_alpha)


def _own(file: Path) -> Path:
    """A file of a sequence. Raises PictureError for a link, which could lead anywhere."""
    if file.is_symlink():
        raise PictureError(f"{file.name} is a link", "copy what it leads to")
    return file


def _lasts_of_webp(path: Path, count: int) -> tuple[float, ...]:
    """How long the frames of a webp last, by the chunks of its file."""
    found: list[float] = []
    with open_media(path) as file:
        end = os.fstat(file.fileno()).st_size
        at = 12
        while at + 8 <= end and len(found) < count:
            file.seek(at)
            kind, size = struct.unpack("<4sI", file.read(8))
            if kind == b"ANMF":
                head = file.read(16)
                found.append(int.from_bytes(head[12:15], "little") / 1000)
            at += 8 + size + size % 2
    return tuple(lasts if lasts > _SHORTEST else _INSTEAD for lasts in found) or (_INSTEAD,) * max(1, count)


class AnimationIndex:
    """The times of the pictures."""

    def __init__(self, path: Path) -> None:
        """Raises PictureError."""
        header = animation_header(path)
        self.path = path
        self.size = header.width, header.height
        self.has_alpha = header.has_alpha
        ends = list(accumulate(header.lasts))
        self.seconds = len(ends) / SEQUENCE_RATE if is_sequence(str(path)) else ends[-1]
        self.frame = self.seconds / len(ends)
        """The usual seconds of a frame."""
        if is_sequence(str(path)):
            ends = [number / SEQUENCE_RATE for number in range(1, len(ends) + 1)]
        self.starts = [0.0, *ends[:-1]]

    def read(self, path: Path, memory: FrameMemory) -> None:
        """Says what is known already."""
        memory.film["seconds"] = self.seconds
        memory.film["indexed"] = 1

    def reader(self) -> AnimationReader:
        """What decodes the pictures. Raises PictureError."""
        read = _files(self) if is_sequence(str(self.path)) else _frames(self)
        return AnimationReader(self, read)

    def number(self, seconds: float) -> int:
        """The picture at a time."""
        return max(0, bisect_right(self.starts, seconds + _EARLY) - 1)


_Read: TypeAlias = Callable[[int], Bytes]


class AnimationReader:
    """Reads picture after picture, from any place on."""

    def __init__(self, index: AnimationIndex, read: _Read) -> None:
        self._index, self._read = index, read
        self._next = 0

    def is_before(self, seconds: float) -> bool:
        """Whether the next picture is the one at a time. All others are reached by a jump."""
        return self._next < len(self._index.starts) and self._index.number(seconds) == self._next

    def seek(self, seconds: float) -> None:
        """Goes to the picture at a time."""
        self._next = self._index.number(seconds)

    def next(self) -> DecodedFrame | None:
        """The next picture; None at the end. Raises PictureError."""
        number, starts = self._next, self._index.starts
        if number >= len(starts):
            return None
        self._next = number + 1
        # The last one stays.
        end = starts[number + 1] - _EARLY if number + 1 < len(starts) else self._index.seconds + 1.0
        return DecodedFrame(starts[number] - _EARLY, end, self._read(number))

    def pixels(self, frame: Any) -> Bytes:
        """The pixels [height, width, RGBA] of a picture that it has given, as those of films: with colours that are
        multiplied by the alpha, if the first picture has one."""
        if self._index.has_alpha:
            return weighted(frame)
        found: Bytes = frame.copy()
        found[..., 3] = 255
        return found

    def close(self) -> None:
        """There is nothing to end."""


def _files(index: AnimationIndex) -> _Read:
    """Reads the files of a sequence, some of them ahead."""
    files, size = files_of(index.path), index.size
    ahead: dict[int, Future[Bytes]] = {}
    pool = ThreadPoolExecutor(_AHEAD, "weft-pictures")

    def read(number: int) -> Bytes:
        for later in range(number, min(number + _AHEAD, len(files))):
            if later not in ahead:
                ahead[later] = pool.submit(load_bytes, _own(files[later]), size)
        for other in [each for each in ahead if not number <= each < number + _AHEAD]:
            ahead.pop(other).cancel()
        return ahead.pop(number).result()

    return read


def _frames(index: AnimationIndex) -> _Read:
    """Reads the frames of a file."""
    return open_animation(index.path, index.size)
