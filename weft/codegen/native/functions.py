"""Writes the functions of a kernel: one for its columns, one for its rows, and one for its elements, which threads call
at once and which takes bands of rows until none is left."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.native.layout import Word
from weft.codegen.native.writer import FunctionWriter

COLUMNS, ROWS, ELEMENTS = "columns", "rows", "elements"
"""The names of the functions. Each takes the address of the block of arguments."""


def line_function(w: FunctionWriter, name: str, extent: Word) -> list[str]:
    """A function that runs the text of the writer along a line."""
    with w.writing(w.entry):
        count = w.word(extent)
        # A short line is filled up to a vector.
        is_long = w.put(f"icmp sgt i64 {count}, {w.lanes}")
        length = w.put(f"select i1 {is_long}, i64 {count}, i64 {w.lanes}")
        limit = w.put(f"sub i64 {length}, {w.lanes}")
        w.jump("vector")
    return _defined(w, name, [*w.entry, *_vectors(w, limit, "entry", "done"), "done:", "  ret void"])


def band_function(w: FunctionWriter) -> list[str]:
    """A function that takes bands of rows and runs the text of the writer along each row of them."""
    with w.writing(w.entry):
        width, height, band = (w.word(word) for word in (Word.WIDTH, Word.HEIGHT, Word.BAND))
        taken = w.put(f"getelementptr i64, ptr %block, i64 {w.places.field(Word.NEXT)}")
        limit = w.put(f"sub i64 {width}, {w.lanes}")
        w.jump("band")
    outer = w.outer
    taking = [
        "band:",
        f"  %band.number = atomicrmw add ptr {taken}, i64 1 monotonic",
        f"  %band.first = mul i64 %band.number, {band}",
        f"  %band.full = add i64 %band.first, {band}",
        f"  %band.cut = icmp slt i64 %band.full, {height}",
        f"  %band.end = select i1 %band.cut, i64 %band.full, i64 {height}",
        f"  %band.none = icmp sge i64 %band.first, {height}",
        "  br i1 %band.none, label %done, label %row",
        "row:",
        "  %y = phi i64 [ %band.first, %band ], [ %y.next, %row.end ]",
        f"  %row.start = mul i64 %y, {width}",
        *outer,
        "  br label %vector",
    ]
    leaving = [
        "row.end:",
        "  %y.next = add i64 %y, 1",
        "  %y.left = icmp slt i64 %y.next, %band.end",
        "  br i1 %y.left, label %row, label %band",
        "done:",
        "  ret void",
    ]
    rows = _vectors(w, limit, "row", "row.end", ["  %pixel = add i64 %row.start, %x"])
    return _defined(w, ELEMENTS, [*w.entry, *taking, *rows, *leaving])


def _vectors(w: FunctionWriter, limit: str, before: str, behind: str, first: Sequence[str] = ()) -> list[str]:
    """The loop over a row. The last vector ends where the row does, and so may overlap the one before it."""
    return [
        "vector:",
        f"  %x = phi i64 [ 0, %{before} ], [ %x.next, %{w.block} ]",
        *first,
        *w.text,
        f"  %x.step = add i64 %x, {w.lanes}",
        f"  %x.fits = icmp slt i64 %x.step, {limit}",
        f"  %x.next = select i1 %x.fits, i64 %x.step, i64 {limit}",
        f"  %x.last = icmp eq i64 %x, {limit}",
        f"  br i1 %x.last, label %{behind}, label %vector",
    ]


def _defined(w: FunctionWriter, name: str, body: Sequence[str]) -> list[str]:
    return [f"define void @{name}(ptr noalias %block) #0 {{", "entry:", *body, "}"]
