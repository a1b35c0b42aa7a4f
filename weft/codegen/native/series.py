"""From the kernel of a sound to a module of LLVM IR: serial recurrences, scans, and loops over samples.

A launch of samples is cut into chunks. Every loop partition runs over one chunk before the next chunk begins, and
leaves its values in scratch rows for the partitions after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from weft.codegen.kernel import LOOP_STEPS, Kernel
from weft.codegen.native.dataflow import Graph
from weft.codegen.native.loop_parts import TIME, LoopPartition, loop_partitions, with_waves
from weft.codegen.native.module import FRAME, Module, frame_function, module_of
from weft.codegen.native.section import note_stop, write_nodes
from weft.codegen.native.serial_parts import states
from weft.codegen.native.target import DOUBLE, Head, History, Isa, LlvmValue, Word
from weft.codegen.native.writer import ArgumentTable, FunctionWriter, LlvmLanes, LoopHead, ValueWriter
from weft.codegen.values import Line, LoopBody, Node, operands
from weft.ir.expr import SlotPlane
from weft.ir.rates import Rate
from weft.ops import OPS, double, ieee
from weft.ops.spec import ValueType

# Waves by recurrence: a sine whose angle grows by δ from sample to sample satisfies
# `s(n + L) = 2 cos(L δ) · s(n) − s(n − L)`, so each vector follows from the two before it.


class Recurrence(NamedTuple):
    """A wave within a loop over vectors. `now` and `before` are its last two vectors, which start as `second` and
    `first`; `factor` is 2 cos(L δ)."""

    now: LlvmValue
    before: LlvmValue
    first: LlvmValue
    second: LlvmValue
    factor: LlvmValue


def recurrence(w: ValueWriter, node: Node) -> Recurrence:
    """Starts a wave at the first sample of a chunk: from its angle there (`%time`) and the growth of the angle per
    sample (`%step` is the time between two samples). Whole turns are taken out of both first. The angles are then
    rounded far less than the times are, which matters because the recurrence amplifies errors in their differences.

    Only the first two registers are computed as sines. The rest of the first two vectors follows by the recurrence.
    """
    width, count = min(w.isa.doubles, w.lanes), 2 * max(1, w.lanes // w.isa.doubles)
    angle, growth = _angle(w, node)
    # Padded to the lanes of a register, so that one helper function serves all calls.
    by_register, by_vector, *_ = _factors(w, growth, ((width, w.lanes) * width)[: max(2, width)])
    first = -w.lanes
    with w.narrow(width):
        registers = [_wave(w, node.attr, angle, growth, start) for start in (first, first + width)]
        factor = w.splat(by_register, "float")
        while len(registers) < count:
            registers.append(wave_after(w, factor, registers[-1], registers[-2]))
    before, now = (_joined(w, part, width) for part in (registers[: count // 2], registers[count // 2 :]))
    phi_now, phi_before = (LlvmValue(w.name(what), "float") for what in ("now", "before"))
    return Recurrence(phi_now, phi_before, before, now, w.splat(by_vector, "float"))


def wave_after(w: LlvmLanes, factor: LlvmValue, now: LlvmValue, before: LlvmValue) -> LlvmValue:
    """The vector after these two."""
    return w.fma(factor, now, w.neg(before))


def _angle(w: ValueWriter, node: Node) -> tuple[str, str]:
    """The angle at the first sample, and its growth per sample, in half turns from −1 to 1."""
    slope, offset = (w.lane(w.value(arg)) for arg in node.args)
    with w.narrow(1):
        each = w.splat(slope, "float")
        angle = w.fma(each, w.splat("%time", "float"), w.splat(offset, "float"))
        growth = w.mul(each, w.splat("%step", "float"))
        return w.lane(double.within_turn(w, angle)), w.lane(double.within_turn(w, growth))


def _wave(w: LlvmLanes, row: str, angle: str, growth: str, first: int) -> LlvmValue:
    """A wave at the samples from number `first` of the chunk on."""
    angles = w.fma(w.each(range(first, first + w.lanes)), w.splat(growth, "float"), w.splat(angle, "float"))
    return _called(w, row, angles)


def _factors(w: LlvmLanes, growth: str, distances: Sequence[int]) -> list[str]:
    """2 cos of the growth of the angle over each of these distances, in samples."""
    with w.narrow(len(distances)):
        doubled = w.mul(_called(w, "cospi", w.mul(w.splat(growth, "float"), w.each(distances))), w.real(2))
        return [w.lane(doubled, lane) for lane in range(len(distances))]


def _called(w: LlvmLanes, row: str, x: LlvmValue) -> LlvmValue:
    """A row as a call of a helper. It runs only once a chunk, so inlining would cost LLVM more time than it saves."""
    of, name = w.types["float"], f"@{row}.{w.lanes}"
    if name not in w.helpers:
        inner = LlvmLanes(w.isa, w.lanes, w.floats)
        given = LlvmValue("%x", "float")
        found = (double.sine_of_half_turns if row == "sinpi" else double.cosine_of_half_turns)(inner, given)
        w.declared |= inner.declared
        w.helpers[name] = [
            f"define internal {of} {name}({of} %x) #0 {{", "entry:", *inner.text, f"  ret {of} {found.text}", "}",
        ]  # fmt: skip
    return LlvmValue(w.put(f"call {of} {name}({of} {x.text})"), "float")


def _joined(w: LlvmLanes, registers: list[LlvmValue], width: int) -> LlvmValue:
    """Registers of `width` lanes each, joined to one vector."""
    while len(registers) > 1:
        of = w.floats.vector(width, "float")
        order = ", ".join(f"i32 {lane}" for lane in range(2 * width))
        registers = [
            LlvmValue(w.put(f"shufflevector {of} {a.text}, {of} {b.text}, <{2 * width} x i32> <{order}>"), "float")
            for a, b in zip(registers[::2], registers[1::2], strict=True)
        ]
        width *= 2
    return registers[0]


# The functions of loop partitions.

CHUNK = 256
"""The most samples of a chunk: few enough that the values of all partitions stay in the cache."""

GIVEN = "ptr %block, i64 %start, i64 %count, double %origin, double %number, double %rate, double %time, double %step"
"""The parameters of each function: the block of arguments; the first sample of the chunk and their count; `%origin`,
`%number` and `%rate`, of which times are made (sample k of the chunk is at `%origin + (%number + k) / %rate`); the time
of the first sample, and the time between two samples."""


class Scratch:
    """The memory through which values pass from one loop partition to another: a row of a chunk's length for each."""

    def __init__(self) -> None:
        self.size = 0
        self._places: dict[object, int] = {}

    def place(self, key: Node | tuple[Node, int]) -> int:
        """Where the row of a value begins, in bytes; or that of a carried value, by its loop and number."""
        kind: ValueType = "float"
        if isinstance(key, Node):
            # A carried value has one row for all steps of its loop; after the last step the row holds the result.
            kind, key = key.kind, (key.args[0], key.attr) if key.op == "loop_out" else key
        if key not in self._places:
            self._places[key] = self.size
            self.size += CHUNK * (DOUBLE.bytes if kind == "float" else 4)
        return self._places[key]


