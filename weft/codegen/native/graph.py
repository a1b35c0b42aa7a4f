"""What machine code knows of a section besides its values: which of them are the same in all lanes of a vector."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from weft.codegen.base import Kernel
from weft.codegen.values import LoopBody, Node, Section, Store
from weft.ir.rates import Rate


@dataclass(frozen=True, slots=True)
class Graph:
    """A section with its lanes. `varying` are the values that may differ between the lanes of a vector, and `masked`
    the loops that lanes may leave at different steps."""

    nodes: Sequence[Node]
    outputs: Sequence[Node]
    stores: Sequence[Store]
    varying: Set[Node]
    masked: Set[LoopBody]

    def changes(self, node: Node) -> bool:
        """Whether a value, or what a loop carries, differs between lanes."""
        if node.op == "loop":
            return any(carried in self.varying for carried in node.attr.carried)
        return node in self.varying


NO_GRAPH = Graph((), (), (), frozenset(), frozenset())


def graph_of(kernel: Kernel, section: Section) -> Graph:
    """A section of a kernel, which may be several as one, with its lanes."""
    lanes = _Lanes(kernel, section.rate)
    lanes.mark(section.nodes)
    lanes.mark_leaves((*section.outputs, *(store.value for store in section.stores), *section.locals.values()))
    return Graph(section.nodes, section.outputs, section.stores, lanes.varying, lanes.masked)


class _Lanes:
    """Finds out what varies. Neighbours in a vector are neighbours in the section's own direction: in a picture, along
    the row."""

    def __init__(self, kernel: Kernel, rate: Rate) -> None:
        self.varying: set[Node] = set()
        self.masked: set[LoopBody] = set()
        self._rates = (rate if rate != Rate.ELEMENT else Rate.COLUMN, Rate.ELEMENT)
        # From sample to sample, numbers change as well.
        self._slots = {slot.key for slot in kernel.slots if slot.image or kernel.tick == "element"}

    def mark_leaves(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if node.op == "line" and node.attr.rate in self._rates:
                self.varying.add(node)

    def mark(self, nodes: Iterable[Node]) -> None:
        varying = self.varying
        for node in nodes:
            if node.op == "loop":
                self._mark_loop(node)
                # Lanes that leave one loop of a nest early have steps left for the others.
                if node.attr.outermost and (node.attr in self.masked or self._has_masked(node.attr.nodes)):
                    self._mask(node)
                    self._mark_loop(node)
            elif node.op == "loop_out":
                # A loop is computed as a whole, so all that it leaves is there where the loop runs, and nowhere before.
                if not varying.isdisjoint(node.args[0].attr.carried):
                    varying.add(node)
            else:
                self.mark_leaves(node.args)
                is_past = node.op == "state" and node.attr.slot in self._slots
                if is_past or node.op == "wave" or not varying.isdisjoint(node.args):
                    varying.add(node)

    def _mark_loop(self, node: Node) -> None:
        """A carried value varies if its start or what follows it does, so the body is looked at until nothing
        changes."""
        body: LoopBody = node.attr
        varying, bounds, starts = self.varying, node.args[:2], node.args[2:]
        self.mark_leaves((*node.args, *body.following))
        if not varying.isdisjoint(bounds):
            self.masked.add(body)
        if body.index is not None and bounds[0] in varying:
            varying.add(body.index)
        entering: Sequence[Node] = starts
        while True:
            for carried, value in zip(body.carried, entering, strict=True):
                if value in varying or body in self.masked:
                    varying.add(carried)
            self.mark(body.nodes)
            entering = body.following
            if all(c in varying or value not in varying for c, value in zip(body.carried, entering, strict=True)):
                return

    def _has_masked(self, nodes: Iterable[Node]) -> bool:
        return any(n.op == "loop" and (n.attr in self.masked or self._has_masked(n.attr.nodes)) for n in nodes)

    def _mask(self, node: Node) -> None:
        self.masked.add(node.attr)
        for inner in node.attr.nodes:
            if inner.op == "loop":
                self._mask(inner)
