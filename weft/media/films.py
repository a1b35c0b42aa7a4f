"""Films: pictures over time. A process of their own decodes them ahead; see `weft.media.decoding`."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import threading
import time
from functools import lru_cache
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np

from weft.child import Child
from weft.errors import installs
from weft.media.animations import files_of, is_animation
from weft.media.decoding import FilmHeader, probe
from weft.media.frames import HEADS, FloatBuffers, Frame, FrameMemory, frames_kept, size_of_memory
from weft.media.source import Arguments, LivePicture, LiveSource, Picture, PictureError, require_file
from weft.platform import system
from weft.sources import is_sequence

# Seconds that the first frame may take, and that a frame may take in a render.
_TO_OPEN = 10.0
_TO_DECODE = 60.0
_ENDED = "the process that decodes it has ended"

_Stamp = tuple[int, int, int]


class Films(LiveSource):
    """Films that `load` opens: by path, whether they loop, and a key of the time at which they are read."""

    def size(self, args: Arguments) -> tuple[int, int] | str:
        try:
            found = header(Path(str(args[0])))
        except PictureError as problem:
            return f"{problem.reason} ({problem.hint})" if problem.hint else problem.reason
        return found.width, found.height

    def memory(self, args: Arguments) -> int:
        path = Path(str(args[0]))
        try:
            found = header(path)
        except PictureError:
            return 0
        kept = frames_kept(found.width, found.height)
        return min(kept, found.frames or kept) * found.width * found.height * 4

    def still(self, args: Arguments) -> Picture:
        # All colours are different, and none is 0.
        return np.linspace(0.1, 0.9, 9 * 16 * 4, dtype=np.float32).reshape(9, 16, 4)

    def open(self, args: Arguments, offline: bool) -> LivePicture:
        path, loops = Path(str(args[0])), bool(args[1])
        with _LOCK:
            key = str(path), stamp_of(path)
            film = _OPEN.get(key)
            if film is None:
                film = _OPEN[key] = DecodedFilm(path)
            return FilmPicture(film, film.head(loops), loops)


def missing_library() -> str | None:
    """The reason why films and cameras cannot be read here, with a remedy; None if nothing is known to prevent it."""
    if importlib.util.find_spec("av") is None:
        return f"PyAV is not installed ({installs('media')})"
    return None


def header(path: Path) -> FilmHeader:
    """The header of a film. Raises PictureError."""
    reason = None if is_animation(path) else missing_library()
    if reason is not None:
        raise PictureError(reason)
    return _header(path, stamp_of(path))


@lru_cache(maxsize=64)
def _header(path: Path, stamp: _Stamp) -> FilmHeader:
    return probe(path)


def stamp_of(path: Path) -> _Stamp:
    """A stamp that differs when the file has changed. Raises PictureError."""
    if is_sequence(str(path)):
        first, folder = files_of(path)[0].stat(), path.parent.stat()
        return folder.st_mtime_ns, first.st_mtime_ns, folder.st_ino
    found = require_file(path)
    return found.st_mtime_ns, found.st_size, found.st_ino


class DecodedFilm:
    """A film, and the process that decodes it. All times at which programs read it share its frames."""

    def __init__(self, path: Path) -> None:
        """Raises PictureError."""
        self.path = path
        self.stamp = stamp_of(path)
        found = header(path)
        self.seconds = found.seconds
        self._size = width, height = found.width, found.height
        try:
            self.memory = FrameMemory(system.shared_file(size_of_memory(width, height)), width, height)
        except OSError as problem:
            raise PictureError(f"there is no memory for its frames ({problem.strerror})") from None
        self._lock = threading.Lock()
        self._problem: str | None = None
        self._child: Child | None = self._started()

    def _started(self) -> Child:
        memory, (width, height) = self.memory.descriptor, self._size
        arguments = str(width), str(height), str(self.path)
        return Child("weft.media.decoding:main", *arguments, descriptors=[memory])

    def head(self, loops: bool) -> int:
        """A number for a new time at which it is read. Raises PictureError if there are too many."""
        heads = self.memory.heads
        with self._lock:
            for number in range(HEADS):
                if not heads["asked"][number]:
                    heads["held"][number] = 0
                    heads["loops"][number] = loops
                    heads["seconds"][number] = 0.0
                    heads["asked"][number] = 1
                    return number
        raise PictureError(f"it is read at more than {HEADS} times")

    def leave(self, number: int) -> None:
        """Ends a time at which it is read."""
        self.memory.heads["asked"][number] = 0
        self.memory.heads["held"][number] = 0

    @property
    def length(self) -> float:
        """Its seconds, if they are known."""
        return float(self.memory.film["seconds"][0]) or self.seconds

    @property
    def is_indexed(self) -> bool:
        """Whether its length is known exactly."""
        return bool(self.memory.film["indexed"][0])

    def problem(self) -> str | None:
        """Its current problem. A process that has ended is started again."""
        with self._lock:
            if self._child is not None and self._child.poll() is not None:
                self._child.end()
                self._child = self._started()
                return _ENDED
            with contextlib.suppress(EOFError, OSError):
                while self._child is not None and self._child.connection.poll():
                    self._problem = self._child.connection.recv()
            return self._problem

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()
            os.close(self.memory.descriptor)

    def __del__(self) -> None:
        if hasattr(self, "_child"):
            self.close()


# The films that are open, by path and state of the file.
_OPEN: WeakValueDictionary[tuple[str, _Stamp], DecodedFilm] = WeakValueDictionary()
_LOCK = threading.Lock()


class FilmPicture(LivePicture):
    """A film at one time, which a program gives before each tick."""

    is_timed = True

    def __init__(self, film: DecodedFilm, head: int, loops: bool) -> None:
        """Waits for the first frame. Raises PictureError if there is none."""
        self._film: DecodedFilm | None = film
        self._memory = film.memory
        self._head = head
        self._loops = loops
        self._shown: tuple[int, Frame] | None = None
        """The number of the frame that was given last, and the frame."""
        self._lasts = 0.0, 0.0
        """The start and the end of its time."""
        self._is_gone = False
        self._buffers = FloatBuffers()
        self._black: Frame | None = None
        self._lock = threading.Lock()
        try:
            self._wait(0.0, _TO_OPEN)
        except BaseException:
            self.close()
            raise

    def at(self, seconds: float) -> Picture:
        with self._lock:
            place = self._place(seconds)
            if place is None:
                return self._before()
            self._ask(place)
            return self._nearest(place)

    def exactly(self, seconds: float) -> Picture:
        with self._lock:
            self._wait_for_index()
            place = self._place(seconds)
            if place is None:
                return self._before()
            return self._wait(place, _TO_DECODE)

    @property
    def is_in_time(self) -> bool:
        """Whether the frame that was given last is the one of the time that was wanted."""
        start, end = self._lasts
        return start <= float(self._memory.heads["seconds"][self._head]) < end

    def is_current(self) -> bool:
        film = self._film
        try:
            return film is not None and stamp_of(film.path) == film.stamp
        except PictureError:
            return True

    def problem(self) -> str | None:
        film = self._film
        if film is None:
            return None
        problem = film.problem()
        if not (os.path.isdir(film.path.parent) if is_sequence(str(film.path)) else os.path.isfile(film.path)):
            self._is_gone = True
        elif self._is_gone:  # until it is there again; a new film comes with another program
            self._is_gone = not self.is_current()
        return "the file is gone" if problem is None and self._is_gone else problem

    def close(self) -> None:
        film, self._film = self._film, None
        if film is not None:
            film.leave(self._head)

    def __del__(self) -> None:
        self.close()

    def _place(self, seconds: float) -> float | None:
        """The place of a time in the film; None for black. A time that is NaN keeps the last place."""
        assert self._film is not None
        length = self._film.length
        if math.isnan(seconds) or (self._loops and math.isinf(seconds)):
            return float(self._memory.heads["seconds"][self._head])
        if self._loops:
            return (seconds + _TOLERANCE) % length - _TOLERANCE if length > 0 else 0.0
        return None if seconds < -_TOLERANCE else min(max(seconds, 0.0), length)

    def _before(self) -> Frame:
        """The picture of a film that does not loop, before it begins."""
        if self._black is None:
            self._black = np.zeros(self._memory.pixels(0).shape, np.uint8).view(Frame)
        return self._black

    def _ask(self, place: float) -> None:
        heads = self._memory.heads
        if heads["seconds"][self._head] != place:
            heads["seconds"][self._head] = place
            heads["asked"][self._head] += 1

    def _nearest(self, seconds: float) -> Frame:
        """The frame at a time, or the nearest one that is there."""
        start, end = self._lasts
        if self._shown is not None and start <= seconds < end:
            return self._shown[1]
        for _ in range(3):
            place = self._memory.find(seconds)
            if place is None:
                place = self._memory.nearest(seconds)
            if place is not None and (frame := self._taken(place)) is not None:
                return frame
        if self._shown is None:
            raise PictureError("no picture of it could be decoded")
        return self._shown[1]

    def _taken(self, place: int) -> Frame | None:
        """The frame at a place, which is not overwritten until two others have been taken; None if it is being
        overwritten."""
        number, start, end = self._memory.places[place].item()
        if self._shown is not None and self._shown[0] == number:
            return self._shown[1]
        held = self._memory.heads["held"][self._head]
        before = int(held[1])
        held[1] = held[0]
        held[0] = place + 1
        # If it is still the same, the other process sees that it is held.
        if not number or int(self._memory.places["frame"][place]) != number:
            held[0], held[1] = held[1], before
            return None
        frame = self._memory.pixels(place).view(Frame)
        frame.buffers = self._buffers
        self._shown, self._lasts = (number, frame), (start, end)
        return frame

    def _wait(self, seconds: float, most: float) -> Frame:
        """Waits for the frame at a time. Raises PictureError if it does not come."""
        assert self._film is not None
        until = time.monotonic() + most
        self._ask(seconds)
        while True:
            place = self._memory.find(seconds)
            frame = None if place is None else self._taken(place)
            # Another frame may have taken its place.
            if frame is not None and self.is_in_time:
                return frame
            problem = self._film.problem()
            if problem is not None:
                raise PictureError(problem)
            if time.monotonic() > until:
                raise PictureError(f"its picture at {seconds:g} s did not come within {most:g} seconds")
            time.sleep(0.0005)

    def _wait_for_index(self) -> None:
        assert self._film is not None
        until = time.monotonic() + _TO_DECODE
        while not self._film.is_indexed and time.monotonic() < until and self._film.problem() is None:
            time.sleep(0.0005)


# A time that was rounded down by less than this still belongs to its frame.
_TOLERANCE = 1e-6
