"""Films as PyAV reads them: their headers, and the process that decodes them ahead of time."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft.media.animations import AnimationIndex, AnimationReader, DecodedFrame, animation_header, is_animation
from weft.media.containers import A_FILM, opened_file, reason_of
from weft.media.frames import FrameMemory, frames_kept, serve
from weft.media.shown import has_alpha, rgba, size_of
from weft.media.source import PictureError

# Files of more bytes are not read through for an index. Their header has to suffice.
_INDEXED = 2_000_000_000
# Without an index, up to this many seconds are decoded rather than skipped.
_AHEAD_WITHOUT_INDEX = 2.0
# Up to this many frames are decoded rather than skipped, since a jump takes some time as well.
_NEAR = 8
# The most frames that are decoded ahead, forwards and backwards.
_FORWARDS, _BACKWARDS = 16, 64
# The formats whose times are whole numbers of their time base, as they are meant.
_EXACT = ("gif", "apng")
# Damaged packets in a row, after which a film counts as ended.
_DAMAGED = 100
# The seconds between two looks at what is wanted; the second number after _IDLE seconds without a request.
_LOOK, _SELDOM, _IDLE = 0.0015, 0.01, 1.0


class FilmHeader(NamedTuple):
    """The size of a film as it is shown; its length in seconds and in frames if they are known, else 0; the channels of
    its sound, 0 if it has none; and whether its pixels have an alpha."""

    width: int
    height: int
    seconds: float
    frames: int
    channels: int
    has_alpha: bool = False


def probe(path: Path) -> FilmHeader:
    """Reads the header of a film, and its first frame, which shows whether the film is turned. Raises PictureError."""
    if is_animation(path):
        found = animation_header(path)
        return FilmHeader(found.width, found.height, sum(found.lasts), len(found.lasts), 0, found.has_alpha)
    with opened_file(path, A_FILM) as container:
        stream = _stream(container)
        known = [entry for entry in stream.index_entries if entry.size]
        there = path.stat().st_size
        if known and (needed := max(entry.pos + entry.size for entry in known)) > there:
            raise PictureError(f"it is incomplete: {there:,} of at least {needed:,} bytes are there", "copy it again")
        first = next(_frames(container, stream), None)
        if first is None:
            raise PictureError("it has no pictures")
        seconds: float = _seconds(container, stream)
        rate = stream.average_rate or stream.guessed_rate or Fraction(0)
        frames = stream.frames or math.ceil(seconds * rate)
        if stream.frames and rate and stream.duration is not None:
            seconds = _exact(stream.frames, rate, seconds, stream.time_base)
        sound = container.streams.audio
        channels = sound[0].codec_context.channels if sound else 0
        return FilmHeader(*size_of(first, stream), seconds, frames, channels, has_alpha(first))


def _stream(container: Any) -> Any:
    """The pictures of a film. Raises PictureError if it has none."""
    form = container.format.name
    if form.endswith("_pipe") or form == "image2":
        raise PictureError(f"it is a single picture ({form.removesuffix('_pipe')})", "rename it to what it is")
    for stream in container.streams.video:
        if "ATTACHED_PIC" not in (stream.disposition.name or ""):  # the cover of a record
            stream.thread_type = "AUTO"
            return stream
    raise PictureError("it has no pictures", "it is a sound: end its name in .wav, .flac, .ogg or .mp3")


def _frames(container: Any, stream: Any) -> Iterator[Any]:
    """The frames of a film from where it is. FFmpeg's own decoders of VP8 and VP9 leave out an alpha; libvpx has it."""
    name = _WITH_ALPHA.get(stream.codec_context.name)
    if name is None or stream.metadata.get("alpha_mode") != "1":
        yield from container.decode(stream)
        return
    import av

    decoder: Any = av.CodecContext.create(name, "r")
    decoder.thread_type = "AUTO"
    for packet in container.demux(stream):
        yield from decoder.decode(packet)


_WITH_ALPHA = {"vp8": "libvpx", "vp9": "libvpx-vp9"}


def _seconds(container: Any, stream: Any) -> float:
    """The length of a film by its header; 0 if that does not contain it."""
    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    return (container.duration or 0) / 1e6


def _exact(frames: int, rate: Fraction, seconds: float, unit: Fraction) -> float:
    """The length of a film. If all frames have the same duration, their number is more exact than time stamps, which
    were rounded to a unit."""
    exact = float(frames / rate)
    return exact if abs(exact - seconds) <= 2 * float(unit) else seconds


