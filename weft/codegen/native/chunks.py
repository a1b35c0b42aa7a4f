"""Writes the function that goes through a launch of samples, chunk by chunk. All of it is about single numbers: it runs
rarely, and of these LLVM makes machine code fastest."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.native.frame import FRAME
from weft.codegen.native.layout import Word
from weft.codegen.native.stretch_writer import CHUNK, GIVEN
from weft.codegen.native.waves import TIME
from weft.codegen.native.writer import FunctionWriter
from weft.codegen.values import Line

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
