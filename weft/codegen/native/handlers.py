"""The functions that pictures and sounds without a compiler consist of: one for each operation, over a tile of lanes.

`handlers` writes them once for a processor and a precision, from the native forms of the table of operations, with
`run`, which follows a program (`tiles`, `chunks`). A program consists of lists of records of `RECORD` words: the
address of a function, the slot of its result, and the operands that it takes. Each function ends with a jump to that of
the next record; the last one of a list returns. Slots hold a float for each lane, and other types in 4 bytes; a bool is
0 or 1. The word of a slot is its offset in bytes, less 2³² if it holds a tile: the other slots hold one number,
`UNIFORM` times.

Pictures are in single precision, and their tiles are pieces of rows. Sounds are in double precision, and their tiles
are chunks of samples. Values that need the sample before are computed for one lane at a time, by other functions
(`ONE`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from weft.codegen.kernel import LOOP_STEPS
from weft.codegen.native.fusions import FUSIONS, Pattern
from weft.codegen.native.module import LEVELS
from weft.codegen.native.section import (
    Located, Raster, RingShape, between_four, between_rows, cell_numbers, far_gather, fetch, locate, locate_column,
    locate_row, own_columns, own_row, own_rows
)
from weft.codegen.native.series import recurrence, wave_after
from weft.codegen.native.target import (
    CHANNELS, DOUBLE, SINGLE, Field, Head, History, ImageCell, Isa, LlvmValue, PictureWord, Precision, Ring, Word
)
from weft.codegen.native.writer import ValueWriter
from weft.codegen.values import SIGNATURES, Line, Node
from weft.ir.rates import Rate
from weft.ops import OPS
from weft.ops.single import remainder_by
from weft.ops.spec import ValueType

TILE = 256
"""The most lanes of a tile."""

# The registers of a vector: the loops of functions run over as many lanes as these hold.
_REGISTERS: Mapping[Precision, int] = MappingProxyType({SINGLE: 4, DOUBLE: 2})

UNIFORM: Mapping[Precision, int] = MappingProxyType({SINGLE: 64, DOUBLE: 16})
"""The number of copies of a value that is the same in all lanes. No function reads more at once."""

RECORD = 8
"""The words of a record."""

BODY = 4
"""The word of a record with a body that says how many bytes after the record the body is."""

ONE = "one_"
"""The prefix of the names of functions for one lane. The lane is the row `%y`; in a slot of one number it is the
first."""

# The functions of pictures, apart from rows.
_NUMBERS = ("_const", "_bits", "_scalar", "_row", "_base")
_COPIES = ("_column", "_past", "_store")
_READS = (
    "_past_at", "_sample", "_sample_row", "_sample_across", "_sample_down", "_sample_down_row", "_sample_by_row",
    "_sample_at", "_sample_at_across", "_sample_at_down", "_sample_at_by_row", "_history", "_picture", "_fetch",
)  # fmt: skip
_OF_PICTURES = (*_NUMBERS, *_COPIES, *_READS, "_copy", "_modulo", "_cells", "_inside", "_pack", "_or")

# The functions of sounds, apart from rows, for tiles and for one lane.
_OF_CHUNKS = (
    "_const", "_bits", "_number", "_copy", "_column", "_store", "_times", "_wave_sinpi", "_wave_cospi", "_inside",
    "_modulo", "_picture", "_fetch", "_before", "_shift", "_keep", "_advance", "_spread", "_spread_bits", "_chunks",
    "_samples",
)  # fmt: skip
_OF_SAMPLES = ("_copy", "_modulo", "_picture", "_fetch", "_before", "_before_by", "_keep", "_advance", "_push")

_LISTS = ("_loop", "_masked", "_end")


def handler_names(floats: Precision = SINGLE) -> tuple[str, ...]:
    """The functions of a module, without `run`; records name them by their places."""
    fused = (f"_fused{at}" for at in range(len(FUSIONS)))
    rows = (*fused, *(name for name in SIGNATURES if OPS[name].native is not None))
    if floats == SINGLE:
        return (*_LISTS, *_OF_PICTURES, *rows)
    return (*_LISTS, *_OF_CHUNKS, *rows, *(ONE + name for name in (*_OF_SAMPLES, *rows)))


_HEADER = "(ptr %slots, ptr %record, ptr %block, i64 %x, i64 %y, i64 %count)"
"""The parameters of each function."""

_ARGUMENTS = "ptr %block, i64 %x, i64 %y, i64 %count"

# The end of each function: a jump to that of the next record.
_NEXT = (
    f"  %following = getelementptr i64, ptr %record, i64 {RECORD}", "  %next.handler = load ptr, ptr %following",
    f"  musttail call void %next.handler(ptr %slots, ptr %following, {_ARGUMENTS})", "  ret void",
)  # fmt: skip


class _Handler(ValueWriter):
    """One function. Most are a loop over the vectors of a tile, which may read and write whole vectors of slots. Those
    for one lane (`alone`) have no loop."""

    def __init__(self, isa: Isa, floats: Precision, lanes: int, alone: bool = False) -> None:
        self._fields: dict[Field, int | str] = {word: at for at, word in enumerate(Word)}
        super().__init__(isa, lanes, self._fields, floats)
        self._alone = alone

    # Words of the record.

    def operand(self, at: int) -> str:
        """A word, as a number."""

        def load() -> LlvmValue:
            place = self.put(f"getelementptr i64, ptr %record, i64 {at}")
            return LlvmValue(self.put(f"load i64, ptr {place}"), "u32")

        return self._hoist(at, load).text

    def constant(self, at: int, kind: ValueType = "u32") -> LlvmValue:
        """A number, in every lane."""

        def spread() -> LlvmValue:
            if kind == "float" and self.floats == DOUBLE:
                return self.splat(self.put(f"bitcast i64 {self.operand(at)} to double"), kind)
            found = self.splat(self.put(f"trunc i64 {self.operand(at)} to i32"), "u32")
            return self.real_in(found) if kind == "float" else found

        return self._hoist((at, kind), spread)

    def given(self, field: Field, at: int) -> Field:
        """A field of the block of arguments, whose place there is a word."""
        self._fields[field] = self.operand(at)
        return field

    def slot(self, at: int) -> str:
        """The address of a slot."""

        def find() -> LlvmValue:
            offset = self.put(f"and i64 {self.operand(at)}, {0xFFFF_FFFF}")
            return LlvmValue(self.put(f"getelementptr i8, ptr %slots, i64 {offset}"), "u32")

        return self._hoist(("slot", at), find).text

    def lane_at(self, at: int) -> str:
        """The lane of a slot with which this vector begins: the first one if the slot has one number."""
        mask = self._hoist(("mask", at), lambda: LlvmValue(self.put(f"ashr i64 {self.operand(at)}, 32"), "u32"))
        return self.put(f"and i64 {'%y' if self._alone else '%at'}, {mask.text}")

    def read(self, at: int, kind: ValueType) -> LlvmValue:
        """This vector of a slot."""
        return self.load(self.slot(at), self.lane_at(at), kind)

    def read_node(self, at: int) -> Node:
        """A node with the value that a slot has."""
        node = Node("operand", (), "float")
        self.keep(node, self.read(at, "float"))
        return node

    def write(self, value: LlvmValue, at: int = 1) -> None:
        self.store(value, self.slot(at), self.lane_at(at) if self._alone else "%at")

    def write_uniform(self, value: LlvmValue, at: int = 1) -> None:
        """Writes all copies of a number."""
        for start in range(0, UNIFORM[self.floats], self.lanes):
            self.store(value, self.slot(at), str(start))

    # Text.

    def call_of_words(self, function: str, a: str, b: str) -> str:
        """Calls an intrinsic of LLVM on two numbers of 64 bits."""
        self.declared.add(f"declare i64 @llvm.{function}.i64(i64, i64)")
        return self.put(f"call i64 @llvm.{function}.i64(i64 {a}, i64 {b})")

    def pixel(self, plane: str = "0") -> str:
        """The number of the first element of the tile in an array of planes."""
        row = self.put(f"add i64 {self.put(f'mul i64 {plane}, {self.word(Word.HEIGHT)}')}, %y")
        return self.put(f"add i64 {self.put(f'mul i64 {row}, {self.word(Word.WIDTH)}')}, %x")

    def function(self, name: str, body: Sequence[str]) -> list[str]:
        return [f'define void @"tile{name}"{_HEADER} #0 {{', "entry:", *self.entry, *body, *_NEXT, "}"]

    def over_vectors(self, name: str) -> list[str]:
        """The function that runs the text for each vector."""
        return self.function(name, [
            "  br label %vector", "vector:",
            f"  %at = phi i64 [ 0, %entry ], [ %next, %{self.block} ]", *self.text,
            f"  %next = add i64 %at, {self.lanes}", "  %more = icmp slt i64 %next, %count",
            "  br i1 %more, label %vector, label %done", "done:",
        ])  # fmt: skip

    def over_one(self, name: str) -> list[str]:
        """The function that runs the text once."""
        return self.function(name, ["  br label %vector", "vector:", *self.text])


def handlers(isa: Isa, floats: Precision = SINGLE) -> str:
    """The module of all functions, and of `run`, which takes the block of arguments and a program."""
    text = [_LIST, _RUN if floats == SINGLE else _RUN_CHUNKS, "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"]
    declared, helpers = set[str](), dict[str, list[str]]()
    for name in handler_names(floats):
        w = _writer(isa, floats, name)
        text += _handler(w, name)
        declared |= w.declared
        helpers |= w.helpers
    for helper in helpers.values():
        text += helper
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{isa.bits}" }}'
    return "\n".join([*sorted(declared), *text, attributes, ""])


def _writer(isa: Isa, floats: Precision, name: str) -> _Handler:
    if name.startswith(ONE):
        return _Handler(isa, floats, 1, alone=True)
    row = OPS.get(name)
    # There are instructions that gather the lanes of one register, and functions of C's library take one lane each.
    narrow = name in _READS or (floats == DOUBLE and row is not None and row.double is not None)
    lanes = isa.bits // (8 * floats.bytes) * (1 if narrow else _REGISTERS[floats])
    return _Handler(isa, floats, lanes, alone=name == "_loop" and floats == DOUBLE)


def _handler(w: _Handler, name: str) -> list[str]:
    if name == "_end":
        return [f'define void @"tile_end"{_HEADER} #0 {{', "  ret void", "}"]
    if name in _WHOLE:
        return w.function(name, _WHOLE[name](w))
    if name in _MOVES:
        with w.writing(w.entry):
            _MOVES[name](w)
        return w.function(name, [])
    short = name.removeprefix(ONE)
    if short in SIGNATURES:
        w.write(w.computed(OPS[short], [w.read(2 + at, kind) for at, kind in enumerate(SIGNATURES[short][0])]))
    elif short.startswith("_fused"):
        w.write(_fused(w, FUSIONS[int(short.removeprefix("_fused"))], {}))
    elif short in _ENDS:
        _ENDS[short](w)
    else:
        w.write(_read(w, short) if short in _READS else _special(w, short))
    return w.over_one(name) if name.startswith(ONE) else w.over_vectors(name)


def _special(w: _Handler, name: str) -> LlvmValue:
    match name:
        case "_const":
            return w.constant(2, "float")
        case "_bits":
            return w.constant(2)
        case "_scalar":
            return w.load_splat(w.word(Word.SCALARS), w.operand(2), "u32")
        case "_number":
            return w.load_splat(w.word(Word.NUMBERS), w.operand(2), "float")
        case "_row":
            return w.load_splat(w.word(w.given(_LINE, 2)), "%y", "u32")
        case "_base":
            return w.word_as_bits(Word.BASE)
        case "_copy":
            return w.read(2, "float")
        case "_times":
            return _times(w)
        case "_before":
            return _before(w)
        case "_before_by":
            return _before_by(w)
        case "_modulo":
            return remainder_by(w, w.read(2, "float"), w.constant(3, "float"), w.constant(4, "float"))
        case "_inside":
            count = w.in_entry(lambda: w.splat(w.put("trunc i64 %count to i32"), "u32"))
            return LlvmValue(w.put(f"icmp slt {w.types['u32']} {w.lane_numbers('%at').text}, {count.text}"), "bool")
        case "_cells":
            depth = w.constant(4)
            ring = RingShape(w.real_of(depth), w.bits_add(depth, w.bits(1)), w.constant(5))
            return cell_numbers(w, ring, w.word(w.given(Head(""), 3)), w.constant(6), w.read(2, "float"))
        case "_pack":
            level = w.fma(w.read(3, "float"), w.constant(4, "float"), w.constant(5, "float"))
            level = w.lesser(w.greater(level, w.real(0)), w.real(LEVELS))
            return w.bits_or(w.read(2, "u32"), w.bits_mul(w.whole(level), w.constant(6)))
        case "_or":
            return w.bits_or(w.read(2, "u32"), w.read(3, "u32"))
    raise KeyError(name)


_LINE = Line("local", 0, Rate.COLUMN, "u32")
"""A line that a record names."""

_CELL, _RING, _HISTORY, _HEAD = ImageCell("", 0, 0), Ring(""), History(""), Head("")
_PIXELS, _WIDE, _HIGH = PictureWord("", "pixels"), PictureWord("", "width"), PictureWord("", "height")


def _column(w: _Handler) -> None:
    _copy(w, w.slot(1), w.element(w.word(w.given(_LINE, 2)), "%x", "float"))


def _past(w: _Handler) -> None:
    _copy(w, w.slot(1), w.element(w.word(w.given(_CELL, 2)), w.pixel()))


def _store(w: _Handler) -> None:
    """Leaves a tile in a plane of a picture, or in an output of a sound."""
    if w.floats == SINGLE:
        place = w.element(w.word(w.given(_CELL, 3)), w.pixel(w.operand(4)))
    else:
        first = w.put(f"mul i64 {w.word(Word.STRIDE)}, {w.operand(3)}")
        place = w.element(w.word(Word.OUT), w.put(f"add i64 {first}, %x"), "float")
    _copy(w, place, w.slot(2))


def _copy(w: _Handler, target: str, source: str, count: str = "%count") -> None:
    """Copies floats. Arrays end with the row, so nothing after it is read or written."""
    size = w.put(f"mul i64 {count}, {w.floats.bytes}")
    w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")


def _read(w: _Handler, name: str) -> LlvmValue:
    """A read of state or pictures. Lanes after the last read something too, so their places are limited."""
    match name:
        case "_past_at":
            size = w.bits_mul(w.word_as_bits(Word.WIDTH), w.word_as_bits(Word.HEIGHT))
            last, places = w.bits_sub(size, w.bits(1)), w.lane_numbers(w.put(f"add i64 {w.in_entry(w.pixel)}, %at"))
            inside = LlvmValue(w.put(f"icmp ult {w.types['u32']} {places.text}, {last.text}"), "bool")
            sides = Word.WIDTH, Word.HEIGHT
            return far_gather(w, w.word(w.given(_RING, 2)), w.read(3, "u32"), w.select(inside, places, last), sides)
        case "_sample" | "_sample_down" | "_sample_by_row":
            cell, (columns, rows) = w.word(w.given(_CELL, 2)), _located(w, name, 3)
            return between_four(w, columns, rows, lambda at: w.gather(cell, at))
        case "_sample_row" | "_sample_across" | "_sample_down_row":
            return between_rows(w, *_located(w, name, 3), w.word(w.given(_CELL, 2)))
        case "_sample_at" | "_sample_at_down" | "_sample_at_across" | "_sample_at_by_row":
            ring, number = w.word(w.given(_RING, 2)), w.read(3, "u32")
            columns, rows = _located(w, name, 4)
            return between_four(w, columns, rows, lambda at: far_gather(w, ring, number, at, (_WIDE, _HIGH)))
        case "_history":
            return w.gather(w.word(w.given(_HISTORY, 2)), w.read(3, "u32"), source=DOUBLE)
        case "_picture":
            first = w.in_entry(lambda: w.element(w.word(w.given(_PIXELS, 2)), w.operand(5)))
            raster = Raster(w.given(_WIDE, 3), w.given(_HIGH, 4), CHANNELS)
            columns, rows = locate(w, raster, w.read_node(6), w.read_node(7))
            return between_four(w, columns, rows, lambda at: w.gather(first, at))
        case "_fetch":
            w.given(_PIXELS, 2), w.given(_WIDE, 3)
            return fetch(w, "", w.read(5, "float"), w.constant(4))
    raise KeyError(name)


def _located(w: _Handler, name: str, at: int) -> tuple[Located, Located]:
    """The columns and rows between which an image is sampled. The words of its sides begin `at` this one, and those of
    the coordinates follow. Along an axis that no remap moves, only the pixel itself is read."""
    raster = Raster(w.given(_WIDE, at), w.given(_HIGH, at + 1), 1)
    if "_down" in name:
        columns = own_columns(w, w.put("add i64 %x, %at"), raster)
    else:
        columns = locate_column(w, w.read_node(at + 2), raster)
    if "_by_row" in name:
        return columns, own_rows(w, w.put("add i64 %x, %at"), raster)
    if "_across" in name:
        return columns, own_row(w, w.in_entry(lambda: w.put(f"mul i64 %y, {w.word(raster.width)}")))
    return columns, locate_row(w, w.read_node(at + 3), raster)


def _fused(w: _Handler, pattern: Pattern, known: dict[int | Pattern, LlvmValue]) -> LlvmValue:
    """The value of a pattern, whose operands are in the slots of the record."""
    op, *operands = pattern
    values = []
    for operand, kind in zip(operands, SIGNATURES[str(op)][0], strict=True):
        assert not isinstance(operand, str)
        if isinstance(operand, float):
            values.append(w.real(operand))
            continue
        if isinstance(operand, tuple) and operand[0] == "u32":
            assert isinstance(operand[1], int)
            values.append(w.bits(operand[1]))
            continue
        if operand not in known:
            known[operand] = w.read(2 + operand, kind) if isinstance(operand, int) else _fused(w, operand, known)
        values.append(known[operand])
    return w.computed(OPS[str(op)], values)


# Sounds.


def _times(w: _Handler) -> LlvmValue:
    """The times of the samples of a vector. Each is computed from the number of its sample, which is exact."""

    def word(field: Word) -> LlvmValue:
        return w.in_entry(lambda: w.splat(w.put(f"bitcast i64 {w.word(field)} to double"), "float"))

    origin, rate, first = word(Word.ORIGIN), word(Word.RATE), word(Word.FIRST)
    start = w.in_entry(lambda: w.add(first, w.splat(w.put("sitofp i64 %x to double"), "float")))
    lanes = w.in_entry(lambda: w.add(start, w.each(range(w.lanes))))
    row = w.splat(w.put("sitofp i64 %at to double"), "float")
    return w.add(w.div(w.add(lanes, row), rate), origin)


def _wave(w: _Handler, row: str) -> list[str]:
    """A sine or a cosine of half turns whose angle grows evenly, from its slope and its offset (`series`)."""
    slope, offset = Node("slope", (), "float"), Node("offset", (), "float")
    with w.writing(w.entry):
        words = map(w.word, (Word.ORIGIN, Word.FIRST, Word.RATE))
        origin, first, rate = (w.put(f"bitcast i64 {word} to double") for word in words)
        w.do(f"%step = fdiv double 1.0, {rate}")
        number = w.put(f"fadd double {first}, {w.put('sitofp i64 %x to double')}")
        w.do(f"%time = fadd double {origin}, {w.put(f'fdiv double {number}, {rate}')}")
        for node, at in ((slope, 2), (offset, 3)):
            w.keep(node, w.load_splat(w.slot(at), "0", "float"))
        wave = recurrence(w, Node("wave", (slope, offset), "float", row))
    w.write(wave.now)
    value, of = wave_after(w, wave.factor, wave.now, wave.before), w.types["float"]
    return [
        "  br label %vector", "vector:", "  %at = phi i64 [ 0, %entry ], [ %next, %vector ]",
        f"  {wave.now.text} = phi {of} [ {wave.second.text}, %entry ], [ {value.text}, %vector ]",
        f"  {wave.before.text} = phi {of} [ {wave.first.text}, %entry ], [ {wave.now.text}, %vector ]", *w.text,
        f"  %next = add i64 %at, {w.lanes}", "  %more = icmp slt i64 %next, %count",
        "  br i1 %more, label %vector, label %done", "done:",
    ]  # fmt: skip


def _before(w: _Handler) -> LlvmValue:
    """The value of a slot, the number of ticks ago that the record gives."""
    history, head = w.word(w.given(_HISTORY, 2)), w.word(w.given(_HEAD, 3))
    cell = w.put(f"sub i64 {head}, {w.operand(4)}")
    wrapped, is_before = w.put(f"add i64 {cell}, {w.operand(5)}"), w.put(f"icmp slt i64 {cell}, 0")
    cell = w.put(f"select i1 {is_before}, i64 {wrapped}, i64 {cell}")
    return w.load(history, _number(w, cell, w.operand(6), w.operand(7)), "float")


def _before_by(w: _Handler) -> LlvmValue:
    """The value of a slot, the number of ticks ago that a value gives."""
    history, head, depth = w.word(w.given(_HISTORY, 2)), w.word(w.given(_HEAD, 3)), w.constant(4)
    ring = RingShape(w.real_of(depth), w.bits_add(depth, w.bits(1)), w.constant(5))
    return w.gather(history, cell_numbers(w, ring, head, w.constant(6), w.read(7, "float")), source=DOUBLE)


def _number(w: _Handler, cell: str, planes: str, plane: str) -> str:
    """The number of a plane of a cell in a ring."""
    return w.put(f"add i64 {w.put(f'mul i64 {cell}, {planes}')}, {plane}")


def _keep(w: _Handler) -> None:
    """Writes a new value of a slot."""
    history, head = w.word(w.given(_HISTORY, 3)), w.word(w.given(_HEAD, 4))
    w.store(w.read(2, "float"), history, _number(w, head, w.operand(5), w.operand(6)))


def _spread(w: _Handler, kind: ValueType) -> None:
    """Copies a number of a slot, so that functions for tiles can read it."""
    w.write_uniform(w.load_splat(w.slot(1), "0", kind))


def _advance(w: _Handler) -> None:
    """Ends the ticks of a slot: moves forward in its ring by as many cells as there are lanes."""
    field, cells = w.given(_HEAD, 2), w.operand(3)
    if w.lanes == 1:
        _end_tick(w, field, cells)
        return
    following = w.put(f"urem i64 {w.put(f'add i64 {w.word(field)}, %count')}, {cells}")
    w.do(f"store i64 {following}, ptr {w.place(field)}, align 8")


def _end_tick(w: _Handler, head: Field, cells: str) -> None:
    following = w.put(f"add i64 {w.word(head)}, 1")
    is_over = w.put(f"icmp eq i64 {following}, {cells}")
    w.do(f"store i64 {w.put(f'select i1 {is_over}, i64 0, i64 {following}')}, ptr {w.place(head)}, align 8")


def _shift(w: _Handler) -> None:
    """Copies a tile, some lanes further on."""
    left = w.call_of_words("smax", w.put(f"sub i64 %count, {w.operand(3)}"), "0")
    _copy(w, w.element(w.slot(1), w.operand(3), "float"), w.slot(2), left)


def _ring_copy(w: _Handler, keeps: bool) -> list[str]:
    """Copies between a tile and the ring of a slot: keeps the values of a chunk, or reads those of some ticks before
    it. The latter has the operands of `_before`."""
    with w.writing(w.entry):
        history, head = (w.word(w.given(field, at + keeps)) for field, at in ((_HISTORY, 2), (_HEAD, 3)))
        cells, planes, plane = (w.operand(at) for at in ((5, 6, 7) if not keeps else (7, 5, 6)))
        if keeps:
            # If there are more samples than cells, the last ones stay.
            skipped = w.call_of_words("smax", w.put(f"sub i64 %count, {cells}"), "0")
            start, count = w.put(f"add i64 {head}, {skipped}"), w.put(f"sub i64 %count, {skipped}")
        else:
            start, skipped = w.put(f"sub i64 {w.put(f'add i64 {head}, {cells}')}, {w.operand(4)}"), "0"
            count = w.call_of_words("smin", "%count", w.operand(4))
        cell = w.put(f"urem i64 {start}, {cells}")
        before = w.call_of_words("smin", count, w.put(f"sub i64 {cells}, {cell}"))
        tile = w.element(w.slot(2 if keeps else 1), skipped, "float")
        rest = w.element(tile, before, "float")
        is_plain = w.put(f"icmp eq i64 {planes}, 1")
    for row, at, length in ((tile, cell, before), (rest, "0", w.put(f"sub i64 {count}, {before}"))):
        place = w.element(history, at, "float")
        _copy(w, *((place, row) if keeps else (row, place)), length)
    plain, w.text = w.text, []
    places = w.element(history, _number(w, "%cell", planes, plane), "float"), w.element(tile, "%at", "float")
    target, source = places if keeps else places[::-1]
    w.do(f"store double {w.put(f'load double, ptr {source}')}, ptr {target}")
    return [
        f"  br i1 {is_plain}, label %plain, label %look", "plain:", *plain, "  br label %done", "look:",
        "  %at = phi i64 [ 0, %entry ], [ %at.next, %one ]",
        f"  %cell = phi i64 [ {cell}, %entry ], [ %cell.next, %one ]",
        f"  %more = icmp slt i64 %at, {count}", "  br i1 %more, label %one, label %done", "one:", *w.text,
        "  %at.next = add i64 %at, 1", "  %cell.after = add i64 %cell, 1",
        f"  %cell.over = icmp eq i64 %cell.after, {cells}",
        "  %cell.next = select i1 %cell.over, i64 0, i64 %cell.after", "  br label %look", "done:",
    ]  # fmt: skip


def _push(w: _Handler) -> None:
    """Writes the new value of a slot that has only one, and ends its tick."""
    history, field = w.word(w.given(_HISTORY, 3)), w.given(_HEAD, 4)
    w.store(w.read(2, "float"), history, w.word(field))
    _end_tick(w, field, w.operand(5))


# What ends the tick of a slot for one sample.
_ENDS: Mapping[str, Callable[[_Handler], None]] = MappingProxyType({
    "_keep": _keep, "_advance": _advance, "_push": _push,
})  # fmt: skip


# Records with a body: a list of other records.


def _run_body(w: _Handler, given: str = _ARGUMENTS) -> str:
    """A call that runs the body."""
    body = w.in_entry(lambda: w.put(f"getelementptr i8, ptr %record, i64 {w.operand(BODY)}"))
    return f"  call void @tile_list(ptr %slots, ptr {body}, {given})"


def _chunks(w: _Handler) -> list[str]:
    """Runs the body for each chunk of the launch."""
    width = w.in_entry(lambda: w.word(Word.WIDTH))
    return [
        "  br label %chunk", "chunk:", "  %start = phi i64 [ 0, %entry ], [ %start.next, %chunk ]",
        f"  %left = sub i64 {width}, %start", f"  %cut = icmp slt i64 %left, {TILE}",
        f"  %size = select i1 %cut, i64 %left, i64 {TILE}",
        _run_body(w, "ptr %block, i64 %start, i64 0, i64 %size"), "  %start.next = add i64 %start, %size",
        f"  %more = icmp slt i64 %start.next, {width}", "  br i1 %more, label %chunk, label %done", "done:",
    ]  # fmt: skip


def _samples(w: _Handler) -> list[str]:
    """Runs the body for each sample of the chunk."""
    return [
        "  br label %sample", "sample:", "  %lane = phi i64 [ 0, %entry ], [ %lane.next, %sample ]",
        _run_body(w, "ptr %block, i64 %x, i64 %lane, i64 %count"), "  %lane.next = add i64 %lane, 1",
        "  %more = icmp slt i64 %lane.next, %count", "  br i1 %more, label %sample, label %done", "done:",
    ]  # fmt: skip


# Loops have the same operands: the slots of the index, of the first and of the last number, the body, the slot of the
# steps that the nest may still make, and that of the lanes that take part. Other records have written the last two.


def _step(w: _Handler) -> list[str]:
    """Runs the body, and continues with the next step."""
    return [_run_body(w), "  %n.next = add i32 %n, 1", "  br label %head", "done:"]


def _head(w: _Handler) -> list[str]:
    return [
        "  br label %head", "head:", "  %n = phi i32 [ 0, %entry ], [ %n.next, %step ]",
        f"  %n.real = sitofp i32 %n to {w.floats.name}", f"  %below = icmp ult i32 %n, {LOOP_STEPS}",
    ]  # fmt: skip


def _loop(w: _Handler) -> list[str]:
    """All lanes make the same steps, so the tile counts them. Its index is one number, and so are its limits."""
    of = w.floats.name
    with w.writing(w.entry):
        stopped, budget = w.place(Word.STOPPED), w.slot(5)
        places = [w.element(w.slot(at), w.lane_at(at) if w.floats == DOUBLE else "0", "float") for at in (2, 3)]
        first, last = (w.put(f"load {of}, ptr {place}") for place in places)
    w.write_uniform(w.splat("%index", "float"))
    return [
        *_head(w), f"  %index = fadd {of} {first}, %n.real", f"  %wants = fcmp ole {of} %index, {last}",
        "  br i1 %wants, label %wanted, label %done", "wanted:", f"  %left = load i32, ptr {budget}",
        "  %some = icmp sgt i32 %left, 0", "  %go = and i1 %below, %some",
        "  br i1 %go, label %step, label %stop", "stop:", f"  store i64 1, ptr {stopped}", "  br label %done",
        "step:", "  %left.next = sub i32 %left, 1", f"  store i32 %left.next, ptr {budget}", *w.text, *_step(w),
    ]  # fmt: skip


def _masked_loop(w: _Handler) -> list[str]:
    """Lanes leave at different steps; the tile continues while one of them does."""
    stopped, active = w.in_entry(lambda: w.place(Word.STOPPED)), w.read(6, "bool")
    index = w.add(w.read(2, "float"), w.splat("%n.real", "float"))
    wanting = w.both(w.le(index, w.read(3, "float")), active)
    left = w.read(5, "u32")
    some = LlvmValue(w.put(f"icmp sgt {w.types['u32']} {left.text}, zeroinitializer"), "bool")
    go = w.both(w.both(wanting, w.splat("%below", "bool")), some)
    w.write(index, 1)
    w.write(w.bits_sub(left, w.extended("zext", go)), 5)
    w.write(go, 6)
    going, stopping = w.any(go), w.any(w.both(wanting, w.negation(go)))
    return [
        *_head(w), "  br label %vector", "vector:",
        "  %at = phi i64 [ 0, %head ], [ %next, %vector ]",
        "  %any = phi i1 [ false, %head ], [ %any.next, %vector ]",
        "  %over = phi i1 [ false, %head ], [ %over.next, %vector ]", *w.text,
        f"  %any.next = or i1 %any, {going}", f"  %over.next = or i1 %over, {stopping}",
        f"  %next = add i64 %at, {w.lanes}", "  %more = icmp slt i64 %next, %count",
        "  br i1 %more, label %vector, label %counted", "counted:",
        "  br i1 %over.next, label %stop, label %checked", "stop:", f"  store i64 1, ptr {stopped}",
        "  br label %checked", "checked:", "  br i1 %any.next, label %step, label %done", "step:", *_step(w),
    ]  # fmt: skip


# Functions by how they are written: as a whole; or without a loop, all in the entry.

_WHOLE: Mapping[str, Callable[[_Handler], list[str]]] = MappingProxyType({
    "_loop": _loop, "_masked": _masked_loop, "_chunks": _chunks, "_samples": _samples,
    "_wave_sinpi": partial(_wave, row="sinpi"), "_wave_cospi": partial(_wave, row="cospi"),
    "_before": partial(_ring_copy, keeps=False), "_keep": partial(_ring_copy, keeps=True),
})  # fmt: skip

_MOVES: Mapping[str, Callable[[_Handler], None]] = MappingProxyType({
    "_column": _column, "_past": _past, "_store": _store, "_shift": _shift, "_advance": _advance,
    "_spread": partial(_spread, kind="float"), "_spread_bits": partial(_spread, kind="u32"),
})  # fmt: skip

# Runs a list.
_LIST = f"""
define void @tile_list{_HEADER} #0 {{
  %handler = load ptr, ptr %record
  musttail call void %handler(ptr %slots, ptr %record, {_ARGUMENTS})
  ret void
}}
"""

# The program of a picture is a header and its lists: those that run once, once a row, and for each tile, then the
# bodies of loops. The header says how many records each of the first two has. A line is a picture of one row, of which
# band 0 is all.

_RUN = f"""
define void @tile_run(ptr %block, ptr %program) #0 {{
entry:
  %h1 = getelementptr i64, ptr %program, i64 1
  %h2 = getelementptr i64, ptr %program, i64 2
  %h3 = getelementptr i64, ptr %program, i64 3
  %room = load i64, ptr %program
  %once = load i64, ptr %h1
  %by.row = load i64, ptr %h2
  %extent = load i64, ptr %h3
  %first = getelementptr i64, ptr %program, i64 {RECORD}
  %once.words = mul i64 %once, {RECORD}
  %first.row = getelementptr i64, ptr %first, i64 %once.words
  %row.words = mul i64 %by.row, {RECORD}
  %first.tile = getelementptr i64, ptr %first.row, i64 %row.words
  %slots = alloca i8, i64 %room, align 64
  %extent.place = getelementptr i64, ptr %block, i64 %extent
  %width = load i64, ptr %extent.place
  %height.place = getelementptr i64, ptr %block, i64 {list(Word).index(Word.HEIGHT)}
  %height = load i64, ptr %height.place
  %band.place = getelementptr i64, ptr %block, i64 {list(Word).index(Word.BAND)}
  %band = load i64, ptr %band.place
  %taken = getelementptr i64, ptr %block, i64 {list(Word).index(Word.NEXT)}
  %h4 = getelementptr i64, ptr %program, i64 4
  %is.line = load i64, ptr %h4
  %line = icmp ne i64 %is.line, 0
  call void @tile_list(ptr %slots, ptr %first, ptr %block, i64 0, i64 0, i64 {UNIFORM[SINGLE]})
  br i1 %line, label %row, label %band.next
