"""What other programs get while a performance plays: numbers by a `Sender`, and pictures, some with sound, through the
outlets that `display` names by `to: "pipe:…"`, `to: "http:…"` and so on (`weft.outlets`)."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from weft.backends.base import Values
from weft.errors import visible
from weft.outlets import OutletError, OutletSpec, outlet_of
from weft.runtime.films.encoding import EncodingError, missing_encoder
from weft.runtime.films.outlet_process import start_outlet
from weft.runtime.films.recording import LiveEncoder
from weft.runtime.films.stream_keys import StreamKeys
from weft.runtime.hands.clock import Clock
from weft.runtime.live.events import Reporter
from weft.runtime.live.record import FilmTimeline, PictureSender
from weft.runtime.sound.player import Sound

# The seconds between two reports of pictures that were dropped.
_BEHIND = 1.0
# The seconds until a process that hung in a library is started again, and those after which one that takes nothing is
# killed.
_PAUSE, _STANDS = 2.0, 8.0
# The seconds until one that has ended by itself is started again, and how often that is done before the next save.
_SOON, _MOST_STARTS = 0.25, 4


class Sender(Protocol):
    """Sends the values that the statements of a context compute to other programs."""

    def send(self, values: Mapping[str, float], now: float) -> None:
        """Sends the values of a subgraph in one frame, by their labels, at a moment in seconds. It must not wait."""

    def close(self) -> None:
        """Stops sending. May be called twice."""


@dataclass(frozen=True)
class _OutletKey:
    """What identifies an open outlet: its target, what messages call it, where it leads, width and height of the
    picture, frames a second, and samples of its sound a second."""

    target: str
    name: str
    place: str
    size: tuple[int, int]
    fps: float
    rate: int


@dataclass
class _OpenOutlet:
    """An outlet that is open."""

    encoder: LiveEncoder
    timeline: FilmTimeline
    pictures: PictureSender = field(init=False)
    dropped: int = 0
    """Pictures that did not go out, because what encodes or receives them was late."""
    is_waiting: bool = True
    """Whether there is no receiver yet, or no more."""
    stands_since: float | None = None
    """When its process began to take no pictures, by time.monotonic; None while it takes some."""
    is_told: bool = False
    """Whether it was said in words that some are dropped."""
    said: int = 0
    said_at: float = 0.0
    """How many of them were last reported, and when."""

    def __post_init__(self) -> None:
        self.pictures = PictureSender(self.encoder)


class Outlets:
    """Hands pictures to other programs, each in a process of its own. For the thread that draws, which does not wait
    here: a program that reads too slowly misses pictures."""

    def __init__(self, reporter: Reporter, sound: Sound, keys: StreamKeys) -> None:
        self._reporter = reporter
        self._sound = sound
        self._keys = keys
        self._open: dict[_OutletKey, _OpenOutlet] = {}
        self._worker = ThreadPoolExecutor(1, "weft-outlets")
        """Starts processes and ends them, one after another, which takes longer than the thread that draws has."""
        self._opening: dict[_OutletKey, Future[LiveEncoder]] = {}
        self._failed: set[_OutletKey] = set()
        self._resting: dict[_OutletKey, float] = {}
        """When to start the processes again that have died, by time.monotonic."""
        self._ends: Counter[_OutletKey] = Counter()
        """How often processes have ended by themselves."""
        self._secret = secrets.token_urlsafe(18)
        self._addresses: set[str] = set()

    def retry(self) -> None:
        """Tries to open outlets that have failed once more, with their next picture."""
        self._failed.clear()
        self._ends.clear()

    def follow(self, pictures: Mapping[str, Values], folder: Path, fps: float, rate: int, clock: Clock) -> None:
        """Once a frame: gives the pictures that are shown, by the names of their outlets, and the sound that was
        played, at this rate. Paths are relative to the folder of the patch."""
        if not pictures and not self._open and not self._opening:
            return
        wanted = dict(self._wanted(pictures, folder, fps, rate))
        for key in [key for key in self._open if key not in wanted]:
            self._close(key, "closed")
        for key in [key for key, opening in self._opening.items() if opening.done()]:
            self._opened(key, self._opening.pop(key), key in wanted)
        for key, picture in wanted.items():
            is_closed = key not in self._open and key not in self._opening and key not in self._failed
            if is_closed and time.monotonic() >= self._resting.get(key, 0.0):
                self._begin(key)
            if key in self._open:
                self._give(key, self._open[key], picture, clock)

    def _wanted(
        self, pictures: Mapping[str, Values], folder: Path, fps: float, rate: int
    ) -> list[tuple[_OutletKey, Values]]:
        """The outlets of the pictures. One whose text names no place was an error when the patch was read."""
        found = []
        for target, picture in pictures.items():
            outlet = outlet_of(target)
            try:
                place = None if outlet is None else outlet.place
            except OutletError:
                continue
            if outlet is None or place is None:
                continue
            text = str(folder.absolute() / place.text) if place.reaches == "file" else place.text
            size, sampled = (picture.shape[1], picture.shape[0]), rate if outlet.spec.has_sound else 0
            found.append((_OutletKey(target, place.shown or target, text, size, fps, sampled), picture))
        return found

    def _begin(self, key: _OutletKey) -> None:
        spec = _spec(key)
        if spec.is_encoded and (missing := missing_encoder()) is not None:
            self._fail(key, missing)
            return
        secrets_of = self._secret, self._keys.key(spec, key.place)
        arguments = spec, key.place, key.size, key.fps, key.rate, *secrets_of
        self._opening[key] = self._worker.submit(start_outlet, *arguments)

    def _opened(self, key: _OutletKey, opening: Future[LiveEncoder], is_wanted: bool) -> None:
        """Takes over a process that was started."""
        try:
            encoder = opening.result()
        except EncodingError as problem:
            self._fail(key, str(problem))
            return
        if is_wanted:
            self._open[key] = _OpenOutlet(encoder, FilmTimeline(key.fps, key.rate))
            self._reporter.window(key.name, "opened")
        else:
            self._worker.submit(encoder.close)

    def _give(self, key: _OutletKey, outlet: _OpenOutlet, picture: Values, clock: Clock) -> None:
        encoder = outlet.encoder
        encoder.poll()
        while encoder.told:
            self._tell(key, outlet, *encoder.told.pop(0))
        if encoder.is_done and encoder.has_died:
            self._start_again(key, encoder)
        elif encoder.is_done:
            self._fail(key, encoder.failure or "it has ended")
        elif encoder.is_ready:
            outlet.pictures.fetch()
            number = self._number(key, outlet, clock)
            if number is not None:
                outlet.timeline.count = number + 1
                self._send(key, outlet, picture, number)
            self._report(key, outlet)

    def _send(self, key: _OutletKey, outlet: _OpenOutlet, picture: Values, number: int) -> None:
        """Sends a picture. A process that takes none for long hangs in a library, and is started again."""
        now = time.monotonic()
        if outlet.pictures.send(picture, number):
            outlet.stands_since = None
        elif key.rate:
            outlet.dropped += 1
            outlet.stands_since = outlet.stands_since or now
            if now - outlet.stands_since > _STANDS:
                self._rest(key)

    def _number(self, key: _OutletKey, outlet: _OpenOutlet, clock: Clock) -> int | None:
        """The number of the next frame, after the sound before it was given; None if it is too early for one."""
        timeline = outlet.timeline
        if not key.rate:
            return timeline.count
        stream = self._sound.audible
        seconds = timeline.place(stream if stream is not None and stream.options.rate == key.rate else None, clock)
        outlet.encoder.hear(timeline.samples(seconds))
        return timeline.number(seconds)

    def _tell(self, key: _OutletKey, outlet: _OpenOutlet, kind: str, said: str | int) -> None:
        """Reports what the process has said."""
        if isinstance(said, int):
            outlet.dropped += said
        elif kind == "address":
            # Not over the picture, which an audience sees.
            if said not in self._addresses:
                self._addresses.add(said)
                self._reporter.echo(f"{_spec(key).name}: the picture is at {said}")
        elif kind == "note":
            self._reporter.echo(f"{key.name}: {said}")
        else:
            outlet.is_waiting = kind == "trouble"
            if not outlet.is_waiting:
                self._resting.pop(key, None)
                outlet.said = outlet.dropped
            self._reporter.outlet(key.name, "waiting" if outlet.is_waiting else "connected", said)

    def _report(self, key: _OutletKey, outlet: _OpenOutlet) -> None:
        """Reports pictures that were dropped, once a second at most, and in words once."""
        now = time.monotonic()
        if outlet.dropped > outlet.said and now - outlet.said_at >= _BEHIND:
            words = "it cannot follow: pictures are dropped"
            if outlet.is_waiting or outlet.is_told:
                words = ""
            outlet.is_told = outlet.is_told or bool(words)
            outlet.said, outlet.said_at = outlet.dropped, now
            self._reporter.outlet(key.name, "behind", words, dropped=outlet.dropped)

    def _start_again(self, key: _OutletKey, encoder: LiveEncoder) -> None:
        """Has a process that has died followed by another one, a few times."""
        if key.rate and encoder.stood_still:
            self._rest(key)
            return
        self._ends[key] += 1
        if self._ends[key] > _MOST_STARTS:
            self._fail(key, "its process has ended too often")
            return
        self._worker.submit(self._open.pop(key).encoder.close)
        self._resting[key] = time.monotonic() + _SOON
        words = f"the process for {visible(key.name)} {encoder.ending}, and is started again"
        self._reporter.restarted("outlet", words)

    def _rest(self, key: _OutletKey) -> None:
        """Closes an outlet whose process was killed while it waited for a receiver, to open it again soon."""
        self._worker.submit(self._open.pop(key).encoder.close)
        words = "" if key in self._resting else "no receiver: it takes nothing; weft tries again"
        self._resting[key] = time.monotonic() + _PAUSE
        self._reporter.outlet(key.name, "waiting", words)

    def _fail(self, key: _OutletKey, reason: str) -> None:
        self._failed.add(key)
        self._close(key, "failed", reason)

    def _close(self, key: _OutletKey, state: str, reason: str = "") -> None:
        if key in self._open:
            self._worker.submit(self._open.pop(key).encoder.close)
        self._reporter.window(key.name, state, reason)

    def close(self) -> None:
        """Closes all of them, and waits until they are. May be called twice."""
        for key in [*self._open]:
            self._close(key, "closed")
        opening, self._opening = self._opening, {}
        for each in opening.values():
            with suppress(EncodingError):
                each.result().close()
        self._worker.shutdown()


def _spec(key: _OutletKey) -> OutletSpec:
    found = outlet_of(key.target)
    assert found is not None, "only outlets have keys"
    return found.spec
