"""Registers for the values of steps: the same ones again for values that are not needed at the same time, so that those
of a tile stay in the cache."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from weft.backends.vector.steps import Extent, Kind, LoopSteps, Operand, Register, Step


def with_registers(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Steps in which each value has a register of its own, with as few registers as that allows."""
    spans = _Lifetimes()
    spans.look_at(steps, 0)
    file = _RegisterFile(spans)
    file.walk(steps, 0)
    return tuple([tuple(_replaced(step, file.places)) for step in steps])


def _registers(entries: Iterable[Operand]) -> Iterator[Register]:
    """The registers of a step, without those of the body of a loop."""
    for entry in entries:
        if type(entry) is Register:
            yield entry
        elif type(entry) is tuple:
            yield from _registers(entry)


def _replaced(entries: Iterable[Operand], places: dict[Register, Register]) -> Iterator[Operand]:
    for entry in entries:
        if type(entry) is Register:
            yield places[entry]
        elif type(entry) is tuple:
            yield tuple(_replaced(entry, places))
        elif type(entry) is LoopSteps:
            yield LoopSteps(tuple([tuple(_replaced(step, places)) for step in entry.steps]))
        else:
            yield entry


def _body(step: Step) -> Sequence[Step] | None:
    return step[-1].steps if type(step[-1]) is LoopSteps else None


class _Lifetimes:
    """The first and the last step that mentions each value, where steps are counted through all loops. A loop has a
    number at its begin and another one at its end; what it needs lasts until then, since each step begins again."""

    def __init__(self) -> None:
        self.first: dict[Register, int] = {}
        self.last: dict[Register, int] = {}

    def look_at(self, steps: Sequence[Step], at: int) -> int:
        """Gives the number after these steps."""
        for step in steps:
            for register in _registers(step):
                self.first.setdefault(register, at)
                self.last[register] = at
            if (body := _body(step)) is not None:
                end = self.look_at(body, at + 1)
                for register, last in self.last.items():
                    if last >= at and self.first[register] <= at:
                        self.last[register] = end
                at = end
            at += 1
        return at


class _RegisterFile:
    """Gives each value a register at its first step, which is free again after its last one."""

    def __init__(self, spans: _Lifetimes) -> None:
        self.places: dict[Register, Register] = {}
        self._spans = spans
        self._ending = defaultdict[int, list[Register]](list)
        for register, last in spans.last.items():
            self._ending[last].append(register)
        self._free = defaultdict[tuple[Kind, Extent], list[Register]](list)
        self._count = 0

    def walk(self, steps: Sequence[Step], at: int) -> int:
        """Gives the number after these steps."""
        for step in steps:
            # A ufunc may overwrite its operands.
            overwrites = isinstance(step[0], np.ufunc)
            if overwrites:
                self._end(each for each in self._ending[at] if self._spans.first[each] < at)
            for register in _registers(step):
                if register not in self.places:
                    self.places[register] = self._new(register.kind, register.extent)
            if (body := _body(step)) is not None:
                at = self.walk(body, at + 1)
            self._end(each for each in self._ending[at] if not overwrites or self._spans.first[each] == at)
            at += 1
        return at

    def _new(self, kind: Kind, extent: Extent) -> Register:
        free = self._free[kind, extent]
        if free:
            return free.pop()
        self._count += 1
        return Register(kind, extent, self._count)

    def _end(self, registers: Iterable[Register]) -> None:
        for register in registers:
            place = self.places[register]
            self._free[place.kind, place.extent].append(place)
