"""Writes programs of the vector machine: their calls, and which registers these use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from weft.backends.vector_program import (
    Body,
    Extent,
    Group,
    Kind,
    Number,
    Operand,
    Program,
    Register,
    Step,
)
from weft.ops.spec import ValueType

_ZERO = Number(0.0)


class Value(NamedTuple):
    """A value on the stack or in a local: where it is, and what it is like."""

    operand: Operand
    type: ValueType
    extent: Extent


class Emitter:
    """A program while it is written. A register is free again when nobody holds it any more: each value counts as one
    holder for each time that it was made or taken."""

    def __init__(self) -> None:
        self._blocks: list[list[Step]] = [[]]
        self._table: list[Operand] = []
        self._places: dict[tuple[type, Any], int] = {}
        """Where each entry stands in the table. With its type: a picture's plane may equal a slot's, and 1 is True."""
        self._holders: dict[Register, int] = {}
        self._free: dict[tuple[Kind, Extent], list[Register]] = {}
        self._allocated: dict[tuple[Kind, Extent], int] = {}

    def program(self) -> Program:
        """What has been emitted so far."""
        return Program(tuple(self._blocks[0]), tuple(self._table), self._allocated)

    def emit(self, function: Callable[..., object], *operands: Operand) -> None:
        """Appends a call."""
        self._blocks[-1].append(self._note((function, *operands)))

    def _note(self, entries: tuple[Operand, ...]) -> tuple[int, ...]:
        """Where these stand in the table; adds what is missing."""
        found = []
        for entry in entries:
            key = (type(entry), entry)
            place = self._places.get(key)
            if place is None:
                noted = Group(self._note(entry)) if type(entry) is tuple else entry
                place = self._places[key] = len(self._table)
                self._table.append(noted)
            found.append(place)
        return tuple(found)

    def allocate(self, kind: Kind, extent: Extent) -> Register:
        """A register that nobody holds."""
        sort = kind, extent
        free = self._free.get(sort)
        if free:
            return free.pop()
        number = self._allocated.get(sort, 0)
        self._allocated[sort] = number + 1
        return Register(kind, extent, number)

    def free(self, *registers: Register) -> None:
        """Gives back registers that nobody holds."""
        for register in registers:
            self._free.setdefault((register.kind, register.extent), []).append(register)

    def release(self, *values: Value) -> None:
        """Lets go of values: their registers are free when nobody else holds them."""
        for operand, _, _ in values:
            if type(operand) is Register:
                left = self._holders[operand] = self._holders[operand] - 1
                if not left:
                    self.free(operand)

    def as_type(self, value: Value, wanted: ValueType) -> Value:
        """The value as another type; the one given is let go of."""
        if value.type == wanted:
            return value
        self.release(value)
        out = self.allocate(wanted, value.extent)
        if wanted == "real":
            self.emit(np.copyto, out, value.operand)
        else:
            self.emit(np.not_equal, value.operand, _ZERO, out)
        return self.held(out, wanted)

    def held(self, register: Register, kind: ValueType) -> Value:
        """The value in a register, which somebody now holds."""
        self._holders[register] = self._holders.get(register, 0) + 1
        return Value(register, kind, register.extent)

    def hold(self, value: Value) -> None:
        """Somebody else holds the value too."""
        operand = value.operand
        if type(operand) is Register:
            self._holders[operand] += 1

    def open_block(self) -> None:
        """Begins the body of a loop: calls are appended to it from now on."""
        self._blocks.append([])

    def close_block(self) -> Body:
        """Ends a body; gives it as an operand."""
        return Body(tuple(self._blocks.pop()))
