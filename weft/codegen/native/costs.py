"""Rough costs of values, in additions: for what is worth a branch, or another thread."""

from __future__ import annotations

from collections.abc import Iterable

from weft.codegen.base import LOOP_STEPS
from weft.codegen.values import LoopBody, Node
from weft.ops import OPS, ieee

# What is not in the table of operators and builtins.
_COSTS = {"picture": 40, "sample": 40, "state": 4}

# The steps of a loop whose bounds are not known.
_SOME_STEPS = 16


def cost(node: Node) -> int:
    """What one value costs, a loop with all its steps."""
    if node.op in OPS:
        return OPS[node.op].cost
    if node.op == "loop" and isinstance(node.attr, LoopBody):
        return _steps(node) * costs(node.attr.nodes)
    return _COSTS.get(node.op, 1)


def costs(nodes: Iterable[Node]) -> int:
    return sum(map(cost, nodes))


def _steps(loop: Node) -> int:
    first, last = loop.args[:2]
    if first.op == last.op == "const":
        return int(min(ieee.steps(first.attr, last.attr), LOOP_STEPS))
    return _SOME_STEPS
