"""Cameras, and other sources that play as they come (`weft.cameras`): the newest picture, decoded by a process of its
own.

That process writes pictures into memory that both processes map, in turn into one of several places. It never writes
into the place that is being read, and no queue can grow: a picture that was not read is overwritten.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.cameras import Camera, CameraKind, camera_at, desktop_at, window_at
from weft.child import Child
from weft.media.containers import opened_camera, reason_of, waiting_hint
from weft.media.films import Films, missing_library
from weft.media.frames import FloatBuffers, Frame, serve
from weft.media.source import Arguments, LivePicture, LiveSource, Picture, PictureError
from weft.platform import system

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MAX_PIXELS = 3840 * 2160
"""The most pixels of a captured picture; larger ones are made smaller."""

# The size that is reported before a camera is open. Most cameras have a similar one.
_USUAL = (720, 1280)
# The option that makes a generated picture small for a trial, which does not wait for a large one. Of several sizes,
# the last counts.
_SMALL = "size=64x36"
# The kinds that have a time of their own, and are read rather than received.
_TIMED = ("generated", "file")
_ENDED = "the process that reads it has ended"
# The places for pictures: the newest, the one that is read, the one that was read before, and one that is written.
_PLACES = 4
_BYTES = MAX_PIXELS * 4
# The places of the newest picture, of the one that is read and of the one before, from 1; then, for each place, height,
# width and number of its picture. All int64.
_HEADER = 4096
# The most seconds for the first picture; the seconds without a picture before that is reported; those before another
# try.
_TO_OPEN = 10.0
_SILENT = 2.0
_AGAIN = 1.0


class _Told(NamedTuple):
    """What the process that decodes says is wrong: the parts of a `PictureError`."""

    reason: str
    hint: str | None = None


class Capture(LiveSource):
    """The source `camera`."""

    def camera(self, args: Arguments) -> Camera:
        """What a call with these arguments opens."""
        return camera_at(args)

    def size(self, args: Arguments) -> tuple[int, int] | str:
        camera = self.camera(args)
        if camera.kind == "file":
            return Films().size((camera.place,))
        return missing_library() or (_USUAL[1], _USUAL[0])

    def still(self, args: Arguments) -> Picture:
        import numpy as np

        camera = self.camera(args)
        if camera.kind == "generated" and missing_library() is None:
            with contextlib.suppress(PictureError):
                return TimedPicture(camera._replace(place=f"{camera.place} {_SMALL}")).at(0.0)
        return np.zeros((9, 16, 4), np.float32)

    def open(self, args: Arguments, offline: bool) -> LivePicture:
        reason = missing_library()
        if reason is not None:
            raise PictureError(reason)
        camera = self.camera(args)
        return TimedPicture(camera) if offline and camera.kind in _TIMED else CapturedPicture(camera)


class DesktopCapture(Capture):
    """The source `desktop`."""

    def camera(self, args: Arguments) -> Camera:
        return desktop_at(args)


class WindowCapture(Capture):
    """The source `window`."""

    def camera(self, args: Arguments) -> Camera:
        return window_at(args)


class TimedPicture(LivePicture):
    """A generated picture, or a film, at its own times, for a render."""

    def __init__(self, camera: Camera) -> None:
        """Raises PictureError."""
        self._camera = camera
        self._frames: Iterator[tuple[float, NDArray[np.uint8]]] = iter(())
        self._shown: tuple[float, Picture] | None = None
        self._next: tuple[float, NDArray[np.uint8]] | None = None
        self._begin()

    def _begin(self) -> None:
        import av

        self._frames, self._shown = _frames(self._camera), None
        try:
            self._next = next(self._frames)
        except PictureError:
            raise
        except (OSError, ValueError, av.error.FFmpegError) as failure:
            raise PictureError(reason_of(failure)) from failure

    def at(self, seconds: float) -> Picture:
        if self._shown is not None and seconds < self._shown[0]:
            self._begin()
        newer: tuple[float, NDArray[np.uint8]] | None = None
        while self._next is not None and (self._next[0] <= seconds or (self._shown is None and newer is None)):
            newer, self._next = self._next, self._following()
        if newer is not None:
            import numpy as np

            self._shown = newer[0], np.multiply(newer[1], np.float32(1 / 255))
        assert self._shown is not None, "there is a first picture"
        return self._shown[1]

    def _following(self) -> tuple[float, NDArray[np.uint8]] | None:
        """The next frame; None at the end, and after damage in a film."""
        with contextlib.suppress(PictureError):
            return next(self._frames, None)
        return None

    def close(self) -> None:
        self._frames = iter(())


class CapturedPicture(LivePicture):
    """The newest picture of a camera."""

    def __init__(self, camera: Camera) -> None:
        """Waits for the first picture. Raises PictureError if there is none."""
        self._camera = camera
        self._memory = _PictureMemory.new()
        self._child: Child | None = self._started()
        self._shown: tuple[int, Picture] | None = None
        self._problem: _Told | None = None
        self._noticed = 0
        self._last = time.monotonic()
        """The number of the newest picture when it was last looked for, and when that was first seen."""
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def _started(self) -> Child:
        return Child("weft.media.capture:main", *self._camera, descriptors=[self._memory.descriptor])

    def _wait(self) -> None:
        until = time.monotonic() + _TO_OPEN
        while not self._memory.last:
            self._listen()
            if self._problem is not None:
                raise PictureError(*self._problem)
            if self._child is None or self._child.poll() is not None:
                raise PictureError(_ENDED)
            if time.monotonic() > until:
                raise PictureError(f"no picture has come within {_TO_OPEN:g} s", waiting_hint(self._camera))
            time.sleep(0.005)

    def at(self, seconds: float) -> Picture:
        newest = self._newest()
        if newest and (self._shown is None or newest != self._shown[0]):
            self._shown = self._memory.read()
        assert self._shown is not None, "it waited for the first picture"
        return self._shown[1]

    def _newest(self) -> int:
        newest = self._memory.last
        if newest != self._noticed:
            self._noticed, self._last = newest, time.monotonic()
        return newest

    def problem(self) -> str | None:
        if self._child is not None and self._child.poll() is not None:
            self._child.end()
            self._child = self._started()
            self._last = time.monotonic()
            return _ENDED
        self._listen()
        self._newest()  # it may come while no program reads it
        if self._problem is None and time.monotonic() - self._last > _SILENT:
            return "no picture comes any more"
        return None if self._problem is None else self._problem.reason

    def _listen(self) -> None:
        """Takes a message of the process: a problem, or that the problem is over."""
        if self._child is None:
            return
        with contextlib.suppress(EOFError, OSError):
            while self._child.connection.poll():
                self._problem = self._child.connection.recv()

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()
            self._memory.close()

    def __del__(self) -> None:
        self.close()


class _PictureMemory:
    """Places for pictures that both processes map."""

    def __init__(self, descriptor: int) -> None:
        import numpy as np

        self.descriptor = descriptor
        self._map = mmap.mmap(descriptor, _HEADER + _PLACES * _BYTES)
        self._numbers = np.frombuffer(self._map, np.int64, _HEADER // 8)
        self._buffers = FloatBuffers()

    @classmethod
    def new(cls) -> _PictureMemory:
        """Memory that takes space only where something has been written."""
        return cls(system.shared_file(_HEADER + _PLACES * _BYTES))

    @property
    def last(self) -> int:
        """The number of the newest picture, from 1; 0 if there is none yet."""
        place = int(self._numbers[0]) - 1
        return 0 if place < 0 else int(self._numbers[6 + 4 * place])

    def read(self) -> tuple[int, Picture]:
        """The newest picture and its number. There has to be one. Its place stays until two others were read."""
        self._numbers[2] = self._numbers[1]
        while True:
            place = int(self._numbers[0]) - 1
            self._numbers[1] = place + 1
            # If it is still the newest, the other process cannot have begun to write there.
            if int(self._numbers[0]) - 1 == place:
                height, width, number = map(int, self._numbers[4 + 4 * place : 7 + 4 * place])
                return number, self._picture(place, height, width)

    def write(self, number: int, pixels: NDArray[np.uint8]) -> None:
        """Writes a picture [height, width, 4] in bytes, which becomes the newest one."""
        busy = {int(number) - 1 for number in self._numbers[:3]}
        place = next(place for place in range(_PLACES) if place not in busy)
        height, width = pixels.shape[:2]
        self._picture(place, height, width)[...] = pixels
        self._numbers[4 + 4 * place : 7 + 4 * place] = height, width, number
        self._numbers[0] = place + 1

    def _picture(self, place: int, height: int, width: int) -> Frame:
        import numpy as np

        start = _HEADER + place * _BYTES
        found = np.frombuffer(self._map, np.uint8, height * width * 4, start).reshape(height, width, 4).view(Frame)
        found.buffers = self._buffers
        return found

    def close(self) -> None:
        """Closes the file; the memory is freed when no picture of it is in use any more."""
        os.close(self.descriptor)


# --- in the process that decodes --------------------------------------------------------------------------------------


def main(descriptor: str, lifeline: str, memory: str, kind: CameraKind, place: str) -> None:
    """Decodes pictures until the other end of the socket with this descriptor is closed."""
    parent = Connection(int(descriptor))
    serve(parent, int(lifeline), lambda: _capture(_PictureMemory(int(memory)), Camera(kind, place), parent))


def _capture(memory: _PictureMemory, camera: Camera, parent: Connection) -> None:
    import av

    number = memory.last
    said: _Told | None = None
    while True:
        try:
            for pixels in _pictures(camera):
                number += 1
                memory.write(number, pixels)
                if said is not None:
                    parent.send(None)
                    said = None
            words = _Told("it has ended")
        except PictureError as failure:
            words = _Told(failure.reason, failure.hint)
        except (OSError, ValueError, av.error.FFmpegError) as failure:
            words = _Told(reason_of(failure))
        if words != said:
            said = words
            parent.send(words)
        time.sleep(_AGAIN)


def _pictures(camera: Camera) -> Iterator[NDArray[np.uint8]]:
    """The pictures of a camera, at the pace in which they come."""
    began: float | None = None
    for seconds, pixels in _frames(camera):
        if camera.kind in _TIMED:
            began = time.monotonic() - seconds if began is None else began
            time.sleep(max(0.0, seconds - (time.monotonic() - began)))
        yield pixels


def _frames(camera: Camera) -> Iterator[tuple[float, NDArray[np.uint8]]]:
    """Pictures with their times in seconds, as fast as they can be read."""
    with opened_camera(camera) as container:
        if not container.streams.video:
            raise PictureError("it has no pictures")
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        for frame in container.decode(stream):
            yield frame.time or 0.0, _pixels(frame)


def _pixels(frame: Any) -> NDArray[np.uint8]:
    scale = min(1.0, (MAX_PIXELS / (frame.width * frame.height)) ** 0.5)
    found: NDArray[np.uint8] = frame.to_ndarray(
        format="rgba", width=int(frame.width * scale), height=int(frame.height * scale)
    )
    return found
