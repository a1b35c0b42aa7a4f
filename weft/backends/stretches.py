"""Stretches of bytecode: instructions in a row that only compute, written out as one Python function. It gives the same
numbers as its instructions one by one, to the bit, since it calls the same functions in the same order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from weft.codegen.bytecode import Instruction, row_of
from weft.ops.spec import OpSpec

# The function of a stretch, which is given the machine. It gives the position behind the stretch.
Stretch: TypeAlias = Callable[[Any], int]

# Besides the rows of the table: what reads numbers that stay as they are within a stretch, and what moves numbers.
_PLAIN = frozenset({
    "PUSH", "PUSH_BITS", "LOAD_COORD", "LOAD_UNIFORM", "LOAD_LOCAL", "LOAD_INDEX", "LOAD_CARRIED", "STORE_LOCAL", "DROP"
})  # fmt: skip

# How deep a written expression is nested at most, since Python's parser has a limit.
_DEEPEST = 40


def stretches(code: Sequence[Instruction]) -> Iterator[range]:
    """The positions of each stretch that is longer than one instruction."""
    for is_plain, found in groupby(range(len(code)), lambda at: _is_plain(*code[at])):
        positions = [*found]
        if is_plain and len(positions) > 1:
            yield range(positions[0], positions[-1] + 1)


def _is_plain(op: str, operand: Any) -> bool:
    return op in _PLAIN or row_of(op, operand) is not None


def written(code: Sequence[Instruction], stretch: range, around: Mapping[int, Mapping[int, int]]) -> Stretch:
    """The function of a stretch. `around` has the loops around a position: the depth of each level."""
    writer = _Writer()
    for at in stretch:
        writer.write(*code[at], around.get(at, {}))
    return writer.function(stretch.stop)


class _Text(NamedTuple):
    """An expression, and how deep it is nested."""

    text: str
    depth: int = 0


class _Writer:
    """Writes a function that computes a stretch. What the stretch puts on the stack and takes away again stays in
    expressions."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._stack: list[_Text] = []
        self._read: dict[str, str] = {}
        """The names of numbers that have been read, by where they are."""
        self._given: dict[str, Any] = {}

    def write(self, op: str, operand: Any, around: Mapping[int, int]) -> None:
        """Adds an instruction."""
        row = row_of(op, operand)
        if row is not None:
            self._compute(row)
            return
        match op:
            case "PUSH" | "PUSH_BITS":
                is_short = type(operand) in (int, float) and math.isfinite(operand)
                self._stack.append(_Text(repr(operand) if is_short else self._name(operand)))
            case "LOAD_COORD":
                self._load(f"machine.coords[{operand!r}]")
            case "LOAD_UNIFORM":
                self._load(f"float(machine.launch.uniforms[{operand!r}])")
            case "LOAD_LOCAL":
                self._load(_local(operand))
            case "LOAD_INDEX":
                self._load(f"machine.loops[{around[operand]}].index")
            case "LOAD_CARRIED":
                self._load(f"machine.loops[{around[operand.level]}].values[{operand.k}]")
            case "STORE_LOCAL":
                # Another name each time: what has been read before is still to be used.
                self._read[_local(operand)] = self._assign(f"{_local(operand)} = {self._pop().text}")
            case "DROP":
                self._pop()

    def _compute(self, row: OpSpec) -> None:
        operands = [self._pop() for _ in row.params][::-1]
        texts = [
            f"(1.0 if {each.text} != 0 else 0.0)" if row.type_of_operand(at) == "bool" else each.text
            for at, each in enumerate(operands)
        ]
        depth = 1 + max((each.depth for each in operands), default=0)
        made = _Text(f"{self._name(row.fold)}({', '.join(texts)})", depth)
        self._stack.append(_Text(self._assign(made.text)) if depth > _DEEPEST else made)

    def _load(self, place: str) -> None:
        if place not in self._read:
            self._read[place] = self._assign(place)
        self._stack.append(_Text(self._read[place]))

    def _pop(self) -> _Text:
        return self._stack.pop() if self._stack else _Text(self._assign("machine.stack.pop()"))

    def _assign(self, text: str) -> str:
        name = f"v{len(self._lines)}"
        self._lines.append(f"{name} = {text}")
        return name

    def _name(self, given: Any) -> str:
        name = f"given_{id(given)}"
        self._given[name] = given
        return name

    def function(self, end: int) -> Stretch:
        """What has been written."""
        self._lines.append(f"machine.stack += ({''.join(each.text + ', ' for each in self._stack)})")
        text = "\n ".join(["def stretch(machine):", *self._lines, f"return {end}"])
        names = dict(self._given)
        exec(compile(text, "<stretch>", "exec"), names)
        function: Stretch = names["stretch"]
        return function


def _local(number: int) -> str:
    return f"machine.locals[{number}]"
