"""From the kernel of a sound to a module of LLVM IR: serial recurrences, scans and interchanged loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.codegen.kernel import LOOP_STEPS, Kernel
from weft.codegen.native.chunks import GIVEN, ChunkWriter, Scratch, chunks_function, write_vectors
from weft.codegen.native.graph import Graph
from weft.codegen.native.layout import Head, History, SeriesLayout
from weft.codegen.native.module import frame_function, is_huge
from weft.codegen.native.partition import LoopPartition, is_series, loop_partitions, states, with_waves
from weft.codegen.native.section import note_stop, write_nodes
from weft.codegen.native.target import DOUBLE, Isa, LlvmValue
from weft.codegen.native.writer import ArgumentTable, FunctionWriter
from weft.codegen.values import LoopBody, Node, operands
from weft.ir.expr import SlotPlane, StateSlot
from weft.ir.rates import Rate
from weft.ops import OPS, ieee

# Scans: linear feedback `y = a · prev(y) + x`, in vectors.
#
# Sample by sample, each would wait for the one before it. What the samples of a vector contribute to one another,
# `x₃ + a·x₂ + a²·x₁ + a³·x₀`, does not depend on earlier vectors: it is summed over neighbours first, then over pairs,
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
    stored = {store.place: store.value for store in graph.stores}
    states = [node for node in part.nodes if node.op == "state"]
    found: dict[Node, Scan] = {}
    used: set[Node] = set()
    """The values that are part of a scan, and may be used nowhere else."""
    for state in states:
        scan = _scan(state, stored.get(state.attr))
        slot = kernel.slot(state.attr.slot)
        if scan is None or slot.depth != 1 or scan.total in found or scan.total not in part.nodes:
            return ()
        found[scan.total] = scan
        used |= {state, *(arg for arg in scan.total.args if state in arg.args)}
    own = {scan.place for scan in found.values()}
    others = [node for node in part.nodes if node not in used and node not in found]
    seen = {*part.writes, *stored.values(), *(graph.outputs[at] for at in part.outputs)}
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


@dataclass(frozen=True, slots=True)
class _Carried:
    """A scan within the loop over vectors: the last sample before a vector (`name`), and its initial value."""

    scan: Scan
    name: str
    first: str


def rows_before(w: ChunkWriter, lanes: int) -> str:
    """How many samples of a chunk scans compute, in whole vectors. At least one sample is left over."""
    return w.put(f"and i64 {w.put('sub i64 %count, 1')}, {-lanes}")


def write_scans(w: ChunkWriter, kernel: Kernel, graph: Graph, part: LoopPartition, found: Sequence[Scan]) -> None:
    """Writes the samples of a chunk up to `rows_before`; `write_recurrence` goes on from the rings as they are then.
    Vectors have an even number of samples, so the recurrence writes the same cells as it would without the scan."""
    write_nodes(w, kernel, part.prologue, part.prologue)
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
    """Writes the next vector. Returns it, and its last sample."""
    of, factor, lanes = w.type("float"), carried.scan.factor, w.lanes
    own, reach = w.value(carried.scan.added), 1
    while reach < lanes:
        order = ", ".join(f"i32 {lanes + at - reach if at >= reach else 0}" for at in range(lanes))
        earlier = w.put(f"shufflevector {of} zeroinitializer, {of} {own.text}, <{lanes} x i32> <{order}>")
        own, reach = w.fma(w.real(factor**reach), LlvmValue(earlier, "float"), own), 2 * reach
    powers = w.each([w.floats.text(factor ** (at + 1)) for at in range(lanes)], "float")
    total = w.fma(powers, w.splat(carried.name, "float"), own)
    # The last sample is computed separately, and so earlier: the next vector waits for it.
    alone = w.put(f"extractelement {of} {own.text}, i64 {lanes - 1}")
    with w.narrow(1):
        before, added = w.splat(carried.name, "float"), w.splat(alone, "float")
        return total, w.first(w.fma(w.real(factor**lanes), before, added))


def _cells(w: ChunkWriter, kernel: Kernel, place: SlotPlane) -> tuple[str, str]:
    """The places of the last sample and the one before it, in the ring of a slot that remembers one tick."""
    slot, head = kernel.slot(place.slot), w.word(Head(place.slot))
    cells = w.put(f"xor i64 {head}, 1"), head
    last, earlier = (_at(w, slot, cell, place.plane) for cell in cells)
    return last, earlier


def _read(w: ChunkWriter, kernel: Kernel, place: SlotPlane) -> str:
    """The last sample of a slot before a chunk."""
    last, _ = _cells(w, kernel, place)
    with w.narrow(1):
        return w.first(w.load(w.word(History(place.slot)), last, "float"))


def _write_back_totals(w: ChunkWriter, kernel: Kernel, place: SlotPlane, total: LlvmValue) -> None:
    """Stores the last two samples of a vector to the ring."""
    of, lanes = w.type("float"), w.lanes
    for cell, lane in zip(_cells(w, kernel, place), (lanes - 1, lanes - 2), strict=True):
        number = w.put(f"extractelement {of} {total.text}, i64 {lane}")
        with w.narrow(1):
            w.store(w.splat(number, "float"), w.word(History(place.slot)), cell)


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
        operands = [_operand(arg, known, steps) for arg in node.args]
        if row is None or None in operands:
            continue
        known[node] = [row.fold(*args) for args in zip(*(each for each in operands if each is not None), strict=True)]
        costs[node] = row.cost + sum(costs.get(arg, 0) for arg in node.args)
    return {node: known[node] for node, cost in costs.items() if cost >= _WORTH_A_TABLE and node.kind == "float"}


def _operand(node: Node, known: dict[Node, list[float]], steps: int) -> list[float] | None:
    if node.op in ("const", "u32"):
        return [node.attr] * steps
    return known.get(node)


# Loop interchange: each step of a loop runs over a whole chunk of samples before the next step.


def write_interchanged(w: ChunkWriter, kernel: Kernel, graph: Graph, part: LoopPartition) -> None:
    """Writes a partition that is one loop. Each carried value has a row of its own, unless it is the same at all
    samples."""
    (loop,) = part.nodes
    body: LoopBody = loop.attr
    write_nodes(w, kernel, part.prologue, part.prologue)
    starts = loop.args[2:]
    _write_starts(w, part, loop)
    first, last = (w.first(w.value(bound)) for bound in loop.args[:2])
    steady = [k for k, carried in enumerate(body.carried) if carried not in graph.varying]
    names = {k: LlvmValue(w.name("carried"), "float") for k in steady}
    before, phis = w.block, len(w.text) + 2
    w.jump("head")
    w.label("head")
    with w.scope():
        index = _write_step_or_end(w, first, last)
        for k, name in names.items():
            w.keep(body.carried[k], name)
        if body.index is not None:
            w.keep(body.index, w.splat(index, "float"))
        _write_body(w, kernel, part, loop)
        counted = w.put("add i32 %steps, 1")
        following = {k: w.value(body.following[k]) for k in steady}
    latch = w.block
    w.jump("head")
    of = w.type("float")
    w.text[phis:phis] = [
        f"  %steps = phi i32 [ 0, %{before} ], [ {counted}, %{latch} ]",
        *(
            f"  {name.text} = phi {of} [ {w.value(starts[k]).text}, %{before} ], [ {following[k].text}, %{latch} ]"
            for k, name in names.items()
        ),
    ]
    w.label("over")
    _write_results(w, loop, {node.attr: names[node.attr] for node in part.writes if node.attr in names})


def _write_results(w: ChunkWriter, loop: Node, values: Mapping[int, LlvmValue]) -> None:
    """Fills the rows of carried values that are the same at all samples."""

    def write() -> None:
        for k, value in values.items():
            w.store(value, w.row_carried(loop, k), w.row)

    if values:
        w.over_vectors((), write)


def _write_starts(w: ChunkWriter, part: LoopPartition, loop: Node) -> None:
    """Fills the rows of carried values with those before the first step."""
    body, starts = loop.attr, loop.args[2:]

    def write() -> None:
        w.read_rows([node for node in part.reads if node in starts])
        values = [(k, w.value(start)) for k, start in enumerate(starts) if body.carried[k] in w.graph.varying]
        for k, value in values:
            w.store(value, w.row_carried(loop, k), w.row)

    w.over_vectors((), write)


def _write_step_or_end(w: ChunkWriter, first: str, last: str) -> str:
    """Enters the next step, unless the loop is over. Returns the index of the step."""
    index = w.put(f"fadd double {first}, {w.put('sitofp i32 %steps to double')}")
    goes_on = w.put(f"fcmp ole double {index}, {last}")
    allowed = w.put(f"icmp ult i32 %steps, {LOOP_STEPS}")
    w.branch(w.put(f"and i1 {goes_on}, {allowed}"), "onwards", "end")
    w.label("end")
    w.branch(goes_on, "stop", "over")
    note_stop(w, "stop", "over")
    w.label("onwards")
    return index


def _write_body(w: ChunkWriter, kernel: Kernel, part: LoopPartition, loop: Node) -> None:
    """Writes one step: first the values that are the same at all samples, then a loop over the samples."""
    body: LoopBody = loop.attr
    _write_steady(w, kernel, loop)
    waves = [node for node in body.nodes if node.op == "wave"]
    others = [node for node in body.nodes if w.graph.changes(node) and node.op != "wave"]
    varying = [k for k, carried in enumerate(body.carried) if carried in w.graph.varying]

    def write() -> None:
        w.read_rows(part.reads)
        for k in varying:
            w.keep(body.carried[k], w.load(w.row_carried(loop, k), w.row, "float"))
        write_nodes(w, kernel, others, [body.following[k] for k in varying])
        for k, value in [(k, w.value(body.following[k])) for k in varying]:
            w.store(value, w.row_carried(loop, k), w.row)

    w.over_vectors(waves, write)


def _write_steady(w: ChunkWriter, kernel: Kernel, loop: Node) -> None:
    """Writes the values that are the same at all samples of a step, as far as others need them."""
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
    write_nodes(w, kernel, [node for node in steady if node not in found], roots)


# Serial recurrences: state, and the values that it is made of, sample by sample.


@dataclass(frozen=True, slots=True)
class _SlotRegister:
    """A plane of a slot that remembers one tick, in registers while a chunk is computed: its values one and two ticks
    ago, and the initial values of both. The ring has both, since between ticks it is read one tick further back."""

    place: SlotPlane
    now: LlvmValue
    before: LlvmValue
    first: LlvmValue
    second: LlvmValue


@dataclass(frozen=True, slots=True)
class _Far:
    """A slot that remembers more ticks: the cell of its ring that a sample writes, and that of the first sample."""

    slot: StateSlot
    head: str
    first: str


def write_recurrence(
    w: ChunkWriter, kernel: Kernel, graph: Graph, part: LoopPartition, lanes: int, scanned: int
) -> None:
    """Writes the serial partition. `lanes` is the width of the vectors of the partitions after it, and `scanned` that
    of the vectors that scans have computed before it; 0 without scans."""
    write_nodes(w, kernel, part.prologue, part.prologue)
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
        roots = [*stored.values(), *part.writes, *(graph.outputs[at] for at in part.outputs)]
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
                f"  {name.text} = phi {w.type('float')} [ {start.text}, %{before} ], [ {after.text}, %{latch} ]"
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
    first, second = (w.load(ring, _at(w, slot, cell, place.plane), "float") for cell in (other, head))
    now, before = (LlvmValue(w.name(what), "float") for what in ("now", "before"))
    return _SlotRegister(place, now, before, first, second)


def _at(w: ChunkWriter, slot: StateSlot, cell: str, plane: int) -> str:
    """The place of a plane of a cell in a ring."""
    return w.put(f"add i64 {w.put(f'mul i64 {cell}, {slot.planes}')}, {plane}")


def _write_back(
    w: ChunkWriter, slots: dict[str, StateSlot], registers: list[_SlotRegister], values: dict[SlotPlane, LlvmValue]
) -> None:
    """Stores the registers to their rings."""
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


# Slots that remember more.


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
    """Stores the cell at which the next chunk goes on in a ring."""
    place = w.put(f"getelementptr i64, ptr %block, i64 {w.table.field(Head(slot))}")
    w.do(f"store i64 {head}, ptr {place}, align 8")


def _fill_up(w: ChunkWriter, part: LoopPartition, lanes: int) -> None:
    """Fills rows up to a whole vector with their last value, so that every lane computes what some sample does."""
    if not part.writes:
        return
    w.do("%row.last = sub i64 %count, 1")
    values = [(node, w.load(w.row_of(node), "%row.last", node.kind)) for node in part.writes]
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


# The module: a function that computes a launch of any number of samples, chunk by chunk, in double precision.


@dataclass(frozen=True, slots=True)
class SeriesModule:
    """The text of a module, and the interface of its function."""

    text: str
    layout: SeriesLayout


def suits_series(kernel: Kernel) -> bool:
    """Whether a kernel should become such a module: a series without external reads, and short enough for LLVM."""
    calls = any(node.op == "strand" for _, node in kernel.walk())
    return is_series(kernel) and not is_huge(kernel) and not calls


def emit_series(kernel: Kernel, isa: Isa, lanes: int, is_first: bool = False) -> SeriesModule:
    """The module of a kernel that `suits_series`, for vectors of `lanes`, a power of two. In the first tier
    (`is_first`), only sines in loops become waves: starting a wave takes more code than one sine."""
    table, scratch = ArgumentTable(), Scratch()
    graph = with_waves(kernel, is_first)
    parts = loop_partitions(graph, [store.value for store in graph.stores])
    functions: list[str] = []
    declared = set[str]()
    names: list[str] = []
    helpers: dict[str, list[str]] = {}
    for number, part in enumerate(parts):
        found = scans(kernel, graph, part) if part.way == "serial" and not is_first else ()
        for way in ["scan", "serial"] if found else [part.way]:
            name = f"{way}{number}"
            w = ChunkWriter(name, isa, {"serial": 1, "scan": isa.doubles}.get(way, lanes), table, scratch)
            w.graph = graph
            match way:
                case "vectors":
                    write_vectors(w, kernel, graph, part)
                case "interchanged":
                    write_interchanged(w, kernel, graph, part)
                case "scan":
                    write_scans(w, kernel, graph, part, found)
                case "serial":
                    write_recurrence(w, kernel, graph, part, lanes, isa.doubles if found else 0)
            functions += _function(w, name)
            names.append(name)
            declared |= w.declared
            helpers |= w.helpers
    frame, in_frame = frame_function(kernel, isa, table, DOUBLE)
    outer = FunctionWriter(isa, 1, table, Rate.ELEMENT, DOUBLE)
    functions += chunks_function(outer, names, lanes, bool(frame))
    called = [line for text in helpers.values() for line in text]
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{isa.bits}" }}'
    return SeriesModule(
        "\n".join([*sorted(declared | in_frame), *called, *functions, *frame, attributes, ""]),
        SeriesLayout(table.fields, table.scalars, table.numbers, lanes, scratch.size),
    )


def _function(w: ChunkWriter, name: str) -> list[str]:
    return [
        f"define internal void @{name}({GIVEN}) #0 {{", "entry:", *w.entry, "  br label %begin",
        "begin:", *w.text, "  ret void", "}",
    ]  # fmt: skip
