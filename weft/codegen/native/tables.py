"""Values that only the step of a loop decides, for a loop that always makes the same steps: computed beforehand."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.base import LOOP_STEPS
from weft.codegen.values import LoopBody, Node
from weft.ops import OPS, ieee

# What is worth a table: a function of C's library, or several others.
_WORTH_A_TABLE = 20


def tables(loop: Node, steady: Sequence[Node]) -> dict[Node, list[float]]:
    """For some of the values that are the same at every sample: what they are in each step."""
    first, last = loop.args[:2]
    body: LoopBody = loop.attr
    if first.op != "const" or last.op != "const" or not last.attr >= first.attr:
        return {}
    steps = int(min(ieee.steps(first.attr, last.attr), LOOP_STEPS))
    known: dict[Node, list[float]] = {}
    if body.index is not None:
        known[body.index] = [first.attr + step for step in range(steps)]
    costs: dict[Node, int] = {}
    for node in steady:
        row = OPS.get(node.op)
        operands = [_operand(arg, known, steps) for arg in node.args]
        if row is None or None in operands:
            continue
        known[node] = [row.fold(*args) for args in zip(*(each for each in operands if each is not None), strict=True)]
        costs[node] = row.cost + sum(costs.get(arg, 0) for arg in node.args)
    return {node: known[node] for node, cost in costs.items() if cost >= _WORTH_A_TABLE and node.kind == "real"}


def _operand(node: Node, known: dict[Node, list[float]], steps: int) -> list[float] | None:
    if node.op in ("const", "bits"):
        return [node.attr] * steps
    return known.get(node)
