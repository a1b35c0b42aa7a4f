"""Takes the element section of a sound apart for numpy: into values that it can compute for a block of samples at once,
and loops of feedback, which Python has to go through sample by sample.

A value that is made of itself, by way of what a slot remembers, is part of a loop of feedback. The others are not, even
if they are made of state: a delayed value is a row of values that are there already. Where a slot is read further back
than a block is long, what is stored is not made of what is read: so an echo takes no loop, but a filter, a phasor and
an envelope do. (Machine code has one stretch for all that is stored: a sample costs it little more than in vectors.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from weft.backends.memory import ticks_back
from weft.codegen.base import Kernel
from weft.codegen.native.graph import Graph
from weft.codegen.native.stretches import states
from weft.codegen.values import Node, operands


@dataclass(frozen=True, slots=True)
class FeedbackPart:
    """Values that are computed together, behind those of the parts before. In turn, they are those of one or several
    loops of feedback; else they stand in an order in which they can be computed."""

    in_turn: bool
    nodes: tuple[Node, ...]


def parts_of(kernel: Kernel, graph: Graph, block: int) -> list[FeedbackPart]:
    """The parts of an element section, in their order, for blocks of at most so many samples. What is the same at all
    samples is in none."""
    stored = {store.place: store.value for store in graph.stores}
    places = {node: at for at, node in enumerate(graph.nodes) if graph.changes(node)}

    def remembered(node: Node) -> Iterator[Node]:
        """What is stored within the block and read again for a value."""
        if not _is_far(kernel, node, block):
            yield from (stored[place] for place in states([node]))

    def needs(node: Node) -> Iterator[Node]:
        yield from (each for each in (*operands(node), *remembered(node)) if each in places)

    ranks: dict[Node, int] = {}
    parts: list[list[Node]] = []
    roots = [node for node in (*graph.outputs, *stored.values()) if node in places]
    for component in _components(roots, needs):
        rank = max((ranks[each] for node in component for each in needs(node) if each in ranks), default=0)
        rank += rank % 2 != _is_loop(component, needs)
        ranks.update(dict.fromkeys(component, rank))
        parts += [[] for _ in range(rank + 1 - len(parts))]
        parts[rank] += component
    for in_turn in parts[1::2]:
        in_turn.sort(key=places.__getitem__)
    return [FeedbackPart(bool(rank % 2), tuple(nodes)) for rank, nodes in enumerate(parts) if nodes]


def _is_far(kernel: Kernel, node: Node, block: int) -> bool:
    """Whether a value is one from before the block."""
    if node.op != "state" or node.args[0].op != "const":
        return False
    return ticks_back(node.args[0].attr, kernel.slot(node.attr.slot).depth) >= block


def _is_loop(component: list[Node], needs: Callable[[Node], Iterable[Node]]) -> bool:
    return len(component) > 1 or component[0] in needs(component[0])


def _components(roots: Iterable[Node], needs: Callable[[Node], Iterable[Node]]) -> Iterator[list[Node]]:
    """The nodes that roots need, in groups of those that need each other; each group behind those that it needs. It is
    Tarjan's algorithm."""
    numbers: dict[Node, int] = {}
    lowest: dict[Node, int] = {}
    """The lowest number of a node that can be reached, of those in no group yet."""
    pending: dict[Node, None] = {}
    todo: list[tuple[Node, Iterator[Node]]] = []

    def begin(node: Node) -> None:
        numbers[node] = lowest[node] = len(numbers)
        pending[node] = None
        todo.append((node, iter(needs(node))))

    for root in roots:
        if root not in numbers:
            begin(root)
        while todo:
            node, rest = todo[-1]
            other = next(rest, None)
            if other is None:
                todo.pop()
                if todo:
                    above = todo[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == numbers[node]:
                    yield _taken(pending, node)
            elif other not in numbers:
                begin(other)
            elif other in pending:
                lowest[node] = min(lowest[node], numbers[other])


def _taken(pending: dict[Node, None], first: Node) -> list[Node]:
    """Takes out a node and all behind it."""
    taken: list[Node] = []
    while first in pending:
        taken.append(pending.popitem()[0])
    return taken
