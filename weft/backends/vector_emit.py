"""Writes programs of the vector machine: their calls, and which registers these use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weft.backends.vector_program import (
    Body,
    Extent,
    Kind,
    Line,
    Number,
    Operand,
    Program,
    Register,
    Scalar,
    Step,
)
from weft.ops.spec import ValueType


@dataclass(frozen=True, slots=True)
class Value:
    """A value on the stack or in a local: where it is, and what it is like."""

    operand: Operand
    type: ValueType
    extent: Extent


class Emitter:
    """A program while it is written. A register is free again when nobody holds it any more: each value counts as one
    holder for each time that it was made or taken."""

    def __init__(self) -> None:
        self._blocks: list[list[Step]] = [[]]
        self._holders: Counter[Register] = Counter()
        self._free: dict[tuple[Kind, Extent], list[Register]] = {}
        self._allocated: Counter[tuple[Kind, Extent]] = Counter()
        self._scalars: set[Scalar] = set()
        self._lines: set[Line] = set()

    def program(self) -> Program:
        """What has been emitted so far."""
        return Program(tuple(self._blocks[0]), dict(self._allocated), tuple(self._scalars), tuple(self._lines))

    def emit(self, function: Callable[..., object], *operands: Operand) -> None:
        """Appends a call."""
        self._note(operands)
        self._blocks[-1].append(Step(function, operands))

    def _note(self, operands: tuple[Operand, ...]) -> None:
        for operand in operands:
            if isinstance(operand, Scalar):
                self._scalars.add(operand)
            elif isinstance(operand, Line):
                self._lines.add(operand)
            elif type(operand) is tuple:
                self._note(operand)

    def allocate(self, kind: Kind, extent: Extent) -> Register:
        """A register that nobody holds."""
        free = self._free.setdefault((kind, extent), [])
        if free:
            return free.pop()
        self._allocated[kind, extent] += 1
        return Register(kind, extent, self._allocated[kind, extent] - 1)

    def free(self, *registers: Register) -> None:
        """Gives back registers that nobody holds."""
        for register in registers:
            self._free[register.kind, register.extent].append(register)

    def release(self, *values: Value) -> None:
        """Lets go of values: their registers are free when nobody else holds them."""
        for value in values:
            if isinstance(value.operand, Register):
                self._holders[value.operand] -= 1
                if not self._holders[value.operand]:
                    self.free(value.operand)

    def as_type(self, value: Value, wanted: ValueType) -> Value:
        """The value as another type; the one given is let go of."""
        if value.type == wanted:
            return value
        self.release(value)
        out = self.allocate(wanted, value.extent)
        if wanted == "real":
            self.emit(np.copyto, out, value.operand)
        else:
            self.emit(np.not_equal, value.operand, Number(0.0), out)
        return self.held(out, wanted, out.extent)

    def held(self, operand: Operand, kind: ValueType, extent: Extent) -> Value:
        """A value that somebody now holds."""
        if isinstance(operand, Register):
            self._holders[operand] += 1
        return Value(operand, kind, extent)

    def open_block(self) -> None:
        """Begins the body of a loop: calls are appended to it from now on."""
        self._blocks.append([])

    def close_block(self) -> Body:
        """Ends a body; gives it as an operand."""
        return Body(tuple(self._blocks.pop()))
