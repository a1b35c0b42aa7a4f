"""The ticks of a performance: a program runs with the inputs of each. If its device fails, it moves to another one."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from functools import partial

from weft.backends.base import Env, Values
from weft.runtime.hands.clock import Clock
from weft.runtime.hands.inputs import Inputs
from weft.runtime.live.events import Reporter
from weft.runtime.program.coordinator import TickResult
from weft.runtime.program.fallback import grow, recover, repair
from weft.runtime.program.program import LoadedProgram, ProgramLoader
from weft.runtime.sound.player import Sound

# The most seconds for which a picture may have fewer pixels: while a card waits for its program, and until the second
# tier is there.
_UNTIL_CARD, _UNTIL_FAST = 0.5, 5.0
# The ticks whose times are kept.
_FRAMES = 120


@dataclass
class Ticker:
    """Runs programs tick by tick, and hands the values to the sound that it reads. When the device of a program fails,
    the program moves to another one."""

    loader: ProgramLoader
    clock: Clock
    inputs: Inputs
    sound: Sound
    reporter: Reporter
    threads: int
    moved: list[LoadedProgram] = field(default_factory=list)
    """The programs that have moved to another device, until the session notes it."""
    drawn: deque[float] = field(default_factory=lambda: deque(maxlen=_FRAMES))
    """The seconds that each of the last ticks has taken, without what a card does after it was told."""
    _last: dict[str, Values] = field(default_factory=dict)
    """The results of the last finished tick, by the names of the subgraphs."""
    _reduced: tuple[LoadedProgram, float] | None = None
    """The program that is drawn with fewer pixels, and since when."""

    def env(self, loaded: LoadedProgram) -> Env:
        """The environment of a program in the latest tick of the clock."""
        tick, compiled = self.clock.latest, loaded.compiled
        inputs = {**compiled.starts, **self.inputs.frame(compiled.sent), **self.clock.tempo.beats.inputs}
        return Env(
            *loaded.size, tick.number, tick.time, tick.dt, inputs, loaded.pictures_at(tick.time), threads=self.threads,
            warn=self.reporter.warn, loop_stopped=partial(self.reporter.loop_stopped, compiled),
        )  # fmt: skip

    def run(self, loaded: LoadedProgram, env: Env, done: dict[int, Values]) -> list[TickResult]:
        """Runs a tick. If a device fails, its subgraphs move to another one in the same tick. Raises any error of the
        program itself."""
        since = time.perf_counter()
        self.repair(loaded, env)
        self._grow(loaded, env)
        while True:
            try:
                results = loaded.runner.run(env, done)
                self._last = {result.subgraph: result.values for result in results}
                given = {**env.inputs, **loaded.runner.feeds(env)}
                self.sound.follow(self.clock, given, loaded.runner.view_values(env))
                self.drawn.append(time.perf_counter() - since)
                return results
            except Exception as failure:
                self.recover(loaded, failure, env, done)

    def _grow(self, loaded: LoadedProgram, env: Env) -> None:
        """Ends the drawing with fewer pixels when the faster code is ready, or after a while."""
        reduced = [part for part in loaded.runner.all_parts if part.level]
        if not reduced:
            return
        now = time.monotonic()
        if self._reduced is None or self._reduced[0] is not loaded:
            self._reduced = loaded, now
        lasts = now - self._reduced[1]
        for part in reduced:
            is_over = lasts > (_UNTIL_CARD if part.bridges else _UNTIL_FAST)
            if is_over or (not part.bridges and part.backend.tier(part.compiled) != 1):
                grow(loaded.runner, part, env)

    def repair(self, loaded: LoadedProgram, env: Env) -> None:
        """Moves a program away from devices that were lost after it was prepared."""
        if repair(self.loader, loaded, env, {}, self._last):
            self.moved.append(loaded)

    def recover(self, loaded: LoadedProgram, failure: Exception, env: Env, done: dict[int, Values]) -> None:
        """Moves a program away from the device that failed. Raises the failure if it cannot move."""
        if not recover(self.loader, loaded, failure, env, done, self._last):
            raise failure
        self.moved.append(loaded)
