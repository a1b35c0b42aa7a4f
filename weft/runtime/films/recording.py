"""Films of a performance, and pictures for other programs: the process that encodes frames and sound as they come, and
the memory that it shares.

The file can be read at any time up to the last second: MP4 and QuickTime are written in fragments, and become an
ordinary file at the end; Matroska needs nothing for that. While it is written it has another name. PyAV is imported in
the process that encodes.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import select
import shlex
import signal
import stat
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.child import BEAT, Child, Pulse
from weft.media.frames import Pixels
from weft.names import outlet_of
from weft.platform import system
from weft.runtime.films.encoding import (
    CODECS, FORMATS, MAX_CHANNELS, Y4M_FRAME, EncodingError, FilmSpec, PixelFormat, SoundEncoder, configure, film_spec,
    reason_of, y4m_header
)
from weft.runtime.screens.playing_text import TextOverPictures
from weft.runtime.screens.text_view import TextStyle, TextView

LEAD = 0.05
"""The least seconds of a film before its first picture. Encoders need some of them to begin with the sound."""

LIVE_CODECS: Mapping[str, str] = {".mp4": "h264", ".mkv": "h264", ".mov": "h264", ".webm": "vp9"}
"""The endings of films of a performance, each with its codec for pictures, which is a fast one."""

# The most frames, and the most samples of sound, that wait for the encoder.
_SLOTS = 8
_SAMPLES = 524_288

# Fragments, which are complete when the process is killed; at the end the file becomes an ordinary one.
_IN_FRAGMENTS = {"movflags": "+hybrid_fragmented"}
_MUXING: Mapping[str, Mapping[str, str]] = {
    ".mp4": _IN_FRAGMENTS, ".mov": _IN_FRAGMENTS, ".mkv": {"cluster_time_limit": "1000"},
    ".webm": {"cluster_time_limit": "1000"},
}  # fmt: skip


@dataclass(frozen=True)
class RecordingSpec:
    """The format of a film of a performance, and where it is written."""

    film: FilmSpec
    rate: int
    """Samples of sound a second."""
    path: str
    """The name of a file, or of an outlet."""


def recording_spec(path: Path, size: tuple[int, int], fps: float, rate: int) -> RecordingSpec:
    """The film for pictures of this size. Its width and height are made even, as encoders need it. Raises EncodingError
    for a rate that the format cannot have."""
    ending = path.suffix.lower()
    even = size[0] + size[0] % 2, size[1] + size[1] % 2
    return RecordingSpec(film_spec(ending, LIVE_CODECS[ending], None, even, fps), rate, str(path))


def outlet_spec(outlet: str, size: tuple[int, int], fps: float) -> RecordingSpec:
    """The pictures of this size for another program: `outlet` is a name as `is_outlet` knows them. Raises
    EncodingError."""
    even = size[0] + size[0] % 2, size[1] + size[1] % 2
    return RecordingSpec(film_spec(".mkv", LIVE_CODECS[".mkv"], None, even, fps), 0, outlet)


class _RecordingMemory:
    """The memory that both processes map: the number of written samples, the latest samples, and frames."""

    def __init__(self, descriptor: int, film: FilmSpec) -> None:
        shape = (_SLOTS, film.height, film.width, 4)
        sound = 4 * MAX_CHANNELS * _SAMPLES
        size = mmap.PAGESIZE + sound + int(np.prod(shape))
        if os.fstat(descriptor).st_size < size:
            os.ftruncate(descriptor, size)
        memory = np.frombuffer(mmap.mmap(descriptor, size), np.uint8)
        self.written = memory[:8].view(np.int64)
        self.samples = memory[mmap.PAGESIZE :][:sound].view(np.float32).reshape(_SAMPLES, MAX_CHANNELS)
        self.frames = memory[mmap.PAGESIZE + sound :].reshape(shape)


class LiveEncoder:
    """A process that encodes a performance. Nothing here waits for it, except `close`. For the thread that draws."""

    def __init__(self, spec: RecordingSpec) -> None:
        """Raises EncodingError."""
        self.spec = spec
        self.is_done = False
        """Whether the file is complete, or will never be."""
        self.failure: str | None = None
        """The reason why it has failed."""
        self._has_begun = False
        self._free = list(range(_SLOTS))
        try:
            descriptor = system.shared_file(0)
            try:
                self._memory = _RecordingMemory(descriptor, spec.film)
                self._child = Child(
                    "weft.runtime.films.recording:main", json.dumps(asdict(spec)), descriptors=[descriptor]
                )  # fmt: skip
            finally:
                os.close(descriptor)
        except OSError as problem:
            raise EncodingError(f"the encoder cannot be started: {problem.strerror}") from None
        # The first use of a page takes time, for which the thread that draws should not wait.
        self._touching = threading.Thread(target=self._memory.frames.fill, args=(0,), name="weft-record", daemon=True)
        self._touching.start()

    @property
    def is_ready(self) -> bool:
        """Whether it takes frames."""
        return self._has_begun and not self._touching.is_alive()

    def slot(self) -> int | None:
        """A place for a frame; None if all are taken, because the encoder is late."""
        return self._free.pop() if self._free else None

    def give_back(self, slot: int) -> None:
        """Returns a place that will not be filled."""
        self._free.append(slot)

    def add(self, slot: int, number: int, shape: tuple[int, ...], copy: Callable[[Pixels], None]) -> None:
        """Has a picture of this shape [height, width, RGBA] copied to a place. It is the frame with this number; the
        one before it is shown until then."""
        height, width = shape[:2]
        place = self._memory.frames[slot]
        copy(place[:height, :width])
        place[height:] = place[height - 1]
        place[:, width:] = place[:, width - 1 : width]
        self._send("frame", slot, number)

    def repeat(self, number: int) -> None:
        """Shows the last frame up to and with this number. To be called a few times a second at most."""
        self._send("repeat", number)

    def hear(self, samples: NDArray[np.float32]) -> None:
        """Adds sound [samples, 2]."""
        written = int(self._memory.written[0])
        at = written % _SAMPLES
        samples = samples[-_SAMPLES:]
        first = min(len(samples), _SAMPLES - at)
        self._memory.samples[at : at + first] = samples[:first]
        self._memory.samples[: len(samples) - first] = samples[first:]
        self._memory.written[0] = written + len(samples)

    def show_text(self, view: TextView, style: TextStyle) -> None:
        """Draws the text that plays over the frames that follow. The process does so."""
        self._send("text", view, style)

    def finish(self, count: int) -> None:
        """Ends the film after this many frames. It is complete some time later."""
        self._send("end", count)

    def poll(self, timeout: float = 0.0) -> None:
        """Notes what the process has done. Waits for that for at most `timeout` seconds."""
        try:
            while not self.is_done and self._child.connection.poll(timeout):
                kind, value = self._child.connection.recv()
                timeout = 0.0
                match kind:
                    case "ready":
                        self._has_begun = True
                    case "free":
                        self._free.append(value)
                    case _:
                        self.is_done, self.failure = True, value
        except (EOFError, OSError):
            with suppress(Exception):
                self._child.wait(1)
            self.is_done, self.failure = True, f"the process that encodes {self._child.ending}"

    def close(self) -> None:
        """Ends the process, whatever it is doing."""
        self._child.end()

    def _send(self, *message: Any) -> None:
        if not self.is_done:
            with suppress(OSError):  # `poll` finds out
                self._child.connection.send(message)


# --- in the process that encodes --------------------------------------------------------------------------------------


def main(descriptor: str, lifeline: str, memory: str, spec: str) -> None:
    """Encodes frames and sound as they come, until the end of the film, or until the other end of the socket is
    closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent, pulse = Connection(int(descriptor)), Pulse(int(lifeline))
    said = json.loads(spec)
    recording = RecordingSpec(FilmSpec(**said.pop("film")), **said)
    failure = None
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            shared = _RecordingMemory(int(memory), recording.film)
            film = _writer(recording, shared, pulse)
            parent.send(("ready", None))
            kind, text = "", None
            while kind != "end":
                while not parent.poll(BEAT):
                    pulse.beat()
                    film.hear()
                kind, *arguments = parent.recv()
                if kind == "text":
                    text = text or TextOverPictures((recording.film.width, recording.film.height))
                    text.show(*arguments)
                elif kind == "frame":
                    if text is not None:
                        text.draw(shared.frames[arguments[0]])
                    film.add(*arguments)
                    parent.send(("free", arguments[0]))
                elif kind == "repeat":
                    film.repeat(arguments[0] + 1)
                else:
                    film.end(arguments[0])
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except EncodingError as problem:
            failure = str(problem)
        except Exception as problem:  # FFmpeg has many
            failure = reason_of(recording.film, problem)
        parent.send(("end", failure))
        # The other end reads this before it learns that the process has ended.
        parent.poll(None)


