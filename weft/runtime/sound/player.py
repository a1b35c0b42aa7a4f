"""The sound of a performance, as those know it who draw its picture."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from weft.backends.launch import Getter, Reals, Value
from weft.contexts import is_led
from weft.names import StrandRef
from weft.runtime.build import Playable
from weft.runtime.clock import Clock
from weft.runtime.setup import Setup
from weft.runtime.sound.messages import SoundEvent
from weft.runtime.sound.mixer import channels_of
from weft.runtime.sound.places import places_of_views
from weft.runtime.sound.process import SoundOptions, SoundProcess
from weft.runtime.sound.program import Better, Play
from weft.runtime.sound.recent import Recent
from weft.runtime.sound.shared import MOST_VIEWS, Figures

NOTHING_SEEN: Mapping[str, Reals] = MappingProxyType({})


class Sound:
    """Plays what streams in the programs of a session, in a process of its own, which is started with the first program
    that has something to play. For the thread that draws, but `getter`, which any may call."""

    def __init__(self, setup: Setup, options: SoundOptions) -> None:
        """`setup` says what runs the programs."""
        self._setup = setup
        self._options = options
        self._process = SoundProcess(options)
        self._recent = self._listening()
        self._views = places_of_views(MOST_VIEWS)
        self._last: Mapping[str, float] = {}
        self._reads: tuple[frozenset[str], ...] = (frozenset(),)
        """What the programs that can be heard read from outside, the latest last."""
        self._started = False
        self._restarts = 0

    @property
    def options(self) -> SoundOptions:
        return self._options

    def getter(self, ref: StrandRef) -> Getter:
        """What reads a strand of what has been played; see `Recent.getter`."""

        def read(seconds: Value) -> Value:
            # Asked anew: another rate brings other rings.
            return self._recent.getter(ref)(seconds)

        return read

    def enter(
        self, playable: Playable, fade: float, given: Mapping[str, float], at: float | None = None
    ) -> None:
        """Has a program play from a moment of the performance on (seconds; None: at once), fading over from the one
        before within `fade` seconds. What comes from outside is at first as it is `given`. Raises WeftError for one
        that reads more than there is room for."""
        sounding = playable.streaming
        if not (self._started or self._needs_to_play(sounding)):
            return
        self._take_form(round(playable.settings["rate"]), channels_of(playable))
        rows, views = self._recent.rows(playable), self._views.take(sounding.views)
        names = {name for unit in sounding.units for name, _ in unit.kernel.coords if is_led(name)}
        # The program before goes on for a while.
        self._reads = (self._reads[-1], frozenset(names))
        first = {name: value for name, value in {**given, **self._last}.items() if name in names}
        self._process.send(Play(self._setup, sounding, fade, at, rows, views, first), keep="program")
        if not self._started:
            self._started = True
            self._process.start()

    def improve(self, codes: Mapping[str, object]) -> None:
        """Better code for what plays, by the hashes of the units."""
        if self._started:
            self._process.send(Better(codes), keep="better")

    def restart(self) -> None:
        """The performance begins anew."""
        self._restarts += 1

    def follow(self, clock: Clock, values: Mapping[str, float], views: Mapping[str, Reals] = NOTHING_SEEN) -> None:
        """Once a frame: tells the process the time and what comes from outside, and has the clock draw near to what is
        heard. `views` are as from `ProgramRunner.seen`."""
        if not self._started:
            return
        for name, seen in views.items():
            place = self._views.find(name)
            if place is not None:
                self._process.rings.views[place, :, :, 0] = seen
        self._last = values
        read = {name: value for name, value in values.items() if any(name in names for names in self._reads)}
        self._process.controls.write(clock.now(), read, clock.paused, self._restarts)
        heard = self._process.seconds()
        if heard is not None:
            clock.follow(heard)

    def events(self) -> list[SoundEvent]:
        """What has happened since this was asked last."""
        return self._process.events()

    @property
    def figures(self) -> Figures | None:
        """About the block that was begun last; None where nothing has been played."""
        figures = self._process.figures if self._started else None
        return figures if figures is not None and figures.blocks else None

    def close(self) -> None:
        """Ends the process. May be called twice."""
        self._process.close()

    def _needs_to_play(self, sounding: Playable) -> bool:
        """Whether anybody hears what there is to play, or reads it."""
        if self._options.is_silent:
            return any(unit.subgraph.exposes for unit in sounding.units)
        return bool(sounding.units)

    def _listening(self) -> Recent:
        # The block that was begun last may not be complete.
        process = self._process
        return Recent(process.rings.samples, self._options.rate, lambda: process.figures.sample - 1)

    def _take_form(self, rate: int, channels: int) -> None:
        """A stream has one rate and one count of channels: others need another stream."""
        if (rate, channels) == (self._options.rate, self._options.channels):
            return
        # It takes its time.
        threading.Thread(target=self._process.close, name="weft-sound-close", daemon=True).start()
        self._options = replace(self._options, rate=rate, channels=channels)
        self._process = SoundProcess(self._options)
        self._recent = self._listening()
        self._views = places_of_views(MOST_VIEWS)
        self._started = False
