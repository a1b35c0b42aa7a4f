"""The code of a section as a graph of values, and whether each is the same in all lanes of a vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.ir.expr import LoopShape, SlotPlane
from weft.ops.spec import ValueType


@dataclass(eq=False, slots=True)
class Node:
    """One value. `op` is a row of the table of operators and builtins, or one of these:

    | op             | args           | attr          | is                                           |
    | -------------- | -------------- | ------------- | -------------------------------------------- |
    | `const` `bits` |                | number        | a constant                                   |
    | `scalar`       |                | Scalar        | a number given for the launch                |
    | `line`         |                | Line          | a number given for each column or row        |
    | `state`        | (k,)           | SlotPlane     | a slot k ticks ago                           |
    | `sample`       | (k, x, y)      | SlotPlane     | an image slot k ticks ago, sampled           |
    | `picture`      | (x, y)         | PicturePlane  | a picture, sampled                           |
    | `strand`       | coordinates    | StrandRef     | a strand of another subgraph                 |
    | `loop`         | bounds, starts | Body          | a loop; only `result` may use it             |
    | `result`       | (loop,)        | k             | the k-th carried value behind the loop       |
    | `index`        |                | Body          | the variable of the loop around it           |
    | `carried`      |                | (Body, k)     | the k-th carried value in this step          |
    | `wave`         | slope, offset  | row's name    | the row of `slope · time + offset`           |
    """

    op: str
    args: tuple[Node, ...]
    kind: ValueType
    attr: Any = None
    varies: bool = False
    """Whether it may differ between the lanes of a vector."""


@dataclass(eq=False, slots=True)
class Body:
    """The body of a loop: what it computes in each step, in order, and what it carries to the next."""

    shape: LoopShape
    nested: bool
    """Whether it is part of a nest of several loops."""
    outermost: bool
    nodes: list[Node] = field(default_factory=list)
    following: tuple[Node, ...] = ()
    index: Node | None = None
    carried: tuple[Node, ...] = ()
    masked: bool = False
    """Whether lanes may leave it at different steps."""


@dataclass(frozen=True, slots=True)
class Store:
    """What a slot will have been one tick ago, from the next tick on."""

    place: SlotPlane
    value: Node


@dataclass(frozen=True, slots=True)
class Graph:
    """A section: its values in an order in which they can be computed, what it returns, what it leaves for other
    sections (by the number of the local), and what it stores."""

    nodes: list[Node]
    outputs: tuple[Node, ...]
    locals: dict[int, Node]
    stores: tuple[Store, ...]


def mark_varying(nodes: Sequence[Node]) -> None:
    """Notes which values may differ between lanes. Leaves are marked already."""
    for node in nodes:
        if node.op == "loop":
            _mark_loop(node, node.attr)
            # Lanes that leave one loop of a nest early have steps left for the others.
            if node.attr.outermost and (node.attr.masked or _has_masked(node.attr.nodes)):
                _mask(node)
                _mark_loop(node, node.attr)
        elif node.op == "result":
            # A loop is computed as a whole, so all that it leaves is there where the loop runs, and nowhere before.
            node.varies = any(carried.varies for carried in node.args[0].attr.carried)
        else:
            node.varies = node.varies or any(arg.varies for arg in node.args)


def _mark_loop(node: Node, body: Body) -> None:
    """A carried value varies if its start or what follows it does, so the body is looked at until nothing changes."""
    bounds, starts = node.args[:2], node.args[2:]
    body.masked = body.masked or any(bound.varies for bound in bounds)
    if body.index is not None:
        body.index.varies = bounds[0].varies
    entering = starts
    while True:
        for carried, value in zip(body.carried, entering, strict=True):
            carried.varies = carried.varies or value.varies or body.masked
        mark_varying(body.nodes)
        entering = body.following
        if all(c.varies or not value.varies for c, value in zip(body.carried, entering, strict=True)):
            return


def _has_masked(nodes: Sequence[Node]) -> bool:
    return any(n.op == "loop" and (n.attr.masked or _has_masked(n.attr.nodes)) for n in nodes)


def _mask(node: Node) -> None:
    node.attr.masked = True
    for inner in node.attr.nodes:
        if inner.op == "loop":
            _mask(inner)