class ChunkWriter(FunctionWriter):
    """The function of one loop partition, over the samples from `%start` on. `row` is where a vector begins in the
    chunk, and `index` where it begins in the launch."""

    def __init__(
        self, function: str, part: LoopPartition, kernel: Kernel, graph: Graph, isa: Isa, lanes: int,
        table: ArgumentTable, scratch: Scratch,
    ) -> None:  # fmt: skip
        super().__init__(kernel, graph, isa, lanes, table, Rate.ELEMENT, DOUBLE)
        self.function = function
        self.part = part
        self.block = "begin"
        self.row = ""
        self._scratch = scratch
        self._rows: dict[int, str] = {}

    def _line(self, line: Line) -> LlvmValue:
        if line != TIME:
            return super()._line(line)
        return self.find(line) or self.keep(line, self._times())

    def _times(self) -> LlvmValue:
        """The times of the samples of a vector. Each is computed from the number of its sample, which is exact."""
        lanes = self._hoist("numbers", lambda: self.add(self.splat("%number", "float"), self.each(range(self.lanes))))
        rate = self._hoist("rate", lambda: self.splat("%rate", "float"))
        origin = self._hoist("origin", lambda: self.splat("%origin", "float"))
        row = self.splat(self.put(f"sitofp i64 {self.row} to double"), "float")
        return self.add(self.div(self.add(lanes, row), rate), origin)

    def row_of(self, key: Node | tuple[Node, int]) -> str:
        """The address of the row of a value, or of a carried value, by its loop and number."""
        place = self._scratch.place(key)
        if place not in self._rows:
            address = self.word(Word.SCRATCH)
            self._rows[place] = self.in_entry(lambda: self.put(f"getelementptr i8, ptr {address}, i64 {place}"))
        return self._rows[place]

    def output(self, number: int) -> str:
        """The address of the first sample of an output."""
        stride, out = self.word(Word.STRIDE), self.word(Word.OUT)
        return self.in_entry(lambda: self.element(out, self.put(f"mul i64 {stride}, {number}"), "float"))

    def begin_rows(self, row: str) -> None:
        """Begins a vector, or a sample, at a row of the chunk."""
        self.row, self.index = row, self.name("index")
        self.do(f"{self.index} = add i64 %start, {row}")

    def read_rows(self, nodes: Sequence[Node]) -> None:
        """Loads values that earlier partitions have written."""
        for node in nodes:
            self.keep(node, self.load(self.row_of(node), self.row, node.kind))

    def write_rows(self) -> None:
        """Stores the values that later partitions read, and the outputs."""
        for node in self.part.writes:
            self.store(self.value(node), self.row_of(node), self.row)
        for number in self.part.outputs:
            self.store(self.as_real(self.value(self.graph.section.outputs[number])), self.output(number), self.index)

    def over_vectors(self, waves: Sequence[Node], write: Callable[[], None]) -> None:
        """A loop over the vectors of the chunk; `write` writes what is computed for each."""
        begun = [(node, recurrence(self, node)) for node in waves]
        number = self.number()
        head = self.begin_loop(f"vector{number}")
        self.begin_rows(self.name("row"))
        with self.scope():
            for node, wave in begun:
                self.keep(node, wave.now)
            write()
            values = [wave_after(self, wave.factor, wave.now, wave.before) for _, wave in begun]
        next_row = self.put(f"add i64 {self.row}, {self.lanes}")
        more = self.put(f"icmp slt i64 {next_row}, %count")
        phis, of = [("i64", self.row, "0", next_row)], self.types["float"]
        for (_, wave), value in zip(begun, values, strict=True):
            phis.append((of, wave.now.text, wave.second.text, value.text))
            phis.append((of, wave.before.text, wave.first.text, wave.now.text))
        self.phis(head, self.block, phis)
        self.branch(more, f"vector{number}", f"after{number}")
        self.label(f"after{number}")


