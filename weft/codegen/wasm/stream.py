"""The samples of a sound, in chunks: a function for each loop partition.

Each partition runs over one chunk before the next one does, and leaves what later ones read in rows of scratch memory,
eight bytes a sample. Only feedback is computed sample by sample. All else is computed for pairs of samples, several
pairs at once, in loops that `weft.codegen.native.loop_parts` has found as for machine code.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from weft.codegen.kernel import LOOP_STEPS, Kernel
from weft.codegen.native.dataflow import Graph
from weft.codegen.native.loop_parts import TIME, with_waves
from weft.codegen.native.serial_parts import states, ticks_of
from weft.codegen.native.series import tables
from weft.codegen.values import Line, LoopBody, Node, operands, with_bodies
from weft.codegen.wasm.abi import (
    ALIGNMENT, CHUNK, ELEMENTS, FIRST, NUMBER, ORIGIN, OUT, PADDING, RATE, STRIDE, WIDTH, BlockLayout, RingPlace
)
from weft.codegen.wasm.assembler import WasmType
from weft.codegen.wasm.builder import FunctionBuilder, Variable, WasmValue
from weft.codegen.wasm.lane_code import PairLanes, SingleLane, of_pairs
from weft.codegen.wasm.reading import COPY_KEEP, COPY_PAST, KEEP, PAST
from weft.codegen.wasm.stream_parts import StreamPart, is_near, stream_parts
from weft.codegen.wasm.writing import BLOCK, WasmWriter, is_short
from weft.ir.expr import SlotPlane
from weft.ops.double import within_turn
from weft.ops.spec import ValueType

_PARAMS: tuple[tuple[str, WasmType], ...] = (
    (BLOCK, "i32"), ("start", "i32"), ("count", "i32"), ("number", "f64"), ("time", "f64"), ("step", "f64"),
)  # fmt: skip
"""Of each partition: the first sample of the chunk in the launch, and their count; the number of the first sample in
the performance, and its time; and the time between two samples."""

_PAIR = 2

_RowKey: TypeAlias = "Node | tuple[Node, int] | int"
"""What has a row: a value, a carried value by its loop and number, or an output by its number."""


class ScratchRows:
    """The memory through which values pass from partition to partition, and tables, after the rest of a block."""

    def __init__(self, start: int) -> None:
        self.end = start
        self.tables: list[tuple[int, bytes]] = []
        """Where each begins, and what it holds."""
        self._rows: dict[_RowKey, int] = {}

    def row(self, key: _RowKey) -> int:
        """The offset of a row in the block."""
        # A carried value has one row for all steps of its loop; after the last step the row has the result.
        if isinstance(key, Node) and key.op == "loop_out":
            key = key.args[0], key.attr
        if key not in self._rows:
            self._rows[key] = self._taken((CHUNK + PADDING) * NUMBER)
        return self._rows[key]

    def table(self, values: Sequence[float]) -> int:
        """The offset of a table in the block."""
        at = self._taken(len(values) * NUMBER)
        self.tables.append((at, struct.pack(f"<{len(values)}d", *values)))
        return at

    def _taken(self, size: int) -> int:
        start = self.end
        self.end += -(-size // ALIGNMENT) * ALIGNMENT
        return start


class _Wave(NamedTuple):
    """A wave within a loop over vectors: its last two vectors, pair by pair, and the factor of its recurrence."""

    node: Node
    now: tuple[Variable, ...]
    before: tuple[Variable, ...]
    factor: WasmValue


class StreamWriter(WasmWriter):
    """Writes the function of one partition. Values that are the same at all samples are computed for one lane, others
    for a pair, unless the partition is serial."""

    def __init__(
        self, b: FunctionBuilder, kernel: Kernel, layout: BlockLayout, graph: Graph, part: StreamPart,
        scratch: ScratchRows,
    ) -> None:  # fmt: skip
        super().__init__(b, kernel, layout, graph.section)
        self.graph = graph
        self.part = part
        self.scratch = scratch
        self.stored = {store.place: store.value for store in graph.section.stores}
        self._single, self._pair = SingleLane(b), PairLanes(b)
        self._pairs: dict[Node, WasmValue] = {}
        self._spreads: dict[Node, WasmValue] = {}
        """Values that are the same at all samples, in each lane."""
        self._pair_results: dict[Node, list[WasmValue]] = {}
        self.near: Mapping[SlotPlane, Variable] = {}
        """The values one tick ago of slots that are kept in variables."""
        self._all_lines = [each for each in graph.section.given() if isinstance(each, Line)]
        self._row = b.i32(0)
        self._offset = 0
        """How many samples after the row this one is, or this pair."""

    # Values.

    def value(self, node: Node) -> WasmValue:
        if self.lanes.count == _PAIR:
            return self._in_pair(node)
        return self._values[node] if node in self._values else super().value(node)

    def _is_of_pair(self, node: Node) -> bool:
        return node in self._pairs or node.op == "line"

    def _in_pair(self, node: Node) -> WasmValue:
        if node in self._pairs:
            return self._pairs[node]
        if node.op == "line":
            self._pairs[node] = self._line_in_pair(node.attr)
            return self._pairs[node]
        if node in self._spreads:
            return self._spreads[node]
        return self._spread_of(node)

    def _spread_of(self, node: Node) -> WasmValue:
        """A value that is the same at all samples, in each lane."""
        if node.op == "const":
            return self._pair.real(node.attr)
        if node.op == "u32":
            return self._pair.bits(node.attr)
        self.lanes = self._single
        value = super().value(node)
        self.lanes = self._pair
        match node.kind:
            case "float":
                return self.b.put("f64x2.splat", value)
            case "u32":
                return self.b.put("i32x4.splat", value)
        wide = self.b.put("i64.extend_i32_s", self.b.put("i32.sub", self.b.i32(0), value))
        return self.b.put("i64x2.splat", wide)

    def _lane_of(self, pair: WasmValue, kind: ValueType, lane: int) -> WasmValue:
        """One lane of a pair."""
        if kind == "float":
            return self.b.put("f64x2.extract_lane", pair, immediate=lane)
        found = self.b.put("i32x4.extract_lane", pair, immediate=2 * lane)
        return self.b.put("i32.and", found, self.b.i32(1)) if kind == "bool" else found

    def keep(self, node: Node, value: WasmValue) -> None:
        if self.lanes.count == 1:
            super().keep(node, value)
        else:
            self._pairs[node] = value

    def scalar_values(self, nodes: Iterable[Node]) -> None:
        """Computes values that are the same at all samples."""
        self.lanes = self._single
        self.write(nodes)

    # Rows, lines and times.

    def at_row(self, row: WasmValue, offset: int) -> None:
        """Goes to a sample of the chunk, or to a pair of samples."""
        self._row, self._offset = row, offset
        self._pairs, self._lines = {}, {}
        if self.lanes.count == 1:
            # A loop that reads a line first may have no step.
            self._lines = {line: self._line_here(line) for line in self._all_lines}

    def _place(self) -> WasmValue:
        """What is to be added to the addresses of rows."""
        return self.b.put("i32.add", self.b.param(BLOCK), self.b.put("i32.shl", self._row, self.b.i32(3)))

    def _item(self, base: WasmValue) -> WasmValue:
        return self.b.put("i32.add", base, self.b.put("i32.shl", self._row, self.b.i32(3)))

    def load_row(self, key: _RowKey, kind: ValueType) -> WasmValue:
        offset = self.scratch.row(key) + NUMBER * self._offset
        if self.lanes.count == _PAIR:
            return self.b.load("v128", self._place(), offset)
        if kind == "float":
            return self.b.load("f64", self._place(), offset)
        found = self.b.load("i32", self._place(), offset)
        return self.b.put("i32.and", found, self.b.i32(1)) if kind == "bool" else found

    def store_row(self, key: _RowKey, value: WasmValue, kind: ValueType) -> None:
        offset = self.scratch.row(key) + NUMBER * self._offset
        if self.lanes.count == 1 and kind == "bool":
            value = self.b.put("i64.extend_i32_s", self.b.put("i32.sub", self.b.i32(0), value))
        self.b.store(value, self._place(), offset)

    def store_rows(self, loop: Node, carried: Mapping[int, Variable]) -> None:
        """Stores values that a loop has carried and that are the same at all samples."""
        for k, variable in carried.items():
            self.store_row((loop, k), self.b.put("f64x2.splat", self.b.get(variable)), "float")

    def _line_here(self, line: Line) -> WasmValue:
        if line == TIME:
            number = self.b.put("f64.add", self.b.param("number"), self.b.put("f64.convert_i32_s", self._row))
            return self.b.put("f64.add", self.number(ORIGIN), self.b.put("f64.div", number, self.number(RATE)))
        return self.b.load("f64", self._item(self._line_start(line)))

    def _line_in_pair(self, line: Line) -> WasmValue:
        b = self.b
        if line != TIME:
            return b.load("v128", self._item(self._line_start(line)), NUMBER * self._offset)
        row = b.put("f64.add", b.param("number"), b.put("f64.convert_i32_s", self._row))
        numbers = b.put("f64x2.add", b.put("f64x2.splat", row), b.pair(float(self._offset), self._offset + 1.0))
        rate, origin = map(self._each, (RATE, ORIGIN))
        return b.put("f64x2.add", origin, b.put("f64x2.div", numbers, rate))

    def _each(self, offset: int) -> WasmValue:
        """A number of the block, in each lane."""
        return self.given(("each", offset), lambda: self.b.put("f64x2.splat", self.number(offset)))

    def _line_start(self, line: Line) -> WasmValue:
        """The address of the first sample of the chunk in a line."""
        b, base = self.b, self.word(self._places[str(line.key)])
        start = b.param("start")
        return self.given(("line", line), lambda: b.put("i32.add", base, b.put("i32.shl", start, b.i32(3))))

    def _output(self, number: int) -> WasmValue:
        """The address of the first sample of the chunk in an output."""
        b, out, stride = self.b, self.word(OUT), self.word(STRIDE)

        def compute() -> WasmValue:
            at = b.put("i32.add", b.put("i32.mul", stride, b.i32(number)), b.param("start"))
            return b.put("i32.add", out, b.put("i32.shl", at, b.i32(3)))

        return self.given(("output", number), compute)

    def read_rows(self, past: Iterable[Node] = ()) -> None:
        """Loads what earlier partitions have left, and the rows of the past."""
        for node in (*self.part.reads, *past):
            self.keep(node, self.load_row(node, node.kind))

    def write_rows(self, past: Collection[Node] = ()) -> None:
        """Stores what later partitions read, but for rows that are there already, and the outputs."""
        for node in self.part.writes:
            if node not in past:
                self.store_row(node, self.value(node), node.kind)
        for number in self.part.outputs:
            value = self.as_real(self.section.outputs[number])
            if self.lanes.count == 1:
                self.b.store(value, self._item(self._output(number)))
            else:
                # Pairs may reach over the last sample.
                self.store_row(number, value, "float")

    # Rows of the past, and of what becomes the past.

    def fill_rows(self, nodes: Sequence[Node]) -> None:
        """Fills rows with values that no partition computes: coordinates, and what is the same at all samples."""

        def write() -> None:
            for node in nodes:
                self.store_row(node, self.value(node), node.kind)

        if nodes:
            self.over_pairs(nodes, (), 1, write)

    def fill_past(self, node: Node) -> None:
        """Fills the row of a read of the past: from the ring, and from the row of the new values."""
        b, ring, ticks = self.b, self.ring(node.attr), ticks_of(node, self.kernel)
        assert ticks is not None
        count, head = b.param("count"), self.word(ring.head)
        before = b.put("i32.sub", head, b.i32(ticks))
        around = b.put("i32.add", before, b.i32(ring.depth + 1))
        cell = b.put("select", around, before, b.put("i32.lt_s", before, b.i32(0)), kind="i32")
        if ticks >= CHUNK:
            self._move_row(PAST, node, ring, node.attr.plane, cell, count)
            return
        is_long = b.put("i32.lt_s", b.i32(ticks), count)
        first = b.put("select", b.i32(ticks), count, is_long, kind="i32")
        self._move_row(PAST, node, ring, node.attr.plane, cell, first)
        new = self.stored[node.attr]
        with b.within("if", "", is_long):
            to = self._row_start(node, ticks)
            length = b.put("i32.shl", b.put("i32.sub", count, b.i32(ticks)), b.i32(3))
            b.do("memory.copy", to, self._row_start(new, 0), length)

    def keep_slots(self) -> None:
        """Has the slots of the partition take over the rows of their new values."""
        b = self.b
        for key in self.part.slots:
            ring = next(each for each in self.layout.rings if each.key == key)
            for place, value in self.stored.items():
                if place.slot == key:
                    self._move_row(KEEP, value, ring, place.plane, self.word(ring.head), b.param("count"))
            after = b.put("i32.add", self.word(ring.head), b.param("count"))
            b.store(b.put("i32.rem_s", after, b.i32(ring.depth + 1)), b.param(BLOCK), ring.head)

    def _row_start(self, node: Node, at: int) -> WasmValue:
        return self.b.put("i32.add", self.b.param(BLOCK), self.b.i32(self.scratch.row(node) + NUMBER * at))

    def _move_row(
        self, how: str, node: Node, ring: RingPlace, plane: int, cell: WasmValue, count: WasmValue
    ) -> None:  # fmt: skip
        """Copies between the row of a value and a plane of a ring, from a cell of it on."""
        b = self.b
        start = b.put("i32.add", self.word(ring.offset), b.i32(NUMBER * plane))
        given = self._row_start(node, 0), start, cell, b.i32(ring.depth + 1), count
        if ring.planes == 1 and ring.depth >= CHUNK:
            b.run(COPY_PAST if how == PAST else COPY_KEEP, *given)
        else:
            b.run(how, *given, b.i32(ring.planes))

    def copy_outputs(self) -> None:
        """Copies the rows of outputs to where the host wants them."""
        b = self.b
        for number in self.part.outputs:
            place = b.put("i32.add", b.param(BLOCK), b.i32(self.scratch.row(number)))
            b.do("memory.copy", self._output(number), place, b.put("i32.shl", b.param("count"), b.i32(3)))

    # Loops over samples.

    def over_pairs(self, used: Iterable[Node], waves: Sequence[Node], pairs: int, write: Callable[[], None]) -> None:
        """A loop over the chunk, some pairs at a time. `write` writes what is computed for each; `used` are the
        values that it uses and that are the same at all samples."""
        b = self.b
        begun = [self._begun(node, pairs) for node in waves]
        self._spreads = {}
        self.lanes = self._pair
        for node in dict.fromkeys(used):
            if node.op == "scalar" or node in self._values or node in self._carried:
                self._spreads[node] = self._spread_of(node)
        row = b.variable("i32", b.i32(0), "row")
        with b.within("loop", "pairs") as label:
            here = b.get(row)
            for number in range(pairs):
                self.at_row(here, _PAIR * number)
                for wave in begun:
                    self._pairs[wave.node] = b.get(wave.now[number])
                write()
                self._advance(begun, number)
            b.set((row,), (b.put("i32.add", here, b.i32(_PAIR * pairs)),))
            b.do("br_if", b.put("i32.lt_s", b.get(row), b.param("count")), immediate=label)
        self.lanes = self._single
        self._spreads = {}

    def _advance(self, waves: Sequence[_Wave], number: int) -> None:
        for wave in waves:
            now, before = wave.now[number], wave.before[number]
            following = self._after(wave.factor, self.b.get(now), self.b.get(before))
            self.b.set((now, before), (following, self.b.get(now)))

    def _after(self, factor: WasmValue, now: WasmValue, before: WasmValue) -> WasmValue:
        return self._pair.sub(self._pair.mul(factor, now), before)

    def _begun(self, node: Node, pairs: int) -> _Wave:
        """Starts a wave at the first sample of the chunk: sines that grow by an angle δ from sample to sample are
        `s(n + L) = 2 cos(L δ) · s(n) − s(n − L)`. Whole turns are taken out of the angles first, which are then rounded
        far less than the times are. Two pairs are computed as sines, the rest of the first two vectors follows."""
        b, single, pair = self.b, self._single, self._pair
        self.lanes = single
        slope, offset = (super(StreamWriter, self).value(arg) for arg in node.args)
        angle = within_turn(single, single.add(single.mul(slope, b.param("time")), offset))
        growth = b.put("f64x2.splat", within_turn(single, single.mul(slope, b.param("step"))))
        start = b.put("f64x2.splat", angle)

        def wave(first: int) -> WasmValue:
            angles = pair.add(start, pair.mul(growth, b.pair(float(first), first + 1.0)))
            return b.call(of_pairs(node.attr), "v128", angles)

        length = float(_PAIR * pairs)
        both = b.call(of_pairs("cospi"), "v128", pair.mul(growth, b.pair(float(_PAIR), length)))
        doubled = pair.mul(both, pair.real(2))
        by_pair, by_vector = (
            b.put("f64x2.splat", b.put("f64x2.extract_lane", doubled, immediate=lane)) for lane in (0, 1)
        )
        found = [wave(-_PAIR * pairs), wave(-_PAIR * pairs + _PAIR)]
        while len(found) < 2 * pairs:
            found.append(self._after(by_pair, found[-1], found[-2]))
        variables = [b.variable("v128", value, "wave") for value in found]
        return _Wave(node, tuple(variables[pairs:]), tuple(variables[:pairs]), by_vector)

    # State.

    def _state(self, node: Node) -> WasmValue:
        return self.b.get(self.near[node.attr]) if node.attr in self.near else super()._state(node)

    # What is computed for each lane of a pair.

    def _loop(self, node: Node) -> None:
        if self.lanes.count == 1:
            super()._loop(node)
            return
        results = []
        for _ in self._by_lane(operands(node)):
            super()._loop(node)
            results.append([self.b.get(each) for each in self._results[node]])
        self._pair_results[node] = [self._pair.joined(*lanes) for lanes in zip(*results, strict=True)]

    def computed(self, node: Node) -> WasmValue:
        if self.lanes.count == 1:
            return super().computed(node)
        if node.op == "loop_out":
            return self._pair_results[node.args[0]][int(node.attr)]
        if node.op in ("fetch", "picture"):
            low, high = [super(StreamWriter, self).computed(node) for _ in self._by_lane(node.args)]
            return self._pair.joined(low, high)
        return super().computed(node)

    def _by_lane(self, used: Sequence[Node]) -> Iterator[int]:
        """Goes through the lanes of this pair. Meanwhile, values are computed for one lane, from that of the `used`
        ones."""
        for lane in range(_PAIR):
            known = dict(self._values)
            self.lanes = self._pair
            for node in used:
                if self._is_of_pair(node):
                    known[node] = self._lane_of(self._in_pair(node), node.kind, lane)
            outside, self._values, self.lanes = self._values, known, self._single
            yield lane
            self._values = outside
        self.lanes = self._pair


# The functions of partitions.


def pairs_at_once(nodes: Iterable[Node]) -> int:
    """How many pairs are computed in one step of a loop over pairs: several, while their values fit into registers."""
    count = sum(1 for _ in with_bodies(nodes))
    has_loops = any(node.op == "loop" for node in nodes)
    return 1 if has_loops or count > _MANY else 2 if count > _FEW else 4


_FEW, _MANY = 10, 40


def write_vectors(w: StreamWriter) -> None:
    """Writes a partition that runs over pairs of samples."""
    part = w.part
    w.scalar_values(part.prologue)
    past = [node for node in part.nodes if node.op == "state"]
    near = [w.stored[node.attr] for node in past if is_near(node, w.kernel)]
    kept = [value for place, value in w.stored.items() if place.slot in part.slots]
    w.fill_rows([value for value in dict.fromkeys([*near, *kept]) if value not in part.reads])
    for node in past:
        w.fill_past(node)
    nodes = [node for node in part.nodes if node.op not in ("wave", "state")]
    waves = [node for node in part.nodes if node.op == "wave"]
    outputs = [w.section.outputs[at] for at in part.outputs]

    def write() -> None:
        w.read_rows(past)
        w.write(nodes)
        w.write_rows(past)

    used = [*(each for node in nodes for each in operands(node)), *part.writes, *outputs]
    if nodes or waves or outputs:
        w.over_pairs(used, waves, pairs_at_once(part.nodes), write)
    w.copy_outputs()
    w.keep_slots()


def write_interchanged(w: StreamWriter) -> None:
    """Writes a partition that is one loop: each step runs over the whole chunk before the next one. Each carried value
    has a row of its own, unless it is the same at all samples."""
    b, part = w.b, w.part
    (loop,) = part.nodes
    body: LoopBody = loop.attr
    starts = loop.args[2:]
    varying = [k for k, carried in enumerate(body.carried) if carried in w.graph.varying]
    steady = [k for k in range(len(starts)) if k not in varying]
    w.scalar_values(part.prologue)

    def write_starts() -> None:
        w.read_rows()
        for k in varying:
            w.store_row((loop, k), w.value(starts[k]), "float")

    w.over_pairs([starts[k] for k in varying], (), 2, write_starts)
    first, last = (w.value(bound) for bound in loop.args[:2])
    carried = w.carry([body.carried[k] for k in steady], [starts[k] for k in steady])
    steps = b.variable("i32", b.i32(0), "steps")
    with b.within("block", "end") as end, b.within("loop", "step") as step:
        index = w.step_index(first, last, steps, end)
        if not is_short(loop):
            w.stop_if(b.put("i32.eq", b.get(steps), b.i32(LOOP_STEPS)), end)
        if body.index is not None:
            w.keep(body.index, index)
        _write_step(w, loop, varying, steps)
        b.set(carried, [w.value(body.following[k]) for k in steady])
        b.set((steps,), (b.put("i32.add", b.get(steps), b.i32(1)),))
        b.do("br", immediate=step)
    # Later partitions read rows.
    results = {node.attr for node in part.writes} - set(varying)
    if results:
        w.over_pairs((), (), 1, lambda: w.store_rows(loop, {k: carried[steady.index(k)] for k in results}))


def _write_step(w: StreamWriter, loop: Node, varying: Sequence[int], steps: Variable) -> None:
    """Writes one step: first the values that are the same at all samples, then a loop over pairs of samples."""
    b, body = w.b, loop.attr
    steady = [node for node in body.nodes if not w.graph.changes(node)]
    found = tables(loop, steady)
    for node, values in found.items():
        place = b.put("i32.add", b.param(BLOCK), b.put("i32.shl", b.get(steps), b.i32(3)))
        w.keep(node, b.load("f64", place, w.scratch.table(values)))
    w.scalar_values([node for node in steady if node not in found])
    nodes = [node for node in body.nodes if w.graph.changes(node) and node.op != "wave"]
    waves = [node for node in body.nodes if node.op == "wave"]

    def write() -> None:
        w.read_rows()
        for k in varying:
            w.keep(body.carried[k], w.load_row((loop, k), "float"))
        w.write(nodes)
        following = [w.value(body.following[k]) for k in varying]
        for k, value in zip(varying, following, strict=True):
            w.store_row((loop, k), value, "float")

    used = [*(each for node in nodes for each in operands(node)), *(body.following[k] for k in varying)]
    w.over_pairs(used, waves, pairs_at_once([*nodes, *waves]), write)


class _SlotVariable(NamedTuple):
    """A plane of a slot that remembers one tick, while a chunk is computed: one and two ticks ago."""

    now: Variable
    before: Variable


def write_serial(w: StreamWriter) -> None:
    """Writes the partition of state, sample by sample."""
    b, part = w.b, w.part
    w.scalar_values(part.prologue)
    stored = {place: value for place, value in w.stored.items() if place.slot in part.slots}
    places = dict.fromkeys([*states(part.nodes), *stored])
    near = {place: _slot_variable(w, place) for place in places if w.ring(place).depth == 1}
    w.near = {place: variable.now for place, variable in near.items()}
    w.begin_heads(ring for ring in w.layout.rings if ring.depth > 1 and ring.key in part.slots)
    row = b.variable("i32", b.i32(0), "row")
    with b.within("loop", "sample") as label:
        w.at_row(b.get(row), 0)
        w.read_rows()
        w.write(part.nodes)
        w.write_rows()
        values = {place: w.as_real(value) for place, value in stored.items()}
        for place, value in values.items():
            if place not in near:
                w.store_far(place, value)
        for place, variable in near.items():
            b.set((variable.before, variable.now), (b.get(variable.now), values.get(place, b.get(variable.now))))
        w.advance_heads()
        b.set((row,), (b.put("i32.add", b.get(row), b.i32(1)),))
        b.do("br_if", b.put("i32.lt_s", b.get(row), b.param("count")), immediate=label)
    w.keep_heads()
    _write_back(w, near)
    _fill_up(w)


def _slot_variable(w: StreamWriter, place: SlotPlane) -> _SlotVariable:
    ring, b = w.ring(place), w.b
    cells = b.put("i32.xor", w.word(ring.head), b.i32(1)), w.word(ring.head)
    now, before = (b.variable("f64", b.load("f64", w.plane(ring, cell, place.plane)), "past") for cell in cells)
    return _SlotVariable(now, before)


def _write_back(w: StreamWriter, near: Mapping[SlotPlane, _SlotVariable]) -> None:
    """Stores the variables to their rings, and the heads of these."""
    b, heads = w.b, dict[str, WasmValue]()
    for place, variable in near.items():
        ring = w.ring(place)
        if ring.key not in heads:
            ticks = b.put("i32.add", w.word(ring.head), b.param("count"))
            heads[ring.key] = b.put("i32.and", ticks, b.i32(1))
        last = b.put("i32.xor", heads[ring.key], b.i32(1))
        b.store(b.get(variable.now), w.plane(ring, last, place.plane))
        b.store(b.get(variable.before), w.plane(ring, heads[ring.key], place.plane))
    for key, head in heads.items():
        b.store(head, b.param(BLOCK), next(ring.head for ring in w.layout.rings if ring.key == key))


def _fill_up(w: StreamWriter) -> None:
    """Fills rows after the last sample with its value, so that every lane computes what some sample does."""
    b = w.b
    if not w.part.writes:
        return
    last = b.put("i32.sub", b.param("count"), b.i32(1))
    w.at_row(last, 0)
    for node in w.part.writes:
        value = w.load_row(node, node.kind)
        for offset in range(1, PADDING):
            w.at_row(last, offset)
            w.store_row(node, value, node.kind)
        w.at_row(last, 0)


# The function of a launch.


def stream_functions(kernel: Kernel, layout: BlockLayout, scratch: ScratchRows) -> list[FunctionBuilder]:
    """The functions of all partitions, and last the one that calls them, chunk by chunk."""
    graph = with_waves(kernel)
    made: list[FunctionBuilder] = []
    for number, part in enumerate(stream_parts(kernel, graph)):
        b = FunctionBuilder(f"{part.way}{number}", _PARAMS)
        w = StreamWriter(b, kernel, layout, graph, part, scratch)
        match part.way:
            case "vectors":
                write_vectors(w)
            case "interchanged":
                write_interchanged(w)
            case "serial":
                write_serial(w)
        made.append(b)
    return [*made, _chunks([each.name for each in made], WasmWriter(_new(), kernel, layout, graph.section))]


def _new() -> FunctionBuilder:
    return FunctionBuilder(ELEMENTS, [(BLOCK, "i32")], exported=True)


def _chunks(names: Sequence[str], w: WasmWriter) -> FunctionBuilder:
    b, width = w.b, w.word(WIDTH)
    first, rate, origin = (w.number(offset) for offset in (FIRST, RATE, ORIGIN))
    step = b.put("f64.div", b.f64(1.0), rate)
    start = b.variable("i32", b.i32(0), "start")
    with b.within("loop", "chunk") as label:
        left = b.put("i32.sub", width, b.get(start))
        is_last = b.put("i32.lt_s", left, b.i32(CHUNK))
        count = b.put("select", left, b.i32(CHUNK), is_last, kind="i32")
        number = b.put("f64.add", first, b.put("f64.convert_i32_s", b.get(start)))
        time = b.put("f64.add", origin, b.put("f64.div", number, rate))
        given = b.param(BLOCK), b.get(start), count, number, time, step
        for name in names:
            b.run(name, *given)
        b.set((start,), (b.put("i32.add", b.get(start), b.i32(CHUNK)),))
        b.do("br_if", b.put("i32.lt_s", b.get(start), width), immediate=label)
    return b
