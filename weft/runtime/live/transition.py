"""How one program follows another: at once or on a beat, picture and sound together, with a fade if one is wanted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from weft.backends.base import Env, Values, as_array
from weft.beats import Beats
from weft.errors import WeftError
from weft.runtime.compiling.worker import LoadResult
from weft.runtime.hands.clock import Clock
from weft.runtime.hands.inputs import Inputs
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.coordinator import TickResult, pictures_of
from weft.runtime.program.program import LoadedProgram, Programs
from weft.runtime.sound.player import Sound

# Seconds in which sounds cross-fade by default: long enough that no click is heard.
_FADE = 0.03

# For this many seconds after a beat, the beat still counts as met, since the delay is not heard.
_ON_TIME = 0.005


@dataclass(frozen=True)
class TransitionPolicy:
    """The fade (seconds) and the quantisation (beats) of the command line, which override those of the patch. Both are
    for saves: a number that is turned has its effect at once."""

    fade: float | None = None
    quantize: float | None = None

    def fade_of(self, compiled: CompiledProgram, is_turned: bool = False) -> float:
        """Seconds in which the sound of a program fades in."""
        requested = None if is_turned else self.requested_fade(compiled)
        return _FADE if requested is None else requested

    def requested_fade(self, compiled: CompiledProgram) -> float | None:
        """The fade that the command line or the patch requests; it also applies to pictures."""
        return self.fade if self.fade is not None else compiled.fade

    def every(self, compiled: CompiledProgram) -> float | None:
        """A program takes over on the next multiple of this number of beats; None: at once."""
        return (self.quantize if self.quantize is not None else compiled.quantize) or None

    def beat(self, compiled: CompiledProgram, now: float, beats: Beats) -> float | None:
        """The beat on which a program takes over that is ready at the time `now`, if its sound chooses no other; None:
        at once."""
        every = self.every(compiled)
        return None if every is None else beats.next(every, now - _ON_TIME)


Pixels = npt.NDArray[Any]


class PictureFade:
    """Fades out the pictures of the previous program within `seconds`, while both programs run. Subgraphs that both
    have are computed once."""

    def __init__(
        self, leaving: LoadedProgram | Mapping[str, Pixels], began: float, seconds: float,
        given: Callable[[str], Mapping[str, float]] = lambda file: {},
    ) -> None:
        """What leaves is a program, or still pictures by their windows if another fade was interrupted. `began` is a
        time of the performance; `given` has the parameters that were set in a patch."""
        self._given = given
        self._leaving: LoadedProgram | Mapping[str, Pixels] | None = leaving
        self._began = began
        self._seconds = seconds
        self._mixes: dict[str, _Mix] = {}

    def is_over(self, now: float) -> bool:
        """Whether the fade has ended."""
        return self._leaving is None or not 0 <= now - self._began < self._seconds

    def pictures(self, env: Env, done: Mapping[int, Values]) -> Mapping[str, Pixels]:
        """The leaving pictures at this tick, by their windows; none if they cannot be drawn any more. `done` has the
        results of the program that plays."""
        leaving = self._leaving
        if not isinstance(leaving, LoadedProgram):
            return leaving or {}
        with suppress(Exception):  # then they are gone at once
            # Parameters of the program that plays may go further: this one was made for its own ranges.
            inputs = {**env.inputs, **leaving.compiled.fitted(self._given(leaving.compiled.file))}
            own = env._replace(inputs=inputs, pictures=leaving.pictures_at(env.abstime))
            shown = pictures_of(leaving.runner.run_aside(own, done))
            return {window: result.array for window, result in shown.items()}
        self._leaving = None
        return {}

    def mixed(self, before: Pixels, after: Pixels, now: float, window: str = "") -> Pixels:
        """Both pictures [height, width, 4] of a window, mixed by their shares at this moment. If their sizes differ,
        only the new one."""
        if before.shape != after.shape:
            return after
        known = self._mixes.get(window)
        mix = self._mixes[window] = known if known and known.shape == after.shape else _Mix(after.shape)
        return mix.of(before, after, round(256 * (now - self._began) / self._seconds))


# The bytes that are mixed at once: few enough for the cache, and enough that the calls take little of the time.
_BAND = 1 << 18


class _Mix:
    """Mixes pictures of one shape, band by band and without new memory. A result stays valid for one more tick."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._rows = max(1, _BAND // max(1, math.prod(shape[1:])))
        self._out, self._last = np.empty(shape, np.uint8), np.empty(shape, np.uint8)
        self._sums = np.empty((2, min(self._rows, shape[0]), *shape[1:]), np.uint16)

    def of(self, before: Pixels, after: Pixels, share: int) -> Pixels:
        """The mix, with `share` of 256 parts of the second picture."""
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


# How long a performance waits for its sound to begin, in seconds.
_HELD = 1.5


@dataclass(frozen=True)
class _Ready:
    """A program that has been ready `since` a time of the performance, and the result that it comes from."""

    outcome: LoadResult
    loaded: LoadedProgram
    since: float


