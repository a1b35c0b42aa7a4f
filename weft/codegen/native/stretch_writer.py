"""Writes the functions of a series: what they have in common, and those in vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.codegen.base import Kernel
from weft.codegen.native.graph import Graph
from weft.codegen.native.layout import Word
from weft.codegen.native.recurrence import recurrence
from weft.codegen.native.section import write_nodes
from weft.codegen.native.stretches import LoopPartition
from weft.codegen.native.target import Isa
from weft.codegen.native.types import DOUBLE, LlvmValue
from weft.codegen.native.waves import TIME
from weft.codegen.native.writer import ArgumentTable, FunctionWriter
from weft.codegen.values import Line, Node
from weft.ir.rates import Rate
from weft.ops.spec import ValueType

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
        return self._place((loop, k), "real")

    def _place(self, key: object, kind: ValueType) -> int:
        if key not in self._places:
            self._places[key] = self.size
            self.size += CHUNK * (DOUBLE.bytes if kind == "real" else 4)
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
        rate = self._once("rate", lambda: self.splat("%rate", "real"))
        origin = self._once("origin", lambda: self.splat("%origin", "real"))
        row = self.splat(self.put(f"sitofp i64 {self.row} to double"), "real")
        return self.add(self.div(self.add(lanes, row), rate), origin)

    def _first_numbers(self) -> LlvmValue:
        lanes = self.each([self.reals.text(float(lane)) for lane in range(self.lanes)], "real")
        return self.add(self.splat("%number", "real"), lanes)

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
            return self.element(out, self.put(f"mul i64 {stride}, {number}"), "real")

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
