"""The formats in which pictures of films and cameras are passed on: in bytes, and in memory that two processes map. And
stored sounds."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.child import Pulse

Pixels: TypeAlias = NDArray[np.uint8]


class Frame(np.ndarray[Any, np.dtype[np.uint8]]):
    """A picture [height, width, 4] in bytes, for devices that sample bytes. It changes as rarely as any other picture;
    one with other contents is another object."""

    buffers: FloatBuffers | None = None
    """The buffer for the converted picture."""
    _floats: NDArray[np.float32] | None = None

    @property
    def floats(self) -> NDArray[np.float32]:
        """The same picture in single precision, 0…1; converted when it is first asked for."""
        if self._floats is None:
            into = FloatBuffers() if self.buffers is None else self.buffers
            self._floats = into.next(self.shape)
            np.multiply(self, np.float32(1 / 255), out=self._floats)
        return self._floats


class FloatBuffers:
    """Buffers for converted pictures. They are used in turn: each may be in use until two others have been given, and
    new memory for each picture would take longer than the conversion."""

    def __init__(self) -> None:
        self._buffers: list[NDArray[np.float32]] = []

    def next(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """The buffer that was given longest ago."""
        old = self._buffers.pop(0) if len(self._buffers) == _IN_USE else None
        buffer = old if old is not None and old.shape == shape else np.empty(shape, np.float32)
        self._buffers.append(buffer)
        return buffer


# The number of pictures that may be in use: the newest, and two before it.
_IN_USE = 3


def floats(picture: NDArray[Any]) -> NDArray[np.float32]:
    """A picture in single precision, 0…1."""
    return picture.floats if isinstance(picture, Frame) else picture


class StoredSound(np.ndarray[Any, np.dtype[np.float32]]):
    """The samples [1, samples, 2] of a sound."""

    length: float | None = None
    """The number of samples after which it ends or begins again, if that is not a whole number."""


def length_of(samples: NDArray[Any]) -> float:
    """The number of samples after which a sound [1, samples, 2] ends or begins again."""
    length = getattr(samples, "length", None)
    return float(samples.shape[1] if length is None else length)


def serve(parent: Connection, lifeline: int, work: Callable[[], None]) -> None:
    """Runs `work` in a thread of a child, and ends the process when the other end of the socket is closed. Work may
    wait for as long as it likes, since this thread shows that the process lives."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pulse = Pulse(lifeline)
    threading.Thread(target=work, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        while not parent.poll(0.1):
            pulse.beat()
        parent.recv()
    os._exit(0)


# --- the decoded frames of a film -------------------------------------------------------------------------------------

HEADS = 64
"""The most times at which a film is read, by all programs together."""

# The number of last frames of each of these times that are not overwritten.
_HELD = 2

# Bytes of the frames that are kept of a film, and the fewest frames.
_ROOM = 256_000_000
_FEWEST = 8

_FILM = np.dtype([("seconds", "f8"), ("indexed", "i8"), ("clients", "i8")])
_HEAD = np.dtype([("asked", "i8"), ("seconds", "f8"), ("loops", "i8"), ("held", "i8", _HELD)])
_PLACE = np.dtype([("frame", "i8"), ("start", "f8"), ("end", "f8")])


def frames_kept(width: int, height: int) -> int:
    """The number of frames of this size that are kept."""
    return max(_FEWEST, min(1000, _ROOM // (width * height * 4)))


class FrameMemory:
    """The decoded frames of a film in places, and the times that are wanted. The process that decodes writes the places
    and the film. The process that shows them writes the heads: for each time at which the film is read, how often it
    was `asked` for (0: it is not), the wanted second, and the places that it holds, from 1.

    `frame` numbers the written frames, from 1; it is 0 while a place is written. A frame lasts from `start` to `end`.
    """

    def __init__(self, descriptor: int, width: int, height: int) -> None:
        self.descriptor = descriptor
        self._map = mmap.mmap(descriptor, size_of_memory(width, height))
        self._shape = (height, width, 4)
        self._first = _header(width, height)
        count, at = _places(width, height), 0
        self.film = np.frombuffer(self._map, _FILM, 1, at)
        self.heads = np.frombuffer(self._map, _HEAD, HEADS, at := at + _FILM.itemsize)
        self.places = np.frombuffer(self._map, _PLACE, count, at + HEADS * _HEAD.itemsize)

    def pixels(self, place: int) -> Pixels:
        """The pixels of a place."""
        height, width, _ = self._shape
        start = self._first + place * height * width * 4
        return np.frombuffer(self._map, np.uint8, height * width * 4, start).reshape(self._shape)

    def find(self, seconds: float) -> int | None:
        """The place of the frame at a time, if it is there."""
        places = self.places
        here = np.flatnonzero((places["frame"] > 0) & (places["start"] <= seconds) & (seconds < places["end"]))
        return int(here[0]) if len(here) else None

    def nearest(self, seconds: float) -> int | None:
        """The place of the frame that is nearest to a time; None if there is no frame."""
        places = self.places
        away = np.maximum(places["start"] - seconds, seconds - places["end"])
        away = np.where(places["frame"] > 0, away, np.inf)
        place = int(np.argmin(away))
        return place if np.isfinite(away[place]) else None


def size_of_memory(width: int, height: int) -> int:
    """The bytes of the memory for a film of this size."""
    return _header(width, height) + _places(width, height) * width * height * 4


def _places(width: int, height: int) -> int:
    # This many more may be held. They take memory only while they are.
    return frames_kept(width, height) + HEADS


def _header(width: int, height: int) -> int:
    size = _FILM.itemsize + HEADS * _HEAD.itemsize + _places(width, height) * _PLACE.itemsize
    return -(-size // 4096) * 4096