@dataclass(frozen=True)
class _Waiting:
    """A program that waits for its moment."""

    ready: _Ready
    sound: int
    """The number by which events refer to its sound."""
    is_heard: bool
    """Whether its sound waits too. Then the sound process chooses the beat, unless it does not answer."""
    beat: float | None
    """The beat on which it enters; None: at once."""
    choice: Literal["picture", "open", "sound"] = "picture"
    """Who has chosen that beat. While the choice is `open`, the sound process may still choose a later one."""

    def is_due(self, now: float, beats: Beats) -> bool:
        """Whether its moment has come."""
        return self.choice != "open" and self._has_come(now, beats)

    def is_sound_late(self, now: float, beats: Beats) -> bool:
        """Whether its sound does not enter by now, as it would on a beat that the sound process has chosen."""
        return self.is_heard and not (self.choice == "sound" and self._has_come(now, beats))

    def decided(self, sound: Sound, another: Callable[[], float | None], now: float, beats: Beats) -> _Waiting:
        """The same with the beat of the sound process, if that has chosen one. If it still may, but the beat has come,
        with `another` one, so that the picture enters on a beat even if the process never answers."""
        if not self.is_heard:
            return self
        if sound.is_deciding(self.sound):
            return replace(self, beat=another() if self._has_come(now, beats) else self.beat, choice="open")
        chosen = sound.beat(self.sound)
        return replace(self, choice="picture") if chosen is None else replace(self, beat=chosen, choice="sound")

    def _has_come(self, now: float, beats: Beats) -> bool:
        return self.beat is None or now >= beats.time_of(self.beat)


