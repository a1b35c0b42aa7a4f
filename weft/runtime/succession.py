"""How one program follows another: on the beat that it waits for, picture and sound together, and fading if asked."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from weft.backends.base import Env
from weft.runtime.clock import Clock
from weft.runtime.compiling.worker import Outcome
from weft.runtime.coordinator import Result
from weft.runtime.crossfade import PictureFade
from weft.runtime.inputs import InputState
from weft.runtime.program import Swap
from weft.runtime.programs import Programs
from weft.runtime.sound.player import Sound
from weft.runtime.takeover import Takeover

Pixels = NDArray[Any]


@dataclass(frozen=True)
class _Waiting:
    """A program that is ready since a moment of the performance, and takes over at another."""

    outcome: Outcome
    at: float
    since: float


class Succession:
    """The programs of a performance, as they take over from one another."""

    def __init__(self, programs: Programs, takeover: Takeover, clock: Clock, sound: Sound | None) -> None:
        self._programs = programs
        self._takeover = takeover
        self._clock = clock
        self._sound = sound
        self._waiting: _Waiting | None = None
        self._fading: PictureFade | None = None
        self.waited_ms = 0.0
        """How long the program that plays has waited for its beat."""

    def begin(self, swap: Swap) -> None:
        """The sound of the first program begins: as it is, or a drum on the first beat would lose its stroke."""
        if self._sound is not None:
            self._sound.enter(swap.playable, 0.0, self._given(swap))

    def offer(self, outcome: Outcome) -> None:
        """A program is ready, and takes the place of one that still waits. Its sound knows the moment beforehand.
        Raises WeftError for a sound that there is no room for."""
        now, running = self._clock.now(), self._programs.running
        if outcome.swap is None:
            return
        bpm = running.playable.settings["bpm"] if running is not None else 0.0
        at = self._takeover.moment(outcome.swap.playable, now, bpm) if running is not None else None
        self._sounds(outcome.swap, at)
        self._waiting = _Waiting(outcome, now if at is None else at, now)

    def due(self) -> Outcome | None:
        """What takes over now, if anything does. A performance that stands still waits for no beat."""
        waiting, now = self._waiting, self._clock.now()
        if waiting is None:
            return None
        if now < waiting.at:
            # After a restart, the beat that it waited for would be long in coming.
            if not (self._clock.paused or now < waiting.since):
                return None
            if waiting.outcome.swap is not None:
                self._sounds(waiting.outcome.swap)
        self._waiting = None
        self.waited_ms = max(0.0, now - waiting.since) * 1e3
        return waiting.outcome

    def enter(self, swap: Swap, shown: Pixels | None) -> None:
        """From now on this program plays; `shown` is the picture that is seen. Raises whatever goes wrong with that."""
        before = self._programs.running
        fade = self._takeover.asked_fade(swap.playable)
        if not fade or before is None or shown is None:
            self._programs.enter(swap)
            self._fading = None
            return
        self._programs.enter(swap, fades=True)
        # One that is still fading in cannot be told apart from what it fades over any more.
        leaving = before if self._fading is None else shown.copy()
        self._fading = PictureFade(leaving, self._clock.now(), fade)

    def go_back(self) -> None:
        """Another program than the one whose sound was announced plays."""
        if self._programs.running is not None:
            self._sounds(self._programs.running)

    def seen(self, shown: Result | None, env: Env, done: Mapping[int, Pixels]) -> Result | None:
        """What is seen of the picture of the program that plays, and of that of the one before while it fades. `done`
        is what the former has computed in this tick."""
        if self._fading is not None and self._fading.is_over(env.abstime):
            self._fading = None
        if self._fading is None or shown is None:
            return shown
        leaving = self._fading.picture(env, done)
        if leaving is None:
            return shown
        return replace(shown, values=self._fading.mixed(leaving, shown.values, env.abstime))

    def _sounds(self, swap: Swap, at: float | None = None) -> None:
        if self._sound is not None:
            self._sound.enter(swap.playable, self._takeover.fade_of(swap.playable), self._given(swap), at)

    def _given(self, swap: Swap) -> dict[str, float]:
        """What comes to the sound of a program from outside, as far as that is known before its first frame."""
        given = {**InputState(), **swap.playable.parameters}
        env = Env(*swap.size, abstime=self._clock.now(), inputs=given, pictures=swap.pictures)
        with suppress(Exception):  # what cannot be read yet comes with the first frame
            given |= swap.runner.feeds(env)
        return given
