"""The partitions of a sound: what of it is computed sample by sample, and what over a whole chunk.

Partitions run one after another over a chunk. Only feedback is serial. Other reads of the past are rows, which are
copied from rings before a partition begins, and from the rows of new values.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.codegen.kernel import Kernel
from weft.codegen.native.dataflow import Graph
from weft.codegen.native.loop_parts import LoopPartition, in_vectors
from weft.codegen.native.serial_parts import SerialParts, SerialReads, ticks_of
from weft.codegen.values import Node, Section, needed, operands
from weft.codegen.wasm.abi import CHUNK


@dataclass(slots=True)
class StreamPart(LoopPartition):
    """A partition, and the slots that take over their new values after it."""

    slots: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, part: LoopPartition) -> StreamPart:
        return cls(part.way, part.nodes)


def stream_parts(kernel: Kernel, graph: Graph) -> list[StreamPart]:
    """The partitions in their order."""
    found = SerialParts(kernel, graph, SerialReads.OF_SLOTS, CHUNK)
    serial = {node for part in found.parts if part.serial for node in part.nodes}
    parts: list[StreamPart] = []
    for part in found.parts:
        if part.serial:
            # The results of a loop belong where it runs, whatever reads them.
            results = [node for node in found.changing if node.op == "loop_out" and node.args[0] in part.nodes]
            nodes = [*part.nodes, *(node for node in results if node not in serial)]
            parts.append(StreamPart("serial", nodes, slots=part.slots))
            continue
        waits = {node: found.stored[node.attr] for node in part.nodes if is_near(node, kernel)}
        nodes = [node for node in part.nodes if node.op != "loop_out" or node.args[0] not in serial]
        parts += map(StreamPart.of, in_vectors(graph, nodes, waits))
        parts.append(StreamPart("vectors", [], slots=part.slots))
    return _connected(parts, graph.section, found)


def is_near(node: Node, kernel: Kernel) -> bool:
    """Whether a read of the past may read new values of the same chunk."""
    ticks = ticks_of(node, kernel)
    return ticks is not None and ticks < CHUNK


def _connected(parts: list[StreamPart], section: Section, found: SerialParts) -> list[StreamPart]:
    """Fills in what partitions read of one another, and where outputs are stored. Leaves out empty partitions."""
    home: dict[Node, StreamPart] = {node: part for part in parts for node in part.nodes}
    for node in section.nodes:
        if node.op == "loop_out" and node.args[0] in home:
            home[node] = home[node.args[0]]
    last = StreamPart("vectors", [])
    for at, output in enumerate(section.outputs):
        part = home.get(output)
        (last if part is None or part.way == "interchanged" else part).outputs.append(at)
    parts = [*parts, last]
    steady = {node for node in section.nodes if node not in home}
    for part in parts:
        stored = [found.stored[place] for place in found.stored if place.slot in part.slots]
        used = [*part.nodes, *(section.outputs[at] for at in part.outputs), *stored]
        used += [each for node in part.nodes for each in operands(node)]
        if part.way != "serial":
            used += [found.stored[node.attr] for node in part.nodes if node.op == "state" and node.attr in found.stored]
        part.reads = list(dict.fromkeys(node for node in used if node in home and home[node] is not part))
        prologue = needed([node for node in used if node in steady], steady)
        part.prologue = [node for node in section.nodes if node in prologue]
    for part in parts:
        part.writes = list(dict.fromkeys(node for other in parts for node in other.reads if home[node] is part))
    return [part for part in parts if part.nodes or part.outputs or part.slots]
