"""Checks of kernels and of the bytecode that they are assembled to: the stack, types, locals, loops and stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.support.verify_ir import converts
from weft.codegen.bytecode import OPCODES, Bytecode, Instruction, SectionCode, StrandCall, assemble, effect, floats
from weft.codegen.kernel import VISIBLE, Allocation, Kernel, check_updates, verify as verify_values
from weft.ir.expr import LoopShape, LoopValue, MalformedError, PicturePlane, SlotPlane
from weft.ir.rates import Rate
from weft.ops import OPS
from weft.ops.spec import ValueType


def verify(kernel: Kernel) -> None:
    """Raises MalformedError, with the section and the value or the instruction, if a kernel is malformed."""
    verify_values(kernel)
    for each in (*kernel.stages, kernel):
        verify_bytecode(assemble(each))


def verify_bytecode(bytecode: Bytecode) -> None:
    """Raises MalformedError, with the section and the instruction, if bytecode is malformed."""
    order = [section.rate for section in bytecode.sections]
    if order != sorted(set(order)) or Rate.ELEMENT not in order:
        raise MalformedError(f"{bytecode.kernel.name}: sections {[r.title for r in order]}")
    stored: set[int] = set()
    updated: list[SlotPlane] = []
    for section in bytecode.sections:
        check = _CodeCheck(bytecode.kernel, bytecode.locals, section, stored, updated)
        check.run()
        stored |= check.defined[0]
    check_updates(bytecode.kernel, updated)


@dataclass
class _StackLoop:
    """A loop whose body is being checked: its shape, and the depth of the stack below the values of the body."""

    shape: LoopShape
    depth: int


@dataclass
class _CodeCheck:
    """Checks one section from front to back, with a stack of types."""

    kernel: Kernel
    locals: Sequence[Allocation]
    section: SectionCode
    stored: set[int]
    """The locals of the sections before."""
    updated: list[SlotPlane]
    stack: list[ValueType] = field(default_factory=list)
    loops: list[_StackLoop] = field(default_factory=list)
    defined: list[set[int]] = field(default_factory=lambda: [set()])
    """The locals that this section has stored so far: first outside loops, then in the body of each open loop. Those of
    a body are undefined after it, since the loop may have had no step."""
    at: int = 0

    def run(self) -> None:
        for at, (op, operand) in enumerate(self.section.code):
            self.at = at
            self._require(op in OPCODES, "unknown opcode")
            self._require(_fits(operand, OPCODES[op]), f"its operand is no {OPCODES[op]}")
            self._check_operand(op, operand)
            pops, pushes = effect(Instruction(op, operand), self.locals)
            self._pop(pops)
            self._enter_or_leave(op, operand)
            self.stack.extend(pushes)
        self._require(not self.loops, "a loop is left open")
        if self.section.rate != Rate.ELEMENT:
            self._require(not self.stack, f"leaves {len(self.stack)} values on the stack")
        else:
            self._require(self.section.code[-1:] == (Instruction("RETURN"),), "does not end with RETURN")

    def _require(self, condition: bool, message: str) -> None:
        if not condition:
            instruction = self.section.code[self.at] if self.section.code else "empty"
            place = f"{self.kernel.name}, {self.section.rate.title} section, {self.at}: {instruction}"
            raise MalformedError(f"{place}: {message}")

    def _pop(self, types: tuple[ValueType, ...]) -> None:
        floor = self.loops[-1].depth if self.loops else 0
        self._require(len(self.stack) - len(types) >= floor, f"pops {len(types)} values, {len(self.stack)} are there")
        for wanted in reversed(types):
            given = self.stack.pop()
            self._require(converts(given, wanted), f"pops {given} as {wanted}")

    def _enter_or_leave(self, op: str, operand: object) -> None:
        match op, operand:
            case "LOOP", LoopShape() as shape:
                self._require(all(shape.level > b.shape.level for b in self.loops), "its level is not the deepest")
                self.loops.append(_StackLoop(shape, len(self.stack)))
                self.defined.append(set())
            case "NEXT", shape:
                self._require(bool(self.loops) and self.loops[-1].shape == shape, "ends no such loop")
                self._require(len(self.stack) == self.loops.pop().depth, "leaves values on the stack at each step")
                self.defined.pop()
            case "RETURN", _:
                last = self.at == len(self.section.code) - 1 and self.section.rate == Rate.ELEMENT
                self._require(last and not self.loops, "returns before the end of the element section")
                count = len(self.kernel.outputs)
                self._require(len(self.stack) == count, f"returns {len(self.stack)} values as {count} outputs")
                self._pop(floats(count))

    def _check_operand(self, op: str, operand: object) -> None:
        match op, operand:
            case (("LOAD_LOCAL" | "STORE_LOCAL"), int(number)):
                self._check_local(op, number)
            case "LOAD_COORD", str(name):
                rate = dict(self.kernel.coords).get(name)
                self._require(rate in VISIBLE[self.section.rate], f"is not there in this section ({rate})")
            case "LOAD_UNIFORM", name:
                self._require(name in self.kernel.uniforms, "is no uniform of the kernel")
            case "CALL", str(name):
                row = OPS.get(name)
                self._require(row is not None and row.expand is None, "cannot be called")
            case "LOAD_STRAND", StrandCall() as strand:
                self._require(strand.ref in self.kernel.strands, "is no strand of the kernel")
            case "SAMPLE_PICTURE", PicturePlane(picture, plane):
                self._require(picture in self.kernel.pictures and 0 <= plane < 4, "is no plane of its pictures")
            case "FETCH", PicturePlane(sound, channel):
                self._require(sound in self.kernel.pictures and 0 <= channel < 2, "is no channel of its sounds")
            case (("LOAD_STATE" | "SAMPLE_STATE" | "STORE_STATE"), SlotPlane() as place):
                self._check_state(op, place)
            case "LOAD_INDEX", level:
                self._require(any(level == b.shape.level for b in self.loops), "is outside such a loop")
            case "LOAD_CARRIED", LoopValue(level, index):
                inside = any(level == b.shape.level and 0 <= index < b.shape.carried for b in self.loops)
                self._require(inside, "is outside such a loop")

    def _check_local(self, op: str, number: int) -> None:
        self._require(0 <= number < len(self.locals), "no such local")
        rate = self.locals[number].rate
        if op == "STORE_LOCAL":
            self._require(rate == self.section.rate, f"belongs to the {rate.title} section")
            self.defined[-1].add(number)
        else:
            self._require(rate in VISIBLE[self.section.rate], f"is a {rate.title}'s")
            defined = number in self.stored or any(number in locals_ for locals_ in self.defined)
            self._require(defined, "is loaded before it is stored")

    def _check_state(self, op: str, place: SlotPlane) -> None:
        slot = next((s for s in self.kernel.slots if s.key == place.slot), None)
        if slot is None or not 0 <= place.plane < slot.planes:
            self._require(False, "no such plane of a slot")
            return
        in_element = self.section.rate == Rate.ELEMENT
        match op:
            case "SAMPLE_STATE":
                self._require(slot.image, "is no image")
            case "LOAD_STATE":
                grid = self.kernel.sweep == "grid"
                self._require(not slot.image or (in_element and grid), "has no element here to be read at")
            case _:
                by_element = slot.image or self.kernel.tick == "element"
                section = Rate.ELEMENT if by_element else Rate.FRAME
                self._require(self.section.rate == section and not self.loops, "is stored at the wrong rate")
                self.updated.append(place)


def _fits(operand: object, wanted: type | None) -> bool:
    return operand is None if wanted is None else isinstance(operand, wanted)
