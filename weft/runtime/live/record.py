"""Recording a performance: the places of pictures and samples in a film, the files that it is written to, and its
course.

The sound leads. A film has the samples that the device is given, one after another, and a picture that was drawn for
the time t is shown with the sample that was computed for t. Both are counted, so nothing drifts, even if the clocks of
the sound device and of the computer differ. Without sound, the computer's clock counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from math import ceil, floor
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.backends.base import DeviceLostError, PictureHandle, Values
from weft.media.frames import Pixels
from weft.runtime.films.encoding import EncodingError, missing_encoder
from weft.runtime.films.recording import LEAD, LiveEncoder, recording_spec
from weft.runtime.hands.clock import Clock
from weft.runtime.live.events import Reporter
from weft.runtime.program.files import claim
from weft.runtime.screens.text_view import TextStyle, TextView
from weft.runtime.sound.player import Sound, Stream
from weft.runtime.sound.shared import SoundState, SoundTape

ENDING = ".mp4"
"""The ending of films that have no name of their own."""

# The most frames that a frame may be away from its number before one is left out or repeated, since the loop is uneven.
_EARLY, _LATE = -0.2, 1.2
# The seconds between messages about pictures that stand still, or about an encoder that is late.
_STILL = 0.5
_BEHIND = 1.0
# Seconds for which sound may still come at the beginning, and the samples that can be read from a tape.
_SILENT = 0.5
_ON_TAPE = SoundTape.LENGTH - 16_384
# Seconds to wait for an encoder at the beginning, and at the end.
_TO_BEGIN, _TO_END = 10.0, 60.0


Samples: TypeAlias = NDArray[np.float32]
"""[samples, 2]"""


class FilmTimeline:
    """The places of pictures and samples in a film, which begins `LEAD` seconds and about half a frame before its first
    picture."""

    def __init__(self, fps: float, rate: int) -> None:
        self._fps, self._rate = fps, rate
        self._stream: Stream | None = None
        self._offset = 0
        """The sample of the film that is sample 0 on the tape of the stream."""
        self._origin: float | None = None
        """The moment of the beginning, by the computer's clock."""
        self.heard = 0
        """The number of samples in the film."""
        self.count = 0
        """The number of frames in the film."""

    def place(self, stream: Stream | None, clock: Clock) -> float:
        """The second of the film at which a picture is shown that was just drawn for the clock's latest tick."""
        now = time.monotonic()
        if self._origin is None:
            self._origin = now - (ceil(LEAD * self._fps) + 0.5) / self._fps
        figures = None if stream is None else stream.latest
        if stream is None or figures is None or figures.state is SoundState.STARTING:
            return now - self._origin
        # At a pause, time passes only for the loudspeaker.
        is_still = clock.paused or figures.state is SoundState.PAUSED
        later = now - figures.heard if is_still else clock.latest.time - figures.seconds
        if stream is not self._stream:
            self._stream = stream
            self._offset = round((now - self._origin - later) * self._rate) - figures.taped
        seconds = (self._offset + figures.taped) / self._rate + later
        self._origin = now - seconds
        return seconds

    def number(self, seconds: float) -> int | None:
        """The number of the frame for a picture at this second, which is at least `count`; None if it is too early."""
        late = seconds * self._fps - self.count
        if late < _EARLY:
            return None
        return self.count if late <= _LATE else floor(seconds * self._fps)

    def samples(self, seconds: float) -> Samples:
        """The samples that were played since the last call, at this second. Without a stream, silence."""
        stream, heard = self._stream, self.heard
        if stream is None:
            # A stream may begin now.
            self.heard = max(heard, round((seconds - _SILENT) * self._rate))
            return _silence(self.heard - heard)
        end = self._offset + stream.figures.taped
        if end <= heard:
            return _silence(0)
        self.heard = end
        # Older samples are overwritten.
        first = max(heard, end - _ON_TAPE)
        return np.concatenate([_silence(first - heard), stream.tape.read(first - self._offset, end - self._offset)])

    def rest(self) -> Samples:
        """The silence that is missing from the sound at the end of the film."""
        return _silence(max(0, round(self.count / self._fps * self._rate) - self.heard))


def _silence(count: int) -> Samples:
    return np.zeros((count, SoundTape.CHANNELS), np.float32)


class PictureSender:
    """Sends pictures to an encoder. The pixels are requested from a device, which delivers them for the next frame."""

    def __init__(self, encoder: LiveEncoder) -> None:
        self.encoder = encoder
        self._under_way: list[tuple[int, int, Callable[[], Pixels]]] = []
        """The place and the number of each picture that was requested from a device, and what lends it."""

    def send(self, picture: Values, number: int) -> bool:
        """Sends a picture as the frame with this number; False if there is no room, because the encoder is late. A
        picture of a lost device is left out."""
        slot = self.encoder.slot()
        if slot is None:
            return False
        if isinstance(picture, PictureHandle):
            try:
                self._under_way.append((slot, number, picture.lending()))
            except DeviceLostError:
                self.encoder.give_back(slot)
        else:
            self.encoder.add(slot, number, picture)
        return True

    def fetch(self) -> None:
        """Sends the pictures that were requested from devices a frame ago."""
        for slot, number, lend in self._under_way:
            try:
                self.encoder.add(slot, number, lend())
            except DeviceLostError:
                self.encoder.give_back(slot)
        self._under_way.clear()