def times_of(path: Path) -> tuple[float, float]:
    """The start of the time of a film, on the clock of its file, and its length in seconds. Reads through the file.
    Raises PictureError."""
    with opened_file(path, A_FILM) as container:
        index = FilmIndex(container, path)
    index.measure(path)
    return index.origin, index.seconds


# --- in the process that decodes --------------------------------------------------------------------------------------


def main(descriptor: str, lifeline: str, memory: str, width: str, height: str, path: str) -> None:
    """Decodes the wanted frames of a film until the other end of the socket with this descriptor is closed. Reports a
    problem of the film, and None when there is none any more."""
    parent = Connection(int(descriptor))
    frames = FrameMemory(int(memory), int(width), int(height))
    serve(parent, int(lifeline), lambda: _decode(frames, Path(path), parent))


def _decode(memory: FrameMemory, path: Path, parent: Connection) -> None:
    said: str | None = None
    while True:
        try:
            index = index_of(path)
            threading.Thread(target=index.read, args=(path, memory), daemon=True).start()
            decoder = FilmDecoder(memory, index)
            while True:
                if not decoder.step():
                    time.sleep(_LOOK if decoder.idle < _IDLE else _SELDOM)
                if said is not None:
                    parent.send(None)
                    said = None
        except Exception as failure:  # FFmpeg has many, and none may end this thread
            reason = reason_of(failure)
            if reason != said:
                said = reason
                parent.send(said)
        time.sleep(_AGAIN)


# Seconds before a film that could not be read is tried again.
_AGAIN = 1.0


def index_of(path: Path) -> FilmIndex | AnimationIndex:
    """The times of a film. Raises PictureError."""
    if is_animation(path):
        return AnimationIndex(path)
    with opened_file(path, A_FILM) as container:
        return FilmIndex(container, path)


class FilmIndex:
    """The times of a film. Its time 0 is the beginning of the file, which may be before the first frame."""

    def __init__(self, container: Any, path: Path) -> None:
        stream = _stream(container)
        self._path = path
        self.base: Fraction = stream.time_base
        rate = stream.average_rate or stream.guessed_rate or Fraction(25)
        self.frame = float(1 / rate) if rate > 0 else 0.04
        """The usual seconds of a frame."""
        began = [stream.start_time * self.base] if stream.start_time is not None else []
        began += [Fraction(container.start_time, 1_000_000)] if container.start_time is not None else []
        self.origin = float(min(began, default=Fraction(0)))
        # Some files round times to their time base, so a frame may be too late.
        unit = float(self.base)
        self._early = unit / 2 if unit < self.frame / 10 else self.frame / 1000
        if container.format.name in _EXACT:
            self._early = 1e-5
        self.seconds = _seconds(container, stream) or self.frame
        self._rate = rate
        self.keys: list[float] | None = None
        """The times of the key frames, once they are known."""

    def reader(self) -> _Reader:
        """What decodes the film. Raises PictureError."""
        return _Reader(self._path, self)

    def time(self, stamp: int) -> float:
        """The time of a time stamp: slightly early, so that a time that was rounded down belongs to its frame."""
        return stamp * self.base.numerator / self.base.denominator - self.origin - self._early

    def stamp(self, seconds: float) -> int:
        """The last time stamp up to a time."""
        return int((seconds + self.origin + self._early) / float(self.base) + 1e-6)

    def read(self, path: Path, memory: FrameMemory) -> None:
        """Reads through the file for key frames and the exact length."""
        memory.film["seconds"] = self.seconds
        try:
            self.measure(path)
            memory.film["seconds"] = self.seconds
        finally:
            memory.film["indexed"] = 1

    def measure(self, path: Path) -> None:
        """Finds key frames and the exact length, for this object alone."""
        with contextlib.suppress(PictureError, OSError):
            if path.stat().st_size <= _INDEXED:
                self._read(path)

    def _read(self, path: Path) -> None:
        keys, count, end = [], 0, 0.0
        with opened_file(path, A_FILM) as container:
            stream = _stream(container)
            for packet in container.demux(stream):
                if packet.pts is None or not packet.size:
                    continue
                count += 1
                begin = self.time(packet.pts)
                if packet.is_keyframe:
                    keys.append(begin)
                lasts = float(packet.duration * self.base) if packet.duration else self.frame
                end = max(end, begin + self._early + lasts)
        if count:
            self.seconds = _exact(count, self._rate, end, self.base) if self._rate else end
            self.keys = sorted(keys)


