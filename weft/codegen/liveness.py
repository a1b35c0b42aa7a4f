"""Where loops begin and end in the code of a section, and how long its locals are needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.codegen.base import Instruction, Operand


@dataclass(frozen=True, slots=True)
class LoopSpan:
    """Where a loop begins and ends, where the outermost loop around it begins, and whether that holds several loops."""

    begin: int
    end: int
    nest: int
    nested: bool


def loop_spans(code: Sequence[Instruction]) -> dict[int, LoopSpan]:
    """The loops of a section, by where they begin."""
    ends: dict[int, int] = {}
    nests: dict[int, int] = {}
    around: list[int] = []
    for at, instruction in enumerate(code):
        if instruction.op == "LOOP":
            around.append(at)
            nests[at] = around[0]
        elif instruction.op == "NEXT":
            ends[around.pop()] = at
    sizes = Counter(nests.values())
    return {at: LoopSpan(at, ends[at], nest, sizes[nest] > 1) for at, nest in nests.items()}


def expiring_locals(code: Sequence[Instruction], spans: Mapping[int, LoopSpan]) -> dict[int, list[Operand]]:
    """The locals that the code does not need behind each place: that is their last load, or the end of the outermost
    loop that repeats it."""
    stored: dict[Operand, int] = {}
    last: dict[Operand, int] = {}
    for at, (op, number) in enumerate(code):
        if op == "STORE_LOCAL":
            stored[number] = last[number] = at
        elif op == "LOAD_LOCAL" and number in stored:
            repeating = [span.end for span in spans.values() if stored[number] < span.begin < at < span.end]
            last[number] = max([at, *repeating])
    expiring: dict[int, list[Operand]] = {}
    for number, at in last.items():
        expiring.setdefault(at, []).append(number)
    return expiring
