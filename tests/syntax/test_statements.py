"""Every form of a statement outside of spindles."""

import pytest

from tests.syntax.trees import errors, statement, tree
from weft.errors import Report, Source
from weft.syntax.ast import Binding, CallBinding, OutputStatement, Setting
from weft.syntax.parser import parse


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("me<bpm> = 120", "(setting bpm 120)"),
        ("me<loop> = -1.5", "(setting loop -1.5)"),
        ("a = 1", "(binding a 1)"),
        ("let a = 1", "(binding a 1)"),
        ("a<v> = 1", "(binding a<v> 1)"),
        ("let a<v> = 1", "(binding a<v> 1)"),
        ("a<r, g> = <1, 2>", "(binding a<r, g> (bundle 1 2))"),
        ("a<r,g,b> = img * 0.5", "(binding a<r, g, b> (* img 0.5))"),
        ("f(x)::a<v>", "(bind a<v> (call f x))"),
        ("f()::a<u, v>", "(bind a<u, v> (call f))"),
        ('load("a.png")::img<r, g, b>', '(bind img<r, g, b> (call load "a.png"))'),
        ("img(me@x ~ 1)::a<r>", "(bind a<r> (remap img (~ me@x 1)))"),
        ("img@r(me@x ~ 1)::a<v>", "(bind a<v> (remap img@r (~ me@x 1)))"),
        ("f(x)@r(me@x ~ 1)::a<v>", "(bind a<v> (remap (call f x)@r (~ me@x 1)))"),
        ("f(x)@r::a<v>", "(bind a<v> (call f x)@r)"),
        ("img@r::a<v>", "(bind a<v> img@r)"),
        ("g[1](me@x ~ 1)::a<v>", "(bind a<v> (remap (index g 1) (~ me@x 1)))"),
        ("f<3>(x)::a<u, v, w>", "(bind a<u, v, w> count 3 (call f x))"),
        ("f<1>(<1>)::a<u>", "(bind a<u> count 1 (call f (bundle 1)))"),
        ("display(a)", "(output display a)"),
        ("display(r: a, g: b@v)", "(output display r: a g: b@v)"),
        ('display(a, to: "left")', '(output display a to: "left")'),
        ("compute(a, speed: b, c)", "(output compute a speed: b c)"),
        ("light(a)", "(output light a)"),
        ("display()", "(output display)"),
    ],
)
def test_forms(text: str, parsed: str) -> None:
    assert tree(text) == [parsed]


@pytest.mark.parametrize("text", ["a<v>=1", "a<v> =1", "a<v>= 1", "a < v > = 1", "a\n<\nv\n>\n=\n1"])
def test_the_closing_angle_of_a_list_is_one_character(text: str) -> None:
    assert tree(text) == ["(binding a<v> 1)"]


def test_other_closing_angles() -> None:
    assert tree("me<bpm>=120") == ["(setting bpm 120)"]
    assert tree("a<v>=-1") == ["(binding a<v> (- 1))"]
    assert tree("a<v>=<1>") == ["(binding a<v> (bundle 1))"]
    assert tree("f(x)::a<v>b=1") == ["(bind a<v> (call f x))", "(binding b 1)"]


def test_statements_need_nothing_between_them() -> None:
    expected = ["(binding a 1)", "(binding b<v> 2)", "(output display a)", "(bind c<v> (call f 1))"]
    assert tree("a = 1 b<v> = 2 display(a) f(1)::c<v>") == expected
    assert tree(";;a = 1;b<v> = 2;\n;display(a);;f(1)::c<v>;") == expected
    assert tree("a\n=\n1\nb<v>\n= 2 display\n(a)\nf(1)\n::\nc<v>") == expected


def test_a_line_may_continue_the_one_above() -> None:
    assert tree("a = b\n(c)") == ["(binding a (call b c))"]
    assert tree("a = b\n- c") == ["(binding a (- b c))"]
    assert tree("a = b\n[c]") == ["(binding a (index b c))"]
    assert tree("a = b\n< c") == ["(binding a (< b c))"]
    assert tree("a = b;\nc = 1") == ["(binding a b)", "(binding c 1)"]


def test_parts_of_statements_know_their_places() -> None:
    setting = statement("me<bpm> = -120")
    assert isinstance(setting, Setting)
    assert (setting.field.span.text, setting.value_span.text, setting.value) == ("bpm", "-120", -120)
    binding = statement("  let a<u, v> = <1, 2> ")
    assert isinstance(binding, Binding)
    assert binding.span.text == "let a<u, v> = <1, 2>"
    assert [o.span.text for o in binding.outputs or ()] == ["u", "v"]
    call = statement("f<2>(x)::a<u, v>")
    assert isinstance(call, CallBinding)
    assert (call.value.span.text, call.count, call.count_span and call.count_span.text) == ("f<2>(x)", 2, "2")
    output = statement("display(a, b)")
    assert isinstance(output, OutputStatement)
    assert (output.span.text, output.head.text) == ("display(a, b)", "display")


@pytest.mark.parametrize("count", ["0", "65", "2.5", "n", "-1", "1e9", "1e999"])
def test_a_count_is_a_small_whole_number(count: str) -> None:
    assert errors(f"f<{count}>(x)::a<v>")[0].endswith(("bad-count", "number-overflow"))


def test_an_unknown_call_is_left_to_those_who_know_the_contexts() -> None:
    assert tree("a = 2\nwobble(a)") == ["(binding a 2)", "(output wobble a)"]


def test_a_call_behind_an_expression_on_its_line_lacks_an_operator() -> None:
    assert errors("a = 2 sin(me@x)") == ["1:5 missing-operator"]
    assert errors("a = 2 img@r(me@x ~ 1)") == ["1:5 missing-operator"]
    assert errors("a = 2 display(a)") == []
    assert errors("a = 2; sin(me@x)") == []
    assert errors("a = 2 f(x)::b<v>") == []


def test_labels_may_stand_anywhere_in_an_output_statement_but_not_twice() -> None:
    assert errors("compute(a: 1, 2, b: 3)") == []
    assert errors("compute(a: 1, 2, a: 3)") == ["1:18 duplicate-label"]
    assert errors("x = clamp(lo: 1, 2)") == ["1:18 unlabelled-argument"]


def test_the_names_of_output_statements_are_given() -> None:
    def codes(text: str, statements: set[str]) -> list[str]:
        report = Report()
        parse(Source("patch.weft", text), report, statements)
        return [diagnostic.code for diagnostic in report]

    assert codes("a = 2 light(a)", {"light"}) == []
    assert codes("a = 2 light(a)", {"display"}) == ["missing-operator"]
    assert codes("a = 2 +\nlight(a)", {"light"}) == ["missing-expression"]
    assert codes("light a", {"light"}) == ["missing-parentheses"]
    assert codes("spindle s() :: y { light(1) }", {"light"}) == ["misplaced-output"]
