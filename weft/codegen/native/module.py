"""From a kernel to a module of LLVM's language, and what its functions find in the block of arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

from weft.codegen.base import Kernel
from weft.codegen.native.sections_that_read import sections_that_read, reads_strands
from weft.codegen.native.costs import costs
from weft.codegen.native.frame import frame_function, suits_frame
from weft.codegen.native.functions import COLUMNS, ROWS, band_function, line_function
from weft.codegen.native.graph import Graph, graph_of
from weft.codegen.native.layout import Layout, Word
from weft.codegen.native.memory import write_store
from weft.codegen.native.pixels import Channels, Level, pack, plan_channels
from weft.codegen.native.section import write_nodes
from weft.codegen.native.target import Isa
from weft.codegen.native.types import SINGLE, LlvmValue
from weft.codegen.native.writer import ArgumentTable, FunctionWriter
from weft.codegen.values import Line, Node, Section
from weft.ir.rates import Rate

# What each rate of line is called, and how long it is.
_LINES = {Rate.COLUMN: (COLUMNS, Word.WIDTH), Rate.ROW: (ROWS, Word.HEIGHT)}


@dataclass(frozen=True, slots=True)
class Module:
    """The text of a module, and the interface of its functions."""

    text: str
    layout: Layout


# Of more values, LLVM makes machine code in seconds, which is too long on stage.
_MOST_VALUES = 2500

# These take LLVM as long as so many others.
_LONG_CALLS, _LONG = frozenset({"exp", "exp2", "log", "log2", "power", "atan2"}), 7

# Of more, the second tier takes so long that a save would have to wait for it.
_MOST_TO_IMPROVE = 1180


def suits(kernel: Kernel) -> bool:
    """Whether a kernel should become a module: that of a picture whose elements need nothing of each other, and ask
    nobody, unless it is huge."""
    by_element = kernel.tick == "element" or any(rate == Rate.ELEMENT for _, rate in kernel.coords)
    return kernel.sweep == "grid" and not by_element and not is_huge(kernel) and reads_strands(kernel)


def is_huge(kernel: Kernel) -> bool:
    """Whether it would take too long to make machine code of a kernel."""
    return sum(map(_length, kernel.sections)) > _MOST_VALUES


def _length(section: Section) -> int:
    """The values of a section, as far as they take LLVM alike."""
    return sum(_LONG if node.op in _LONG_CALLS else 1 for node in section.walk())


def is_improvable(kernel: Kernel) -> bool:
    """Whether a kernel that `suits` is small enough for the second tier."""
    return sum(map(len, kernel.sections)) <= _MOST_TO_IMPROVE


def emit(kernel: Kernel, packed: bool, isa: Isa, lanes: int, frame: bool = False) -> Module:
    """The module of a kernel that `suits`, with outputs as planes or `packed` as pixels, for vectors of so many lanes;
    with a function for what comes once a `frame`, if there can be one.

    Raises ValueError if the outputs cannot be packed.
    """
    places = ArgumentTable()
    graph = graph_of(kernel, kernel.section(Rate.ELEMENT))
    channels = plan_channels(graph.outputs) if packed else None
    elements = FunctionWriter(isa, lanes, places, Rate.COLUMN)
    elements.graph = graph
    _write_elements(elements, kernel, graph, channels)
    writers, functions, sections = [elements], band_function(elements), set[Rate]()
    for rate, (name, extent) in _LINES.items():
        writer = FunctionWriter(isa, lanes, places, rate)
        if _write_line(writer, kernel, rate, channels):
            functions += line_function(writer, name, extent)
            writers.append(writer)
            sections.add(rate)
    declared = set[str]().union(*(writer.declared for writer in writers))
    frame = frame and suits_frame(kernel) and not sections_that_read(kernel)
    if frame:
        text, in_frame = frame_function(kernel, isa, places, SINGLE, channels)
        functions += text
        declared |= in_frame
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{isa.bits}" }}'
    return Module(
        "\n".join([*sorted(declared), *functions, attributes, ""]),
        Layout(
            places.fields, places.scalars, lanes, costs(graph.nodes), Rate.COLUMN in sections, Rate.ROW in sections,
            channels.base if channels else 0, tuple(channels.levels) if channels else (), places.numbers, frame,
            sections_that_read(kernel),
        ),
    )  # fmt: skip


def _write_elements(w: FunctionWriter, kernel: Kernel, graph: Graph, channels: Channels | None) -> None:
    roots = [store.value for store in graph.stores]
    roots += [level.base for level in channels.elements] if channels else graph.outputs
    write_nodes(w, kernel, graph.nodes, roots)
    for store in graph.stores:
        write_store(w, store)
    if channels is None:
        _store_planes(w, [w.value(node) for node in graph.outputs])
    else:
        _store_pixels(w, channels)


def _store_planes(w: FunctionWriter, outputs: Sequence[LlvmValue]) -> None:
    with w.writing(w.entry):
        size = w.put(f"mul i64 {w.word(Word.WIDTH)}, {w.word(Word.HEIGHT)}")
    for number, value in enumerate(outputs):
        with w.writing(w.entry):
            plane = w.element(w.word(Word.OUT), w.put(f"mul i64 {size}, {number}"))
        w.store(w.as_real(value), plane, "%pixel")


def _store_pixels(w: FunctionWriter, channels: Channels) -> None:
    parts = [w.value(Node("line", (), "bits", line)) for line in map(channels.line, _LINES) if line is not None]
    packed = pack(w, channels.elements)
    if packed is not None:
        parts.append(packed)
    if not channels.lines:
        # Else the lines hold it already.
        parts.append(w.word_as_bits(Word.BASE))
    together = reduce(w.bits_or, parts)
    w.store(together, w.word(Word.OUT), "%pixel")


def _write_line(w: FunctionWriter, kernel: Kernel, rate: Rate, channels: Channels | None) -> bool:
    """Writes what the elements read of a rarer section, and packs what of the pixels changes as rarely; False if there
    is nothing to write."""
    given = rate in sections_that_read(kernel)
    lines = (f for f in w.places.fields if isinstance(f, Line) and f.rate == rate and f.source == "local")
    wanted = [] if given else list(lines)
    packed = channels.line(rate) if channels else None
    if not wanted and packed is None:
        return False
    section = kernel.section(rate)
    graph = graph_of(kernel, section)
    w.graph = graph
    sources = channels.lines[rate] if channels and packed else []
    source = _given if given else partial(_source, section)
    levels = [Level.of(factor, source(line), channels.opaque) for factor, line in sources] if channels else []
    nodes = {line: source(line) for line in wanted}
    write_nodes(w, kernel, graph.nodes, [*nodes.values(), *(level.base for level in levels)])
    for line, node in nodes.items():
        w.store(w.value(node), w.word(line), "%x")
    if packed:
        bits = pack(w, levels)
        assert bits is not None
        w.store(w.bits_or(bits, w.word_as_bits(Word.BASE)), w.word(packed), "%x")
    return True


def _source(section: Section, line: Line) -> Node:
    """What a line holds, in the section that computes it."""
    if line.source == "local" and isinstance(line.key, int):
        return section.locals[line.key]
    return _given(line)


def _given(line: Line) -> Node:
    return Node("line", (), line.kind, line)
