"""Kernels as lists of calls: each operation is a ready function over a tile of lanes, so no compiler is needed.

`handlers` writes these functions once for a processor, from the native forms of the table of operations. `emit_tiles`
turns a kernel into records, which the function `run` of the same module follows tile by tile. A record is `WIDTH`
words: the address of a function, the offset of its result in the slots, and the operands that its kind takes. Each slot
holds a tile of values of 4 bytes; a bool is 0 or 1.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from weft.codegen.kernel import Kernel
from weft.codegen.native.graph import costs
from weft.codegen.native.module import Channels, Level, plan_channels, sections_that_read
from weft.codegen.native.target import ImageCell, Isa, Layout, LlvmValue, Word, single
from weft.codegen.native.writer import COLUMNS, ELEMENTS, ROWS, ArgumentTable, LlvmLanes
from weft.codegen.values import SIGNATURES, Line, Node, Section, needed
from weft.ir.rates import Rate
from weft.ops import OPS
from weft.ops.spec import ValueType

TILE = 256
"""The most lanes of a tile."""

MOST_SLOTS = 192
"""A program with more slots would need more of a thread's stack than every system grants."""

RECORD = 8
"""The words of a record."""

_SPECIAL = ("_const", "_scalar", "_row", "_column", "_base", "_pack", "_or", "_store")

Pattern: TypeAlias = "tuple[str | int | Pattern, ...]"

# Several operations as one: an operation of operands, which are numbers or other patterns, the largest pattern first.
# What a tile costs is mostly its loads and stores, and a pattern has one store.
_HASH: Pattern = ("bits_mul", ("bits_xor", 0, ("bits_shr", 0, 1)), 2)
_MIXED: Pattern = ("bits_mul", ("bits_xor", 0, 1), 2)
_TWICE: Pattern = ("bits_mul", ("bits_xor", _MIXED, ("bits_shr", _MIXED, 3)), 4)
FUSIONS: tuple[Pattern, ...] = (
    ("bits_top", _TWICE),
    _TWICE,
    ("bits_top", _HASH),
    _HASH,
    _MIXED,
    ("add", 0, ("mul", ("sub", 1, 0), 2)),
    ("add", ("mul", 0, 1), 2),
    ("sub", ("mul", 0, 1), 2),
    ("sub", 2, ("mul", 0, 1)),
)
_COMMUTING = frozenset({"add", "mul", "bits_add", "bits_mul", "bits_xor", "bits_or", "bits_and"})


def handler_names() -> tuple[str, ...]:
    """The functions of the module, without `run`; records name them by their places."""
    fused = (f"_fused{at}" for at in range(len(FUSIONS)))
    return (*_SPECIAL, *fused, *(name for name in SIGNATURES if OPS[name].native is not None))


# The handlers, in LLVM IR.

_HEADER = "(ptr %slots, ptr %record, ptr %block, i64 %x, i64 %y, i64 %count)"


