"""Kernels as text, for `--dump-bytecode`."""

from __future__ import annotations

from collections.abc import Iterator

from weft.codegen.base import Kernel
from weft.codegen.bytecode import Bytecode, SectionCode, assemble
from weft.codegen.opcodes import OPCODES, Instruction, StrandCall
from weft.codegen.verify import stack_depth
from weft.ir.expr import LoopShape, LoopValue, PicturePlane, SlotPlane
from weft.ir.rates import Rate
from weft.ir.serialize import number_text

_WHEN = {
    Rate.CONSTANT: "once, when the kernel is loaded",
    Rate.FRAME: "once a frame",
    Rate.COLUMN: "once a column: varies with x only",
    Rate.ROW: "once a row: varies with y only",
    Rate.ELEMENT: "at every element",
}


def disassemble(kernel: Kernel, shape: tuple[int, int] = (720, 1280)) -> str:
    """The whole kernel as text: what it refers to, what its locals take for a picture of this shape (height, width),
    and each section with its code."""
    bytecode = assemble(kernel)
    lines = [f"kernel {kernel.name} · {kernel.context} · {kernel.sweep} → {', '.join(kernel.outputs)}"]
    lines += _inputs(kernel)
    lines += _state(kernel)
    lines += _locals(bytecode, shape)
    for section in bytecode.sections:
        depth = stack_depth(bytecode, section.code)
        lines += ["", f"{section.rate.title} section · {_WHEN[section.rate]} · stack {depth}"]
        lines += _code(bytecode, section)
    return "\n".join(lines) + "\n"


def instruction_text(instruction: Instruction) -> str:
    """One instruction as a listing shows it: `PUSH 5`, `LOAD_STATE visual/trail/prev/0[0]`."""
    return " ".join([instruction.op, *_operand(instruction)])


def _operand(instruction: Instruction) -> Iterator[str]:
    match instruction.operand:
        case None:
            return
        case float(value):
            yield number_text(value)
        case SlotPlane(name, plane) | PicturePlane(name, plane):
            yield f"{name}[{plane}]"
        case StrandCall(instance, output, count):
            yield f"{instance}@{output}"
            yield str(count)
        case LoopShape(level, carried):
            yield f"loop{level}"
            yield str(carried)
        case LoopValue(level, index):
            yield f"loop{level}.{index}"
        case int(value) if instruction.op == "PUSH_BITS":
            yield f"0x{value:08x}"
        case int(level) if instruction.op == "LOAD_INDEX":
            yield f"loop{level}"
        case other:
            yield str(other)


def _inputs(kernel: Kernel) -> Iterator[str]:
    listed = {
        "coordinates": [f"{name} ({rate.title})" for name, rate in kernel.coords],
        "uniforms": kernel.uniforms,
        "strands": [str(ref) for ref in kernel.strands],
        "pictures": kernel.pictures,
    }
    for title, names in listed.items():
        if names:
            yield f"{title}: {', '.join(names)}"


def _state(kernel: Kernel) -> Iterator[str]:
    for slot in kernel.slots:
        what = "image" if slot.image else "number"
        yield f"state: {slot.key} · {slot.kind} · {slot.planes} × {what} · {slot.depth} back"
    if kernel.slots and kernel.sweep == "grid":
        yield f"state advances after every {'element' if kernel.tick == 'element' else 'launch'}"


def _locals(bytecode: Bytecode, shape: tuple[int, int]) -> Iterator[str]:
    if not bytecode.locals:
        return
    height, width = shape
    yield f"locals, with their bytes in a picture of {width}×{height}:"
    for number, local in enumerate(bytecode.locals):
        size = local.itemsize * local.count(shape)
        yield f"  {number:>4}  {local.rate.title:<8} {local.type:<5} {size:>9,}  {local.name}"


def _code(bytecode: Bytecode, section: SectionCode) -> Iterator[str]:
    indent = 0
    for at, instruction in enumerate(section.code):
        if instruction.op == "NEXT":
            indent -= 1
        text = f"  {at:>4}  {'  ' * indent}{instruction_text(instruction)}"
        if instruction.op in ("LOAD_LOCAL", "STORE_LOCAL") and isinstance(instruction.operand, int):
            text = f"{text:<40}; {bytecode.locals[instruction.operand].name}"
        yield text
        if instruction.op == "LOOP":
            indent += 1


def opcode_table() -> str:
    """The instruction set as text, one opcode a line: its name, what it does to the stack, and its meaning."""
    return "\n".join(f"{code.name:<15} {code.stack:<18} {code.doc}" for code in OPCODES.values()) + "\n"
