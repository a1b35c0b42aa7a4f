"""Runs the subgraphs of one program in order, tick by tick, and routes values between their backends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import Backend, Bindable, Compiled, Env, NoHandle, Reading, Values, as_array
from weft.backends.launch import VIEW, Getter, Reals, Value
from weft.backends.reads import Place, Prefetch, prefetch_of, rows
from weft.codegen.kernel import Unit
from weft.contexts import ContextTable
from weft.names import StrandRef, viewed


@dataclass(frozen=True)
class RunningSubgraph:
    """One subgraph of a running program, with the backend that runs it. One that `bridges` does so until the device
    that should run it is ready."""

    unit: Unit
    backend: Backend
    compiled: Compiled
    bridges: bool = False


@dataclass(frozen=True)
class TickResult:
    """What a tick gave: for each subgraph with sinks, its context and what the backend made of its outputs."""

    subgraph: str
    context: str
    labels: tuple[str, ...]
    values: Values

    @property
    def array(self) -> npt.NDArray[Any]:
        """The values as an array, for which a device may have to be waited for."""
        return as_array(self.values)


def main_picture(results: Iterable[TickResult]) -> TickResult | None:
    """The picture of the window: that of the `display` without a target, else the first one."""
    pictures = [result for result in results if result.context == "visual"]
    return min(pictures, key=lambda result: ":" in result.labels[0], default=None)


class ProgramRunner:
    """A program that runs. Its parts stand in an order in which every strand is finished before it is read; what is
    read before it is finished is the value of the tick before."""

    def __init__(self, contexts: ContextTable) -> None:
        self._contexts = contexts
        self._exposed: dict[StrandRef, tuple[Backend, Compiled]] = {}
        self._heard: dict[StrandRef, Getter] = {}
        self._env: Env | None = None
        self._askings: dict[int, tuple[RunningSubgraph, Prefetch | None]] = {}
        """For each part, by its identity, what finds out where it reads strands that are on devices."""
        self._told: dict[tuple[StrandRef, Place], float] = {}
        """Values at places that the part which runs was expected to read."""
        self.parts: tuple[RunningSubgraph, ...] = ()
        self.feeding: tuple[RunningSubgraph, ...] = ()
        """What computes the feeds of subgraphs that are played elsewhere."""
        self.views: tuple[str, ...] = ()
        """The pictures of strands that these see."""
        self.at: RunningSubgraph | None = None
        """What is being run, or was run last."""

    @property
    def all_parts(self) -> tuple[RunningSubgraph, ...]:
        """What runs, and what computes feeds."""
        return (*self.parts, *self.feeding)

    def expose(self, ref: StrandRef, backend: Backend, compiled: Compiled) -> None:
        """Lets others read a strand that a backend computes."""
        self._exposed[ref] = (backend, compiled)
        self._askings.clear()

    def hear(self, ref: StrandRef, getter: Getter) -> None:
        """Lets others read a strand that is played elsewhere."""
        self._heard[ref] = getter

    def lookup(self, ref: StrandRef) -> Getter | Bindable:
        """A getter that reads a strand at the coordinates its context can be read over, in that order; where there is a
        handle, it can be bound as well. Raises KeyError if nobody exposed it."""
        if ref in self._heard:
            return self._heard[ref]
        backend, compiled = self._exposed[ref]
        over = self._over(ref)

        def get(*coords: Value) -> Value:
            known = self._known(ref, coords) if self._told else None
            if known is not None:
                return known
            return backend.get_value_at(ref, compiled, dict(zip(over, coords, strict=True)), self._now(ref), self)

        handle = backend.get_handle(ref, compiled)
        if isinstance(handle, NoHandle):
            return get

        def bind(*coords: Value) -> Any:
            return handle.values_at(dict(zip(over, coords, strict=True)), self._now(ref), self)

        return Bindable(get, handle.device, bind)

    def _now(self, ref: StrandRef) -> Env:
        if self._env is None:
            raise RuntimeError(f"{ref} is read outside of a tick")
        return self._env

    def values(self, asked: Mapping[StrandRef, Mapping[str, Value]], env: Env) -> dict[StrandRef, npt.NDArray[Any]]:
        """Several exposed strands, each at coordinates of its own, after a tick."""
        self._env = env
        readings: dict[Backend, list[Reading]] = {}
        for ref, coords in asked.items():
            backend, compiled = self._exposed[ref]
            readings.setdefault(backend, []).append(Reading(ref, compiled, coords))
        return {
            reading.ref: np.asarray(values)
            for backend, reads in readings.items()
            for reading, values in zip(reads, backend.get_values_at(reads, env, self), strict=True)
        }

    def _execute(self, part: RunningSubgraph, env: Env) -> Values:
        """Runs one tick of a subgraph. What it reads once a tick of others on devices is asked for beforehand: if it is
        several values, they are waited for once."""
        asking = self._asking(part)
        try:
            if asking is not None:
                self._told = self._asked(asking.places(part.compiled.memory, env), env)
            return part.backend.execute_subgraph(part.compiled, env, self)
        finally:
            self._told = {}

    def _asked(self, places: Mapping[StrandRef, list[Place]], env: Env) -> dict[tuple[StrandRef, Place], float]:
        found = self.values({ref: rows(each, self._over(ref)) for ref, each in places.items()}, env)
        return {
            (ref, place): float(value)
            for ref, values in found.items()
            for place, value in zip(places[ref], values.reshape(-1), strict=True)
        }

    def _known(self, ref: StrandRef, coords: tuple[Value, ...]) -> float | None:
        """The value of a strand at a place, if it has been asked for."""
        return None if any(map(np.ndim, coords)) else self._told.get((ref, tuple(map(float, coords))))

    def _asking(self, part: RunningSubgraph) -> Prefetch | None:
        if id(part) not in self._askings:
            exposed = {ref: self._exposed[ref][0] for ref in part.unit.kernel.strands if ref in self._exposed}
            on_devices = {ref for ref, backend in exposed.items() if backend.capabilities().handles}
            self._askings[id(part)] = part, prefetch_of(part.unit.kernel, on_devices - self._heard.keys())
        return self._askings[id(part)][1]

    def _over(self, ref: StrandRef) -> tuple[str, ...]:
        """The coordinates that a strand can be read over."""
        return self._contexts[self._exposed[ref][1].unit.subgraph.context].read_over

    def try_out(self, env: Env, raw: bool = False) -> Iterator[tuple[RunningSubgraph, Values | None]]:
        """One tick of every subgraph, without any effect outside; see `Backend.try_out`."""
        self._env = env
        for part in self.parts:
            yield part, part.backend.try_out(part.compiled, env, self, raw)

    def replace(self, old: RunningSubgraph, new: RunningSubgraph) -> None:
        """Has a subgraph run by another backend from now on, between two subgraphs or two ticks."""
        self.parts = tuple(new if part is old else part for part in self.parts)
        self.feeding = tuple(new if part is old else part for part in self.feeding)
        for ref in new.unit.subgraph.exposes:
            self.expose(ref, new.backend, new.compiled)

    def run(self, env: Env, done: dict[int, Values] | None = None) -> list[TickResult]:
        """One tick of every subgraph. `done` takes all that they gave, by the identity of the compiled subgraph; what
        it has already of a tick that was broken off is not run again."""
        self._env = env
        results = []
        done = {} if done is None else done
        for part in self.parts:
            self.at = part
            if id(part.compiled) not in done:
                done[id(part.compiled)] = self._execute(part, env)
            values = done[id(part.compiled)]
            if part.unit.subgraph.sinks:
                results.append(_result(part, values))
        return results

    def run_beside(self, env: Env, done: Mapping[int, Values]) -> list[TickResult]:
        """The same without any effect outside, for a program that goes on beside the one that plays. What both have in
        common is `done` already."""
        self._env = env
        results = []
        for part in self.parts:
            values = done.get(id(part.compiled))
            if values is None:
                values = part.backend.try_out(part.compiled, env, self)
            if part.unit.subgraph.sinks and values is not None:
                results.append(_result(part, values))
        return results

    def feeds(self, env: Env) -> dict[str, float]:
        """What subgraphs that are played elsewhere are given, by the names of the coordinates that it arrives as; from
        what the last tick left."""
        self._env = env
        found: dict[str, float] = {}
        for part in self.feeding:
            self.at = part
            values = self._execute(part, env)
            found.update(zip(part.unit.kernel.outputs, map(float, as_array(values).reshape(-1)), strict=True))
        return found

    @property
    def gives(self) -> bool:
        """Whether subgraphs that are played elsewhere are given anything from here."""
        return bool(self.feeding or self.views)

    def seen(self, env: Env) -> dict[str, Reals]:
        """The strands that subgraphs which are played elsewhere see, by the names of their pictures: at the centres of
        a picture of `VIEW`, as the last tick left them."""
        self._env = env
        height, width = VIEW
        y, x = np.meshgrid((np.arange(height) + 0.5) / height, (np.arange(width) + 0.5) / width, indexing="ij")
        return {name: np.asarray(self.lookup(viewed(name))(x, y)) for name in self.views}


def _result(part: RunningSubgraph, values: Values) -> TickResult:
    kernel = part.unit.kernel
    return TickResult(part.unit.subgraph.name, kernel.context, kernel.outputs, values)