def write_vectors(w: ChunkWriter) -> None:
    """Writes a partition that runs over vectors."""
    part = w.part
    write_nodes(w, part.prologue, part.prologue)
    nodes = [node for node in part.nodes if node.op != "wave"]
    own = set(nodes)
    roots = [node for node in (*part.writes, *(w.graph.section.outputs[at] for at in part.outputs)) if node in own]

    def write() -> None:
        w.read_rows(part.reads)
        write_nodes(w, nodes, roots)
        w.write_rows()

    w.over_vectors([node for node in part.nodes if node.op == "wave"], write)


# Scans: linear feedback `y = a · prev(y) + x`, in vectors.
#
# Sample by sample, each would wait for the one before it. The contribution of the samples of a vector to one another,
# `x₃ + a·x₂ + a²·x₁ + a³·x₀`, does not depend on earlier vectors. It is summed over neighbours first, then over pairs,
# and so on. The contribution of the earlier vectors is added to all lanes at once, so that from vector to vector only
# one product and one sum wait for each other.

# The powers of smaller factors might leave the range of floats. Factors of 1 and above never forget how a sum was
# rounded, and a count in steps of 0.01 has to reach 0.5 in the same sample everywhere.
_LEAST = 2.0**-60


@dataclass(frozen=True, slots=True)
class Scan:
    """`total` is `factor · (the slot one tick ago) + added`, and is stored to the slot."""

    place: SlotPlane
    total: Node
    factor: float
    added: Node