class _FilmWriter:
    """Encodes frames and sound to a file."""

    def __init__(self, spec: RecordingSpec, shared: _RecordingMemory) -> None:
        import av

        film = spec.film
        ending = film.ending
        self._memory, self._rate, self._fps = shared, spec.rate, film.fps
        self._container: Any = av.open(
            f"file:{spec.path}", "w", format=FORMATS[ending].muxer,
            options={"fflags": "+bitexact+flush_packets", **_MUXING[ending]},
        )  # fmt: skip
        stream: Any = self._container.add_stream(CODECS[film.codec].encoder, rate=film.fps)
        configure(stream.codec_context, film, is_live=True)
        # This much is lost when the process is killed.
        stream.codec_context.gop_size = max(1, round(film.fps))
        self._stream = stream
        self._pixels = PixelFormat(film, is_live=True)
        self._latest: Any = None
        self._next = 0
        self._sound = SoundEncoder(self._container, film, spec.rate, MAX_CHANNELS)
        self._sound.begin()
        # A fragment cannot express that the sound begins before the film.
        self._heard = self._sound.lead
        self._sound.skip(self._heard)

    def add(self, slot: int, number: int) -> None:
        """Encodes the frame in a place, after repeating the one before up to its number. The first lasts from the
        beginning."""
        if self._latest is not None:
            self.repeat(number)
        self._latest = self._pixels.convert(self._memory.frames[slot], number)
        self.repeat(number + 1)

    def repeat(self, end: int) -> None:
        """Encodes the last frame again for all numbers before an end; black, if there was none."""
        if self._latest is None:
            self._latest = self._pixels.convert(np.zeros_like(self._memory.frames[0]), self._next)
        while self._next < end:
            self._latest.pts = self._next
            self._next += 1
            self._mux(self._latest)
            self.hear()

    def hear(self) -> None:
        """Encodes the sound that has come, up to the last frame. Overwritten samples are silent."""
        written = min(int(self._memory.written[0]), int(self._next * self._rate / self._fps))
        lost = max(0, min(written, int(self._memory.written[0]) - _SAMPLES) - self._heard)
        if lost:
            self._sound.write(np.zeros((lost, MAX_CHANNELS), np.float32))
            self._heard += lost
        while self._heard < written:
            at = self._heard % _SAMPLES
            part = self._memory.samples[at : at + min(written - self._heard, _SAMPLES - at, self._rate)]
            self._sound.write(np.clip(part, -1, 1))
            self._heard += len(part)

    def end(self, count: int) -> None:
        """Ends the film after this many frames, with as much sound."""
        self.repeat(count)
        self.hear()
        self._mux(None)
        self._sound.end()
        self._container.close()

    def _mux(self, frame: Any) -> None:
        for packet in self._stream.encode(frame):
            packet.duration = 1  # the last one of a fragment has no successor that would show it
            self._container.mux(packet)


