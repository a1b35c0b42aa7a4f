"""Writes the values of a section as LLVM IR: loops, conditional regions, state and pictures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from weft.codegen.kernel import LOOP_STEPS, NEST_STEPS, Kernel
from weft.codegen.native.graph import cost
from weft.codegen.native.layout import CHANNELS, Field, History, ImageCell, PictureWord, Ring, Word
from weft.codegen.native.target import DOUBLE, LlvmValue
from weft.codegen.native.writer import FunctionWriter
from weft.codegen.values import LoopBody, Node, Store
from weft.ir.expr import StateSlot
from weft.ops import OPS
from weft.ops.spec import OpSpec

# Loops. Where the bounds are the same in all lanes, a loop counts with scalars. In any other (masked) loop, each lane
# leaves at a step of its own, and the loop ends when all lanes have left.


@dataclass(frozen=True, slots=True)
class _LoopNames:
    """The labels of a loop, and the names of the values that a step hands on to the next."""

    head: str
    step: str
    after: str
    count: str
    active: str
    carried: tuple[str, ...]


def write_loop(w: FunctionWriter, node: Node, write_body: Callable[[LoopBody], None]) -> None:
    """Writes a loop; `write_body` writes the values of its body. The carried values are kept for `loop_out`."""
    body: LoopBody = node.attr
    first, last, *starts = (w.value(arg) for arg in node.args)
    names = _names(w, len(starts))
    if body.outermost and body.nested:
        _allow_steps(w, body)
    outer_mask = w.find("mask") if body in w.graph.masked else None
    before = w.block
    w.jump(names.head)
    w.label(names.head)
    phis = len(w.text)
    carried = [LlvmValue(name, "float") for name in names.carried]
    with w.scope():
        count = w.put(f"sitofp i32 {names.count} to {w.scalar('float')}")
        step = _masked_step if body in w.graph.masked else _step
        go = step(w, body, names, first, last, count)
        for place, value in zip(body.carried, carried, strict=True):
            w.keep(place, value)
        write_body(body)
        following = [w.value(value) for value in body.following]
        if body in w.graph.masked:
            following = [w.select(go, new, old) for new, old in zip(following, carried, strict=True)]
            active = w.put(f"sext {w.type('bool')} {go.text} to {w.type('u32')}")
        counted = w.put(f"add i32 {names.count}, 1")
    latch = w.block
    w.jump(names.head)
    entering = [f"  {names.count} = phi i32 [ 0, %{before} ], [ {counted}, %{latch} ]"]
    if body in w.graph.masked:
        start = outer_mask.text if outer_mask is not None else "splat (i32 -1)"
        entering.append(f"  {names.active} = phi {w.type('u32')} [ {start}, %{before} ], [ {active}, %{latch} ]")
    entering += [
        f"  {value.text} = phi {w.type('float')} [ {start.text}, %{before} ], [ {new.text}, %{latch} ]"
        for value, start, new in zip(carried, starts, following, strict=True)
    ]
    w.text[phis:phis] = entering
    w.label(names.after)
    for k, value in enumerate(carried):
        w.keep((node, k), value)


def _names(w: FunctionWriter, carried: int) -> _LoopNames:
    number = w.name("").lstrip("%")
    return _LoopNames(
        f"head{number}", f"step{number}", f"after{number}",
        w.name("count"), w.name("active"), tuple(w.name("carried") for _ in range(carried)),
    )  # fmt: skip


def _allow_steps(w: FunctionWriter, body: LoopBody) -> None:
    """Gives a nest of loops its budget of steps: one for each lane, if lanes may leave at different steps."""
    of = w.type("u32") if body in w.graph.masked else "i32"
    with w.writing(w.entry):
        w.budget = w.put(f"alloca {of}")
    w.do(f"store {of} {w.bits(NEST_STEPS).text if body in w.graph.masked else NEST_STEPS}, ptr {w.budget}")


def _step(
    w: FunctionWriter, body: LoopBody, names: _LoopNames, first: LlvmValue, last: LlvmValue, count: str
) -> LlvmValue:
    """Enters the body, unless the loop is over; all lanes agree. Returns whether it goes on."""
    index = w.put(f"fadd {w.scalar('float')} {w.first(first)}, {count}")
    goes_on = w.put(f"fcmp ole {w.scalar('float')} {index}, {w.first(last)}")
    allowed = w.put(f"icmp ult i32 {names.count}, {LOOP_STEPS}")
    if body.nested:
        left = w.put(f"load i32, ptr {w.budget}")
        allowed = w.put(f"and i1 {allowed}, {w.put(f'icmp sgt i32 {left}, 0')}")
    go = w.put(f"and i1 {goes_on}, {allowed}")
    end = f"{names.after}.end"
    w.branch(go, names.step, end)
    _stop(w, end, goes_on, names.after)
    w.label(names.step)
    if body.nested:
        w.do(f"store i32 {w.put(f'sub i32 {left}, 1')}, ptr {w.budget}")
    if body.index is not None:
        w.keep(body.index, w.splat(index, "float"))
    return LlvmValue(go, "bool")


def _masked_step(
    w: FunctionWriter, body: LoopBody, names: _LoopNames, first: LlvmValue, last: LlvmValue, count: str
) -> LlvmValue:
    """Enters the body, unless all lanes have left the loop. Returns the lanes that take part."""
    index = w.add(first, w.splat(count, "float"))
    active = LlvmValue(w.put(f"icmp ne {w.type('u32')} {names.active}, zeroinitializer"), "bool")
    wanting = w.both(w.le(index, last), active)
    below_limit = w.put(f"icmp ult i32 {names.count}, {LOOP_STEPS}")
    go = w.both(wanting, w.splat(below_limit, "bool"))
    if body.nested:
        of = w.type("u32")
        left = LlvmValue(w.put(f"load {of}, ptr {w.budget}"), "u32")
        go = w.both(go, LlvmValue(w.put(f"icmp sgt {of} {left.text}, zeroinitializer"), "bool"))
    checked, end = f"{names.step}.checked", f"{names.after}.end"
    _stop_if_any(w, w.both(wanting, w.negation(go)), checked)
    w.branch(w.any(go), names.step, end)
    w.label(end)
    w.jump(names.after)
    w.label(names.step)
    if body.nested:
        taken = LlvmValue(w.put(f"zext {w.type('bool')} {go.text} to {of}"), "u32")
        w.do(f"store {of} {w.bits_sub(left, taken).text}, ptr {w.budget}")
    if body.index is not None:
        w.keep(body.index, index)
    mask = w.put(f"sext {w.type('bool')} {go.text} to {w.type('u32')}")
    w.keep("mask", LlvmValue(mask, "u32"))
    return go


def _stop_if_any(w: FunctionWriter, blocked: LlvmValue, checked: str) -> None:
    """Notes it if the loop met its limit in any lane."""
    stop = f"{checked}.stop"
    w.branch(w.any(blocked), stop, checked)
    note_stop(w, stop, checked)
    w.label(checked)


def _stop(w: FunctionWriter, end: str, goes_on: str, after: str) -> None:
    """Writes the end of a loop, which met its limit if it would have gone on."""
    stop = f"{end}.stop"
    w.label(end)
    w.branch(goes_on, stop, after)
    note_stop(w, stop, after)


def note_stop(w: FunctionWriter, stop: str, after: str) -> None:
    """Writes the block `stop`, which notes that a loop met its limit."""
    w.label(stop)
    w.do(f"store i64 1, ptr {w.stopped()}, align 8")
    w.jump(after)


# State and pictures. Sampling is bilinear and clamped at the edge, with pixel centres at (i + ½) / width. A coordinate
# that is NaN reads the first row or column.


def write_state(w: FunctionWriter, kernel: Kernel, node: Node) -> LlvmValue:
    """The value of a slot k ticks ago, at this element."""
    slot, plane, (k,) = kernel.slot(node.attr.slot), node.attr.plane, node.args
    if node.attr in w.registers:
        return w.registers[node.attr]
    if not slot.image:
        return w.gather_wide(w.word(History(slot.key)), _cell_numbers(w, slot, plane, k))
    address = _plane(w, slot, plane, k)
    if address is not None:
        return w.load(address, "%pixel", "float")
    pixels = w.each([str(lane) for lane in range(w.lanes)], "u32")
    first = w.splat(w.put("trunc i64 %pixel to i32"), "u32")
    return _far_gather(w, slot, plane, k, w.bits_add(first, pixels))


def write_store(w: FunctionWriter, store: Store) -> None:
    """Stores the new value of an image slot."""
    w.store(w.value(store.value), w.word(ImageCell(store.place.slot, store.place.plane, 0)), "%pixel")


def write_sample(w: FunctionWriter, kernel: Kernel, node: Node) -> LlvmValue:
    """An image slot k ticks ago, sampled."""
    slot, plane, (k, x, y) = kernel.slot(node.attr.slot), node.attr.plane, node.args
    address = _plane(w, slot, plane, k)
    raster = _Raster(Word.WIDTH, Word.HEIGHT, 1)
    if address is not None and y not in w.graph.varying and w.lanes > 1:
        return _between_rows(w, raster, x, y, address)

    def read(at: LlvmValue) -> LlvmValue:
        return _far_gather(w, slot, plane, k, at) if address is None else w.gather(address, at)

    return _between_four(w, raster, x, y, read)


def write_picture(w: FunctionWriter, node: Node) -> LlvmValue:
    """A channel of a picture, sampled."""
    path, channel = node.attr
    raster = _Raster(PictureWord(path, "width"), PictureWord(path, "height"), CHANNELS)
    address = w.element(w.word(PictureWord(path, "pixels")), str(channel))
    x, y = node.args
    return _between_four(w, raster, x, y, lambda at: w.gather(address, at))


# Ticks.


def _ticks_back(w: FunctionWriter, slot: StateSlot, k: Node) -> LlvmValue:
    """The whole ticks that a read goes back: k rounded down and clamped to 1…depth; 1 for NaN."""
    return w.whole(w.lesser(w.greater(w.value(k), w.real(1)), w.real(slot.depth)))


def _plane(w: FunctionWriter, slot: StateSlot, plane: int, k: Node) -> str | None:
    """The address of an image slot k ticks ago; None if k differs between lanes."""
    if k.op == "const":
        return w.word(ImageCell(slot.key, plane, int(min(k.attr, slot.depth)) if k.attr >= 1 else 1))
    if k in w.graph.varying:
        return None
    ticks = w.put(f"sext i32 {w.first(_ticks_back(w, slot, k))} to i64")
    cell = w.put(f"sub i64 {w.head(slot.key)}, {ticks}")
    wrapped = w.put(f"add i64 {cell}, {slot.depth + 1}")
    is_before = w.put(f"icmp slt i64 {cell}, 0")
    cell = w.put(f"select i1 {is_before}, i64 {wrapped}, i64 {cell}")
    number = w.put(f"add i64 {w.put(f'mul i64 {cell}, {slot.planes}')}, {plane}")
    size = w.put(f"mul i64 {w.word(Word.WIDTH)}, {w.word(Word.HEIGHT)}")
    return w.element(w.word(Ring(slot.key)), w.put(f"mul i64 {number}, {size}"))


def _far_gather(w: FunctionWriter, slot: StateSlot, plane: int, k: Node, at: LlvmValue) -> LlvmValue:
    """Elements of an image slot k ticks ago, with a k for each lane. The index has 64 bits, as a ring of pictures can
    have more elements than 32 bits count."""
    wide, bits = f"<{w.lanes} x i64>", w.type("u32")
    number = _cell_numbers(w, slot, plane, k)
    size = w.bits_mul(w.word_as_bits(Word.WIDTH), w.word_as_bits(Word.HEIGHT))
    widened = [w.put(f"sext {bits} {value.text} to {wide}") for value in (number, size, at)]
    start = w.put(f"mul {wide} {widened[0]}, {widened[1]}")
    return w.gather(w.word(Ring(slot.key)), LlvmValue(w.put(f"add {wide} {start}, {widened[2]}"), "u32"), wide)


def _cell_numbers(w: FunctionWriter, slot: StateSlot, plane: int, k: Node) -> LlvmValue:
    """The number of the plane in a ring as it was k ticks ago, for each lane."""
    cell = w.bits_sub(w.splat(w.put(f"trunc i64 {w.head(slot.key)} to i32"), "u32"), _ticks_back(w, slot, k))
    is_before = LlvmValue(w.put(f"icmp slt {w.type('u32')} {cell.text}, zeroinitializer"), "bool")
    cell = w.select(is_before, w.bits_add(cell, w.bits(slot.depth + 1)), cell)
    return w.bits_add(w.bits_mul(cell, w.bits(slot.planes)), w.bits(plane))


# Places.


@dataclass(frozen=True, slots=True)
class _Raster:
    """The words that hold the extents of a picture, and the distance between neighbours in a row, in floats."""

    width: Field
    height: Field
    stride: int


@dataclass(frozen=True, slots=True)
class _Located:
    """The offsets of the pixels before and after a coordinate, and its position between the two, 0…1."""

    near: LlvmValue
    far: LlvmValue
    across: LlvmValue


def _between_four(
    w: FunctionWriter, raster: _Raster, x: Node, y: Node, read: Callable[[LlvmValue], LlvmValue]
) -> LlvmValue:
    """Interpolates between the four pixels around a place."""
    columns, rows = _locate_both(w, raster, x, y)
    upper, lower = (
        _mix(w, read(w.bits_add(row, columns.near)), read(w.bits_add(row, columns.far)), columns.across)
        for row in (rows.near, rows.far)
    )
    return _mix(w, upper, lower, rows.across)


def _between_rows(w: FunctionWriter, raster: _Raster, x: Node, y: Node, address: str) -> LlvmValue:
    """The same where all lanes are between the same two rows. Neighbouring lanes then usually read neighbouring pixels,
    and a plain load replaces the gather."""
    columns, rows = _locate_both(w, raster, x, y)
    number = w.name("").lstrip("%")
    side, apart, after = f"side{number}", f"apart{number}", f"after{number}"
    places = [w.element(address, _as_index(w, row)) for row in (rows.near, rows.far)]
    w.branch(_are_consecutive(w, x, columns), side, apart)
    incoming: dict[str, list[LlvmValue]] = {}
    w.label(side)
    first = _as_index(w, columns.near)
    ends = first, w.put(f"add i64 {first}, 1")
    incoming[w.block] = [w.load(place, end, "float") for place in places for end in ends]
    w.jump(after)
    w.label(apart)
    incoming[w.block] = [w.gather(place, column) for place in places for column in (columns.near, columns.far)]
    w.jump(after)
    w.label(after)
    four = []
    for at in range(4):
        pairs = ", ".join(f"[ {values[at].text}, %{block} ]" for block, values in incoming.items())
        four.append(LlvmValue(w.put(f"phi {w.type('float')} {pairs}"), "float"))
    upper, lower = (_mix(w, left, right, columns.across) for left, right in (four[:2], four[2:]))
    return _mix(w, upper, lower, rows.across)


def _as_index(w: FunctionWriter, offset: LlvmValue) -> str:
    """The offset in the first lane, as an index."""
    return w.put(f"sext i32 {w.first(offset)} to i64")


def _are_consecutive(w: FunctionWriter, x: Node, columns: _Located) -> str:
    """Whether each lane reads the pixel after that of the lane before it, and no lane reads the last of a row."""
    found = w.find((x, "consecutive"))
    if found is None:
        lanes = w.each([str(lane) for lane in range(w.lanes)], "u32")
        expected = w.bits_add(w.splat(w.first(columns.near), "u32"), lanes)
        bits = w.type("u32")
        follows = LlvmValue(w.put(f"icmp eq {bits} {columns.near.text}, {expected.text}"), "bool")
        has_next = LlvmValue(w.put(f"icmp ne {bits} {columns.near.text}, {columns.far.text}"), "bool")
        together = w.put(f"bitcast {w.type('bool')} {w.both(follows, has_next).text} to i{w.lanes}")
        found = w.keep((x, "consecutive"), LlvmValue(w.put(f"icmp eq i{w.lanes} {together}, -1"), "bool"))
    return found.text


def _mix(w: FunctionWriter, a: LlvmValue, b: LlvmValue, t: LlvmValue) -> LlvmValue:
    return w.add(a, w.mul(w.sub(b, a), t))


def _locate_both(w: FunctionWriter, raster: _Raster, x: Node, y: Node) -> tuple[_Located, _Located]:
    """Locates a place across and down."""
    step = w.word_as_bits(raster.width)
    if raster.stride > 1:
        step = w.bits_mul(step, w.bits(raster.stride))
    return _locate(w, x, raster.width, w.bits(raster.stride)), _locate(w, y, raster.height, step)


def _locate(w: FunctionWriter, coordinate: Node, size: Field, stride: LlvmValue) -> _Located:
    # The planes of one picture are sampled at the same places.
    keys = [(coordinate, size, part) for part in ("near", "far", "across")]
    found = [w.find(key) for key in keys]
    near, far, across = found
    if near is None or far is None or across is None:
        extent = w.word_as_real(size)
        place = w.sub(w.mul(w.value(coordinate), extent), w.real(0.5))
        place = w.lesser(w.greater(place, w.real(0)), w.sub(extent, w.real(1)))
        whole = w.whole(place)
        across = w.sub(place, w.real_of(whole))
        following = w.bits_add(whole, w.bits(1))
        is_inside = LlvmValue(w.put(f"icmp slt {w.type('u32')} {following.text}, {w.word_as_bits(size).text}"), "bool")
        near = w.bits_mul(whole, stride)
        far = w.bits_mul(w.select(is_inside, following, whole), stride)
        for key, value in zip(keys, (near, far, across), strict=True):
            w.keep(key, value)
    return _Located(near, far, across)


# Conditional regions: values that only one side of a choice needs are computed after a branch, if the condition is the
# same in all lanes.

# What a branch has to save at least, in additions. Below that, computing both sides is as fast.
_WORTH_A_BRANCH = 24


@dataclass(eq=False, slots=True)
class ConditionalRegion:
    """One side of a choice (1: its condition holds, 2: it does not) within the region around it."""

    choice: Node
    side: int
    around: ConditionalRegion | None
    depth: int
    cost: int = 0
    """The cost of the values in it."""


def conditional_regions(
    nodes: Sequence[Node], roots: Iterable[Node], varying: Set[Node]
) -> dict[Node, ConditionalRegion | None]:
    """The region of each of these nodes that the roots need; None for one that is computed in any case. Other nodes are
    left out. Operands come before their users; `varying` are the values that differ between lanes."""
    homes: dict[Node, ConditionalRegion | None] = {}
    known: dict[tuple[Node, int], ConditionalRegion] = {}

    def use(node: Node, place: ConditionalRegion | None) -> None:
        homes[node] = _common(homes[node], place) if node in homes else place

    for root in roots:
        use(root, None)
    for node in reversed(nodes):
        if node not in homes:
            continue
        home = homes[node]
        branches = node.op == "select" and node.args[0] not in varying
        for at, arg in enumerate(node.args):
            place = home
            if branches and at:
                depth = home.depth + 1 if home else 0
                place = known[node, at] = ConditionalRegion(node, at, home, depth)
            use(arg, place)
        for needed in _needed_within(node):
            use(needed, home)
    return _settled(nodes, homes, known)


def _settled(
    nodes: Sequence[Node], homes: dict[Node, ConditionalRegion | None], known: dict[tuple[Node, int], ConditionalRegion]
) -> dict[Node, ConditionalRegion | None]:
    """Dissolves the regions that are not worth a branch."""
    for node in nodes:
        region = homes.get(node)
        while region is not None:
            region.cost += cost(node)
            region = region.around

    def settled(region: ConditionalRegion | None) -> ConditionalRegion | None:
        while region is not None and sum(known[region.choice, side].cost for side in (1, 2)) < _WORTH_A_BRANCH:
            region = region.around
        return region

    return {node: settled(homes[node]) for node in nodes if node in homes}


def _needed_within(node: Node) -> Iterator[Node]:
    """All values that the body of a loop uses, its own included."""
    if node.op == "loop" and isinstance(node.attr, LoopBody):
        for inner in node.attr.nodes:
            yield from inner.args
            yield from _needed_within(inner)
        yield from node.attr.following


def _common(a: ConditionalRegion | None, b: ConditionalRegion | None) -> ConditionalRegion | None:
    """The innermost region around both."""
    while a is not b:
        if a is None or b is None:
            return None
        if a.depth >= b.depth:
            a = a.around
        else:
            b = b.around
    return a


# Values in order, each in its conditional region.


def write_nodes(w: FunctionWriter, kernel: Kernel, nodes: Sequence[Node], roots: Iterable[Node]) -> None:
    """Writes those of these nodes that the roots need. Operands come before their users."""
    _BlockWriter(w, kernel, nodes, roots).write(None)


# In double precision, each lane of a library function is a call. A value that is the same in all lanes is therefore
# computed in one lane and broadcast, if it costs at least this many additions.
_WORTH_A_LANE = 8


class _BlockWriter:
    """Writes nodes that belong together: a section, or the body of a loop."""

    def __init__(self, w: FunctionWriter, kernel: Kernel, nodes: Sequence[Node], roots: Iterable[Node]) -> None:
        self._w = w
        self._kernel = kernel
        self._by_region: defaultdict[ConditionalRegion | None, list[Node]] = defaultdict(list)
        self._regions: dict[tuple[Node, int], ConditionalRegion] = {}
        homes = conditional_regions(nodes, roots, w.graph.varying)
        for node in nodes:
            if node in homes:
                region = homes[node]
                self._by_region[region].append(node)
                if region is not None:
                    self._regions[region.choice, region.side] = region
        self._choices = {choice for choice, _ in self._regions}

    def write(self, region: ConditionalRegion | None) -> None:
        """Writes the nodes of a region, or those that are computed in any case."""
        for node in self._by_region[region]:
            if node in self._choices:
                self._w.keep(node, self._choice(node))
            else:
                self._node(node)

    def _node(self, node: Node) -> None:
        w = self._w
        row = OPS.get(node.op)
        if row is not None:
            args = [w.value(arg) for arg in node.args]
            alone = w.floats == DOUBLE and node not in w.graph.varying and row.cost >= _WORTH_A_LANE
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
        """A choice that is the same in all lanes. Only one of its sides is computed."""
        w = self._w
        condition = w.first(w.value(node.args[0]))
        number = w.name("").lstrip("%")
        labels = {1: f"then{number}", 2: f"else{number}"}
        after = f"chosen{number}"
        w.branch(condition, labels[1], labels[2])
        incoming = []
        for side, label in labels.items():
            w.label(label)
            with w.scope():
                region = self._regions.get((node, side))
                if region is not None:
                    self.write(region)
                incoming.append(f"[ {w.value(node.args[side]).text}, %{w.block} ]")
            w.jump(after)
        w.label(after)
        return LlvmValue(w.put(f"phi {w.type(node.kind)} {', '.join(incoming)}"), node.kind)


def _write_in_one_lane(w: FunctionWriter, row: OpSpec, args: Sequence[LlvmValue]) -> LlvmValue:
    """A row whose value is the same in all lanes, computed in one and broadcast."""
    firsts = [w.first(arg) for arg in args]
    with w.narrow(1):
        numbers = [w.splat(first, arg.kind) for first, arg in zip(firsts, args, strict=True)]
        found = w.first(write_row(w, row, numbers))
    return w.splat(found, row.gives)


def write_row(w: FunctionWriter, row: OpSpec, args: Sequence[LlvmValue]) -> LlvmValue:
    """A row of the table of operators and builtins, applied in the writer's precision."""
    form = row.double if row.double is not None and w.floats == DOUBLE else row.native
    if form is None:
        raise TypeError(f"{row.name} has no native form")
    if not isinstance(form, str):
        made: LlvmValue = form(w, *args)
        return made
    found: LlvmValue = w.library(form, *args) if form is row.double else getattr(w, form)(*args)
    return found
