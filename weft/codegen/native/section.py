"""Writes the values of a graph in an order in which each is computed no more often than it is needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from weft.codegen.base import Kernel
from weft.codegen.native.conditional_regions import ConditionalRegion, conditional_regions
from weft.codegen.native.loops import write_loop
from weft.codegen.native.memory import write_picture, write_sample, write_state
from weft.codegen.native.types import DOUBLE, LlvmValue
from weft.codegen.native.writer import FunctionWriter
from weft.codegen.values import LoopBody, Node
from weft.ops import OPS
from weft.ops.spec import OpSpec


def write_nodes(w: FunctionWriter, kernel: Kernel, nodes: Sequence[Node], roots: Iterable[Node]) -> None:
    """Writes what the roots need of these nodes, whose operands stand before their users."""
    _BlockWriter(w, kernel, nodes, roots).write(None)


# What is the same in all lanes is computed in one and spread out again, if it costs more than so many additions: each
# lane of a function of C's library is a call.
_WORTH_A_LANE = 8


class _BlockWriter:
    """Nodes that are written together: a section, or the body of a loop."""

    def __init__(self, w: FunctionWriter, kernel: Kernel, nodes: Sequence[Node], roots: Iterable[Node]) -> None:
        self._w = w
        self._kernel = kernel
        self._by_arm: defaultdict[ConditionalRegion | None, list[Node]] = defaultdict(list)
        self._arms: dict[tuple[Node, int], ConditionalRegion] = {}
        homes = conditional_regions(nodes, roots, w.graph.varying)
        for node in nodes:
            if node in homes:
                arm = homes[node]
                self._by_arm[arm].append(node)
                if arm is not None:
                    self._arms[arm.choice, arm.side] = arm
        self._choices = {choice for choice, _ in self._arms}

    def write(self, arm: ConditionalRegion | None) -> None:
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
            args = [w.value(arg) for arg in node.args]
            alone = w.reals == DOUBLE and node not in w.graph.varying and row.cost >= _WORTH_A_LANE
            w.keep(node, _write_in_one_lane(w, row, args) if alone else write_row(w, row, args))
            return
        match node.op:
            case "loop":
                write_loop(w, node, self._body)
            case "loop_out":
                w.keep(node, w.carried(node))
            case "state":
                w.keep(node, write_state(w, self._kernel, node))
            case "sample":
                w.keep(node, write_sample(w, self._kernel, node))
            case "picture":
                w.keep(node, write_picture(w, node))

    def _body(self, body: LoopBody) -> None:
        write_nodes(self._w, self._kernel, body.nodes, body.following)

    def _choice(self, node: Node) -> LlvmValue:
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
        return LlvmValue(w.put(f"phi {w.type(node.kind)} {', '.join(ways)}"), node.kind)


def _write_in_one_lane(w: FunctionWriter, row: OpSpec, args: Sequence[LlvmValue]) -> LlvmValue:
    """A row whose value is the same in all lanes."""
    firsts = [w.first(arg) for arg in args]
    with w.narrow(1):
        numbers = [w.splat(first, arg.kind) for first, arg in zip(firsts, args, strict=True)]
        found = w.first(write_row(w, row, numbers))
    return w.splat(found, row.gives)


def write_row(w: FunctionWriter, row: OpSpec, args: Sequence[LlvmValue]) -> LlvmValue:
    """A row of the table of operators and builtins, applied in the writer's precision."""
    form = row.double if row.double is not None and w.reals == DOUBLE else row.native
    if form is None:
        raise TypeError(f"{row.name} has no native form")
    if not isinstance(form, str):
        made: LlvmValue = form(w, *args)
        return made
    found: LlvmValue = w.library(form, *args) if form is row.double else getattr(w, form)(*args)
    return found
