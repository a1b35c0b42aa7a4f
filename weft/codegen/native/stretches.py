"""Takes the element section of a sound apart into stretches, which run one after another over a chunk of samples.

What depends on no state comes before, in vectors; what the state needs is computed in turn, sample by sample; what is
then left comes behind, in vectors again. A loop over vectors whose bounds are the same at every sample is a stretch of
its own: each of its steps runs over the whole chunk, so that what is the same at every sample is computed once a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from weft.codegen.base import Kernel
from weft.codegen.native.graph import Graph, graph_of
from weft.codegen.native.waves import Waves
from weft.codegen.values import LoopBody, Node, Section, Store, needed, operands, with_bodies
from weft.ir.expr import SlotPlane
from weft.ir.rates import Rate


@dataclass(slots=True)
class LoopPartition:
    """One of them. `nodes` are computed at every sample; those of `once` are the same at all of them. A `spread`
    stretch has a loop alone. `reads` are values of stretches before it, and `leaves` is what later ones read."""

    way: Literal["vectors", "turn", "spread"]
    nodes: list[Node]
    once: list[Node] = field(default_factory=list)
    reads: list[Node] = field(default_factory=list)
    leaves: list[Node] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    """The outputs that it writes."""


def is_series(kernel: Kernel) -> bool:
    """Whether all that a kernel changes by is the sample, and what it remembers are numbers."""
    rates = {rate for _, rate in kernel.coords} | {section.rate for section in kernel.sections}
    images = any(slot.image for slot in kernel.slots)
    is_line = rates.isdisjoint({Rate.COLUMN, Rate.ROW})
    return kernel.sweep == "grid" and kernel.tick == "element" and is_line and not images


def stretches(graph: Graph, turn: Iterable[Node]) -> list[LoopPartition]:
    """The stretches of a section, in their order. `turn` are the values that must be computed in turn, if they depend
    on state: what is stored."""
    used = needed([*graph.outputs, *turn])
    nodes = [node for node in graph.nodes if node in used]
    stateful = _stateful(nodes)
    in_turn = needed([node for node in nodes if _is_state(node)], stateful)
    in_turn |= needed([node for node in turn if node in stateful], stateful)
    # A loop has its results where it runs, whoever reads them.
    in_turn |= {node for node in nodes if node.op == "loop_out" and node.args[0] in in_turn}
    parts = [
        *_in_vectors(graph, [node for node in nodes if graph.changes(node) and node not in stateful]),
        LoopPartition("turn", [node for node in nodes if node in in_turn]),
        *_in_vectors(graph, [node for node in nodes if node in stateful and node not in in_turn]),
    ]
    return _connected(parts, graph, list(turn))


def with_waves(kernel: Kernel, only_loops: bool) -> Graph:
    """The element section of a sound, with waves wherever vectors of a chunk follow one another: not in turn, and not
    within loops but those that are spread; or within these alone, where many sines come of little code."""
    section = kernel.section(Rate.ELEMENT)
    graph = graph_of(kernel, section)
    stateful = _stateful(graph.nodes)
    waves = Waves(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        if _is_spread(graph, node) and node not in stateful:
            nodes.append(waves.in_steps(node))
        else:
            nodes += waves.before(node, may_change=not only_loops and node not in stateful)
    stores = tuple(Store(store.place, waves.of(store.value)) for store in section.stores)
    return graph_of(kernel, Section(Rate.ELEMENT, tuple(nodes), waves.all_of(section.outputs), stores))


def _is_spread(graph: Graph, node: Node) -> bool:
    """Whether each step of a loop can run over all samples of a chunk: its bounds are the same at all of them. A loop
    within others counts its steps together with them, for each sample."""
    if node.op != "loop":
        return False
    body: LoopBody = node.attr
    return body not in graph.masked and not body.nested and graph.changes(node)


def states(nodes: Iterable[Node]) -> Iterator[SlotPlane]:
    """What is read of state, in loops as well."""
    for node in nodes:
        for each in (node, *(with_bodies(node.attr.nodes) if node.op == "loop" else ())):
            if each.op == "state":
                yield each.attr


def _is_state(node: Node) -> bool:
    return any(True for _ in states([node]))


def _stateful(nodes: Sequence[Node]) -> set[Node]:
    """The nodes that depend on state."""
    found: set[Node] = set()
    for node in nodes:
        if _is_state(node) or not found.isdisjoint(operands(node)):
            found.add(node)
    return found


def _in_vectors(graph: Graph, nodes: list[Node]) -> list[LoopPartition]:
    """Stretches in vectors, and between them the loops that are spread."""
    ranks: dict[Node, int] = {}
    for node in nodes:
        rank = max((ranks.get(each, 0) for each in operands(node)), default=0)
        if _is_spread(graph, node):
            rank += 1 - rank % 2
        elif node.op == "loop_out" and _is_spread(graph, node.args[0]):
            rank = ranks.get(node.args[0], 0)
        else:
            rank += rank % 2
        ranks[node] = rank
    made: list[LoopPartition] = []
    for rank in range(max(ranks.values(), default=-1) + 1):
        found = [node for node in nodes if ranks[node] == rank]
        if rank % 2:
            made += [LoopPartition("spread", [node]) for node in found if node.op == "loop"]
        elif found:
            made.append(LoopPartition("vectors", found))
    return made


def _connected(parts: list[LoopPartition], graph: Graph, stored: list[Node]) -> list[LoopPartition]:
    """Finds out what crosses from one to another, and where outputs are written."""
    home = {node: part for part in parts for node in part.nodes}
    for node in graph.nodes:
        if node.op == "loop_out" and node.args[0] in home:
            home.setdefault(node, home[node.args[0]])
    (turn,) = (part for part in parts if part.way == "turn")
    for at, output in enumerate(graph.outputs):
        part = home.get(output)
        if part is None or part.way == "spread":
            part = _writer_of(parts, part)
        part.outputs.append(at)
    wanted: dict[int, list[Node]] = {id(part): [] for part in parts}
    for part in parts:
        roots = [*part.nodes, *(graph.outputs[at] for at in part.outputs), *(stored if part is turn else ())]
        part.once, part.reads = _given(part, roots, home, graph.nodes)
        for node in part.reads:
            wanted[id(home[node])].append(node)
    for part in parts:
        part.leaves = list(dict.fromkeys(wanted[id(part)]))
    return [part for part in parts if part.nodes or part.outputs or (part is turn and stored)]


def _writer_of(parts: list[LoopPartition], behind: LoopPartition | None) -> LoopPartition:
    """A stretch in vectors behind another one, for an output that no such stretch computes itself."""
    start = parts.index(behind) + 1 if behind is not None else 0
    for part in parts[start:]:
        if part.way == "vectors":
            return part
    parts.append(LoopPartition("vectors", []))
    return parts[-1]


def _given(
    part: LoopPartition, roots: Iterable[Node], home: Mapping[Node, LoopPartition], nodes: Sequence[Node]
) -> tuple[list[Node], list[Node]]:
    """What a stretch uses that is not its own: values that are the same at every sample, which it computes anew, and
    values of other stretches."""
    used = [*roots, *(each for node in part.nodes for each in operands(node))]
    reads = [node for node in used if node in home and home[node] is not part]
    steady = {node for node in nodes if node not in home}
    once = needed([node for node in used if node in steady], steady)
    return [node for node in nodes if node in once], list(dict.fromkeys(reads))