def scans(kernel: Kernel, graph: Graph, part: LoopPartition) -> tuple[Scan, ...]:
    """The scans of a serial partition, if they are all the feedback in it; otherwise none."""
    stored = {store.place: store.value for store in graph.section.stores}
    found: dict[Node, Scan] = {}
    used: set[Node] = set()
    """The values that are part of a scan, and may be used nowhere else."""
    for state in part.nodes:
        if state.op != "state":
            continue
        scan = _scan(state, stored.get(state.attr))
        if scan is None or scan.total in found or scan.total not in part.nodes:
            return ()
        if kernel.slot(state.attr.slot).depth != 1:
            return ()
        found[scan.total] = scan
        used |= {state, *(arg for arg in scan.total.args if state in arg.args)}
    own = {scan.place for scan in found.values()}
    others = [node for node in part.nodes if node not in used and node not in found]
    seen = {*part.writes, *stored.values(), *(graph.section.outputs[at] for at in part.outputs)}
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
    """The factor, if a node is a state times a constant; None for any other node."""
    if node is state:
        return 1.0
    match node.op, node.args:
        case "mul", (Node("const"), Node() as other) if other is state:
            return float(node.args[0].attr)
        case "mul", (Node() as other, Node("const")) if other is state:
            return float(node.args[1].attr)
    return None


def rows_before(w: ChunkWriter, lanes: int) -> str:
    """The number of samples of a chunk that scans compute, in whole vectors. At least one sample is left over."""
    return w.put(f"and i64 {w.put('sub i64 %count, 1')}, {-lanes}")


def write_scans(w: ChunkWriter, found: Sequence[Scan]) -> None:
    """Writes the samples of a chunk up to `rows_before`; `write_recurrence` continues from the state of the rings after
    that. Vectors have an even number of samples, so the recurrence writes the same cells as it would without the
    scan."""
    part = w.part
    write_nodes(w, part.prologue, part.prologue)
    scan_of = {scan.total: scan for scan in found}
    carried = {scan.total: (w.name("before"), _last_sample(w, scan.place)) for scan in found}
    """The last sample before a vector, and before the chunk."""
    rows = rows_before(w, w.lanes)
    before = w.block
    w.branch(w.put(f"icmp eq i64 {rows}, 0"), "over", "vector")
    w.label("vector")
    head = LoopHead(before, len(w.text))
    w.begin_rows("%row")
    totals: dict[Node, LlvmValue] = {}
    last: dict[Node, str] = {}
    products = {arg for scan in found for arg in scan.total.args if arg is not scan.added}
    with w.scope():
        w.read_rows(part.reads)
        for node in part.nodes:
            if node in scan_of:
                name, _ = carried[node]
                totals[node], last[node] = _write_total(w, scan_of[node], name)
                w.keep(node, totals[node])
            elif node.op != "state" and node not in products:
                write_nodes(w, [node], [node])
        w.write_rows()
    w.do(f"%row.next = add i64 %row, {w.lanes}")
    phis = [("double", name, first, last[total]) for total, (name, first) in carried.items()]
    w.phis(head, w.block, [("i64", "%row", "0", "%row.next"), *phis])
    w.branch(w.put(f"icmp slt i64 %row.next, {rows}"), "vector", "last")
    w.label("last")
    for scan in found:
        # The ring has the last two samples.
        for cell, lane in zip(_cells(w, scan.place), (w.lanes - 1, w.lanes - 2), strict=True):
            number = w.lane(totals[scan.total], lane)
            with w.narrow(1):
                w.store(w.splat(number, "float"), w.word(History(scan.place.slot)), cell)
    w.jump("over")
    w.label("over")


