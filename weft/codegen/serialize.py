"""Kernels as JSON, without loss in both directions, and the hash that says whether two do the same."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Mapping
from typing import Any

from weft.codegen.base import Allocation, Instruction, Kernel, Note, Operand, Section, StrandCall
from weft.codegen.opcodes import OPCODES
from weft.ir.expr import LoopShape, LoopValue, PicturePlane, SlotPlane, StrandRef
from weft.ir.rates import Rate
from weft.ir.serialize import Json, number_from_json, number_to_json, slot_from_json, slot_to_json


def to_json(kernel: Kernel) -> Json:
    """What `from_json` reads."""
    return {
        "name": kernel.name,
        "context": kernel.context,
        "sweep": kernel.sweep,
        "tick": kernel.tick,
        "sections": [
            [s.rate.title, [_instruction_to_json(i) for i in s.code], [list(note) for note in s.notes]]
            for s in kernel.sections
        ],
        "outputs": list(kernel.outputs),
        "coords": [[name, rate.title] for name, rate in kernel.coords],
        "uniforms": list(kernel.uniforms),
        "strands": [list(ref) for ref in kernel.strands],
        "pictures": list(kernel.pictures),
        "slots": [slot_to_json(slot) for slot in kernel.slots],
        "locals": [[a.name, a.rate.title, a.type] for a in kernel.locals],
    }


def from_json(data: Json) -> Kernel:
    """The kernel that `to_json` wrote."""
    return Kernel(
        name=data["name"],
        context=data["context"],
        sweep=data["sweep"],
        tick=data["tick"],
        sections=tuple(
            Section(
                _rate(title), tuple(_instruction_from_json(*entry) for entry in code), tuple(Note(*n) for n in notes)
            )
            for title, code, notes in data["sections"]
        ),
        outputs=tuple(data["outputs"]),
        coords=tuple((name, _rate(title)) for name, title in data["coords"]),
        uniforms=tuple(data["uniforms"]),
        strands=tuple(StrandRef(*names) for names in data["strands"]),
        pictures=tuple(data["pictures"]),
        slots=tuple(slot_from_json(slot) for slot in data["slots"]),
        locals=tuple(Allocation(name, _rate(title), kind) for name, title, kind in data["locals"]),
    )


def content_hash(kernel: Kernel) -> str:
    """16 hexadecimal digits, equal for kernels that do the same: what people call the kernel and its values does not
    matter."""
    head = (
        kernel.context, kernel.sweep, kernel.tick, kernel.outputs, kernel.uniforms, kernel.strands, kernel.pictures,
        kernel.slots, [(name, int(rate)) for name, rate in kernel.coords],
        [(int(local.rate), local.type) for local in kernel.locals],
    )  # fmt: skip
    digest = hashlib.sha256(repr(head).encode())
    for section in kernel.sections:
        words = [op if isinstance(operand, float) else f"{op} {operand!r}" for op, operand in section.code]
        digest.update(f"\n{int(section.rate)}\n".encode() + "\n".join(words).encode())
        # Numbers are told apart by their bits; which of the words they belong to, the words themselves say.
        numbers = [operand for _, operand in section.code if isinstance(operand, float)]
        digest.update(struct.pack(f"<{len(numbers)}d", *numbers))
    return digest.hexdigest()[:16]


def _rate(title: str) -> Rate:
    return Rate[title.upper()]


_OPERANDS: Mapping[type, Callable[..., Operand]] = {
    kind: kind for kind in (SlotPlane, PicturePlane, StrandCall, LoopShape, LoopValue)
}


def _instruction_to_json(instruction: Instruction) -> Json:
    op, operand = instruction
    if operand is None:
        return [op]
    if isinstance(operand, float):
        return [op, number_to_json(operand)]
    return [op, list(operand) if isinstance(operand, tuple) else operand]


def _instruction_from_json(op: str, data: Any = None) -> Instruction:
    kind = OPCODES[op].operand
    if kind is not None and kind in _OPERANDS:
        return Instruction(op, _OPERANDS[kind](*data))
    return Instruction(op, number_from_json(data) if kind is float else data)
