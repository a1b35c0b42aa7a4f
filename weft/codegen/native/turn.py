"""Writes what is computed sample by sample, each after the one before it: state, and what it is made of."""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.base import Kernel
from weft.codegen.native.graph import Graph
from weft.codegen.native.layout import Head, History
from weft.codegen.native.scan import rows_before
from weft.codegen.native.section import write_nodes
from weft.codegen.native.stretch_writer import ChunkWriter
from weft.codegen.native.stretches import LoopPartition, states
from weft.codegen.native.types import LlvmValue
from weft.ir.expr import SlotPlane, StateSlot


@dataclass(frozen=True, slots=True)
class _SlotRegister:
    """A number of a slot that remembers one tick, while a chunk is computed: as it was one tick ago, and two, and what
    they are at the beginning. The ring has both, since between ticks it is read one tick further back."""

    place: SlotPlane
    now: LlvmValue
    before: LlvmValue
    first: LlvmValue
    second: LlvmValue


@dataclass(frozen=True, slots=True)
class _Far:
    """A slot that remembers more: which cell of its ring a sample writes, and which the first does."""

    slot: StateSlot
    head: str
    first: str


def write_recurrence(w: ChunkWriter, kernel: Kernel, graph: Graph, part: LoopPartition, lanes: int, scanned: int) -> None:
    """The stretch in turn. `lanes` is how wide the vectors are that go on with what it leaves, and `scanned` those by
    which scans have gone ahead; 0 if none have."""
    write_nodes(w, kernel, part.once, part.once)
    first = rows_before(w, scanned) if scanned else "0"
    stored = {store.place: store.value for store in graph.stores}
    places = dict.fromkeys([*states(part.nodes), *stored])
    slots = {place.slot: kernel.slot(place.slot) for place in places}
    registers = [_register(w, slots[place.slot], place) for place in places if slots[place.slot].depth == 1]
    far = [_Far(slot, w.name("head"), w.word(Head(key))) for key, slot in slots.items() if slot.depth > 1]
    before = w.block
    w.jump("sample")
    w.label("sample")
    phis = len(w.text)
    w.row, w.index = "%row", w.name("index")
    w.do(f"{w.index} = add i64 %start, %row")
    w.heads.update({each.slot.key: each.head for each in far})
    w.registers.update({register.place: register.now for register in registers})
    with w.scope():
        w.read_rows(part.reads)
        own = set(part.nodes)
        roots = [*stored.values(), *part.leaves, *(graph.outputs[at] for at in part.outputs)]
        write_nodes(w, kernel, part.nodes, [node for node in roots if node in own])
        w.write_rows(part, graph)
        values = {place: w.as_real(w.value(node)) for place, node in stored.items()}
        for each in far:
            _store(w, each, values)
        next_heads = [_next_head(w, each) for each in far]
    w.do("%row.next = add i64 %row, 1")
    w.do("%row.more = icmp slt i64 %row.next, %count")
    latch = w.block
    w.branch("%row.more", "sample", "last")
    entering = [f"  %row = phi i64 [ {first}, %{before} ], [ %row.next, %{latch} ]"]
    for each, following in zip(far, next_heads, strict=True):
        entering.append(f"  {each.head} = phi i64 [ {each.first}, %{before} ], [ {following}, %{latch} ]")
    for register in registers:
        new = values.get(register.place, register.now)
        for name, start, after in (
            (register.now, register.first, new), (register.before, register.second, register.now),
        ):  # fmt: skip
            entering.append(
                f"  {name.text} = phi {w.type('real')} [ {start.text}, %{before} ], [ {after.text}, %{latch} ]"
            )
    w.text[phis:phis] = entering
    w.label("last")
    for each, following in zip(far, next_heads, strict=True):
        _write_word(w, each.slot.key, following)
    _write_back(w, slots, registers, values)
    _fill_up(w, part, lanes)


# Slots that remember one tick.


def _register(w: ChunkWriter, slot: StateSlot, place: SlotPlane) -> _SlotRegister:
    ring, head = w.word(History(place.slot)), w.word(Head(place.slot))
    other = w.put(f"xor i64 {head}, 1")
    first, second = (w.load(ring, _at(w, slot, cell, place.plane), "real") for cell in (other, head))
    now, before = (LlvmValue(w.name(what), "real") for what in ("now", "before"))
    return _SlotRegister(place, now, before, first, second)


def _at(w: ChunkWriter, slot: StateSlot, cell: str, plane: int) -> str:
    """Where a number of a cell is in a ring."""
    return w.put(f"add i64 {w.put(f'mul i64 {cell}, {slot.planes}')}, {plane}")


def _write_back(
    w: ChunkWriter, slots: dict[str, StateSlot], registers: list[_SlotRegister], values: dict[SlotPlane, LlvmValue]
) -> None:
    """Brings the rings up to date with what was computed in registers."""
    heads: dict[str, str] = {}
    for register in registers:
        key = register.place.slot
        if key not in heads:
            ticks = w.put(f"add i64 {w.word(Head(key))}, %count")
            heads[key] = w.put(f"and i64 {ticks}, 1")
        head = heads[key]
        last = w.put(f"xor i64 {head}, 1")
        slot, plane, ring = slots[key], register.place.plane, w.word(History(key))
        w.store(values.get(register.place, register.now), ring, _at(w, slot, last, plane))
        w.store(register.now, ring, _at(w, slot, head, plane))
    for key, head in heads.items():
        _write_word(w, key, head)


# Those that remember more.


def _store(w: ChunkWriter, far: _Far, values: dict[SlotPlane, LlvmValue]) -> None:
    slot = far.slot
    for place, value in values.items():
        if place.slot == slot.key:
            w.store(value, w.word(History(slot.key)), _at(w, slot, far.head, place.plane))


def _next_head(w: ChunkWriter, far: _Far) -> str:
    following = w.put(f"add i64 {far.head}, 1")
    is_over = w.put(f"icmp sgt i64 {following}, {far.slot.depth}")
    return w.put(f"select i1 {is_over}, i64 0, i64 {following}")


def _write_word(w: ChunkWriter, slot: str, head: str) -> None:
    """Notes where the next chunk goes on in a ring."""
    place = w.put(f"getelementptr i64, ptr %block, i64 {w.places.field(Head(slot))}")
    w.do(f"store i64 {head}, ptr {place}, align 8")


def _fill_up(w: ChunkWriter, part: LoopPartition, lanes: int) -> None:
    """Fills rows up to a whole vector with what they have last, so that no lane does what no sample does."""
    if not part.leaves:
        return
    w.do("%row.last = sub i64 %count, 1")
    values = [(node, w.load(w.row_of(node), "%row.last", node.kind)) for node in part.leaves]
    before = w.block
    w.jump("filled")
    w.text += [
        "filled:",
        f"  %fill = phi i64 [ %count, %{before} ], [ %fill.next, %fill.one ]",
        f"  %fill.rest = and i64 %fill, {lanes - 1}",
        "  %fill.done = icmp eq i64 %fill.rest, 0",
        "  br i1 %fill.done, label %over, label %fill.one",
        "fill.one:",
    ]
    for node, value in values:
        w.store(value, w.row_of(node), "%fill")
    w.text += ["  %fill.next = add i64 %fill, 1", "  br label %filled"]
    w.label("over")
