"""The functions of which pictures without a compiler are made: one for each operation, over a tile of lanes.

`handlers` writes them once for a processor, from the native forms of the table of operations, with `run`, which follows
a program (`tiles`) tile by tile. A program is a list of records of `RECORD` words: the address of a function, the slot
of its result, and the operands that it takes. Slots hold 4 bytes for each lane; a bool is 0 or 1. The word of a slot is
its offset in bytes, less 2³² if it holds a tile: the other slots hold one number, `UNIFORM` times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from weft.codegen.kernel import LOOP_STEPS
from weft.codegen.native.module import LEVELS
from weft.codegen.native.section import Raster, RingShape, between_four, between_rows, cell_numbers, far_gather, fetch
from weft.codegen.native.target import (
    CHANNELS, DOUBLE, SINGLE, Field, Head, History, ImageCell, Isa, LlvmValue, PictureWord, Ring, Word
)
from weft.codegen.native.writer import ValueWriter
from weft.codegen.values import SIGNATURES, Line, Node
from weft.ir.rates import Rate
from weft.ops import OPS
from weft.ops.noise import SECOND_SHIFT
from weft.ops.single import remainder_by
from weft.ops.spec import ValueType

TILE = 256
"""The most lanes of a tile."""

UNIFORM = 64
"""The copies of a number that is the same in all lanes. No handler reads more at once."""

RECORD = 8
"""The words of a record."""

Pattern: TypeAlias = "tuple[str | int | float | Pattern, ...]"

# Several operations as one: an operation of operands, which are their numbers, constants or other patterns, the largest
# pattern first. What a tile costs is mostly its loads and stores, and a pattern has one store.
_HASH: Pattern = ("bits_mul", ("bits_xor", 0, ("bits_shr", 0, 1)), 2)
MIXED: Pattern = ("bits_mul", ("bits_xor", 0, 1), 2)
"""The only part of a pattern that the pattern mentions twice."""
_TWICE: Pattern = ("bits_mul", ("bits_xor", MIXED, ("bits_shr", MIXED, 3)), 4)
# The random value of a corner of a cell of noise. A record has no room for the shift besides a weight and a sum.
_CORNER: Pattern = (
    "bits_top", ("bits_mul", ("bits_xor", MIXED, ("bits_shr", MIXED, ("u32", SECOND_SHIFT))), 3)
)  # fmt: skip
FUSIONS: tuple[Pattern, ...] = (
    ("add", ("mul", _CORNER, 4), 5),
    ("mul", _CORNER, 4),
    ("bits_top", _TWICE),
    _TWICE,
    ("bits_top", _HASH),
    _HASH,
    MIXED,
    ("add", 0, ("mul", ("sub", 1, 0), 2)),
    ("add", ("mul", 0, 0), ("mul", 1, 1)),
    ("add", ("mul", ("add", ("mul", 0, 1), 2), 3), 4),
    ("add", ("mul", ("mul", 0, 1), 2), 3),
    ("add", ("mul", 0, 1), 2),
    ("sub", ("mul", 0, 1), 2),
    ("sub", 2, ("mul", 0, 1)),
    ("mul", ("sub", 2, ("mul", 0, 1)), 3),
    ("mul", ("mul", 0, 1), 2),
    ("sqrt", ("add", ("mul", 0, 0), ("mul", 1, 1))),
    ("sqrt", ("add", 0, 1)),
    ("mul", ("add", 0, 1), 2),
    ("mul", ("sub", 0, 1), 2),
    ("min", ("max", ("div", ("sub", 0, 1), 2), 3), 4),
    ("min", ("max", 0, 1), 2),
    ("mod", 0, 1.0),
)

_NUMBERS = ("_const", "_scalar", "_row", "_base")
_COPIES = ("_column", "_past", "_store")
_READS = ("_past_at", "_sample", "_sample_row", "_sample_at", "_history", "_picture", "_fetch")
_SPECIAL = (*_NUMBERS, *_COPIES, *_READS, "_copy", "_modulo", "_cells", "_inside", "_pack", "_or", "_loop", "_masked")


def handler_names() -> tuple[str, ...]:
    """The functions of the module, without `run`; records name them by their places."""
    fused = (f"_fused{at}" for at in range(len(FUSIONS)))
    return (*_SPECIAL, *fused, *(name for name in SIGNATURES if OPS[name].native is not None))


class _Handler(ValueWriter):
    """One handler. Most are a loop over the vectors of a tile, which may read and write whole vectors of slots."""

    def __init__(self, isa: Isa, registers: int) -> None:
        self._fields: dict[Field, int | str] = {word: at for at, word in enumerate(Word)}
        super().__init__(isa, isa.bits // 32 * registers, self._fields)

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

    def read(self, at: int, kind: ValueType) -> LlvmValue:
        """This vector of a slot."""
        mask = self._hoist(("mask", at), lambda: LlvmValue(self.put(f"ashr i64 {self.operand(at)}, 32"), "u32"))
        return self.load(self.slot(at), self.put(f"and i64 %at, {mask.text}"), kind)

    def read_node(self, at: int) -> Node:
        """A node with the value that a slot has."""
        node = Node("operand", (), "float")
        self.keep(node, self.read(at, "float"))
        return node

    def write(self, value: LlvmValue, at: int = 1) -> None:
        self.store(value, self.slot(at), "%at")

    # Text.

    def pixel(self, plane: str = "0") -> str:
        """The number of the first element of the tile in an array of planes."""
        row = self.put(f"add i64 {self.put(f'mul i64 {plane}, {self.word(Word.HEIGHT)}')}, %y")
        return self.put(f"add i64 {self.put(f'mul i64 {row}, {self.word(Word.WIDTH)}')}, %x")

    def lane_numbers(self, first: str) -> LlvmValue:
        """The numbers of the lanes, from that of the first."""
        start = self.splat(self.put(f"trunc i64 {first} to i32"), "u32")
        return self.bits_add(start, self.each(range(self.lanes), "u32"))

    def function(self, name: str, body: Sequence[str]) -> list[str]:
        header = "(ptr %slots, ptr %record, ptr %block, i64 %x, i64 %y, i64 %count)"
        return [f'define void @"tile{name}"{header} #0 {{', "entry:", *self.entry, *body, "  ret void", "}"]

    def over_vectors(self, name: str) -> list[str]:
        """The function that runs the text for each vector."""
        return self.function(name, [
            "  br label %vector", "vector:",
            f"  %at = phi i64 [ 0, %entry ], [ %next, %{self.block} ]", *self.text,
            f"  %next = add i64 %at, {self.lanes}", "  %more = icmp slt i64 %next, %count",
            "  br i1 %more, label %vector, label %done", "done:",
        ])  # fmt: skip


def handlers(isa: Isa) -> str:
    """The module of all handlers, and of `run`, which takes the block of arguments and a program."""
    text, declared = [_RUN, "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"], set[str]()
    for name in handler_names():
        # There are instructions that gather the lanes of one register.
        w = _Handler(isa, 1 if name in _READS else 4)
        text += _handler(w, name)
        declared |= w.declared
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{isa.bits}" }}'
    return "\n".join([*sorted(declared), *text, attributes, ""])


def _handler(w: _Handler, name: str) -> list[str]:
    if name in _COPIES:
        with w.writing(w.entry):
            _copy(w, name)
        return w.function(name, [])
    if name == "_loop":
        return w.function(name, _loop(w))
    if name == "_masked":
        return w.function(name, _masked_loop(w))
    if name in SIGNATURES:
        w.write(w.computed(OPS[name], [w.read(2 + at, kind) for at, kind in enumerate(SIGNATURES[name][0])]))
    elif name.startswith("_fused"):
        w.write(_fused(w, FUSIONS[int(name.removeprefix("_fused"))], {}))
    else:
        w.write(_read(w, name) if name in _READS else _special(w, name))
    return w.over_vectors(name)


def _special(w: _Handler, name: str) -> LlvmValue:
    match name:
        case "_const":
            return w.constant(2)
        case "_scalar":
            return w.load_splat(w.word(Word.SCALARS), w.operand(2), "u32")
        case "_row":
            return w.load_splat(w.word(w.given(_LINE, 2)), "%y", "u32")
        case "_base":
            return w.word_as_bits(Word.BASE)
        case "_copy":
            return w.read(2, "u32")
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

_CELL, _RING, _HISTORY = ImageCell("", 0, 0), Ring(""), History("")
_PIXELS, _WIDE, _HIGH = PictureWord("", "pixels"), PictureWord("", "width"), PictureWord("", "height")


def _copy(w: _Handler, name: str) -> None:
    """Between a slot and an array in memory. Arrays end with the row, so nothing after it is read or written."""
    match name:
        case "_column":
            source, target = w.element(w.word(w.given(_LINE, 2)), "%x"), w.slot(1)
        case "_past":
            source, target = w.element(w.word(w.given(_CELL, 2)), w.pixel()), w.slot(1)
        case _:
            source, target = w.slot(2), w.element(w.word(w.given(_CELL, 3)), w.pixel(w.operand(4)))
    size = w.put(f"mul i64 %count, {SINGLE.bytes}")
    w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")


def _read(w: _Handler, name: str) -> LlvmValue:
    """What is read from state and pictures. Lanes after the last read something too, so their places are limited."""
    match name:
        case "_past_at":
            size = w.bits_mul(w.word_as_bits(Word.WIDTH), w.word_as_bits(Word.HEIGHT))
            last, places = w.bits_sub(size, w.bits(1)), w.lane_numbers(w.put(f"add i64 {w.in_entry(w.pixel)}, %at"))
            inside = LlvmValue(w.put(f"icmp ult {w.types['u32']} {places.text}, {last.text}"), "bool")
            return far_gather(w, w.word(w.given(_RING, 2)), w.read(3, "u32"), w.select(inside, places, last))
        case "_sample":
            cell, raster = w.word(w.given(_CELL, 2)), Raster(Word.WIDTH, Word.HEIGHT, 1)
            return between_four(w, raster, w.read_node(3), w.read_node(4), lambda at: w.gather(cell, at))
        case "_sample_row":
            raster = Raster(Word.WIDTH, Word.HEIGHT, 1)
            return between_rows(w, raster, w.read_node(3), w.read_node(4), w.word(w.given(_CELL, 2)))
        case "_sample_at":
            ring, raster = w.word(w.given(_RING, 2)), Raster(Word.WIDTH, Word.HEIGHT, 1)
            number = w.read(3, "u32")
            x, y = w.read_node(4), w.read_node(5)
            return between_four(w, raster, x, y, lambda at: far_gather(w, ring, number, at))
        case "_history":
            return w.gather(w.word(w.given(_HISTORY, 2)), w.read(3, "u32"), source=DOUBLE)
        case "_picture":
            first = w.in_entry(lambda: w.element(w.word(w.given(_PIXELS, 2)), w.operand(5)))
            raster = Raster(w.given(_WIDE, 3), w.given(_HIGH, 4), CHANNELS)
            return between_four(w, raster, w.read_node(6), w.read_node(7), lambda at: w.gather(first, at))
        case "_fetch":
            w.given(_PIXELS, 2), w.given(_WIDE, 3)
            return fetch(w, "", w.read(5, "float"), w.constant(4))
    raise KeyError(name)


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


# Loops: records with a body of other records. All have the same operands: the slots of the index, of the first and of
# the last number, the body (its distance from the record in bytes) and the count of its records, the slot of the steps
# that the nest may still make, and that of the lanes that take part. Other records have written the last two.


def _body(w: _Handler) -> list[str]:
    """Runs the body, and goes on to the next step."""
    body = w.in_entry(lambda: w.put(f"getelementptr i8, ptr %record, i64 {w.operand(4)}"))
    args = f"ptr %slots, ptr {body}, i64 {w.operand(5)}, ptr %block, i64 %x, i64 %y, i64 %count"
    return [f"  call void @tile_list({args})", "  %n.next = add i32 %n, 1", "  br label %head", "done:"]


_HEAD = (
    "  br label %head", "head:", "  %n = phi i32 [ 0, %entry ], [ %n.next, %step ]",
    "  %n.real = sitofp i32 %n to float", f"  %below = icmp ult i32 %n, {LOOP_STEPS}",
)  # fmt: skip


def _loop(w: _Handler) -> list[str]:
    """All lanes make the same steps, so the tile counts them. Its index is one number, and so are its limits."""
    with w.writing(w.entry):
        stopped, budget = w.place(Word.STOPPED), w.slot(6)
        first, last = (w.put(f"load float, ptr {w.slot(at)}") for at in (2, 3))
    index = w.splat("%index", "float")
    for start in range(0, UNIFORM, w.lanes):
        w.store(index, w.slot(1), str(start))
    return [
        *_HEAD, f"  %index = fadd float {first}, %n.real", f"  %wants = fcmp ole float %index, {last}",
        "  br i1 %wants, label %wanted, label %done", "wanted:", f"  %left = load i32, ptr {budget}",
        "  %some = icmp sgt i32 %left, 0", "  %go = and i1 %below, %some",
        "  br i1 %go, label %step, label %stop", "stop:", f"  store i64 1, ptr {stopped}", "  br label %done",
        "step:", "  %left.next = sub i32 %left, 1", f"  store i32 %left.next, ptr {budget}", *w.text, *_body(w),
    ]  # fmt: skip


def _masked_loop(w: _Handler) -> list[str]:
    """Lanes leave at different steps; the tile goes on while one of them does."""
    stopped, active = w.in_entry(lambda: w.place(Word.STOPPED)), w.read(7, "bool")
    index = w.add(w.read(2, "float"), w.splat("%n.real", "float"))
    wanting = w.both(w.le(index, w.read(3, "float")), active)
    left = w.read(6, "u32")
    some = LlvmValue(w.put(f"icmp sgt {w.types['u32']} {left.text}, zeroinitializer"), "bool")
    go = w.both(w.both(wanting, w.splat("%below", "bool")), some)
    w.write(index, 1)
    w.write(w.bits_sub(left, w.extended("zext", go)), 6)
    w.write(go, 7)
    going, stopping = w.any(go), w.any(w.both(wanting, w.negation(go)))
    return [
        *_HEAD, "  br label %vector", "vector:",
        "  %at = phi i64 [ 0, %head ], [ %next, %vector ]",
        "  %any = phi i1 [ false, %head ], [ %any.next, %vector ]",
        "  %over = phi i1 [ false, %head ], [ %over.next, %vector ]", *w.text,
        f"  %any.next = or i1 %any, {going}", f"  %over.next = or i1 %over, {stopping}",
        f"  %next = add i64 %at, {w.lanes}", "  %more = icmp slt i64 %next, %count",
        "  br i1 %more, label %vector, label %counted", "counted:",
        "  br i1 %over.next, label %stop, label %checked", "stop:", f"  store i64 1, ptr {stopped}",
        "  br label %checked", "checked:", "  br i1 %any.next, label %step, label %done", "step:", *_body(w),
    ]  # fmt: skip


# A program is a header and its records: those that run once, once a row, and for each tile, then the bodies of loops. A
# line is a picture of one row, of which band 0 is all.

_RUN = f"""
define void @tile_list(ptr %slots, ptr %first, i64 %records, ptr %block, i64 %x, i64 %y, i64 %count) #0 {{
entry:
  %none = icmp eq i64 %records, 0
  br i1 %none, label %done, label %next
