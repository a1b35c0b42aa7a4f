"""From a kernel to a module of LLVM IR: its functions for the launch prologue, for lines, and for elements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from weft.codegen.kernel import Kernel
from weft.codegen.native.dataflow import Graph, affine, costs, interval, most_alive, parallelism
from weft.codegen.native.section import write_nodes
from weft.codegen.native.target import (
    DOUBLE, SINGLE, Head, History, ImageCell, Isa, Layout, LlvmValue, PictureWord, Precision, Word
)
from weft.codegen.native.writer import (
    COLUMNS, ELEMENTS, QUICK, ROWS, USUAL, WHOLE, ArgumentTable, FunctionWriter, band_function, function, line_function,
    reciprocal, whole_function
)
from weft.codegen.open_numbers import NumberUse, Rule
from weft.codegen.values import Line, Node, Scalar, Section, joined
from weft.ir.rates import Rate

# External reads. Machine code cannot read strands of other subgraphs. Where a column or a row section reads them, the
# caller computes the whole section beforehand, a line at a time.

# Operations that only machine code can compute; a section with one cannot be left to the caller.
_BOUND = frozenset({"state", "sample", "picture", "fetch", "loop"})


def sections_that_read(kernel: Kernel) -> frozenset[Rate]:
    """The sections by column and by row that read strands of other subgraphs."""
    if not kernel.strands:
        return frozenset()
    return frozenset(rate for rate, node in kernel.walk() if node.op == "strand" and rate > Rate.FRAME)


def reads_strands(kernel: Kernel) -> bool:
    """Whether the caller can do the external reads of a kernel, if it has any."""
    rates = sections_that_read(kernel)
    bound = any(node.op in _BOUND for rate in rates for node in kernel.section(rate).walk())
    return Rate.ELEMENT not in rates and not bound


# Packed pixels: four bytes, red first; NaN is 0, the rest is clamped to 0…1, a half rounds up.
#
# A channel is packed as rarely as it changes: once a launch (by the launch prologue or the caller), once a column or
# row, or at every element. The pixel is the bitwise or of these parts.

LEVELS = 255
_OPAQUE = LEVELS << 24
_BYTE = 8


@dataclass(slots=True)
class Channels:
    """The channels of a picture by where they are packed, each with its factor in a pixel: outputs that are the same in
    a launch (`levels`), in lines, and of the element section. `base` are the constant bits: an opaque alpha."""

    base: int
    levels: list[tuple[int, Scalar | float]] = field(default_factory=list)
    lines: dict[Rate, list[tuple[int, Line]]] = field(default_factory=dict)
    elements: list[Level] = field(default_factory=list)

    @property
    def opaque(self) -> bool:
        return bool(self.base)

    def line(self, rate: Rate) -> Line | None:
        """The line of packed parts of pixels that change by column or by row, if there is one."""
        return Line("pixels", rate.name, rate, "u32") if rate in self.lines else None


def plan_channels(outputs: Sequence[Node]) -> Channels:
    """Where each output of a picture is packed. One output is a gray, three are red, green and blue, a fourth is alpha.
    Raises ValueError for another number of outputs."""
    if len(outputs) not in (1, 3, 4):
        raise ValueError(f"a picture has 1, 3 or 4 outputs, not {len(outputs)}")
    plan = Channels(0 if len(outputs) == 4 else _OPAQUE)
    for at, node in enumerate(outputs):
        factor = 0x010101 if len(outputs) == 1 else 1 << _BYTE * at
        match node.op:
            case "const":
                plan.levels.append((factor, float(node.attr)))
            case "scalar":
                plan.levels.append((factor, node.attr))
            case "line":
                plan.lines.setdefault(node.attr.rate, []).append((factor, node.attr))
            case _:
                plan.elements.append(Level.of(factor, node, plan.opaque))
    return plan


@dataclass(frozen=True, slots=True)
class Level:
    """A channel of a pixel: `scale · base + offset`, rounded down, is its level of 0…255. It has to be clamped unless
    its interval shows that it is within this range."""

    factor: int
    base: Node
    scale: float
    offset: float
    clamped: bool

    @classmethod
    def of(cls, factor: int, node: Node, opaque: bool) -> Level:
        """The level of a value. The final scale and offset of the value are merged with those of the level."""
        found = affine(node)
        low, high = interval(node)
        # Without clamping, NaN becomes a number with only its highest bit set, which would reach alpha alone.
        clamped = not (opaque and low > _LOWEST and high < _HIGHEST)
        return cls(factor, found.base, found.scale * LEVELS, found.offset * LEVELS + 0.5, clamped)


# The limits of values whose levels still round to 0 and to 255, with some margin for earlier rounding.
_LOWEST, _HIGHEST = -0.001, 1.001


def pack(w: FunctionWriter, levels: Sequence[Level]) -> LlvmValue:
    """The bits of some channels together. Their bases have been computed."""
    return reduce(w.bits_or, (_packed(w, each) for each in levels))


def _packed(w: FunctionWriter, channel: Level) -> LlvmValue:
    level = w.fma(w.as_real(w.value(channel.base)), w.real(channel.scale), w.real(channel.offset))
    if channel.clamped:
        level = _clamped(w, level)
    level, factor = w.whole(level), channel.factor
    if factor.bit_count() > 1:
        return w.bits_mul(level, w.bits(factor))
    return w.bits_shl(level, w.bits(factor.bit_length() - 1)) if factor > 1 else level


def _clamped(w: FunctionWriter, level: LlvmValue) -> LlvmValue:
    """NaN becomes 0: `greater` then returns its second operand."""
    return w.lesser(w.greater(level, w.real(0)), w.real(LEVELS))


# Modules.


@dataclass(frozen=True, slots=True)
class Module:
    """The text of a module, and the interface of its functions."""

    text: str
    layout: Layout


# Without a frame pointer, LLVM cannot align the stack to vectors any more when it begins to keep values there, and each
# of them would be in two lines of the cache.
_ALIGNED = '"frame-pointer"="all"'


def module_of(
    text: Sequence[str], declared: Iterable[str], isa: Isa, table: ArgumentTable, functions: tuple[str, ...],
    **facts: Any,
) -> Module:  # fmt: skip
    """A module of these functions, and of the intrinsics that they call. `facts` are more fields of its layout."""
    given = f'nounwind "prefer-vector-width"="{isa.bits}" {_ALIGNED}'
    attributes = f"attributes {USUAL} = {{ {given} }}\nattributes {QUICK} = {{ {given} noinline optnone }}"
    return Module("\n".join([*sorted(declared), *text, attributes, ""]), table.layout(functions, **facts))


# The launch prologue: a function that computes the constant and the frame section, in double precision, and leaves the
# scalars that the other functions read.

FRAME = "frame"
"""The name of the function. It takes the address of the block of arguments."""

IN_ORDER = (FRAME, COLUMNS, ROWS, ELEMENTS)
"""The functions of a picture, in the order in which they run."""


class _FrameWriter(FunctionWriter):
    """Writes scalar code. The scalars that it reads are among the numbers that the caller passes."""

    is_scalar = True

    def _scalar(self, scalar: Scalar) -> LlvmValue:
        place = str(self.table.numbers[scalar])
        return self._hoist(scalar, lambda: self.load(self.word(Word.NUMBERS), place, "float"))


def can_write_frame(kernel: Kernel) -> bool:
    """Whether the function can be written: its sections have no external reads."""
    return not kernel.strands or not any(rate <= Rate.FRAME and node.op == "strand" for rate, node in kernel.walk())


def frame_function(
    kernel: Kernel, isa: Isa, table: ArgumentTable, floats: Precision, channels: Channels | None = None
) -> tuple[list[str], set[str]]:
    """The text of the function, and its declarations. The function leaves the scalars that `table` has by then, with
    floats in the precision `floats` of their readers, and the bits that all pixels share, if there are `channels`. The
    text is empty if there is nothing to compute."""
    frame = joined(Rate.FRAME, map(kernel.section, (Rate.CONSTANT, Rate.FRAME)))
    w = _FrameWriter(kernel, Graph(kernel, frame), isa, 1, table, Rate.FRAME, DOUBLE)
    w.block = "body"

    def source(given: Scalar | float) -> Node:
        """The value of a scalar, or of a level, in these sections."""
        if not isinstance(given, Scalar):
            return Node("const", (), "float", given)
        return frame.locals[int(given.key)] if given.source == "local" else Node("scalar", (), given.kind, given)

    computed = [each for each in table.scalars if isinstance(each, Scalar) and each.source != "number"]
    sources = {scalar: source(scalar) for scalar in computed}
    levels = [(factor, source(level)) for factor, level in channels.levels] if channels else []
    roots = [*sources.values(), *(node for _, node in levels), *(store.value for store in frame.stores)]
    write_nodes(w, frame.nodes, roots)
    for scalar, node in sources.items():
        _leave(w, scalar, w.value(node), floats)
    for store in frame.stores:
        slot, plane = store.place
        cell = w.put(f"mul i64 {w.word(Head(slot))}, {kernel.slot(slot).planes}")
        w.store(w.as_real(w.value(store.value)), w.word(History(slot)), w.put(f"add i64 {cell}, {plane}"))
    if channels is not None:
        _write_base(w, channels.base, [(factor, w.value(node)) for factor, node in levels])
    if not w.text:
        return [], set()
    body = [*w.entry, "  br label %body", "body:", *w.text, "  ret void"]
    return function(FRAME, body, QUICK), w.declared


def _write_base(w: FunctionWriter, base: int, levels: Sequence[tuple[int, LlvmValue]]) -> None:
    """Packs the channels that are the same in all pixels."""
    bits = w.bits(base)
    for factor, value in levels:
        level = _clamped(w, w.fma(w.as_real(value), w.real(LEVELS), w.real(0.5)))
        bits = w.bits_or(bits, w.bits_mul(w.whole(level), w.bits(factor)))
    place = w.place(Word.BASE)
    w.do(f"store i64 {w.put(f'zext i32 {w.lane(bits)} to i64')}, ptr {place}, align 8")


def _leave(w: FunctionWriter, scalar: Scalar, value: LlvmValue, floats: Precision) -> None:
    """Stores a scalar for the other functions."""
    place, address = w.table.scalars[scalar], w.word(Word.SCALARS)
    if scalar.kind == "float" and floats != w.floats:
        single = w.put(f"fptrunc {w.types['float']} {value.text} to {floats.name}")
        at = w.put(f"getelementptr {floats.name}, ptr {address}, i64 {place}")
        w.do(f"store {floats.name} {single}, ptr {at}, align 4")
    else:
        w.store(value, address, str(place if scalar.kind == "float" else place * floats.bytes // 4))


# A module of the launch prologue alone, for devices that compute the rest by themselves. It takes numbers in double
# precision, and leaves the scalars in 8 bytes each: floats, or whole numbers in the first 4.


def prologue_length(kernel: Kernel) -> int:
    """The number of values that are computed once a launch."""
    return sum(len(section) for section in kernel.sections if section.rate <= Rate.FRAME)


def emit_prologue(kernel: Kernel, isa: Isa) -> Module | None:
    """The module of a kernel; None if there is nothing to compute, or if the prologue has external reads, or reads
    images that a device remembers."""
    if not can_write_frame(kernel):
        return None
    table = ArgumentTable()
    later = [given for section in kernel.sections if section.rate > Rate.FRAME for given in section.given()]
    read = sorted({int(each.key) for each in later if isinstance(each, Scalar) and each.source == "local"})
    table.scalars.update((Scalar("local", number, kernel.locals[number].type), at) for at, number in enumerate(read))
    text, declared = frame_function(kernel, isa, table, DOUBLE)
    if not text or not all(isinstance(field, (Word, Head, History, PictureWord)) for field in table.fields):
        return None
    return module_of(text, declared, isa, table, (FRAME,))


# The module of a whole kernel.

# The function of each rate of lines, and the word that holds their length.
_LINES = {Rate.COLUMN: (COLUMNS, Word.WIDTH), Rate.ROW: (ROWS, Word.HEIGHT)}

# Several registers for each value keep the arithmetic units busy while results are pending, unless enough values can be
# computed at once anyway. Where few values are alive, they also share what is loaded for all lanes. But LLVM takes
# longer with each.
_FEW_AT_ONCE, _MOST_IN_FOUR = 5.0, 1500
_FEW_ALIVE, _SMALL = 9, 400
_SOME_AT_ONCE, _MOST_IN_TWO = {512: 6.0}, 1180
_SOME_IN_NARROW = 8.5


def registers(section: Section, isa: Isa) -> int:
    """The number of registers for each value of the elements of a picture in the second tier."""
    values, at_once = len(section), parallelism(section.nodes)
    waits = at_once <= _FEW_AT_ONCE and values * at_once <= _MOST_IN_FOUR
    # The more lanes a vector has, the less often do neighbours read neighbours.
    if not any(map(_is_read, section.walk())) and (waits or (values <= _SMALL and most_alive(section) <= _FEW_ALIVE)):
        return 4
    some = _SOME_AT_ONCE.get(isa.bits, _SOME_IN_NARROW)
    return 2 if values <= _SMALL or (at_once <= some and values <= _MOST_IN_TWO) else 1


def _is_read(node: Node) -> bool:
    """Whether a value is read from a place of its own for each lane."""
    return node.op in ("sample", "picture", "fetch") or (node.op == "state" and node.args[0].op != "const")


# The operations for which it makes little difference whether an operand is a constant.
_OPEN = frozenset({"add", "sub", "mul", "lt", "le", "gt", "ge", "select"})
_OPEN_IN_PROLOGUE = _OPEN | {"div"}


def decides_code(isa: Isa) -> Rule:
    """The rule of the machine code of pictures. A quotient is a sum of two products, except in the launch prologue."""

    def decides(use: NumberUse, value: float) -> bool:
        if use.in_prologue or use.in_level or (use.op, use.place) != ("div", 1):
            return use.in_level or use.op not in (_OPEN_IN_PROLOGUE if use.in_prologue else _OPEN)
        parts = reciprocal(value, SINGLE) if isa.fused else None
        return parts is None or not parts.rest

    return decides


# Where elements take nearly all the time, lines are compiled quickly.
_QUICK_SHARE = 4


def emit(kernel: Kernel, packed: bool, isa: Isa, lanes: int, frame: bool = False) -> Module:
    """The module of the kernel of a picture, with outputs as planes or `packed` as pixels, for vectors of `lanes`. With
    `frame`, it has a function for the launch prologue, if there can be one.

    Raises ValueError if the outputs cannot be packed.
    """
    table, reading = ArgumentTable(), sections_that_read(kernel)
    section = kernel.section(Rate.ELEMENT)
    work, channels = costs(section.nodes), plan_channels(section.outputs) if packed else None
    elements = FunctionWriter(kernel, Graph(kernel, section), isa, lanes, table, Rate.COLUMN)
    _write_elements(elements, channels)
    text, declared, functions = band_function(elements), set(elements.declared), [ELEMENTS]
    for rate, (name, extent) in _LINES.items():
        section = kernel.section(rate)
        writer = FunctionWriter(kernel, Graph(kernel, section), isa, lanes, table, rate)
        if _write_line(writer, section, channels, rate in reading):
            attributes = QUICK if costs(section.nodes) < _QUICK_SHARE * work else USUAL
            text += line_function(writer, name, extent, attributes)
            declared |= writer.declared
            functions.append(name)
    if frame and can_write_frame(kernel) and not reading:
        in_frame, declared_in_frame = frame_function(kernel, isa, table, SINGLE, channels)
        text += in_frame
        declared |= declared_in_frame
        if in_frame:
            functions.append(FRAME)
    text += whole_function(name for name in IN_ORDER if name in functions)
    functions.append(WHOLE)
    base, levels = (channels.base, tuple(channels.levels)) if channels else (0, ())
    return module_of(
        text, declared, isa, table, tuple(functions), lanes=lanes, work=work, base=base, levels=levels,
        sections_that_read=reading,
    )  # fmt: skip


def _write_elements(w: FunctionWriter, channels: Channels | None) -> None:
    """Writes the element section, and stores its state and its planes or pixels."""
    section = w.graph.section
    roots = [store.value for store in section.stores]
    roots += [level.base for level in channels.elements] if channels else section.outputs
    write_nodes(w, section.nodes, roots)
    for store in section.stores:
        w.store(w.value(store.value), w.word(ImageCell(*store.place, 0)), "%pixel")
    if channels is None:
        planes = [w.value(node) for node in section.outputs]
        size = w.in_entry(lambda: w.put(f"mul i64 {w.word(Word.WIDTH)}, {w.word(Word.HEIGHT)}"))
        for number, value in enumerate(planes):
            with w.writing(w.entry):
                plane = w.element(w.word(Word.OUT), w.put(f"mul i64 {size}, {number}"))
            w.store(w.as_real(value), plane, "%pixel")
        return
    parts = [w.value(Node("line", (), "u32", line)) for line in map(channels.line, _LINES) if line is not None]
    if channels.elements:
        parts.append(pack(w, channels.elements))
    if not channels.lines:
        # Otherwise the lines include it.
        parts.append(w.word_as_bits(Word.BASE))
    w.store(reduce(w.bits_or, parts), w.word(Word.OUT), "%pixel")


def _write_line(w: FunctionWriter, section: Section, channels: Channels | None, is_given: bool) -> bool:
    """Writes the locals of a section by column or row that elements read, and packs the parts of pixels that change as
    rarely. Returns False if there is nothing to write. If the section `is_given`, the caller computes its locals."""
    rate = section.rate
    lines = (f for f in w.table.fields if isinstance(f, Line) and f.rate == rate and f.source == "local")
    wanted = [] if is_given else list(lines)
    packed = channels.line(rate) if channels else None
    if not wanted and packed is None:
        return False

    def source(line: Line) -> Node:
        """The value of a line."""
        if line.source == "local" and not is_given:
            return section.locals[int(line.key)]
        return Node("line", (), line.kind, line)

    sources = channels.lines[rate] if channels and packed else []
    levels = [Level.of(factor, source(line), channels.opaque) for factor, line in sources] if channels else []
    nodes = {line: source(line) for line in wanted}
    write_nodes(w, section.nodes, [*nodes.values(), *(level.base for level in levels)])
    for line, node in nodes.items():
        w.store(w.value(node), w.word(line), "%x")
    if packed:
        w.store(w.bits_or(pack(w, levels), w.word_as_bits(Word.BASE)), w.word(packed), "%x")
    return True
