"""A broken statement hides no error of another one, and causes none."""

import pytest

from tests.syntax.trees import errors
from weft.errors import Report, Source
from weft.syntax.ast import dump
from weft.syntax.parser import parse

BROKEN = [
    "a = ",
    "a = 1 +",
    "a = (1 + 2",
    "a = f(g(1, 2)",
    "a = b[1",
    "a = <1, 2",
    "a = 2 3",
    "a = 2 sin(me@x)",
    "a = (2 3) * (4",
    "a<v = 1",
    "a<> = 1",
    "a<v, > = 1",
    "a<v> 1",
    "a == 1",
    "a",
    "a b",
    "a@v = 1",
    "a = if b",
    "a = if b then c",
    "a = b c d e f",
    "a = 1 ? 2 : 3",
    'a = "open',
    "a = f(x))",
    "a = [1, 2]",
    "f(x)::",
    "f(x)::a",
    "f(x):a<v>",
    "me<bpm> 120",
    "me@x = 2",
    "let 3",
    "in = 3",
    "if a then b else c",
    "spindle f(x { out y = x }",
    "spindle f(x) { out y = 2 3 }",
    "for i in 0 to 3 { a = 1 }",
    "#nonsense",
    "#slider",
    "display(a b)",
    "display(a",
    "display a",
    "2 + 3",
]
# These are wrong there in another way as well.
NOT_IN_SPINDLES = ("a@v = 1", "#", "spindle", "display", "me", "a<v")


@pytest.mark.parametrize("broken", BROKEN)
def test_one_error_each_and_the_neighbours_survive(broken: str) -> None:
    text = f"first = 1\n{broken}\nlast<v> = 2\ndisplay(last)\nf(1)::bound<v>\n#fade 1\nme<bpm> = 90\n"
    report = Report()
    program = parse(Source("patch.weft", text), report)
    assert len(report.errors) == 1, [d.render() for d in report]
    line = report.errors[0].span
    assert line is not None
    assert line.source.position(line.start)[0] == 2
    kept = [row[8:] for row in dump(program).splitlines() if row[:1] in "134567"]
    expected = ["(binding first 1)", "(binding last<v> 2)", "(output display last)"]
    expected += ["(bind bound<v> (call f 1))", "(fade 1)", "(setting bpm 90)"]
    assert kept == expected


@pytest.mark.parametrize("first", BROKEN)
@pytest.mark.parametrize("second", ["b = 1 +", "c<v> = (2", "display(1 2)", "d = 3 4"])
def test_two_broken_lines_are_two_errors(first: str, second: str) -> None:
    assert [place.split(":")[0] for place in errors(f"{first}\n{second}\n")] == ["1", "2"]


@pytest.mark.parametrize("broken", [text for text in BROKEN if not text.startswith(NOT_IN_SPINDLES)])
def test_a_broken_line_in_a_spindle(broken: str) -> None:
    text = f"spindle s(x) :: y {{\n{broken}\n  k = 2 3\n}}\nz = 4 5\n"
    assert [place.split(":")[0] for place in errors(text)] == ["2", "3", "5"]


def test_unclosed_blocks() -> None:
    missing = "spindle f(x) :: y {\n out y = x\nspindle g(x) :: y {\n out y = x\n}\na = 2 3"
    assert errors(missing) == ["2:11 unclosed-bracket", "6:5 missing-operator"]
    assert errors("spindle f(x) :: y {\n for i in (0 to 1) {\n y = 1\n") == ["3:7 unclosed-bracket"]
    assert errors("spindle f(x) :: y { for i in (0 to 1) {\nspindle g(x) :: y { }") == ["1:40 unclosed-bracket"]


def test_a_label_with_equals_is_no_new_statement() -> None:
    assert errors("a = f(\n  x = 3,\n  y = 4\n)\nb = 1") == ["2:5 label-equals"]
