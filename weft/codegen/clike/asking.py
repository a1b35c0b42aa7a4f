"""Strands of other subgraphs that a kernel reads at places of its own. A program cannot ask for them: whoever launches
it asks for all places at once, and the program finds the value of its element among the answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from weft.codegen.clike.shader import UnsuitableError
from weft.codegen.values import Node
from weft.graph.elaborate import short
from weft.ir.rates import Rate
from weft.names import StrandRef

# What can only be computed where programs run, and what the places are then at which a strand is read.
_BOUND: Mapping[str, str] = MappingProxyType({
    "state": "depends on what it remembers", "sample": "depends on what it remembers", "loop": "is found by a loop",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExternalRead:
    """A strand as a program is given it: the how manieth, and in which directions its values change (`Rate.COLUMN`,
    `Rate.ROW`; `Rate.ELEMENT` for points). There is a value for each place along these, row after row."""

    number: int
    strand: StrandRef
    over: frozenset[Rate]

    @property
    def key(self) -> str:
        """What it is bound by, for people as well."""
        return f"{self.number}: {short(self.strand)}"


@dataclass(frozen=True, slots=True)
class ReadSite:
    """A strand, and the coordinates it is read at, which `before` computes, operands first. Other strands may be read
    for that."""

    asked: ExternalRead
    coordinates: tuple[Node, ...]
    before: tuple[Node, ...]


def read_sites(nodes: Sequence[Node], used: Iterable[Node]) -> list[ReadSite]:
    """What is asked for before a program runs that is made of these nodes, and that uses these of them itself. Raises
    UnsuitableError for what can only be asked for while it runs."""
    wanted = set(used)
    for node in _in_loops(nodes):
        if node.op == "strand":
            raise UnsuitableError(f"it reads {short(node.attr)} in the steps of a loop")
    made: list[ReadSite] = []
    for node in nodes:
        if node.op == "strand" and node in wanted:
            parts = _parts(node)
            over = frozenset(part.attr.rate for part in parts if part.op == "line")
            before = tuple(part for part in nodes if part in parts)
            made.append(ReadSite(ExternalRead(len(made), node.attr, over), node.args, before))
    return made


def _parts(strand: Node) -> set[Node]:
    """All that the coordinates of a strand are made of. Raises UnsuitableError for what only a program computes."""
    found: set[Node] = set()
    todo = list(strand.args)
    while todo:
        part = todo.pop()
        if part in found:
            continue
        if part.op in _BOUND:
            raise UnsuitableError(f"the place at which it reads {short(strand.attr)} {_BOUND[part.op]}")
        found.add(part)
        todo += part.args
    return found


def _in_loops(nodes: Iterable[Node]) -> Iterator[Node]:
    """What the steps of loops compute."""
    for node in nodes:
        if node.op == "loop":
            yield from node.attr.nodes
            yield from _in_loops(node.attr.nodes)
