"""How one program follows another: at once or on a beat, with picture and sound together, and with a fade if asked."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import Env, Values, as_array
from weft.errors import WeftError
from weft.runtime.clock import Clock
from weft.runtime.compiled import CompiledProgram
from weft.runtime.compiling.worker import LoadResult
from weft.runtime.coordinator import TickResult, main_picture
from weft.runtime.inputs import InputState
from weft.runtime.program import LoadedProgram, Programs
from weft.runtime.sound.player import Sound

# How a program takes over from the one before: how long they fade into each other, and what beat it waits for.

# Seconds in which sounds fade into each other where nobody says otherwise: long enough for no click to be heard.
_FADE = 0.03

# A beat that was so many seconds ago is still met: nobody hears that.
_ON_TIME = 0.005


@dataclass(frozen=True)
class TransitionPolicy:
    """What the command line asks for, seconds and beats; it has its way over what a patch says."""

    fade: float | None = None
    quantize: float | None = None

    def fade_of(self, compiled: CompiledProgram) -> float:
        """Seconds in which the sound of a program fades in."""
        asked = self.asked_fade(compiled)
        return _FADE if asked is None else asked

    def asked_fade(self, compiled: CompiledProgram) -> float | None:
        """The fade that somebody asks for, by which pictures go as well."""
        return self.fade if self.fade is not None else compiled.fade

    def moment(self, compiled: CompiledProgram, now: float, bpm: float) -> float | None:
        """The moment of the performance at which a program takes over, in seconds; None for at once. Beats are those
        of the program that plays."""
        beats = self.quantize if self.quantize is not None else compiled.quantize
        if not beats:
            return None
        step = beats * 60 / bpm
        return math.ceil((now - _ON_TIME) / step) * step


# One picture fading into the next, while both go on moving.

Pixels = npt.NDArray[Any]


class PictureFade:
    """The picture of the program before, which gives way to another within `seconds` from a moment of the performance
    on. What it has in common with the program that plays is computed once."""

    def __init__(self, leaving: LoadedProgram | Pixels, began: float, seconds: float) -> None:
        """What leaves is a program, or a picture that stands still: that of a fade which was interrupted."""
        self._leaving: LoadedProgram | Pixels | None = leaving
        self._began = began
        self._seconds = seconds
        self._mix: _Mix | None = None

    def is_over(self, now: float) -> bool:
        """Whether nothing is left to be seen of it."""
        return self._leaving is None or not 0 <= now - self._began < self._seconds

    def picture(self, env: Env, done: Mapping[int, Values]) -> Pixels | None:
        """What leaves, at this tick; None if it cannot be drawn any more. `done` is what the program that plays has
        computed."""
        leaving = self._leaving
        if not isinstance(leaving, LoadedProgram):
            return leaving
        with suppress(Exception):  # then it is gone at once
            own = replace(
                env, inputs={**env.inputs, **leaving.compiled.parameters}, pictures=leaving.pictures
            )  # fmt: skip
            shown = main_picture(leaving.runner.run_beside(own, done))
            return None if shown is None else shown.array
        self._leaving = None
        return None

    def mixed(self, before: Pixels, after: Pixels, now: float) -> Pixels:
        """Both pictures [height, width, 4], each by its share at this moment. Pictures of different sizes cannot be
        mixed: then it is the latter."""
        if before.shape != after.shape:
            return after
        self._mix = self._mix if self._mix and self._mix.shape == after.shape else _Mix(after.shape)
        return self._mix.of(before, after, round(256 * (now - self._began) / self._seconds))


# Bytes that are mixed at once: so few that they stay near the core, and enough for the calls to weigh little.
_BAND = 1 << 18


class _Mix:
    """Mixes pictures of one shape, band by band and without new memory. What it gives stays for a tick, as other
    pictures do."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._rows = max(1, _BAND // max(1, math.prod(shape[1:])))
        self._out, self._last = np.empty(shape, np.uint8), np.empty(shape, np.uint8)
        self._sums = np.empty((2, min(self._rows, shape[0]), *shape[1:]), np.uint16)

    def of(self, before: Pixels, after: Pixels, share: int) -> Pixels:
        """`share` of 256 parts of the latter."""
        self._out, self._last = self._last, self._out
        for start in range(0, self.shape[0], self._rows):
            band = slice(start, start + self._rows)
            out = self._out[band]
            total, more = self._sums[:, : len(out)]
            np.multiply(before[band], 256 - share, out=total, dtype=np.uint16)
            np.multiply(after[band], share, out=more, dtype=np.uint16)
            total += more
            total >>= 8
            np.copyto(out, total, casting="unsafe")
        return self._out


