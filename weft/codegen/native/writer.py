"""Functions in LLVM IR: their arguments, the values that they have computed, and where their text goes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from weft.codegen.kernel import Kernel
from weft.codegen.native.graph import Graph
from weft.codegen.native.lanes import LlvmLanes
from weft.codegen.native.layout import Field, Head, Word, is_address
from weft.codegen.native.target import DOUBLE, SINGLE, Isa, LlvmValue, Precision
from weft.codegen.values import Line, Node, Scalar
from weft.ir.expr import SlotPlane
from weft.ir.rates import Rate
from weft.ops.spec import OpSpec, ValueType

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

# In memory, a bool takes as much as the others.
_STORED: Mapping[ValueType, ValueType] = {"float": "float", "bool": "u32", "u32": "u32"}


class _Numbering(dict[K, int]):
    """Numbers for keys, in the order in which they are first asked for."""

    def __missing__(self, key: K) -> int:
        self[key] = number = len(self)
        return number


class ArgumentTable:
    """The numbers of what the functions of one kernel use: the words of the block of arguments, the scalars of a
    launch, and the numbers that the caller passes."""

    def __init__(self) -> None:
        self.fields = _Numbering[Field]({word: at for at, word in enumerate(Word)})
        self.scalars = _Numbering[Scalar]()
        self.numbers = _Numbering[Scalar]()


class FunctionWriter(LlvmLanes):
    """One function over a picture, or over a line of it. It computes values of the section of `graph`.

    Its text has three parts: `entry` runs once, `outer` once a row, and `text` for each vector. Lines of the rate
    `along` are read a vector at a time, at `index`; those of rows are read at `%y`.
    """

    def __init__(
        self, kernel: Kernel, graph: Graph, isa: Isa, lanes: int, table: ArgumentTable, along: Rate,
        floats: Precision = SINGLE,
    ) -> None:  # fmt: skip
        super().__init__(isa, lanes, floats)
        self.kernel = kernel
        self.graph = graph
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
        self._words: dict[Field, str] = {}
        self._forms: dict[str, Callable[..., LlvmValue]] = {}
        self._hoisted: dict[object, LlvmValue] = {}
        """The constants, and the values that were computed in `entry` or `outer`."""
        self._scopes: list[dict[object, Any]] = [{}]
        """The values that were computed for this vector, in the blocks around this place, the innermost last."""

    @contextmanager
    def writing(self, text: list[str]) -> Iterator[None]:
        """Within this context, instructions go to another part of the text."""
        before, self.text = self.text, text
        try:
            yield
        finally:
            self.text = before

    def in_entry(self, compute: Callable[[], T]) -> T:
        """Calls a function whose instructions go to `entry`."""
        with self.writing(self.entry):
            return compute()

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A block that may be skipped: its values are not available after it."""
        self._scopes.append({})
        try:
            yield
        finally:
            self._scopes.pop()

    # Values.

    def find(self, key: object) -> Any:
        """What was kept under a key in this block or one around it; None without it."""
        for scope in reversed(self._scopes):
            if key in scope:
                return scope[key]
        return None

    def keep(self, key: object, value: T) -> T:
        """Keeps a value for the rest of this block."""
        self._scopes[-1][key] = value
        return value

    def value(self, node: Node) -> LlvmValue:
        """The value of a node. Raises LookupError if it is no leaf and has not been computed."""
        found: LlvmValue | None = self.find(node) or self._hoisted.get(node)
        if found is not None:
            return found
        match node.op:
            case "const":
                found = self._hoisted[node] = self.real(node.attr)
            case "u32":
                found = self._hoisted[node] = self.bits(node.attr)
            case "scalar":
                found = self._scalar(node.attr)
            case "line":
                found = self._line(node.attr)
            case _:
                raise LookupError(f"{node.op} is used before it is computed")
        return found

    def computed(self, row: OpSpec, args: Sequence[LlvmValue]) -> LlvmValue:
        """A row of the table of operators and builtins, applied in the precision of this function."""
        form = self._forms.get(row.name)
        if form is None:
            form = self._forms[row.name] = self._form(row)
        return form(*args)

    def _form(self, row: OpSpec) -> Callable[..., LlvmValue]:
        form = row.double if row.double is not None and self.floats == DOUBLE else row.native
        if form is None:
            raise TypeError(f"{row.name} has no native form")
        if not isinstance(form, str):
            return partial(form, self)
        return partial(self.library, form) if form is row.double else getattr(self, form)

    # Arguments.

    def place(self, field: Field) -> str:
        """The address of a word of the block."""
        return self.put(f"getelementptr i64, ptr %block, i64 {self.table.fields[field]}")

    def word(self, field: Field) -> str:
        """The content of a word of the block, loaded once: an address or a number of 64 bits."""
        name = self._words.get(field)
        if name is None:
            before, self.text = self.text, self.entry
            kind = "ptr" if is_address(field) else "i64"
            name = self._words[field] = self.put(f"load {kind}, ptr {self.place(field)}, align 8")
            self.text = before
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
            # What is no float is counted in 4 bytes.
            place = self.table.scalars[scalar] * (1 if scalar.kind == "float" else self.floats.bytes // 4)
            return self.load_splat(self.word(Word.SCALARS), str(place), scalar.kind)

        return self._hoist(scalar, load)

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
            self._hoisted[key] = self.in_entry(compute)
        return self._hoisted[key]

    # Memory.

    def head(self, slot: str) -> str:
        """The cell of a ring that this tick writes."""
        return self.heads.get(slot) or self.word(Head(slot))

    def splat(self, number: str, kind: ValueType) -> LlvmValue:
        """A number in every lane."""
        of = self.types[kind]
        first = self.put(f"insertelement {of} poison, {self.scalar(kind)} {number}, i64 0")
        every = f"<{self.lanes} x i32> zeroinitializer"
        return LlvmValue(self.put(f"shufflevector {of} {first}, {of} poison, {every}"), kind)

    def lane(self, value: LlvmValue, lane: int = 0) -> str:
        """The number in one lane."""
        return self.put(f"extractelement {self.types[value.kind]} {value.text}, i64 {lane}")

    def element(self, address: str, index: str, kind: ValueType = "u32") -> str:
        """The address of an element of 4 bytes, or of a float."""
        return self.put(f"getelementptr {self.scalar(_STORED[kind])}, ptr {address}, i64 {index}")

    def load(self, address: str, index: str, kind: ValueType) -> LlvmValue:
        """The vector from an element on."""
        stored = _STORED[kind]
        place = self.element(address, index, kind)
        return self._read(LlvmValue(self.put(f"load {self.types[stored]}, ptr {place}, align 4"), stored), kind)

    def load_splat(self, address: str, index: str, kind: ValueType) -> LlvmValue:
        """One element, in every lane."""
        stored = _STORED[kind]
        number = self.put(f"load {self.scalar(stored)}, ptr {self.element(address, index, kind)}, align 4")
        return self._read(self.splat(number, stored), kind)

    def _read(self, stored: LlvmValue, kind: ValueType) -> LlvmValue:
        return self.is_set(stored) if kind == "bool" else stored

    def is_set(self, bits: LlvmValue) -> LlvmValue:
        """Whether bits are not 0."""
        return LlvmValue(self.put(f"icmp ne {self.types['u32']} {bits.text}, zeroinitializer"), "bool")

    def extended(self, how: str, condition: LlvmValue) -> LlvmValue:
        """A bool as bits: with `zext` 0 or 1, with `sext` in all 32 bits."""
        return LlvmValue(self.put(f"{how} {self.types['bool']} {condition.text} to {self.types['u32']}"), "u32")

    def store(self, value: LlvmValue, address: str, index: str) -> None:
        """Writes a vector from an element on."""
        if value.kind == "bool":
            value = self.extended("zext", value)
        place = self.element(address, index, value.kind)
        self.do(f"store {self.types[value.kind]} {value.text}, ptr {place}, align 4")

    def gather(self, address: str, index: LlvmValue, of: str = "", source: Precision = SINGLE) -> LlvmValue:
        """Numbers of the `source` precision, from an element for each lane. `of` is the type of the index, if it is not
        u32."""
        found_as = source.vector(self.lanes, "float")
        instruction = None if of else self.isa.gather(source.bytes, self.lanes)
        if instruction is not None:
            found = self._gathered_by(instruction, source, address, index)
        else:
            found = self._gathered_by_lane(source, address, index, of or self.types["u32"])
        if source.bytes != self.floats.bytes:
            convert = "fptrunc" if source.bytes > self.floats.bytes else "fpext"
            found = self.put(f"{convert} {found_as} {found} to {self.types['float']}")
        return LlvmValue(found, "float")

    def _gathered_by(self, instruction: str, source: Precision, address: str, index: LlvmValue) -> str:
        """Gathers by one instruction of the processor. LLVM by itself prefers a load for each lane, and takes half a
        millisecond to write these, which matters where compile time does."""
        floats, bits = source.vector(self.lanes, "float"), self.types["u32"]
        name = f"@llvm.{instruction}"
        self.declared.add(f"declare {floats} {name}({floats}, ptr, {bits}, {floats}, i8)")
        every = f"{floats} splat ({source.name} {source.text(-1.0)})"  # the sign enables a lane
        args = f"{floats} zeroinitializer, ptr {address}, {bits} {index.text}, {every}, i8 {source.bytes}"
        return self.put(f"call {floats} {name}({args})")

    def _gathered_by_lane(self, source: Precision, address: str, index: LlvmValue, of: str) -> str:
        places = self.put(f"getelementptr {source.name}, ptr {address}, {of} {index.text}")
        found_as, pointers, bools = source.vector(self.lanes, "float"), f"<{self.lanes} x ptr>", self.types["bool"]
        name = f"@llvm.masked.gather.v{self.lanes}{source.suffix}.v{self.lanes}p0"
        self.declared.add(f"declare {found_as} {name}({pointers}, i32 immarg, {bools}, {found_as})")
        args = f"{pointers} {places}, i32 4, {bools} splat (i1 true), {found_as} poison"
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
    return _defined(name, [*w.entry, *_vectors(w, limit, "entry", "done"), "done:", "  ret void"])


def band_function(w: FunctionWriter) -> list[str]:
    """A function that takes bands of rows and runs the text of the writer along each row of them."""
    with w.writing(w.entry):
        width, height, band = map(w.word, (Word.WIDTH, Word.HEIGHT, Word.BAND))
        taken = w.place(Word.NEXT)
        limit = w.put(f"sub i64 {width}, {w.lanes}")
        w.jump("band")
    rows = _vectors(w, limit, "row", "row.end", ["  %pixel = add i64 %row.start, %x"])
    return _defined(ELEMENTS, [
        *w.entry,
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
        *w.outer,
        "  br label %vector",
        *rows,
        "row.end:",
        "  %y.next = add i64 %y, 1",
        "  %y.left = icmp slt i64 %y.next, %band.end",
        "  br i1 %y.left, label %row, label %band",
        "done:",
        "  ret void",
    ])  # fmt: skip


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


def _defined(name: str, body: Sequence[str]) -> list[str]:
    return [f"define void @{name}(ptr noalias %block) #0 {{", "entry:", *body, "}"]
