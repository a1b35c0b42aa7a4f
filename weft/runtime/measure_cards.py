"""What a program costs on devices that are none of the CPU's executors, such as graphics cards."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from weft.backends.base import Backend, Block, Compiled, Coordinator, Env
from weft.backends.cpu import CpuBackend
from weft.backends.launch import Getter, Picture, blank_view
from weft.backends.registry import Registry
from weft.backends.select import Choice, choose
from weft.codegen.unit import Unit
from weft.contexts import AUDIO, COMPUTE, VISUAL
from weft.media.pictures import load_picture
from weft.names import StrandRef, is_view
from weft.runtime.build import Build
from weft.runtime.measure import BLOCK, Cost, Way, constant, given_inputs, shape_of, tick_budget_ms, timed, units_of
from weft.runtime.sound.mixer import channels_of

_CONTEXTS = (VISUAL, AUDIO, COMPUTE)

# Sound may be computed ahead: the time of a block is that of so many in a row, shared among them.
_BLOCKS = 64

# The tier that is made in the background.
_BEST = 2


def find_cards(registry: Registry) -> tuple[list[Choice], dict[str, str]]:
    """The devices besides the CPU that run a context of weft's own; and of the backends that have none, why."""
    found: list[Choice] = []
    problems: dict[str, str] = {}
    for spec in _CONTEXTS:
        for backend in registry.of_context(spec.name):
            if backend.context == "*" or issubclass(backend, CpuBackend):
                continue
            for device in backend.probe():
                if device.available:
                    asked = f"{spec.name}={backend.name}:{device.index}"
                    found.append(choose(registry, [spec.name], asked)[spec.name])
                else:
                    remedy = f" ({device.remedy})" if device.remedy else ""
                    problems[backend.name] = f"{device.reason or 'it is not available'}{remedy}"
    return found, problems


def measure_card(program: Build, card: Choice, seconds: float) -> Cost | None:
    """What the subgraphs of the card's context cost in a tick, on their own: what they read of other contexts is a
    constant. A tick ends when the device has done all of it. None if the program has nothing in that context. The
    program is compiled for the card (`contexts_of`).

    Raises WeftError for what the card cannot take."""
    units = [unit for unit in units_of(program) if unit.subgraph.context == card.context]
    if not units:
        return None
    spec, settings = program.contexts[card.context], program.patch.settings
    rig = _Rig(program, card.make(), spec.streams)
    started = time.perf_counter()
    rig.load(units)
    load_ms = (time.perf_counter() - started) * 1e3
    rig.improve()
    timing = timed(rig.tick, seconds)
    if spec.streams:
        # The median of single blocks would be of those that were computed ahead, and cost nothing.
        several = timed(partial(rig.ticks, _BLOCKS), seconds).scaled(1 / _BLOCKS)
        timing = replace(several, first=timing.first)
    return Cost(
        context=card.context,
        way=Way(card.shown, made="shader"),
        shape=shape_of(spec, settings),
        load_ms=load_ms,
        timing=timing,
        estimated=False,
        budget_ms=tick_budget_ms(spec, settings),
    )


@dataclass(frozen=True)
class _Elsewhere:
    """A coordinator of subgraphs that are measured alone: all that they read is a constant."""

    def expose(self, ref: StrandRef, backend: Backend, compiled: Compiled) -> None:
        pass

    def lookup(self, ref: StrandRef) -> Getter:
        return constant


class _Rig:
    """Subgraphs on one backend, tick after tick."""

    def __init__(self, program: Build, backend: Backend, streams: bool) -> None:
        settings = program.patch.settings
        self._backend = backend
        self._elsewhere: Coordinator = _Elsewhere()
        self._loaded: list[Compiled] = []
        self._channels = channels_of(program.playable)
        self._streams = streams
        self._rate = settings["rate"]
        self._size = int(settings["width"]), int(settings["height"])
        self._seconds = 1 / self._rate if streams else 1 / settings["fps"]
        self._inputs = given_inputs(program)
        self._pictures: dict[str, Picture] = {}
        self._tick = 0

    def load(self, units: list[Unit]) -> None:
        """Makes units ready, and waits until they are."""
        paths = {path for unit in units for path in unit.kernel.pictures}
        self._pictures = {path: blank_view() if is_view(path) else load_picture(Path(path)) for path in paths}
        env = self._env(units[0])
        self._loaded = [self._backend.compile_subgraph(unit, env, self._elsewhere) for unit in units]
        self._backend.sync("device")

    def improve(self) -> None:
        """Takes into use what a performance has as soon as there was time to make it."""
        for compiled in self._loaded:
            code = self._backend.translate(compiled.unit, tier=_BEST)
            if code is not None:
                self._backend.exchange(compiled, code)

    def tick(self) -> None:
        """Runs the next tick, and waits until the device has done all of it."""
        for compiled in self._loaded:
            self._backend.execute_subgraph(compiled, self._env(compiled.unit), self._elsewhere)
        self._backend.sync("device")
        self._tick += 1

    def ticks(self, count: int) -> None:
        """So many of them."""
        for _ in range(count):
            self.tick()

    def _env(self, unit: Unit) -> Env:
        ticks = BLOCK if self._streams else 1
        env = Env(
            *self._size,
            tick=self._tick,
            abstime=self._tick * ticks * self._seconds,
            dt=self._seconds,
            inputs=self._inputs,
            pictures=self._pictures,
        )
        if not self._streams:
            return env
        led = env.standing(unit.kernel, BLOCK)
        return replace(env, block=Block(self._tick * BLOCK, BLOCK, self._rate, self._channels, led))
