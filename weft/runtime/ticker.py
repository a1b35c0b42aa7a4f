"""The ticks of a performance: each runs the program that plays, wherever its devices let it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from weft.backends.base import DeviceLostError, Env, Values
from weft.runtime.clock import Clock, Tick
from weft.runtime.compiling.trial import Moment
from weft.runtime.coordinator import Result
from weft.runtime.fallback import Move, mend, recover, settle
from weft.runtime.inputs import Inputs
from weft.runtime.program import Stage, Swap
from weft.runtime.sound.player import Sound
from weft.runtime.telling import Teller


@dataclass
class Ticker:
    """Runs programs tick by tick, with what comes from outside. The sound follows. `recovered` is called with a program
    that goes on elsewhere, since its device failed."""

    stage: Stage
    clock: Clock
    inputs: Inputs
    sound: Sound | None
    teller: Teller
    threads: int
    recovered: Callable[[Swap], None]

    def __post_init__(self) -> None:
        self.tick = Tick(0, 0.0, 0.0)
        """The tick that was begun last."""
        self._last: dict[str, Values] = {}
        """What each subgraph gave in the tick that was finished last, by its name."""

    def moment(self) -> Moment:
        """Where the performance is. May be called from any thread."""
        tick = self.tick
        return Moment(tick.number, tick.time, tick.dt, dict(self.inputs.snapshot()))

    def env(self, swap: Swap) -> Env:
        """What a program runs with in this tick."""
        return Env(
            width=swap.size[0],
            height=swap.size[1],
            tick=self.tick.number,
            abstime=self.tick.time,
            dt=self.tick.dt,
            inputs={**self.inputs.frame(), **swap.playable.parameters},
            pictures=swap.pictures,
            threads=self.threads,
            loop_stopped=partial(self.teller.loop_stopped, swap.playable),
            warn=self.teller.warn,
        )

    def begin(self, swap: Swap) -> Env:
        """Begins a tick."""
        self.tick = self.clock.tick()
        return self.env(swap)

    def run(self, swap: Swap, env: Env, done: dict[int, Values]) -> list[Result]:
        """Runs a tick. If a device fails, what ran on it goes on elsewhere in the same tick. Raises whatever goes wrong
        with the program."""
        self.mend(swap)
        while True:
            try:
                results = swap.runner.run(env, done)
                self._last = {result.subgraph: result.values for result in results}
                if self.sound is not None:
                    given = {**env.inputs, **swap.runner.feeds(env)}
                    self.sound.follow(self.clock, given, swap.runner.seen(env))
                return results
            except Exception as failure:
                if not self._recovers(swap, failure, env, done):
                    raise

    def mend(self, swap: Swap) -> None:
        """Has a program that was made ready for a device which is lost by now run elsewhere."""
        if mend(self.stage, swap, self.env(swap), {}, self._last):
            self.recovered(swap)

    def settle(self, moves: Iterable[Move]) -> None:
        """Has what was bridged go on where it should run, as far as it can by now; else it is made better where it
        is."""
        for move in moves:
            if not settle(self.stage, move):
                self.recovered(move.swap)

    def lost_in_sight(self, swap: Swap, failure: DeviceLostError) -> None:
        """The device failed when its picture was to be shown; the next one is drawn elsewhere. Raises the failure if
        there is no other way."""
        if not self._recovers(swap, failure, self.env(swap), {}):
            raise failure

    def _recovers(self, swap: Swap, failure: Exception, env: Env, done: dict[int, Values]) -> bool:
        if not recover(self.stage, swap, failure, env, done, self._last):
            return False
        self.recovered(swap)
        return True
