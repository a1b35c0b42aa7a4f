"""Functions of WebAssembly that read pictures and sounds from memory.

A picture is read between the four pixels around a place, clamped at its edge. The place is in pixels, from the centre
of the first one; NaN reads the first row or column. A pixel with weight 0 takes no part: 0 times NaN, or times an
infinity, would be NaN. A sound is 0 outside of its samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from weft.codegen.wasm.assembler import WasmFunction, WasmType
from weft.codegen.wasm.builder import FunctionBuilder, WasmValue
from weft.codegen.wasm.lane_code import SingleLane

PLANE, PIXEL, FETCH = "plane", "pixel", "fetch"
"""The functions: of an image in double precision, whose numbers follow one another; of one channel of a picture in
single precision, with four numbers a pixel; and of one channel of a sound in single precision, with two a sample."""

PAST, KEEP, COPY_PAST, COPY_KEEP = "past", "keep", "copy_past", "copy_keep"
"""Functions between a row of samples and a ring, from a cell of it on. Those that copy are for rings of one plane whose
cells are at least as many as the samples."""

_SIZES: Mapping[str, tuple[WasmType, int]] = MappingProxyType(
    {PLANE: ("f64", 8), PIXEL: ("f32", 16), FETCH: ("f32", 8)}
)
"""The type of a number, and how many bytes are between it and the next one."""


def _loaded(b: FunctionBuilder, name: str, address: WasmValue) -> WasmValue:
    kind, _ = _SIZES[name]
    found = b.load(kind, address)
    return found if kind == "f64" else b.put("f64.promote_f32", found)


def _located(lanes: SingleLane, position: WasmValue, size: WasmValue) -> tuple[WasmValue, WasmValue, WasmValue]:
    """The pixel at or before a place along an axis, the next one, and how far the place is on the way to it."""
    b = lanes.b
    last = lanes.sub(b.put("f64.convert_i32_s", size), lanes.real(1))
    position = lanes.select(lanes.lt(last, position), last, position)
    position = lanes.select(lanes.lt(lanes.real(0), position), position, lanes.real(0))
    whole = lanes.floor(position)
    near = b.put("i32.trunc_sat_f64_s", whole)
    following = b.put("i32.add", near, b.i32(1))
    far = b.put("select", following, near, b.put("i32.lt_s", following, size), kind="i32")
    return near, far, lanes.sub(position, whole)


def _between(name: str) -> WasmFunction:
    _, step = _SIZES[name]
    b = FunctionBuilder(name, [("address", "i32"), ("columns", "i32"), ("rows", "i32"), ("x", "f64"), ("y", "f64")])
    address, columns, rows, x, y = map(b.param, ("address", "columns", "rows", "x", "y"))
    lanes = SingleLane(b)
    left, right, across = _located(lanes, x, columns)
    upper, lower, down = _located(lanes, y, rows)

    def between(before: WasmValue, after: WasmValue, share: WasmValue) -> WasmValue:
        found = lanes.add(before, lanes.mul(lanes.sub(after, before), share))
        return lanes.select(lanes.lt(lanes.real(0), share), found, before)

    def row(number: WasmValue) -> WasmValue:
        start = b.put("i32.mul", number, columns)
        places = [b.put("i32.mul", b.put("i32.add", start, column), b.i32(step)) for column in (left, right)]
        before, after = (_loaded(b, name, b.put("i32.add", address, place)) for place in places)
        return between(before, after, across)

    found = between(row(upper), row(lower), down)
    return b.function((found,), "a picture at a place, between four pixels")


def _fetch() -> WasmFunction:
    _, step = _SIZES[FETCH]
    b = FunctionBuilder(FETCH, [("address", "i32"), ("samples", "i32"), ("number", "f64")])
    address, samples, number = map(b.param, ("address", "samples", "number"))
    lanes = SingleLane(b)
    is_there = lanes.both(
        lanes.le(lanes.real(0), number), lanes.lt(number, b.put("f64.convert_i32_s", samples))
    )  # fmt: skip
    found = b.variable("f64", None, "found")
    with b.within("if", "", is_there):
        place = b.put("i32.mul", b.put("i32.trunc_sat_f64_s", number), b.i32(step))
        b.set((found,), (_loaded(b, FETCH, b.put("i32.add", address, place)),))
    return b.function((b.get(found),), "a sample of a sound by its number; 0 outside of it")


_RING: tuple[tuple[str, WasmType], ...] = (
    ("row", "i32"), ("ring", "i32"), ("cell", "i32"), ("cells", "i32"), ("count", "i32"),
)  # fmt: skip


def _between_rows(name: str) -> WasmFunction:
    """Between a row and one plane of a ring; `planes` are those of each cell."""
    b = FunctionBuilder(name, [*_RING, ("planes", "i32")])
    row, ring, first, cells, count, planes = map(b.param, ("row", "ring", "cell", "cells", "count", "planes"))
    at, cell = b.variable("i32", b.i32(0), "at"), b.variable("i32", first, "here")
    with b.within("loop", "next") as label:
        here = b.put("i32.add", row, b.put("i32.shl", b.get(at), b.i32(3)))
        number = b.put("i32.shl", b.put("i32.mul", b.get(cell), planes), b.i32(3))
        there = b.put("i32.add", ring, number)
        to, of = (here, there) if name == PAST else (there, here)
        b.store(b.load("f64", of), to)
        following = b.put("i32.add", b.get(cell), b.i32(1))
        is_over = b.put("i32.ge_s", following, cells)
        b.set((cell,), (b.put("select", b.i32(0), following, is_over, kind="i32"),))
        b.set((at,), (b.put("i32.add", b.get(at), b.i32(1)),))
        b.do("br_if", b.put("i32.lt_s", b.get(at), count), immediate=label)
    return b.function((), "the past of a ring as a row" if name == PAST else "a row as new cells of a ring")


def _copied_rows(name: str) -> WasmFunction:
    b = FunctionBuilder(name, _RING)
    row, ring, cell, cells, count = map(b.param, ("row", "ring", "cell", "cells", "count"))
    left = b.put("i32.sub", cells, cell)
    fits = b.put("select", left, count, b.put("i32.lt_s", left, count), kind="i32")
    parts = [(row, b.put("i32.add", ring, b.put("i32.shl", cell, b.i32(3))), fits)]
    parts.append((b.put("i32.add", row, b.put("i32.shl", fits, b.i32(3))), ring, b.put("i32.sub", count, fits)))
    for here, there, length in parts:
        to, of = (here, there) if name == COPY_PAST else (there, here)
        b.do("memory.copy", to, of, b.put("i32.shl", length, b.i32(3)))
    return b.function((), "the past of a ring as a row" if name == COPY_PAST else "a row as new cells of a ring")


READERS: Mapping[str, Callable[[], WasmFunction]] = MappingProxyType({
    PLANE: lambda: _between(PLANE), PIXEL: lambda: _between(PIXEL), FETCH: _fetch,
    **{name: partial(_between_rows, name) for name in (PAST, KEEP)},
    **{name: partial(_copied_rows, name) for name in (COPY_PAST, COPY_KEEP)},
})  # fmt: skip


def reader(name: str) -> WasmFunction:
    """A function by its name. Raises KeyError for any other."""
    return READERS[name]()
