"""Reads what a kernel computes at every element into one graph, with what the patch calls its values.

What changes by column or by row is computed at every element here: a graphics card would gain nothing by tables of it.
The constant and the frame section are computed by whoever launches, in double precision.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from weft.codegen.base import Kernel
from weft.codegen.clike.asking import ReadSite, read_sites
from weft.codegen.clike.shader import UnsuitableError
from weft.codegen.values import Node, Note, Rewriter, Section, Store, joined
from weft.ir.rates import Rate

# The sections that become one, operands first.
_MERGED = (Rate.COLUMN, Rate.ROW, Rate.ELEMENT)
_ONCE = (Rate.CONSTANT, Rate.FRAME)


@dataclass(frozen=True, slots=True)
class ElementProgram:
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


def read_program(kernel: Kernel) -> ElementProgram:
    """The program of a kernel. Raises UnsuitableError if it needs what no such program has."""
    if kernel.tick == "element" and kernel.sweep == "grid":
        raise UnsuitableError("each of its values needs the one before")
    once = joined(Rate.FRAME, map(kernel.section, _ONCE))
    merged, used = _merged(kernel)
    strands = [node for node in merged.nodes if node.op == "strand" and node in used]
    asked = {
        strand: Node("asked", (), "real", asking.asked)
        for strand, asking in zip(strands, read_sites(merged.nodes, used), strict=True)
    }
    rewriter = Rewriter(asked)
    merged = rewriter.section(merged) if asked else merged
    used = {rewriter.of(node) for node in used}
    given = {number: once.notes[node] for number, node in once.locals.items() if node in once.notes}
    nodes = tuple(node for node in merged.nodes if node in used)
    return ElementProgram(nodes, merged.outputs, merged.stores, dict(merged.notes), given, dict(once.locals))


def strands_of(kernel: Kernel) -> list[ReadSite]:
    """What has to be asked for before the program of a kernel runs, by the numbers that the program has for it. Raises
    UnsuitableError for what can only be asked for while it runs."""
    if not kernel.strands:
        return []
    merged, used = _merged(kernel)
    return read_sites(merged.nodes, used)


def _merged(kernel: Kernel) -> tuple[Section, set[Node]]:
    """The sections that become one, and those of its values that the program needs."""
    merged = joined(Rate.ELEMENT, map(kernel.section, _MERGED))
    return merged, _needed((*merged.outputs, *(store.value for store in merged.stores)))


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
        if node.op == "loop":
            todo += node.attr.following
    return found
