"""Loop partitions of the element section of a sound, and the waves in them.

The partitions run one after another over a chunk of samples. What does not depend on state comes first, in vectors.
What the state needs follows as a serial recurrence, sample by sample. What depends on state but is not needed for it
comes last, in vectors again. A loop whose bounds are the same at every sample is interchanged with the loop over the
samples: each of its steps runs over the whole chunk, so that what is the same at every sample is computed once a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from operator import add, mul, sub, truediv
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from weft.codegen.kernel import Kernel
from weft.codegen.native.dataflow import Graph
from weft.codegen.native.serial_parts import SerialParts, SerialReads, stateful
from weft.codegen.values import Line, LoopBody, Node, Rewriter, Section, Store, needed, operands
from weft.ir.rates import Rate

# Waves: sines and cosines of half turns whose argument is linear in the time. Each vector of a chunk of a wave follows
# from the two vectors before it.

TIME = Line("coord", "abstime", Rate.ELEMENT, "float")
"""The time of each sample."""

_ROWS = ("sinpi", "cospi")

_Part: TypeAlias = "float | Node"
"""A number that is the same at every sample: a constant or a node."""


class _Linear(NamedTuple):
    """`slope · time + offset`."""

    slope: _Part
    offset: _Part


_FOLDS = {"add": add, "sub": sub, "mul": mul, "div": truediv}


class Waves(Rewriter):
    """Replaces sines and cosines by waves, and copies the values that use them."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self._varying = set(graph.varying)
        self._reader = _LinearReader(self._varying)

    def rewritten(self, node: Node, may_change: bool) -> list[Node]:
        """A value, as a wave if it may change and can be one, and before it the new values that the wave needs."""
        (made,) = self.copied([node])
        if node not in self._varying:
            return [made]
        self._varying.add(made)
        if node.op not in _ROWS or not may_change:
            return [made]
        found = self._reader.read(made.args[0])
        nodes, self._reader.made = self._reader.made, []
        if found is not None and found.slope != 0.0:
            made = self.new[node] = Node("wave", (_node(found.slope), _node(found.offset)), "float", node.op)
            self._varying.add(made)
        return [*nodes, made]

    def in_steps(self, loop: Node) -> Node:
        """A loop, with waves in its body."""
        body: LoopBody = loop.attr
        outside, self._reader = self._reader, _LinearReader(self._varying)
        nodes = [each for node in body.nodes for each in self.rewritten(node, may_change=True)]
        self._reader = outside
        following = self.all_of(body.following)
        used = needed(following)
        changed = replace(body, nodes=tuple(node for node in nodes if node in used), following=following)
        made = self.new[loop] = Node("loop", self.all_of(loop.args), loop.kind, changed)
        return made


class _LinearReader:
    """Reads values as linear in the time. `made` are the nodes that were made for them."""

    def __init__(self, varying: Set[Node]) -> None:
        self.made: list[Node] = []
        self._varying = varying
        self._linear: dict[Node, _Linear | None] = {}

    def read(self, node: Node, depth: int = 32) -> _Linear | None:
        """A value as linear in the time; None if it is not, or if that takes more than `depth` sums and products."""
        if node not in self._linear:
            self._linear[node] = self._linear_of(node, depth) if depth else None
        return self._linear[node]

    def _linear_of(self, node: Node, depth: int) -> _Linear | None:
        if node.op == "line" and node.attr == TIME:
            return _Linear(1.0, 0.0)
        if node not in self._varying:
            return _Linear(0.0, node.attr if node.op == "const" else node)
        if node.op not in _FOLDS and node.op != "neg":
            return None
        match node.op, [self.read(arg, depth - 1) for arg in node.args]:
            case (("add" | "sub") as op, [_Linear() as a, _Linear() as b]):
                return _Linear(self._of(op, a.slope, b.slope), self._of(op, a.offset, b.offset))
            case "neg", [_Linear() as a]:
                return self._scaled("mul", a, -1.0)
            case ("mul", [_Linear() as a, _Linear(0.0, factor)]) | ("mul", [_Linear(0.0, factor), _Linear() as a]):
                return self._scaled("mul", a, factor)
            case "div", [_Linear() as a, _Linear(0.0, divisor)]:
                return self._scaled("div", a, divisor)
        return None

    def _scaled(self, op: str, linear: _Linear, factor: _Part) -> _Linear:
        return _Linear(self._of(op, linear.slope, factor), self._of(op, linear.offset, factor))

    def _of(self, op: str, a: _Part, b: _Part) -> _Part:
        """A sum, difference, product or quotient of two numbers that are the same at every sample."""
        match op, a, b:
            case (("mul" | "div"), 0.0, _) | ("mul", _, 0.0):
                return 0.0
            case (("add" | "sub"), _, 0.0) | (("mul" | "div"), _, 1.0):
                return a
            case ("add", 0.0, _) | ("mul", 1.0, _):
                return b
            case _, float(), float() if op != "div" or b:
                return float(_FOLDS[op](a, b))
        made = Node(op, (_node(a), _node(b)), "float")
        self.made.append(made)
        return made


def _node(part: _Part) -> Node:
    return part if isinstance(part, Node) else Node("const", (), "float", part)


# Partitioning.

_NOTHING: Mapping[Node, Node] = MappingProxyType({})


