"""Makes compiled programs run: chooses backends, loads kernels ahead of time, and hands state from one program to the
next."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

from weft.backends import hardware
from weft.backends.base import Backend, Compiled, Coordinator, DeviceInfo, DeviceLostError, Env
from weft.backends.card_memory import CardState
from weft.backends.cpu import CpuBackend
from weft.backends.launch import Getter, Picture
from weft.backends.null import NullCompiled
from weft.backends.registry import load_registry
from weft.backends.select import (
    Choice, Need, by_device, check_room, choose, contexts_of, needs_of, pictures_of, total, unavailable
)
from weft.cameras import camera_named
from weft.codegen.kernel import Unit, structure_hash
from weft.contexts import COMPUTE, VISUAL, ContextTable
from weft.errors import Diagnostic, Span, WeftError, error
from weft.media.sampled import opener, read, read_decoded
from weft.media.source import LivePicture, PictureError
from weft.names import HeardName, StrandRef, file_of, heard_of, is_heard, is_live, is_view, origin_of, shown
from weft.permissions import DEFAULT_PERMISSIONS, Permissions
from weft.recently_used import RecentlyUsed
from weft.runtime.program.assignment import BackendAssignment, BackendSlot, reason_of
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.coordinator import ProgramRunner, RunningSubgraph
from weft.runtime.program.files import stat_media

# The tier of the code that is made in the background.
_BETTER = 2

# The most bytes of pictures that are kept for later texts.
_MOST_PICTURES = 256_000_000

# Bytes. A program that needs no more is loaded without asking for the computer's free memory, which takes a
# millisecond.
_SMALL = 16_000_000

DRIVER_SECONDS = 60.0
"""A driver that takes longer for a subgraph is considered to hang. Some take ten seconds for one with many loops."""

# The name for memory that a device shares with the rest of the computer.
HERE = "this computer"


@dataclass(frozen=True)
class LoadedProgram:
    """A program that is ready to take over: everything slow has been done. `kept` are the names of the subgraphs that
    it shares with the previous program, `changed` those of new ones. `left_out` are warnings about contexts that
    nothing can run."""

    compiled: CompiledProgram
    runner: ProgramRunner
    pictures: Mapping[str, Picture]
    """The pictures that stay the same, and a placeholder for each live one."""
    size: tuple[int, int]
    changed: tuple[str, ...]
    kept: tuple[str, ...]
    left_out: tuple[Diagnostic, ...] = ()
    elsewhere: tuple[Unit, ...] = ()
    """The units that stream, and are played elsewhere."""
    live: Mapping[str, LivePicture] = field(default_factory=dict)

    def pictures_at(self, seconds: float, exactly: bool = False) -> Mapping[str, Picture]:
        """The pictures that it samples at a time of the performance. With `exactly`, they are those of this very time,
        however long that takes."""
        if not self.live:
            return self.pictures
        now = {
            name: live.exactly(seconds) if exactly else live.at(seconds)
            for name, live in self.live.items()
            if not live.is_timed
        }
        return {**self.pictures, **now}

    def tier(self, codes: Collection[str] = ()) -> int:
        """The lowest tier among the subgraphs that run here and have tiers. If there are none, it is the lowest tier of
        those that are played elsewhere; `codes` are the hashes of units for which these use better code."""
        here = (part.backend.tier(part.compiled) for part in self.runner.parts)
        tiers = [tier for tier in here if tier is not None]
        return min(tiers, default=_BETTER if any(unit.hash in codes for unit in self.elsewhere) else 1)

    @property
    def improvable(self) -> tuple[Unit, ...]:
        """The units, without code, that run at the first tier or below, here or elsewhere."""
        here = (p.unit for p in self.runner.parts if p.backend.tier(p.compiled) in (0, 1) and not p.bridges)
        return tuple(replace(unit, code=None) for unit in (*here, *self.elsewhere))

    @property
    def bridged(self) -> CompiledProgram:
        """The units whose intended device is not ready for them yet."""
        parts = (part for part in self.runner.all_parts if part.bridges)
        units = (replace(part.unit, code=None, code_of="", bridges=False) for part in parts)
        return replace(self.compiled, units=tuple(units))

    @property
    def bridging(self) -> tuple[str, ...]:
        """The names of the subgraphs that the CPU runs until their device is ready."""
        return tuple(part.unit.subgraph.name for part in self.runner.all_parts if part.bridges)

    @property
    def reduced(self) -> tuple[str, ...]:
        """The names of the subgraphs that are drawn with fewer pixels for a moment."""
        return tuple(part.unit.subgraph.name for part in self.runner.all_parts if part.level)

    @property
    def stand_ins(self) -> frozenset[str]:
        """The hashes of the units that run below the first tier."""
        return frozenset(part.unit.hash for part in self.runner.parts if part.backend.tier(part.compiled) == 0)

    def upgrade(self, codes: Mapping[str, object]) -> None:
        """Replaces code by better code, given by the hashes of the units. May be called from any thread."""
        for part in self.runner.parts:
            if part.unit.hash in codes:
                part.backend.upgrade(part.compiled, codes[part.unit.hash])


@dataclass
class ProgramLoader:
    """Loads programs on the backends of each context, for as long as a session lasts.

    If there is a `stream_getter`, contexts that stream are played elsewhere, and it gives the getters of their strands.
    """

    choices: Mapping[str, Choice]
    stream_getter: Callable[[StrandRef], Getter] | None = None
    listener: Callable[[HeardName], LivePicture] | None = None
    """Gives the pictures of what analyses hear in those sounds."""
    missing: Mapping[str, DeviceInfo] = field(default_factory=dict)
    """The contexts without an available device, each with a device whose `reason` says why."""
    rehearses: bool = False
    """Whether programs are only tried out. Then no device is opened."""
    offline: bool = False
    """Whether programs are rendered. Then there is no hurry."""
    bridges: bool = False
    """Whether the CPU draws, if necessary with fewer pixels, until the driver of a card has made a program."""
    decoded: Mapping[str, str] = field(default_factory=dict)
    """The files of sounds that another process has decoded, by their names."""
    _assignment: BackendAssignment | None = None
    _pictures: dict[str, tuple[object, Picture]] = field(default_factory=dict)
    _live: WeakValueDictionary[str, LivePicture] = field(default_factory=WeakValueDictionary)
    """The live pictures. Each is open for as long as a program has it."""

    def __post_init__(self) -> None:
        # A copy of this one, made by `replace`, shares the assignment.
        self._assignment = self._assignment or BackendAssignment(self.choices, self.offline)

    @property
    def assignment(self) -> BackendAssignment:
        """Which backend runs what."""
        assert self._assignment is not None
        return self._assignment

    def backend(self, context: str) -> Backend | None:
        """The backend that runs a context, None if nothing can."""
        return self.assignment.backend(context)

    def candidates(self, unit: Unit, compiled: CompiledProgram) -> list[BackendSlot]:
        """The candidates for a unit, in order of preference. They do not depend on the small size of a trial."""
        return list(self.assignment.candidates(unit, _shape(unit, compiled, compiled.size)))

    @property
    def draws(self) -> bool:
        """Whether anything may draw with the graphics of a window."""
        return any(each.backend.draws for choice in self.choices.values() for each in (choice, *choice.fallbacks))

    @property
    def drawing_apis(self) -> list[Any]:
        """The kinds of graphics that those draw with, the preferred first."""
        found = (each.backend for choice in self.choices.values() for each in (choice, *choice.fallbacks))
        return list(dict.fromkeys(backend.api for backend in found if backend.draws and backend.api is not None))

    def draw_in(self, graphics: Any) -> None:
        """Has each backend that can do so draw with a window's graphics. Called before anything is prepared."""
        for context in self.choices:
            for backend in self.assignment.backends(context):
                backend.draw_in(graphics)

    def window_device(self) -> Any:
        """The device that a window should draw with, so that pictures need not be copied; None: OpenGL."""
        backend = self.backend(VISUAL.name)
        return None if backend is None else backend.window_device()

    def rehearsed(self, compiled: CompiledProgram) -> bool:
        """Whether a part of a program is tried out on another backend than the one that runs it."""
        firsts = (self.candidates(unit, compiled)[:1] for unit in compiled.units)
        return any(each.backend.rehearsing() is not each.backend for first in firsts for each in first)

    def _acting(self, backend: Backend) -> Backend:
        """The backend itself, or the one that tries programs out in its place."""
        return backend.rehearsing() if self.rehearses else backend

    def open_devices(self, contexts: Iterable[str]) -> None:
        """Opens the devices of the contexts that this process runs, before anything plays."""
        for context in contexts:
            for backend in self.assignment.backends(context):
                try:
                    backend.open()
                except DeviceLostError as failure:
                    self.assignment.lose(backend, failure.reason)

    def translate(
        self, compiled: CompiledProgram, known: Mapping[str, Unit] = MappingProxyType({}),
        awaited: Container[str] = frozenset(),
    ) -> CompiledProgram:
        """The program, with code translated by the backends where another process can do that. Units that are `known`,
        by their hashes, have been translated before. `awaited` are the structures whose programs the drivers are still
        making."""
        def translated(unit: Unit) -> Unit:
            before = known.get(unit.hash)
            if (bridge := self._bridge(unit, compiled, awaited)) is not None:
                if before is not None and before.bridges and before.code_of == bridge.choice.name:
                    return replace(unit, code=before.code, code_of=before.code_of, bridges=True)
                with suppress(Exception):
                    return replace(bridge.translated(unit), bridges=True)
            for candidate in self.candidates(unit, compiled):
                if before is not None and before.code_of == candidate.choice.name:
                    return replace(unit, code=before.code, code_of=before.code_of)
                with suppress(Exception):  # reported when it is loaded
                    return candidate.translated(unit)
            return unit

        started = time.perf_counter()
        units = tuple(map(translated, compiled.units))
        parsing, graph, kernels = compiled.took
        took = (parsing, graph, kernels + (time.perf_counter() - started) * 1e3)
        return replace(compiled, units=units, took=took)

    def _bridge(self, unit: Unit, compiled: CompiledProgram, awaited: Container[str]) -> BackendSlot | None:
        """The candidate that draws a unit until its device is ready; None if there is no need."""
        if not self.bridges or not _sweeps(unit, compiled):
            return None
        shape, frame = _shape(unit, compiled, compiled.size), 1 / compiled.settings["fps"]
        return self.assignment.bridge(unit, shape, frame, structure_hash(unit.kernel) in awaited)

    def bridge(self, unit: Unit, compiled: CompiledProgram) -> Choice | None:
        """The candidate that would draw a unit until the driver has made a program for it; None if none would."""
        found = replace(self, bridges=True)._bridge(unit, compiled, (structure_hash(unit.kernel),))
        return None if found is None else found.choice

    def translate_best(self, compiled: CompiledProgram) -> CompiledProgram:
        """The program with code of the second tier for each unit whose first candidate has that tier."""
        def translated(unit: Unit) -> Unit:
            codes = [_attempted(first.backend, unit, _BETTER)[0] for first in self.candidates(unit, compiled)[:1]]
            return replace(unit, code=codes[0] if codes else None)

        return replace(compiled, units=tuple(map(translated, compiled.units)))

    def tuned(self, compiled: CompiledProgram) -> dict[str, Unit]:
        """The units for which better code is still to be made that will also serve units that differ in constants only.
        They are found by the part that such units have in common."""
        return {
            structure_hash(unit.kernel): unit
            for unit in compiled.units
            for first in self.candidates(unit, compiled)[:1]
            if first.backend.code_serves_again(unit)
        }

    def improve(
        self, units: Iterable[Unit], stand_ins: frozenset[str] = frozenset()
    ) -> tuple[dict[str, object], dict[str, str]]:
        """Code for units, by their hashes: of the second tier if a backend has that, or of the first tier if a stand-in
        runs the unit. And the reasons why that failed for units, by their hashes."""
        codes: dict[str, object] = {}
        refused: dict[str, str] = {}
        for unit in units:
            for candidate in self.assignment.left(unit.subgraph.context):
                code, reason = _attempted(candidate.backend, unit, _BETTER)
                if code is None and unit.hash in stand_ins:
                    code, reason = _attempted(candidate.backend, unit, 1)
                if reason is not None:
                    refused[unit.hash] = reason
                if code is not None:
                    codes[unit.hash] = code
                    break
        return codes, refused

    def prepare(
        self, compiled: CompiledProgram, size: tuple[int, int], before: LoadedProgram | None = None,
        env: Env | None = None,
    ) -> LoadedProgram:
        """Loads everything that the previous program does not already have. Nothing that runs is changed. `env` is the
        environment in which kernels will probably run.

        Raises WeftError for what a device cannot run, and for a picture that cannot be read.
        """
        running = self._running(before, size)
        env = env or Env(*size)
        self._check_room(compiled, size, running, env)
        pictures = self._load_pictures(compiled)
        env = env._replace(pictures=pictures)
        runner = ProgramRunner(compiled.contexts)
        runner.size_of = compiled.size_of
        played = {unit.hash for unit in before.compiled.units} if before else set[str]()
        parts, elsewhere = list[RunningSubgraph](), list[Unit]()
        changed, redrawn, kept = list[str](), list[str](), list[str]()
        missing = self._unrunnable(compiled)
        for unit in compiled.units:
            name = unit.subgraph.name
            if name in missing:
                continue
            streams = compiled.contexts[unit.subgraph.context].streams
            if self.stream_getter is not None and streams:
                self.candidates(unit, compiled)  # reports here if it does not suit its backend there
                (kept if unit.hash in played else changed).append(name)
                for ref in unit.subgraph.exposes:
                    runner.expose_getter(ref, self.stream_getter(ref))
                runner.feeding += self._feeding(unit, env, runner)
                elsewhere.append(unit)
                continue
            old = running.get(name)
            # A sound that reads a changed sound is new too, so that it fades from one to the other, and so is a picture
            # that reads a changed picture.
            is_picture = _sweeps(unit, compiled)
            fades_with = changed if streams else redrawn if is_picture and unit.subgraph.sinks else ()
            reads_changed = not set(fades_with).isdisjoint(unit.subgraph.depends_on)
            if old is not None and old.unit.hash == unit.hash and not reads_changed:
                part = replace(old, unit=unit)
                kept.append(name)
            else:
                part = self._made(unit, compiled, runner.sized(unit, env), runner)
                changed.append(name)
                if is_picture:
                    redrawn.append(name)
            parts.append(part)
            for ref in unit.subgraph.exposes:
                runner.expose(ref, part.backend, part.compiled)
        for part, previous in _heirs(parts, before.runner.parts if before is not None else ()):
            # The state of a stream is always copied.
            shared = () if compiled.contexts[part.unit.subgraph.context].streams else previous
            try:
                part.backend.allocate(part.compiled, [other.compiled for other in shared])
            except DeviceLostError as failure:
                if not self.assignment.lose(part.backend, failure.reason):
                    raise
                return self.prepare(compiled, size, before, env)
        runner.parts = tuple(parts)
        runner.views = compiled.views if self.stream_getter is not None else ()
        live = self._open_live(pictures)
        if not self.rehearses:
            runner.film = lambda name, seconds: (live[name].exactly if self.offline else live[name].at)(seconds)
        return LoadedProgram(
            compiled, runner, pictures, size, tuple(changed), tuple(kept), tuple(missing.values()), tuple(elsewhere),
            live,
        )

    def _running(self, before: LoadedProgram | None, size: tuple[int, int]) -> dict[str, RunningSubgraph]:
        """The running parts that may be kept, by name. Parts that stream do not depend on the size."""
        if before is None:
            return {}
        return {
            part.unit.subgraph.name: part
            for part in before.runner.parts
            if self.assignment.runs(part.backend)
            and not part.bridges
            and (before.size == size or before.compiled.contexts[part.unit.subgraph.context].streams)
        }

    def _made(self, unit: Unit, compiled: CompiledProgram, env: Env, runner: ProgramRunner) -> RunningSubgraph:
        """A unit, loaded by the first backend that can. If none can, the error of the first is raised."""
        first: WeftError | None = None
        bridge = self.assignment.named(unit.subgraph.context, unit.code_of) if unit.bridges else None
        if bridge is not None:
            backend = self._acting(bridge.backend)
            with suppress(WeftError):
                return replace(self._at_first(unit, backend, compiled, env, runner), bridges=True)
        for candidate in self.candidates(unit, compiled):
            backend = self._acting(candidate.backend)
            try:
                return self._at_first(candidate.coded(unit), backend, compiled, env, runner)
            except DeviceLostError as failure:
                first = first or failure
                self.assignment.lose(backend, failure.reason)
            except MemoryError:
                raise
            except Exception as failure:
                reason = reason_of(failure)
                words = f"{unit.subgraph.name} cannot run on {candidate.choice.shown}: {reason}"
                known = failure if isinstance(failure, WeftError) else error("backend-failed", words)
                first = first or known
                self.assignment.pass_over(unit, candidate, reason)
        assert first is not None, "there is a candidate for every unit that can run"
        raise first

    def _at_first(
        self, unit: Unit, backend: Backend, program: CompiledProgram, env: Env, runner: ProgramRunner
    ) -> RunningSubgraph:
        """A unit of a program on a backend, with fewer pixels if necessary until it is fast there. Raises WeftError."""
        # A film waits for its driver, and a trial has none.
        make = backend.compile_subgraph if self.offline or self.rehearses else partial(made_ready, backend)
        made = RunningSubgraph(unit, backend, make(unit, env, runner))
        if not self.bridges or self.rehearses or backend.tier(made.compiled) != 1 or not _sweeps(unit, program):
            return made
        level = self.assignment.level(unit, _shape(unit, program, env.size), 1 / program.settings["fps"])
        if not level or not (unit.bridges or backend.has_second_tier(unit)):
            return made
        return replace(made, compiled=backend.compile_subgraph(unit, env._replace(level=level), runner), level=level)

    def placed(self, unit: Unit, compiled: CompiledProgram) -> tuple[Choice, str] | None:
        """The choice that runs a unit, and the reason; None if none can."""
        return self.assignment.placed(unit, _shape(unit, compiled, compiled.size))

    def needs(
        self, compiled: CompiledProgram, size: tuple[int, int], channels: int = 1
    ) -> dict[tuple[str, str], tuple[Need, ...]]:
        """The memory that the subgraphs of a program need, by the name of the device and that of the subgraph."""
        found: dict[tuple[str, str], tuple[Need, ...]] = {}
        for unit in compiled.units:
            placed = self.placed(unit, compiled)
            if placed is not None:
                device = placed[0].device
                differs = any(name == "channel" for name, _ in unit.kernel.coords)
                needs = needs_of(unit, _shape(unit, compiled, size), channels if differs else 1)
                where, on_cpu = HERE if device.unified else device.name, issubclass(placed[0].backend, CpuBackend)
                found[where, unit.subgraph.name] = (*needs, *pictures_of(unit.kernels, on_cpu))
        return found

    def room(self) -> dict[str, int]:
        """The free bytes of memory by the name of the device; 0 if unknown."""
        return self._room_on_devices() | {HERE: hardware.memory_free()}

    def _room_on_devices(self) -> dict[str, int]:
        return {choice.device.name: choice.device.memory_free for choice in self.assignment.choices.values()}

    def _check_room(
        self, compiled: CompiledProgram, size: tuple[int, int], running: Mapping[str, RunningSubgraph], env: Env
    ) -> None:
        """Raises WeftError if what is new needs more memory than is free."""
        kept = {part.unit.hash for part in running.values()}
        new = replace(compiled, units=tuple(unit for unit in compiled.units if unit.hash not in kept))
        needs = by_device(self.needs(new, size, env.block.channels if env.block else 1))
        is_small = total(needs.get(HERE, ())) <= _SMALL
        check_room(needs, self._room_on_devices() if is_small else self.room())

    def _feeding(self, unit: Unit, env: Env, runner: ProgramRunner) -> tuple[RunningSubgraph, ...]:
        """The part that computes the feeds of a unit that is played elsewhere, if it has any."""
        feeding, backend = unit.feeding, self.backend(COMPUTE.name)
        if feeding is None or backend is None:
            return ()
        backend = self._acting(backend)
        return (RunningSubgraph(feeding, backend, backend.compile_subgraph(feeding, env, runner)),)

    def copy_ahead(self, loaded: LoadedProgram, before: LoadedProgram) -> None:
        """Does the slow part of a copying `take_over` in advance, while the previous program runs."""
        for part, old in _heirs(loaded.runner.parts, before.runner.parts):
            part.backend.copy_ahead(part.compiled, [other.compiled for other in old if other.backend is part.backend])

    def take_over(self, loaded: LoadedProgram, before: LoadedProgram | None, copy: bool = False) -> list[str]:
        """Hands the memory of the previous program to the new one between two frames, or a `copy` if the previous one
        continues to run. Returns the keys of the state slots that continue."""
        return hand_over(loaded.runner.parts, before.runner.parts, copy) if before is not None else []

    def _unrunnable(self, compiled: CompiledProgram) -> dict[str, Diagnostic]:
        """The subgraphs that no backend runs, and those that read from them, each with a warning."""
        missing: dict[str, Diagnostic] = {}
        for unit in compiled.units:
            subgraph = unit.subgraph
            label = (subgraph.sinks or tuple(map(str, subgraph.tied)))[0].partition(".")[0]
            needed = next((n for n in subgraph.depends_on if n in missing), None)
            if subgraph.context not in self.choices or self.assignment.losses(subgraph.context):
                reason, hint = self._no_backend(subgraph.context)
            elif needed is not None:
                reason, hint = f"it reads {needed}, which nothing runs", None
            else:
                continue
            words = f"{label} is left out: {reason}"
            missing[subgraph.name] = Diagnostic.of("context-not-available", words, None, hint)
        return missing

    def _no_backend(self, context: str) -> tuple[str, str | None]:
        """The reason why nothing runs a context, and a remedy if there is one."""
        losses = self.assignment.losses(context)
        if losses:
            return f"nothing is left that runs {context}: {losses[-1]}", None
        device = self.missing.get(context)
        if device is None:
            return f"this version has no backend that runs {context}", None
        return device.reason or f"{device.name} is not available", device.remedy

    def _load_pictures(self, compiled: CompiledProgram) -> dict[str, Picture]:
        """The pictures that a program samples. Those that were read lately and have not changed are not read again."""
        loaded: dict[str, Picture] = {}
        for path in sorted({path for unit in compiled.units for path in unit.pictures if not is_view(path)}):
            file, decoded = file_of(path), self.decoded.get(path)
            stamp = decoded or (None if file is None else stat_media(Path(file)).stamp)
            if path not in self._pictures or self._pictures[path][0] != stamp:
                with reading(path):
                    self._pictures[path] = (stamp, read(path) if decoded is None else read_decoded(decoded))
            loaded[path] = self._pictures[path][1]
        others = {path: known for path, known in self._pictures.items() if path not in loaded}
        self._pictures = {**others, **{path: self._pictures[path] for path in loaded}}
        while others and sum(picture.nbytes for _, picture in self._pictures.values()) > _MOST_PICTURES:
            oldest = next(iter(others))
            del others[oldest], self._pictures[oldest]
        return loaded


    def _open_live(self, names: Iterable[str]) -> dict[str, LivePicture]:
        """The live pictures among these, opened if no program has them."""
        if self.rehearses:
            return {}
        opened: dict[str, LivePicture] = {}
        for name in filter(is_live, names):
            live = self._live.get(name)
            if live is None or not live.is_current():
                source, asked = opener(name)
                with reading(name):
                    live = source.open(asked.args, self.offline)
                self._live[name] = live
            opened[name] = live
        if self.listener is not None:
            opened |= {name: self.listener(heard_of(name)) for name in filter(is_heard, names)}
        return opened


