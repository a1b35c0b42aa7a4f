"""Stack bytecode: its instructions, how it is assembled from values for the reference VM, and its listings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from weft.codegen.kernel import Allocation, Kernel
from weft.codegen.values import IMPLIED, LEAVES, SIGNATURES, Line, LoopBody, Node, Scalar, Section
from weft.ir.expr import LoopShape, LoopValue, PicturePlane, SlotPlane, StrandRef
from weft.ir.rates import Rate
from weft.ops import OPS
from weft.ops.spec import OpSpec, ValueType
from weft.syntax.ast import number_text

# The instruction set: one table, which the verifier, the disassembler and the machines share.
#
# Code runs forwards; only loops jump back. A value on the stack is a float, a bool or a u32. Where an instruction takes
# a float, a bool is converted (1 or 0), and where it takes a bool, a float is converted (`x != 0`, so NaN is true).


class StrandCall(NamedTuple):
    """A strand of another subgraph, and the number of coordinates at which it is read."""

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
    """The types of the values that an instruction pops, the top of the stack last, and of those that it pushes."""

    pops: tuple[ValueType, ...] = ()
    pushes: tuple[ValueType, ...] = ()


def opcode_of(row: OpSpec) -> Instruction:
    """The instruction that computes a row of the table of operators and builtins."""
    if row.kind == "operator" or row.name == "select":
        return Instruction(row.name.upper())
    return Instruction("CALL", row.name)


# The type of each opcode's operand, and the numbers of values that it pops and pushes (None: see `effect`).
_GENERAL: Mapping[str, tuple[type | None, int | None, int | None]] = {
    "PUSH": (float, 0, 1),  # a number
    "PUSH_BITS": (int, 0, None),  # an unsigned 32-bit number
    "LOAD_NUMBER": (int, 0, 1),  # a number of the kernel, in code that serves kernels with other numbers too
    "LOAD_COORD": (str, 0, 1),  # a base coordinate of the element: x y abstime channel
    "LOAD_UNIFORM": (str, 0, 1),  # a number that is the same in a whole launch
    "LOAD_LOCAL": (int, 0, None),  # a local of this section or a rarer one
    "STORE_LOCAL": (int, None, 0),  # into a local of this section
    "DROP": (None, 1, 0),
    "CALL": (str, None, None),  # a builtin, with as many operands as it has parameters
    # A slot as it was k ticks ago, for this element: k is rounded down and clamped to what the slot remembers (NaN: 1);
    # 0 before the start.
    "LOAD_STATE": (SlotPlane, 1, 1),
    # k x y: the image of a slot, k ticks ago, sampled bilinearly and clamped at the edge. In kernels of points, which
    # run between ticks, 0 ticks ago means the image that the last tick wrote.
    "SAMPLE_STATE": (SlotPlane, 3, 1),
    "STORE_STATE": (SlotPlane, 1, 0),  # the new value of a slot, which it has from the next tick on
    "SAMPLE_PICTURE": (PicturePlane, 2, 1),  # x y: bilinearly, clamped at the edge
    "FETCH": (PicturePlane, 1, 1),  # number: a sample of a sound, rounded down; 0 outside of it, and for NaN
    "LOAD_STRAND": (StrandCall, None, 1),  # a strand of another subgraph at coordinates
    # first last v …: a loop from first to last, both included, in steps of 1; v … are what it carries before the first
    # step. Jumps past NEXT if there is no step.
    "LOOP": (LoopShape, None, 0),
    "LOAD_INDEX": (int, 0, 1),  # the variable of a loop around this place
    "LOAD_CARRIED": (LoopValue, 0, 1),  # a carried value of a loop around this place
    # Pops the carried values for the next step of the loop and runs it; after the last step, pushes them.
    "NEXT": (LoopShape, None, None),
    "RETURN": (None, 0, 0),  # ends the element section with the whole stack, in the order of the outputs
}

# The rows that have an opcode of their own; CALL names its row.
_ROWS: Mapping[str, OpSpec] = {
    opcode_of(row).op: row for row in OPS.values() if row.expand is None and opcode_of(row).op != "CALL"
}

OPCODES: Mapping[str, type | None] = {name: operand for name, (operand, *_) in _GENERAL.items()} | dict.fromkeys(_ROWS)
"""The type of the operand of each opcode."""


def effect(instruction: Instruction, local: Sequence[Allocation]) -> Effect:
    """What an instruction pops and pushes; `local` are the locals of the kernel."""
    row = row_of(*instruction)
    if row is not None:
        takes, gives = SIGNATURES[row.name]
        return Effect(takes, (gives,))
    match instruction:
        case "PUSH_BITS", _:
            return Effect((), ("u32",))
        case "LOAD_LOCAL", int(number):
            return Effect((), (local[number].type,))
        case "STORE_LOCAL", int(number):
            return Effect((local[number].type,))
        case "LOAD_STRAND", StrandCall(coordinates=count):
            return Effect(floats(count), floats(1))
        case "LOOP", LoopShape(carried=count):
            return Effect(floats(2 + count))
        case "NEXT", LoopShape(carried=count):
            return Effect(floats(count), floats(count))
    _, pops, pushes = _GENERAL[instruction.op]
    return Effect(floats(pops or 0), floats(pushes or 0))


def floats(count: int) -> tuple[ValueType, ...]:
    """The types of `count` floats."""
    kind: ValueType = "float"
    return (kind,) * count


def row_of(op: str, operand: Operand) -> OpSpec | None:
    """The row of the table of operators and builtins that an instruction computes; None if it computes none."""
    return OPS[operand] if op == "CALL" and isinstance(operand, str) else _ROWS.get(op)


# Assembling the values of a kernel to bytecode, for the reference machine and for listings.


@dataclass(frozen=True, slots=True)
class SectionCode:
    """The code that runs at one rate. Only that of the element section returns values."""

    rate: Rate
    code: tuple[Instruction, ...]


@dataclass(frozen=True)
class Bytecode:
    """A kernel for the stack machine. `locals` are those of the kernel, then those of single sections for values that
    are used several times."""

    kernel: Kernel
    sections: tuple[SectionCode, ...]
    locals: tuple[Allocation, ...]

    @cached_property
    def codes(self) -> Mapping[Rate, tuple[Instruction, ...]]:
        """The code of each section."""
        return {section.rate: section.code for section in self.sections}

    def code(self, rate: Rate) -> tuple[Instruction, ...]:
        """The code of a section; empty if the kernel has no such section."""
        return self.codes.get(rate, ())

    def walk(self) -> Iterator[Instruction]:
        """Every instruction."""
        for section in self.sections:
            yield from section.code


def assemble(kernel: Kernel, opened: bool = False) -> Bytecode:
    """The bytecode of a kernel. If it is `opened`, it serves kernels with other numbers, too."""
    allocations, numbers = list(kernel.locals), None if opened else kernel.numbers
    sections = [
        SectionCode(each.rate, _SectionAssembler(each, allocations, numbers).code()) for each in kernel.sections
    ]
    return Bytecode(kernel, tuple(sections), tuple(allocations))


# The instruction of each row that is an operation of its own.
_OPERATIONS: Mapping[str, Instruction] = {row.name: opcode_of(row) for row in OPS.values() if row.expand is None}

# The instructions for structural operations, whose operands are the attributes of the values.
_STRUCTURAL = {
    "const": "PUSH", "u32": "PUSH_BITS", "loop_index": "LOAD_INDEX", "loop_value": "LOAD_CARRIED",
    "state": "LOAD_STATE", "sample": "SAMPLE_STATE", "picture": "SAMPLE_PICTURE",
    "fetch": "FETCH",
}  # fmt: skip

_GIVEN = {"uniform": "LOAD_UNIFORM", "coord": "LOAD_COORD", "local": "LOAD_LOCAL"}

# A task of the assembler: to load or compute a value, to write the body of a loop, or to write an instruction.
_Task: TypeAlias = "Instruction | Node | LoopBody"


class _SectionAssembler:
    """Assembles one section. Tasks are kept in a list and done from its end, not by recursion: values depend on each
    other too deeply for Python's stack."""

    def __init__(self, section: Section, allocations: list[Allocation], given: Sequence[float] | None) -> None:
        self._section = section
        self._given = given
        """The numbers of the kernel; None if the code loads them."""
        self._allocations = allocations
        self._numbers: dict[Node, int] = {}
        """The locals that hold values, from when their code is planned."""
        self._read = {node: number for number, node in section.locals.items()}
        self._shared, self._used = _shared(section)

    def code(self) -> tuple[Instruction, ...]:
        section = self._section
        code = self._run(self._statements(section.nodes))
        rest: list[_Task] = []
        for number, node in section.locals.items():
            if self._numbers.get(node) != number:
                rest += [node, Instruction("STORE_LOCAL", number)]
        for store in section.stores:
            rest += [store.value, Instruction("STORE_STATE", store.place)]
        rest += section.outputs
        if section.rate == Rate.ELEMENT:
            rest.append(Instruction("RETURN"))
        return tuple(code + self._run(rest))

    def _run(self, tasks: list[_Task]) -> list[Instruction]:
        code: list[Instruction] = []
        todo = tasks[::-1]
        while todo:
            task = todo.pop()
            if isinstance(task, Instruction):
                code.append(task)
            elif isinstance(task, LoopBody):
                todo.append(Instruction("NEXT", LoopShape(task.level, len(task.carried))))
                todo += task.following[::-1]
                todo += self._statements(task.nodes)[::-1]
            elif task in self._numbers:
                code.append(Instruction("LOAD_LOCAL", self._numbers[task]))
            else:
                todo += self._computed(task)[::-1]
        return code

    def _statements(self, nodes: Sequence[Node]) -> list[_Task]:
        """The values that have to be computed before their users. All others are computed where they are used."""
        tasks: list[_Task] = []
        results: dict[Node, dict[int, Node]] = {}
        for node in nodes:
            if node.op == "loop_out" and node.args[0] in self._shared and node in self._used:
                results.setdefault(node.args[0], {})[node.attr] = node
        for node in nodes:
            if node.op == "loop" and node in self._shared:
                tasks += self._loop(node)
                found = results.get(node, {})
                for k in reversed(range(len(node.attr.carried))):
                    tasks.append(self._store(found[k]) if k in found else Instruction("DROP"))
            elif node in self._shared and not (node.op == "loop_out" and node.args[0] in self._shared):
                tasks += [*self._computed(node), self._store(node)]
        return tasks

    def _store(self, node: Node) -> Instruction:
        number = self._read.get(node)
        if number is None:
            note = self._section.notes.get(node)
            self._allocations.append(Allocation(note.name if note else node.op, self._section.rate, node.kind))
            number = len(self._allocations) - 1
        self._numbers[node] = number
        return Instruction("STORE_LOCAL", number)

    def _computed(self, node: Node) -> list[_Task]:
        """The code that computes a value."""
        if node.op == "loop_out":
            return self._loop(node.args[0])
        if node.attr == IMPLIED:
            return [node.args[0]]
        return [*node.args, self._instruction(node)]

    def _loop(self, loop: Node) -> list[_Task]:
        body: LoopBody = loop.attr
        return [*loop.args, Instruction("LOOP", LoopShape(body.level, len(body.carried))), body]

    def _instruction(self, node: Node) -> Instruction:
        if node.op in _OPERATIONS:
            return _OPERATIONS[node.op]
        if node.op in _STRUCTURAL:
            return Instruction(_STRUCTURAL[node.op], node.attr)
        match node.attr:
            case Scalar("number", int(place)):
                given = self._given
                return Instruction("LOAD_NUMBER", place) if given is None else Instruction("PUSH", given[place])
            case Scalar(source, key) | Line(source, key):
                return Instruction(_GIVEN[source], key)
            case StrandRef(instance, output):
                return Instruction("LOAD_STRAND", StrandCall(instance, output, len(node.args)))
        raise TypeError(f"no instruction computes {node.op}")


