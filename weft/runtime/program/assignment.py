"""Which backend runs what: those that may run each context, the one that runs each subgraph, and those that failed."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from weft.backends import hardware
from weft.backends.base import Backend
from weft.backends.select import Choice, bridging_level, starting_level, stays_on_cpu
from weft.codegen.kernel import Unit
from weft.errors import WeftError

# The most units for which the answer is kept whether they suit a backend.
_KNOWN = 1000


@dataclass(frozen=True)
class Change:
    """Something that runs on another backend than intended, and why: a `subgraph` that does not suit its backend, or a
    whole context whose device failed. `origin` and `target` name the backends; without a target, nothing is left that
    runs it."""

    context: str
    origin: str
    target: str | None
    reason: str
    subgraph: str | None = None

    def __str__(self) -> str:
        if self.subgraph is not None and self.target == self.origin:
            return f"{self.subgraph} keeps its present code: {self.reason}"
        if self.target is None:
            return f"{self.context} stops, since no backend is left: {self.reason}"
        if self.subgraph is None:
            return f"{self.context} continues with {self.target}: {self.reason}"
        return f"{self.subgraph} runs on {self.target}, not {self.origin}: {self.reason}"


class BackendSlot:
    """A backend that may run a context, made when it is first needed."""

    def __init__(self, choice: Choice, offline: bool = False) -> None:
        """`offline` says that it makes a film."""
        self.choice = choice
        self._offline = offline
        self.loss: str | None = None
        """Why it cannot be used any more; None while it can."""
        self.made: Backend | None = None
        """The backend, if it has been needed."""
        self._lock = threading.Lock()

    @property
    def backend(self) -> Backend:
        with self._lock:
            if self.made is None:
                self.made = self.choice.make()
                if self._offline:
                    self.made.set_offline()
            return self.made

    def translated(self, unit: Unit) -> Unit:
        """A unit with the code that this backend translates it to."""
        return replace(unit, code=self.backend.translate(unit), code_of=self.choice.name)

    def coded(self, unit: Unit) -> Unit:
        """A unit as this backend can load it: without code that another backend has translated, unless this is the CPU,
        which recognises its own code."""
        return unit if self.choice.is_cpu else unit.coded_for(self.choice.name)


class BackendAssignment:
    """The candidates of all contexts, in order of preference. A lost backend stays lost: what failed in front of an
    audience is not tried again. May be used from any thread."""

    def __init__(self, choices: Mapping[str, Choice], offline: bool = False) -> None:
        """`offline` says that programs are rendered."""
        self._candidates = {
            name: [BackendSlot(each, offline) for each in (c, *c.fallbacks)] for name, c in choices.items()
        }
        self._all = [candidate for found in self._candidates.values() for candidate in found]
        self._changes: deque[Change] = deque()
        self._reported: set[tuple[str, str]] = set()
        self._suits: dict[tuple[str, str], str | None] = {}

    @property
    def choices(self) -> dict[str, Choice]:
        """What runs each context now, followed by its remaining fallbacks."""
        left = {name: [candidate.choice for candidate in self.left(name)] for name in self._candidates}
        return {name: replace(found[0], fallbacks=tuple(found[1:])) for name, found in left.items() if found}

    def backend(self, context: str) -> Backend | None:
        """The backend that runs a context, None if nothing can."""
        return next((candidate.backend for candidate in self.left(context)), None)

    def losses(self, context: str) -> list[str]:
        """Why no device is left to run a context, device by device; empty if one is."""
        candidates = self._candidates.get(context, ())
        return [] if self.left(context) else [each.loss for each in candidates if each.loss is not None]

    def backends(self, context: str) -> list[Backend]:
        """The backends that may run a context now, in order of preference."""
        return [candidate.backend for candidate in self.left(context)]

    def candidates(self, unit: Unit, shape: tuple[int, int]) -> Iterator[BackendSlot]:
        """The candidates for a unit that sweeps a shape (height, width), in order of preference."""
        for candidate in self.left(unit.subgraph.context):
            if self._objection(unit, shape, candidate) is None:
                yield candidate
            elif (reason := self._unsuitable(unit, candidate)) is not None:
                self.pass_over(unit, candidate, reason)

    def bridge(
        self, unit: Unit, shape: tuple[int, int], frame: float, is_awaited: bool = False
    ) -> BackendSlot | None:
        """The candidate that runs a unit until its device has a program for it; None if the device is ready soon
        enough, or if none can. The unit sweeps a shape (height, width). `frame` is the time for a frame in seconds;
        `is_awaited` says that the driver is still making the program."""
        left = self.left(unit.subgraph.context)
        on_cpu = next((each for each in left if each.choice.is_cpu), None)
        if on_cpu is None or left[0] is on_cpu or (not is_awaited and left[0].backend.is_at_hand(unit)):
            return None
        choice, cores = left[0].choice, hardware.cores()
        if not choice.requested and stays_on_cpu(unit, shape, cores, choice.costs) is not None:
            return None
        return on_cpu if bridging_level(unit, shape, frame, cores, choice.costs) is not None else None

    def level(self, unit: Unit, shape: tuple[int, int], frame: float) -> int:
        """The level at which the CPU draws the picture of a unit at first. The unit sweeps a shape (height, width)."""
        choice, cores = self.left(unit.subgraph.context)[0].choice, hardware.cores()
        if unit.bridges:
            return bridging_level(unit, shape, frame, cores, choice.costs) or 0
        return starting_level(unit, shape, frame, cores, choice.costs)

    def named(self, context: str, name: str) -> BackendSlot | None:
        """The candidate of this name, as in `--backend`, unless it is lost."""
        return next((each for each in self.left(context) if each.choice.name == name), None)

    def placed(self, unit: Unit, shape: tuple[int, int]) -> tuple[Choice, str] | None:
        """The choice that runs a unit, and the reason; None if none can."""
        reason: str | None = None
        for candidate in self.left(unit.subgraph.context):
            found = self._objection(unit, shape, candidate)
            if found is None:
                return candidate.choice, reason or candidate.choice.reason
            reason = reason or found
        return None

    def _objection(self, unit: Unit, shape: tuple[int, int], candidate: BackendSlot) -> str | None:
        """The reason why a candidate should not run a unit; None if it may. The last candidate always may, since it
        reports itself what it cannot run."""
        if candidate.choice.is_cpu or self._next_after(candidate) is None:
            return None
        if unit.bridges or (unit.code is not None and unit.code_of == candidate.choice.name):
            return None  # translating it will show that: writing a program takes long
        found = self._unsuitable(unit, candidate)
        if found is None and not candidate.choice.requested:
            found = stays_on_cpu(unit, shape, hardware.cores(), candidate.choice.costs)
        return found

    def _unsuitable(self, unit: Unit, candidate: BackendSlot) -> str | None:
        """See `Backend.unsuitable`; determined once for each unit."""
        if candidate.choice.is_cpu:
            return None
        key = (candidate.choice.name, unit.hash)
        if key not in self._suits:
            if len(self._suits) >= _KNOWN:
                self._suits.clear()
            try:
                self._suits[key] = candidate.backend.unsuitable(unit)
            except Exception as failure:
                self._suits[key] = reason_of(failure)
        return self._suits[key]

    def pass_over(self, unit: Unit, candidate: BackendSlot, reason: str) -> None:
        """Notes that a candidate does not run a unit, so that the next one does. This is reported once."""
        following = self._next_after(candidate)
        if following is not None:
            shown = candidate.choice.shown, following.choice.shown
            self._report(unit.subgraph.context, *shown, reason, unit.subgraph.name)

    def stays(self, unit: Unit, reason: str) -> None:
        """Notes that no better code could be made of a unit."""
        name = next((candidate.choice.shown for candidate in self.left(unit.subgraph.context)), "")
        self._report(unit.subgraph.context, name, name, reason, unit.subgraph.name)

    def _report(self, context: str, origin: str, target: str, reason: str, subgraph: str) -> None:
        """Adds a change of a subgraph to `changes`, once."""
        if (subgraph, reason) not in self._reported:
            self._reported.add((subgraph, reason))
            self._changes.append(Change(context, origin, target, reason, subgraph))

    def candidate_of(self, backend: Backend) -> BackendSlot | None:
        """The candidate of a backend; None if it belongs to another assignment."""
        return next((candidate for candidate in self._all if candidate.made is backend), None)

    def runs(self, backend: Backend) -> bool:
        """Whether a backend is one of these, and not lost."""
        candidate = self.candidate_of(backend)
        return candidate is not None and candidate.loss is None

    def is_lost(self, backend: Backend) -> bool:
        """Whether a backend cannot be used any more."""
        candidate = self.candidate_of(backend)
        return candidate is not None and candidate.loss is not None

    @property
    def has_lost(self) -> bool:
        """Whether anything is lost."""
        return any(candidate.loss is not None for candidate in self._all)

    def lose(self, backend: Backend, reason: str) -> bool:
        """Marks a backend as lost; False if none can take its place. The CPU is never lost."""
        candidate = self.candidate_of(backend)
        return candidate is not None and self._lose(candidate, reason)

    def lose_named(self, context: str, shown: str, reason: str) -> None:
        """Marks the backend of this name, as in `--backend`, as lost, because another process reports its failure."""
        for candidate in self.left(context):
            if candidate.choice.shown == shown:
                self._lose(candidate, reason)

    def _lose(self, candidate: BackendSlot, reason: str) -> bool:
        choice = candidate.choice
        if candidate.loss is None:
            following = self._next_after(candidate)
            if following is None and choice.is_cpu:
                return False
            candidate.loss = reason
            target = following.choice.shown if following is not None else None
            self._changes.append(Change(choice.context, choice.shown, target, reason))
        return bool(self.left(choice.context))

    def changes(self) -> list[Change]:
        """The changes since the last call, oldest first."""
        for candidate in self._all:
            for refusal in candidate.made.refusals() if candidate.made is not None else ():
                self._report(candidate.choice.context, refusal.origin, refusal.target, refusal.reason, refusal.kernel)
        found: list[Change] = []
        with suppress(IndexError):
            while True:
                found.append(self._changes.popleft())
        return found

    def left(self, context: str) -> list[BackendSlot]:
        """The candidates of a context that are not lost, in order of preference."""
        return [candidate for candidate in self._candidates.get(context, ()) if candidate.loss is None]

    def _next_after(self, candidate: BackendSlot) -> BackendSlot | None:
        left = self.left(candidate.choice.context)
        return next(iter(left[left.index(candidate) + 1 :]), None)


def reason_of(failure: Exception) -> str:
    """Why a backend does not run a subgraph that it failed to make ready."""
    if isinstance(failure, WeftError):
        return failure.diagnostics[0].message
    return f"it could not be loaded there ({type(failure).__name__}: {failure}), which is a bug in that backend"
