"""Functions in LLVM IR: their arguments, the values that they have computed, and where their text goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from weft.codegen.native.graph import NO_GRAPH
from weft.codegen.native.lanes import LlvmLanes
from weft.codegen.native.layout import Field, Head, Word, is_address
from weft.codegen.native.target import DOUBLE, SINGLE, Isa, LlvmValue, Precision
from weft.codegen.values import Line, Node, Scalar
from weft.ir.expr import SlotPlane
from weft.ir.rates import Rate
from weft.ops.spec import ValueType

# In memory, a bool takes as much as the others.
_STORED: Mapping[ValueType, ValueType] = {"float": "float", "bool": "u32", "u32": "u32"}


class ArgumentTable:
    """The words of the block of arguments, and the scalars, that the functions of one kernel use."""

    def __init__(self) -> None:
        self._fields: dict[Field, int] = {}
        self._scalars: dict[Scalar, int] = {}
        self._numbers: dict[Scalar, int] = {}
        for word in Word:
            self.field(word)

    def field(self, field: Field) -> int:
        """The number of a word of the block."""
        return self._fields.setdefault(field, len(self._fields))

    def scalar(self, scalar: Scalar) -> int:
        """The index of a scalar of the launch."""
        return self._scalars.setdefault(scalar, len(self._scalars))

    def number(self, scalar: Scalar) -> int:
        """The index of a number that the caller passes."""
        return self._numbers.setdefault(scalar, len(self._numbers))

    @property
    def numbers(self) -> tuple[Scalar, ...]:
        return tuple(self._numbers)

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(self._fields)

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return tuple(self._scalars)


class FunctionWriter(LlvmLanes):
    """One function over a picture, or over a line of it.

    Its text has three parts: `entry` runs once, `outer` once a row, and `text` for each vector. Lines of the rate
    `along` are read a vector at a time, at `index`; those of rows are read at `%y`.
    """

    def __init__(self, isa: Isa, lanes: int, table: ArgumentTable, along: Rate, floats: Precision = SINGLE) -> None:
        super().__init__(isa, lanes, floats)
        self.table = table
        self.along = along
        self.entry: list[str] = []
        self.outer: list[str] = []
        self.index = "%x"
        """Where the vector begins in the lines along which the function runs."""
        self.heads: dict[str, str] = {}
        """The cell of a ring that this tick writes, by its slot, where the block of arguments does not hold it."""
        self.registers: dict[SlotPlane, LlvmValue] = {}
        """The values one tick ago of slots that are kept in registers."""
        self.block = "vector"
        self.budget = ""
        """The address of the steps that the nest of loops around this place may still make."""
        self.graph = NO_GRAPH
        """The section whose values are being written."""
        self._words: dict[Field, str] = {}
        self._hoisted: dict[object, LlvmValue] = {}
        """The values that were computed in `entry` or `outer`."""
        self._scopes: list[dict[object, LlvmValue]] = [{}]
        """The values that were computed for this vector, in the blocks around this place, the innermost last."""

    @contextmanager
    def writing(self, text: list[str]) -> Iterator[None]:
        """Within this context, instructions go to another part of the text."""
        before, self.text = self.text, text
        try:
            yield
        finally:
            self.text = before

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A block that may be skipped: its values are not available after it."""
        self._scopes.append({})
        try:
            yield
        finally:
            self._scopes.pop()

    # Values.

    def find(self, key: object) -> LlvmValue | None:
        """The value that was kept under a key in this block or one around it; None without one."""
        for scope in reversed(self._scopes):
            if key in scope:
                return scope[key]
        return None

    def keep(self, key: object, value: LlvmValue) -> LlvmValue:
        """Keeps a value for the rest of this block."""
        self._scopes[-1][key] = value
        return value

    def value(self, node: Node) -> LlvmValue:
        """The value of a node. Raises LookupError if it is no leaf and has not been computed."""
        match node.op:
            case "const":
                return self.real(node.attr)
            case "u32":
                return self.bits(node.attr)
            case "scalar":
                return self._scalar(node.attr)
            case "line":
                return self._line(node.attr)
        found = self.find(node)
        if found is None:
            raise LookupError(f"{node.op} is used before it is computed")
        return found

    def carried(self, result: Node) -> LlvmValue:
        """A carried value of a loop after its last step. Raises LookupError before the loop."""
        found = self.find((result.args[0], result.attr))
        if found is None:
            raise LookupError("the result of a loop is used before the loop")
        return found

    # Arguments.

    def stopped(self) -> str:
        """The address of the flag that a loop met its limit."""
        return self.put(f"getelementptr i64, ptr %block, i64 {self.table.field(Word.STOPPED)}")

    def word(self, field: Field) -> str:
        """The content of a word of the block, loaded once: an address or a number of 64 bits."""
        name = self._words.get(field)
        if name is None:
            with self.writing(self.entry):
                place = self.put(f"getelementptr i64, ptr %block, i64 {self.table.field(field)}")
                name = self.put(f"load {'ptr' if is_address(field) else 'i64'}, ptr {place}, align 8")
            self._words[field] = name
        return name

    def word_as_real(self, field: Field) -> LlvmValue:
        """A number of the block, in every lane."""
        return self._hoist(("float", field), lambda: self._word_in_lanes(field, "sitofp", "float"))

    def word_as_bits(self, field: Field) -> LlvmValue:
        return self._hoist(("u32", field), lambda: self._word_in_lanes(field, "trunc", "u32"))

    def _word_in_lanes(self, field: Field, convert: str, kind: ValueType) -> LlvmValue:
        return self.splat(self.put(f"{convert} i64 {self.word(field)} to {self.scalar(kind)}"), kind)

    def _scalar(self, scalar: Scalar) -> LlvmValue:
        def load() -> LlvmValue:
            place = self.table.scalar(scalar) * self.places_of(scalar.kind)
            return self.load_splat(self.word(Word.SCALARS), str(place), scalar.kind)

        return self._hoist(scalar, load)

    def places_of(self, kind: ValueType) -> int:
        """How many elements of a kind take as much memory as a float."""
        return 1 if kind == "float" else self.floats.bytes // 4

    def _line(self, line: Line) -> LlvmValue:
        address = self.word(line)
        if line.rate == self.along:
            return self.find(line) or self.keep(line, self.load(address, self.index, line.kind))
        if line not in self._hoisted:
            with self.writing(self.outer):
                self._hoisted[line] = self.load_splat(address, "%y", line.kind)
        return self._hoisted[line]

    def _hoist(self, key: object, compute: Callable[[], LlvmValue]) -> LlvmValue:
        """A value that is computed in `entry` when it is first used."""
        if key not in self._hoisted:
            with self.writing(self.entry):
                self._hoisted[key] = compute()
        return self._hoisted[key]

    # Memory.

    def head(self, slot: str) -> str:
        """The cell of a ring that this tick writes."""
        return self.heads.get(slot) or self.word(Head(slot))

    def splat(self, number: str, kind: ValueType) -> LlvmValue:
        """A number in every lane."""
        of = self.type(kind)
        first = self.put(f"insertelement {of} poison, {self.scalar(kind)} {number}, i64 0")
        every = f"<{self.lanes} x i32> zeroinitializer"
        return LlvmValue(self.put(f"shufflevector {of} {first}, {of} poison, {every}"), kind)

    def first(self, value: LlvmValue) -> str:
        """The number in the first lane."""
        return self.put(f"extractelement {self.type(value.kind)} {value.text}, i64 0")

    def element(self, address: str, index: str, kind: ValueType = "u32") -> str:
        """The address of an element of 4 bytes, or of a float."""
        return self.put(f"getelementptr {self.scalar(_STORED[kind])}, ptr {address}, i64 {index}")

    def load(self, address: str, index: str, kind: ValueType) -> LlvmValue:
        """The vector from an element on."""
        stored = _STORED[kind]
        place = self.element(address, index, kind)
        return self._read(LlvmValue(self.put(f"load {self.type(stored)}, ptr {place}, align 4"), stored), kind)

    def load_splat(self, address: str, index: str, kind: ValueType) -> LlvmValue:
        """One element, in every lane."""
        stored = _STORED[kind]
        number = self.put(f"load {self.scalar(stored)}, ptr {self.element(address, index, kind)}, align 4")
        return self._read(self.splat(number, stored), kind)

    def _read(self, stored: LlvmValue, kind: ValueType) -> LlvmValue:
        if kind != "bool":
            return stored
        return LlvmValue(self.put(f"icmp ne {self.type('u32')} {stored.text}, zeroinitializer"), "bool")

    def store(self, value: LlvmValue, address: str, index: str) -> None:
        """Writes a vector from an element on."""
        if value.kind == "bool":
            value = LlvmValue(self.put(f"zext {self.type('bool')} {value.text} to {self.type('u32')}"), "u32")
        place = self.element(address, index, value.kind)
        self.do(f"store {self.type(value.kind)} {value.text}, ptr {place}, align 4")

    def gather(self, address: str, index: LlvmValue, of: str | None = None) -> LlvmValue:
        """Singles from an element for each lane. `of` is the type of the index, if it is not u32."""
        return self._gathered(SINGLE, address, index, of)

    def gather_wide(self, address: str, index: LlvmValue) -> LlvmValue:
        """The same from numbers in double precision."""
        return self._gathered(DOUBLE, address, index)

    def _gathered(self, source: Precision, address: str, index: LlvmValue, of: str | None = None) -> LlvmValue:
        """Numbers of the `source` precision, converted to that of this function."""
        found_as = source.vector(self.lanes, "float")
        instruction = None if of else self.isa.gather(source.bytes, self.lanes)
        if instruction is not None:
            found = self._gathered_by(instruction, source, address, index)
        else:
            found = self._gathered_by_lane(source, address, index, of)
        if source.bytes != self.floats.bytes:
            convert = "fptrunc" if source.bytes > self.floats.bytes else "fpext"
            found = self.put(f"{convert} {found_as} {found} to {self.type('float')}")
        return LlvmValue(found, "float")

    def _gathered_by(self, instruction: str, source: Precision, address: str, index: LlvmValue) -> str:
        """Gathers by one instruction of the processor. LLVM by itself prefers a load for each lane, and takes half a
        millisecond to write these, which matters where compile time does."""
        floats, bits = source.vector(self.lanes, "float"), self.type("u32")
        name = f"@llvm.{instruction}"
        self.declared.add(f"declare {floats} {name}({floats}, ptr, {bits}, {floats}, i8)")
        every = f"{floats} splat ({source.name} {source.text(-1.0)})"  # the sign enables a lane
        args = f"{floats} zeroinitializer, ptr {address}, {bits} {index.text}, {every}, i8 {source.bytes}"
        return self.put(f"call {floats} {name}({args})")

    def _gathered_by_lane(self, source: Precision, address: str, index: LlvmValue, of: str | None) -> str:
        places = self.put(f"getelementptr {source.name}, ptr {address}, {of or self.type('u32')} {index.text}")
        found_as, pointers, bools = source.vector(self.lanes, "float"), f"<{self.lanes} x ptr>", self.type("bool")
        name = f"@llvm.masked.gather.v{self.lanes}{source.suffix}.v{self.lanes}p0"
        self.declared.add(f"declare {found_as} {name}({pointers}, i32 immarg, {bools}, {found_as})")
        args = f"{pointers} {places}, i32 4, {bools} {self.truth(True).text}, {found_as} poison"
        return self.put(f"call {found_as} {name}({args})")


