"""What of the element section of a sound has to be computed sample by sample.

A value that depends on itself by way of state is part of feedback. Other values can be computed for a whole block of
samples at once, even if they depend on state: a delayed value is a row of values that are known already. If a slot is
read further back than the length of a block, the stored values do not depend on the values read within the block. So an
echo needs no serial part, but a filter, a phasor and an envelope do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import TypeAlias

from weft.codegen.kernel import Kernel
from weft.codegen.native.dataflow import Graph
from weft.codegen.values import Node, needed, operands, with_bodies
from weft.graph.components import components
from weft.ir.expr import SlotPlane
from weft.ir.rates import Rate


def is_series(kernel: Kernel) -> bool:
    """Whether the values of a kernel change with the sample only, and its state are numbers."""
    rates = {rate for _, rate in kernel.coords} | {section.rate for section in kernel.sections}
    images = any(slot.image for slot in kernel.slots)
    is_line = rates.isdisjoint({Rate.COLUMN, Rate.ROW})
    return kernel.sweep == "grid" and kernel.tick == "element" and is_line and not images


def states(nodes: Iterable[Node]) -> Iterator[SlotPlane]:
    """The state that these values read, including the bodies of loops."""
    return (node.attr for node in with_bodies(nodes) if node.op == "state")


def ticks_of(node: Node, kernel: Kernel) -> int | None:
    """How many ticks a read goes back; None if that varies, or is not known before the launch."""
    if node.op != "state" or node.args[0].op != "const":
        return None
    depth, ticks = kernel.slot(node.attr.slot).depth, node.args[0].attr
    return int(min(ticks, depth)) if ticks >= 1 else 1


def stateful(nodes: Sequence[Node]) -> set[Node]:
    """The values that depend on state."""
    found: set[Node] = set()
    for node in nodes:
        remembers = node.op == "state" or (node.op == "loop" and any(states([node])))
        if remembers or not found.isdisjoint(operands(node)):
            found.add(node)
    return found


class SerialReads(Enum):
    """Which reads of state are in a serial part: what can be read over a block at once differs between machines."""

    OF_VALUES = "values"
    """Those on which new values within the same block depend. Other reads of the same slot take the state as it was
    before the block, and the row of the new values."""
    OF_SLOTS = "slots"
    """All reads of a slot, if new values depend on one of them, or if it is not known which ticks one of them reads."""
    OF_ALL = "all"
    """All reads, in one part: a sample of machine code costs little more there than in vectors."""


Member: TypeAlias = "Node | str"
"""A value, or the key of a slot of state."""

_ALL = ""
"""The key of all slots together."""


@dataclass(slots=True)
class SerialPart:
    """Values that are computed together, after those of the parts before: sample by sample (`serial`), or each over the
    whole block. After them, the `slots` take over their new values."""

    serial: bool
    nodes: list[Node] = field(default_factory=list)
    slots: list[str] = field(default_factory=list)


class SerialParts:
    """The parts of a section, in their order. Serial values are in the order of the section; elsewhere operands come
    first. Only what outputs and stored values need is in them."""

    def __init__(self, kernel: Kernel, graph: Graph, serial: SerialReads, block: float = inf) -> None:
        """For blocks of at most `block` samples."""
        section = graph.section
        self.stored = {store.place: store.value for store in section.stores}
        used = needed([*section.outputs, *self.stored.values()])
        nodes = [node for node in section.nodes if node in used]
        self.changing = [node for node in nodes if graph.changes(node)]
        """The values that are not the same at every sample."""
        changing = set(self.changing)
        self.steady = [node for node in nodes if node not in changing]
        self._kernel, self._serial_reads, self._block = kernel, serial, block
        self._reads: dict[str, list[tuple[Node, SlotPlane]]] = {self._key(place): [] for place in self.stored}
        self._serial: set[str] = set()
        """The slots of serial recurrences."""
        self._always: dict[Member, list[Member]] = {}
        """What depends on state, and on what else that does."""
        self._look_at_state()
        self.parts = self._parts()

    def _key(self, place: SlotPlane) -> str:
        return _ALL if self._serial_reads is SerialReads.OF_ALL else place.slot

    def _look_at_state(self) -> None:
        by_values = self._serial_reads is SerialReads.OF_VALUES
        for node in self.changing:
            places = list(states([node])) if node.op in ("state", "loop") else ()
            for place in places:
                self._reads.setdefault(self._key(place), []).append((node, place))
                is_known = place in self.stored and ticks_of(node, self._kernel) is not None
                if not (is_known or by_values) or self._serial_reads is SerialReads.OF_ALL:
                    self._serial.add(self._key(place))
            needs: list[Member] = [each for each in operands(node) if each in self._always]
            if places or needs:
                self._always[node] = needs
        for key, reads in self._reads.items():
            values = (value for place, value in self.stored.items() if self._key(place) == key)
            self._always[key] = [*(value for value in values if value in self._always), *(node for node, _ in reads)]

    def _edges(self) -> dict[Member, list[Member]]:
        """What each member needs of the same block. A slot takes over new values after all reads of the old ones."""
        edges = dict(self._always)
        for key, reads in self._reads.items():
            for node, place in reads:
                ticks = ticks_of(node, self._kernel)
                if ticks is not None and ticks >= self._block:
                    continue
                needed_by_read = key if key in self._serial else self.stored[place]
                if needed_by_read in edges:
                    edges[node] = [*edges[node], needed_by_read]
        return edges

    def _ranks(self) -> dict[Member, int]:
        """The rank of each value and each slot, in an order in which they can be computed. What is computed sample by
        sample has an odd rank."""
        while True:
            edges = self._edges()
            groups = components(edges, edges)
            feedback = {each for group in groups if len(group) > 1 or group[0] in edges[group[0]] for each in group}
            found = {key for key, reads in self._reads.items() if any(node in feedback for node, _ in reads)}
            if found <= self._serial or self._serial_reads is SerialReads.OF_VALUES:
                break
            self._serial |= found
        ranks: dict[Member, int] = {node: 0 for node in self.changing if node not in edges}
        for group in groups:
            rank = max((ranks.get(need, 0) for each in group for need in edges[each]), default=0)
            rank += (rank % 2 == 1) != (group[0] in feedback)
            for each in group:
                ranks[each] = rank
        return ranks

    def _parts(self) -> list[SerialPart]:
        ranks = self._ranks()
        parts = [SerialPart(rank % 2 == 1) for rank in range(max(ranks.values(), default=0) + 1)]
        for each, rank in ranks.items():
            if isinstance(each, Node):
                parts[rank].nodes.append(each)
            else:
                parts[rank].slots.append(each)
        place = {node: at for at, node in enumerate(self.changing)}
        for part in parts:
            if part.serial:
                part.nodes.sort(key=place.__getitem__)
        return [part for part in parts if part.nodes or part.slots]
