"""Every form of an expression but the precedence of operators."""

import pytest

from tests.syntax.trees import errors, expression, statement
from weft.syntax.ast import Access, Binary, Binding, Bundle, Call, If, Index, Number, Remap, Text
from weft.syntax.scanner import KEYWORDS


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("x", "x"),
        ("me@x", "me@x"),
        ("img@r", "img@r"),
        ("f()", "(call f)"),
        ("f(x)", "(call f x)"),
        ("f(x, y + 1)", "(call f x (+ y 1))"),
        ("f(g(x), h(y))", "(call f (call g x) (call h y))"),
        ("clamp(x, lo: 0.2)", "(call clamp x lo: 0.2)"),
        ("clamp(x, lo: f(2), hi: -1)", "(call clamp x lo: (call f 2) hi: (- 1))"),
        ("f(x)@r", "(call f x)@r"),
        ("f(x)@r@s", "(call f x)@r@s"),
        ("f(x)(y)", "(call (call f x) y)"),
        ("img@r(x, y)", "(call img@r x y)"),
        ("img@r(me@x ~ me@y)", "(remap img@r (~ me@x me@y))"),
        ("img@r(me@x ~ f(me@y), me@y ~ 1 - me@x)", "(remap img@r (~ me@x (call f me@y)) (~ me@y (- 1 me@x)))"),
        ("c@r(c@k ~ 5)", "(remap c@r (~ c@k 5))"),
        ("f(x)(me@x ~ 1)", "(remap (call f x) (~ me@x 1))"),
        ("(a + b)(me@x ~ 1)", "(remap (+ a b) (~ me@x 1))"),
        ("s(me@x ~ 1)(me@x ~ 2)", "(remap (remap s (~ me@x 1)) (~ me@x 2))"),
        ("g[1](me@x ~ 1)", "(remap (index g 1) (~ me@x 1))"),
        ("prev(t@v)(me@x ~ me@x * 0.9)", "(remap (call prev t@v) (~ me@x (* me@x 0.9)))"),
        ("e[i + 1]", "(index e (+ i 1))"),
        ("e[0][1]", "(index (index e 0) 1)"),
        ("me@x(me@x ~ 1)", "(remap me@x (~ me@x 1))"),
        ('load("a.png")', '(call load "a.png")'),
    ],
)
def test_chains(text: str, parsed: str) -> None:
    assert expression(text) == parsed


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("<1>", "(bundle 1)"),
        ("<1, x, f(y)>", "(bundle 1 x (call f y))"),
        ("<1, 2, 3> * 0.5", "(* (bundle 1 2 3) 0.5)"),
        ("0.5 * <1, 2>", "(* 0.5 (bundle 1 2))"),
        ("<1, 2>[i]", "(index (bundle 1 2) i)"),
        ("<a, b>(me@x ~ 1)", "(remap (bundle a b) (~ me@x 1))"),
        ("f(<1, 2>, 3)", "(call f (bundle 1 2) 3)"),
        ("x < <1, 2>[0]", "(< x (index (bundle 1 2) 0))"),
        # Comparisons that are free in a bundle, and those that need other spellings there.
        ("<a == b, a != b>", "(bundle (== a b) (!= a b))"),
        ("<a <= b, a >= b>", "(bundle (<= a b) (>= a b))"),
        ("<a << b, a >> b>", "(bundle (<< a b) (>> a b))"),
        ("<a <<= b, a >>= b>", "(bundle (<<= a b) (>>= a b))"),
        ("<(a < b), f(a > b)>", "(bundle (< a b) (call f (> a b)))"),
        ("<e[a < b]>", "(bundle (index e (< a b)))"),
        ("<if a < b then 1 else 2, 3>", "(bundle (if (< a b) 1 2) 3)"),
        ("<if a > b then 1 else 2>", "(bundle (if (> a b) 1 2))"),
        ("<if a then 1 else b >> c>", "(bundle (if a 1 (>> b c)))"),
        ("<-a, not b>", "(bundle (- a) (not b))"),
        # The > that closes is one character, whatever follows.
        ("<a, b>>=c", "(>= (bundle a b) c)"),
        ("<a, b>>c", "(> (bundle a b) c)"),
        ("<a, b>==c", "(== (bundle a b) c)"),
        ("<a >= b>", "(bundle (>= a b))"),
        ("<a>=b>", "(bundle (>= a b))"),
    ],
)
def test_bundles(text: str, parsed: str) -> None:
    assert expression(text) == parsed


