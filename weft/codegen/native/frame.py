"""Writes the function that runs once in a launch: the constant and the frame section, in double precision. It leaves
the scalars that the other functions read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.codegen.base import Kernel
from weft.codegen.native.graph import graph_of
from weft.codegen.native.layout import Head, History, Word
from weft.codegen.native.pixels import LEVELS, Channels
from weft.codegen.native.section import write_nodes
from weft.codegen.native.target import Isa
from weft.codegen.native.types import DOUBLE, LlvmValue, Precision
from weft.codegen.native.writer import ArgumentTable, FunctionWriter
from weft.codegen.values import Node, Scalar, Store, joined
from weft.ir.rates import Rate

FRAME = "frame"
"""The name of the function. It takes the address of the block of arguments."""


class _FrameWriter(FunctionWriter):
    """One number at a time; what is given for the launch stands among the numbers."""

    def _scalar(self, scalar: Scalar) -> LlvmValue:
        place = str(self.places.number(scalar))
        return self._once(scalar, lambda: self.load(self.word(Word.NUMBERS), place, "real"))


def suits_frame(kernel: Kernel) -> bool:
    """Whether the function can be written: what it runs calls nobody."""
    return not any(rate <= Rate.FRAME and node.op == "strand" for rate, node in kernel.walk())


def frame_function(
    kernel: Kernel, isa: Isa, places: ArgumentTable, reals: Precision, channels: Channels | None = None
) -> tuple[list[str], set[str]]:
    """The text of the function, and what it declares. It writes the scalars that `places` was asked for by then, with
    reals in the precision of those who read them; and what all pixels share, if there are `channels`. There is none
    where there is nothing to do."""
    w = _FrameWriter(isa, 1, places, Rate.FRAME, DOUBLE)
    w.block = "body"
    frame = joined(Rate.FRAME, map(kernel.section, (Rate.CONSTANT, Rate.FRAME)))
    w.graph = graph_of(kernel, frame)
    sources = {scalar: _source_in_frame(frame.locals, scalar) for scalar in places.scalars}
    levels = [(factor, _level_source(frame.locals, level)) for factor, level in channels.levels] if channels else []
    roots = [*sources.values(), *(node for _, node in levels), *(store.value for store in frame.stores)]
    write_nodes(w, kernel, frame.nodes, roots)
    for scalar, node in sources.items():
        _leave(w, scalar, w.value(node), reals)
    for store in frame.stores:
        _write_store(w, kernel, store)
    if channels is not None:
        _write_base(w, channels.base, [(factor, w.value(node)) for factor, node in levels])
    if not w.text:
        return [], set()
    body = [f"define void @{FRAME}(ptr noalias %block) #0 {{", "entry:", *w.entry, "  br label %body", "body:", *w.text]
    return [*body, "  ret void", "}"], w.declared


def _source_in_frame(stored: Mapping[int, Node], scalar: Scalar) -> Node:
    """What a scalar is, in these sections."""
    if scalar.source == "local" and isinstance(scalar.key, int):
        return stored[scalar.key]
    return Node("scalar", (), scalar.kind, scalar)


def _level_source(stored: Mapping[int, Node], level: Scalar | float) -> Node:
    return _source_in_frame(stored, level) if isinstance(level, Scalar) else Node("const", (), "real", level)


def _write_base(w: FunctionWriter, base: int, levels: Sequence[tuple[int, LlvmValue]]) -> None:
    """Packs the channels that are the same in all pixels. NaN is 0, as the second operand where it counts."""
    bits = w.bits(base)
    for factor, value in levels:
        level = w.fma(w.as_real(value), w.real(LEVELS), w.real(0.5))
        level = w.lesser(w.greater(level, w.real(0)), w.real(LEVELS))
        bits = w.bits_or(bits, w.bits_mul(w.whole(level), w.bits(factor)))
    place = w.put(f"getelementptr i64, ptr %block, i64 {w.places.field(Word.BASE)}")
    w.do(f"store i64 {w.put(f'zext i32 {w.first(bits)} to i64')}, ptr {place}, align 8")


def _leave(w: FunctionWriter, scalar: Scalar, value: LlvmValue, reals: Precision) -> None:
    """Leaves a scalar for the others."""
    place, address = w.places.scalar(scalar), w.word(Word.SCALARS)
    if scalar.kind == "real" and reals != w.reals:
        single = w.put(f"fptrunc {w.type('real')} {value.text} to {reals.vector(1, 'real')}")
        at = w.put(f"getelementptr {reals.name}, ptr {address}, i64 {place}")
        w.do(f"store {reals.vector(1, 'real')} {single}, ptr {at}, align 4")
        return
    w.store(value, address, str(place if scalar.kind == "real" else place * reals.bytes // 4))


def _write_store(w: FunctionWriter, kernel: Kernel, store: Store) -> None:
    """Stores what a slot that is a number will have been one tick ago."""
    slot = kernel.slot(store.place.slot)
    cell = w.put(f"mul i64 {w.word(Head(slot.key))}, {slot.planes}")
    w.store(w.as_real(w.value(store.value)), w.word(History(slot.key)), w.put(f"add i64 {cell}, {store.place.plane}"))