class _Handler(LlvmLanes):
    """One handler: a loop over the vectors of a tile. Its loop may read and write whole vectors of slots."""

    def __init__(self, isa: Isa) -> None:
        super().__init__(isa, isa.bits // 32 * 4)
        self.block = "vector"
        self.entry: list[str] = []

    def operand(self, at: int) -> str:
        """A word of the record, as a number."""
        before, self.text = self.text, self.entry
        place = self.put(f"getelementptr i64, ptr %record, i64 {at}")
        found = self.put(f"load i64, ptr {place}")
        self.text = before
        return found

    def slot(self, at: int) -> str:
        """The address of the vector in the slot that a word of the record names."""
        offset = self.operand(at)
        tile = self.put(f"getelementptr i8, ptr %slots, i64 {offset}")
        return self.put(f"getelementptr i32, ptr {tile}, i64 %at")

    def read(self, at: int, kind: ValueType) -> LlvmValue:
        stored: ValueType = "u32" if kind == "bool" else kind
        found = self.put(f"load {self.types[stored]}, ptr {self.slot(at)}, align 4")
        if kind == "bool":
            return LlvmValue(self.put(f"icmp ne {self.types['u32']} {found}, zeroinitializer"), "bool")
        return LlvmValue(found, kind)

    def write(self, value: LlvmValue) -> None:
        text, of = value.text, self.types[value.kind]
        if value.kind == "bool":
            text, of = self.put(f"zext {of} {text} to {self.types['u32']}"), self.types["u32"]
        self.do(f"store {of} {text}, ptr {self.slot(1)}, align 4")

    def splat(self, bits: str) -> LlvmValue:
        """32 bits in every lane."""
        of = self.types["u32"]
        first = self.put(f"insertelement {of} poison, i32 {bits}, i64 0")
        every = f"<{self.lanes} x i32> zeroinitializer"
        return LlvmValue(self.put(f"shufflevector {of} {first}, {of} poison, {every}"), "u32")

    def constant(self, at: int, kind: ValueType) -> LlvmValue:
        found = self.splat(self.put(f"trunc i64 {self.operand(at)} to i32"))
        return self.real_in(found) if kind == "float" else found

    def word(self, at: int | str) -> str:
        """The address or number in a word of the block, whose place a word of the record gives."""
        place = self.put(f"getelementptr i64, ptr %block, i64 {at}")
        return self.put(f"load i64, ptr {place}")

    def element(self, word: str, index: str) -> str:
        address = self.put(f"inttoptr i64 {word} to ptr")
        return self.put(f"getelementptr i32, ptr {address}, i64 {index}")

    def function(self, name: str) -> list[str]:
        return [
            f'define void @"tile{name}"{_HEADER} #0 {{', "entry:", *self.entry, "  br label %vector", "vector:",
            f"  %at = phi i64 [ 0, %entry ], [ %next, %{self.block} ]", *self.text,
            f"  %next = add i64 %at, {self.lanes}", "  %more = icmp slt i64 %next, %count",
            "  br i1 %more, label %vector, label %done", "done:", "  ret void", "}",
        ]  # fmt: skip


def _write_handler(w: _Handler, name: str) -> None:
    if name in SIGNATURES:
        form, kinds = OPS[name].native, SIGNATURES[name][0]
        args = [w.read(2 + at, kind) for at, kind in enumerate(kinds)]
        assert form is not None
        w.write(getattr(w, form)(*args) if isinstance(form, str) else partial(form, w)(*args))
        return
    match name:
        case "_const":
            w.write(w.constant(2, "u32"))
        case "_scalar":
            place = w.element(w.word(list(Word).index(Word.SCALARS)), w.operand(2))
            w.write(w.splat(w.put(f"load i32, ptr {place}")))
        case "_row":
            w.write(w.splat(w.put(f"load i32, ptr {w.element(w.word(w.operand(2)), '%y')}")))
        case "_base":
            w.write(w.splat(w.put(f"trunc i64 {w.word(list(Word).index(Word.BASE))} to i32")))
        case "_pack":
            level = w.fma(w.read(3, "float"), w.constant(4, "float"), w.constant(5, "float"))
            level = w.lesser(w.greater(level, w.real(0)), w.real(255))
            w.write(w.bits_or(w.read(2, "u32"), w.bits_mul(w.whole(level), w.constant(6, "u32"))))
        case "_or":
            w.write(w.bits_or(w.read(2, "u32"), w.read(3, "u32")))
        case _:
            w.write(_fused(w, FUSIONS[int(name.removeprefix("_fused"))], {}))


def _fused(w: _Handler, pattern: Pattern, known: dict[int | Pattern, LlvmValue]) -> LlvmValue:
    """The value of a pattern, whose operands are in the slots of the record."""
    op, *operands = pattern
    values = []
    for operand, kind in zip(operands, SIGNATURES[str(op)][0], strict=True):
        assert not isinstance(operand, str)
        if operand not in known:
            known[operand] = w.read(2 + operand, kind) if isinstance(operand, int) else _fused(w, operand, known)
        values.append(known[operand])
    form = OPS[str(op)].native
    assert form is not None
    found: LlvmValue = getattr(w, form)(*values) if isinstance(form, str) else form(w, *values)
    return found


_COPIES = f"""
define void @"tile_column"{_HEADER} #0 {{
  %p1 = getelementptr i64, ptr %record, i64 1
  %to = load i64, ptr %p1
  %p2 = getelementptr i64, ptr %record, i64 2
  %field = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %block, i64 %field
  %line = load ptr, ptr %p3
  %from = getelementptr i32, ptr %line, i64 %x
  %slot = getelementptr i8, ptr %slots, i64 %to
  %bytes = mul i64 %count, 4
  call void @llvm.memcpy.p0.p0.i64(ptr %slot, ptr %from, i64 %bytes, i1 false)
  ret void
}}
define void @"tile_store"{_HEADER} #0 {{
  %p1 = getelementptr i64, ptr %record, i64 2
  %from = load i64, ptr %p1
  %p2 = getelementptr i64, ptr %record, i64 3
  %field = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %record, i64 4
  %plane = load i64, ptr %p3
  %p4 = getelementptr i64, ptr %block, i64 %field
  %start = load ptr, ptr %p4
  %p5 = getelementptr i64, ptr %block, i64 {list(Word).index(Word.WIDTH)}
  %width = load i64, ptr %p5
  %p6 = getelementptr i64, ptr %block, i64 {list(Word).index(Word.HEIGHT)}
  %height = load i64, ptr %p6
  %rows = mul i64 %plane, %height
  %row = add i64 %rows, %y
  %before = mul i64 %row, %width
  %index = add i64 %before, %x
  %to = getelementptr i32, ptr %start, i64 %index
  %slot = getelementptr i8, ptr %slots, i64 %from
  %bytes = mul i64 %count, 4
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %slot, i64 %bytes, i1 false)
  ret void
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
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
"""

# A program is a header and its records: those that run once, once a row, and for each tile. A line is a picture of one
# row, of which band 0 is all.
_RUN = f"""
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
  call void @tile_list(ptr %slots, ptr %first, i64 %once, ptr %block, i64 0, i64 0, i64 {TILE})
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
  call void @tile_list(ptr %slots, ptr %first.row, i64 %by.row, ptr %block, i64 0, i64 %y, i64 {TILE})
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


def handlers(isa: Isa) -> str:
    """The module of all handlers, and of `run`, which takes the block of arguments and a program."""
    text, declared = [_COPIES, _RUN], set[str]()
    for name in handler_names():
        if name in ("_column", "_store"):
            continue
        w = _Handler(isa)
        _write_handler(w, name)
        text += w.function(name)
        declared |= w.declared
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{isa.bits}" }}'
    return "\n".join([*sorted(declared), *text, attributes, ""])


# Programs.


def suits_tiles(kernel: Kernel) -> bool:
    """Whether all that a picture computes are operations of elements."""
    if kernel.sweep != "grid" or kernel.tick == "element" or kernel.stages or sections_that_read(kernel):
        return False
    if any(rate == Rate.ELEMENT for _, rate in kernel.coords):
        return False
    sections = (kernel.section(rate) for rate in (Rate.COLUMN, Rate.ROW, Rate.ELEMENT))
    return all(node.op in SIGNATURES and OPS[node.op].native is not None for s in sections for node in s.nodes)


@dataclass(frozen=True, slots=True)
class TileProgram:
    """A kernel as records, by the function that they stand for. Its first words are a header; then the first word of
    each record is the place of its handler in `handler_names`."""

    layout: Layout
    programs: tuple[tuple[str, bytes], ...]
    tier: int = 1


_FUSIONS_OF: dict[str, list[int]] = {}
for _at, _pattern in enumerate(FUSIONS):
    _FUSIONS_OF.setdefault(str(_pattern[0]), []).append(_at)

_PLACES = {name: at for at, name in enumerate(handler_names())}


def _bits(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", single(value)))[0])


class _Program:
    """The records of one section, and the slots of its values."""

    def __init__(self, table: ArgumentTable, along: Rate, roots: Iterable[Node], section: Section) -> None:
        self.table, self.along = table, along
        self.once: list[int] = []
        self.by_row: list[int] = []
        self.by_tile: list[int] = []
        self._slots: dict[Node | str, int] = {}
        self._free: list[int] = []
        self._count = 0
        self._roots = list(roots)
        wanted = needed(self._roots)
        self._nodes = [node for node in section.nodes if node in wanted]
        self._uses = Counter(arg for node in self._nodes for arg in node.args)
        self._uses.update(self._roots)

    def record(self, where: list[int], name: str, *operands: int) -> None:
        where += (_PLACES[name], *operands, *(0,) * (RECORD - 1 - len(operands)))

    def new(self) -> int:
        if self._free:
            return self._free.pop()
        self._count += 1
        return (self._count - 1) * TILE * 4

    def kept(self) -> int:
        """A slot that no value takes over."""
        self._count += 1
        return (self._count - 1) * TILE * 4

    def slot(self, node: Node) -> int:
        found = self._slots.get(node)
        if found is not None:
            return found
        at = self._slots[node] = self.kept()
        match node.op:
            case "const":
                self.record(self.once, "_const", at, _bits(node.attr))
            case "u32":
                self.record(self.once, "_const", at, node.attr & 0xFFFF_FFFF)
            case "scalar":
                self.record(self.once, "_scalar", at, self.table.scalars[node.attr])
            case "line" if node.attr.rate == self.along:
                self.record(self.by_tile, "_column", at, self.table.fields[node.attr])
            case "line":
                self.record(self.by_row, "_row", at, self.table.fields[node.attr])
        return at

    def compute(self) -> None:
        inside: set[Node] = set()
        found: dict[Node, tuple[int, tuple[Node, ...]]] = {}
        for node in reversed(self._nodes):
            if node in inside:
                continue
            for at in _FUSIONS_OF.get(node.op, ()):
                bound: dict[int, Node] = {}
                parts: list[Node] = []
                if self._matches(FUSIONS[at], node, bound, parts):
                    found[node] = at, tuple(bound[each] for each in range(len(bound)))
                    inside.update(parts)
                    for part in parts:
                        self._uses.subtract(part.args)
                    self._uses.subtract(node.args)
                    self._uses.update(found[node][1])
                    break
        for node in self._nodes:
            if node in inside:
                continue
            args, name = node.args, node.op
            if node in found:
                at, args = found[node]
                name = f"_fused{at}"
            places = [self.slot(arg) for arg in args]
            for arg in args:
                self._uses[arg] -= 1
                if not self._uses[arg] and arg.args:
                    self._free.append(self._slots[arg])
            at = self._slots[node] = self.new()
            self.record(self.by_tile, name, at, *places)

    def _matches(self, pattern: Pattern, node: Node, bound: dict[int, Node], parts: list[Node]) -> bool:
        """Whether a value is of a pattern; adds the operands of the pattern, and the values that nothing else uses."""
        op, *operands = pattern
        if node.op != op:
            return False
        orders = (node.args, node.args[::-1]) if op in _COMMUTING else (node.args,)
        for args in orders:
            tried, inner = dict(bound), list(parts)
            if all(self._fits(operand, arg, tried, inner) for operand, arg in zip(operands, args, strict=True)):
                bound.update(tried)
                parts[:] = inner
                return True
        return False

    def _fits(self, operand: str | int | Pattern, arg: Node, bound: dict[int, Node], parts: list[Node]) -> bool:
        if isinstance(operand, int):
            return bound.setdefault(operand, arg) is arg
        assert not isinstance(operand, str)
        if arg in parts:
            return operand is _MIXED and arg.op == _MIXED[0]
        # The only value that a pattern mentions twice.
        uses = 2 if operand is _MIXED else 1
        if self._uses[arg] != uses or not arg.args or not self._matches(operand, arg, bound, parts):
            return False
        parts.append(arg)
        return True

    def store(self, slot: int, field: int, plane: int = 0) -> None:
        self.record(self.by_tile, "_store", 0, slot, field, plane)

    def real(self, node: Node) -> int:
        """The slot of a value as a float."""
        if node.kind != "bool":
            return self.slot(node)
        source, at = self.slot(node), self.kept()
        self.record(self.by_tile, "to_float", at, source)
        return at

    def pack(self, parts: int, level: Level) -> int:
        at = self.kept()
        scale, offset = _bits(level.scale), _bits(level.offset)
        self.record(self.by_tile, "_pack", at, parts, self.real(level.base), scale, offset, level.factor)
        return at

    def finished(self, extent: Word, is_line: bool) -> bytes:
        lists = (self.once, self.by_row, self.by_tile)
        counts = (len(each) // RECORD for each in lists)
        header = (self._count * TILE * 4, *counts, self.table.fields[extent], int(is_line), 0, 0)
        words = [*header, *(word for each in lists for word in each)]
        return struct.pack(f"<{len(words)}q", *words)


def emit_tiles(kernel: Kernel, packed: bool) -> TileProgram | None:
    """The program of a kernel that `suits_tiles`, with outputs as planes or `packed` as pixels; None if it needs too
    many slots. Raises ValueError if the outputs cannot be packed."""
    table = ArgumentTable()
    channels = plan_channels(kernel.section(Rate.ELEMENT).outputs) if packed else None
    programs = [(ELEMENTS, _element_program(kernel, table, channels).finished(Word.WIDTH, False))]
    for rate, name, extent in ((Rate.COLUMN, COLUMNS, Word.WIDTH), (Rate.ROW, ROWS, Word.HEIGHT)):
        program = _line_program(kernel, table, channels, rate)
        if program is not None:
            programs.append((name, program.finished(extent, True)))
    if any(struct.unpack_from("<q", words)[0] > MOST_SLOTS * TILE * 4 for _, words in programs):
        return None
    base_bits, constant = (channels.base, tuple(channels.levels)) if channels else (0, ())
    layout = Layout(
        tuple(table.fields), tuple(table.scalars), tuple(table.numbers), tuple(name for name, _ in programs),
        work=costs(kernel.section(Rate.ELEMENT).nodes), base=base_bits, levels=constant,
    )  # fmt: skip
    return TileProgram(layout, tuple(programs))


def _element_program(kernel: Kernel, table: ArgumentTable, channels: Channels | None) -> _Program:
    """Computes the elements of a row: what is stored, and the outputs as planes, or as pixels by their `channels`."""
    section = kernel.section(Rate.ELEMENT)
    bases = [level.base for level in channels.elements] if channels else section.outputs
    elements = _Program(table, Rate.COLUMN, [*(store.value for store in section.stores), *bases], section)
    elements.compute()
    for store in section.stores:
        elements.store(elements.real(store.value), table.fields[ImageCell(*store.place, 0)])
    if channels is None:
        for plane, node in enumerate(section.outputs):
            elements.store(elements.real(node), table.fields[Word.OUT], plane)
        return elements
    pixel = elements.kept()
    elements.record(elements.once, "_base", pixel)
    for rate in channels.lines:
        line = channels.line(rate)
        assert line is not None
        part, both = elements.slot(Node("line", (), "u32", line)), elements.kept()
        elements.record(elements.by_tile, "_or", both, pixel, part)
        pixel = both
    for level in channels.elements:
        pixel = elements.pack(pixel, level)
    elements.store(pixel, table.fields[Word.OUT])
    return elements


def _line_program(kernel: Kernel, table: ArgumentTable, channels: Channels | None, rate: Rate) -> _Program | None:
    """Computes what the elements need of each column or row, and the parts of pixels that change no more often; None if
    there is nothing to compute."""
    section = kernel.section(rate)
    wanted = [f for f in table.fields if isinstance(f, Line) and f.rate == rate and f.source == "local"]
    packing = channels.line(rate) if channels else None
    if not wanted and packing is None:
        return None
    nodes = {line: section.locals[int(line.key)] for line in wanted}
    levels: list[Level] = []
    if channels and packing:
        for factor, line in channels.lines[rate]:
            value = section.locals[int(line.key)] if line.source == "local" else Node("line", (), line.kind, line)
            levels.append(Level.of(factor, value, channels.opaque))
    program = _Program(table, rate, [*nodes.values(), *(level.base for level in levels)], section)
    program.compute()
    for line, node in nodes.items():
        program.store(program.slot(node), table.fields[line])
    if packing is not None:
        pixel = program.kept()
        program.record(program.once, "_const", pixel, 0)
        for level in levels:
            pixel = program.pack(pixel, level)
        program.store(pixel, table.fields[packing])
    return program
