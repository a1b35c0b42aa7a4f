"""Writes the values of a section as LLVM IR: loops, conditional regions, state and pictures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

from weft.codegen.kernel import LOOP_STEPS, NEST_STEPS
from weft.codegen.native.dataflow import cost
from weft.codegen.native.target import (
    CHANNELS, DOUBLE, SIDES, Field, History, ImageCell, LlvmValue, PictureWord, Ring, Word, extents_of
)
from weft.codegen.native.writer import FunctionWriter, ValueWriter
from weft.codegen.values import LoopBody, Node, operands
from weft.ir.expr import StateSlot
from weft.ir.rates import Rate
from weft.ops import OPS
from weft.ops.spec import OpSpec

# Loops. Where the bounds are the same in all lanes, a loop counts with scalars. In any other (masked) loop, each lane
# leaves at a step of its own, and the loop ends when all lanes have left.


class _LoopNames(NamedTuple):
    """The labels of a loop, and the names of its count of steps and of its active lanes."""

    step: str
    after: str
    steps: str
    active: str


def write_loop(w: FunctionWriter, node: Node) -> None:
    """Writes a loop. The carried values are kept for `loop_out`."""
    body: LoopBody = node.attr
    masked = body in w.graph.masked
    first, last, *starts = map(w.value, node.args)
    number = w.number()
    names = _LoopNames(f"step{number}", f"after{number}", w.name("count"), w.name("active"))
    carried = [LlvmValue(w.name("carried"), "float") for _ in starts]
    if body.outermost and body.nested:
        _allow_steps(w, masked)
    outer_mask = w.find("mask") if masked else None
    head = w.begin_loop(f"head{number}")
    with w.scope():
        count = w.put(f"sitofp i32 {names.steps} to {w.scalar('float')}")
        go = (_masked_step if masked else _step)(w, body, names, first, last, count)
        for place, value in zip(body.carried, carried, strict=True):
            w.keep(place, value)
        write_nodes(w, body.nodes, body.following)
        following = list(map(w.value, body.following))
        if masked:
            following = [w.select(go, new, old) for new, old in zip(following, carried, strict=True)]
            active = w.extended("sext", go)
        counted = w.put(f"add i32 {names.steps}, 1")
    phis = [("i32", names.steps, "0", counted)]
    if masked:
        start = outer_mask.text if outer_mask is not None else w.bits(-1).text
        phis.append((w.types["u32"], names.active, start, active.text))
    of = w.types["float"]
    phis += [(of, old.text, start.text, new.text) for old, start, new in zip(carried, starts, following, strict=True)]
    w.phis(head, w.block, phis)
    w.jump(f"head{number}")
    w.label(names.after)
    for k, value in enumerate(carried):
        w.keep((node, k), value)


def _allow_steps(w: FunctionWriter, masked: bool) -> None:
    """Gives a nest of loops its budget of steps: one for each lane, if lanes may leave at different steps."""
    of = w.types["u32"] if masked else "i32"
    w.budget = w.in_entry(lambda: w.put(f"alloca {of}"))
    w.do(f"store {of} {w.bits(NEST_STEPS).text if masked else NEST_STEPS}, ptr {w.budget}")


def _step(
    w: FunctionWriter, body: LoopBody, names: _LoopNames, first: LlvmValue, last: LlvmValue, count: str
) -> LlvmValue:
    """Enters the body, unless the loop is over; all lanes agree. Returns whether it continues."""
    index = w.put(f"fadd {w.scalar('float')} {w.lane(first)}, {count}")
    goes_on = w.put(f"fcmp ole {w.scalar('float')} {index}, {w.lane(last)}")
    allowed = w.put(f"icmp ult i32 {names.steps}, {LOOP_STEPS}")
    if body.nested:
        left = w.put(f"load i32, ptr {w.budget}")
        allowed = w.put(f"and i1 {allowed}, {w.put(f'icmp sgt i32 {left}, 0')}")
    go = w.put(f"and i1 {goes_on}, {allowed}")
    end = f"{names.after}.end"
    w.branch(go, names.step, end)
    # The loop has reached its limit if it would have continued.
    w.label(end)
    note_stop(w, goes_on, f"{end}.stop", names.after)
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
    active = w.is_set(LlvmValue(names.active, "u32"))
    wanting = w.both(w.le(index, last), active)
    below_limit = w.put(f"icmp ult i32 {names.steps}, {LOOP_STEPS}")
    go = w.both(wanting, w.splat(below_limit, "bool"))
    if body.nested:
        of = w.types["u32"]
        left = LlvmValue(w.put(f"load {of}, ptr {w.budget}"), "u32")
        go = w.both(go, LlvmValue(w.put(f"icmp sgt {of} {left.text}, zeroinitializer"), "bool"))
    checked, end = f"{names.step}.checked", f"{names.after}.end"
    note_stop(w, w.any(w.both(wanting, w.negation(go))), f"{checked}.stop", checked)
    w.label(checked)
    w.branch(w.any(go), names.step, end)
    w.label(end)
    w.jump(names.after)
    w.label(names.step)
    if body.nested:
        w.do(f"store {of} {w.bits_sub(left, w.extended('zext', go)).text}, ptr {w.budget}")
    if body.index is not None:
        w.keep(body.index, index)
    w.keep("mask", w.extended("sext", go))
    return go


def note_stop(w: FunctionWriter, condition: str, stop: str, after: str) -> None:
    """Continues at `after`. If the condition holds, the block `stop` first notes that a loop reached its limit."""
    w.branch(condition, stop, after)
    w.label(stop)
    w.do(f"store i64 1, ptr {w.place(Word.STOPPED)}, align 8")
    w.jump(after)


# State and pictures. Sampling is bilinear and clamped at the edge, with pixel centres at (i + ½) / width. A coordinate
# that is NaN reads the first row or column. A pixel with weight 0 takes no part: 0 times NaN, or times an infinity,
# would be NaN. Along an axis that no remap moves, only the pixel itself is read, so there are half as many values.


def write_state(w: FunctionWriter, node: Node) -> LlvmValue:
    """The value of a slot k ticks ago, at this element."""
    slot, plane, (k,) = w.kernel.slot(node.attr.slot), node.attr.plane, node.args
    if node.attr in w.registers:
        return w.registers[node.attr]
    if not slot.image:
        return w.gather(w.word(History(slot.key)), _cell_numbers(w, slot, plane, k), source=DOUBLE)
    address = _plane(w, slot, plane, k)
    if address is not None:
        return w.load(address, "%pixel", "float")
    return _far_gather(w, slot, plane, k, w.lane_numbers("%pixel"))


def write_sample(w: FunctionWriter, node: Node) -> LlvmValue:
    """An image slot k ticks ago, sampled."""
    slot, plane, (k, x, y) = w.kernel.slot(node.attr.slot), node.attr.plane, node.args
    address = _plane(w, slot, plane, k)
    raster = Raster(*extents_of(slot, w.kernel.level), 1)
    is_own_column, is_own_row = w.kernel.unmoved(node)
    is_line = w.graph.section.rate != Rate.ELEMENT
    columns = own_columns(w, "%x", raster) if is_own_column else locate_column(w, x, raster)
    if is_own_row:
        rows = own_rows(w, "%x", raster) if is_line else own_row(w, "%row.start")
    else:
        rows = locate_row(w, y, raster)
    if address is None:
        return between_four(w, columns, rows, lambda at: _far_gather(w, slot, plane, k, at))
    if w.lanes == 1 or y in w.graph.varying or (is_line and (is_own_column or is_own_row)):
        return between_four(w, columns, rows, lambda at: w.gather(address, at))
    if is_own_column:
        return _between(w, rows, lambda row: w.load(w.element(address, _as_index(w, row)), "%x", "float"))
    return between_rows(w, columns, rows, address)


def write_picture(w: FunctionWriter, node: Node) -> LlvmValue:
    """A channel of a picture, sampled."""
    path, channel = node.attr
    raster = Raster(PictureWord(path, "width"), PictureWord(path, "height"), CHANNELS)
    address = w.element(w.word(PictureWord(path, "pixels")), str(channel))
    columns, rows = locate(w, raster, *node.args)
    return between_four(w, columns, rows, lambda at: w.gather(address, at))


def write_fetch(w: FunctionWriter, node: Node) -> LlvmValue:
    """A sample of a sound by its number."""
    sound, channel = node.attr
    return fetch(w, sound, w.value(node.args[0]), w.bits(channel))


def fetch(w: ValueWriter, sound: str, number: LlvmValue, channel: LlvmValue) -> LlvmValue:
    """A sample of a channel; 0 outside of the sound. Numbers are compared as floats, because what does not fit into 32
    bits is converted to anything. That is right in single precision too: no float is between the count of samples and
    the nearest float to it."""
    inside = w.both(w.le(w.real(0), number), w.lt(number, w.word_as_real(PictureWord(sound, "width"))))
    place = w.bits_add(w.bits_mul(w.whole(w.select(inside, number, w.real(0))), w.bits(SIDES)), channel)
    return w.select(inside, w.gather(w.word(PictureWord(sound, "pixels")), place), w.real(0))


# Ticks.


class RingShape(NamedTuple):
    """How far back a slot can be read, the number of ticks in its ring (one more), and the planes of each."""

    depth: LlvmValue
    cells: LlvmValue
    planes: LlvmValue

    @classmethod
    def of(cls, w: ValueWriter, slot: StateSlot) -> RingShape:
        return cls(w.real(slot.depth), w.bits(slot.depth + 1), w.bits(slot.planes))


def _ticks_back(w: ValueWriter, depth: LlvmValue, k: LlvmValue) -> LlvmValue:
    """The whole ticks that a read goes back: k rounded down and clamped to 1…depth; 1 for NaN."""
    return w.whole(w.lesser(w.greater(k, w.real(1)), depth))


def cell_numbers(w: ValueWriter, ring: RingShape, head: str, plane: LlvmValue, k: LlvmValue) -> LlvmValue:
    """The number of the plane in a ring as it was k ticks ago, for each lane. `head` is the cell of this tick."""
    cell = w.bits_sub(w.splat(w.put(f"trunc i64 {head} to i32"), "u32"), _ticks_back(w, ring.depth, k))
    is_before = LlvmValue(w.put(f"icmp slt {w.types['u32']} {cell.text}, zeroinitializer"), "bool")
    cell = w.select(is_before, w.bits_add(cell, ring.cells), cell)
    return w.bits_add(w.bits_mul(cell, ring.planes), plane)


def far_gather(
    w: ValueWriter, address: str, number: LlvmValue, at: LlvmValue, sides: tuple[Field, Field]
) -> LlvmValue:
    """Elements of the planes of a ring of images with these sides, with a plane for each lane. The index has 64 bits,
    as a ring of pictures can have more elements than 32 bits count."""
    wide, bits = "i64" if w.is_scalar else f"<{w.lanes} x i64>", w.types["u32"]
    size = w.bits_mul(*map(w.word_as_bits, sides))
    number, size, at = (LlvmValue(w.put(f"sext {bits} {each.text} to {wide}"), "u32") for each in (number, size, at))
    start = w.put(f"mul {wide} {number.text}, {size.text}")
    return w.gather(address, LlvmValue(w.put(f"add {wide} {start}, {at.text}"), "u32"), wide)


def _plane(w: FunctionWriter, slot: StateSlot, plane: int, k: Node) -> str | None:
    """The address of an image slot k ticks ago; None if k differs between lanes."""
    if k.op == "const":
        return w.word(ImageCell.back(slot, plane, k.attr))
    if k in w.graph.varying:
        return None
    ticks = _as_index(w, _ticks_back(w, w.real(slot.depth), w.value(k)))
    cell = w.put(f"sub i64 {w.head(slot.key)}, {ticks}")
    wrapped = w.put(f"add i64 {cell}, {slot.depth + 1}")
    is_before = w.put(f"icmp slt i64 {cell}, 0")
    cell = w.put(f"select i1 {is_before}, i64 {wrapped}, i64 {cell}")
    number = w.put(f"add i64 {w.put(f'mul i64 {cell}, {slot.planes}')}, {plane}")
    width, height = map(w.word, extents_of(slot, w.kernel.level))
    size = w.put(f"mul i64 {width}, {height}")
    return w.element(w.word(Ring(slot.key)), w.put(f"mul i64 {number}, {size}"))


def _far_gather(w: FunctionWriter, slot: StateSlot, plane: int, k: Node, at: LlvmValue) -> LlvmValue:
    """Elements of an image slot k ticks ago, with a k for each lane."""
    sides = extents_of(slot, w.kernel.level)
    return far_gather(w, w.word(Ring(slot.key)), _cell_numbers(w, slot, plane, k), at, sides)


def _cell_numbers(w: FunctionWriter, slot: StateSlot, plane: int, k: Node) -> LlvmValue:
    return cell_numbers(w, RingShape.of(w, slot), w.head(slot.key), w.bits(plane), w.value(k))


# Places.


class Raster(NamedTuple):
    """The words that hold the extents of a picture, and the distance between neighbours in a row, in floats."""

    width: Field
    height: Field
    stride: int


class Located(NamedTuple):
    """The offsets of the pixels before and after a coordinate, and its position between the two, 0…1. Where the
    coordinate is known to be that of a pixel, there is only the one."""

    near: LlvmValue
    far: LlvmValue | None = None
    across: LlvmValue | None = None

    @property
    def ends(self) -> tuple[LlvmValue, ...]:
        return (self.near,) if self.far is None else (self.near, self.far)


def own_columns(w: ValueWriter, first: str, raster: Raster) -> Located:
    """The columns of the lanes, from that of the first one."""
    return Located(_within(w, first, raster.width))


def own_rows(w: ValueWriter, first: str, raster: Raster) -> Located:
    """The rows of the lanes, from that of the first one, where each lane has another row."""
    return Located(w.bits_mul(_within(w, first, raster.height), w.word_as_bits(raster.width)))


def _within(w: ValueWriter, first: str, size: Field) -> LlvmValue:
    """The numbers of the lanes along an axis. Lanes after its end have that of the last pixel."""
    last, own = w.bits_sub(w.word_as_bits(size), w.bits(1)), w.lane_numbers(first)
    inside = LlvmValue(w.put(f"icmp slt {w.types['u32']} {own.text}, {last.text}"), "bool")
    return w.select(inside, own, last)


def own_row(w: ValueWriter, start: str) -> Located:
    """The row that begins at this offset."""
    return Located(w.splat(w.put(f"trunc i64 {start} to i32"), "u32"))


def between_four(w: ValueWriter, columns: Located, rows: Located, read: Callable[[LlvmValue], LlvmValue]) -> LlvmValue:
    """Interpolates between the four pixels around a place."""
    return _between(w, rows, lambda row: _between(w, columns, lambda column: read(w.bits_add(row, column))))


def _between(w: ValueWriter, places: Located, read: Callable[[LlvmValue], LlvmValue]) -> LlvmValue:
    """Interpolates between what is read at both ends."""
    return _mix(w, [read(end) for end in places.ends], places.across)


def between_rows(w: ValueWriter, columns: Located, rows: Located, address: str) -> LlvmValue:
    """Interpolates between the four pixels where all lanes are between the same two rows. Neighbouring lanes then
    usually read neighbouring pixels, and a plain load replaces the gather."""
    places = [w.element(address, _as_index(w, row)) for row in rows.ends]
    return _mix(w, _across(w, columns, places), rows.across)


def _across(w: ValueWriter, columns: Located, places: Sequence[str]) -> list[LlvmValue]:
    """The values between two columns, in each of these rows."""
    number = w.number()
    side, apart, after = f"side{number}", f"apart{number}", f"after{number}"
    w.branch(_are_consecutive(w, columns), side, apart)
    incoming: dict[str, list[LlvmValue]] = {}
    w.label(side)
    first = _as_index(w, columns.near)
    ends = [first, w.put(f"add i64 {first}, 1")][: len(columns.ends)]
    incoming[w.block] = [w.load(place, end, "float") for place in places for end in ends]
    w.jump(after)
    w.label(apart)
    incoming[w.block] = [w.gather(place, column) for place in places for column in columns.ends]
    w.jump(after)
    w.label(after)
    found = []
    for values in zip(*incoming.values(), strict=True):
        pairs = ", ".join(f"[ {value.text}, %{block} ]" for block, value in zip(incoming, values, strict=True))
        found.append(LlvmValue(w.put(f"phi {w.types['float']} {pairs}"), "float"))
    each = len(columns.ends)
    return [_mix(w, found[at : at + each], columns.across) for at in range(0, len(found), each)]


def _as_index(w: ValueWriter, offset: LlvmValue) -> str:
    """The offset in the first lane, as an index."""
    return w.put(f"sext i32 {w.lane(offset)} to i64")


def _are_consecutive(w: ValueWriter, columns: Located) -> str:
    """Whether each lane reads the pixel after that of the lane before it, and no lane reads the last of a row."""
    found: str | None = w.find((columns, "consecutive"))
    if found is None:
        expected = w.bits_add(w.splat(w.lane(columns.near), "u32"), w.each(range(w.lanes), "u32"))
        bits = w.types["u32"]
        follows = LlvmValue(w.put(f"icmp eq {bits} {columns.near.text}, {expected.text}"), "bool")
        if columns.far is not None:
            has_next = LlvmValue(w.put(f"icmp ne {bits} {columns.near.text}, {columns.far.text}"), "bool")
            follows = w.both(follows, has_next)
        together = w.put(f"bitcast {w.types['bool']} {follows.text} to i{w.lanes}")
        found = w.keep((columns, "consecutive"), w.put(f"icmp eq i{w.lanes} {together}, -1"))
    return found


def _mix(w: ValueWriter, values: Sequence[LlvmValue], share: LlvmValue | None) -> LlvmValue:
    """What is between two values; the first one alone if the share of the other is 0, or if there is no other."""
    if share is None:
        return values[0]
    a, b = values
    return w.select(w.lt(w.real(0), share), w.add(a, w.mul(w.sub(b, a), share)), a)


def locate(w: ValueWriter, raster: Raster, x: Node, y: Node) -> tuple[Located, Located]:
    """Locates a place across and down."""
    return locate_column(w, x, raster), locate_row(w, y, raster)


def locate_column(w: ValueWriter, x: Node, raster: Raster) -> Located:
    return _locate(w, x, raster.width, w.bits(raster.stride))


def locate_row(w: ValueWriter, y: Node, raster: Raster) -> Located:
    step = w.word_as_bits(raster.width)
    if raster.stride > 1:
        step = w.bits_mul(step, w.bits(raster.stride))
    return _locate(w, y, raster.height, step)


def _locate(w: ValueWriter, coordinate: Node, size: Field, stride: LlvmValue) -> Located:
    # The planes of one picture are sampled at the same places.
    found: Located | None = w.find((coordinate, size))
    if found is None:
        extent = w.word_as_real(size)
        place = w.sub(w.mul(w.value(coordinate), extent), w.real(0.5))
        place = w.lesser(w.greater(place, w.real(0)), w.sub(extent, w.real(1)))
        whole = w.whole(place)
        across = w.sub(place, w.real_of(whole))
        following = w.bits_add(whole, w.bits(1))
        is_inside = LlvmValue(w.put(f"icmp slt {w.types['u32']} {following.text}, {w.word_as_bits(size).text}"), "bool")
        near = w.bits_mul(whole, stride)
        far = w.bits_mul(w.select(is_inside, following, whole), stride)
        found = w.keep((coordinate, size), Located(near, far, across))
    return found


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
    """The region of each of these nodes that the roots need; None for one that is computed in any case. Nodes that they
    do not need are left out. Operands come before their users; `varying` are the values that differ between lanes."""
    homes: dict[Node, ConditionalRegion | None] = dict.fromkeys(roots)
    sides: dict[tuple[Node, int], ConditionalRegion] = {}
    for node in reversed(nodes):
        if node not in homes:
            continue
        home = homes[node]
        uses = operands(node) if node.op == "loop" else node.args
        places: Iterable[ConditionalRegion | None] = repeat(home)
        if node.op == "select" and node.args[0] not in varying:
            depth = home.depth + 1 if home else 0
            for side in (1, 2):
                sides[node, side] = ConditionalRegion(node, side, home, depth)
            places = (home, sides[node, 1], sides[node, 2])
        for used, place in zip(uses, places, strict=False):
            homes[used] = _common(homes[used], place) if used in homes else place
    if sides:
        _dissolve(nodes, homes, sides)
    return homes


def _dissolve(
    nodes: Sequence[Node], homes: dict[Node, ConditionalRegion | None], sides: dict[tuple[Node, int], ConditionalRegion]
) -> None:
    """Dissolves the regions that are not worth a branch."""
    for node in nodes:
        region = homes.get(node)
        while region is not None:
            region.cost += cost(node)
            region = region.around
    for node, home in homes.items():
        region = home
        while region is not None and sum(sides[region.choice, side].cost for side in (1, 2)) < _WORTH_A_BRANCH:
            region = region.around
        homes[node] = region


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

# In double precision, each lane of a library function is a call. A value that is the same in all lanes is therefore
# computed in one lane and broadcast, if it costs at least this many additions.
_WORTH_A_LANE = 8

_WRITERS: Mapping[str, Callable[[FunctionWriter, Node], LlvmValue]] = {
    "state": write_state, "sample": write_sample, "picture": write_picture, "fetch": write_fetch,
}  # fmt: skip


def write_nodes(w: FunctionWriter, nodes: Sequence[Node], roots: Iterable[Node]) -> None:
    """Writes those of these nodes that the roots need. Operands come before their users."""
    homes = conditional_regions(nodes, roots, w.graph.varying)
    by_region: defaultdict[ConditionalRegion | None, list[Node]] = defaultdict(list)
    for node in nodes:
        if node in homes:
            by_region[homes[node]].append(node)
    regions = {(region.choice, region.side): region for region in by_region if region is not None}
    choices = {choice for choice, _ in regions}

    def write(region: ConditionalRegion | None) -> None:
        """Writes the nodes of a region, or those that are computed in any case."""
        for node in by_region[region]:
            if node in choices:
                w.keep(node, choose(node))
            else:
                _write_node(w, node)

    def choose(node: Node) -> LlvmValue:
        """A choice that is the same in all lanes. Only one of its sides is computed."""
        condition = w.lane(w.value(node.args[0]))
        number = w.number()
        labels = {1: f"then{number}", 2: f"else{number}"}
        after = f"chosen{number}"
        w.branch(condition, labels[1], labels[2])
        incoming = []
        for side, label in labels.items():
            w.label(label)
            with w.scope():
                if (node, side) in regions:
                    write(regions[node, side])
                incoming.append(f"[ {w.value(node.args[side]).text}, %{w.block} ]")
            w.jump(after)
        w.label(after)
        return LlvmValue(w.put(f"phi {w.types[node.kind]} {', '.join(incoming)}"), node.kind)

    write(None)


def _write_node(w: FunctionWriter, node: Node) -> None:
    row = OPS.get(node.op)
    if row is not None:
        args = [w.value(arg) for arg in node.args]
        parts = w.reciprocal_of(node.args[1]) if node.op == "div" else None
        if parts is not None:
            w.keep(node, w.quotient(args[0], *parts))
            return
        alone = row.cost >= _WORTH_A_LANE and w.floats == DOUBLE and w.lanes > 1 and node not in w.graph.varying
        w.keep(node, _computed_in_one_lane(w, row, args) if alone else w.computed(row, args))
    elif node.op == "loop":
        write_loop(w, node)
    elif node.op == "loop_out":
        w.keep(node, w.find((node.args[0], node.attr)))
    elif node.op in _WRITERS:
        w.keep(node, _WRITERS[node.op](w, node))


def _computed_in_one_lane(w: FunctionWriter, row: OpSpec, args: Sequence[LlvmValue]) -> LlvmValue:
    """A row whose value is the same in all lanes, computed in one and broadcast."""
    firsts = [w.lane(arg) for arg in args]
    with w.narrow(1):
        numbers = [w.splat(first, arg.kind) for first, arg in zip(firsts, args, strict=True)]
        found = w.lane(w.computed(row, numbers))
    return w.splat(found, row.gives)
