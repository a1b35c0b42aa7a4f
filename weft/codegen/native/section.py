"""Writes the values of a graph in an order in which each is computed no more often than it is needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from weft.codegen.base import Kernel
from weft.codegen.native.arms import Arm, arms
from weft.codegen.native.loops import write_loop
from weft.codegen.native.memory import write_picture, write_sample, write_state
from weft.codegen.native.nodes import Body, Node
from weft.codegen.native.types import Value
from weft.codegen.native.writer import Writer
from weft.ops import OPS
from weft.ops.spec import OpSpec


def write_nodes(w: Writer, kernel: Kernel, nodes: Sequence[Node], roots: Iterable[Node]) -> None:
    """Writes what the roots need of these nodes, whose operands stand before their users."""
    _Stretch(w, kernel, nodes, roots).write(None)


class _Stretch:
    """Nodes that are written together: a section, or the body of a loop."""

    def __init__(self, w: Writer, kernel: Kernel, nodes: Sequence[Node], roots: Iterable[Node]) -> None:
        self._w = w
        self._kernel = kernel
        self._by_arm: defaultdict[Arm | None, list[Node]] = defaultdict(list)
        self._arms: dict[tuple[Node, int], Arm] = {}
        homes = arms(nodes, roots)
        for node in nodes:
            if node in homes:
                arm = homes[node]
                self._by_arm[arm].append(node)
                if arm is not None:
                    self._arms[arm.choice, arm.side] = arm
        self._choices = {choice for choice, _ in self._arms}

    def write(self, arm: Arm | None) -> None:
        """Writes what is computed in an arm, or on every way."""
        for node in self._by_arm[arm]:
            if node in self._choices:
                self._w.keep(node, self._choice(node))
            else:
                self._node(node)

    def _node(self, node: Node) -> None:
        w = self._w
        row = OPS.get(node.op)
        if row is not None:
            w.keep(node, write_row(w, row, [w.value(arg) for arg in node.args]))
            return
        match node.op:
            case "loop":
                write_loop(w, node, self._body)
            case "result":
                w.keep(node, w.carried(node))
            case "state":
                w.keep(node, write_state(w, self._kernel, node))
            case "sample":
                w.keep(node, write_sample(w, self._kernel, node))
            case "picture":
                w.keep(node, write_picture(w, node))

    def _body(self, body: Body) -> None:
        write_nodes(self._w, self._kernel, body.nodes, body.following)

    def _choice(self, node: Node) -> Value:
        """A choice that is the same in all lanes: one of its sides is not computed."""
        w = self._w
        condition = w.first(w.value(node.args[0]))
        number = w.name("").lstrip("%")
        labels = {1: f"then{number}", 2: f"else{number}"}
        behind = f"chosen{number}"
        w.branch(condition, labels[1], labels[2])
        ways = []
        for side, label in labels.items():
            w.label(label)
            with w.scope():
                arm = self._arms.get((node, side))
                if arm is not None:
                    self.write(arm)
                ways.append(f"[ {w.value(node.args[side]).text}, %{w.block} ]")
            w.jump(behind)
        w.label(behind)
        return Value(w.put(f"phi {w.type(node.kind)} {', '.join(ways)}"), node.kind)


def write_row(w: Writer, row: OpSpec, args: Sequence[Value]) -> Value:
    """A row of the table of operators and builtins, applied."""
    if row.native is None:
        raise TypeError(f"{row.name} has no native form")
    made: Value = getattr(w, row.native)(*args) if isinstance(row.native, str) else row.native(w, *args)
    return made