class _Reader:
    """Decodes frame after frame of a film, from any place on."""

    def __init__(self, path: Path, index: FilmIndex) -> None:
        self._index = index
        self._path = path
        self._frames: Iterator[Any] | None = None
        self._pending: tuple[float, Any] | None = None
        """The next frame and its start. It is returned when its end is known."""
        self.position: float | None = None
        """The start of the next frame; None if there is none, or before anything is read."""
        self._sought = 0.0
        """The time to which it jumped last. The jump may have ended long before that time, and must not be repeated."""
        self._open()
        self._first = self.position

    def _open(self) -> None:
        self._context = opened_file(self._path, A_FILM)
        self._container = self._context.__enter__()
        self.stream = _stream(self._container)
        self._frames, self._pending = None, None
        self._load()

    def pixels(self, frame: Any) -> NDArray[np.uint8]:
        """The pixels [height, width, RGBA] of a frame that it has given."""
        return rgba(frame, self.stream)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._context.__exit__(None, None, None)

    def is_before(self, seconds: float) -> bool:
        """Whether decoding further is the way to a time, rather than a jump."""
        if self.position is None or seconds < self.position:
            return False
        if seconds <= self._sought:
            return True
        keys = self._index.keys
        if keys is None:
            return seconds - self.position < _AHEAD_WITHOUT_INDEX
        is_near = seconds - self.position < _NEAR * self._index.frame
        return is_near or bisect_right(keys, self.position) >= bisect_right(keys, seconds)

    def seek(self, seconds: float) -> None:
        """Goes to the last key frame up to a time."""
        back, self._sought = 0.0, seconds
        for attempt in range(6):
            target = max(0.0, seconds - back)
            first = self._index.stamp(target)
            if target == 0.0:
                first = min(first, self.stream.start_time or first)
            self._container.seek(first, stream=self.stream, backward=True)
            self._frames, self._pending = None, None
            self._load()
            if self.position is not None and self.position <= seconds:
                break
            if target == 0.0:
                if self.position != self._first:
                    self.close()
                    self._open()
                break
            # The container does not know where its key frames are.
            back = 2.0**attempt

    def next(self) -> DecodedFrame | None:
        """The next frame; None at the end."""
        if self._pending is None:
            return None
        start, frame = self._pending
        self._load()
        end = self.position
        if end is None:
            # The last frame stays until the end, even if others should follow.
            lasts = float(frame.duration * self._index.base) if frame.duration else self._index.frame
            end = max(start + lasts, self._index.seconds) + 1.0
        return DecodedFrame(start, max(end, start), frame)

    def _load(self) -> None:
        """Decodes the pending frame."""
        import av

        before, damaged = self._pending, 0
        self._pending, self.position = None, None
        while damaged < _DAMAGED:
            if self._frames is None:
                self._frames = _frames(self._container, self.stream)
            try:
                frame = next(self._frames, None)
            except (OSError, ValueError, av.error.FFmpegError):
                damaged += 1
                self._frames = None
                continue
            if frame is None:
                return
            usual = self._index.frame
            start = self._index.time(frame.pts) if frame.pts is not None else before[0] + usual if before else 0.0
            self._pending, self.position = (start, frame), start
            return


@dataclass
class _ReadHead:
    """One time at which the film is read, in the decoder's view."""

    reader: _Reader | AnimationReader
    asked: int = 0
    seconds: float = 0.0
    step: float = 0.0
    """The step from one picture to the next."""