_ALONE = LEAVES | {"loop_value", "loop_index"}
"""Operations that cost no more than loading a local."""


def _shared(section: Section) -> tuple[set[Node], set[Node]]:
    """The values that need a local, and all values that are used. A local is needed for a value that is used more than
    once, in the body of a loop that does not compute it, or by other sections; and for a loop without exactly one
    result."""
    shared = {node for node in section.locals.values() if node.op not in _ALONE}
    homes: dict[Node, LoopBody | None] = {}
    used: set[Node] = set()

    def use(nodes: Iterable[Node], place: LoopBody | None) -> None:
        for node in nodes:
            if node.op in _ALONE:
                continue
            if node in used or homes[node] is not place:
                shared.add(node)
            used.add(node)

    def walk(nodes: Iterable[Node], body: LoopBody | None) -> None:
        for node in nodes:
            homes[node] = body
            if node.op != "loop_out":
                use(node.args, body)
            if node.op == "loop":
                walk(node.attr.nodes, node.attr)
                use(node.attr.following, node.attr)

    walk(section.nodes, None)
    use([*section.outputs, *(store.value for store in section.stores)], None)
    for node in section.walk():
        if node.op == "loop" and len(node.attr.carried) != 1:
            shared.add(node)
        elif node.op == "loop_out" and node in shared:
            shared.add(node.args[0])
    return shared, used | set(section.locals.values())