def _write_total(w: ChunkWriter, scan: Scan, name: str) -> tuple[LlvmValue, str]:
    """Writes the next vector after the sample of this name. Returns the vector, and its last sample."""
    of, factor, lanes = w.types["float"], scan.factor, w.lanes
    own, reach = w.value(scan.added), 1
    while reach < lanes:
        order = ", ".join(f"i32 {lanes + at - reach if at >= reach else 0}" for at in range(lanes))
        earlier = w.put(f"shufflevector {of} zeroinitializer, {of} {own.text}, <{lanes} x i32> <{order}>")
        own, reach = w.fma(w.real(factor**reach), LlvmValue(earlier, "float"), own), 2 * reach
    total = w.fma(w.each([factor ** (at + 1) for at in range(lanes)]), w.splat(name, "float"), own)
    # The last sample is computed separately, and so earlier: the next vector waits for it.
    alone = w.lane(own, lanes - 1)
    with w.narrow(1):
        before, added = w.splat(name, "float"), w.splat(alone, "float")
        return total, w.lane(w.fma(w.real(factor**lanes), before, added))


def _cells(w: ChunkWriter, place: SlotPlane) -> list[str]:
    """The places of the last sample and the one before it, in the ring of a slot that remembers one tick."""
    head = w.word(Head(place.slot))
    return [_at(w, place, cell) for cell in (w.put(f"xor i64 {head}, 1"), head)]


def _last_sample(w: ChunkWriter, place: SlotPlane) -> str:
    """The last sample of a slot before a chunk."""
    last, _ = _cells(w, place)
    with w.narrow(1):
        return w.lane(w.load(w.word(History(place.slot)), last, "float"))


# Tables: for a loop with constant bounds, values that depend on nothing but the step are computed beforehand.

# The cost from which a value is worth a table: that of a function of the C library, or of several others.
_WORTH_A_TABLE = 20


def tables(loop: Node, steady: Sequence[Node]) -> dict[Node, list[float]]:
    """The numbers in each step, for those values that are worth a table. `steady` are the same at every sample."""
    first, last = loop.args[:2]
    body: LoopBody = loop.attr
    if first.op != "const" or last.op != "const" or not last.attr >= first.attr:
        return {}
    steps = int(min(ieee.steps(first.attr, last.attr), LOOP_STEPS))
    known: dict[Node, list[float]] = {}
    if body.index is not None:
        known[body.index] = [first.attr + step for step in range(steps)]
    costs: dict[Node, int] = {}
    for node in steady:
        row = OPS.get(node.op)
        columns = [[arg.attr] * steps if arg.op in ("const", "u32") else known.get(arg) for arg in node.args]
        if row is None or None in columns:
            continue
        known[node] = [row.fold(*args) for args in zip(*filter(None, columns), strict=True)]
        costs[node] = row.cost + sum(costs.get(arg, 0) for arg in node.args)
    return {node: known[node] for node, cost in costs.items() if cost >= _WORTH_A_TABLE and node.kind == "float"}


# Loop interchange: each step of a loop runs over a whole chunk of samples before the next step.


def write_interchanged(w: ChunkWriter) -> None:
    """Writes a partition that is one loop. Each carried value has a row of its own, unless it is the same at all
    samples."""
    part, (loop,) = w.part, w.part.nodes
    body, starts = loop.attr, loop.args[2:]
    varying = [k for k, carried in enumerate(body.carried) if carried in w.graph.varying]
    steady = [k for k in range(len(starts)) if k not in varying]
    write_nodes(w, part.prologue, part.prologue)

    def write_starts() -> None:
        w.read_rows([node for node in part.reads if node in starts])
        _write_carried(w, loop, {k: w.value(starts[k]) for k in varying})

    w.over_vectors((), write_starts)
    first, last = (w.lane(w.value(bound)) for bound in loop.args[:2])
    names = {k: LlvmValue(w.name("carried"), "float") for k in steady}
    head = w.begin_loop("head")
    with w.scope():
        index = _write_step_or_end(w, first, last)
        for k, name in names.items():
            w.keep(body.carried[k], name)
        if body.index is not None:
            w.keep(body.index, w.splat(index, "float"))
        _write_body(w, loop, varying)
        counted = w.put("add i32 %steps, 1")
        following = {k: w.value(body.following[k]) for k in steady}
    latch, of = w.block, w.types["float"]
    w.jump("head")
    phis = [(of, name.text, w.value(starts[k]).text, following[k].text) for k, name in names.items()]
    w.phis(head, latch, [("i32", "%steps", "0", counted), *phis])
    w.label("over")
    # Later partitions read rows.
    results = {node.attr: names[node.attr] for node in part.writes if node.attr in names}
    if results:
        w.over_vectors((), lambda: _write_carried(w, loop, results))