# How one program follows another: on the beat that it waits for, picture and sound together, and fading if asked.

# How long a performance waits for its sound to begin, in seconds.
_HELD = 1.5


@dataclass(frozen=True)
class _Waiting:
    """A program that is ready since a moment of the performance, and takes over at another."""

    outcome: LoadResult
    at: float
    since: float
    sound: int
    """The number by which events tell of its sound."""


class TransitionScheduler:
    """The programs of a performance, as they take over from one another."""

    def __init__(self, programs: Programs, policy: TransitionPolicy, clock: Clock, sound: Sound | None) -> None:
        self._programs = programs
        self._takeover = policy
        self._clock = clock
        self._sound = sound
        self._opening: tuple[LoadResult, float] | None = None
        """A program whose sound is being made ready, since a moment of the performance."""
        self._waiting: _Waiting | None = None
        self._sounding = 0
        """The number of the sound of the program that plays."""
        self._held_until: float | None = None
        """Until when the clock waits for the sound, on `time.monotonic`."""
        self._fading: PictureFade | None = None
        self.waited_ms = 0.0
        """How long the program that plays has waited for its beat."""

    def begin(self, loaded: LoadedProgram) -> None:
        """The sound of the first program begins: as it is, or a drum on the first beat would lose its stroke. For that,
        the clock stands still at 0 until there is sound, but not for long."""
        if self._sound is None:
            return
        self._sounding = self._sound.enter(loaded.compiled, 0.0, self._given(loaded))
        if self._sound.is_starting:
            # Paused first: else it would go on between these two.
            self._clock.pause()
            self._clock.restart()
            self._held_until = time.monotonic() + _HELD

    def offer(self, outcome: LoadResult) -> None:
        """A program is ready, and takes the place of one that still waits. Its sound knows the moment beforehand; where
        it needs another stream, the program waits for that first. Raises WeftError for a sound that there is no room
        for."""
        if outcome.loaded is None:
            return
        self._opening = None
        if self._sound is not None and self._sound.prepare(outcome.loaded.compiled, self._given(outcome.loaded)):
            self._opening = outcome, self._clock.now()
        else:
            self._announce(outcome, outcome.loaded, self._clock.now())

    def _announce(self, outcome: LoadResult, loaded: LoadedProgram, since: float) -> None:
        """Settles when a program takes over that is ready `since` some moment."""
        now, running = self._clock.now(), self._programs.running
        bpm = running.compiled.settings["bpm"] if running is not None else 0.0
        reached = now if self._sound is None else now + self._sound.ahead
        at = self._takeover.moment(loaded.compiled, reached, bpm) if running is not None else None
        self._waiting = _Waiting(outcome, now if at is None else at, since, self._sounds(loaded, at))

    def due(self) -> LoadResult | None:
        """The program that takes over now, if one does; without a `loaded` program if its sound failed. A paused
        performance waits for no beat."""
        self._release()
        if self._opening is not None:
            outcome, since = self._opening
            try:
                self._opened(outcome, since)
            except WeftError as failure:
                self._opening = None
                return replace(outcome, loaded=None, diagnostics=failure.diagnostics)
        waiting, now = self._waiting, self._clock.now()
        if waiting is None:
            return None
        if now < waiting.at:
            # After a restart, the beat that it waited for would be long in coming.
            if not (self._clock.paused or now < waiting.since):
                return None
            if waiting.outcome.loaded is not None:
                waiting = replace(waiting, sound=self._sounds(waiting.outcome.loaded))
        self._waiting, self._sounding = None, waiting.sound
        self.waited_ms = max(0.0, now - waiting.since) * 1e3
        return waiting.outcome

    def enter(self, loaded: LoadedProgram, shown: Values | None) -> None:
        """From now on this program plays; `shown` is the picture that is seen. Raises whatever goes wrong with that."""
        before = self._programs.running
        fade = self._takeover.asked_fade(loaded.compiled)
        if not fade or before is None or shown is None:
            self._programs.enter(loaded)
            self._fading = None
            return
        self._programs.enter(loaded, fades=True)
        # One that is still fading in cannot be told apart from what it fades over any more.
        leaving = before if self._fading is None else as_array(shown).copy()
        self._fading = PictureFade(leaving, self._clock.now(), fade)

    def sound_anew(self) -> None:
        """Has the sound of the program that plays made ready and faded in: another program plays than the one whose
        sound was announced, or another device is to play it."""
        if self._programs.running is not None:
            self._sounding = self._sounds(self._programs.running)
        waiting = self._waiting
        if waiting is not None and waiting.outcome.loaded is not None:
            self._waiting = replace(waiting, sound=self._sounds(waiting.outcome.loaded, waiting.at))

    def is_sounding(self, number: int) -> bool:
        """Whether the sound of this number is that of the program that plays."""
        return 0 < number == self._sounding

    def withdraw(self, number: int) -> LoadResult | None:
        """The program that waits, if the sound of this number, which fails, is its own: it waits no more."""
        waiting = self._waiting
        if waiting is None or not 0 < number == waiting.sound:
            return None
        self._waiting = None
        self.sound_anew()
        return waiting.outcome

    def seen(self, shown: TickResult | None, env: Env, done: Mapping[int, Values]) -> TickResult | None:
        """What is seen of the picture of the program that plays, and of that of the one before while it fades. `done`
        is what the former has computed in this tick."""
        if self._fading is not None and self._fading.is_over(env.abstime):
            self._fading = None
        if self._fading is None or shown is None:
            return shown
        leaving = self._fading.picture(env, done)
        if leaving is None:
            return shown
        return replace(shown, values=self._fading.mixed(leaving, shown.array, env.abstime))

    def _release(self) -> None:
        """The clock goes on when there is sound, or somebody wants it to."""
        if self._held_until is None or self._sound is None:
            return
        if self._clock.paused and self._sound.is_starting and time.monotonic() < self._held_until:
            return
        self._held_until = None
        self._clock.resume()

    def _opened(self, outcome: LoadResult, since: float) -> None:
        """A program whose sound is ready waits for its beat. Raises WeftError where it cannot be had."""
        if outcome.loaded is None or self._sound is None or not self._sound.is_ready():
            return
        self._opening = None
        self._announce(outcome, outcome.loaded, since)

    def _sounds(self, loaded: LoadedProgram, at: float | None = None) -> int:
        """Has the sound of a program play; gives its number, 0 for none."""
        if self._sound is None:
            return 0
        return self._sound.enter(loaded.compiled, self._takeover.fade_of(loaded.compiled), self._given(loaded), at)

    def _given(self, loaded: LoadedProgram) -> dict[str, float]:
        """What comes to the sound of a program from outside, as far as that is known before its first frame."""
        given = {**InputState(), **loaded.compiled.parameters}
        env = Env(*loaded.size, abstime=self._clock.now(), inputs=given, pictures=loaded.pictures)
        with suppress(Exception):  # what cannot be read yet comes with the first frame
            given |= loaded.runner.feeds(env)
        return given
