"""Writes chunks of samples: what the functions of a series have in common, and those in vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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

# Waves in vectors: each follows from the two before it, since `s(n + L) = 2 cos(L δ) · s(n) − s(n − L)` for a sine of
# an angle that grows by δ from sample to sample.


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A wave within a loop over vectors: `now` and `before` are its last two vectors there, which `first` and `second`
    are at the beginning; `factor` is 2 cos(L δ)."""

    now: LlvmValue
    before: LlvmValue
    first: LlvmValue
    second: LlvmValue
    factor: LlvmValue

    def following(self, w: FunctionWriter) -> LlvmValue:
        """The next vector."""
        return w.fma(self.factor, self.now, w.neg(self.before))

    def phis(self, w: FunctionWriter, entering: str, following: LlvmValue, latch: str) -> list[str]:
        of = w.type("float")
        return [
            f"  {self.now.text} = phi {of} [ {self.second.text}, %{entering} ], [ {following.text}, %{latch} ]",
            f"  {self.before.text} = phi {of} [ {self.first.text}, %{entering} ], [ {self.now.text}, %{latch} ]",
        ]


def recurrence(w: FunctionWriter, node: Node) -> Recurrence:
    """Begins a wave anew, with the angle that it has at the first sample of a chunk (`%time`), and with what that grows
    by (`%step` is how far apart two samples are). Both lose their whole turns first, so that the angles of the samples
    are rounded far less than their times are: what lies between two of them counts many times over in what follows.

    Only two registers are computed as sines: those behind them, up to two vectors, follow as all others do.
    """
    width, count = min(w.isa.doubles, w.lanes), 2 * max(1, w.lanes // w.isa.doubles)
    angle, growth = _angle(w, node)
    # As many as a register has lanes: then one function serves all.
    by_register, by_vector, *_ = _factors(w, growth, *((width, w.lanes) * width)[: max(2, width)])
    first = -w.lanes
    with w.narrow(width):
        registers = [_wave(w, node.attr, angle, growth, start) for start in (first, first + width)]
        factor = w.splat(by_register, "float")
        while len(registers) < count:
            registers.append(w.fma(factor, registers[-1], w.neg(registers[-2])))
    before, now = (_joined(w, part, width) for part in (registers[: count // 2], registers[count // 2 :]))
    name, behind = (LlvmValue(w.name(what), "float") for what in ("now", "before"))
    return Recurrence(name, behind, before, now, w.splat(by_vector, "float"))


def _angle(w: FunctionWriter, node: Node) -> tuple[str, str]:
    """The angle at the first sample, and what it grows by, in half turns from −1 to 1."""
    slope, offset = (w.first(w.value(arg)) for arg in node.args)
    with w.narrow(1):
        each = w.splat(slope, "float")
        angle = w.fma(each, w.splat("%time", "float"), w.splat(offset, "float"))
        growth = w.mul(each, w.splat("%step", "float"))
        return w.first(double.within_turn(w, angle)), w.first(double.within_turn(w, growth))


def _wave(w: FunctionWriter, row: str, angle: str, growth: str, first: int) -> LlvmValue:
    """A wave at the samples from number `first` of the chunk on."""
    numbers = w.each([w.floats.text(float(first + lane)) for lane in range(w.lanes)], "float")
    angles = w.fma(numbers, w.splat(growth, "float"), w.splat(angle, "float"))
    return _called(w, row, angles)


def _factors(w: FunctionWriter, growth: str, *distances: int) -> tuple[str, ...]:
    """2 cos of what the angle grows by over so many samples, for each of some distances."""
    with w.narrow(len(distances)):
        numbers = w.each([w.floats.text(float(distance)) for distance in distances], "float")
        doubled = w.mul(_called(w, "cospi", w.mul(w.splat(growth, "float"), numbers)), w.real(2))
        return tuple(
            w.put(f"extractelement {w.type('float')} {doubled.text}, i64 {lane}") for lane in range(len(distances))
        )


def _called(w: FunctionWriter, row: str, x: LlvmValue) -> LlvmValue:
    """A row as a call: what runs once a chunk is worth less time to the processor than it takes LLVM."""
    of, name = w.type("float"), f"@{row}.{w.lanes}"
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
    """Registers, each of so many lanes, as one vector."""
    while len(registers) > 1:
        of = w.floats.vector(width, "float")
        order = ", ".join(f"i32 {lane}" for lane in range(2 * width))
        registers = [
            LlvmValue(w.put(f"shufflevector {of} {a.text}, {of} {b.text}, <{2 * width} x i32> <{order}>"), "float")
            for a, b in zip(registers[::2], registers[1::2], strict=True)
        ]
        width *= 2
    return registers[0]


# Writes the functions of a series: what they have in common, and those in vectors.

CHUNK = 256
"""How many samples go through all stretches before the next ones do, at most: their values stay in the cache."""

GIVEN = (
    "ptr %block, i64 %start, i64 %count, double %origin, double %number, double %rate, double %time, double %step"
)
"""What the functions of stretches take: the block, the first sample of a chunk, how many it has, what times are made of
(sample k of the chunk is at `%origin + (%number + k) / %rate`), the time of the first, and how far apart they are."""


class Scratch:
    """Where values cross from one stretch to another: a row of as many as a chunk has, for each."""

    def __init__(self) -> None:
        self.size = 0
        self._places: dict[object, int] = {}

    def place(self, node: Node) -> int:
        """Where the row of a value begins, in bytes."""
        # What a loop carries has one row for all its steps, which is what comes of it in the end.
        key = (node.args[0], node.attr) if node.op == "loop_out" else node
        return self._place(key, node.kind)

    def carried(self, loop: Node, k: int) -> int:
        """The same for what a loop carries."""
        return self._place((loop, k), "float")

    def _place(self, key: object, kind: ValueType) -> int:
        if key not in self._places:
            self._places[key] = self.size
            self.size += CHUNK * (DOUBLE.bytes if kind == "float" else 4)
        return self._places[key]


class ChunkWriter(FunctionWriter):
    """The function of one stretch, over the samples from `%start` on. `row` is where a vector begins in the chunk, and
    `index` where it does in the launch."""

    def __init__(self, function: str, isa: Isa, lanes: int, places: ArgumentTable, scratch: Scratch) -> None:
        super().__init__(isa, lanes, places, Rate.ELEMENT, DOUBLE)
        self.function = function
        self.block = "begin"
        self.row = ""
        self._scratch = scratch
        self._rows: dict[int, str] = {}

    def _line(self, line: Line) -> LlvmValue:
        if line != TIME:
            return super()._line(line)
        return self.find(line) or self.keep(line, self._times())

    def _times(self) -> LlvmValue:
        """The times of the samples of a vector: each comes of its own number alone, which is exact."""
        lanes = self._once("numbers", self._first_numbers)
        rate = self._once("rate", lambda: self.splat("%rate", "float"))
        origin = self._once("origin", lambda: self.splat("%origin", "float"))
        row = self.splat(self.put(f"sitofp i64 {self.row} to double"), "float")
        return self.add(self.div(self.add(lanes, row), rate), origin)

    def _first_numbers(self) -> LlvmValue:
        lanes = self.each([self.floats.text(float(lane)) for lane in range(self.lanes)], "float")
        return self.add(self.splat("%number", "float"), lanes)

    def row_of(self, node: Node) -> str:
        """The address of the row of a value."""
        return self._row(self._scratch.place(node))

    def row_carried(self, loop: Node, k: int) -> str:
        return self._row(self._scratch.carried(loop, k))

    def _row(self, place: int) -> str:
        if place not in self._rows:
            address = self.word(Word.SCRATCH)
            with self.writing(self.entry):
                self._rows[place] = self.put(f"getelementptr i8, ptr {address}, i64 {place}")
        return self._rows[place]

    def output(self, number: int) -> str:
        """The address of the first sample of an output."""
        stride, out = self.word(Word.STRIDE), self.word(Word.OUT)
        with self.writing(self.entry):
            return self.element(out, self.put(f"mul i64 {stride}, {number}"), "float")

    def read_rows(self, nodes: Sequence[Node]) -> None:
        """Loads what other stretches have left."""
        for node in nodes:
            self.keep(node, self.load(self.row_of(node), self.row, node.kind))

    def write_rows(self, part: LoopPartition, graph: Graph) -> None:
        """Leaves what later stretches read, and writes outputs."""
        for node in part.leaves:
            self.store(self.value(node), self.row_of(node), self.row)
        for number in part.outputs:
            self.store(self.as_real(self.value(graph.outputs[number])), self.output(number), self.index)

    def over_vectors(self, waves: Sequence[Node], write: Callable[[], None]) -> None:
        """A loop over the vectors of the chunk; `write` writes what is computed for each."""
        begun = [(node, recurrence(self, node)) for node in waves]
        number = self.name("").lstrip("%")
        label, before = f"vector{number}", self.block
        self.jump(label)
        self.label(label)
        phis = len(self.text)
        self.row, self.index = self.name("row"), self.name("index")
        self.do(f"{self.index} = add i64 %start, {self.row}")
        with self.scope():
            for node, wave in begun:
                self.keep(node, wave.now)
            write()
            following = [(wave, wave.following(self)) for _, wave in begun]
        next_row = self.put(f"add i64 {self.row}, {self.lanes}")
        more = self.put(f"icmp slt i64 {next_row}, %count")
        latch = self.block
        self.branch(more, label, f"behind{number}")
        self.text[phis:phis] = [
            f"  {self.row} = phi i64 [ 0, %{before} ], [ {next_row}, %{latch} ]",
            *(line for wave, value in following for line in wave.phis(self, before, value, latch)),
        ]
        self.label(f"behind{number}")


def write_vectors(w: ChunkWriter, kernel: Kernel, graph: Graph, part: LoopPartition) -> None:
    """A stretch in vectors."""
    write_nodes(w, kernel, part.once, part.once)
    nodes = [node for node in part.nodes if node.op != "wave"]
    own = set(nodes)
    roots = [node for node in (*part.leaves, *(graph.outputs[at] for at in part.outputs)) if node in own]
    waves = [node for node in part.nodes if node.op == "wave"]

    def write() -> None:
        w.read_rows(part.reads)
        write_nodes(w, kernel, nodes, roots)
        w.write_rows(part, graph)

    w.over_vectors(waves, write)


# Writes the function that goes through a launch of samples, chunk by chunk. All of it is about single numbers: it runs
# rarely, and of these LLVM makes machine code fastest.

SERIES = "series"
"""The name of the function. It takes the address of the block of arguments."""


def chunks_function(w: FunctionWriter, names: Sequence[str], lanes: int, frame: bool) -> list[str]:
    """The function, which calls those of a chunk by their names, after that of the `frame` if there is one."""
    width = w.word(Word.WIDTH)
    lines = [w.word(field) for field in w.places.fields if isinstance(field, Line) and field != TIME]
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
    """A function that fills the vector behind the last sample with the last coordinate."""
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
