"""Sounds with state on the vector machine, block by block: numpy computes rows of samples at once, and Python functions
that are written for the kernel go through its loops of feedback, sample by sample."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from weft.backends.executor import check, pack_planes
from weft.backends.interpreter import Interpreter
from weft.backends.launch import Launch, Reals
from weft.backends.memory import StateMemory
from weft.backends.vector_feedback import FeedbackPart, parts_of
from weft.backends.vector_nodes import Calls, OneByOneError, Values
from weft.backends.vector_past import PastBlock, Reads, store
from weft.backends.vector_turn import SerialRecurrence, write_recurrence
from weft.codegen.base import Kernel
from weft.codegen.native.graph import Graph, graph_of
from weft.codegen.native.stretches import is_series, states
from weft.codegen.values import Node, operands
from weft.ir.expr import SlotPlane
from weft.ir.rates import Rate

# How many samples make a block: of more, the rows would leave the cache, and more echoes would be loops of feedback.
_BLOCK = 512


@dataclass(frozen=True, slots=True)
class Series:
    """The element section of a sound in its parts."""

    steady: Calls
    """What is the same at all samples."""
    parts: tuple[Calls | SerialRecurrence, ...]
    outputs: tuple[Node, ...]
    stored: dict[SlotPlane, Node]
    """What goes into slots at the end of a block. Loops of feedback store on their own."""
    kept: frozenset[str]
    """Slots that both loops of feedback write and numpy reads: these are read as they were before the block."""


def series_of(kernel: Kernel) -> Series | None:
    """A kernel with state as a series; None if each sample of it has to be computed as a whole."""
    if not is_series(kernel):
        return None
    graph = graph_of(kernel, kernel.section(Rate.ELEMENT))
    stored = {each.place: each.value for each in graph.stores}
    try:
        if not stored.keys() >= set(states(graph.nodes)):
            raise OneByOneError("a slot that nothing is stored in")
        return _series(kernel, graph, stored)
    except OneByOneError:
        return None


def _series(kernel: Kernel, graph: Graph, stored: dict[SlotPlane, Node]) -> Series:
    reads = Reads(kernel, stored)
    parts = parts_of(kernel, graph, _BLOCK)
    in_turn = {place for part in parts if part.in_turn for place in states(part.nodes)}
    in_rows = {place for part in parts if not part.in_turn for place in states(part.nodes)}
    at_once = {place: node for place, node in stored.items() if place not in in_turn}
    roots = {*graph.outputs, *at_once.values(), *(stored[place] for place in in_rows)}

    def made(part: FeedbackPart) -> Calls | SerialRecurrence:
        if not part.in_turn:
            return Calls(part.nodes, graph.masked, reads)
        used = roots | {each for other in parts if other is not part for node in other.nodes for each in operands(node)}
        own = {place: stored[place] for place in states(part.nodes)}
        return write_recurrence(kernel, part.nodes, own, [node for node in part.nodes if node in used], graph.varying)

    return Series(
        Calls([node for node in graph.nodes if not graph.changes(node)], graph.masked),
        tuple(map(made, parts)),
        tuple(graph.outputs),
        at_once,
        frozenset({place.slot for place in in_rows} & {place.slot for place in in_turn}),
    )


class VectorSeries:
    """The kernel of a sound with state; see `Executable`. Its planes are in double precision."""

    tier = None

    def __init__(self, kernel: Kernel, series: Series) -> None:
        self.kernel = kernel
        self._series = series
        once = tuple(section for section in kernel.sections if section.rate in (Rate.CONSTANT, Rate.FRAME))
        self._interpreter = Interpreter(replace(kernel, sections=once))
        self._lines = [name for name, rate in kernel.coords if rate == Rate.ELEMENT]
        self._lock = threading.Lock()

    def planes(self, memory: StateMemory, launch: Launch) -> Reals:
        check(self.kernel, memory, launch)
        with self._lock, np.errstate(all="ignore"):
            machine = self._interpreter.begin(memory, launch)
            steady = Values(machine, {})
            self._series.steady.run(steady)
            out = self._run(steady, memory, launch)
        if machine.loop_stopped:
            launch.loop_stopped()
        return out

    def rgba8(self, memory: StateMemory, launch: Launch, out: npt.NDArray[np.uint8]) -> None:
        pack_planes(self, memory, launch, out)

    def _run(self, steady: Values, memory: StateMemory, launch: Launch) -> Reals:
        """Computes the samples of a launch, block by block."""
        height, width = launch.shape
        count = height * width
        out = np.empty((len(self.kernel.outputs), count))
        given = {name: np.broadcast_to(np.asarray(launch.coords[name], np.float64), (count,)) for name in self._lines}
        for start in range(0, count, _BLOCK):
            part = slice(start, min(start + _BLOCK, count))
            lines = {name: line[part] for name, line in given.items()}
            values = PastBlock(steady.machine, lines, steady, self._series.kept, part.stop - part.start)
            for each in self._series.parts:
                each.run(values)
            for row, node in zip(out, self._series.outputs, strict=True):
                row[part] = values[node]
            for place, node in self._series.stored.items():
                store(memory, place, values.row(node))
            memory.advance(values.count)
        return out.reshape(-1, height, width)
