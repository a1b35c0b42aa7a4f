"""Writes feedback that only adds to a part of what was, in vectors: `y = a · prev(y) + x`.

Sample by sample, each would wait for the one before it. What the samples of a vector add to one another does not depend
on what was before them: `x₃ + a·x₂ + a²·x₁ + a³·x₀`, first of neighbours, then of pairs, and so on. What was before is
added to all of them at once, and from vector to vector only one product and one sum wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.codegen.base import Kernel
from weft.codegen.native.graph import Graph
from weft.codegen.native.layout import Head, History
from weft.codegen.native.section import write_nodes
from weft.codegen.native.stretch_writer import ChunkWriter
from weft.codegen.native.stretches import LoopPartition
from weft.codegen.native.types import LlvmValue
from weft.codegen.values import Node, operands
from weft.ir.expr import SlotPlane
from weft.ops import OPS

# The powers of smaller factors might leave the range of numbers. Factors from 1 on never forget how a sum was rounded,
# and what counts in steps of 0.01 shall reach 0.5 in the same sample everywhere.
_LEAST = 2.0**-60


@dataclass(frozen=True, slots=True)
class Scan:
    """`total` is `factor · (the slot one tick ago) + added`, and what the slot will be."""

    place: SlotPlane
    total: Node
    factor: float
    added: Node


def scans(kernel: Kernel, graph: Graph, part: LoopPartition) -> tuple[Scan, ...]:
    """The feedback of a stretch in turn, if there is no other in it that needs each sample by itself; else nothing."""
    stored = {store.place: store.value for store in graph.stores}
    states = [node for node in part.nodes if node.op == "state"]
    found: dict[Node, Scan] = {}
    used: set[Node] = set()
    """What is part of a scan, and may be used nowhere else."""
    for state in states:
        scan = _scan(state, stored.get(state.attr))
        slot = kernel.slot(state.attr.slot)
        if scan is None or slot.depth != 1 or scan.total in found or scan.total not in part.nodes:
            return ()
        found[scan.total] = scan
        used |= {state, *(arg for arg in scan.total.args if state in arg.args)}
    own = {scan.place for scan in found.values()}
    others = [node for node in part.nodes if node not in used and node not in found]
    seen = {*part.leaves, *stored.values(), *(graph.outputs[at] for at in part.outputs)}
    seen |= {arg for node in others for arg in operands(node)} | {scan.added for scan in found.values()}
    plain = all(node.op in OPS for node in others) and own == stored.keys() and not used & seen
    return tuple(found.values()) if plain else ()


def _scan(state: Node, total: Node | None) -> Scan | None:
    if total is None or total.op != "add":
        return None
    for part, added in (total.args, total.args[::-1]):
        factor = _factor(part, state)
        if factor is not None and _LEAST <= abs(factor) < 1 and added is not part:
            return Scan(state.attr, total, factor, added)
    return None


def _factor(node: Node, state: Node) -> float | None:
    """What a state is multiplied with in a node that is nothing else; None if it is something else."""
    if node is state:
        return 1.0
    match node.op, node.args:
        case "mul", (Node("const"), Node() as other) if other is state:
            return float(node.args[0].attr)
        case "mul", (Node() as other, Node("const")) if other is state:
            return float(node.args[1].attr)
    return None


@dataclass(frozen=True, slots=True)
class _Carried:
    """A scan within the loop over vectors: the last sample before a vector, and what it is at the beginning."""

    scan: Scan
    name: str
    first: str


def rows_before(w: ChunkWriter, lanes: int) -> str:
    """How many samples of a chunk are computed in whole vectors: not the last one, nor all."""
    return w.put(f"and i64 {w.put('sub i64 %count, 1')}, {-lanes}")


def write_scans(w: ChunkWriter, kernel: Kernel, graph: Graph, part: LoopPartition, found: Sequence[Scan]) -> None:
    """The samples of a chunk up to `rows_before`; `write_turn` goes on from what the rings are then. As vectors have an
    even number of samples, it writes the same cells next as if nothing had been."""
    write_nodes(w, kernel, part.once, part.once)
    carried = [_Carried(scan, w.name("before"), _read(w, kernel, scan.place)) for scan in found]
    rows = rows_before(w, w.lanes)
    before = w.block
    w.branch(w.put(f"icmp eq i64 {rows}, 0"), "over", "vector")
    w.label("vector")
    phis = len(w.text)
    w.row, w.index = "%row", w.name("index")
    w.do(f"{w.index} = add i64 %start, %row")
    totals: dict[Node, LlvmValue] = {}
    last: dict[Node, str] = {}
    by_total = {each.scan.total: each for each in carried}
    products = {arg for scan in found for arg in scan.total.args if arg is not scan.added}
    with w.scope():
        w.read_rows(part.reads)
        for node in part.nodes:
            if node in by_total:
                totals[node], last[node] = _write_total(w, by_total[node])
                w.keep(node, totals[node])
            elif node.op != "state" and node not in products:
                write_nodes(w, kernel, [node], [node])
        w.write_rows(part, graph)
    w.do(f"%row.next = add i64 %row, {w.lanes}")
    latch = w.block
    w.branch(w.put(f"icmp slt i64 %row.next, {rows}"), "vector", "last")
    w.text[phis:phis] = [
        f"  %row = phi i64 [ 0, %{before} ], [ %row.next, %{latch} ]",
        *(
            f"  {each.name} = phi double [ {each.first}, %{before} ], [ {last[each.scan.total]}, %{latch} ]"
            for each in carried
        ),
    ]
    w.label("last")
    for each in carried:
        _write_back_totals(w, kernel, each.scan.place, totals[each.scan.total])
    w.jump("over")
    w.label("over")


def _write_total(w: ChunkWriter, carried: _Carried) -> tuple[LlvmValue, str]:
    """The next vector, and its last sample."""
    of, factor, lanes = w.type("real"), carried.scan.factor, w.lanes
    own, reach = w.value(carried.scan.added), 1
    while reach < lanes:
        order = ", ".join(f"i32 {lanes + at - reach if at >= reach else 0}" for at in range(lanes))
        earlier = w.put(f"shufflevector {of} zeroinitializer, {of} {own.text}, <{lanes} x i32> <{order}>")
        own, reach = w.fma(w.real(factor**reach), LlvmValue(earlier, "real"), own), 2 * reach
    powers = w.each([w.reals.text(factor ** (at + 1)) for at in range(lanes)], "real")
    total = w.fma(powers, w.splat(carried.name, "real"), own)
    # The last of these, known earlier: the next vector waits for it.
    alone = w.put(f"extractelement {of} {own.text}, i64 {lanes - 1}")
    with w.narrow(1):
        before, added = w.splat(carried.name, "real"), w.splat(alone, "real")
        return total, w.first(w.fma(w.real(factor**lanes), before, added))


def _cells(w: ChunkWriter, kernel: Kernel, place: SlotPlane) -> tuple[str, str]:
    """Where in the ring of a slot that remembers one tick the last sample is, and the one before it."""
    head = w.word(Head(place.slot))
    cells = w.put(f"xor i64 {head}, 1"), head
    planes = kernel.slot(place.slot).planes
    last, earlier = (w.put(f"add i64 {w.put(f'mul i64 {cell}, {planes}')}, {place.plane}") for cell in cells)
    return last, earlier


def _read(w: ChunkWriter, kernel: Kernel, place: SlotPlane) -> str:
    """The last sample of a slot before a chunk."""
    last, _ = _cells(w, kernel, place)
    with w.narrow(1):
        return w.first(w.load(w.word(History(place.slot)), last, "real"))


def _write_back_totals(w: ChunkWriter, kernel: Kernel, place: SlotPlane, total: LlvmValue) -> None:
    """Notes the last two samples of a vector in the ring."""
    of, lanes = w.type("real"), w.lanes
    for cell, lane in zip(_cells(w, kernel, place), (lanes - 1, lanes - 2), strict=True):
        number = w.put(f"extractelement {of} {total.text}, i64 {lane}")
        with w.narrow(1):
            w.store(w.splat(number, "real"), w.word(History(place.slot)), cell)
