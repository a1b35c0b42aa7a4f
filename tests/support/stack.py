"""From stack code back to values, for kernels that tests write as code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from weft.codegen.bytecode import Bytecode, Instruction, row_of
from weft.codegen.kernel import Allocation, Kernel
from weft.codegen.values import Node, Scalar, Section, SectionBuilder, Store
from weft.ir.expr import LoopShape
from weft.ir.rates import Rate

_PLAIN = {
    "PUSH": "const", "PUSH_BITS": "u32", "LOAD_STATE": "state", "SAMPLE_STATE": "sample", "SAMPLE_PICTURE": "picture",
}  # fmt: skip
_OPERANDS = {"LOAD_STATE": 1, "SAMPLE_STATE": 3, "SAMPLE_PICTURE": 2}


def kernel_of(bytecode: Bytecode) -> Kernel:
    """The kernel that bytecode computes."""
    sections = tuple(_Reader(bytecode, section.rate).section(section.code) for section in bytecode.sections)
    return replace(bytecode.kernel, sections=sections)


class _Reader:
    """Runs the code of a section on values instead of numbers."""

    def __init__(self, bytecode: Bytecode, rate: Rate) -> None:
        self._rate = rate
        self._kernel = bytecode.kernel
        self._allocations: Sequence[Allocation] = bytecode.locals
        self._coords = dict(bytecode.kernel.coords)
        self._builder = SectionBuilder()
        self._stack: list[Node] = []
        self._stored: dict[int, Node] = {}
        self._stores: list[Store] = []

    def section(self, code: Sequence[Instruction]) -> Section:
        for op, operand in code:
            self._instruction(op, operand)
        crossing = {
            number: node
            for number, node in self._stored.items()
            if self._rate != Rate.ELEMENT and number < len(self._kernel.locals)
        }
        return Section(self._rate, tuple(self._builder.nodes), tuple(self._stack), tuple(self._stores), crossing)

    def _pop(self, count: int) -> list[Node]:
        start = len(self._stack) - count
        values = self._stack[start:]
        del self._stack[start:]
        return values

    def _instruction(self, op: str, operand: Any) -> None:
        builder, push = self._builder, self._stack.append
        row = row_of(op, operand)
        if row is not None:
            push(builder.add(row.name, self._pop(len(row.params))))
        elif op in _OPERANDS:
            push(builder.add(_PLAIN[op], self._pop(_OPERANDS[op]), operand))
        elif op in _PLAIN:
            push(builder.leaf(_PLAIN[op], operand))
        else:
            _OTHERS[op](self, operand)

    def _store_local(self, number: int) -> None:
        (value,) = self._pop(1)
        self._stored[number] = self._builder.converted(value, self._allocations[number].type)

    def _load_local(self, number: int) -> None:
        local = self._allocations[number]
        stored = self._stored.get(number)
        self._stack.append(self._builder.local(number, local.rate, local.type) if stored is None else stored)

    def _store_state(self, place: Any) -> None:
        (value,) = self._pop(1)
        self._stores.append(Store(place, self._builder.converted(value, "float")))

    def _strand(self, call: Any) -> None:
        self._stack.append(self._builder.add("strand", self._pop(call.coordinates), call.ref))

    def _loop(self, shape: LoopShape) -> None:
        self._builder.begin_loop(shape.level, self._pop(2 + shape.carried))

    def _next(self, shape: LoopShape) -> None:
        loop = self._builder.end_loop(self._pop(shape.carried))
        self._stack += [self._builder.result(loop, k) for k in range(shape.carried)]


def _pushed(make: Callable[[_Reader, Any], Node]) -> Callable[[_Reader, Any], None]:
    def push(reader: _Reader, operand: Any) -> None:
        reader._stack.append(make(reader, operand))

    return push


_OTHERS: dict[str, Callable[[_Reader, Any], None]] = {
    "LOAD_COORD": _pushed(lambda reader, name: reader._builder.coord(name, reader._coords[name])),
    "LOAD_UNIFORM": _pushed(lambda reader, name: reader._builder.leaf("scalar", Scalar("uniform", name, "float"))),
    "LOAD_INDEX": _pushed(lambda reader, level: reader._builder.index(level)),
    "LOAD_CARRIED": _pushed(lambda reader, value: reader._builder.carried(*value)),
    "LOAD_LOCAL": _Reader._load_local,
    "STORE_LOCAL": _Reader._store_local,
    "STORE_STATE": _Reader._store_state,
    "LOAD_STRAND": _Reader._strand,
    "LOOP": _Reader._loop,
    "NEXT": _Reader._next,
    "DROP": lambda reader, operand: reader._stack.pop() and None,
    "RETURN": lambda reader, operand: None,
}
