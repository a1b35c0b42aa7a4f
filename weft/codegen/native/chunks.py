"""Writes the function that goes through a launch of samples, chunk by chunk. All of it is about single numbers: it runs
rarely, and of these LLVM makes machine code fastest."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.native.frame import FRAME
from weft.codegen.native.layout import Line, Word
from weft.codegen.native.stretch_writer import CHUNK, GIVEN
from weft.codegen.native.types import DOUBLE
from weft.codegen.native.waves import TIME
from weft.codegen.native.writer import Writer

SERIES = "series"
"""The name of the function. It takes the address of the block of arguments."""

# By how much of itself a time may lie off the line between the first and the last of a chunk: four units in the last
# place.
_UNEVEN = 4 * 2.0**-52


def chunks_function(w: Writer, names: Sequence[str], lanes: int, waves: bool, frame: bool) -> list[str]:
    """The function, which calls those of a chunk by their names, after that of the `frame` if there is one; with
    `waves`, a chunk ends where the time leaps."""
    width = w.word(Word.WIDTH)
    lines = [(w.word(field), field == TIME) for field in w.places.fields if isinstance(field, Line)]
    time = w.word(TIME) if waves else ""
    even = [
        f"  %times = getelementptr double, ptr {time}, i64 %start",
        "  %time = load double, ptr %times, align 8",
        "  %even = call { i64, double } @even(ptr %times, i64 %most)",
        "  %count = extractvalue { i64, double } %even, 0",
        "  %step = extractvalue { i64, double } %even, 1",
    ]
    uneven = ["  %count = add i64 %most, 0", "  %time = fadd double 0.0, 0.0", "  %step = fadd double 0.0, 0.0"]
    return [
        *(_fill_up(lanes) if lines else ()),
        *(_even(lanes) if waves else ()),
        f"define void @{SERIES}(ptr %block) #0 {{",
        "entry:",
        *w.entry,
        *([f"  call void @{FRAME}(ptr %block)"] if frame else ()),
        *(f"  call void @fill_up(ptr {line}, i64 {width}, i1 {str(is_time).lower()})" for line, is_time in lines),
        "  br label %chunk",
        "chunk:",
        "  %start = phi i64 [ 0, %entry ], [ %next, %chunk ]",
        f"  %left = sub i64 {width}, %start",
        f"  %cut = icmp slt i64 %left, {CHUNK}",
        f"  %most = select i1 %cut, i64 %left, i64 {CHUNK}",
        *(even if waves else uneven),
        *(f"  call void @{name}({GIVEN})" for name in names),
        "  %next = add i64 %start, %count",
        f"  %more = icmp slt i64 %next, {width}",
        "  br i1 %more, label %chunk, label %done",
        "done:",
        "  ret void",
        "}",
    ]


def _fill_up(lanes: int) -> list[str]:
    """A function that fills the vector behind the last sample: with the last coordinate, or with times that go on
    evenly."""
    return f"""
define internal void @fill_up(ptr %line, i64 %width, i1 %is_time) #0 {{
entry:
  %at = add i64 %width, -1
  %end = add i64 %width, {lanes}
  %last.place = getelementptr double, ptr %line, i64 %at
  %last = load double, ptr %last.place, align 8
  %several = icmp sgt i64 %width, 1
  %goes.on = and i1 %several, %is_time
  %back = select i1 %goes.on, i64 -1, i64 0
  %before.place = getelementptr double, ptr %last.place, i64 %back
  %before = load double, ptr %before.place, align 8
  %difference = fsub double %last, %before
  %growth = select i1 %goes.on, double %difference, double 0.0
  br label %one
one:
  %place = phi i64 [ %width, %entry ], [ %place.next, %one ]
  %value = phi double [ %last, %entry ], [ %further, %one ]
  %further = fadd double %value, %growth
  %here = getelementptr double, ptr %line, i64 %place
  store double %further, ptr %here, align 8
  %place.next = add i64 %place, 1
  %more = icmp slt i64 %place.next, %end
  br i1 %more, label %one, label %done
done:
  ret void
}}""".splitlines()


def _even(lanes: int) -> list[str]:
    """A function that cuts a chunk to where its times lie evenly: it gives how many samples it then has, and how far
    apart they are."""
    return f"""
declare double @llvm.fabs.f64(double)
define internal {{ i64, double }} @even(ptr %times, i64 %most) #0 {{
entry:
  %first = load double, ptr %times, align 8
  %first.size = call double @llvm.fabs.f64(double %first)
  br label %cut
cut:
  %count = phi i64 [ %most, %entry ], [ %fewer, %uneven ]
  %last = add i64 %count, -1
  %one = icmp eq i64 %last, 0
  br i1 %one, label %alone, label %several
alone:
  ret {{ i64, double }} {{ i64 1, double 0.0 }}
several:
  %parts = sitofp i64 %last to double
  %end.place = getelementptr double, ptr %times, i64 %last
  %end = load double, ptr %end.place, align 8
  %span = fsub double %end, %first
  %step = fdiv double %span, %parts
  %end.size = call double @llvm.fabs.f64(double %end)
  %sizes = fadd double %first.size, %end.size
  %tolerance = fmul double %sizes, {DOUBLE.text(_UNEVEN)}
  br label %compared
compared:
  %k = phi i64 [ 0, %several ], [ %k.next, %compared ]
  %all = phi i1 [ true, %several ], [ %all.next, %compared ]
  %place = getelementptr double, ptr %times, i64 %k
  %given = load double, ptr %place, align 8
  %number = sitofp i64 %k to double
  %distance = fmul double %number, %step
  %expected = fadd double %first, %distance
  %off = fsub double %given, %expected
  %off.size = call double @llvm.fabs.f64(double %off)
  %near = fcmp ole double %off.size, %tolerance
  %all.next = and i1 %all, %near
  %k.next = add i64 %k, 1
  %k.more = icmp slt i64 %k.next, %count
  br i1 %k.more, label %compared, label %judged
judged:
  br i1 %all.next, label %found, label %uneven
uneven:
  %half = lshr i64 %count, 1
  %whole = and i64 %half, {-lanes}
  %none = icmp eq i64 %whole, 0
  %fewer = select i1 %none, i64 1, i64 %whole
  br label %cut
found:
  %with.count = insertvalue {{ i64, double }} poison, i64 %count, 0
  %both = insertvalue {{ i64, double }} %with.count, double %step, 1
  ret {{ i64, double }} %both
}}""".splitlines()
