"""Series, chunk by chunk: the loop over a launch, and the loop partitions that run over vectors of samples.

A launch of samples is cut into chunks. Every loop partition runs over one chunk before the next chunk begins, and
leaves its values in scratch rows for the partitions after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from weft.codegen.kernel import Kernel
from weft.codegen.native.graph import Graph
from weft.codegen.native.lanes import LlvmLanes
from weft.codegen.native.layout import Word
from weft.codegen.native.module import FRAME
from weft.codegen.native.partition import TIME, LoopPartition
from weft.codegen.native.section import write_nodes
from weft.codegen.native.target import DOUBLE, Isa, LlvmValue
from weft.codegen.native.writer import ArgumentTable, FunctionWriter
from weft.codegen.values import Line, Node
from weft.ir.rates import Rate
from weft.ops import double
from weft.ops.spec import ValueType

# Waves by recurrence: a sine whose angle grows by δ from sample to sample satisfies
# `s(n + L) = 2 cos(L δ) · s(n) − s(n − L)`, so each vector follows from the two before it.


class Recurrence(NamedTuple):
    """A wave within a loop over vectors. `now` and `before` are its last two vectors, which start as `second` and
    `first`; `factor` is 2 cos(L δ)."""

    now: LlvmValue
    before: LlvmValue
    first: LlvmValue
    second: LlvmValue
    factor: LlvmValue


def recurrence(w: FunctionWriter, node: Node) -> Recurrence:
    """Starts a wave at the first sample of a chunk: from its angle there (`%time`) and the growth of the angle per
    sample (`%step` is the time between two samples). Whole turns are taken out of both first. The angles are then
    rounded far less than the times are, which matters because the recurrence amplifies errors in their differences.

    Only the first two registers are computed as sines. The rest of the first two vectors follows by the recurrence.
    """
    width, count = min(w.isa.doubles, w.lanes), 2 * max(1, w.lanes // w.isa.doubles)
    angle, growth = _angle(w, node)
    # Padded to the lanes of a register, so that one helper function serves all calls.
    by_register, by_vector, *_ = _factors(w, growth, ((width, w.lanes) * width)[: max(2, width)])
    first = -w.lanes
    with w.narrow(width):
        registers = [_wave(w, node.attr, angle, growth, start) for start in (first, first + width)]
        factor = w.splat(by_register, "float")
        while len(registers) < count:
            registers.append(_following(w, factor, registers[-1], registers[-2]))
    before, now = (_joined(w, part, width) for part in (registers[: count // 2], registers[count // 2 :]))
    phi_now, phi_before = (LlvmValue(w.name(what), "float") for what in ("now", "before"))
    return Recurrence(phi_now, phi_before, before, now, w.splat(by_vector, "float"))


def _following(w: FunctionWriter, factor: LlvmValue, now: LlvmValue, before: LlvmValue) -> LlvmValue:
    """The vector after these two."""
    return w.fma(factor, now, w.neg(before))


def _angle(w: FunctionWriter, node: Node) -> tuple[str, str]:
    """The angle at the first sample, and its growth per sample, in half turns from −1 to 1."""
    slope, offset = (w.lane(w.value(arg)) for arg in node.args)
    with w.narrow(1):
        each = w.splat(slope, "float")
        angle = w.fma(each, w.splat("%time", "float"), w.splat(offset, "float"))
        growth = w.mul(each, w.splat("%step", "float"))
        return w.lane(double.within_turn(w, angle)), w.lane(double.within_turn(w, growth))


def _wave(w: FunctionWriter, row: str, angle: str, growth: str, first: int) -> LlvmValue:
    """A wave at the samples from number `first` of the chunk on."""
    angles = w.fma(w.each(range(first, first + w.lanes)), w.splat(growth, "float"), w.splat(angle, "float"))
    return _called(w, row, angles)


def _factors(w: FunctionWriter, growth: str, distances: Sequence[int]) -> list[str]:
    """2 cos of the growth of the angle over each of these distances, in samples."""
    with w.narrow(len(distances)):
        doubled = w.mul(_called(w, "cospi", w.mul(w.splat(growth, "float"), w.each(distances))), w.real(2))
        return [w.lane(doubled, lane) for lane in range(len(distances))]


def _called(w: FunctionWriter, row: str, x: LlvmValue) -> LlvmValue:
    """A row as a call of a helper. It runs only once a chunk, so inlining would cost LLVM more time than it saves."""
    of, name = w.types["float"], f"@{row}.{w.lanes}"
    if name not in w.helpers:
        inner = LlvmLanes(w.isa, w.lanes, w.floats)
        given = LlvmValue("%x", "float")
        found = (double.sine_of_half_turns if row == "sinpi" else double.cosine_of_half_turns)(inner, given)
        w.declared |= inner.declared
        w.helpers[name] = [
            f"define internal {of} {name}({of} %x) #0 {{", "entry:", *inner.text, f"  ret {of} {found.text}", "}",
        ]  # fmt: skip
    return LlvmValue(w.put(f"call {of} {name}({of} {x.text})"), "float")


def _joined(w: FunctionWriter, registers: list[LlvmValue], width: int) -> LlvmValue:
    """Registers of `width` lanes each, joined to one vector."""
    while len(registers) > 1:
        of = w.floats.vector(width, "float")
        order = ", ".join(f"i32 {lane}" for lane in range(2 * width))
        registers = [
            LlvmValue(w.put(f"shufflevector {of} {a.text}, {of} {b.text}, <{2 * width} x i32> <{order}>"), "float")
            for a, b in zip(registers[::2], registers[1::2], strict=True)
        ]
        width *= 2
    return registers[0]


# The functions of loop partitions.

CHUNK = 256
"""The most samples of a chunk: few enough that the values of all partitions stay in the cache."""

GIVEN = "ptr %block, i64 %start, i64 %count, double %origin, double %number, double %rate, double %time, double %step"
"""The parameters of each function: the block of arguments; the first sample of the chunk and their count; `%origin`,
`%number` and `%rate`, of which times are made (sample k of the chunk is at `%origin + (%number + k) / %rate`); the time
of the first sample, and the time between two samples."""


class Scratch:
    """The memory through which values pass from one loop partition to another: a row of a chunk's length for each."""

    def __init__(self) -> None:
        self.size = 0
        self._places: dict[object, int] = {}

    def place(self, key: Node | tuple[Node, int]) -> int:
        """Where the row of a value begins, in bytes; or that of a carried value, by its loop and number."""
        kind: ValueType = "float"
        if isinstance(key, Node):
            # A carried value has one row for all steps of its loop; after the last step the row holds the result.
            kind, key = key.kind, (key.args[0], key.attr) if key.op == "loop_out" else key
        if key not in self._places:
            self._places[key] = self.size
            self.size += CHUNK * (DOUBLE.bytes if kind == "float" else 4)
        return self._places[key]