next:
  %n = phi i64 [ 0, %entry ], [ %n.next, %next ]
  %at = mul i64 %n, {RECORD}
  %record = getelementptr i64, ptr %first, i64 %at
  %handler = load ptr, ptr %record
  call void %handler(ptr %slots, ptr %record, ptr %block, i64 %x, i64 %y, i64 %count)
  %n.next = add i64 %n, 1
  %more = icmp ult i64 %n.next, %records
  br i1 %more, label %next, label %done
done:
  ret void
}}
define void @tile_run(ptr %block, ptr %program) #0 {{
entry:
  %h1 = getelementptr i64, ptr %program, i64 1
  %h2 = getelementptr i64, ptr %program, i64 2
  %h3 = getelementptr i64, ptr %program, i64 3
  %h4 = getelementptr i64, ptr %program, i64 4
  %room = load i64, ptr %program
  %once = load i64, ptr %h1
  %by.row = load i64, ptr %h2
  %by.tile = load i64, ptr %h3
  %extent = load i64, ptr %h4
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
  %h5 = getelementptr i64, ptr %program, i64 5
  %is.line = load i64, ptr %h5
  %line = icmp ne i64 %is.line, 0
  call void @tile_list(ptr %slots, ptr %first, i64 %once, ptr %block, i64 0, i64 0, i64 {UNIFORM})
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
  call void @tile_list(ptr %slots, ptr %first.row, i64 %by.row, ptr %block, i64 0, i64 %y, i64 {UNIFORM})
  br label %tile
tile:
  %x = phi i64 [ 0, %row ], [ %x.next, %tile ]
  %left = sub i64 %width, %x
  %is.last = icmp sle i64 %left, {TILE}
  %count = select i1 %is.last, i64 %left, i64 {TILE}
  call void @tile_list(ptr %slots, ptr %first.tile, i64 %by.tile, ptr %block, i64 %x, i64 %y, i64 %count)
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
