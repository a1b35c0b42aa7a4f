"""One stream of sound: a sound process, and what it shares with those who draw."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

from weft.backends.launch import Getter, Reals
from weft.contexts import is_led
from weft.names import StrandRef
from weft.runtime.clock import Clock
from weft.runtime.playable import Playable
from weft.runtime.setup import Setup
from weft.runtime.sound.messages import SoundEvent
from weft.runtime.sound.places import places_of_views
from weft.runtime.sound.process import SoundOptions, SoundProcess
from weft.runtime.sound.program import Better, Play
from weft.runtime.sound.recent import Recent
from weft.runtime.sound.shared import MOST_VIEWS, Figures

# What is kept for a process that takes the place of one that died: what plays, and what waits for its moment.
_PLAYING, _WAITING = "playing", "waiting"


class Stream:
    """Plays programs of one rate, and of no more channels than it has. For the thread that draws, but for `getter`."""

    def __init__(self, setup: Setup, options: SoundOptions) -> None:
        """`setup` says what runs the programs."""
        self.options = options
        self._setup = setup
        self._process = SoundProcess(options)
        self._recent = self._remembered()
        self._views = places_of_views(MOST_VIEWS)
        self._reads: tuple[frozenset[str], ...] = (frozenset(),)
        """What the programs that can be heard read from outside, the latest last."""
        self._latest: Play | None = None
        self._changes_at: float | None = None
        """When what waits takes over, in seconds of the performance."""
        self._has_started = False

    @property
    def has_started(self) -> bool:
        """Whether it was given anything to play."""
        return self._has_started

    def expect(self) -> None:
        """Something is about to be played: the process gets ready for it."""
        self._process.start()

    def suit(self, rate: int, channels: int) -> None:
        """It is to be of another rate, and of other channels. Only as long as it was given nothing to play."""
        self.options = replace(self.options, rate=rate, channels=channels)
        self._process.suit(rate, channels)
        self._recent = self._remembered()

    @property
    def is_ready(self) -> bool:
        """Whether its first program is loaded, and a device has been asked for."""
        return self._process.is_ready

    def _remembered(self) -> Recent:
        process = self._process
        # The block that was begun last may not be complete.
        return Recent(process.rings.samples, self.options.rate, lambda: process.figures.sample - 1)

    def getter(self, ref: StrandRef) -> Getter:
        """What reads a strand of what has been played; see `Recent.getter`."""
        return self._recent.getter(ref)

    def play(
        self, number: int, sounding: Playable, fade: float, given: Mapping[str, float], at: float | None, held: bool
    ) -> None:
        """Has the process play what streams of a program; see `Play`. Raises WeftError for one that reads more than
        there is room for."""
        rows, views = self._recent.rows(sounding), self._views.take(sounding.views)
        names = {name for unit in sounding.units for name, _ in unit.kernel.coords if is_led(name)}
        # The program before goes on for a while.
        self._reads = (self._reads[-1], frozenset(names))
        first = {name: value for name, value in given.items() if name in names}
        self._send(Play(number, self._setup, sounding, fade, at, rows, views, first, held))
        if not self._has_started:
            self._has_started = True
            self.expect()

    def release(self, fade: float, at: float | None) -> None:
        """What is held plays from a moment on."""
        if self._latest is not None:
            self._send(replace(self._latest, fade=fade, at=at, held=False))

    def fall_silent(self, fade: float, at: float | None) -> None:
        """What plays fades away from a moment on."""
        if self._latest is not None:
            nothing = replace(self._latest.playable, units=())
            self._send(Play(0, self._setup, nothing, fade, at, {}, {}, {}))

    def _send(self, play: Play) -> None:
        self._latest = play
        self._changes_at = play.at
        if play.at is None:
            self._process.forget(_WAITING)
        self._process.send(play, keep=_PLAYING if play.at is None else _WAITING)

    def change(self, setup: Setup) -> None:
        """What is played by a process that is started from now on runs elsewhere."""
        self._setup = setup
        self._process.revise(lambda message: replace(message, setup=setup) if isinstance(message, Play) else message)

    def improve(self, codes: Mapping[str, object]) -> None:
        """Better code for what plays, by the hashes of the units."""
        self._process.send(Better(codes), keep="better")

    def follow(
        self, clock: Clock, restarts: int, values: Mapping[str, float], views: Mapping[str, Reals]
    ) -> None:
        """Tells the process the time, and what comes from outside."""
        for name, seen in views.items():
            place = self._views.find(name)
            if place is not None:
                self._process.rings.views[place, :, :, 0] = seen
        now = clock.now()
        if self._changes_at is not None and now >= self._changes_at:
            self._changes_at = None
            self._process.rename(_WAITING, _PLAYING)
        read = {name: value for name, value in values.items() if any(name in names for names in self._reads)}
        self._process.controls.write(now, read, clock.paused, restarts)

    def seconds(self) -> float | None:
        """See `SoundProcess.seconds`."""
        return self._process.seconds()

    def events(self) -> list[SoundEvent]:
        """What has happened since this was asked last."""
        return self._process.events()

    @property
    def figures(self) -> Figures:
        return self._process.figures

    def close(self) -> None:
        """Ends the process. May be called twice."""
        self._process.close()

    def close_aside(self) -> None:
        """The same, while others go on: it takes its time."""
        threading.Thread(target=self.close, name="weft-sound-close", daemon=True).start()