@pytest.mark.parametrize(
    ("text", "column", "code"),
    [
        ("<a < b, c>", 8, "bare-angle"),
        ("<a > b, c>", 8, "bare-angle"),
        ("<if a then b < c else d>", 18, "bare-angle"),
        ("<1, <2, 3>>", 9, "nested-bundle"),
        ("<<1, 2>, 3>", 5, "nested-bundle"),
        ("<1, (<2, 3>)>", 9, "nested-bundle"),
    ],
)
def test_what_is_barred_in_bundles(text: str, column: int, code: str) -> None:
    assert errors(f"a = {text}") == [f"1:{column} {code}"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("1.5", 1.5), (".5", 0.5), ("1.", 1), ("1e-3", 0.001), ("1E1", 10), ("1.e+2", 100), ("007", 7)],
)
def test_numbers(text: str, value: float) -> None:
    binding = statement(f"a = {text}")
    assert isinstance(binding, Binding)
    assert isinstance(binding.value, Number)
    assert binding.value.value == value


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ('"hello"', "hello"),
        ('""', ""),
        (r'"say \"hi\""', 'say "hi"'),
        (r'"a\\b\n\t"', "a\\b\n\t"),
        ('"// no comment /* here */ #fade"', "// no comment /* here */ #fade"),
        ('"größer 😀"', "größer 😀"),
    ],
)
def test_strings(literal: str, value: str) -> None:
    binding = statement(f"a = {literal}")
    assert isinstance(binding, Binding)
    assert isinstance(binding.value, Text)
    assert binding.value.value == value


@pytest.mark.parametrize("word", KEYWORDS)
def test_keywords_are_names_as_labels_and_behind_at(word: str) -> None:
    assert expression(f"f({word}: 1)") == f"(call f {word}: 1)"
    assert expression(f"f(x, {word} : g(1))") == f"(call f x {word}: (call g 1))"
    assert expression(f"a@{word}") == f"a@{word}"
    assert errors(f"a = 1 + {word}") != []


def test_keywords_count_only_as_whole_words() -> None:
    names = ["inner", "format", "notes", "tone", "iffy", "order", "android", "me2", "outer", "lets", "_if", "thence"]
    assert expression(" + ".join(names)).count("(+") == len(names) - 1


def test_spans_cover_the_text_of_their_node() -> None:
    binding = statement("a = (f(x, lo: 2)@r + <1, 2>[0]) * if c then s(me@x ~ 1) else -d")
    assert isinstance(binding, Binding)
    product = binding.value
    assert product.span.text == binding.span.text.removeprefix("a = ")
    assert isinstance(product, Binary)
    total, choice = product.left, product.right
    assert isinstance(total, Binary)
    assert total.span.text == "f(x, lo: 2)@r + <1, 2>[0]"
    access, index = total.left, total.right
    assert isinstance(access, Access)
    assert (access.span.text, access.output_span.text) == ("f(x, lo: 2)@r", "r")
    assert isinstance(access.base, Call)
    label = access.base.args[1]
    assert (label.span.text, label.label_span and label.label_span.text) == ("lo: 2", "lo")
    assert isinstance(index, Index)
    assert isinstance(index.base, Bundle)
    assert index.base.span.text == "<1, 2>"
    assert isinstance(choice, If)
    assert choice.span.text == "if c then s(me@x ~ 1) else -d"
    assert isinstance(choice.then, Remap)
    assert choice.then.maps[0].span.text == "me@x ~ 1"
    assert choice.otherwise.span.text == "-d"