def _write_carried(w: ChunkWriter, loop: Node, values: Mapping[int, LlvmValue]) -> None:
    """Fills the rows of carried values."""
    for k, value in values.items():
        w.store(value, w.row_of((loop, k)), w.row)


def _write_step_or_end(w: ChunkWriter, first: str, last: str) -> str:
    """Enters the next step, unless the loop is over. Returns the index of the step."""
    index = w.put(f"fadd double {first}, {w.put('sitofp i32 %steps to double')}")
    goes_on = w.put(f"fcmp ole double {index}, {last}")
    allowed = w.put(f"icmp ult i32 %steps, {LOOP_STEPS}")
    w.branch(w.put(f"and i1 {goes_on}, {allowed}"), "onwards", "end")
    w.label("end")
    note_stop(w, goes_on, "stop", "over")
    w.label("onwards")
    return index


def _write_body(w: ChunkWriter, loop: Node, varying: Sequence[int]) -> None:
    """Writes one step: first the values that are the same at all samples, then a loop over the samples."""
    body: LoopBody = loop.attr
    _write_steady(w, loop)
    others = [node for node in body.nodes if w.graph.changes(node) and node.op != "wave"]

    def write() -> None:
        w.read_rows(w.part.reads)
        for k in varying:
            w.keep(body.carried[k], w.load(w.row_of((loop, k)), w.row, "float"))
        write_nodes(w, others, [body.following[k] for k in varying])
        _write_carried(w, loop, {k: w.value(body.following[k]) for k in varying})

    w.over_vectors([node for node in body.nodes if node.op == "wave"], write)


def _write_steady(w: ChunkWriter, loop: Node) -> None:
    """Writes the values that are the same at all samples of a step, if others need them."""
    body: LoopBody = loop.attr
    steady = {node: None for node in body.nodes if not w.graph.changes(node)}
    found = tables(loop, list(steady))
    for node, values in found.items():
        name = f"@{w.function}.table{len(w.helpers)}"
        numbers = ", ".join(f"double {w.floats.text(value)}" for value in values)
        w.helpers[name] = [f"{name} = private constant [{len(values)} x double] [{numbers}]"]
        w.keep(node, w.load_splat(name, w.put("zext i32 %steps to i64"), "float"))
    varying = [arg for node in body.nodes if w.graph.changes(node) for arg in operands(node)]
    roots = [node for node in (*varying, *body.following) if node in steady and node not in found]
    write_nodes(w, [node for node in steady if node not in found], roots)


# Serial recurrences: state, and the values that it is computed from, sample by sample.


class _SlotRegister(NamedTuple):
    """A plane of a slot that remembers one tick, in registers while a chunk is computed: its values one and two ticks
    ago, and the initial values of both. The ring has both, since between ticks it is read one tick further back."""

    now: LlvmValue
    before: LlvmValue
    first: LlvmValue
    second: LlvmValue


def write_recurrence(w: ChunkWriter, lanes: int, scanned: int) -> None:
    """Writes the serial partition. `lanes` is the width of the vectors of the partitions after it, and `scanned` that
    of the vectors that scans have computed before it; 0 without scans."""
    part, outputs = w.part, w.graph.section.outputs
    write_nodes(w, part.prologue, part.prologue)
    first = rows_before(w, scanned) if scanned else "0"
    stored = {store.place: store.value for store in w.graph.section.stores}
    places = dict.fromkeys([*states(part.nodes), *stored])
    slots = {place.slot: w.kernel.slot(place.slot) for place in places}
    registers = {place: _register(w, place) for place in places if slots[place.slot].depth == 1}
    far = {key: (w.name("head"), w.word(Head(key))) for key, slot in slots.items() if slot.depth > 1}
    """For slots that remember more ticks: the cell of the ring that a sample writes, and that of the first sample."""
    head = w.begin_loop("sample")
    w.begin_rows("%row")
    w.heads.update({key: name for key, (name, _) in far.items()})
    w.registers.update({place: register.now for place, register in registers.items()})
    with w.scope():
        w.read_rows(part.reads)
        own = set(part.nodes)
        roots = [*stored.values(), *part.writes, *(outputs[at] for at in part.outputs)]
        write_nodes(w, part.nodes, [node for node in roots if node in own])
        w.write_rows()
        values = {place: w.as_real(w.value(node)) for place, node in stored.items()}
        for key, (name, _) in far.items():
            for place, value in values.items():
                if place.slot == key:
                    w.store(value, w.word(History(key)), _at(w, place, name))
        next_heads = {key: _next_head(w, name, slots[key].depth) for key, (name, _) in far.items()}
    w.do("%row.next = add i64 %row, 1")
    w.do("%row.more = icmp slt i64 %row.next, %count")
    of, phis = w.types["float"], [("i64", "%row", first, "%row.next")]
    phis += [("i64", name, start, next_heads[key]) for key, (name, start) in far.items()]
    for place, (now, before, start, second) in registers.items():
        phis.append((of, now.text, start.text, values.get(place, now).text))
        phis.append((of, before.text, second.text, now.text))
    w.phis(head, w.block, phis)
    w.branch("%row.more", "sample", "last")
    w.label("last")
    for key, following in next_heads.items():
        _write_word(w, key, following)
    _write_back(w, registers, values)
    _fill_up(w, lanes)