@dataclass
class _Take:
    """A film that is being written, and its numbers."""

    encoder: LiveEncoder
    path: Path
    partial: Path
    timeline: FilmTimeline
    wanted: tuple[tuple[int, int], float, int]
    """The size, frames a second and samples a second that it was begun with."""
    dropped: int = 0
    """Frames that were dropped because the encoder was late."""
    repeated: int = 0
    """Frames that were not drawn, since drawing took too long."""
    picture: Values | None = None
    """The latest picture."""
    is_waiting: bool = False
    """Whether the film does not have it yet."""
    said_at: float = 0.0
    said: int = 0
    """When the encoder was last reported to be late, and the number of dropped frames at that time."""
    stood: float = 0.0
    text: TextView | None = None
    """The text that is over its pictures."""
    pictures: PictureSender = field(init=False)

    def __post_init__(self) -> None:
        self.pictures = PictureSender(self.encoder)

    @property
    def seconds(self) -> float:
        return self.timeline.count / self.wanted[1]

    @property
    def figures(self) -> dict[str, object]:
        return {"frames": self.timeline.count, "dropped": self.dropped, "repeated": self.repeated}


class Recorder:
    """Records what a session plays. For the thread that draws, which waits here only in `begin` and `close`."""

    def __init__(
        self, reporter: Reporter, sound: Sound, base: Path, out: Path | None = None, text: TextStyle | None = None
    ) -> None:
        """Films are written to `out`, or as NAME-001.mp4 and so on, where `base` is NAME in its folder. With a style,
        the text that plays is over the pictures."""
        self.base = base
        self._text_style = text
        self.written: list[str] = []
        """The lines to report about films that have ended."""
        self._reporter = reporter
        self._sound = sound
        self._out = out
        self._take: _Take | None = None
        self._ending: list[_Take] = []

    # --- the course -----------------------------------------------------------------------------------------------

    def toggle(self, size: tuple[int, int], fps: float, rate: int) -> None:
        """Begins a film, or ends it."""
        if self._take is None:
            self.start(size, fps, rate)
        else:
            self.stop()

    def start(self, size: tuple[int, int], fps: float, rate: int) -> None:
        """Begins a film for pictures of this size. Its first frame comes when the encoder has started."""
        missing = missing_encoder()
        if missing is not None:
            self._fail(self._out or self.base.parent, f"no recording: {missing}", {})
            return
        path, partial = self._out or self.base.parent, None
        try:
            path, partial = self._names()
            spec = recording_spec(partial, size, fps, rate)
            encoder = LiveEncoder(spec)
        except (OSError, EncodingError) as problem:
            if partial is not None:
                partial.unlink(missing_ok=True)
            reason = (isinstance(problem, OSError) and problem.strerror) or str(problem)
            self._fail(path, f"no recording: {path} cannot be written: {reason}", {})
            return
        timeline = FilmTimeline(float(spec.film.fps), rate)
        self._take = _Take(encoder, path, partial, timeline, (size, fps, rate))
        self._reporter.events.emit("recording", state="started", path=str(path), frames=0, dropped=0)
        self._reporter.mention(f"recording {path.name}")

    def stop(self) -> None:
        """Ends the film, which is complete some time later."""
        take, self._take = self._take, None
        if take is None:
            return
        self._reporter.notices.recording = ""
        if not take.timeline.count:
            take.encoder.close()
            take.partial.unlink(missing_ok=True)
            self._fail(take.path, "nothing is recorded: the encoder was still starting", take.figures)
            return
        take.pictures.fetch()
        take.encoder.hear(take.timeline.rest())
        take.encoder.finish(take.timeline.count)
        self._ending.append(take)

    @property
    def wants_text(self) -> bool:
        """Whether films have the text that plays over their pictures."""
        return self._text_style is not None

    def show_text(self, view: TextView) -> None:
        """Shows this over the pictures that follow."""
        take = self._take
        if self._text_style is not None and take is not None and take.encoder.is_ready and take.text is not view:
            take.text = view
            take.encoder.show_text(view, self._text_style)

    def begin(self) -> None:
        """Waits until the encoder has started, so that nothing is missed."""
        until = time.monotonic() + _TO_BEGIN
        while (take := self._take) is not None and not take.encoder.is_ready and time.monotonic() < until:
            take.encoder.poll(0.05)
            self._poll_encoders()

    def close(self) -> None:
        """Ends the film, and waits until it is complete. May be called twice."""
        self.stop()
        until = time.monotonic() + _TO_END
        try:
            while self._ending and time.monotonic() < until:
                self._ending[0].encoder.poll(0.05)
                self._poll_encoders()
        finally:
            for take in self._ending:
                take.encoder.close()
                self._keep(take, "the encoder does not come to an end")
            self._ending = []

    def follow(self, picture: Values | None, clock: Clock, size: tuple[int, int], fps: float, rate: int) -> None:
        """Once a frame: adds the picture that is shown, and the sound that was played. A film has one size and
        one rate: when these change, the next film begins."""
        self._poll_encoders()
        take = self._take
        if take is None:
            return
        if take.wanted != (size, fps, rate):
            self.stop()
            self.start(size, fps, rate)
        elif take.encoder.is_ready:
            self._add(take, picture, clock, rate)

    # --- frames ---------------------------------------------------------------------------------------------------

    def _add(self, take: _Take, picture: Values | None, clock: Clock, rate: int) -> None:
        take.pictures.fetch()
        stream, timeline = self._sound.audible, take.timeline
        seconds = timeline.place(stream if stream is not None and stream.options.rate == rate else None, clock)
        take.encoder.hear(timeline.samples(seconds))
        if picture is not take.picture:
            # If a buffer returns after another one was shown, it holds a new picture.
            take.picture, take.is_waiting = picture, True
        number = timeline.number(seconds)
        if number is not None:
            self._add_frame(take, picture, number)
        self._report(take)

    def _add_frame(self, take: _Take, picture: Values | None, number: int) -> None:
        """Adds a picture as the frame with this number."""
        now, skipped = time.monotonic(), number - take.timeline.count
        take.timeline.count = number + 1
        if picture is None or not take.is_waiting:
            if now - take.stood >= _STILL:
                take.stood = now
                take.encoder.repeat(number)
            return
        take.repeated += skipped
        if take.pictures.send(picture, number):
            take.is_waiting = False
        else:
            take.dropped += 1

    # --- reports --------------------------------------------------------------------------------------------------

    def _report(self, take: _Take) -> None:
        minutes, seconds = divmod(int(take.seconds), 60)
        now = time.monotonic()
        if take.dropped > take.said and now - take.said_at >= _BEHIND:
            if not take.said:
                self._reporter.echo(f"the encoder cannot follow: frames are dropped from {take.path.name}")
            take.said, take.said_at = take.dropped, now
            self._reporter.events.emit("recording", state="behind", path=str(take.path), **take.figures)
        # It changes once a second, since drawing it takes time.
        self._reporter.notices.recording = f"{minutes}:{seconds:02}{_dropped(' · ', take.said)}"

    def _poll_encoders(self) -> None:
        """Notes what the encoders have done."""
        take = self._take
        if take is not None:
            take.encoder.poll()
            if take.encoder.is_done:
                self._take = None
                self._reporter.notices.recording = ""
                self._ending.append(take)
        for take in [*self._ending]:
            take.encoder.poll()
            if take.encoder.is_done:
                self._ending.remove(take)
                take.encoder.close()
                self._keep(take, take.encoder.failure)

    def _keep(self, take: _Take, failure: str | None) -> None:
        """Gives a film its name if it is complete."""
        if failure is None:
            try:
                path = self._named(take)
            except OSError as problem:
                failure = problem.strerror or str(problem)
            else:
                self._say(f"recorded {path}, {take.seconds:.1f} s{_dropped(', ', take.dropped)}")
                self._reporter.events.emit("recording", state="stopped", path=str(path), **take.figures)
                return
        with suppress(OSError):
            if not take.partial.stat().st_size:
                take.partial.unlink()
        kept = f"; what was complete is kept in {take.partial}" if os.path.exists(take.partial) else ""
        self._fail(take.path, f"recording {take.path.name} has ended: {failure}{kept}", take.figures)

    def _fail(self, path: Path, words: str, figures: dict[str, object]) -> None:
        self._say(words)
        self._reporter.events.emit("recording", state="failed", path=str(path), reason=words, **figures)

    def _say(self, words: str) -> None:
        self._reporter.mention(words)
        self.written.append(words)

    # --- names ----------------------------------------------------------------------------------------------------

    def _names(self) -> tuple[Path, Path]:
        """The name of the next film, and the temporary name that it has until it is complete, which is taken now.
        Nothing that exists is overwritten. Raises OSError."""
        for path in self._free_names():
            partial = path.with_name(f"{path.stem}.part{path.suffix}")
            if claim(partial):
                return path, partial
        raise AssertionError("the names never end")

    def _free_names(self) -> Iterator[Path]:
        out = self._out
        if out is not None and not out.exists():
            yield out
        base, ending = (self.base, ENDING) if out is None else (out.with_suffix(""), out.suffix)
        numbered = (base.with_name(f"{base.name}-{number:03}{ending}") for number in count(1))
        yield from (path for path in numbered if not path.exists())

    def _named(self, take: _Take) -> Path:
        """Gives a complete film its name, or the next one if that is taken meanwhile. Raises OSError."""
        path = take.path
        if path.exists():
            path, taken = self._names()
            taken.unlink()
        return take.partial.rename(path)


def _dropped(separator: str, count: int) -> str:
    """The number of dropped frames in words, if there are any."""
    return f"{separator}{count} frame{'s' * (count != 1)} dropped" if count else ""
