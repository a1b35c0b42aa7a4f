"""What gives pictures to other programs, in a process of its own, and the kinds of it that need little: named pipes
and loopback cameras. Each kind is a row of `weft.outlets` and a class."""

from __future__ import annotations

import errno
import os
import select
import shlex
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.child import BEAT
from weft.media.frames import Pixels
from weft.outlets import OUTLET_CLASSES, OutletError, load_outlets, outlet_of
from weft.packages import class_of
from weft.runtime.films.encoding import CODECS, Y4M_FRAME, PixelFormat, film_spec, y4m_header
from weft.streams import SCHEMES


@dataclass(frozen=True)
class OutletOpening:
    """What an outlet is opened with."""

    word: str
    """The word before the colon."""
    place: str
    """Where the pictures go, as the row has made it of the text of the patch."""
    width: int
    height: int
    fps: Fraction
    rate: int
    """Samples of sound a second."""
    secret: str
    """A word that the performer learns, and others have to know. It is the same for the whole performance."""
    say: Callable[[str, str], None]
    """Says something to the performer: its kind, and the words. The kinds are `address`, where the pictures are, which
    is said once; `note`; `trouble`, what keeps pictures from arriving; and `well`, the end of that. Any thread may
    call it."""
    drop: Callable[[int], None]
    """Counts pictures that did not go out. Any thread may call it."""
    beat: Callable[[], None]
    """To be called several times a second by what waits for long."""
    allow: Callable[[float], None]
    """Allows what waits within a library, which holds up all threads, this many seconds. Afterwards the process is
    killed; one whose row has sound is then started again."""
    key: str = field(repr=False, kw_only=True, default="")
    """What the performer keeps for this place, and no text has: the option `--stream-keys`."""


class PictureOutlet(ABC):
    """Gives the pictures of one `to:` to other programs. All is called by one thread of a process of its own."""

    def __init__(self, opening: OutletOpening) -> None:
        """Raises OutletError."""
        self.opening = opening

    @abstractmethod
    def show(self, pixels: Pixels, number: int) -> None:
        """Gives a picture [height, width, RGBA], which is valid until this returns. It is the frame with this number,
        at `fps`; numbers may be left out. Raises OutletError if no picture can be given any more."""

    def hear(self, samples: NDArray[np.float32]) -> None:
        """Gives the samples [samples, 2] that follow those before, up to the latest frame. Only for rows that have
        sound."""

    def close(self) -> None:
        """Ends it."""


# The classes of weft's own rows. They are imported when they are needed.
_OWN = {
    "pipe": ("weft.runtime.films.outlet", "PipeOutlet"),
    "v4l2": ("weft.runtime.films.outlet", "CameraOutlet"),
    "http": ("weft.runtime.films.web_outlet", "WebOutlet"),
    "spout": ("weft.runtime.films.texture_outlet", "SpoutOutlet"),
    "syphon": ("weft.runtime.films.texture_outlet", "SyphonOutlet"),
    **dict.fromkeys(SCHEMES, ("weft.runtime.films.stream_outlet", "StreamOutlet")),
}


def opened(target: str, opening: OutletOpening) -> PictureOutlet:
    """The outlet of a target. Raises OutletError."""
    found = outlet_of(target)
    if found is None:
        load_outlets()
        found = outlet_of(target)
    assert found is not None, "the row was found in the process that draws"
    outlet: PictureOutlet = class_of(found.spec.name, _OWN, OUTLET_CLASSES)(opening)
    return outlet


class _FilmOutlet(PictureOutlet):
    """Gives frames in YUV 4:2:0, each as soon as it comes."""

    def __init__(self, opening: OutletOpening) -> None:
        super().__init__(opening)
        size = opening.width, opening.height
        self.film = film_spec(".mkv", "h264", None, size, float(opening.fps))
        self._pixels = PixelFormat(self.film, is_live=True)

    def show(self, pixels: Pixels, number: int) -> None:
        self.write(self._pixels.convert(pixels, number))

    @abstractmethod
    def write(self, frame: Any) -> None:
        """Gives a frame."""


class PipeOutlet(_FilmOutlet):
    """Writes a y4m to a named pipe, from its header on for each program that opens it."""

    def __init__(self, opening: OutletOpening) -> None:
        """Raises OutletError if there is no pipe of this name."""
        super().__init__(opening)
        self._header = y4m_header((opening.width, opening.height), float(opening.fps), "420mpeg2")
        self._pipe: int | None = None
        path = opening.place
        try:
            is_pipe = stat.S_ISFIFO(os.stat(path).st_mode)
        except OSError as problem:
            is_pipe = False
            if problem.errno != errno.ENOENT:
                raise OutletError(f"{path} cannot be opened: {problem.strerror}") from None
        if not is_pipe:
            raise OutletError(f"{path} is no pipe", f"mkfifo {shlex.quote(path)} makes one")

    def write(self, frame: Any) -> None:
        parts = [Y4M_FRAME]
        for plane in frame.planes:
            rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
            parts.append(rows[:, : plane.width].tobytes())
        try:
            if self._pipe is None:
                self._pipe = os.open(self.opening.place, os.O_WRONLY | os.O_NONBLOCK)
                parts.insert(0, self._header)
            self._send(self._pipe, b"".join(parts))
        except OSError as problem:
            # No program reads it yet, or any more.
            if problem.errno not in (errno.ENXIO, errno.EPIPE):
                raise OutletError(f"{self.opening.place} cannot be written: {problem.strerror}") from None
            self.close()

    def _send(self, pipe: int, data: bytes) -> None:
        """Waits for the reader for as long as it takes."""
        rest = memoryview(data)
        while rest:
            self.opening.beat()
            if select.select((), (pipe,), (), BEAT)[1]:
                rest = rest[os.write(pipe, rest) :]

    def close(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None


class CameraOutlet(_FilmOutlet):
    """Gives frames to a loopback camera of Linux, which other programs open as a camera."""

    def __init__(self, opening: OutletOpening) -> None:
        """Raises OutletError if it takes no pictures."""
        import av

        super().__init__(opening)
        try:
            self._container: Any = av.open(opening.place, "w", format="v4l2")
            self._stream: Any = self._container.add_stream("rawvideo", rate=opening.fps)
            self._stream.width, self._stream.height = opening.width, opening.height
            self._stream.pix_fmt = CODECS[self.film.codec].pixels
            self._container.start_encoding()
        except Exception as problem:  # FFmpeg has many
            reason = getattr(problem, "strerror", None) or problem
            words = f"{opening.place} takes no pictures: {reason}"
            raise OutletError(words, "the kernel module v4l2loopback makes cameras that do") from None

    def write(self, frame: Any) -> None:
        for packet in self._stream.encode(frame):
            self._container.mux(packet)

    def close(self) -> None:
        self._container.close()