# Kernels as text, for `--dump-bytecode`.

_WHEN = {
    Rate.CONSTANT: "once, when the kernel is loaded",
    Rate.FRAME: "once a frame",
    Rate.COLUMN: "once a column: varies with x only",
    Rate.ROW: "once a row: varies with y only",
    Rate.ELEMENT: "at every element",
}


def stack_depth(bytecode: Bytecode, code: Iterable[Instruction]) -> int:
    """The greatest number of values on the stack."""
    depth = most = 0
    for instruction in code:
        pops, pushes = effect(instruction, bytecode.locals)
        depth += len(pushes) - len(pops)
        most = max(most, depth)
    return most


def disassemble(kernel: Kernel, shape: tuple[int, int] = (720, 1280)) -> str:
    """The whole kernel as text: what it refers to, the size of its locals for a picture of this shape (height, width),
    and each section with its code."""
    bytecode = assemble(kernel)
    lines = [f"kernel {kernel.name} · {kernel.context} · {kernel.sweep} → {', '.join(kernel.outputs)}"]
    lines += _inputs(kernel)
    lines += _locals(bytecode, shape)
    for section in bytecode.sections:
        depth = stack_depth(bytecode, section.code)
        lines += ["", f"{section.rate.title} section · {_WHEN[section.rate]} · stack {depth}"]
        lines += _code(bytecode, section)
    return "\n".join(lines) + "\n"


