"""Writes programs of the vector machine: their calls, and which registers these use."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from weft.backends.vector_program import (
    ArrayValue, ConstantArray, Extent, Kind, LoopSteps, Operand, OperandGroup, Register, Step, VectorProgram
)
from weft.ops.spec import ValueType

_ZERO = ConstantArray(0.0)


class Emitter:
    """A program while it is written. A register is free again when nobody holds it any more: each value counts as one
    holder for each time that it was made or taken."""

    def __init__(self) -> None:
        self._blocks: list[list[Step]] = [[]]
        self._table: list[Operand] = []
        self._noted: list[Operand] = []
        """What `_places` knows: while an object lives, nothing else has its id."""
        self._places: dict[int, int] = {}
        """Where each object that was noted stands in the table, by its id: what is equal need not be the same, as 0 and
        -0, or the planes of a slot and of a picture."""
        self._holders: dict[Register, int] = {}
        self._free: defaultdict[tuple[Kind, Extent], list[Register]] = defaultdict(list)
        self._allocated: dict[tuple[Kind, Extent], int] = {}

    def program(self) -> VectorProgram:
        """What has been emitted so far."""
        return VectorProgram(tuple(self._blocks[0]), tuple(self._table), self._allocated)

    def emit(self, *call: Operand) -> None:
        """Appends a call: of a function, with operands."""
        self._blocks[-1].append(self._step(call))

    def _step(self, entries: tuple[Operand, ...]) -> Step:
        """Where these stand in the table; adds what is missing."""
        places = self._places
        return tuple([places[id(entry)] if id(entry) in places else self._add(entry) for entry in entries])

    def _add(self, entry: Operand) -> int:
        self._noted.append(entry)
        self._table.append(OperandGroup(self._step(entry)) if type(entry) is tuple else entry)
        place = self._places[id(entry)] = len(self._table) - 1
        return place

    def allocate(self, kind: Kind, extent: Extent) -> Register:
        """A register that nobody holds."""
        free = self._free[kind, extent]
        if free:
            return free.pop()
        number = self._allocated.get((kind, extent), 0)
        self._allocated[kind, extent] = number + 1
        return Register(kind, extent, number)

    def free(self, *registers: Register) -> None:
        """Gives back registers that nobody holds."""
        for register in registers:
            self._free[register.kind, register.extent].append(register)

    def release(self, *values: ArrayValue) -> None:
        """Lets go of values: their registers are free when nobody else holds them."""
        for value in values:
            if type(value) is Register:
                left = self._holders.pop(value) - 1
                if left:
                    self._holders[value] = left
                else:
                    self._free[value.kind, value.extent].append(value)

    def as_type(self, value: ArrayValue, wanted: ValueType) -> ArrayValue:
        """The value as another type; the one given is let go of."""
        if value.kind == wanted:
            return value
        self.release(value)
        out = self.allocate(wanted, value.extent)
        if wanted == "real":
            self.emit(np.copyto, out, value)
        else:
            self.emit(np.not_equal, value, _ZERO, out)
        return self.held(out)

    def held(self, register: Register) -> Register:
        """The register, which somebody now holds."""
        self._holders[register] = self._holders.get(register, 0) + 1
        return register

    def hold(self, value: ArrayValue) -> None:
        """Somebody else holds the value too."""
        if type(value) is Register:
            self._holders[value] += 1

    def open_block(self) -> None:
        """Begins the body of a loop: calls are appended to it from now on."""
        self._blocks.append([])

    def close_block(self) -> LoopSteps:
        """Ends a body; gives it as an operand."""
        return LoopSteps(tuple(self._blocks.pop()))