# The functions of a kernel: one for its columns, one for its rows, and one for its elements. Several threads call the
# last one at once, and each takes bands of rows until none is left.

COLUMNS, ROWS, ELEMENTS = "columns", "rows", "elements"
"""The names of the functions. Each takes the address of the block of arguments."""


def line_function(w: FunctionWriter, name: str, extent: Word) -> list[str]:
    """A function that runs the text of the writer along a line."""
    with w.writing(w.entry):
        count = w.word(extent)
        # A short line is padded to a vector.
        is_long = w.put(f"icmp sgt i64 {count}, {w.lanes}")
        length = w.put(f"select i1 {is_long}, i64 {count}, i64 {w.lanes}")
        limit = w.put(f"sub i64 {length}, {w.lanes}")
        w.jump("vector")
    return _defined(w, name, [*w.entry, *_vectors(w, limit, "entry", "done"), "done:", "  ret void"])


def band_function(w: FunctionWriter) -> list[str]:
    """A function that takes bands of rows and runs the text of the writer along each row of them."""
    with w.writing(w.entry):
        width, height, band = (w.word(word) for word in (Word.WIDTH, Word.HEIGHT, Word.BAND))
        taken = w.put(f"getelementptr i64, ptr %block, i64 {w.table.field(Word.NEXT)}")
        limit = w.put(f"sub i64 {width}, {w.lanes}")
        w.jump("band")
    outer = w.outer
    taking = [
        "band:",
        f"  %band.number = atomicrmw add ptr {taken}, i64 1 monotonic",
        f"  %band.first = mul i64 %band.number, {band}",
        f"  %band.full = add i64 %band.first, {band}",
        f"  %band.cut = icmp slt i64 %band.full, {height}",
        f"  %band.end = select i1 %band.cut, i64 %band.full, i64 {height}",
        f"  %band.none = icmp sge i64 %band.first, {height}",
        "  br i1 %band.none, label %done, label %row",
        "row:",
        "  %y = phi i64 [ %band.first, %band ], [ %y.next, %row.end ]",
        f"  %row.start = mul i64 %y, {width}",
        *outer,
        "  br label %vector",
    ]
    leaving = [
        "row.end:",
        "  %y.next = add i64 %y, 1",
        "  %y.left = icmp slt i64 %y.next, %band.end",
        "  br i1 %y.left, label %row, label %band",
        "done:",
        "  ret void",
    ]
    rows = _vectors(w, limit, "row", "row.end", ["  %pixel = add i64 %row.start, %x"])
    return _defined(w, ELEMENTS, [*w.entry, *taking, *rows, *leaving])


def _vectors(w: FunctionWriter, limit: str, before: str, after: str, first: Sequence[str] = ()) -> list[str]:
    """The loop over a row. The last vector ends where the row does, and so may overlap the one before it."""
    return [
        "vector:",
        f"  %x = phi i64 [ 0, %{before} ], [ %x.next, %{w.block} ]",
        *first,
        *w.text,
        f"  %x.step = add i64 %x, {w.lanes}",
        f"  %x.fits = icmp slt i64 %x.step, {limit}",
        f"  %x.next = select i1 %x.fits, i64 %x.step, i64 {limit}",
        f"  %x.last = icmp eq i64 %x, {limit}",
        f"  br i1 %x.last, label %{after}, label %vector",
    ]


def _defined(w: FunctionWriter, name: str, body: Sequence[str]) -> list[str]:
    return [f"define void @{name}(ptr noalias %block) #0 {{", "entry:", *body, "}"]
