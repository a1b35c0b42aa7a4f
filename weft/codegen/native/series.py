"""From the kernel of a sound to a module of LLVM's language: a function that computes a launch of any number of samples,
chunk by chunk, in double precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.codegen.base import Kernel
from weft.codegen.native.frame import FRAME, frame_function
from weft.codegen.native.layout import Line, SeriesLayout, Word
from weft.codegen.native.module import is_huge
from weft.codegen.native.reader import read
from weft.codegen.native.spread import write_spread
from weft.codegen.native.stretch_writer import CHUNK, Scratch, StretchWriter, write_vectors
from weft.codegen.native.stretches import stretches, with_waves
from weft.codegen.native.target import Isa
from weft.codegen.native.turn import write_turn
from weft.codegen.native.types import DOUBLE
from weft.codegen.native.waves import TIME
from weft.codegen.native.writer import Places, Writer
from weft.ir.rates import Rate

SERIES = "series"
"""The name of the function. It takes the address of the block of arguments."""

# What all functions over a chunk take: the block, the first sample, how many there are, the time of the first, and how
# far apart they are.
_CALL = "ptr %block, i64 %start, i64 %count, double %time, double %step"

# By how many units in its last place a time may lie off the line between the first and the last of a chunk.
_UNEVEN = 4 * 2.0**-52


@dataclass(frozen=True, slots=True)
class SeriesModule:
    """The text of a module, and the interface of its function."""

    text: str
    layout: SeriesLayout


def suits_series(kernel: Kernel) -> bool:
    """Whether a kernel can become a series: all it changes by is the sample, and it calls nobody."""
    rates = {rate for _, rate in kernel.coords} | {section.rate for section in kernel.sections}
    calls = any(instruction.op == "LOAD_STRAND" for _, _, instruction in kernel.walk())
    images = any(slot.image for slot in kernel.slots)
    is_line = rates.isdisjoint({Rate.COLUMN, Rate.ROW}) and not is_huge(kernel)
    return kernel.sweep == "grid" and kernel.tick == "element" and is_line and not calls and not images


def emit_series(kernel: Kernel, isa: Isa, lanes: int) -> SeriesModule:
    """The module of a kernel that is `suits_series`, for vectors of so many lanes, a power of two up to `CHUNK`."""
    places, scratch = Places(), Scratch()
    graph = with_waves(read(kernel, Rate.ELEMENT))
    parts = stretches(graph, [store.value for store in graph.stores])
    functions: list[str] = []
    declared = set[str]()
    calls: list[str] = []
    for number, part in enumerate(parts):
        w = StretchWriter(isa, 1 if part.way == "turn" else lanes, places, scratch)
        match part.way:
            case "vectors":
                write_vectors(w, kernel, graph, part)
            case "spread":
                write_spread(w, kernel, graph, part)
            case "turn":
                write_turn(w, kernel, graph, part, lanes)
        name = f"{part.way}{number}"
        functions += [
            f"define internal void @{name}({_CALL}) #0 {{", "entry:", *w.entry, "  br label %begin",
            "begin:", *w.text, "  ret void", "}",
        ]  # fmt: skip
        calls.append(f"  call void @{name}(ptr %block, i64 %start, i64 %count, double %time, double %step)")
        declared |= w.declared
    lines = [field for field in places.fields if isinstance(field, Line)]
    frame, in_frame = frame_function(kernel, isa, places, DOUBLE)
    outer = Writer(isa, lanes, places, Rate.ELEMENT, DOUBLE)
    functions += _outer_function(outer, calls, lines, any(part.has_waves for part in parts))
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{isa.bits}" }}'
    return SeriesModule(
        "\n".join([*sorted(declared | in_frame | outer.declared), *functions, *frame, attributes, ""]),
        SeriesLayout(places.fields, places.scalars, places.numbers, lanes, scratch.size),
    )


def _outer_function(w: Writer, calls: Sequence[str], lines: Sequence[Line], waves: bool) -> list[str]:
    """The function that goes through a launch chunk by chunk."""
    w.block = "entry"
    width = w.word(Word.WIDTH)
    with w.writing(w.entry):
        w.do(f"call void @{FRAME}(ptr %block)")
        for line in lines:
            _fill_up(w, w.word(line), width, line == TIME)
    with w.writing(w.text):
        left = w.put(f"sub i64 {width}, %start")
        is_cut = w.put(f"icmp slt i64 {left}, {CHUNK}")
        w.do(f"%most = select i1 {is_cut}, i64 {left}, i64 {CHUNK}")
        count, time, step = _even(w) if waves else ("%most", "0.0", "0.0")
    stripped = [call.replace("%count", count).replace("%time", time).replace("%step", step) for call in calls]
    return [
        f"define void @{SERIES}(ptr %block) #0 {{", "entry:", *w.entry, "  br label %chunk",
        "chunk:", f"  %start = phi i64 [ 0, %entry ], [ %next, %{w.block if waves else 'chunk'} ]", *w.text,
        *stripped, f"  %next = add i64 %start, {count}", f"  %more = icmp slt i64 %next, {width}",
        "  br i1 %more, label %chunk, label %done", "done:", "  ret void", "}",
    ]  # fmt: skip


def _fill_up(w: Writer, address: str, width: str, is_time: bool) -> None:
    """Fills the vector behind the last sample: with the last coordinate, or with a time that goes on evenly."""
    last = w.put(f"sub i64 {width}, 1")
    value = w.load_splat(address, last, "real")
    if is_time:
        has_two = w.put(f"icmp sgt i64 {width}, 1")
        before = w.load_splat(address, w.put(f"select i1 {has_two}, i64 {w.put(f'sub i64 {width}, 2')}, i64 {last}"), "real")
        further = w.each([w.reals.text(lane + 1.0) for lane in range(w.lanes)], "real")
        value = w.fma(further, w.sub(value, before), value)
    w.store(value, address, width)


def _even(w: Writer) -> tuple[str, str, str]:
    """Cuts a chunk to where its times lie evenly: gives how many samples it then has, the first time, and the step."""
    address = w.word(TIME)
    first = w.put(f"load double, ptr {w.element(address, '%start', 'real')}, align 8")
    w.jump("even")
    w.text += [
        "even:",
        "  %count = phi i64 [ %most, %chunk ], [ %fewer, %uneven ]",
        "  %last = add i64 %count, -1",
        "  %parts = sitofp i64 %last to double",
        "  %at = add i64 %start, %last",
    ]
    end = w.put(f"load double, ptr {w.element(address, '%at', 'real')}, align 8")
    span = w.put(f"fsub double {end}, {first}")
    quotient = w.put(f"fdiv double {span}, %parts")
    is_one = w.put("icmp eq i64 %last, 0")
    w.do(f"%step = select i1 {is_one}, double 0.0, double {quotient}")
    w.branch(is_one, "go", "compare")
    w.label("compare")
    tolerance = w.mul(w.greater(w.abs(w.splat(first, "real")), w.abs(w.splat(end, "real"))), w.real(_UNEVEN))
    start, apart = w.splat(first, "real"), w.splat("%step", "real")
    lanes = w.each([w.reals.text(float(lane)) for lane in range(w.lanes)], "real")
    w.jump("compared")
    truths = w.type("truth")
    w.label("compared")
    w.text += [
        "  %k = phi i64 [ 0, %compare ], [ %k.next, %compared ]",
        f"  %good = phi {truths} [ splat (i1 true), %compare ], [ %good.next, %compared ]",
    ]
    given = w.load(address, w.put("add i64 %start, %k"), "real")
    place = w.add(w.splat(w.put("sitofp i64 %k to double"), "real"), lanes)
    near = w.le(w.abs(w.sub(given, w.fma(place, apart, start))), tolerance)
    w.do(f"%good.next = and {truths} %good, {near.text}")
    w.text += [
        f"  %k.next = add i64 %k, {w.lanes}",
        "  %k.more = icmp slt i64 %k.next, %count",
        "  br i1 %k.more, label %compared, label %judged",
        "judged:",
        f"  %good.bits = bitcast {truths} %good.next to i{w.lanes}",
        f"  %good.all = icmp eq i{w.lanes} %good.bits, -1",
        "  br i1 %good.all, label %go, label %uneven",
        "uneven:",
        "  %half = lshr i64 %count, 1",
        f"  %whole = and i64 %half, {-w.lanes}",
        "  %none = icmp eq i64 %whole, 0",
        "  %fewer = select i1 %none, i64 1, i64 %whole",
        "  br label %even",
    ]
    w.label("go")
    return "%count", first, "%step"
