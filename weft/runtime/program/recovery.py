"""Memory that is not finite: it is noticed while a program plays, and begins again when a save has changed its formula.

The memory of a program may grow without end, or be no number for a moment. Each value is computed from the one before,
so it stays like that forever, even in a program that would not cause it again. A watch looks at the latest values
between two ticks, at a part of them at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from weft.codegen.formulas import formula
from weft.codegen.kernel import Unit
from weft.runtime.program.coordinator import RunningSubgraph

# The seconds between two looks, and the bytes of images that each looks at, which takes about half a millisecond. Other
# devices are asked less often, since that needs a wait.
_EVERY, _BYTES = 0.1, 4_000_000
_SELDOM = 5

# For this many seconds, memory that is not finite may be due to a program that has ended: longer than a full look at
# large pictures takes.
_RECENT = 2.0

# Bytes of one value of an image.
_VALUE = 4


@dataclass(frozen=True)
class MemoryChange:
    """Slots, by their keys, that are `lost`, which means that they have not been finite since a time of the
    performance; or that have begun again."""

    keys: tuple[str, ...]
    lost: bool
    since: float


@dataclass(frozen=True)
class _Loss:
    since: float
    formula: str


@dataclass
class MemoryWatch:
    """Looks at the memory of programs that follow one another."""

    _file: str = ""
    _units: tuple[Unit, ...] = ()
    _left: deque[tuple[float, tuple[Unit, ...]]] = field(default_factory=deque)
    """The units of programs that have played lately, and when each ended."""
    _losses: dict[tuple[str, str], _Loss] = field(default_factory=dict)
    """The lost slots, by the file of the program and the key of the slot."""
    _due: float = 0.0
    _looks: int = 0
    _at: int = 0
    """The number of the next image to look at."""

    def follow(
        self, file: str, units: tuple[Unit, ...], parts: Sequence[RunningSubgraph], seconds: float, now: float
    ) -> Iterator[MemoryChange]:
        """Looks at a program between two ticks, at a time of the performance and a moment `now`, unless it has just
        done so. Returns what has changed in its slots. Raises DeviceLostError."""
        self._enter(file, units, now)
        if now < self._due:
            return
        self._due = now + _EVERY
        if all(part.backend.is_finite(part.compiled, key) for part, key in self._some(parts)):
            return
        lost = lost_slots(parts)
        begun = list(self._begin_again(parts, lost))
        if begun:
            since = min(self._losses.pop((file, key), _Loss(seconds, "")).since for key in begun)
            yield MemoryChange(tuple(begun), False, since)
        new = [key for key in lost if key not in begun and (file, key) not in self._losses]
        if new:
            self._losses.update({(file, key): _Loss(seconds, formula(units, key)) for key in new})
            yield MemoryChange(tuple(new), True, seconds)

    def restart(self, parts: Sequence[RunningSubgraph]) -> tuple[str, ...]:
        """Begins all memory again that is not finite, even if its formula is the same. Raises DeviceLostError."""
        found = begin_again(parts)
        for key in found:
            self._losses.pop((self._file, key), None)
        return tuple(found)

    def _enter(self, file: str, units: tuple[Unit, ...], now: float) -> None:
        while self._left and self._left[0][0] < now - _RECENT:
            self._left.popleft()
        if file != self._file:
            self._left.clear()
        elif units is not self._units:
            self._left.append((now, self._units))
        self._file, self._units = file, units

    def _some(self, parts: Sequence[RunningSubgraph]) -> Iterator[tuple[RunningSubgraph, str]]:
        """All slots that are numbers, and some of the images in turn."""
        self._looks += 1
        images: list[tuple[RunningSubgraph, str]] = []
        for part, key in _slots(parts):
            if part.compiled.memory.slots[key].image:
                images.append((part, key))
            else:
                yield part, key
        left = _BYTES
        for _ in images:
            self._at = (self._at + 1) % len(images)
            part, key = images[self._at]
            if part.backend.capabilities().handles and self._looks % _SELDOM:
                continue
            memory = part.compiled.memory
            left -= _VALUE * memory.slots[key].planes * memory.shape[0] * memory.shape[1]
            yield part, key
            if left <= 0:
                break

    def _begin_again(self, parts: Sequence[RunningSubgraph], lost: Iterable[str]) -> Iterator[str]:
        """Begins those lost slots again whose formula has changed."""
        changed = set(filter(self._has_changed, set(lost)))
        if changed:
            # Older values of other slots may not be finite either.
            deep = {key for part, key in _slots(parts) if part.compiled.memory.slots[key].depth > 1}
            changed.update(filter(self._has_changed, deep - changed))
            yield from _begun(parts, changed)

    def _has_changed(self, key: str) -> bool:
        """Whether the formula of a slot has changed: since the slot was found lost, or else within the last moments."""
        now, loss = formula(self._units, key), self._losses.get((self._file, key))
        if loss is not None:
            return loss.formula != now
        return any(formula(units, key) not in ("", now) for _, units in self._left)


def _slots(parts: Iterable[RunningSubgraph]) -> Iterator[tuple[RunningSubgraph, str]]:
    """The slots that outlive a tick, each with the part that owns it."""
    for part in parts:
        memory = part.compiled.memory
        yield from ((part, key) for key, slot in memory.slots.items() if slot.outlives and key not in memory.borrowed)


def _begun(parts: Sequence[RunningSubgraph], keys: set[str]) -> Iterator[str]:
    """Begins the values of slots again that are not finite. Returns the keys of the slots with such values."""
    for part in parts:
        yield from part.backend.begin_again(part.compiled, [key for each, key in _slots([part]) if key in keys])


def begin_again(parts: Sequence[RunningSubgraph]) -> list[str]:
    """Begins the values of parts again that are not finite. Returns the keys of their slots."""
    return list(_begun(parts, {key for _, key in _slots(parts)}))


def lost_slots(parts: Sequence[RunningSubgraph]) -> list[str]:
    """The keys of the slots whose latest values are not finite."""
    return list(dict.fromkeys(key for part, key in _slots(parts) if not part.backend.is_finite(part.compiled, key)))


def begin_changed_again(parts: Sequence[RunningSubgraph], before: Sequence[RunningSubgraph]) -> None:
    """Begins the values of new parts again that are not finite, if their formulas have changed."""
    lost = lost_slots(parts)
    if lost:
        units, olds = ([part.unit for part in each] for each in (parts, before))
        deque(_begun(parts, {key for key in lost if formula(units, key) != formula(olds, key)}), maxlen=0)
