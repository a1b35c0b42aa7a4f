"""Finds sines and cosines of half turns whose argument grows evenly with the time: of these, each vector of a chunk
follows from the two before it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from weft.codegen.native.graph import Graph
from weft.codegen.values import Line, LoopBody, Node, Rewriter, needed
from weft.ir.rates import Rate

TIME = Line("coord", "abstime", Rate.ELEMENT, "real")
"""The time of each sample."""

_ROWS = ("sinpi", "cospi")

_Part: TypeAlias = "float | Node"
"""A number that is the same at every sample: a constant, or a node."""


class _Linear(NamedTuple):
    """`slope · time + offset`."""

    slope: _Part
    offset: _Part


# How deep sums and products are taken apart.
_DEPTH = 32


class Waves:
    """Puts waves in the place of sines and cosines, and copies what is made of them."""

    def __init__(self, graph: Graph) -> None:
        self._varying = set(graph.varying)
        self._rewriter = Rewriter()
        self._reader = _LinearReader(self._varying)

    def of(self, node: Node) -> Node:
        """What is in the place of a value."""
        return self._rewriter.of(node)

    def all_of(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return self._rewriter.all_of(nodes)

    def before(self, node: Node, may_change: bool) -> list[Node]:
        """A value, as a wave if it may and can be one, and before it what it then needs."""
        (made,) = self._rewriter.copied([node])
        if node not in self._varying:
            return [made]
        self._varying.add(made)
        if node.op not in _ROWS or not may_change:
            return [made]
        found = self._reader.read(made.args[0])
        nodes = self._reader.taken()
        if found is not None and found.slope != 0.0:
            made = Node("wave", (_node(found.slope), _node(found.offset)), "real", node.op)
            self._rewriter.new[node] = made
            self._varying.add(made)
        return [*nodes, made]

    def in_steps(self, loop: Node) -> Node:
        """A loop, with waves in its body."""
        body: LoopBody = loop.attr
        outside, self._reader = self._reader, _LinearReader(self._varying)
        nodes = [each for node in body.nodes for each in self.before(node, may_change=True)]
        self._reader = outside
        following = self.all_of(body.following)
        used = needed(following)
        kept = tuple([node for node in nodes if node in used])
        changed = LoopBody(body.level, body.nested, body.outermost, kept, following, body.carried, body.index)
        made = self._rewriter.new[loop] = Node("loop", self.all_of(loop.args), loop.kind, changed)
        return made


@dataclass(slots=True)
class _LinearReader:
    """Reads values as linear in the time."""

    _varying: Set[Node]
    _linear: dict[Node, _Linear | None] = field(default_factory=dict)
    _made: list[Node] = field(default_factory=list)

    def taken(self) -> list[Node]:
        """The nodes that were made since this was asked last."""
        made, self._made = self._made, []
        return made

    def read(self, node: Node, depth: int = _DEPTH) -> _Linear | None:
        if node not in self._linear:
            self._linear[node] = self._linear_of(node, depth) if depth else None
        return self._linear[node]

    def _linear_of(self, node: Node, depth: int) -> _Linear | None:
        if node.op == "line" and node.attr == TIME:
            return _Linear(1.0, 0.0)
        if node not in self._varying:
            return _Linear(0.0, node.attr if node.op == "const" else node)
        if node.op not in ("add", "sub", "neg", "mul", "div"):
            return None
        parts = [self.read(arg, depth - 1) for arg in node.args]
        match node.op, parts:
            case (("add" | "sub"), [_Linear() as a, _Linear() as b]):
                return _Linear(self._of(node.op, a.slope, b.slope), self._of(node.op, a.offset, b.offset))
            case "neg", [_Linear() as a]:
                return _Linear(self._of("mul", a.slope, -1.0), self._of("mul", a.offset, -1.0))
            case "mul", [_Linear() as a, _Linear(0.0, factor)]:
                return _Linear(self._of("mul", a.slope, factor), self._of("mul", a.offset, factor))
            case "mul", [_Linear(0.0, factor), _Linear() as b]:
                return _Linear(self._of("mul", b.slope, factor), self._of("mul", b.offset, factor))
            case "div", [_Linear() as a, _Linear(0.0, divisor)]:
                return _Linear(self._of("div", a.slope, divisor), self._of("div", a.offset, divisor))
        return None

    def _of(self, op: str, a: _Part, b: _Part) -> _Part:
        """A sum, difference, product or quotient of what is the same at every sample."""
        match op, a, b:
            case (("add" | "sub"), _, 0.0):
                return a
            case "add", 0.0, _:
                return b
            case (("mul" | "div"), 0.0, _):
                return 0.0
            case "mul", _, 0.0:
                return 0.0
            case (("mul" | "div"), _, 1.0):
                return a
            case "mul", 1.0, _:
                return b
            case "add", float(), float():
                return a + b
            case "sub", float(), float():
                return a - b
            case "mul", float(), float():
                return a * b
            case "div", float(), float() if b:
                return a / b
        made = Node(op, (_node(a), _node(b)), "real")
        self._made.append(made)
        return made


def _node(part: _Part) -> Node:
    return part if isinstance(part, Node) else Node("const", (), "real", part)
