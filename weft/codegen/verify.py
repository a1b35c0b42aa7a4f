"""Checks of kernels, and their listings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.codegen.bytecode import OPCODES, Bytecode, Instruction, SectionCode, StrandCall, assemble, floats
from weft.codegen.kernel import Allocation, Kernel
from weft.codegen.values import IMPLIED, LEAVES, SIGNATURES, Line, LoopBody, Node, Scalar, Section, kind_of
from weft.ir.expr import LoopShape, LoopValue, PicturePlane, SlotPlane, StrandRef
from weft.ir.rates import Rate
from weft.ir.serialize import number_text
from weft.ir.verify import MalformedError, converts
from weft.ops import OPS
from weft.ops.spec import ValueType

# Checks of values: their order, their types, their inputs, and the stores of the kernel.

VISIBLE: Mapping[Rate, frozenset[Rate]] = {
    Rate.CONSTANT: frozenset({Rate.CONSTANT}),
    Rate.FRAME: frozenset({Rate.CONSTANT, Rate.FRAME}),
    Rate.COLUMN: frozenset({Rate.CONSTANT, Rate.FRAME, Rate.COLUMN}),
    Rate.ROW: frozenset({Rate.CONSTANT, Rate.FRAME, Rate.ROW}),
    Rate.ELEMENT: frozenset(Rate),
}
"""The sections whose locals and coordinates a section may read."""

# The number of operands of each structural operation (None: any), and the type of its attribute.
_STRUCTURE: Mapping[str, tuple[int | None, type]] = {
    "state": (1, SlotPlane), "sample": (3, SlotPlane), "picture": (2, PicturePlane), "strand": (None, StrandRef),
    "loop": (None, LoopBody), "loop_out": (1, int),
}  # fmt: skip


def verify_values(kernel: Kernel) -> None:
    """Raises MalformedError, with the section and the value, if the values of a kernel are malformed."""
    order = [section.rate for section in kernel.sections]
    if order != sorted(set(order)) or Rate.ELEMENT not in order:
        raise MalformedError(f"{kernel.name}: sections {[r.title for r in order]}")
    known: set[int] = set()
    for section in kernel.sections:
        _ValueCheck(kernel, section, known).run()
        known |= section.locals.keys()
    _check_updates(kernel, [store.place for section in kernel.sections for store in section.stores])


def _check_updates(kernel: Kernel, updated: list[SlotPlane]) -> None:
    wanted = {SlotPlane(slot.key, plane) for slot in kernel.slots for plane in range(slot.planes)}
    if kernel.sweep == "points":
        wanted = set()
    if len(updated) != len(set(updated)) or set(updated) != wanted:
        raise MalformedError(f"{kernel.name}: updates {sorted(updated)} instead of {sorted(wanted)}")


@dataclass
class _ValueCheck:
    """Checks one section from front to back."""

    kernel: Kernel
    section: Section
    known: set[int]
    """The locals of the sections before."""
    defined: set[Node] = field(default_factory=set)
    """The values that may be used: of the section so far, of loops around this place, and checked leaves."""

    def run(self) -> None:
        section = self.section
        self._check_nodes(section.nodes, level=-1)
        for number, node in section.locals.items():
            self._require(0 <= number < len(self.kernel.locals), node, f"no local {number}")
            local = self.kernel.locals[number]
            self._require(local.rate == section.rate, node, f"local {number} belongs to the {local.rate.title} section")
            self._require(local.type == node.kind, node, f"local {number} is {local.type}")
            self._check_use(node, node)
        for store in section.stores:
            self._check_store(store.place, store.value)
        if section.outputs or section.rate == Rate.ELEMENT:
            at_end = section.rate == Rate.ELEMENT and len(section.outputs) == len(self.kernel.outputs)
            self._require(at_end, "outputs", f"{len(section.outputs)} values as {len(self.kernel.outputs)} outputs")
        for node in section.outputs:
            self._check_use(node, node)
            self._require(node.kind != "u32", node, "bits cannot leave the program")

    def _require(self, condition: bool, what: object, message: str) -> None:
        if not condition:
            raise MalformedError(f"{self.kernel.name}, {self.section.rate.title} section, {what}: {message}")

    def _check_nodes(self, nodes: Iterable[Node], level: int) -> None:
        for node in nodes:
            for arg in node.args:
                self._check_use(node, arg)
            signature = SIGNATURES.get(node.op)
            if signature is not None:
                self._check_kinds(node, [arg.kind for arg in node.args], signature[0])
                self._require(node.attr in (None, IMPLIED), node, "an operation has no attribute")
            else:
                self._check_structural(node, level)
            self._require(node.kind == kind_of(node.op, node.attr), node, "has another type")
            self.defined.add(node)

    def _check_kinds(self, node: Node, given: list[str], wanted: Iterable[str]) -> None:
        self._require(given == list(wanted), node, f"is given {given} as {list(wanted)}")

    def _check_use(self, node: Node, arg: Node) -> None:
        if arg in self.defined:
            return
        self._require(arg.op in LEAVES, node, f"uses {arg} before it is computed")
        self._check_leaf(arg)
        self.defined.add(arg)

    def _check_leaf(self, leaf: Node) -> None:
        visible = VISIBLE[self.section.rate]
        match leaf.op, leaf.attr:
            case ("const", float()) | ("u32", int()):
                return
            case "scalar", Scalar("uniform", name):
                self._require(name in self.kernel.uniforms, leaf, f"{name} is no uniform of the kernel")
            case ("scalar" | "line"), Scalar("coord", name) | Line("coord", name):
                rate = dict(self.kernel.coords).get(str(name))
                self._require(rate in visible, leaf, f"{name} is not there in this section ({rate})")
                self._check_form(leaf, rate)
            case ("scalar" | "line"), Scalar("local", int(number)) | Line("local", int(number)):
                self._require(0 <= number < len(self.kernel.locals), leaf, f"no local {number}")
                local = self.kernel.locals[number]
                self._require(local.rate in visible, leaf, f"local {number} is a {local.rate.title}'s")
                self._require(number in self.known, leaf, f"local {number} is read before it is computed")
                self._require(local.type == leaf.kind, leaf, f"local {number} is {local.type}")
                self._check_form(leaf, local.rate)
            case _:
                self._require(False, leaf, f"cannot be given as {leaf.attr}")

    def _check_form(self, leaf: Node, rate: Rate | None) -> None:
        is_line = rate not in (Rate.CONSTANT, Rate.FRAME)
        self._require((leaf.op == "line") == is_line, leaf, f"a {rate!r} is no {leaf.op}")
        self._require(not is_line or leaf.attr.rate == rate, leaf, f"changes with {rate!r}")

    def _check_structural(self, node: Node, level: int) -> None:
        self._require(node.op in _STRUCTURE, node, "unknown operation")
        count, attribute = _STRUCTURE[node.op]
        self._require(isinstance(node.attr, attribute), node, f"its attribute is no {attribute.__name__}")
        self._require(count is None or len(node.args) == count, node, f"takes {count} operands")
        self._check_kinds(node, [arg.kind for arg in node.args], ["float"] * len(node.args))
        checks: Mapping[str, Callable[[], None]] = {
            "state": lambda: self._check_read(node),
            "sample": lambda: self._check_read(node),
            "picture": lambda: self._check_picture(node),
            "strand": lambda: self._require(node.attr in self.kernel.strands, node, "is no strand of the kernel"),
            "loop": lambda: self._check_loop(node, node.attr, level),
            "loop_out": lambda: self._check_result(node),
        }
        checks[node.op]()
        for arg in node.args:
            self._require(arg.op != "loop" or node.op == "loop_out", node, "a loop is read by `loop_out` only")

    def _check_picture(self, node: Node) -> None:
        path, plane = node.attr
        self._require(path in self.kernel.pictures and 0 <= plane < 4, node, "is no plane of its pictures")

    def _check_result(self, node: Node) -> None:
        loop: Any = node.args[0]
        inside = loop.op == "loop" and 0 <= node.attr < len(loop.attr.carried)
        self._require(inside, node, "reads what no loop carries")

    def _check_loop(self, node: Node, body: LoopBody, level: int) -> None:
        self._require(body.level > level, node, "its level is not the deepest")
        count = len(body.carried)
        self._require(count == len(body.following) == len(node.args) - 2, node, "carries more or fewer values")
        for k, carried in enumerate(body.carried):
            is_own = (carried.op, carried.attr) == ("loop_value", LoopValue(body.level, k))
            self._require(is_own, node, "carries values of another loop")
        outside = set(self.defined)
        self.defined.update(body.carried)
        if body.index is not None:
            self._require((body.index.op, body.index.attr) == ("loop_index", body.level), node, "its index")
            self.defined.add(body.index)
        self._check_nodes(body.nodes, body.level)
        for following in body.following:
            self._check_use(node, following)
            self._check_kinds(node, [following.kind], ["float"])
        # The loop may have had no step, so its values are not defined after it.
        self.defined = outside

    def _check_plane(self, node: Node, place: SlotPlane) -> bool:
        """Whether the slot is an image."""
        slot = next((s for s in self.kernel.slots if s.key == place.slot), None)
        if slot is None or not 0 <= place.plane < slot.planes:
            raise MalformedError(f"{self.kernel.name}, {node}: no such plane of a slot: {place}")
        return slot.image

    def _check_read(self, node: Node) -> None:
        image = self._check_plane(node, node.attr)
        if node.op == "sample":
            self._require(image, node, "is no image")
        else:
            here = self.section.rate == Rate.ELEMENT and self.kernel.sweep == "grid"
            self._require(not image or here, node, "has no element here to be read at")

    def _check_store(self, place: SlotPlane, value: Node) -> None:
        self._check_use(value, value)
        by_element = self._check_plane(value, place) or self.kernel.tick == "element"
        rate = Rate.ELEMENT if by_element else Rate.FRAME
        self._require(self.section.rate == rate, value, "is stored at the wrong rate")
        self._check_kinds(value, [value.kind], ["float"])


# Checks of bytecode: the stack, the types, the locals, the loops, and the stores.


def verify(kernel: Kernel) -> None:
    """Raises MalformedError, with the section and the value or the instruction, if a kernel is malformed."""
    verify_values(kernel)
    verify_bytecode(assemble(kernel))


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
    _check_updates(bytecode.kernel, updated)


def stack_depth(bytecode: Bytecode, code: Iterable[Instruction]) -> int:
    """The greatest number of values on the stack."""
    depth = most = 0
    for op, operand in code:
        pops, pushes = OPCODES[op].effect(operand, bytecode.locals)
        depth += len(pushes) - len(pops)
        most = max(most, depth)
    return most


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
            opcode = OPCODES.get(op)
            self._require(opcode is not None, "unknown opcode")
            assert opcode is not None
            self._require(_fits(operand, opcode.operand), f"its operand is no {opcode.operand}")
            self._check_operand(op, operand)
            pops, pushes = opcode.effect(operand, self.locals)
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


# Kernels as text, for `--dump-bytecode`.

_WHEN = {
    Rate.CONSTANT: "once, when the kernel is loaded",
    Rate.FRAME: "once a frame",
    Rate.COLUMN: "once a column: varies with x only",
    Rate.ROW: "once a row: varies with y only",
    Rate.ELEMENT: "at every element",
}


def disassemble(kernel: Kernel, shape: tuple[int, int] = (720, 1280)) -> str:
    """The whole kernel as text: what it refers to, the size of its locals for a picture of this shape (height, width),
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
    """The instruction set as text, one opcode a line: its name, its effect on the stack, and its meaning."""
    return "\n".join(f"{code.name:<15} {code.stack:<18} {code.doc}" for code in OPCODES.values()) + "\n"