class UnopenedError(WeftError):
    """A picture or sound cannot be opened; `name` is its name among pictures."""

    def __init__(self, problem: Diagnostic, name: str = "") -> None:
        super().__init__(problem)
        self.name = name

    def placed(self, places: Mapping[str, Span]) -> WeftError:
        """The error with its place in the text. `places` has the places of pictures and sounds, by name or path."""
        keys = self.name, origin_of(self.name) or self.name
        span = next((places[key] for key in keys if key in places), None)
        return WeftError(*(replace(each, span=each.span or span) for each in self.diagnostics))


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turns the error of a picture that cannot be read into UnopenedError."""
    try:
        yield
    except PictureError as failure:
        words = f"{shown(name)} cannot be read: {failure.reason}"
        camera = camera_named(name)
        code = "no-camera" if camera is not None and camera.watches else "unreadable-source"
        raise UnopenedError(Diagnostic.of(code, words, hint=failure.hint), name) from failure


def made_ready(backend: Backend, unit: Unit, env: Env, coordinator: Coordinator) -> Compiled:
    """`Backend.compile_subgraph`, which ends even if the driver of a device hangs: that raises DeviceLostError. The
    thread that waits for such a driver is left behind."""
    if isinstance(backend, CpuBackend):
        return backend.compile_subgraph(unit, env, coordinator)
    result = Future[Compiled]()

    def make() -> None:
        try:
            result.set_result(backend.compile_subgraph(unit, env, coordinator))
        except BaseException as failure:
            result.set_exception(failure)

    threading.Thread(target=make, name="weft-driver", daemon=True).start()
    if not wait([result], DRIVER_SECONDS).done:
        reason = f"its driver has not made a program ready in {DRIVER_SECONDS:g} seconds"
        raise DeviceLostError(backend.context or unit.subgraph.context, reason)
    return result.result()


def _attempted(backend: Backend, unit: Unit, tier: int) -> tuple[object, str | None]:
    """The code of a tier, or None; and the reason if the backend should have made some."""
    try:
        code = backend.translate(unit, tier)
    except MemoryError:
        raise
    except Exception as failure:
        return None, reason_of(failure)
    reason = backend.refusal(code)
    return (code if reason is None else None), reason


def hand_over(parts: Sequence[RunningSubgraph], before: Sequence[RunningSubgraph], copy: bool = False) -> list[str]:
    """Hands the memory of the parts `before` to others, or a `copy` if those continue to run. Returns the keys of the
    state slots that continue."""
    heirs = list(_heirs(parts, before))
    new = [part.compiled for part, _ in heirs]
    kept = (part for part in parts if all(part.compiled is not compiled for compiled in new))
    goes_on = [slot.key for part in kept for slot in part.unit.kernel.slots if slot.outlives]
    for part, old in heirs:
        goes_on += part.backend.adopt(part.compiled, memories_for(part, old, copy), copy)
    return goes_on


def _heirs(
    parts: Sequence[RunningSubgraph], before: Sequence[RunningSubgraph]
) -> Iterator[tuple[RunningSubgraph, list[RunningSubgraph]]]:
    """The parts of a program that do not run yet, each with the previous parts whose state it may continue. A part that
    was kept counts too: the program from which it was kept may have been replaced in the meantime."""
    for part in parts:
        if all(part.compiled is not running.compiled for running in before):
            yield part, [other for other in before if other.unit.subgraph.context == part.unit.subgraph.context]


def memories_for(part: RunningSubgraph, old: Iterable[RunningSubgraph], copy: bool = False) -> list[Compiled]:
    """The state of other parts, in a form that the backend of a part can adopt, or `copy`. State that cannot be read is
    left out."""
    found: list[Compiled] = []
    for other in old:
        # On the CPU, all backends of one kind keep their state in the same form.
        are_alike = isinstance(part.backend, CpuBackend) and type(part.backend) is type(other.backend)
        if other.backend is part.backend or are_alike:
            found.append(other.compiled)
            continue
        # From another device, only the memory can be read.
        backend, memory, its = other.backend, part.compiled.memory, other.compiled.memory
        try:
            read = backend.remembered(other.compiled) if copy else backend.remembered_into(other.compiled, memory)
        except WeftError:
            if not isinstance(its, CardState):
                continue
            read = its.numbers()
        found.append(NullCompiled(other.unit, read))
    return found


def _shape(unit: Unit, compiled: CompiledProgram, size: tuple[int, int]) -> tuple[int, int]:
    """The shape (height, width) that a tick of a unit sweeps, given the size (width, height) of the picture."""
    return compiled.size_of(unit, size)[::-1] if _sweeps(unit, compiled) else (1, 1)


def _sweeps(unit: Unit, compiled: CompiledProgram) -> bool:
    """Whether a tick of a unit sweeps a picture."""
    return compiled.contexts[unit.subgraph.context].sweeps_plane


# Seconds for which a program has to play well before the previous one is dropped.
_PROBATION = 10.0


# The number of patches whose state is kept while others play.
_MOST_SUSPENDED = 8


class SuspendedState:
    """The state of the last eight patches that were left for others, by their files."""

    def __init__(self) -> None:
        self._parts: RecentlyUsed[str, Sequence[RunningSubgraph]] = RecentlyUsed(_MOST_SUSPENDED)

    def suspend(self, file: str, parts: Sequence[RunningSubgraph]) -> None:
        """Keeps the parts of a patch that remember something, when the patch is left."""
        self._parts.keep(file, [part for part in parts if part.unit.kernel.slots])

    def resume(self, file: str, parts: Sequence[RunningSubgraph]) -> None:
        """Hands the state of a patch to its parts when it plays again. State that cannot be handed over starts from
        zero."""
        with suppress(Exception):
            hand_over(parts, self._parts.forget(file) or ())

    def forget(self, file: str) -> None:
        """Drops the state of a patch, which then plays with the state that it has."""
        self._parts.forget(file)


class Programs:
    """The program that plays, and for some seconds the previous one, to go back to. `now` gives seconds."""

    def __init__(self, loader: ProgramLoader, now: Callable[[], float] = time.monotonic) -> None:
        self.loader = loader
        self.running: LoadedProgram | None = None
        """The program that plays; None before the first one."""
        self._now = now
        self.before: LoadedProgram | None = None
        """The program to go back to, if there is one."""
        self._entered = 0.0
        self._has_drawn = False
        self._suspended = SuspendedState()

    def enter(self, loaded: LoadedProgram, fades: bool = False) -> None:
        """Makes this the program that plays, with the state of the previous program of its file. The one that plays now
        continues to run for a while if it `fades`. Raises any error of that."""
        file, running = loaded.compiled.file, self.running
        if running is not None and running.compiled.file == file:
            self.loader.take_over(loaded, running, copy=fades)
        else:
            if running is not None:
                self._suspended.suspend(running.compiled.file, running.runner.parts)
            self._suspended.resume(file, loaded.runner.parts)
        if self._has_drawn:
            # A program that has not drawn a frame is not worth going back to.
            self.before = self.running
        self.running, self._has_drawn, self._entered = loaded, False, self._now()

    def drew(self) -> None:
        """Notes that the program has drawn a frame."""
        self._has_drawn = True
        if self.before is not None and self._now() - self._entered > _PROBATION:
            self.before = None

    def withdraw(self) -> bool:
        """Goes back to the previous program; False if there is none, so that the failed one has to continue."""
        if self.before is None:
            return False
        failed, self.running, self.before = self.running, self.before, None
        self._has_drawn = True
        if failed is None or failed.compiled.file != self.running.compiled.file:
            self._suspended.forget(self.running.compiled.file)
            return True
        with suppress(Exception):  # state that cannot be handed back starts from zero
            self.loader.take_over(self.running, failed)
        return True


@dataclass(frozen=True)
class Setup:
    """How the texts of a performance are compiled and run, for all its processes.

    `name` is the file; `asked` is `--backend`, `environment` is `WEFT_BACKEND`; `settings` override those of the patch,
    and `sizes` are those of further pictures, by their targets. `permissions` say what texts may open. `bridges` says
    whether the CPU draws until a card is ready. `choices` are made from these, once for all processes.
    """

    name: str
    asked: str | None = None
    environment: str | None = None
    settings: Mapping[str, float] = field(default_factory=dict)
    choices: Mapping[str, Choice] | None = None
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    permissions: Permissions = DEFAULT_PERMISSIONS
    bridges: bool = False

    def decided(self) -> Setup:
        """The setup with its choices made, so that no other process looks for devices or decides differently. Raises
        WeftError for a backend that is not available."""
        if self.choices is not None:
            return self
        registry = load_registry()
        contexts = [spec.name for spec in registry.contexts]
        return replace(self, choices=choose(registry, contexts, self.asked, self.environment))

    def open(self) -> tuple[ContextTable, ProgramLoader]:
        """The contexts as their backends take them, and a loader for the process that calls this. Raises WeftError for
        a backend that is not available."""
        choices = self.decided().choices or {}
        registry = load_registry()
        loader = ProgramLoader(choices, missing=unavailable(registry, choices), bridges=self.bridges)
        return contexts_of(registry, choices), loader