@dataclass(slots=True)
class LoopPartition:
    """One partition. `nodes` are computed at every sample; the values of `prologue` are the same at all samples. An
    interchanged partition is a single loop. `reads` are values of earlier partitions, and `writes` are the values that
    later partitions read."""

    way: Literal["vectors", "serial", "interchanged"]
    nodes: list[Node]
    prologue: list[Node] = field(default_factory=list)
    reads: list[Node] = field(default_factory=list)
    writes: list[Node] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    """The outputs that it stores."""


def loop_partitions(kernel: Kernel, graph: Graph) -> list[LoopPartition]:
    """The partitions of a section, in their order. Stored values are computed serially if they depend on state."""
    found = SerialParts(kernel, graph, SerialReads.OF_ALL)
    remembering = stateful(found.changing)
    serial = {node for part in found.parts if part.serial for node in part.nodes}
    # The results of a loop belong where it runs, whatever reads them.
    serial |= {node for node in found.changing if node.op == "loop_out" and node.args[0] in serial}
    parts = [
        *in_vectors(graph, [node for node in found.changing if node not in remembering]),
        LoopPartition("serial", [node for node in found.changing if node in serial]),
        *in_vectors(graph, [node for node in found.changing if node in remembering and node not in serial]),
    ]
    return _connected(parts, graph.section, list(found.stored.values()))


def with_waves(kernel: Kernel) -> Graph:
    """The element section of a sound, with waves wherever the vectors of a chunk follow one another: not in serial
    partitions, and of loops only in those that are interchanged."""
    section = kernel.section(Rate.ELEMENT)
    graph = Graph(kernel, section)
    remembering = stateful(section.nodes)
    waves = Waves(graph)
    nodes: list[Node] = []
    for node in section.nodes:
        if node.op not in _ROWS and node.op != "loop" and waves.new.keys().isdisjoint(node.args):
            nodes.append(node)
        elif _is_interchanged(graph, node) and node not in remembering:
            nodes.append(waves.in_steps(node))
        else:
            nodes += waves.rewritten(node, may_change=node not in remembering)
    stores = tuple(Store(store.place, waves.of(store.value)) for store in section.stores)
    return Graph(kernel, Section(Rate.ELEMENT, tuple(nodes), waves.all_of(section.outputs), stores))


def _is_interchanged(graph: Graph, node: Node) -> bool:
    """Whether each step of a loop can run over all samples of a chunk, because its bounds are the same at all of them.
    A loop of a nest cannot: the nest counts its steps for each sample."""
    return node.op == "loop" and node.attr not in graph.masked and not node.attr.nested and graph.changes(node)


def in_vectors(graph: Graph, nodes: Sequence[Node], waits: Mapping[Node, Node] = _NOTHING) -> list[LoopPartition]:
    """The partitions in vectors, and between them the interchanged loops. What `waits` for another value is computed
    when that has been computed for all samples."""
    ranks: dict[Node, int] = {}
    for node in nodes:
        rank = max((ranks.get(each, 0) for each in operands(node)), default=0)
        if waits.get(node) in ranks:
            rank = max(rank, ranks[waits[node]] + 1)
        if _is_interchanged(graph, node):
            rank += 1 - rank % 2
        elif node.op == "loop_out" and _is_interchanged(graph, node.args[0]):
            rank = ranks.get(node.args[0], 0)
        else:
            rank += rank % 2
        ranks[node] = rank
    made: list[LoopPartition] = []
    for rank in range(max(ranks.values(), default=-1) + 1):
        found = [node for node in nodes if ranks[node] == rank]
        if rank % 2:
            made += [LoopPartition("interchanged", [node]) for node in found if node.op == "loop"]
        elif found:
            made.append(LoopPartition("vectors", found))
    return made


def _connected(parts: list[LoopPartition], section: Section, stored: Sequence[Node]) -> list[LoopPartition]:
    """Fills in what partitions read of one another, and where outputs are stored. Leaves out empty partitions."""
    home = {node: part for part in parts for node in part.nodes}
    for node in section.nodes:
        if node.op == "loop_out" and node.args[0] in home:
            home.setdefault(node, home[node.args[0]])
    (serial,) = (part for part in parts if part.way == "serial")
    for at, output in enumerate(section.outputs):
        part = home.get(output)
        if part is None or part.way == "interchanged":
            part = _writer_of(parts, part)
        part.outputs.append(at)
    steady = {node for node in section.nodes if node not in home}
    for part in parts:
        used = [*part.nodes, *(section.outputs[at] for at in part.outputs), *(stored if part is serial else ())]
        used += [each for node in part.nodes for each in operands(node)]
        part.reads = list(dict.fromkeys(node for node in used if node in home and home[node] is not part))
        # What the partition needs that is the same at every sample.
        prologue = needed([node for node in used if node in steady], steady)
        part.prologue = [node for node in section.nodes if node in prologue]
    for part in parts:
        part.writes = list(dict.fromkeys(node for other in parts for node in other.reads if home[node] is part))
    return [part for part in parts if part.nodes or part.outputs or (part is serial and stored)]


def _writer_of(parts: list[LoopPartition], after: LoopPartition | None) -> LoopPartition:
    """A partition in vectors after the one that computes an output, if any does; it stores the output."""
    start = parts.index(after) + 1 if after is not None else 0
    found = next((part for part in parts[start:] if part.way == "vectors"), None)
    if found is None:
        parts.append(found := LoopPartition("vectors", []))
    return found
