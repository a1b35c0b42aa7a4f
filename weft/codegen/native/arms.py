"""Which values only one side of a choice needs that is the same in all lanes: these are computed behind a branch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from weft.codegen.native.costs import cost
from weft.codegen.values import LoopBody, Node

# What a branch has to save at least, in additions: below, computing both sides is as fast.
_WORTH_A_BRANCH = 24


@dataclass(eq=False, slots=True)
class ConditionalRegion:
    """One side of a choice (1: where its condition holds, 2: where not) within the arm around it."""

    choice: Node
    side: int
    around: ConditionalRegion | None
    depth: int
    cost: int = 0
    """Of what it alone needs."""


def conditional_regions(nodes: Sequence[Node], roots: Iterable[Node], varying: Set[Node]) -> dict[Node, ConditionalRegion | None]:
    """Where each of these nodes is computed that the roots need: on every way (None), or within an arm. The others are
    left out. Operands stand before their users; `varying` are the values that are not the same in all lanes."""
    homes: dict[Node, ConditionalRegion | None] = {}
    known: dict[tuple[Node, int], ConditionalRegion] = {}

    def use(node: Node, place: ConditionalRegion | None) -> None:
        homes[node] = _common(homes[node], place) if node in homes else place

    for root in roots:
        use(root, None)
    for node in reversed(nodes):
        if node not in homes:
            continue
        home = homes[node]
        branches = node.op == "select" and node.args[0] not in varying
        for at, arg in enumerate(node.args):
            place = home
            if branches and at:
                depth = home.depth + 1 if home else 0
                place = known[node, at] = ConditionalRegion(node, at, home, depth)
            use(arg, place)
        for needed in _needed_within(node):
            use(needed, home)
    return _settled(nodes, homes, known)


def _settled(
    nodes: Sequence[Node], homes: dict[Node, ConditionalRegion | None], known: dict[tuple[Node, int], ConditionalRegion]
) -> dict[Node, ConditionalRegion | None]:
    """Takes back the arms that are not worth a branch."""
    for node in nodes:
        arm = homes.get(node)
        while arm is not None:
            arm.cost += cost(node)
            arm = arm.around

    def settled(arm: ConditionalRegion | None) -> ConditionalRegion | None:
        while arm is not None and sum(known[arm.choice, side].cost for side in (1, 2)) < _WORTH_A_BRANCH:
            arm = arm.around
        return arm

    return {node: settled(homes[node]) for node in nodes if node in homes}


def _needed_within(node: Node) -> Iterator[Node]:
    """What the body of a loop uses, whoever has computed it."""
    if node.op == "loop" and isinstance(node.attr, LoopBody):
        for inner in node.attr.nodes:
            yield from inner.args
            yield from _needed_within(inner)
        yield from node.attr.following


def _common(a: ConditionalRegion | None, b: ConditionalRegion | None) -> ConditionalRegion | None:
    """The innermost arm around both."""
    while a is not b:
        if a is None or b is None:
            return None
        if a.depth >= b.depth:
            a = a.around
        else:
            b = b.around
    return a
