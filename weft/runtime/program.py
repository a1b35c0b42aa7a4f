"""Making a program run: a backend for every context, kernels loaded aside, and what goes on from the program before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from weft.backends.base import Backend, Compiled, DeviceInfo, Env
from weft.backends.launch import Getter, Picture
from weft.backends.select import Choice
from weft.codegen.unit import Unit
from weft.contexts import COMPUTE
from weft.errors import Diagnostic, error
from weft.media.pictures import PictureError, load_picture
from weft.names import StrandRef, is_view
from weft.runtime.build import Playable
from weft.runtime.coordinator import Part, ProgramRunner
from weft.runtime.files import stat_media

# The tier that is made when there is time for it.
_BETTER = 2

# Bytes of pictures that are kept for a text that names them again.
_MOST_PICTURES = 256_000_000


@dataclass(frozen=True)
class Swap:
    """A program that is ready to take over: everything that takes time has been done. `changed` and `kept` name its
    subgraphs, by whether the program before has the like; `left_out` are warnings about contexts that nothing can
    run."""

    playable: Playable
    runner: ProgramRunner
    pictures: Mapping[str, Picture]
    size: tuple[int, int]
    changed: tuple[str, ...]
    kept: tuple[str, ...]
    left_out: tuple[Diagnostic, ...] = ()
    elsewhere: tuple[Unit, ...] = ()
    """What streams, and is played elsewhere."""

    @property
    def tier(self) -> int:
        """The lowest tier among its subgraphs that run here, as far as they have any."""
        return self.tier_with({})

    def tier_with(self, codes: Mapping[str, object]) -> int:
        """The same, where subgraphs that are played elsewhere have taken better code, by the hashes of the units, into
        use."""
        here = (part.backend.tier(part.compiled) for part in self.runner.parts)
        tiers = [tier for tier in here if tier is not None]
        return min(tiers, default=_BETTER if any(unit.hash in codes for unit in self.elsewhere) else 1)

    @property
    def improvable(self) -> tuple[Unit, ...]:
        """What still runs at the first tier, or may do so elsewhere, without its code."""
        here = (part.unit for part in self.runner.parts if part.backend.tier(part.compiled) == 1)
        return tuple(replace(unit, code=None) for unit in (*here, *self.elsewhere))

    def exchange(self, codes: Mapping[str, object]) -> None:
        """Takes better code into use, given by the hashes of the units. May be called from any thread."""
        for part in self.runner.parts:
            if part.unit.hash in codes:
                part.backend.exchange(part.compiled, codes[part.unit.hash])


@dataclass
class Stage:
    """Where programs are made ready: one backend for each context, for as long as a session lasts.

    Contexts that stream are played elsewhere, if there is somebody who `hears` their strands: then these alone are
    known here.
    """

    choices: Mapping[str, Choice]
    hears: Callable[[StrandRef], Getter] | None = None
    missing: Mapping[str, DeviceInfo] = field(default_factory=dict)
    """The contexts of which no device is available, with one that says why."""
    _backends: dict[str, Backend] = field(default_factory=dict)
    _pictures: dict[str, tuple[object, Picture]] = field(default_factory=dict)

    def backend(self, context: str) -> Backend | None:
        """The backend that runs a context, None if nothing can."""
        if context not in self._backends:
            choice = self.choices.get(context)
            if choice is None:
                return None
            self._backends[context] = choice.make()
        return self._backends[context]

    def translate(self, playable: Playable) -> Playable:
        """Has the backends do all that can be done in another process than theirs."""
        started = time.perf_counter()
        units = []
        for unit in playable.units:
            backend = self.backend(unit.subgraph.context)
            units.append(replace(unit, code=backend.translate(unit)) if backend is not None else unit)
        parsing, graph, kernels = playable.took
        took = (parsing, graph, kernels + (time.perf_counter() - started) * 1e3)
        return replace(playable, units=tuple(units), took=took)

    def improve(self, units: Iterable[Unit]) -> dict[str, object]:
        """Code of the second tier for units, by their hashes, as far as their backends have such."""
        codes = {}
        for unit in units:
            backend = self.backend(unit.subgraph.context)
            code = backend.translate(unit, tier=_BETTER) if backend is not None else None
            if code is not None:
                codes[unit.hash] = code
        return codes

    def prepare(
        self, playable: Playable, size: tuple[int, int], before: Swap | None = None, env: Env | None = None
    ) -> Swap:
        """Loads what the program before does not have already. Changes nothing that runs. `env` is what kernels will
        run with, as far as it is known.

        Raises WeftError for what a device cannot take, or a picture that cannot be read.
        """
        pictures = self._load_pictures(playable)
        env = replace(env or Env(*size), pictures=pictures)
        runner = ProgramRunner(playable.contexts)
        running = self._running(before, size)
        played = {unit.hash for unit in before.playable.units} if before else set[str]()
        parts: list[Part] = []
        elsewhere: list[Unit] = []
        changed: list[str] = []
        kept: list[str] = []
        missing = self._unrunnable(playable)
        for unit in playable.units:
            name = unit.subgraph.name
            backend = self.backend(unit.subgraph.context)
            if backend is None or name in missing:
                continue
            if self.hears is not None and self._streams(unit, playable):
                (kept if unit.hash in played else changed).append(name)
                self._listen(unit, runner, env)
                elsewhere.append(unit)
                continue
            old = running.get(name)
            # What hears another sound is another sound, or it would change from the one to the other at once.
            hears_anew = self._streams(unit, playable) and not set(changed).isdisjoint(unit.subgraph.depends_on)
            if old is not None and old.unit.hash == unit.hash and not hears_anew:
                part = Part(unit, backend, old.compiled)
                kept.append(name)
            else:
                part = Part(unit, backend, backend.compile_subgraph(unit, env, runner))
                changed.append(name)
            parts.append(part)
            for ref in unit.subgraph.exposes:
                runner.expose(ref, backend, part.compiled)
        runner.parts = tuple(parts)
        runner.views = playable.views if self.hears is not None else ()
        return Swap(
            playable, runner, pictures, size, tuple(changed), tuple(kept), tuple(missing.values()), tuple(elsewhere)
        )

    def _running(self, before: Swap | None, size: tuple[int, int]) -> dict[str, Part]:
        """The parts that run and may be kept, by name. What streams has no size."""
        if before is None:
            return {}
        return {
            part.unit.subgraph.name: part
            for part in before.runner.parts
            if before.size == size or self._streams(part.unit, before.playable)
        }

    def _streams(self, unit: Unit, playable: Playable) -> bool:
        return playable.contexts[unit.subgraph.context].streams

    def _listen(self, unit: Unit, runner: ProgramRunner, env: Env) -> None:
        """Connects a subgraph that is played elsewhere: what it is given is computed here, and what it exposes is
        heard here."""
        assert self.hears is not None
        for ref in unit.subgraph.exposes:
            runner.hear(ref, self.hears(ref))
        feeding, backend = unit.feeding, self.backend(COMPUTE.name)
        if feeding is not None and backend is not None:
            runner.feeding += (Part(feeding, backend, backend.compile_subgraph(feeding, env, runner)),)

    def copy_ahead(self, swap: Swap, before: Swap) -> None:
        """Does beforehand what takes time of a `take_over` that copies, while the program before runs."""
        for part, old in _heirs(swap, before):
            part.backend.copy_ahead(part.compiled, old)

    def take_over(self, swap: Swap, before: Swap | None, copy: bool = False) -> list[str]:
        """Hands the memory of the program before to the new one, or a `copy` if that runs on, at the boundary between
        two frames; gives the keys of the state slots that go on."""
        if before is None:
            return []
        heirs = list(_heirs(swap, before))
        new = [part.compiled for part, _ in heirs]
        kept = (part for part in swap.runner.parts if all(part.compiled is not compiled for compiled in new))
        goes_on = [slot.key for part in kept for slot in part.unit.kernel.slots]
        for part, old in heirs:
            goes_on += part.backend.adopt(part.compiled, old, copy)
        return goes_on

    def _unrunnable(self, playable: Playable) -> dict[str, Diagnostic]:
        """The subgraphs that no backend runs, and those that read from them, each with a warning that says so."""
        missing: dict[str, Diagnostic] = {}
        for unit in playable.units:
            subgraph = unit.subgraph
            label = (subgraph.sinks or tuple(map(str, subgraph.tied)))[0].partition(".")[0]
            needed = next((n for n in subgraph.depends_on if n in missing), None)
            if self.backend(subgraph.context) is None:
                words, hint = self._no_backend(subgraph.context)
                words = f"{label} is left out: {words}"
            elif needed is not None:
                words, hint = f"{label} is left out: it reads {needed}, which nothing runs", None
            else:
                continue
            missing[subgraph.name] = Diagnostic("warning", "context-not-available", words, None, hint)
        return missing

    def _no_backend(self, context: str) -> tuple[str, str | None]:
        """Why nothing runs a context, and what helps."""
        device = self.missing.get(context)
        if device is None:
            return f"this version has no backend that runs {context}", None
        return device.reason or f"{device.name} is not available", device.remedy

    def _load_pictures(self, playable: Playable) -> dict[str, Picture]:
        """The pictures that a program samples. Those that were read lately and have not changed on disk are not read
        again."""
        loaded: dict[str, Picture] = {}
        for path in sorted({path for unit in playable.units for path in unit.kernel.pictures if not is_view(path)}):
            stamp = _stamp(path)
            if path not in self._pictures or self._pictures[path][0] != stamp:
                try:
                    self._pictures[path] = (stamp, load_picture(Path(path)))
                except PictureError as failure:
                    words = f"{path} cannot be read: {failure.reason}"
                    raise error("unreadable-source", words, hint=failure.hint) from failure
            loaded[path] = self._pictures[path][1]
        others = {path: known for path, known in self._pictures.items() if path not in loaded}
        self._pictures = {**others, **{path: self._pictures[path] for path in loaded}}
        while others and sum(picture.nbytes for _, picture in self._pictures.values()) > _MOST_PICTURES:
            oldest = next(iter(others))
            del others[oldest], self._pictures[oldest]
        return loaded


def _heirs(swap: Swap, before: Swap) -> Iterator[tuple[Part, list[Compiled]]]:
    """The parts of a program that do not run yet, with those of the one before that they may go on from. Also one that
    was kept: the program it was kept from may have been replaced in the meantime."""
    old = [part.compiled for part in before.runner.parts]
    for part in swap.runner.parts:
        if all(part.compiled is not running for running in old):
            yield part, [c for c in old if c.unit.subgraph.context == part.unit.subgraph.context]


def _stamp(path: str) -> object:
    return stat_media(Path(path)).stamp
