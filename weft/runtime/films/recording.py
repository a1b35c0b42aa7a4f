"""Films of a performance: the process that encodes frames and sound as they come, and the memory that it shares. The
processes of outlets share the same (`outlet_process`).

The file can be read at any time up to the last second: MP4 and QuickTime are written in fragments, and become an
ordinary file at the end; Matroska needs nothing for that. While it is written it has another name. PyAV is imported in
the process that encodes.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.child import BEAT, Child, Pulse
from weft.media.frames import Pixels
from weft.platform import system
from weft.runtime.films.encoding import (
    CODECS, FORMATS, MAX_CHANNELS, EncodingError, FilmSpec, PixelFormat, SoundEncoder, configure, film_spec, reason_of
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
# Seconds to wait at the end for what is copied. What takes longer keeps the memory that it looks at.
_TO_COPY = 2.0

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
    """The name of a file, or the word of an outlet."""


def recording_spec(path: Path, size: tuple[int, int], fps: float, rate: int) -> RecordingSpec:
    """The film for pictures of this size. Its width and height are made even, as encoders need it. Raises EncodingError
    for a rate that the format cannot have."""
    ending = path.suffix.lower()
    even = size[0] + size[0] % 2, size[1] + size[1] % 2
    return RecordingSpec(film_spec(ending, LIVE_CODECS[ending], None, even, fps), rate, str(path))


class RecordingMemory:
    """What both processes map: the number of written samples, the latest samples, and frames."""

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


class SoundReader:
    """Reads the sound that has come, sample by sample, in the process that encodes."""

    def __init__(self, memory: RecordingMemory, rate: int, first: int = 0) -> None:
        """Begins with the sample of this number."""
        self._memory, self._rate = memory, rate
        self._heard = first

    def until(self, end: int) -> Iterator[NDArray[np.float32]]:
        """The samples [samples, 2] before the one with this number that have come by now, in parts. Those that are
        overwritten are silent."""
        written = int(self._memory.written[0])
        end = min(written, end)
        lost = max(0, min(end, written - _SAMPLES) - self._heard)
        if lost:
            self._heard += lost
            yield np.zeros((lost, MAX_CHANNELS), np.float32)
        while self._heard < end:
            at = self._heard % _SAMPLES
            part = self._memory.samples[at : at + min(end - self._heard, _SAMPLES - at, self._rate)]
            self._heard += len(part)
            yield np.clip(part, -1, 1)


class LiveEncoder:
    """A process that encodes a performance. Nothing here waits for it, except `close`. For the thread that draws."""

    def __init__(self, spec: RecordingSpec, entry: str = "weft.runtime.films.recording:main") -> None:
        """The process runs the function `entry`. Raises EncodingError."""
        self.spec = spec
        self.told: list[tuple[str, Any]] = []
        """What else the process has said, each with its kind. What reads them removes them."""
        self.is_done = False
        """Whether the file is complete, or will never be."""
        self.failure: str | None = None
        """The reason why it has failed."""
        self.has_died = False
        """Whether that is that the process has ended without a word."""
        self.ending = ""
        """How it has, in words that follow its name."""
        self._has_begun = False
        self._free = list(range(_SLOTS))
        try:
            descriptor = system.shared_file(0)
            try:
                self._memory = RecordingMemory(descriptor, spec.film)
                self._child = Child(entry, json.dumps(asdict(spec)), descriptors=[descriptor])
            finally:
                os.close(descriptor)
        except OSError as problem:
            raise EncodingError(f"the encoder cannot be started: {problem.strerror}") from None
        # The first use of a page takes time, for which the thread that draws should not wait.
        self._touching = threading.Thread(target=self._memory.frames.fill, args=(0,), name="weft-record", daemon=True)
        self._touching.start()
        self._messages: SimpleQueue[Callable[[], tuple[Any, ...]] | None] = SimpleQueue()
        self._sending = threading.Thread(target=self._send_all, name="weft-frames", daemon=True)
        self._sending.start()

    @property
    def stood_still(self) -> bool:
        """Whether the process was killed because it did nothing."""
        return self._child.stood_still

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

    def add(self, slot: int, number: int, picture: Pixels) -> None:
        """Has another thread copy a picture [height, width, RGBA] that does not change any more to a place, and drop
        it. It is the frame with this number; the one before it is shown until then."""

        def message() -> tuple[Any, ...]:
            self._copy(slot, picture)
            return "frame", slot, number

        self._messages.put(message)

    def _copy(self, slot: int, picture: Pixels) -> None:
        """With Python's lock free."""
        height, width = picture.shape[:2]
        place = self._memory.frames[slot]
        np.copyto(place[:height, :width], picture)
        if place.shape[:2] != (height, width):
            place[height:] = place[height - 1]
            place[:, width:] = place[:, width - 1 : width]

    def repeat(self, number: int) -> None:
        """Shows the last frame up to and with this number. To be called a few times a second at most."""
        self.ask("repeat", number)

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
        self.ask("text", view, style)

    def finish(self, count: int) -> None:
        """Ends the film after this many frames. It is complete some time later."""
        self.ask("end", count)

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
                    case "end":
                        self.is_done, self.failure = True, value
                    case _:
                        self.told.append((kind, value))
        except (EOFError, OSError):
            with suppress(Exception):
                self._child.wait(1)
            self.is_done, self.has_died = True, True
            self.ending = self._child.ending
            self.failure = f"the process that encodes {self.ending}"

    def close(self) -> None:
        """Ends the process, whatever it is doing. Afterwards, no memory of a device is looked at."""
        self._messages.put(None)
        # The connection is open until nothing is sent any more: its descriptor may be that of another one afterwards.
        self._child.kill()
        self._sending.join(_TO_COPY)
        self._child.end()

    def ask(self, *message: Any) -> None:
        """Sends the process a message, after those before it. Another thread does so."""
        self._messages.put(lambda: message)

    def _send_all(self) -> None:
        while self._send_next():
            pass

    def _send_next(self) -> bool:
        """Sends a message, which is not kept while the next one is waited for; False for the last one."""
        message = self._messages.get()
        if message is None:
            return False
        with suppress(OSError):  # `poll` finds out
            self._child.connection.send(message())
        return True


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
            shared = RecordingMemory(int(memory), recording.film)
            film = _FilmWriter(recording, shared)
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

    def __init__(self, spec: RecordingSpec, shared: RecordingMemory) -> None:
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
        self._reader = SoundReader(shared, spec.rate, self._sound.lead)
        self._sound.skip(self._sound.lead)

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
        """Encodes the sound that has come, up to the last frame."""
        for samples in self._reader.until(int(self._next * self._rate / self._fps)):
            self._sound.write(samples)

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
