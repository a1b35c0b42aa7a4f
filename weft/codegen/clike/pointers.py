"""Functions that read images and pictures through pointers, for languages whose pointers name their memory."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from weft.codegen.clike.prelude import functions_in

_BETWEEN = """\
// An item and another one, by the weight of the latter; the first alone if that is 0.
ITEM TWO(ITEM before, ITEM after, float weight) {
    return weight > 0.0 ? before + (after - before) * weight : before;
}

// WHAT between the four pixels around a place; clamped at the edge.
ITEM BETWEEN(MEMORY ITEM *image, uint columns, uint rows, float x, float y) {
    float across = place(x, columns);
    float down = place(y, rows);
    uint left = uint(across);
    uint right = left + 1 < columns ? left + 1 : left;
    MEMORY ITEM *upper = image + uint(down) * columns;
    MEMORY ITEM *lower = uint(down) + 1 < rows ? upper + columns : upper;
    ITEM above = TWO(upper[left], upper[right], across - float(left));
    ITEM below = TWO(lower[left], lower[right], across - float(left));
    return TWO(above, below, down - floor(down));
}"""

_ALONG_AN_AXIS = """\
// A row of an image between two pixels, and a column; clamped at the edge.
float between_columns(MEMORY float *row, uint columns, float x) {
    float across = place(x, columns);
    uint left = uint(across);
    uint right = left + 1 < columns ? left + 1 : left;
    return between_two(row[left], row[right], across - float(left));
}

float between_rows(MEMORY float *column, uint columns, uint rows, float y) {
    float down = place(y, rows);
    MEMORY float *upper = column + uint(down) * columns;
    MEMORY float *lower = uint(down) + 1 < rows ? upper + columns : upper;
    return between_two(*upper, *lower, down - floor(down));
}"""

_FETCHED = """\
// A sample of a sound by its number, left and right; 0 where there is none.
float2 fetched(MEMORY float2 *sound, uint samples, float number) {
    float given = number_or(number, -1.0);
    bool is_there = given >= 0.0 && given < float(samples);
    return is_there ? sound[uint(is_there ? given : 0.0)] : float2(0.0, 0.0);
}"""


def reading_functions(memory: str) -> Mapping[str, str]:
    """`between`, `between_columns` and `between_rows` for images, `between_pixels` for pictures and `fetched` for
    sounds. `memory` is what stands before the type of items that are only read."""
    four = {"between": ("between_two", "float", "An image"), "between_pixels": ("two_pixels", "float4", "A picture")}
    texts = [
        _BETWEEN.replace("BETWEEN", name).replace("TWO", two).replace("ITEM", item).replace("WHAT", what)
        for name, (two, item, what) in four.items()
    ]
    written = "\n\n".join([*texts, _ALONG_AN_AXIS, _FETCHED]).replace("MEMORY", memory)
    return MappingProxyType(functions_in(written))
