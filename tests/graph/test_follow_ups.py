"""What follows from a mistake is not told, and what is told is at the place that has to be changed."""

from __future__ import annotations

import pytest

from weft.contexts import context_table
from weft.errors import Diagnostic, Source
from weft.runtime.inspect.forecast import check


def found(text: str) -> tuple[Diagnostic, ...]:
    return tuple(check(Source("p.weft", text), context_table(), None))


def told(text: str) -> list[str]:
    """Code, line and column of what is found."""
    return [f"{each.code} {str(each.span).partition(':')[2]}" for each in found(text)]


TEXTS = {
    "a call that is not known": ("room = nothing(1)\nplay(room@l, room@r)", ["unknown-call 1:8"]),
    "what is made of it": ("a = nothing(1)\nb = a * 2\ndisplay(b[2], b@x, a@l)", ["unknown-call 1:5"]),
    "a call with a wrong argument": (
        "spindle s(a) :: <l, r> { l = a\nr = a }\nroom = s(1, 2)\nplay(room@l, room@r)", ["too-many-arguments 3:13"],
    ),
    "a library that is not there": ("#use std.sdff\ndisplay(circle(<me@x, me@y>, 0.5))", ["unknown-library 1:6"]),
    "a file that is not there": ('#include "none.weft"\ndisplay(wave * far(2))', ["include-unreadable 1:10"]),
    "a pragma": ("#slider a<v> = 0, 1\n#xy b<x, y> = 1\ndisplay(a * b@x)", ["malformed-pragma 1:9",
                                                                             "malformed-pragma 2:5"]),
    "bundles that do not fit": ("a = <1, 2> + <1, 2, 3>\ndisplay(a@x, a@y, a@z)", ["count-mismatch 1:14"]),
    "a pattern": ('pattern("1 [")::p<value, gate>\nplay(p@value * p@gate)', ["pattern-syntax 1:12"]),
    # What does not follow is told.
    "two mistakes": ("a = nothing(1)\nb = <1, 2>\ndisplay(b@z, a, a)", ["unknown-call 1:5", "unknown-output 3:11"]),
    "a misspelt name beside a library": ("#use std.sdff\ndisplay(nois(me@x))", ["unknown-library 1:6",
                                                                               "unknown-call 2:9"]),
    "only shapes": ("a = <1, 2>\nb = a@z + c@y\nc = b@y\ndisplay(a@w)", ["unknown-output 2:7", "unknown-output 4:11"]),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_what_follows_is_not_told(name: str) -> None:
    text, expected = TEXTS[name]
    assert told(text) == expected, "\n".join(each.render() for each in found(text))


PLACES = {
    "display(unit(0.6, me@x, me@y>))": ("stray-bracket 1:14", "`<` is missing here"),
    "a = unit(0.6, 0.2>)": ("stray-bracket 1:10", "`<` is missing here"),
    "a<r, g, b, w> = <1, 2, 3>\ndisplay(a@r)": ("count-mismatch 1:17", "leave out w"),
    "a<r, g> = <1, 2, 3>\ndisplay(a@r)": ("count-mismatch 1:11", "as many outputs"),
    "display(sum(<1, 2, 3> * <1, 2, 3, 4>))": ("count-mismatch 1:25", "of the 4, take 3 with @xyz"),
    "a = a + 1\ndisplay(a)": ("cycle 1:5", "prev(a)"),
    "a = 1\na = a + 1\ndisplay(a)": ("duplicate-binding 2:1", "another one"),
    "for i in (0 to 3) { a = i }\ndisplay(me@x)": ("misplaced-loop 1:1", "for i in (0 to 3)>"),
    "me@x |> out()": ("misplaced-token 1:9", "display(…)"),
    "a |>": ("pipe-needs-a-call 1:5", "|> f(0.5)"),
    "display(me@x |> )": ("pipe-needs-a-call 1:14", "|> f(0.5)"),
    'load("a.png")::img<r, g, b>\ndisplay(img.r(0.5, me@y))': ("dot 2:12", "img@r(…)"),
    'load("a.png")::img<r, g, b>\ndisplay(img.r(me@x ~ me@y))': ("dot 2:12", "write img@r"),
    "a = me@x\n\n": ("no-output 1:9", "display("),
    "": ("no-output 1:1", "display("),
}


@pytest.mark.parametrize("text", PLACES)
def test_a_mistake_has_its_place_and_a_hint(text: str) -> None:
    at, words = PLACES[text]
    assert told(text) == [at]
    shown = found(text)[0]
    assert words in f"{shown.message} {shown.hint}", shown.render()


def test_one_output_is_picked_by_its_name_as_several_are() -> None:
    source = 'load("a.png")::img<r, g, b>\n'
    assert told(f"{source}d<b> = img * 2\ne<g, b> = img * 2\ndisplay(d@b, e@g, e@b)") == []
    assert told(f"{source}d<z> = img * 2\ndisplay(d@z)") == ["several-strands 2:8"]
