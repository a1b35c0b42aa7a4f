"""The instruction set of the stack machine: one table, which the verifier, the disassembler and the machines share.

Code runs from front to back; loops are the only way to go back. A value on the stack is a real, a truth or bits. Where
an instruction takes a real, a truth does as well (1 or 0), and where it takes a truth, a real does (`x != 0`, so NaN is
true).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from weft.codegen.base import Allocation
from weft.ir.expr import LoopShape, LoopValue, PicturePlane, SlotPlane, StrandRef
from weft.ops import OPS
from weft.ops.spec import OpSpec, ValueType


class StrandCall(NamedTuple):
    """A strand of another subgraph, and how many coordinates it is read at."""

    instance: str
    output: str
    coordinates: int

    @property
    def ref(self) -> StrandRef:
        return StrandRef(self.instance, self.output)


Operand: TypeAlias = float | int | str | SlotPlane | PicturePlane | StrandCall | LoopShape | LoopValue | None


class Instruction(NamedTuple):
    """One instruction of the stack machine."""

    op: str
    operand: Operand = None


class Effect(NamedTuple):
    """The types of what an instruction pops, the last one from the top, and of what it then pushes."""

    pops: tuple[ValueType, ...] = ()
    pushes: tuple[ValueType, ...] = ()


EffectOf: TypeAlias = Callable[[Any, Sequence[Allocation]], Effect]


@dataclass(frozen=True, slots=True)
class Opcode:
    """One opcode. `effect` takes the operand and the locals of the kernel; `stack` shows it for people."""

    name: str
    operand: type | None
    stack: str
    effect: EffectOf
    doc: str


def opcode_of(row: OpSpec) -> Instruction:
    """The instruction that computes a row of the table of operators and builtins."""
    if row.kind == "operator" or row.name == "select":
        return Instruction(row.name.upper())
    return Instruction("CALL", row.name)


def effect_of_row(row: OpSpec) -> Effect:
    return Effect(tuple(row.type_of_operand(at) for at in range(len(row.params))), (row.gives,))


def reals(count: int) -> tuple[ValueType, ...]:
    """The types of so many reals."""
    real: ValueType = "real"
    return (real,) * count


def _always(pops: int = 0, pushes: int = 0) -> EffectOf:
    effect = Effect(reals(pops), reals(pushes))
    return lambda operand, local: effect


def _call(name: str, local: Sequence[Allocation]) -> Effect:
    return effect_of_row(OPS[name])


def _load_local(number: int, local: Sequence[Allocation]) -> Effect:
    return Effect((), (local[number].type,))


def _store_local(number: int, local: Sequence[Allocation]) -> Effect:
    return Effect((local[number].type,))


def _load_strand(strand: StrandCall, local: Sequence[Allocation]) -> Effect:
    return Effect(reals(strand.coordinates), reals(1))


def _loop(shape: LoopShape, local: Sequence[Allocation]) -> Effect:
    return Effect(reals(2 + shape.carried))


def _next(shape: LoopShape, local: Sequence[Allocation]) -> Effect:
    return Effect(reals(shape.carried), reals(shape.carried))


_GENERAL = (
    Opcode("PUSH", float, "→ v", _always(0, 1), "pushes a number"),
    Opcode("PUSH_BITS", int, "→ b", lambda n, local: Effect((), ("bits",)), "pushes an unsigned 32-bit number"),
    Opcode("LOAD_COORD", str, "→ v", _always(0, 1), "pushes a base coordinate of the element: x y abstime channel"),
    Opcode("LOAD_UNIFORM", str, "→ v", _always(0, 1), "pushes a number that is the same in a whole launch"),
    Opcode("LOAD_LOCAL", int, "→ v", _load_local, "pushes a local of this section or a rarer one"),
    Opcode("STORE_LOCAL", int, "v →", _store_local, "pops a value into a local of this section"),
    Opcode("DROP", None, "v →", _always(1, 0), "forgets the value on top"),
    Opcode("CALL", str, "a … → v", _call, "calls a builtin with as many operands as it has parameters"),
    Opcode("LOAD_STATE", SlotPlane, "k → v", _always(1, 1),
           "reads a slot as it was k ticks ago, for this element: k is rounded down and clamped to what the slot "
           "remembers (NaN: 1); 0 before the start"),
    Opcode("SAMPLE_STATE", SlotPlane, "k x y → v", _always(3, 1),
           "samples the image that a slot was k ticks ago: bilinearly, clamped at the edge; over points, which are "
           "read between ticks, 0 is what the last tick wrote"),
    Opcode("STORE_STATE", SlotPlane, "v →", _always(1, 0),
           "pops what a slot will have been one tick ago, from the next tick on"),
    Opcode("SAMPLE_PICTURE", PicturePlane, "x y → v", _always(2, 1),
           "samples a picture: bilinearly, clamped at the edge"),
    Opcode("LOAD_STRAND", StrandCall, "c … → v", _load_strand, "reads a strand of another subgraph at coordinates"),
    Opcode("LOOP", LoopShape, "first last v … →", _loop,
           "begins a loop from first to last, both included, in steps of 1; v … are what it carries before the first "
           "step; goes behind NEXT if there is no step"),
    Opcode("LOAD_INDEX", int, "→ i", _always(0, 1), "pushes the variable of a loop around this place"),
    Opcode("LOAD_CARRIED", LoopValue, "→ v", _always(0, 1), "pushes a carried value of a loop around this place"),
    Opcode("NEXT", LoopShape, "v … → v …", _next,
           "pops the carried values for the next step of the loop and runs it; behind the last, pushes them"),
    Opcode("RETURN", None, "v … →", _always(),
           "ends the element section with the whole stack, in the order of the outputs"),
)  # fmt: skip


def _of_row(row: OpSpec) -> Opcode:
    effect = effect_of_row(row)
    stack = f"{' '.join(param.name for param in row.params)} → v"
    return Opcode(opcode_of(row).op, None, stack, lambda operand, local: effect, row.doc)


# The rows that have an opcode of their own; CALL names its row.
_ROWS: Mapping[str, OpSpec] = {
    opcode_of(row).op: row for row in OPS.values() if row.expand is None and opcode_of(row).op != "CALL"
}

OPCODES: Mapping[str, Opcode] = MappingProxyType(
    {code.name: code for code in (*_GENERAL, *map(_of_row, _ROWS.values()))}
)


def row_of(op: str, operand: Operand) -> OpSpec | None:
    """The row of the table of operators and builtins that an instruction computes; None if it does something else."""
    return OPS[operand] if op == "CALL" and isinstance(operand, str) else _ROWS.get(op)
