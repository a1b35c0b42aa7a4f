"""Runs the subgraphs of one program in order, tick by tick, and routes values between their backends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import Backend, Compiled, Env
from weft.backends.launch import Getter, Value
from weft.codegen.unit import Unit
from weft.contexts import ContextTable
from weft.names import StrandRef


@dataclass(frozen=True)
class Part:
    """One subgraph of a running program, with the backend that runs it."""

    unit: Unit
    backend: Backend
    compiled: Compiled


@dataclass(frozen=True)
class Result:
    """What a tick gave: for each subgraph with sinks, its context and what the backend made of its outputs."""

    subgraph: str
    context: str
    labels: tuple[str, ...]
    values: npt.NDArray[Any]


def main_picture(results: Iterable[Result]) -> Result | None:
    """The picture of the window: that of the `display` without a target, else the first one."""
    pictures = [result for result in results if result.context == "visual"]
    return min(pictures, key=lambda result: ":" in result.labels[0], default=None)


class ProgramRunner:
    """A program that runs. Its parts stand in an order in which every strand is finished before it is read; what is
    read before it is finished is the value of the tick before."""

    def __init__(self, contexts: ContextTable) -> None:
        self._contexts = contexts
        self._exposed: dict[StrandRef, tuple[Backend, Compiled]] = {}
        self._env: Env | None = None
        self.parts: tuple[Part, ...] = ()

    def expose(self, ref: StrandRef, backend: Backend, compiled: Compiled) -> None:
        """Lets others read a strand that a backend computes."""
        self._exposed[ref] = (backend, compiled)

    def lookup(self, ref: StrandRef) -> Getter:
        """A getter that reads a strand at the coordinates its context can be read over, in that order. Raises KeyError
        if nobody exposed it."""
        backend, compiled = self._exposed[ref]
        over = self._contexts[compiled.unit.subgraph.context].read_over

        def get(*coords: Value) -> Value:
            if self._env is None:
                raise RuntimeError(f"{ref} is read outside of a tick")
            return backend.get_value_at(ref, compiled, dict(zip(over, coords, strict=True)), self._env, self)

        return get

    def values(self, asked: Mapping[StrandRef, Mapping[str, Value]], env: Env) -> dict[StrandRef, npt.NDArray[Any]]:
        """Several exposed strands, each at coordinates of its own, after a tick."""
        self._env = env
        found = {}
        for ref, coords in asked.items():
            backend, compiled = self._exposed[ref]
            found[ref] = np.asarray(backend.get_value_at(ref, compiled, coords, env, self))
        return found

    def try_out(self, env: Env, raw: bool = False) -> Iterator[tuple[Part, npt.NDArray[Any] | None]]:
        """One tick of every subgraph, without any effect outside; see `Backend.try_out`."""
        self._env = env
        for part in self.parts:
            yield part, part.backend.try_out(part.compiled, env, self, raw)

    def run(self, env: Env) -> list[Result]:
        """One tick of every subgraph."""
        self._env = env
        results = []
        for part in self.parts:
            values = part.backend.execute_subgraph(part.compiled, env, self)
            if part.unit.subgraph.sinks:
                kernel = part.unit.kernel
                results.append(Result(part.unit.subgraph.name, kernel.context, kernel.outputs, values))
        return results
