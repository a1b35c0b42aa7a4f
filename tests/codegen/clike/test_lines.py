"""`weft.codegen.clike.lines`: what changes along one axis is computed once for each column and row of a tile."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import pytest

from tests.codegen.clike.test_numbers import unit_of
from weft.codegen.clike.fields import NumberedKernel
from weft.codegen.clike.language import CodeLine
from weft.codegen.clike.lines import LinePlan, LineValue, split
from weft.codegen.clike.reads import read_program
from weft.codegen.glsl import TILE, drawn_or_tiled

LOOP = "spindle f(a, b) :: v { v = a\nfor i in (1 to 1000 * b) { v = v * a + b } }\n"

# Texts, and the operations of those values that are shared, with their axes.
TEXTS: Mapping[str, tuple[str, Sequence[tuple[str, str]]]] = {
    "both axes": (
        "a = sin(me@x * 9)\nb = exp(me@y)\nc = a * b\ndisplay(c, c + a, b - c)", [("exp", "y"), ("sinpi", "x")]
    ),
    "what one is made of": ("a = sin(me@x * 9)\nb = exp(a * a)\ndisplay(b * me@y)", [("exp", "x")]),
    "cheap": ("a = me@x + 1\nb = a * me@y\ndisplay(a, b, b + a)", []),
    "cheap, of something shared": (
        "a = sin(me@x * 9)\nb = a + 1\ndisplay(a * me@y, b * me@y, 0)", [("sinpi", "x")]
    ),
    "a number of both axes": ("a = sin(me@x * me@y)\ndisplay(a)", []),
    "the same everywhere": ("a = sin(me@time)\ndisplay(a * me@x)", []),
    "an output": ("a = sin(me@x * 9)\ndisplay(a)", [("sinpi", "x")]),
    "bits": ("display(hash(floor(me@x * 9), floor(me@y * 7)))", [("bits_xor", "x"), ("bits_xor", "y")]),
    "a truth": ("a = sin(me@x * 9)\ndisplay(if a > 0.3 then me@y else 0)", [("sinpi", "x")]),
    "a truth of truths": (
        "a = sin(me@x * 9)\ndisplay(if a > 0.3 and a * a < 0.7 then me@y else 0)", [("sinpi", "x")]
    ),
    "a loop along an axis": (
        "spindle f(a) :: v { v = a\nfor i in (1 to 90) { v = sin(v + i) } }\ndisplay(f(me@x) * me@y)",
        [("loop_out", "x")],
    ),
    "a loop of unknown length": (
        "spindle f(a) :: v { v = a\nfor i in (1 to 9 * a) { v = v * 2 } }\ndisplay(f(me@x) * me@y)", []
    ),
    "a loop along both": (
        "spindle f(a) :: v { v = a\nfor i in (1 to 90) { v = sin(v + i * me@y) } }\ndisplay(f(me@x))", []
    ),
    "the start of a loop": (f"{LOOP}a = sin(me@x * 9)\ndisplay(f(a, me@y))", [("sinpi", "x")]),
    "what is remembered": ("a = sin(me@x * 9)\nb<v> = a + prev(b@v)\ndisplay(b@v)", [("sinpi", "x")]),
    "a place of what is remembered": (
        "a = sin(me@y * 9)\nb<v> = me@x + prev(b@v)(me@x ~ a)\ndisplay(b@v)", [("sinpi", "y")]
    ),
}  # fmt: skip


def plan_of(text: str, least: float = -math.inf) -> LinePlan:
    program, _ = read_program(NumberedKernel.of(unit_of(f"{text}\n").kernel).kernel)
    return LinePlan.of(program, least)


@pytest.mark.parametrize(("text", "expected"), TEXTS.values(), ids=TEXTS.keys())
def test_what_is_shared(text: str, expected: Sequence[tuple[str, str]]) -> None:
    plan = plan_of(text)
    assert sorted((node.op, plan.axes[node]) for node in plan.shared) == expected


def test_nothing_is_shared_that_saves_too_little() -> None:
    text = "display(sin(me@x * 9) * me@y)"
    assert plan_of(text, 8).shared
    assert plan_of(text, 20) == LinePlan()


def test_what_takes_much_memory_is_shared_where_it_saves_most() -> None:
    names = [f"a{at}" for at in range(150)]
    cheap = [f"{name} = (me@x + {at}) * {at + 3} - {at + 5}" for at, name in enumerate(names)]
    text = "\n".join([*cheap, "b = exp(sin(me@y * 9))", f"display(b * me@x + {' * me@y + '.join(names)})"])
    assert [node.op for node in plan_of(text).shared] == ["exp"]


def test_statements_are_split() -> None:
    values = {
        "column": LineValue("x", "float", True, "column"), "inner": LineValue("x", "float", False, "inner"),
        "row": LineValue("y", "u32", True, "row"), "cheap": LineValue("y", "float", False, "cheap"),
        "unread": LineValue("y", "float", True, "unread"), "sum": LineValue("y", "float", False, "loop 9"),
        "total": LineValue("y", "float", True, "total"),
    }  # fmt: skip
    lines = [
        ("inner", "// 1: inner"), ("inner", "float inner = me_x * 2.0;"),
        ("column", "float column = sin(inner) + frame.row;"), ("row", "uint row = top(me_y);"),
        ("cheap", "float cheap = me_y + 1.0;"), ("unread", "float unread = me_y;"), ("loop 9", "float sum = 0.0;"),
        ("loop 9", "for (int i = 0; i < 9; i++) sum += cheap;"), ("total", "float total = sum;"),
        ("", "float both = column * cheap + total;"),
    ]  # fmt: skip
    body = [CodeLine(text, part=part) for part, text in lines]
    found = split(body, values, ["store(both, row);"])
    assert found.shared == {"x": ["column"], "y": ["row", "total"]}
    assert found.before == {"x": body[:3], "y": [body[3], body[4], *body[6:9]]}
    assert found.pixels == [body[4], body[9]]


def test_a_program_over_tiles_computes_them_first() -> None:
    text = "row = exp(sin(me@y * 40))\ncolumn = exp(cos(me@x * 50))\ndisplay(row * column, row + column, row)\n"
    kernel = unit_of(text).kernel
    forms = drawn_or_tiled(kernel, True, NumberedKernel.of(kernel))
    (tiled,) = forms.tiles
    before, after = tiled.text.partition("void main()")[2].split("barrier();")
    assert all(function in before and function not in after for function in ("exponential(", "sin(", "cos("))
    assert re.findall(r"shared vec4 (\w+)\[(\d+)\]\[(\d+)\];", tiled.text) == [
        ("columns_floats", "1", str(TILE)), ("rows_floats", "1", str(TILE))
    ]  # fmt: skip
    assert "barrier" not in forms.drawn.text


def test_where_it_saves_little_pixels_compute_all() -> None:
    kernel = unit_of("display(me@x * me@y)\n").kernel
    (tiled,) = drawn_or_tiled(kernel, True, NumberedKernel.of(kernel)).tiles
    assert "barrier" not in tiled.text