class ChunkWriter(FunctionWriter):
    """The function of one loop partition, over the samples from `%start` on. `row` is where a vector begins in the
    chunk, and `index` where it begins in the launch."""

    def __init__(
        self, function: str, part: LoopPartition, kernel: Kernel, graph: Graph, isa: Isa, lanes: int,
        table: ArgumentTable, scratch: Scratch,
    ) -> None:  # fmt: skip
        super().__init__(kernel, graph, isa, lanes, table, Rate.ELEMENT, DOUBLE)
        self.function = function
        self.part = part
        self.block = "begin"
        self.row = ""
        self._scratch = scratch
        self._rows: dict[int, str] = {}

    def _line(self, line: Line) -> LlvmValue:
        if line != TIME:
            return super()._line(line)
        return self.find(line) or self.keep(line, self._times())

    def _times(self) -> LlvmValue:
        """The times of the samples of a vector. Each is computed from the number of its sample, which is exact."""
        lanes = self._hoist("numbers", lambda: self.add(self.splat("%number", "float"), self.each(range(self.lanes))))
        rate = self._hoist("rate", lambda: self.splat("%rate", "float"))
        origin = self._hoist("origin", lambda: self.splat("%origin", "float"))
        row = self.splat(self.put(f"sitofp i64 {self.row} to double"), "float")
        return self.add(self.div(self.add(lanes, row), rate), origin)

    def row_of(self, key: Node | tuple[Node, int]) -> str:
        """The address of the row of a value, or of a carried value, by its loop and number."""
        place = self._scratch.place(key)
        if place not in self._rows:
            address = self.word(Word.SCRATCH)
            self._rows[place] = self.in_entry(lambda: self.put(f"getelementptr i8, ptr {address}, i64 {place}"))
        return self._rows[place]

    def output(self, number: int) -> str:
        """The address of the first sample of an output."""
        stride, out = self.word(Word.STRIDE), self.word(Word.OUT)
        return self.in_entry(lambda: self.element(out, self.put(f"mul i64 {stride}, {number}"), "float"))

    def begin_rows(self, row: str) -> None:
        """Begins a vector, or a sample, at a row of the chunk."""
        self.row, self.index = row, self.name("index")
        self.do(f"{self.index} = add i64 %start, {row}")

    def read_rows(self, nodes: Sequence[Node]) -> None:
        """Loads values that earlier partitions have written."""
        for node in nodes:
            self.keep(node, self.load(self.row_of(node), self.row, node.kind))

    def write_rows(self) -> None:
        """Stores the values that later partitions read, and the outputs."""
        for node in self.part.writes:
            self.store(self.value(node), self.row_of(node), self.row)
        for number in self.part.outputs:
            self.store(self.as_real(self.value(self.graph.section.outputs[number])), self.output(number), self.index)

    def over_vectors(self, waves: Sequence[Node], write: Callable[[], None]) -> None:
        """A loop over the vectors of the chunk; `write` writes what is computed for each."""
        begun = [(node, recurrence(self, node)) for node in waves]
        number = self.number()
        head = self.begin_loop(f"vector{number}")
        self.begin_rows(self.name("row"))
        with self.scope():
            for node, wave in begun:
                self.keep(node, wave.now)
            write()
            following = [_following(self, wave.factor, wave.now, wave.before) for _, wave in begun]
        next_row = self.put(f"add i64 {self.row}, {self.lanes}")
        more = self.put(f"icmp slt i64 {next_row}, %count")
        phis, of = [("i64", self.row, "0", next_row)], self.types["float"]
        for (_, wave), value in zip(begun, following, strict=True):
            phis.append((of, wave.now.text, wave.second.text, value.text))
            phis.append((of, wave.before.text, wave.first.text, wave.now.text))
        self.phis(head, self.block, phis)
        self.branch(more, f"vector{number}", f"after{number}")
        self.label(f"after{number}")


