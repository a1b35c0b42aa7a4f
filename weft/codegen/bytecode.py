"""Assembles the values of a kernel to bytecode of the stack machine: for the reference machine, and for listings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from weft.codegen.base import Allocation, Kernel
from weft.codegen.opcodes import Instruction, StrandCall, opcode_of
from weft.codegen.values import IMPLIED, LEAVES, Line, LoopBody, Node, Scalar, Section
from weft.ir.expr import LoopShape, StrandRef
from weft.ir.rates import Rate
from weft.ops import OPS


@dataclass(frozen=True, slots=True)
class SectionCode:
    """The code that runs at one rate. Only that of the element section returns values."""

    rate: Rate
    code: tuple[Instruction, ...]


@dataclass(frozen=True)
class Bytecode:
    """A kernel for the stack machine. `locals` are those of the kernel, and after them those that one section uses for
    values that it needs several times."""

    kernel: Kernel
    sections: tuple[SectionCode, ...]
    locals: tuple[Allocation, ...]

    @cached_property
    def codes(self) -> Mapping[Rate, tuple[Instruction, ...]]:
        """The code of each section."""
        return {section.rate: section.code for section in self.sections}

    def code(self, rate: Rate) -> tuple[Instruction, ...]:
        """The code of a section; none where the kernel has no such section."""
        return self.codes.get(rate, ())

    def walk(self) -> Iterator[Instruction]:
        """Every instruction."""
        for section in self.sections:
            yield from section.code


def assemble(kernel: Kernel) -> Bytecode:
    """The bytecode of a kernel."""
    allocations = list(kernel.locals)
    sections = tuple(
        SectionCode(section.rate, _SectionAssembler(section, allocations).code()) for section in kernel.sections
    )
    return Bytecode(kernel, sections, tuple(allocations))


# The instruction of each row that is an operation of its own.
_OPERATIONS: Mapping[str, Instruction] = {row.name: opcode_of(row) for row in OPS.values() if row.expand is None}

_GIVEN = {"uniform": "LOAD_UNIFORM", "coord": "LOAD_COORD", "local": "LOAD_LOCAL"}


class _Computed(NamedTuple):
    """To do: the code that leaves a value on the stack, also where a local is to have it."""

    node: Node


class _Steps(NamedTuple):
    """To do: the code of a loop's body."""

    body: LoopBody


# A value stands for the code that leaves it on the stack.
_Task: TypeAlias = "Instruction | Node | _Computed | _Steps"


class _SectionAssembler:
    """Assembles one section. What is to do is kept in a list, not on Python's stack: values depend on each other
    deeply. It is done from the end of the list."""

    def __init__(self, section: Section, allocations: list[Allocation]) -> None:
        self._section = section
        self._allocations = allocations
        self._numbers: dict[Node, int] = {}
        """The locals that hold values, once their code is planned."""
        self._read = {node: number for number, node in section.locals.items()}
        self._shared, self._used = _shared(section)

    def code(self) -> tuple[Instruction, ...]:
        section = self._section
        code: list[Instruction] = []
        todo = self._statements(section.nodes)[::-1]
        self._run(todo, code)
        rest: list[_Task] = []
        for number, node in section.locals.items():
            if self._numbers.get(node) != number:
                rest += [node, Instruction("STORE_LOCAL", number)]
        for store in section.stores:
            rest += [store.value, Instruction("STORE_STATE", store.place)]
        rest += section.outputs
        if section.rate == Rate.ELEMENT:
            rest.append(Instruction("RETURN"))
        self._run(rest[::-1], code)
        return tuple(code)

    def _run(self, todo: list[_Task], code: list[Instruction]) -> None:
        while todo:
            task = todo.pop()
            if isinstance(task, Instruction):
                code.append(task)
            elif isinstance(task, Node):
                if task in self._numbers:
                    code.append(Instruction("LOAD_LOCAL", self._numbers[task]))
                else:
                    todo += self._computed(task)[::-1]
            elif isinstance(task, _Computed):
                todo += self._computed(task.node)[::-1]
            else:
                shape = LoopShape(task.body.level, len(task.body.carried))
                todo.append(Instruction("NEXT", shape))
                todo += task.body.following[::-1]
                todo += self._statements(task.body.nodes)[::-1]

    def _statements(self, nodes: Sequence[Node]) -> list[_Task]:
        """What has to be computed before others use it. The rest stands where it is used."""
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
                tasks += [_Computed(node), self._store(node)]
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
        return [*loop.args, Instruction("LOOP", LoopShape(body.level, len(body.carried))), _Steps(body)]

    def _instruction(self, node: Node) -> Instruction:
        found = _OPERATIONS.get(node.op)
        if found is not None:
            return found
        match node.op, node.attr:
            case "const", value:
                return Instruction("PUSH", value)
            case "bits", value:
                return Instruction("PUSH_BITS", value)
            case ("scalar" | "line"), Scalar(source, key) | Line(source, key):
                return Instruction(_GIVEN[source], key)
            case "loop_index", level:
                return Instruction("LOAD_INDEX", level)
            case "loop_value", value:
                return Instruction("LOAD_CARRIED", value)
            case "state", place:
                return Instruction("LOAD_STATE", place)
            case "sample", place:
                return Instruction("SAMPLE_STATE", place)
            case "picture", place:
                return Instruction("SAMPLE_PICTURE", place)
            case "strand", StrandRef(instance, output):
                return Instruction("LOAD_STRAND", StrandCall(instance, output, len(node.args)))
        raise TypeError(f"no instruction computes {node.op}")


_ALONE = LEAVES | {"loop_value", "loop_index"}
"""What is as cheap to push as a local is to load."""


def _shared(section: Section) -> tuple[set[Node], set[Node]]:
    """The values that are used more than once, in the body of a loop that does not compute them, or by other sections;
    and the loops that leave several. With them, all values that are used."""
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