def _writer(spec: RecordingSpec, shared: _RecordingMemory, pulse: Pulse) -> _FilmWriter | _OutletWriter:
    """The writer of the frames. Raises EncodingError, and any error of FFmpeg."""
    match outlet_of(spec.path):
        case "pipe", path:
            return _PipeWriter(spec, shared, path, pulse)
        case "v4l2", path:
            return _CameraWriter(spec, shared, path)
    return _FilmWriter(spec, shared)


class _OutletWriter(ABC):
    """Gives frames to another program, each as soon as it comes."""

    def __init__(self, spec: RecordingSpec, shared: _RecordingMemory) -> None:
        self._memory = shared
        self._pixels = PixelFormat(spec.film, is_live=True)

    def add(self, slot: int, number: int) -> None:
        """Gives the frame in a place."""
        self._write(self._pixels.convert(self._memory.frames[slot], number))

    def repeat(self, end: int) -> None:
        """Does nothing: a program that reads has its own pace."""

    def hear(self) -> None:
        """Does nothing: there is no sound."""

    @abstractmethod
    def _write(self, frame: Any) -> None:
        """Gives a frame in YUV 4:2:0."""

    @abstractmethod
    def end(self, count: int) -> None:
        """Does nothing."""


class _PipeWriter(_OutletWriter):
    """Writes a y4m to a named pipe, from its header on for each program that opens it."""

    def __init__(self, spec: RecordingSpec, shared: _RecordingMemory, path: str, pulse: Pulse) -> None:
        """Raises EncodingError if there is no pipe of this name."""
        super().__init__(spec, shared)
        self._path, self._pulse = path, pulse
        self._header = y4m_header((spec.film.width, spec.film.height), float(spec.film.fps), "420mpeg2")
        self._pipe: int | None = None
        try:
            is_pipe = stat.S_ISFIFO(os.stat(path).st_mode)
        except OSError as problem:
            is_pipe = False
            if problem.errno != errno.ENOENT:
                raise EncodingError(f"{path} cannot be opened: {problem.strerror}") from None
        if not is_pipe:
            raise EncodingError(f"{path} is no pipe (mkfifo {shlex.quote(path)} makes one)")

    def _write(self, frame: Any) -> None:
        parts = [Y4M_FRAME]
        for plane in frame.planes:
            rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
            parts.append(rows[:, : plane.width].tobytes())
        try:
            if self._pipe is None:
                self._pipe = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
                parts.insert(0, self._header)
            self._send(self._pipe, b"".join(parts))
        except OSError as problem:
            # No program reads it yet, or any more.
            if problem.errno not in (errno.ENXIO, errno.EPIPE):
                raise EncodingError(f"{self._path} cannot be written: {problem.strerror}") from None
            self.end(0)

    def _send(self, pipe: int, data: bytes) -> None:
        """Waits for the reader for as long as it takes."""
        rest = memoryview(data)
        while rest:
            self._pulse.beat()
            if select.select((), (pipe,), (), BEAT)[1]:
                rest = rest[os.write(pipe, rest) :]

    def end(self, count: int) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None


class _CameraWriter(_OutletWriter):
    """Gives frames to a loopback camera of Linux, which other programs open as a camera."""

    def __init__(self, spec: RecordingSpec, shared: _RecordingMemory, path: str) -> None:
        """Raises EncodingError if it takes no pictures."""
        import av

        super().__init__(spec, shared)
        try:
            self._container: Any = av.open(path, "w", format="v4l2")
            self._stream: Any = self._container.add_stream("rawvideo", rate=spec.film.fps)
            self._stream.width, self._stream.height = spec.film.width, spec.film.height
            self._stream.pix_fmt = CODECS[spec.film.codec].pixels
            self._container.start_encoding()
        except Exception as problem:  # FFmpeg has many
            reason = getattr(problem, "strerror", None) or problem
            words = f"{path} takes no pictures: {reason} (the kernel module v4l2loopback makes cameras that do)"
            raise EncodingError(words) from None

    def _write(self, frame: Any) -> None:
        for packet in self._stream.encode(frame):
            self._container.mux(packet)

    def end(self, count: int) -> None:
        self._container.close()
