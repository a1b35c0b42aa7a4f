"""Memory that is not finite: noticed while a program plays, and begun again when a save has changed its formula.

What a program remembers may grow without end, or be no number for a moment. As each value is made of the one before, it
stays so for ever, even in a program that would not do it again. A watch looks at the latest values between two ticks,
a part of them at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from weft.codegen.formulas import formula
from weft.codegen.kernel import Unit
from weft.runtime.program.coordinator import RunningSubgraph

# Seconds between two looks, and bytes of images that each looks at: about half a millisecond. Another device is asked
# less often, since it has to be waited for.
_EVERY, _BYTES = 0.1, 4_000_000
_SELDOM = 5

# Seconds in which a look finds what a program has left: longer than it takes to look at large pictures.
_RECENT = 2.0

# Bytes of one value of an image.
_VALUE = 4


@dataclass(frozen=True)
class MemoryChange:
    """Slots, by their keys, that are `lost`: not finite since a time of the performance, as far as that was noticed; or
    that have begun again."""

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
    """The units of programs that have played lately, and when that ended."""
    _losses: dict[tuple[str, str], _Loss] = field(default_factory=dict)
    """What was found, by the file of the program and the key of the slot."""
    _due: float = 0.0
    _looks: int = 0
    _at: int = 0
    """The next of the images."""

    def follow(
        self, file: str, units: tuple[Unit, ...], parts: Sequence[RunningSubgraph], seconds: float, now: float
    ) -> Iterator[MemoryChange]:
        """Looks at a program between two ticks, at a time of the performance and a moment `now`, unless it has done so
        a moment ago. Gives what has become of its slots. Raises DeviceLostError."""
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
        """Begins everything again that is not finite, whatever its formula. Raises DeviceLostError."""
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
        """All numbers, and the next images by turns."""
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
        """Begins those of the lost slots again that are made of something else than before."""
        changed = set(filter(self._has_changed, set(lost)))
        if changed:
            # Older values of others may not be finite either.
            deep = {key for part, key in _slots(parts) if part.compiled.memory.slots[key].depth > 1}
            changed.update(filter(self._has_changed, deep - changed))
            yield from _begun(parts, changed)

    def _has_changed(self, key: str) -> bool:
        """Whether a slot is made of something else than when it was found lost, or else than some moments ago."""
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
    """Begins the values of slots again that are not finite; gives the keys of those in which some were."""
    for part in parts:
        yield from part.backend.begin_again(part.compiled, [key for each, key in _slots([part]) if key in keys])


def begin_again(parts: Sequence[RunningSubgraph]) -> list[str]:
    """Begins the values of parts again that are not finite; gives the keys of their slots."""
    return list(_begun(parts, {key for _, key in _slots(parts)}))


def lost_slots(parts: Sequence[RunningSubgraph]) -> list[str]:
    """The keys of the slots whose latest values are not finite."""
    return list(dict.fromkeys(key for part, key in _slots(parts) if not part.backend.is_finite(part.compiled, key)))


def begin_changed_again(parts: Sequence[RunningSubgraph], before: Sequence[RunningSubgraph]) -> None:
    """Begins the values of new parts again that are not finite, if their formulas are others than before."""
    lost = lost_slots(parts)
    if lost:
        units, olds = ([part.unit for part in each] for each in (parts, before))
        deque(_begun(parts, {key for key in lost if formula(units, key) != formula(olds, key)}), maxlen=0)