def instruction_text(instruction: Instruction) -> str:
    """One instruction as a listing shows it: `PUSH 5`, `LOAD_STATE visual/trail/prev/0[0]`."""
    match instruction.operand:
        case None:
            return instruction.op
        case float(value):
            operand = number_text(value)
        case SlotPlane(name, plane) | PicturePlane(name, plane):
            operand = f"{name}[{plane}]"
        case StrandCall(instance, output, count):
            operand = f"{instance}@{output} {count}"
        case LoopShape(level, carried):
            operand = f"loop{level} {carried}"
        case LoopValue(level, index):
            operand = f"loop{level}.{index}"
        case int(value) if instruction.op == "PUSH_BITS":
            operand = f"0x{value:08x}"
        case int(level) if instruction.op == "LOAD_INDEX":
            operand = f"loop{level}"
        case other:
            operand = str(other)
    return f"{instruction.op} {operand}"


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
    for slot in kernel.slots:
        what = (f"image of level {slot.level}" if slot.level else "image") if slot.image else "number"
        reach = f"{slot.depth} back" if slot.outlives else "of this tick"
        yield f"state: {slot.key} · {slot.kind} · {slot.planes} × {what} · {reach}"
    if kernel.remembers and kernel.sweep == "grid" and kernel.tick != "never":
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
