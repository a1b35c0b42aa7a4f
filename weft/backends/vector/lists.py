"""Lists of calls (`weft.codegen.native.tiles`) for numpy: each record becomes one call of numpy, or a few.

A tile has rows and columns here. What a value of the list varies over is found by following the list: only what varies
over both is computed for each element. So numpy decides for itself which loops have different steps at different
elements, and ignores the records about that.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from weft.backends.vector.registers import with_registers
from weft.backends.vector.steps import (
    HERE, NUMPY, Constant, Extent, Filled, Kept, Kind, LoopSteps, Nest, Operand, Register, Step, VectorProgram,
    copy_bits_from_real, copy_narrowed, copy_where, fetch_samples, find_cells, joined, load_history, load_state,
    load_strand, run_loop, run_masked_loop, sample_picture, sample_state, store_pixels, store_plane, store_state
)
from weft.codegen.kernel import Kernel
from weft.codegen.native.handlers import BODY, RECORD
from weft.codegen.native.module import LEVELS
from weft.codegen.native.target import DOUBLE, ImageCell, Word
from weft.codegen.native.tiles import Callees, TileProgram
from weft.codegen.values import SIGNATURES, Line
from weft.ir.expr import PicturePlane, SlotPlane, StateSlot
from weft.ops import OPS
from weft.ops.spec import OpSpec, ValueType

Record: TypeAlias = Sequence[int]
"""The number of a function, the word of its result, and its operands."""


class Value(NamedTuple):
    """What a slot has: where that is, its type, and what it varies over."""

    place: Operand
    kind: ValueType
    extent: Extent


_BASE = Value(Word.BASE, "u32", Extent.ONE)
"""The bits that all pixels of a launch share."""

_MASK = Value(None, "bool", Extent.ONE)
"""What says in a list which lanes take part in a loop."""


class ListReader:
    """Follows one program of a list, and collects its steps."""

    def __init__(self, kernel: Kernel, code: TileProgram, name: str) -> None:
        self._kernel, self._layout = kernel, code.layout
        words = np.frombuffer(dict(code.programs)[name], np.int64).reshape(-1, RECORD).tolist()
        (_, once, by_row, *_), self._records = words[0], words[1:]
        self._values: dict[int, Value] = {}
        self._steps: list[Step] = []
        self._count = 0
        """How many registers there are."""
        self._loops: list[tuple[Register, Register] | None] = []
        """The masks of the loops around this place."""
        self._bounds = Extent.ONE
        """What the bounds of the nest of loops vary over, if that is known."""
        self._spent: Register | None = None
        """How many steps a nest has made in each element."""
        for start in (0, once, once + by_row):
            self._read(self._list(start))

    def program(self) -> VectorProgram:
        return VectorProgram.of(with_registers(self._steps))

    def _list(self, start: int) -> range:
        """The places of the records of a list."""
        end = next(at for at in range(start, len(self._records)) if self._is(self._records[at], "_end"))
        return range(start, end)

    def _read(self, places: Sequence[int]) -> None:
        for at in places:
            record = self._records[at]
            name = CALLS.names[record[0]]
            if name in SIGNATURES:
                self._operation(OPS[name], record)
            elif name in _LOOPS:
                self._loop(at)
            elif name == "strand":
                self._strand(at)
            elif name != "_more":
                getattr(self, name)(record)

    # Values and steps.

    def _emit(self, *step: Operand) -> None:
        self._steps.append(step)

    def _field(self, word: int) -> Any:
        return self._layout.fields[word]

    def _register(self, kind: Kind, extent: Extent) -> Register:
        """A register for one value."""
        self._count += 1
        return Register(kind, extent, self._count)

    def _new(self, word: int, kind: ValueType, extent: Extent) -> Register:
        """The register of a new value of a slot."""
        made = self._register(kind, extent)
        self._values[word] = Value(made, kind, extent)
        return made

    def _values_of(self, words: Sequence[int]) -> list[Value]:
        return [self._values[word] for word in words]

    def _operation(self, row: OpSpec, record: Record) -> None:
        found = self._values_of(record[2 : 2 + len(row.params)])
        args, extent = [value.place for value in found], _extent_of(found)
        if not isinstance(row.vector, str):
            assert row.vector is not None
            temps = [self._register("float", extent) for _ in range(row.temps)]
            self._emit(row.vector, NUMPY, self._new(record[1], row.gives, extent), *args, *temps)
            return
        out = self._new(record[1], row.gives, extent)
        if all(value.extent != extent for value in found) and found[0].kind == row.gives:
            # Columns combined with rows: broadcasting the columns first is faster than numpy's broadcasting of both.
            columns = [value.extent for value in found].index(Extent.COLUMNS)
            self._emit(np.copyto, out, args[columns])
            args[columns] = out
        self._emit(getattr(np, row.vector), *args, out)

    def _is(self, record: Record, name: str) -> bool:
        return CALLS.names[record[0]] == name

    # Numbers and lines.

    def _scalar(self, record: Record) -> None:
        scalar: Any = self._layout.scalars[record[2]]
        self._values[record[1]] = Value(scalar, scalar.kind, Extent.ONE)

    def _row(self, record: Record) -> None:
        line = self._field(record[2])
        self._values[record[1]] = Value(line, line.kind, Extent.ROWS)

    def _column(self, record: Record) -> None:
        line = self._field(record[2])
        self._values[record[1]] = Value(line, line.kind, Extent.COLUMNS)

    def _const(self, record: Record) -> None:
        self._values[record[1]] = Value(_number(record[2]), "float", Extent.ONE)

    def _bits(self, record: Record) -> None:
        self._values[record[1]] = Value(Constant(record[2], "u32"), "u32", Extent.ONE)

    def _base(self, record: Record) -> None:
        self._values[record[1]] = _BASE

    def _inside(self, record: Record) -> None:
        self._values[record[1]] = _MASK

    def _copy(self, record: Record) -> None:
        source = self._values[record[2]]
        if source is _MASK:
            self._values[record[1]] = _MASK
        else:
            self._emit(np.copyto, self._new(record[1], source.kind, source.extent), source.place)

    # State, pictures, strands.

    def _past(self, record: Record) -> None:
        cell = self._field(record[2])
        cells = self._cells_of(Constant(cell.k, "float"), self._kernel.slot(cell.slot), cell.plane)
        self._emit(load_state, HERE, cell.slot, cells, self._new(record[1], "float", Extent.ALL))

    def _cells_of(self, k: Operand, slot: StateSlot, plane: int, extent: Extent = Extent.ONE) -> Register:
        out = self._register("index", extent)
        self._emit(find_cells, HERE, slot, plane, k, out)
        return out

    def _cells(self, record: Record) -> None:
        (k,), head = self._values_of(record[2:3]), self._field(record[3])
        cells = self._cells_of(k.place, self._kernel.slot(head.slot), record[6], k.extent)
        self._values[record[1]] = Value(cells, "u32", k.extent)

    def _past_at(self, record: Record) -> None:
        ring, cells = self._field(record[2]), self._values[record[3]]
        self._emit(load_state, HERE, ring.slot, cells.place, self._new(record[1], "float", Extent.ALL))

    def _history(self, record: Record) -> None:
        history, cells = self._field(record[2]), self._values[record[3]]
        self._emit(load_history, HERE, history.slot, cells.place, self._new(record[1], "float", cells.extent))

    def _sample(self, record: Record) -> None:
        cell = self._field(record[2])
        cells = self._cells_of(Constant(cell.k, "float"), self._kernel.slot(cell.slot), cell.plane)
        self._sampled(record, sample_state, (cell.slot, cells), Extent.ONE, record[5:7])

    _sample_row = _sample_across = _sample_down = _sample_down_row = _sample_by_row = _sample

    def _sample_at(self, record: Record) -> None:
        ring, cells = self._field(record[2]), self._values[record[3]]
        self._sampled(record, sample_state, (ring.slot, cells.place), cells.extent, record[6:8])

    _sample_at_across = _sample_at_down = _sample_at_by_row = _sample_at

    def _picture(self, record: Record) -> None:
        source = self._field(record[2])
        self._sampled(record, sample_picture, PicturePlane(source.path, record[5]), Extent.ONE, record[6:8])

    def _sampled(
        self, record: Record, function: Callable[..., None], source: Operand, by: Extent, words: Sequence[int]
    ) -> None:
        """Samples at x and y; which image is sampled varies `by` something."""
        x, y = self._values_of(words)
        down = joined((y.extent, by))
        extent = joined((x.extent, down))

        def scratch_of(extent: Extent, *kinds: Kind) -> tuple[Register, ...]:
            return tuple(self._register(kind, extent) for kind in kinds)

        scratch = (
            scratch_of(x.extent, "index", "index", "float", "float"),
            scratch_of(down, "index", "index", "float", "float"),
            scratch_of(extent, "index", "float", "float"),
        )
        self._emit(function, HERE, source, (x.place, y.place), self._new(record[1], "float", extent), scratch)

    def _fetch(self, record: Record) -> None:
        source, number = self._field(record[2]), self._values[record[5]]
        out = self._new(record[1], "float", number.extent)
        self._emit(fetch_samples, HERE, PicturePlane(source.path, record[4]), number.place, out)

    def _strand(self, at: int) -> None:
        record = self._records[at]
        words, count = list(record[4:]), record[3]
        while len(words) < count:
            at += 1
            words += self._records[at][1:]
        found = self._values_of(words[:count])
        args = [value.place for value in found]
        out = self._new(record[1], "float", _extent_of(found))
        self._emit(load_strand, HERE, self._kernel.strands[record[2]], out, *args)

    # Results.

    def _pack(self, record: Record) -> None:
        """Packs one channel of a pixel with the others."""
        parts, value = self._values_of(record[2:4])
        level, bits = self._register("float", value.extent), self._register("u32", value.extent)
        self._emit(np.multiply, value.place, _number(record[4]), level)
        self._emit(np.add, level, _number(record[5]), level)
        if record[7]:
            # NaN becomes 0. Numpy's maximum and minimum are several times faster with an array than with a number.
            self._emit(np.fmax, level, Filled(0.0, value.extent), level)
            self._emit(np.fmin, level, Filled(LEVELS, value.extent), level)
        self._emit(copy_bits_from_real, bits, level)
        if record[6] != 1:
            self._emit(np.multiply, bits, Constant(record[6], "u32"), bits)
        self._together(record[1], parts, Value(bits, "u32", value.extent))

    def _or(self, record: Record) -> None:
        self._together(record[1], *self._values_of(record[2:4]))

    def _together(self, word: int, a: Value, b: Value) -> None:
        self._emit(np.bitwise_or, a.place, b.place, self._new(word, "u32", joined((a.extent, b.extent))))

    def _store(self, record: Record) -> None:
        value, field = self._values[record[2]], self._field(record[3])
        match field:
            case Word.OUT if value.kind == "u32":
                parts = [value.place]
                if self._steps and self._steps[-1][0] is np.bitwise_or and self._steps[-1][3] is value.place:
                    parts = list(self._steps.pop()[1:3])
                self._emit(store_pixels, HERE, *parts)
            case Word.OUT:
                self._emit(store_plane, HERE, record[4], value.place)
            case ImageCell(slot, plane, _):
                self._emit(store_state, HERE, SlotPlane(slot, plane), value.place)
            case Line():
                self._emit(copy_narrowed, Kept(field), value.place)
            case _:
                raise LookupError(f"nothing stores {field}")

    # Loops.

    def _loop(self, at: int) -> None:
        """Carried values get registers for all that they vary over. If only the end of the body shows that, it is read
        again."""
        record, around = self._records[at], self._steps
        first, last = self._values_of(record[2:4])
        inside = self._list(at + record[BODY] // (RECORD * 8))
        body, ending = inside[: len(inside) - record[7]], inside[len(inside) - record[7] :]
        moves = [self._records[each] for each in ending]
        is_outermost = not self._loops
        is_nested = not is_outermost or any(CALLS.names[self._records[each][0]] in _LOOPS for each in body)
        self._bounds = joined((Extent.ONE if is_outermost else self._bounds, first.extent, last.extent))
        before, wide = dict(self._values), {move[1]: Extent.ONE for move in moves}
        is_settled = False
        while not is_settled:
            bounds, self._values = self._bounds, dict(before)
            entering = self._enter(before, wide, is_nested)
            index = self._new(record[1], "float", first.extent)
            masks, self._steps = self._loops[-1], []
            self._read(body)
            # If inner bounds vary over more than was known, the outermost body is read again.
            is_settled = self._move(moves, wide, masks) and (bounds == self._bounds or not is_outermost)
            self._loops.pop()
            steps = LoopSteps(tuple(self._steps))
        self._steps = around
        around += entering
        limits = first.place, last.place, index
        if masks is None:
            self._emit(run_loop, HERE, Nest(is_nested, is_outermost), limits, steps)
        else:
            outer = self._loops[-1] if self._loops else None
            self._emit(run_masked_loop, HERE, limits, (*masks, outer and outer[0]), self._spent, steps)

    def _enter(self, before: Mapping[int, Value], wide: dict[int, Extent], is_nested: bool) -> list[Step]:
        """Begins a loop: gives the steps that widen what it carries, for what is known now."""
        self._steps = []
        for word, extent in wide.items():
            wide[word] = joined((extent, self._bounds, before[word].extent))
            if before[word].extent != wide[word]:
                self._emit(np.copyto, self._new(word, "float", wide[word]), before[word].place)
        if not self._loops:
            self._spent = self._register("float", self._bounds) if is_nested else None
        masks = self._register("bool", self._bounds), self._register("bool", self._bounds)
        self._loops.append(masks if self._bounds else None)
        return self._steps

    def _move(
        self, records: Sequence[Record], wide: dict[int, Extent], masks: tuple[Register, Register] | None
    ) -> bool:  # fmt: skip
        """Ends a body: carried values become those that follow. Gives whether their registers are wide enough; notes
        what they have to be."""
        enough = True
        for record in records:
            carried, value = self._values[record[1]], self._values[record[2 if self._is(record, "_copy") else 3]]
            wider = joined((carried.extent, value.extent))
            enough &= wider == carried.extent
            wide[record[1]] = wider
            if masks is None:
                self._emit(np.copyto, carried.place, value.place)
            else:
                self._emit(copy_where, carried.place, value.place, masks[0])
        return enough


_LOOPS = ("_loop", "_masked")

CALLS = Callees(
    (
        "_end", *_LOOPS, "strand", "_more", "_const", "_bits", "_base", "_scalar", "_row", "_column", "_inside",
        "_copy", "_past", "_cells", "_past_at", "_history", "_sample", "_sample_row", "_sample_across", "_sample_down",
        "_sample_down_row", "_sample_by_row", "_sample_at", "_sample_at_across", "_sample_at_down", "_sample_at_by_row",
        "_picture", "_fetch", "_pack", "_or", "_store", *(op for op in SIGNATURES if OPS[op].vector is not None),
    ),
    DOUBLE, fuses=False, most_room=inf,
)  # fmt: skip
"""What numpy can call. The methods of `ListReader` are called like the functions."""


def _number(word: int) -> Constant:
    return Constant(struct.unpack("<d", struct.pack("<q", word))[0], "float")


def _extent_of(values: Sequence[Value]) -> Extent:
    return joined(value.extent for value in values)
