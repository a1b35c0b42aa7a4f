"""Pragmas: forms, values and places."""

import pytest

from tests.syntax.trees import errors, statement, tree
from weft.errors import Report, Source
from weft.syntax.ast import Include, Parameter, Use
from weft.syntax.parser import parse


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ('#include "lib/a.weft"', '(include "lib/a.weft")'),
        ("#use std.noise", "(use std.noise)"),
        ("#use std", "(use std)"),
        ('#slider a<v> = 20, 8000, 440 "cutoff"', '(slider a<v> 440 from 20 to 8000 "cutoff")'),
        ("#slider a<v> = -1, -.5, -0.75", "(slider a<v> -0.75 from -1 to -0.5)"),
        ("#slider a<v> = 0, 1, 0 raw", "(slider a<v> 0 from 0 to 1 raw)"),
        ('#slider a<v> = 0, 1, 0 "b" raw', '(slider a<v> 0 from 0 to 1 "b" raw)'),
        ("#slider a<v>=0,1,1", "(slider a<v> 1 from 0 to 1)"),
        ('#toggle a<v> = 1 "on"', '(toggle a<v> 1 from 0 to 1 "on")'),
        ('#xy pad<x, y> = 0.25, 1 "pad"', '(xy pad<x, y> 0.25 1 from 0 to 1 "pad")'),
        ('#color c<r, g, b> = "#ff0033" "tint"', '(color c<r, g, b> 1 0 0.2 from 0 to 1 "tint")'),
        ('#color c<r, g, b> = "#F03"', "(color c<r, g, b> 1 0 0.2 from 0 to 1)"),
        ("#fade 0.5", "(fade 0.5)"),
        ("#fade 0", "(fade 0)"),
        ("#fade 0.5 numbers", "(fade 0.5 numbers)"),
        ("#quantize 4", "(quantize 4)"),
        ("  #fade 0.5;", "(fade 0.5)"),
        ("#fade 0.5 // a comment", "(fade 0.5)"),
        ("/* a comment */ #fade /* here */ 0.5", "(fade 0.5)"),
    ],
)
def test_forms(text: str, parsed: str) -> None:
    assert tree(text) == [parsed]


def test_a_pragma_ends_with_its_line() -> None:
    assert tree("a = 1\n#fade 1\nb = 2") == ["(binding a 1)", "(fade 1)", "(binding b 2)"]
    assert errors("#fade\n1") == ["1:1 malformed-pragma", "2:1 bad-start"]
    assert errors("#fade 1 b = 2") == ["1:7 malformed-pragma"]


def test_places() -> None:
    include = statement('#include "a.weft"')
    assert isinstance(include, Include)
    assert (include.path_span.text, include.span.text) == ('"a.weft"', '#include "a.weft"')
    use = statement("#use std.noise")
    assert isinstance(use, Use)
    assert use.library_span.text == "std.noise"
    slider = statement('#slider a<v> = 0, 1, 0.5 "b"')
    assert isinstance(slider, Parameter)
    assert (slider.name.span.text, [o.span.text for o in slider.outputs]) == ("a", ["v"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#slidr a<v> = 0, 1, 0.5", "1:1 unknown-pragma"),
        ("#Fade 1", "1:1 unknown-pragma"),
        ("#", "1:1 unknown-pragma"),
        ("#slider a = 0, 1, 0.5", "1:9 malformed-pragma"),
        ("#slider a<v> = 0, 1", "1:9 malformed-pragma"),
        ("#slider a<v> = 0, 1, 0 loud", "1:24 malformed-pragma"),
        ("#fade", "1:1 malformed-pragma"),
        ("#use std.", "1:6 malformed-pragma"),
        ("#slider a<v> = 1, 1, 1", "1:16 empty-range"),
        ("#toggle a<v> = 0.5", "1:16 bad-toggle"),
        ('#color a<r, g, b> = "ff8800"', "1:21 bad-colour"),
        ("#color a<r, g, b> = #ff8800", "1:21 bare-colour"),
        ("#fade -0.1", "1:7 bad-fade"),
        ("#fade 1 pictures", "1:9 bad-fade"),
        ("#quantize 0", "1:11 bad-quantize"),
        ("#xy a<x, x> = 0, 0", "1:10 duplicate-output"),
        ("a = 1 #fade 1", "1:7 misplaced-pragma"),
    ],
)
def test_errors(text: str, expected: str) -> None:
    assert errors(text) == [expected]


def test_a_start_outside_of_its_range_is_moved_into_it() -> None:
    report = Report()
    parsed = parse(Source("patch.weft", "#slider a<v> = 0, 1, 3"), report)
    (slider,) = parsed.statements
    assert isinstance(slider, Parameter)
    assert slider.start == (1,)
    assert [(d.severity, d.code) for d in report] == [("warning", "start-out-of-range")]


def test_a_pragma_in_the_middle_of_a_statement_is_one_error() -> None:
    assert errors("a = 1 +\n#fade 1\n2\nb = 1") == ["1:8 missing-expression"]
    assert errors("display(\n#fade 1\n1)") == ["2:1 misplaced-pragma"]
    assert errors("a = 1\n#fade 1\nb = 2") == []