class TransitionScheduler:
    """Lets the programs of a performance take over from one another."""

    def __init__(
        self, programs: Programs, policy: TransitionPolicy, clock: Clock, inputs: Inputs, sound: Sound
    ) -> None:
        self._programs = programs
        self._policy = policy
        self._clock = clock
        self._inputs = inputs
        self._sound = sound
        self._opening: _Ready | None = None
        """A program whose sound is being prepared."""
        self._waiting: _Waiting | None = None
        self._sounding = 0
        """The number of the sound of the program that plays."""
        self._held_until: float | None = None
        """The time of `time.monotonic` until which the clock waits for the sound."""
        self._fading: PictureFade | None = None
        self.waited_ms = 0.0
        """The time that the program that plays has waited for its beat."""

    def begin(self, loaded: LoadedProgram) -> None:
        """Begins the sound of the first program without a fade, since a fade would soften a drum on the first beat. The
        clock waits at 0 until there is sound, but not for long."""
        self._sounding = self._sound.enter(loaded.compiled, 0.0, self._given(loaded))
        if self._sound.is_starting:
            # The clock is paused first, since otherwise it would advance between the two calls.
            self._clock.pause()
            self._clock.restart()
            self._held_until = time.monotonic() + _HELD

    def offer(self, outcome: LoadResult) -> None:
        """Schedules a program that is ready, in place of one that still waits. If it needs another stream, the program
        first waits for that. Raises WeftError for a sound for which there is no room."""
        if outcome.loaded is None:
            return
        self._opening = None
        ready = _Ready(outcome, outcome.loaded, self._clock.now())
        if self._sound.prepare(ready.loaded.compiled, self._given(ready.loaded)):
            self._opening = ready
        else:
            self._announce(ready)

    def _announce(self, ready: _Ready) -> None:
        """Schedules a program. If it has a sound, the sound process may choose a later beat than this."""
        every = beat = None
        is_turned = ready.outcome.saved.is_turned
        if self._programs.running is not None and not is_turned:
            every = self._policy.every(ready.loaded.compiled)
            beat = self._policy.beat(ready.loaded.compiled, self._clock.now(), self._clock.tempo.beats)
        sound = self._sounds(ready.loaded, every, is_turned=is_turned)
        self._waiting = _Waiting(ready, sound, self._sound.is_waiting(sound), beat)

    def _later_beat(self, loaded: LoadedProgram) -> float | None:
        """The next beat on which a program may take over if one that has just come does not count any more."""
        return self._policy.beat(loaded.compiled, self._clock.now() + 2 * _ON_TIME, self._clock.tempo.beats)

    def due(self) -> LoadResult | None:
        """The result whose program takes over now, if there is one. If its sound failed, it has no `loaded` program."""
        self._release()
        refused = self._announce_opened()
        if refused is not None or self._waiting is None:
            return refused
        now, beats = self._clock.now(), self._clock.tempo.beats
        loaded = self._waiting.ready.loaded
        waiting = self._waiting = self._waiting.decided(self._sound, lambda: self._later_beat(loaded), now, beats)
        if not (waiting.is_due(now, beats) or self._waits_no_longer(waiting, now)):
            return None
        self._sounding = self._sounds(loaded) if waiting.is_sound_late(now, beats) else waiting.sound
        self._waiting = None
        self.waited_ms = max(0.0, now - waiting.ready.since) * 1e3
        return waiting.ready.outcome

    def _announce_opened(self) -> LoadResult | None:
        """Schedules the program whose stream is being opened, if that is ready. If it fails, returns the result without
        its program."""
        opening = self._opening
        try:
            if opening is not None and self._sound.is_ready():
                self._opening = None
                self._announce(opening)
        except WeftError as failure:
            assert opening is not None, "it has failed"
            self._opening = None
            return replace(opening.outcome, loaded=None, diagnostics=failure.diagnostics)
        return None

    def _waits_no_longer(self, waiting: _Waiting, now: float) -> bool:
        """Whether a program enters although its beat has not come: a pause stops all beats, and after a restart the
        beat that it waited for is far away."""
        is_paused = self._clock.paused and self._held_until is None
        return is_paused or now < waiting.ready.since

    def enter(self, loaded: LoadedProgram, shown: Mapping[str, Values], is_turned: bool = False) -> None:
        """Makes this the program that plays; `shown` are the visible pictures, by their windows. If only numbers were
        turned, a fade that is under way continues with the new ones. Raises any error of that."""
        if is_turned:
            self._programs.enter(loaded)
            return
        before = self._programs.running
        # In a pause a fade would stand still like everything else, but a saved version is to be seen.
        fade = None if self._clock.paused else self._policy.requested_fade(loaded.compiled)
        if not fade or before is None or not shown:
            self._programs.enter(loaded)
            self._fading = None
            return
        self._programs.enter(loaded, fades=True)
        # If a program is still fading in, the mixed pictures leave as stills.
        stills = {window: as_array(values).copy() for window, values in shown.items()} if self._fading else {}
        leaving = stills or before
        self._fading = PictureFade(leaving, self._clock.now(), fade, self._inputs.parameters.given)

    def restart_sound(self) -> None:
        """Prepares the sound of the program that plays again and fades it in. This is needed if its sound is not the
        one that was announced last, or if another device is to play it."""
        if self._programs.running is not None:
            self._sounding = self._sounds(self._programs.running, again=True)
        waiting = self._waiting
        if waiting is not None:
            every = None if waiting.beat is None else self._policy.every(waiting.ready.loaded.compiled)
            sound = self._sounds(waiting.ready.loaded, every, again=True)
            is_heard = self._sound.is_waiting(sound)
            self._waiting = replace(waiting, sound=sound, is_heard=is_heard, choice="picture")

    def is_sounding(self, number: int) -> bool:
        """Whether the sound of this number is that of the program that plays."""
        return 0 < number == self._sounding

    def withdraw(self, number: int) -> LoadResult | None:
        """Cancels the program that waits, and returns it, if the failed sound with this number is its own."""
        waiting = self._waiting
        if waiting is None or not 0 < number == waiting.sound:
            return None
        self._waiting = None
        self.restart_sound()
        return waiting.ready.outcome

    def visible(self, shown: Mapping[str, TickResult], env: Env, done: Mapping[int, Values]) -> dict[str, Values]:
        """The visible pictures by their windows: those of the program that plays, mixed with the previous ones during a
        fade. `done` has the results of the program that plays in this tick."""
        fading = self._fading = None if self._fading is None or self._fading.is_over(env.abstime) else self._fading
        leaving = fading.pictures(env, done) if fading is not None and shown else {}
        return {
            window: result.values if fading is None or window not in leaving
            else fading.mixed(leaving[window], result.array, env.abstime, window)
            for window, result in shown.items()
        }

    def toggle_pause(self) -> bool:
        """Pauses the performance, or ends the pause. Returns whether it is paused now. A performance that waits for its
        sound counts as running."""
        if self._held_until is not None:
            self._held_until = None
        elif self._clock.paused:
            self._clock.resume()
        else:
            self._clock.pause()
        return self._clock.paused

    def _release(self) -> None:
        """Starts the clock when there is sound."""
        if self._held_until is None:
            return
        if self._sound.is_starting and time.monotonic() < self._held_until:
            return
        self._held_until = None
        self._clock.resume()

    def _sounds(
        self, loaded: LoadedProgram, every: float | None = None, again: bool = False, is_turned: bool = False
    ) -> int:
        """Plays the sound of a program; returns its number, 0 for none. For the rest see `Sound.enter`."""
        fade = self._policy.fade_of(loaded.compiled, is_turned)
        return self._sound.enter(loaded.compiled, fade, self._given(loaded), every, again)

    def _given(self, loaded: LoadedProgram) -> dict[str, float]:
        """The inputs of a program's sound that are known before its first frame."""
        compiled = loaded.compiled
        own = compiled.fitted(self._inputs.parameters.given(compiled.file))
        given = {**self._inputs.snapshot(), **own, **self._clock.tempo.beats.inputs}
        now = self._clock.now()
        env = Env(*loaded.size, abstime=now, inputs=given, pictures=loaded.pictures_at(now))
        with suppress(Exception):  # values that cannot be read yet come with the first frame
            given |= loaded.runner.feeds(env)
        return given
