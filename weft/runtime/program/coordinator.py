"""Runs the subgraphs of a program in order, tick by tick, and passes values between their backends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import Backend, Bindable, Compiled, Env, Reading, Values, as_array
from weft.backends.launch import VIEW, Floats, Getter, Picture, Value
from weft.backends.prologue import FilmTimes, Place, Prefetch, nowhere, prefetch_of, rows, tick
from weft.codegen.kernel import Unit
from weft.contexts import VISUAL, ContextTable
from weft.names import StrandRef, viewed
from weft.outlets import order_of_target


@dataclass(frozen=True)
class RunningSubgraph:
    """One subgraph of a running program, with the backend that runs it. If it `bridges`, it runs there only until the
    device that should run it is ready. `level` is the level at which it draws its picture for the moment."""

    unit: Unit
    backend: Backend
    compiled: Compiled
    bridges: bool = False
    level: int = 0


@dataclass(frozen=True)
class TickResult:
    """The result of a subgraph with sinks in one tick: its context and the values of its outputs."""

    subgraph: str
    context: str
    labels: tuple[str, ...]
    values: Values
    target: str = ""
    """The `to:` of a picture."""

    @property
    def array(self) -> npt.NDArray[Any]:
        """The values as an array; may wait for a device."""
        return as_array(self.values)

    @property
    def numbers(self) -> dict[str, float]:
        """The values by their labels, one each; may wait for a device."""
        return dict(zip(self.labels, self.array.reshape(-1).tolist(), strict=True))


def pictures_of(results: Iterable[TickResult]) -> dict[str, TickResult]:
    """The pictures among results, by their targets. The first window, which has no name, shows the picture without a
    target. If there is none, it shows the first picture, preferably one that is meant for a window."""
    pictures = [result for result in results if result.context == VISUAL.name]
    first = min(pictures, key=lambda result: order_of_target(result.target), default=None)
    return {"" if result is first else result.target: result for result in pictures}


class ProgramRunner:
    """A program that runs. Its parts are in an order in which each strand is computed before it is read. A strand that
    is read earlier than that has its value of the tick before."""

    def __init__(self, contexts: ContextTable) -> None:
        self._contexts = contexts
        self._exposed: dict[StrandRef, tuple[Backend, Compiled]] = {}
        self._played_elsewhere: dict[StrandRef, Getter] = {}
        self._env: Env | None = None
        self._prefetches: dict[int, tuple[RunningSubgraph, Prefetch | None]] = {}
        """For each part, by its identity, the prefetch that finds where it reads strands on devices."""
        self._prefetched: dict[tuple[StrandRef, Place], float] = {}
        """Values at the places that the running part is expected to read."""
        self.parts: tuple[RunningSubgraph, ...] = ()
        self.feeding: tuple[RunningSubgraph, ...] = ()
        """The parts that compute the feeds of subgraphs that are played elsewhere."""
        self.views: tuple[str, ...] = ()
        """The pictures of strands that those subgraphs sample."""
        self.size_of: Callable[[Unit, tuple[int, int]], tuple[int, int]] = lambda unit, size: size
        """Width and height of the picture of a unit, which may differ from those of the program."""
        self.film: Callable[[str, float], Picture] | None = None
        """The picture of a film at a time, by its name among pictures. Without it, films stand still."""
        self._films: dict[int, tuple[RunningSubgraph, FilmTimes]] = {}
        """The times of each part's films, by the identity of the part."""
        self._shown: dict[str, Picture] = {}
        """The pictures of films in the last tick."""
        self.at: RunningSubgraph | None = None
        """The part that is running, or ran last."""

    @property
    def all_parts(self) -> tuple[RunningSubgraph, ...]:
        """The parts that run, and those that compute feeds."""
        return (*self.parts, *self.feeding)

    def expose(self, ref: StrandRef, backend: Backend, compiled: Compiled) -> None:
        """Lets others read a strand that a backend computes."""
        self._exposed[ref] = (backend, compiled)
        self._prefetches.clear()

    def expose_getter(self, ref: StrandRef, getter: Getter) -> None:
        """Lets others read a strand that is played elsewhere."""
        self._played_elsewhere[ref] = getter

    def lookup(self, ref: StrandRef) -> Getter | Bindable:
        """A getter that reads a strand at coordinates: those that its context can be read over, in that order. If there
        is a handle, the strand can be bound as well. Raises KeyError for a strand that is not exposed."""
        if ref in self._played_elsewhere:
            return self._played_elsewhere[ref]
        backend, compiled = self._exposed[ref]
        over = self._over(ref)

        def get(*coords: Value) -> Value:
            if self._prefetched and not any(map(np.ndim, coords)):
                known = self._prefetched.get((ref, tuple(map(float, coords))))
                if known is not None:
                    return known
            return backend.get_value_at(ref, compiled, dict(zip(over, coords, strict=True)), self._now(ref), self)

        handle = backend.get_handle(ref, compiled)
        if handle is None:
            return get

        def bind(*coords: Value) -> Any:
            return handle.values_at(dict(zip(over, coords, strict=True)), self._now(ref), self)

        return Bindable(get, handle.device, bind)

    def _now(self, ref: StrandRef) -> Env:
        if self._env is None:
            raise RuntimeError(f"{ref} is read outside of a tick")
        return self.sized(self._exposed[ref][1].unit, self._env)

    def sized(self, unit: Unit, env: Env) -> Env:
        """The environment of a unit, given that of the program."""
        width, height = size = self.size_of(unit, env.size)
        level = next((part.level for part in self.parts if part.unit is unit), 0)
        if size == env.size and level == env.level:
            return env
        return env._replace(width=width, height=height, level=level)

    def values(self, wanted: Mapping[StrandRef, Mapping[str, Value]], env: Env) -> dict[StrandRef, npt.NDArray[Any]]:
        """The values of several exposed strands, each at its own coordinates, after a tick."""
        self._env = self._with_films(env)
        readings: dict[tuple[Backend, tuple[int, int]], tuple[Env, list[Reading]]] = {}
        for ref, coords in wanted.items():
            backend, compiled = self._exposed[ref]
            own = self.sized(compiled.unit, env)
            readings.setdefault((backend, own.size), (own, []))[1].append(Reading(ref, compiled, coords))
        return {
            reading.ref: np.asarray(values)
            for (backend, _), (own, reads) in readings.items()
            for reading, values in zip(reads, backend.get_values_at(reads, own, self), strict=True)
        }

    def _execute(self, part: RunningSubgraph, env: Env) -> Values:
        """Runs one tick of a subgraph. The single values that it reads from devices are fetched beforehand, so that it
        waits only once for several of them."""
        prefetch = self._prefetch_of(part)
        try:
            if prefetch is not None:
                places = prefetch.places(part.compiled.memory, env)
                found = self.values({ref: rows(each, self._over(ref)) for ref, each in places.items()}, env)
                self._prefetched = {
                    (ref, place): float(value)
                    for ref, values in found.items()
                    for place, value in zip(places[ref], values.reshape(-1), strict=True)
                }
            return part.backend.execute_subgraph(part.compiled, self._showing(part, env), self)
        finally:
            self._prefetched = {}

    def _with_films(self, env: Env) -> Env:
        """The environment between two ticks."""
        return env._replace(pictures={**env.pictures, **self._shown}) if self._shown else env

    def _showing(self, part: RunningSubgraph, env: Env) -> Env:
        """The environment of a tick of a part, with the pictures of its films. The slots that it borrows are brought up
        to date with their owners."""
        for owner in self.parts if part.unit.borrowed else ():
            if owner is not part and owner.unit.subgraph.context == part.unit.subgraph.context:
                part.compiled.memory.follow(owner.compiled.memory)
        if self.film is None or part.unit.films is None:
            return self.sized(part.unit, env)
        if id(part) not in self._films:
            self._films[id(part)] = part, FilmTimes(part.unit.films)
        times = self._films[id(part)][1]
        launch = tick(times.kernel, env, self, (1, 1), nowhere(env))
        for name, seconds in times.at(part.compiled.memory, launch).items():
            self._shown[name] = self.film(name, seconds)
        # Other parts read its strands as they were after the last tick.
        self._env = self._with_films(env)
        return self.sized(part.unit, self._env)

    def _prefetch_of(self, part: RunningSubgraph) -> Prefetch | None:
        if id(part) not in self._prefetches:
            exposed = {ref: self._exposed[ref][0] for ref in part.unit.kernel.strands if ref in self._exposed}
            on_devices = {ref for ref, backend in exposed.items() if backend.capabilities().handles}
            self._prefetches[id(part)] = part, prefetch_of(part.unit.kernel, on_devices - self._played_elsewhere.keys())
        return self._prefetches[id(part)][1]

    def _over(self, ref: StrandRef) -> tuple[str, ...]:
        """The coordinates that a strand can be read over."""
        return (*self._contexts[self._exposed[ref][1].unit.subgraph.context].read_over, *ref.coordinates)

    def try_out(self, env: Env, raw: bool = False) -> Iterator[tuple[RunningSubgraph, Values | None]]:
        """One tick of every subgraph, without any effect outside; see `Backend.try_out`."""
        self._env = self._with_films(env)
        for part in self.parts:
            yield part, part.backend.try_out(part.compiled, self._showing(part, env), self, raw)

    def replace(self, old: RunningSubgraph, new: RunningSubgraph) -> None:
        """Replaces a part by one on another backend, between two subgraphs or two ticks."""
        self.parts = tuple(new if part is old else part for part in self.parts)
        self.feeding = tuple(new if part is old else part for part in self.feeding)
        for ref in new.unit.subgraph.exposes:
            self.expose(ref, new.backend, new.compiled)

    def run(self, env: Env, done: dict[int, Values] | None = None) -> list[TickResult]:
        """One tick of every subgraph. `done` collects their results by the identity of the compiled subgraph; what it
        already has from an interrupted tick is not run again."""
        self._env = self._with_films(env)
        results: list[TickResult] = []
        done = {} if done is None else done
        for part in self.parts:
            self.at = part
            if id(part.compiled) not in done:
                done[id(part.compiled)] = self._execute(part, env)
            results += _results(part, self._whole(part, done[id(part.compiled)], env))
        return results

    def run_aside(self, env: Env, done: Mapping[int, Values]) -> list[TickResult]:
        """One tick without any effect outside, for a program that fades out while another plays. `done` has the results
        of the parts that both programs share."""
        self._env = self._with_films(env)
        results: list[TickResult] = []
        for part in self.parts:
            values = done.get(id(part.compiled))
            if values is None:
                values = part.backend.try_out(part.compiled, self._showing(part, env), self)
            results += _results(part, self._whole(part, values, env))
        return results

    def _whole(self, part: RunningSubgraph, values: Values | None, env: Env) -> Values | None:
        """A picture in full size, if it was drawn with fewer pixels."""
        if not part.level or not isinstance(values, np.ndarray):
            return values
        height, width = self.size_of(part.unit, env.size)[::-1]
        times = 1 << part.level
        return values.repeat(times, 0)[:height].repeat(times, 1)[:, :width]

    def feeds(self, env: Env) -> dict[str, float]:
        """The values for subgraphs that are played elsewhere, by the names of the coordinates through which these read
        them; computed from the state after the last tick."""
        self._env = self._with_films(env)
        found: dict[str, float] = {}
        for part in self.feeding:
            self.at = part
            values = self._execute(part, env)
            found.update(zip(part.unit.kernel.outputs, map(float, as_array(values).reshape(-1)), strict=True))
        return found

    @property
    def feeds_streams(self) -> bool:
        """Whether subgraphs that are played elsewhere read anything from here."""
        return bool(self.feeding or self.views)

    def view_values(self, env: Env) -> dict[str, Floats]:
        """The strands that subgraphs which are played elsewhere sample, by the names of their pictures. They are read
        at the pixel centres of a picture of the size `VIEW`, as they were after the last tick."""
        self._env = self._with_films(env)
        height, width = VIEW
        y, x = np.meshgrid((np.arange(height) + 0.5) / height, (np.arange(width) + 0.5) / width, indexing="ij")
        return {name: np.asarray(self.lookup(viewed(name))(x, y)) for name in self.views}


def _results(part: RunningSubgraph, values: Values | None) -> list[TickResult]:
    """The results of a part that leave the program: none if it has no sinks."""
    subgraph, kernel = part.unit.subgraph, part.unit.kernel
    if values is None or not subgraph.sinks:
        return []
    return [TickResult(subgraph.name, kernel.context, kernel.outputs, values, subgraph.target)]