band.next:
  %number = atomicrmw add ptr %taken, i64 1 monotonic
  %band.first = mul i64 %number, %band
  %band.full = add i64 %band.first, %band
  %band.cut = icmp slt i64 %band.full, %height
  %band.end = select i1 %band.cut, i64 %band.full, i64 %height
  %band.none = icmp sge i64 %band.first, %height
  br i1 %band.none, label %done, label %row
row:
  %y = phi i64 [ 0, %entry ], [ %band.first, %band.next ], [ %y.next, %row.end ]
  %end = phi i64 [ 1, %entry ], [ %band.end, %band.next ], [ %end, %row.end ]
  call void @tile_list(ptr %slots, ptr %first.row, ptr %block, i64 0, i64 %y, i64 {UNIFORM[SINGLE]})
  br label %tile
tile:
  %x = phi i64 [ 0, %row ], [ %x.next, %tile ]
  %left = sub i64 %width, %x
  %is.last = icmp sle i64 %left, {TILE}
  %count = select i1 %is.last, i64 %left, i64 {TILE}
  call void @tile_list(ptr %slots, ptr %first.tile, ptr %block, i64 %x, i64 %y, i64 %count)
  %x.next = add i64 %x, {TILE}
  br i1 %is.last, label %row.end, label %tile
row.end:
  %y.next = add i64 %y, 1
  %y.left = icmp slt i64 %y.next, %end
  br i1 %y.left, label %row, label %band.done
band.done:
  br i1 %line, label %done, label %band.next
done:
  ret void
}}
"""

# The program of a sound is a header, which is not used, and its lists, of which the first one runs once a launch. Slots
# are at an address that no vector of 64 bytes crosses a line of the cache.

_RUN_CHUNKS = f"""
define void @tile_run(ptr %block, ptr %program) #0 {{
entry:
  %scratch.place = getelementptr i64, ptr %block, i64 {list(Word).index(Word.SCRATCH)}
  %scratch = load i64, ptr %scratch.place
  %over = add i64 %scratch, 63
  %aligned = and i64 %over, -64
  %slots = inttoptr i64 %aligned to ptr
  %first = getelementptr i64, ptr %program, i64 {RECORD}
  call void @tile_list(ptr %slots, ptr %first, ptr %block, i64 0, i64 0, i64 {UNIFORM[DOUBLE]})
  ret void
}}
"""
