"""Whatever a text repeats, and on however few lines: the time for its diagnostics grows in proportion to the text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.together import all_but
from weft.contexts import context_table
from weft.errors import Diagnostic, Source, WeftError
from weft.runtime.inspect.forecast import check

PARTS = {
    "an output that is bound twice": "a<b>=1;",
    "a name without a meaning": "x% = nothing%;",
    "a call": "y% = foo%(1);",
    "calls on lines": "y% = foo%(1)\n",
    "a field": "z% = me@q%;",
    "an open bracket": "a% = (1;",
    "no value": "a% = !;",
    "a dot": "a% = b.c;",
    "a pragma": "#slider a<v> = 0\n",
    "libraries": "#use std.no%\n",
    "other texts": '#include "no%"\n',
    "output statements": "display(me@x);",
    "a spindle": "spindle s(a) :: v { v = a }\n",
    "an output that is never assigned": "spindle s%(a) :: v { w = a }\n",
    "in one line": "spindle s%(a) :: v { w = b };",
    "loops": "for i in (0 to 3) { a = i };",
    "open": "(",
    "open braces": "{",
    "open bundles": "<",
    "depth": "a% = ((((1\n",
    "closed": ")",
    "closed braces": "}",
    "if": "if ",
    "pipes": "a |> ",
    "texts": 'a% = "x\n',
    "comments": "/**/",
    "an open comment": "/* ",
    "a long name": "a",
    "a long number": "1",
    "operators": "+",
    "a long sum": "me@x + ",
    "an output without a name": "a% = b@\n",
    "a long bundle": "<1, ",
    "patterns": 'pattern("1 2 [")::p%<value>\n',
    "good patterns": 'pattern("1 2")::p%<value>\n',
    "settings": "me<bpm> = 1;",
    "arguments": "f(a, ",
    "labels": "a% = sin(lo: 1);",
    "too many": "a% = sin(1, 2, 3);",
    "itself": "a% = a%;",
    "memory": "a% = prev(a%)\n",
    "semicolons": ";",
    "commas": ",",
    "signs": "é",
    "control": "\x01",
    "line ends": "a% = 1\r\n",
    "sines": "a% = sin(a%);",
    "two maps": "a% = me@x(me@x ~ 1, me@x ~ 2)\n",
    "counts": "a% = <1, 2> + <1, 2, 3>;",
    "places": "a% = <1, 2>[5];",
    "pictures": 'load("x%.zzz")::p%<r>;',
    "comments of names": "/// doc\na% = 1\n",
    "steps": "a% = <i for i in (1 to 99)>;",
    "parameters": "#slider a%<v> = 1, 0, 5\n",
    "recursion": "spindle f%(x) :: v { v = f%(x) }\n",
    "blanks": "\n",
    "unknown shapes": "a% = b%;c% = a%@z;",
    "chains": "b% = b@% + 1;",
    "strands": "a% = me@x * %\n",
}


def text_of(part: str, length: int) -> str:
    """A text of about this many characters that repeats a part, in which % is a number of its own."""
    found, total = list[str](), 0
    while total < length:
        found.append(part.replace("%", str(len(found))))
        total += len(found[-1])
    return "".join(found)


def checked(text: str) -> tuple[Diagnostic, ...]:
    try:
        return tuple(check(Source("p.weft", text), context_table(), None))
    except WeftError as failure:
        return failure.diagnostics


def work_of(work: Callable[[], object]) -> int:
    """How many lines are run, and how many functions of C are called."""
    count = 0

    def ran(_frame: object, _event: str, _argument: object) -> Callable[..., Any]:
        nonlocal count
        count += 1
        return ran

    def called(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "c_call"

    sys.settrace(ran)
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
        sys.settrace(None)
    return count


@pytest.mark.parametrize("name", all_but(6, list(PARTS)))
def test_the_work_grows_as_the_text_does(name: str) -> None:
    short, long = (text_of(PARTS[name], length) for length in (2_000, 6_000))
    checked(short)  # caches
    assert work_of(lambda: checked(long)) < 5 * work_of(lambda: checked(short))