# Slots that remember one tick.


def _register(w: ChunkWriter, place: SlotPlane) -> _SlotRegister:
    ring, head = w.word(History(place.slot)), w.word(Head(place.slot))
    cells = w.put(f"xor i64 {head}, 1"), head
    first, second = (w.load(ring, _at(w, place, cell), "float") for cell in cells)
    now, before = (LlvmValue(w.name(what), "float") for what in ("now", "before"))
    return _SlotRegister(now, before, first, second)


def _at(w: ChunkWriter, place: SlotPlane, cell: str) -> str:
    """The place of a plane of a cell in a ring."""
    return w.put(f"add i64 {w.put(f'mul i64 {cell}, {w.kernel.slot(place.slot).planes}')}, {place.plane}")


def _write_back(
    w: ChunkWriter, registers: Mapping[SlotPlane, _SlotRegister], values: Mapping[SlotPlane, LlvmValue]
) -> None:
    """Stores the registers to their rings."""
    heads: dict[str, str] = {}
    for place, register in registers.items():
        if place.slot not in heads:
            ticks = w.put(f"add i64 {w.word(Head(place.slot))}, %count")
            heads[place.slot] = w.put(f"and i64 {ticks}, 1")
        head = heads[place.slot]
        last = w.put(f"xor i64 {head}, 1")
        ring = w.word(History(place.slot))
        w.store(values.get(place, register.now), ring, _at(w, place, last))
        w.store(register.now, ring, _at(w, place, head))
    for slot, head in heads.items():
        _write_word(w, slot, head)


# Slots that remember more.


def _next_head(w: ChunkWriter, head: str, depth: int) -> str:
    following = w.put(f"add i64 {head}, 1")
    is_over = w.put(f"icmp sgt i64 {following}, {depth}")
    return w.put(f"select i1 {is_over}, i64 0, i64 {following}")


def _write_word(w: ChunkWriter, slot: str, head: str) -> None:
    """Stores the cell at which the next chunk continues in a ring."""
    w.do(f"store i64 {head}, ptr {w.place(Head(slot))}, align 8")


def _fill_up(w: ChunkWriter, lanes: int) -> None:
    """Fills rows up to a whole vector with their last value, so that every lane computes the value of some sample."""
    if not w.part.writes:
        return
    w.do("%row.last = sub i64 %count, 1")
    values = [(node, w.load(w.row_of(node), "%row.last", node.kind)) for node in w.part.writes]
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


# The function that goes through a launch of samples, chunk by chunk. It computes with scalars only: it runs rarely, and
# LLVM compiles scalar code fastest.

SERIES = "series"
"""The name of the function. It takes the address of the block of arguments."""


