"""Writes what reads and stores state, and what samples pictures: bilinearly, clamped at the edge, with pixel centres at
(i + ½) / width. A coordinate that is NaN reads the first row or column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.codegen.base import Kernel
from weft.codegen.native.layout import CHANNELS, Field, History, ImageCell, PictureWord, Ring, Word
from weft.codegen.native.types import LlvmValue
from weft.codegen.native.writer import FunctionWriter
from weft.codegen.values import Node, Store
from weft.ir.expr import StateSlot


def write_state(w: FunctionWriter, kernel: Kernel, node: Node) -> LlvmValue:
    """A slot k ticks ago, at this element."""
    slot, plane, (k,) = kernel.slot(node.attr.slot), node.attr.plane, node.args
    if node.attr in w.registers:
        return w.registers[node.attr]
    if not slot.image:
        return w.gather_wide(w.word(History(slot.key)), _cell_numbers(w, slot, plane, k))
    address = _plane(w, slot, plane, k)
    if address is not None:
        return w.load(address, "%pixel", "real")
    pixels = w.each([str(lane) for lane in range(w.lanes)], "bits")
    first = w.splat(w.put("trunc i64 %pixel to i32"), "bits")
    return _far_gather(w, slot, plane, k, w.bits_add(first, pixels))


def write_store(w: FunctionWriter, store: Store) -> None:
    """Stores what a slot will have been one tick ago."""
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
    """How many whole ticks a read goes back: k rounded down and clamped to 1…depth; 1 for NaN."""
    return w.whole(w.lesser(w.greater(w.value(k), w.real(1)), w.real(slot.depth)))


def _plane(w: FunctionWriter, slot: StateSlot, plane: int, k: Node) -> str | None:
    """Where an image slot was k ticks ago; None if that is another place for each lane."""
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
    """Elements of the images that a slot was k ticks ago, another k for each lane. A ring of pictures can have more
    elements than 32 bits count."""
    wide, bits = f"<{w.lanes} x i64>", w.type("bits")
    number = _cell_numbers(w, slot, plane, k)
    size = w.bits_mul(w.word_as_bits(Word.WIDTH), w.word_as_bits(Word.HEIGHT))
    widened = [w.put(f"sext {bits} {value.text} to {wide}") for value in (number, size, at)]
    start = w.put(f"mul {wide} {widened[0]}, {widened[1]}")
    return w.gather(w.word(Ring(slot.key)), LlvmValue(w.put(f"add {wide} {start}, {widened[2]}"), "bits"), wide)


def _cell_numbers(w: FunctionWriter, slot: StateSlot, plane: int, k: Node) -> LlvmValue:
    """Which of the planes in a ring is that of k ticks ago."""
    cell = w.bits_sub(w.splat(w.put(f"trunc i64 {w.head(slot.key)} to i32"), "bits"), _ticks_back(w, slot, k))
    is_before = LlvmValue(w.put(f"icmp slt {w.type('bits')} {cell.text}, zeroinitializer"), "truth")
    cell = w.select(is_before, w.bits_add(cell, w.bits(slot.depth + 1)), cell)
    return w.bits_add(w.bits_mul(cell, w.bits(slot.planes)), w.bits(plane))


# Places.


@dataclass(frozen=True, slots=True)
class _Raster:
    """Where the extents of a picture stand, and how many reals lie between neighbours in a row."""

    width: Field
    height: Field
    stride: int


@dataclass(frozen=True, slots=True)
class _Located:
    """The pixels at or before a coordinate and behind it, in memory, and how far on towards that it lies, 0…1."""

    near: LlvmValue
    far: LlvmValue
    across: LlvmValue


def _between_four(w: FunctionWriter, raster: _Raster, x: Node, y: Node, read: Callable[[LlvmValue], LlvmValue]) -> LlvmValue:
    """What lies between the four pixels around a place."""
    columns, rows = _locate_both(w, raster, x, y)
    upper, lower = (
        _mix(w, read(w.bits_add(row, columns.near)), read(w.bits_add(row, columns.far)), columns.across)
        for row in (rows.near, rows.far)
    )
    return _mix(w, upper, lower, rows.across)


def _between_rows(w: FunctionWriter, raster: _Raster, x: Node, y: Node, address: str) -> LlvmValue:
    """The same where all lanes lie between the same rows. As a rule, neighbours in a vector then read neighbours in
    memory, which are loaded as they lie."""
    columns, rows = _locate_both(w, raster, x, y)
    number = w.name("").lstrip("%")
    side, apart, behind = f"side{number}", f"apart{number}", f"behind{number}"
    places = [w.element(address, _as_index(w, row)) for row in (rows.near, rows.far)]
    w.branch(_lie_side_by_side(w, x, columns), side, apart)
    ways: dict[str, list[LlvmValue]] = {}
    w.label(side)
    first = _as_index(w, columns.near)
    ends = first, w.put(f"add i64 {first}, 1")
    ways[w.block] = [w.load(place, end, "real") for place in places for end in ends]
    w.jump(behind)
    w.label(apart)
    ways[w.block] = [w.gather(place, column) for place in places for column in (columns.near, columns.far)]
    w.jump(behind)
    w.label(behind)
    four = [
        LlvmValue(w.put(f"phi {w.type('real')} {', '.join(f'[ {v[at].text}, %{b} ]' for b, v in ways.items())}"), "real")
        for at in range(4)
    ]
    upper, lower = (_mix(w, left, right, columns.across) for left, right in (four[:2], four[2:]))
    return _mix(w, upper, lower, rows.across)


def _as_index(w: FunctionWriter, offset: LlvmValue) -> str:
    """What all lanes, or the first of them, have for an index."""
    return w.put(f"sext i32 {w.first(offset)} to i64")


def _lie_side_by_side(w: FunctionWriter, x: Node, columns: _Located) -> str:
    """Whether each lane reads the pixel behind the one that the lane before it reads, and none the last of a row."""
    found = w.find((x, "side by side"))
    if found is None:
        lanes = w.each([str(lane) for lane in range(w.lanes)], "bits")
        expected = w.bits_add(w.splat(w.first(columns.near), "bits"), lanes)
        bits = w.type("bits")
        follows = LlvmValue(w.put(f"icmp eq {bits} {columns.near.text}, {expected.text}"), "truth")
        has_next = LlvmValue(w.put(f"icmp ne {bits} {columns.near.text}, {columns.far.text}"), "truth")
        together = w.put(f"bitcast {w.type('truth')} {w.both(follows, has_next).text} to i{w.lanes}")
        found = w.keep((x, "side by side"), LlvmValue(w.put(f"icmp eq i{w.lanes} {together}, -1"), "truth"))
    return found.text


def _mix(w: FunctionWriter, a: LlvmValue, b: LlvmValue, t: LlvmValue) -> LlvmValue:
    return w.add(a, w.mul(w.sub(b, a), t))


def _locate_both(w: FunctionWriter, raster: _Raster, x: Node, y: Node) -> tuple[_Located, _Located]:
    """Where a place lies across and down."""
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
        behind = w.bits_add(whole, w.bits(1))
        is_inside = LlvmValue(w.put(f"icmp slt {w.type('bits')} {behind.text}, {w.word_as_bits(size).text}"), "truth")
        near = w.bits_mul(whole, stride)
        far = w.bits_mul(w.select(is_inside, behind, whole), stride)
        for key, value in zip(keys, (near, far, across), strict=True):
            w.keep(key, value)
    return _Located(near, far, across)
