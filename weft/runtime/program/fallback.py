"""When a device fails while a program plays, the program continues on another device. It moves back when it can."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from weft.backends.base import Backend, Compiled, Coordinator, DeviceLostError, Env, Values
from weft.backends.cpu import CpuBackend
from weft.backends.null import Null, NullCompiled
from weft.codegen.kernel import Unit
from weft.errors import WeftError
from weft.runtime.program.assignment import reason_of
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.coordinator import ProgramRunner, RunningSubgraph
from weft.runtime.program.program import LoadedProgram, ProgramLoader, made_ready, memories_for


def recover(
    loader: ProgramLoader, loaded: LoadedProgram, failure: Exception, env: Env, done: dict[int, Values],
    last: Mapping[str, Values] = MappingProxyType({}),
) -> bool:
    """Moves everything that ran on the failed device to the next backend, with all of its state that can still be read;
    see `repair`. It is in the middle of a tick, whose results so far are `done`. False if the program itself failed."""
    reason = failure.reason if isinstance(failure, DeviceLostError) else type(failure).__name__
    if not isinstance(failure, DeviceLostError) and str(failure):
        reason += f": {failure}"
    for backend in _suspects(loaded, failure):
        loader.assignment.lose(backend, reason)
        if loader.assignment.is_lost(backend):
            return repair(loader, loaded, env, done, last)
    return False


def repair(
    loader: ProgramLoader, loaded: LoadedProgram, env: Env, done: dict[int, Values],
    last: Mapping[str, Values] = MappingProxyType({}),
) -> bool:
    """Moves the subgraphs whose backends are lost to other backends. A subgraph for which none is left repeats its
    `last` result, which is found by its name. False if nothing had to be moved. Raises WeftError for a subgraph that no
    backend accepts."""
    if not loader.assignment.has_lost:
        return False
    lost = [part for part in loaded.runner.all_parts if loader.assignment.is_lost(part.backend)]
    for part in lost:
        if loader.assignment.losses(part.unit.subgraph.context):
            frozen = _FrozenPicture(part.unit, last=last.get(part.unit.subgraph.name))
            new = RunningSubgraph(part.unit, _FrozenBackend(), frozen)
        else:
            new = stand_in(loader, part, loaded.compiled, env, loaded.runner)
        loaded.runner.replace(part, new)
        given = done.pop(id(part.compiled), None)
        if isinstance(given, np.ndarray):
            # It has run in this tick. A picture on the device is lost with it, and is drawn again.
            done[id(new.compiled)] = given
    return bool(lost)


def stand_in(
    loader: ProgramLoader, part: RunningSubgraph, compiled: CompiledProgram, env: Env, runner: ProgramRunner
) -> RunningSubgraph:
    """The same subgraph on another backend, as soon as possible, with the state that can still be read. The CPU bridges
    the time until a preferred device is ready. Raises WeftError if nothing can run it."""
    failed: WeftError | None = None
    while True:
        candidates = loader.candidates(part.unit, compiled)
        at_once = next((candidate for candidate in candidates if candidate.choice.is_cpu), None)
        found = at_once or next(iter(candidates), None)
        if found is None:
            raise failed or DeviceLostError(part.unit.subgraph.context, "nothing is left that could run it")
        try:
            ready = found.backend.compile_at_once(found.coded(part.unit), runner.sized(part.unit, env), runner)
        except DeviceLostError as failure:
            failed = failed or failure
            if not loader.assignment.lose(found.backend, failure.reason):
                raise
            continue
        new = RunningSubgraph(part.unit, found.backend, ready, bridges=found is not candidates[0])
        with suppress(Exception):  # the state on the device may be lost with it
            new.backend.adopt(new.compiled, memories_for(new, [part]))
        return new


# --- from the bridge to the intended device -----------------------------------------------------------------------


@dataclass(frozen=True)
class Migration:
    """The move of a subgraph from the part that bridges to another part; to None if no device accepts it."""

    loaded: LoadedProgram
    old: RunningSubgraph
    new: RunningSubgraph | None


def moves(loader: ProgramLoader, loaded: LoadedProgram, units: Iterable[Unit]) -> tuple[Migration, ...]:
    """Loads what a program bridges on the devices that should run it. `units` are the same subgraphs, translated for
    these. Nothing that runs is changed. It is slow, so it belongs in the thread that compiles."""
    translated = {unit.hash: unit for unit in units}
    bridges = [part for part in loaded.runner.all_parts if part.bridges]
    return tuple(
        Migration(loaded, part, _moved(loader, loaded, replace(part, unit=_translated(part.unit, translated))))
        for part in bridges
    )


def _translated(unit: Unit, known: Mapping[str, Unit]) -> Unit:
    """A unit for the device that should run it, with the code of the one that is known by its hash."""
    found = known.get(unit.hash)
    code, name = (None, "") if found is None else (found.code, found.code_of)
    return replace(unit, code=code, code_of=name, bridges=False)


def _moved(loader: ProgramLoader, loaded: LoadedProgram, part: RunningSubgraph) -> RunningSubgraph | None:
    env = loaded.runner.sized(part.unit, Env(*loaded.size, pictures=loaded.pictures))._replace(level=0)
    for candidate in loader.candidates(part.unit, loaded.compiled):
        if candidate.choice.is_cpu:
            break
        try:
            compiled = made_ready(candidate.backend, candidate.coded(part.unit), env, loaded.runner)
            candidate.backend.allocate(compiled, [part.compiled])
        except DeviceLostError as failure:
            loader.assignment.lose(candidate.backend, failure.reason)
        except Exception as failure:
            loader.assignment.pass_over(part.unit, candidate, reason_of(failure))
        else:
            return RunningSubgraph(part.unit, candidate.backend, compiled)
    return None


def settle(loader: ProgramLoader, move: Migration) -> bool:
    """Completes a move between two ticks, with the current state. False if it fails; then the bridge stays."""
    runner, new = move.loaded.runner, move.new
    old = next((part for part in runner.all_parts if part.bridges and part.unit is move.old.unit), None)
    if old is None:
        return True
    if new is None:
        runner.replace(old, replace(old, bridges=False))
        return False
    if loader.assignment.is_lost(new.backend):
        return False
    try:
        new.backend.adopt(new.compiled, memories_for(new, [old]))
    except DeviceLostError as failure:
        loader.assignment.lose(new.backend, failure.reason)
        return False
    runner.replace(old, new)
    return True


# --- if no backend is left ----------------------------------------------------------------------------------------


@dataclass
class _FrozenPicture(NullCompiled):
    """A subgraph that repeats its last result."""

    last: Values | None = None


class _FrozenBackend(Null):
    """Replaces a device, if no backend is left for its context."""

    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Any:
        if isinstance(compiled, _FrozenPicture) and compiled.last is not None:
            return compiled.last
        return super().execute_subgraph(compiled, env, coordinator)


def _suspects(loaded: LoadedProgram, failure: Exception) -> Iterator[Backend]:
    """The backends whose device may have failed, the likeliest first. An unexplained failure counts as that of the
    program, unless the part that ran is not on the CPU."""
    at = loaded.runner.at
    if at is None:
        return
    if not isinstance(failure, DeviceLostError):
        if not isinstance(failure, WeftError) and not isinstance(at.backend, CpuBackend):
            yield at.backend
        return
    # A device may fail while another part reads from it, or while its picture is shown.
    backends = [at.backend, *(part.backend for part in loaded.runner.all_parts)]
    on_cpu, context = CpuBackend, failure.context
    yield from sorted(backends, key=lambda backend: (isinstance(backend, on_cpu), backend.context != context))


# --- from fewer pixels to all ---------------------------------------------------------------------------------------


def grow(runner: ProgramRunner, part: RunningSubgraph, env: Env) -> None:
    """Makes a part of a program draw all pixels of its picture, between two ticks."""
    whole = runner.sized(part.unit, env)._replace(level=0)
    new = replace(part, compiled=part.backend.compile_subgraph(part.unit, whole, runner), level=0)
    new.backend.adopt(new.compiled, [part.compiled])
    runner.replace(part, new)