class FilmDecoder:
    """Decodes the frame that is wanted next, one after another."""

    def __init__(self, memory: FrameMemory, index: FilmIndex | AnimationIndex) -> None:
        self._memory = memory
        self._index = index
        self._heads: dict[int, _ReadHead] = {}
        self._written = int(memory.places["frame"].max())
        height, width, _ = memory.pixels(0).shape
        self._kept = frames_kept(width, height)
        self._wanted = time.monotonic()
        self._is_done = False

    @property
    def idle(self) -> float:
        """The seconds for which nothing new has been wanted."""
        return time.monotonic() - self._wanted

    def step(self) -> bool:
        """Decodes a frame; False if there is nothing to do."""
        if not self._look() and self._is_done:
            return False
        found: tuple[int, _ReadHead, float] | None = None
        needed: set[int] = set()
        for head in self._heads.values():
            missing = self._missing(head, needed)
            if missing is not None and (found is None or missing[0] < found[0]):
                found = missing[0], head, missing[1]
        self._is_done = found is None
        if found is None:
            return False
        self._advance(found[1], found[2], needed)
        return True

    def _look(self) -> bool:
        """Reads what is wanted, and returns whether that has changed."""
        has_changed = False
        for number, asked in enumerate(self._memory.heads["asked"].tolist()):
            head = self._heads.get(number)
            if asked == (0 if head is None else head.asked):
                continue
            has_changed, seconds = True, float(self._memory.heads["seconds"][number])
            if not asked:
                self._heads.pop(number).reader.close()
            elif head is None:
                step = self._index.frame
                self._heads[number] = _ReadHead(self._index.reader(), asked, seconds, step)
            else:
                step = seconds - head.seconds
                if step and abs(step) < self._index.seconds / 2:  # otherwise it began again
                    head.step = step
                head.asked, head.seconds = asked, seconds
                self._wanted = time.monotonic()
        return has_changed

    def _missing(self, head: _ReadHead, needed: set[int]) -> tuple[int, float] | None:
        """The first time that will be wanted and has no frame, and the number of steps to it. Adds the places of the
        frames that are there. Backwards, frames are decoded in runs, so only the next missing ones count."""
        ahead = min(self._share, _BACKWARDS if head.step < 0 else _FORWARDS)
        step = max(abs(head.step), self._index.frame) * (-1 if head.step < 0 else 1)
        length, found = max(self._index.seconds, self._index.frame), None
        for number in range(ahead):
            seconds = head.seconds + number * step
            seconds = seconds % length if head.step > 0 else seconds
            if seconds < 0:
                seconds %= length
            place = self._memory.find(seconds)
            if place is not None:
                needed.add(place)
            elif found is None and (head.step > 0 or number <= ahead // 2):
                found = number, seconds
        return found

    @property
    def _room(self) -> int:
        """The number of frames that are kept, in addition to those that are held."""
        return max(self._kept, 2 * len(self._heads))

    @property
    def _share(self) -> int:
        """The number of frames that are kept for each head."""
        return max(1, self._room // len(self._heads) - 1)

    def _advance(self, head: _ReadHead, target: float, needed: set[int]) -> None:
        """Decodes the next frame on the way to a time. Keeps it if it will be wanted, or is at least nearer to the
        picture that is wanted now than all others."""
        reader, jumped = head.reader, not head.reader.is_before(target)
        if jumped:
            reader.seek(target)
        decoded = reader.next()
        if decoded is None:
            # The file has become shorter.
            raise PictureError("it has no more pictures")
        if jumped and decoded.start > target:
            # Nothing comes before it.
            decoded = decoded._replace(start=target)
        run = min(self._share, _BACKWARDS) // 2 * max(-head.step, self._index.frame) if head.step < 0 else 0.0
        keeps = decoded.end > target - run
        if jumped and not keeps:
            nearest = self._memory.nearest(target)
            away = target - decoded.end
            keeps = nearest is None or away < max(
                self._memory.places["start"][nearest] - target, target - self._memory.places["end"][nearest]
            )
        # In damaged files, frames may overlap, and none may cover the time.
        if keeps and (decoded.start <= target < decoded.end or self._memory.find(decoded.start) is None):
            self._keep(decoded, needed, reader)

    def _keep(self, decoded: DecodedFrame, needed: set[int], reader: _Reader | AnimationReader) -> None:
        """Writes a frame to a place that is not needed."""
        memory = self._memory
        place = self._free(needed)
        if place is None:
            time.sleep(_SELDOM)
            return
        pixels = reader.pixels(decoded.frame)
        places = memory.places
        before = int(places["frame"][place])
        places["frame"][place] = 0
        if place in self._held():
            # It was taken at this very moment.
            places["frame"][place] = before
            return
        target = memory.pixels(place)
        target[...] = pixels if pixels.shape == target.shape else 0
        places["start"][place], places["end"][place] = decoded.start, decoded.end
        self._written += 1
        places["frame"][place] = self._written

    def _held(self) -> set[int]:
        return {int(place) - 1 for place in self._memory.heads["held"].reshape(-1) if place}

    def _free(self, needed: set[int]) -> int | None:
        """A place that is empty, if there is still room, or else that of the frame which is farthest from everything
        that is wanted."""
        places, held = self._memory.places, self._held()
        used = places["frame"] > 0
        if int(used.sum()) < self._room + len(held):
            for place in np.flatnonzero(~used):
                if int(place) not in held:
                    return int(place)
        away = np.full(len(places), np.inf)
        for head in self._heads.values():
            passed = (head.seconds - places["end"]) * (1 if head.step > 0 else -1)
            # Frames that have passed are needed less than those that come.
            distance = np.abs(places["start"] - head.seconds) * np.where(passed > 0, 2.0, 1.0)
            away = np.minimum(away, distance)
        away[~used] = -1.0
        away[sorted(held | needed)] = -1.0
        farthest = int(np.argmax(away))
        return farthest if away[farthest] >= 0 else None