def chunks_function(w: FunctionWriter, names: Sequence[str], lanes: int, frame: bool) -> list[str]:
    """The function. It calls the launch prologue if there is one (`frame`), then `names` for each chunk."""
    width = w.word(Word.WIDTH)
    lines = [w.word(field) for field in w.table.fields if isinstance(field, Line) and field != TIME]
    origin, first, rate = (w.word(word) for word in (Word.ORIGIN, Word.FIRST, Word.RATE))
    return [
        *(_fill_up_function(lanes) if lines else ()),
        f"define void @{SERIES}(ptr %block) #0 {{",
        "entry:",
        *w.entry,
        *([f"  call void @{FRAME}(ptr %block)"] if frame else ()),
        *(f"  call void @fill_up(ptr {line}, i64 {width})" for line in lines),
        f"  %origin = bitcast i64 {origin} to double",
        f"  %first = bitcast i64 {first} to double",
        f"  %rate = bitcast i64 {rate} to double",
        "  %step = fdiv double 1.0, %rate",
        "  br label %chunk",
        "chunk:",
        "  %start = phi i64 [ 0, %entry ], [ %next, %chunk ]",
        f"  %left = sub i64 {width}, %start",
        f"  %cut = icmp slt i64 %left, {CHUNK}",
        f"  %count = select i1 %cut, i64 %left, i64 {CHUNK}",
        "  %before = sitofp i64 %start to double",
        "  %number = fadd double %first, %before",
        "  %seconds = fdiv double %number, %rate",
        "  %time = fadd double %origin, %seconds",
        *(f"  call void @{name}({GIVEN})" for name in names),
        "  %next = add i64 %start, %count",
        f"  %more = icmp slt i64 %next, {width}",
        "  br i1 %more, label %chunk, label %done",
        "done:",
        "  ret void",
        "}",
    ]


def _fill_up_function(lanes: int) -> list[str]:
    """A function that repeats the last coordinate for the length of a vector after the last sample."""
    return f"""
define internal void @fill_up(ptr %line, i64 %width) #0 {{
entry:
  %at = add i64 %width, -1
  %end = add i64 %width, {lanes}
  %last.place = getelementptr double, ptr %line, i64 %at
  %last = load double, ptr %last.place, align 8
  br label %one
one:
  %place = phi i64 [ %width, %entry ], [ %place.next, %one ]
  %here = getelementptr double, ptr %line, i64 %place
  store double %last, ptr %here, align 8
  %place.next = add i64 %place, 1
  %more = icmp slt i64 %place.next, %end
  br i1 %more, label %one, label %done
done:
  ret void
}}""".splitlines()


# The module: a function that computes a launch of any number of samples, chunk by chunk, in double precision.


def emit_series(kernel: Kernel, isa: Isa, lanes: int) -> Module:
    """The module of the kernel of a sound, for vectors of `lanes`, a power of two."""
    table, scratch = ArgumentTable(), Scratch()
    graph = with_waves(kernel)
    functions: list[str] = []
    declared = set[str]()
    names: list[str] = []
    helpers: dict[str, list[str]] = {}
    for number, part in enumerate(loop_partitions(kernel, graph)):
        found = scans(kernel, graph, part) if part.way == "serial" else ()
        for way in ["scan", "serial"] if found else [part.way]:
            name = f"{way}{number}"
            width = {"serial": 1, "scan": isa.doubles}.get(way, lanes)
            w = ChunkWriter(name, part, kernel, graph, isa, width, table, scratch)
            match way:
                case "vectors":
                    write_vectors(w)
                case "interchanged":
                    write_interchanged(w)
                case "scan":
                    write_scans(w, found)
                case "serial":
                    write_recurrence(w, lanes, isa.doubles if found else 0)
            functions += [
                f"define internal void @{name}({GIVEN}) #0 {{", "entry:", *w.entry, "  br label %begin",
                "begin:", *w.text, "  ret void", "}",
            ]  # fmt: skip
            names.append(name)
            declared |= w.declared
            helpers |= w.helpers
    frame, in_frame = frame_function(kernel, isa, table, DOUBLE)
    outer = FunctionWriter(kernel, graph, isa, 1, table, Rate.ELEMENT, DOUBLE)
    functions += chunks_function(outer, names, lanes, bool(frame))
    called = [line for text in helpers.values() for line in text]
    text = [*called, *functions, *frame]
    return module_of(text, declared | in_frame, isa, table, (SERIES,), lanes=lanes, scratch=scratch.size)