def write_vectors(w: ChunkWriter) -> None:
    """Writes a partition that runs over vectors."""
    part = w.part
    write_nodes(w, part.prologue, part.prologue)
    nodes = [node for node in part.nodes if node.op != "wave"]
    own = set(nodes)
    roots = [node for node in (*part.writes, *(w.graph.section.outputs[at] for at in part.outputs)) if node in own]

    def write() -> None:
        w.read_rows(part.reads)
        write_nodes(w, nodes, roots)
        w.write_rows()

    w.over_vectors([node for node in part.nodes if node.op == "wave"], write)


# The function that goes through a launch of samples, chunk by chunk. It computes with scalars only: it runs rarely, and
# LLVM compiles scalar code fastest.

SERIES = "series"
"""The name of the function. It takes the address of the block of arguments."""


def chunks_function(w: FunctionWriter, names: Sequence[str], lanes: int, frame: bool) -> list[str]:
    """The function. It calls the launch prologue if there is one (`frame`), then `names` for each chunk."""
    width = w.word(Word.WIDTH)
    lines = [w.word(field) for field in w.table.fields if isinstance(field, Line) and field != TIME]
    origin, first, rate = (w.word(word) for word in (Word.ORIGIN, Word.FIRST, Word.RATE))
    return [
        *(_fill_up(lanes) if lines else ()),
        f"define void @{SERIES}(ptr %block) #0 {{",
        "entry:",
        *w.entry,
        *([f"  call void @{FRAME}(ptr %block)"] if frame else ()),
        *(f"  call void @fill_up(ptr {line}, i64 {width})" for line in lines),
        f"  %origin = bitcast i64 {origin} to double",
        f"  %first = bitcast i64 {first} to double",
        f"  %rate = bitcast i64 {rate} to double",
        "  %step = fdiv double 1.0, %rate",
        "  br label %chunk",
        "chunk:",
        "  %start = phi i64 [ 0, %entry ], [ %next, %chunk ]",
        f"  %left = sub i64 {width}, %start",
        f"  %cut = icmp slt i64 %left, {CHUNK}",
        f"  %count = select i1 %cut, i64 %left, i64 {CHUNK}",
        "  %before = sitofp i64 %start to double",
        "  %number = fadd double %first, %before",
        "  %seconds = fdiv double %number, %rate",
        "  %time = fadd double %origin, %seconds",
        *(f"  call void @{name}({GIVEN})" for name in names),
        "  %next = add i64 %start, %count",
        f"  %more = icmp slt i64 %next, {width}",
        "  br i1 %more, label %chunk, label %done",
        "done:",
        "  ret void",
        "}",
    ]


def _fill_up(lanes: int) -> list[str]:
    """A function that repeats the last coordinate for the length of a vector after the last sample."""
    return f"""
define internal void @fill_up(ptr %line, i64 %width) #0 {{
entry:
  %at = add i64 %width, -1
  %end = add i64 %width, {lanes}
  %last.place = getelementptr double, ptr %line, i64 %at
  %last = load double, ptr %last.place, align 8
  br label %one
one:
  %place = phi i64 [ %width, %entry ], [ %place.next, %one ]
  %here = getelementptr double, ptr %line, i64 %place
  store double %last, ptr %here, align 8
  %place.next = add i64 %place, 1
  %more = icmp slt i64 %place.next, %end
  br i1 %more, label %one, label %done
done:
  ret void
}}""".splitlines()
