"""Reads what a kernel computes at every element into one graph, with what the patch calls its values.

What changes by column or by row is computed at every element here: a graphics card would gain nothing by tables of it.
The constant and the frame section are computed by whoever launches, in double precision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from weft.codegen.base import Allocation, Instruction, Kernel, Note, Section
from weft.codegen.clike.asking import Asking, askings
from weft.codegen.clike.shader import UnsuitableError
from weft.codegen.native.nodes import Body, Graph, Node, Store
from weft.codegen.native.reader import read
from weft.codegen.opcodes import row_of
from weft.ir.rates import Rate
from weft.ops.spec import ValueType

# The sections that become one, operands first.
_MERGED = (Rate.COLUMN, Rate.ROW, Rate.ELEMENT)


@dataclass(frozen=True, slots=True)
class Program:
    """What is computed at every element: the nodes in order, and what the patch calls them (`notes`). `once` has what
    the locals are that are computed once a launch, by their numbers, and `given` their names."""

    nodes: tuple[Node, ...]
    outputs: tuple[Node, ...]
    stores: tuple[Store, ...]
    notes: dict[Node, Note] = field(default_factory=dict)
    given: dict[int, Note] = field(default_factory=dict)
    once: dict[int, Node] = field(default_factory=dict)

    @property
    def roots(self) -> tuple[Node, ...]:
        return (*self.outputs, *(store.value for store in self.stores))


def read_program(kernel: Kernel) -> Program:
    """The program of a kernel. Raises UnsuitableError if it needs what no such program has."""
    if kernel.tick == "element" and kernel.sweep == "grid":
        raise UnsuitableError("each of its values needs the one before")
    once = read(kernel, Rate.FRAME, read(kernel, Rate.CONSTANT).locals).locals
    kernel, noted = _with_named_locals(kernel)
    merged = _merged(kernel)
    for strand, asking in zip(merged.strands, merged.askings, strict=True):
        strand.op, strand.args, strand.attr = "asked", (), asking.asked
    notes: dict[Node, Note] = {}
    for number, note in noted.items():
        if number in merged.known:
            notes.setdefault(merged.known[number], note)
    given = {number: note for number, note in noted.items() if number not in merged.known}
    nodes = tuple(node for node in merged.nodes if node in merged.used)
    return Program(nodes, merged.last.outputs, merged.last.stores, notes, given, once)


def strands_of(kernel: Kernel) -> list[Asking]:
    """What has to be asked for before the program of a kernel runs, by the numbers that the program has for it. Raises
    UnsuitableError for what can only be asked for while it runs."""
    return _merged(kernel).askings if kernel.strands else []


@dataclass(frozen=True, slots=True)
class _Merged:
    """The sections that become one: their nodes, those that the program needs, the values of locals, and the graph of
    the last of them. `askings` belong to the `strands` that the program needs."""

    nodes: list[Node]
    used: set[Node]
    known: dict[int, Node]
    last: Graph
    strands: list[Node]
    askings: list[Asking]


def _merged(kernel: Kernel) -> _Merged:
    known: dict[int, Node] = {}
    nodes: list[Node] = []
    for rate in _MERGED:
        graph = read(kernel, rate, known)
        nodes += graph.nodes
        known.update(graph.locals)
    used = _needed((*graph.outputs, *(store.value for store in graph.stores)))
    strands = [node for node in nodes if node.op == "strand" and node in used]
    return _Merged(nodes, used, known, graph, strands, askings(nodes, used))


def _needed(roots: Iterable[Node]) -> set[Node]:
    """All nodes that these are made of, those of loops included; but of strands of other subgraphs nothing more: who
    asks for them computes where."""
    found: set[Node] = set()
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node in found:
            continue
        found.add(node)
        if node.op != "strand":
            todo += node.args
        if isinstance(node.attr, Body) and node.op == "loop":
            todo += node.attr.following
    return found


def with_bodies(nodes: Iterable[Node]) -> Iterator[Node]:
    """These nodes and those of their loops."""
    for node in nodes:
        yield node
        if node.op == "loop":
            yield from with_bodies(node.attr.nodes)


# --- names --------------------------------------------------------------------------------------------------------


def _with_named_locals(kernel: Kernel) -> tuple[Kernel, dict[int, Note]]:
    """The kernel with every value that has a name in a local, so that it can be found in the graph; and the notes by
    these locals."""
    allocations = list(kernel.locals)
    noted: dict[int, Note] = {}
    sections = []
    for section in kernel.sections:
        kept = _named_section(section, allocations, noted) if section.rate in _MERGED else section
        if section.rate not in _MERGED:
            noted.update(_stored(section.code, section.notes))
        sections.append(kept)
    return replace(kernel, sections=tuple(sections), locals=tuple(allocations)), noted


def _stored(code: Sequence[Instruction], notes: Iterable[Note]) -> Iterator[tuple[int, Note]]:
    """The notes on what is stored, by the numbers of the locals."""
    for note in notes:
        op, operand = code[note.at]
        if op == "STORE_LOCAL" and isinstance(operand, int):
            yield operand, note


def _named_section(section: Section, allocations: list[Allocation], noted: dict[int, Note]) -> Section:
    noted.update(_stored(section.code, section.notes))
    by_place = {note.at: note for note in section.notes if section.code[note.at].op != "STORE_LOCAL"}
    code: list[Instruction] = []
    for at, instruction in enumerate(section.code):
        code.append(instruction)
        note = by_place.get(at)
        if note is not None:
            number = len(allocations)
            allocations.append(Allocation(note.name, section.rate, _type_left_by(instruction)))
            noted[number] = note
            code += [Instruction("STORE_LOCAL", number), Instruction("LOAD_LOCAL", number)]
    return Section(section.rate, tuple(code))


def _type_left_by(instruction: Instruction) -> ValueType:
    row = row_of(*instruction)
    return row.gives if row is not None else "real"
