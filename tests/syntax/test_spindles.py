"""Spindles, their bodies, and the comments above them."""

import pytest

from tests.syntax.trees import errors, statement, tree
from weft.syntax.ast import Assignment, Binding, CallBinding, For, SpindleDefinition


def _spindle(text: str) -> SpindleDefinition:
    found = statement(text)
    assert isinstance(found, SpindleDefinition)
    return found


def test_head() -> None:
    spindle = _spindle("spindle polar(x, y) :: <r, theta> { out r = x; out theta = y }")
    assert spindle.name.name == "polar"
    assert [p.name for p in spindle.parameters] == ["x", "y"]
    assert [o.name for o in spindle.outputs] == ["r", "theta"]
    assert spindle.span.text.endswith("}")


@pytest.mark.parametrize("head", ["spindle f() :: a", "spindle f() :: <a>", "spindle f ( ) ::a", "spindle\nf\n()::\na"])
def test_one_output_needs_no_brackets(head: str) -> None:
    spindle = _spindle(f"{head} {{ }}")
    assert ([o.name for o in spindle.outputs], spindle.parameters, spindle.body) == (["a"], (), ())


def test_body() -> None:
    lines = tree(
        """
        spindle f(x) :: <y, z> {
          a = x + 1
          let b = <1, 2>
          a += 1 a -= 2; a *= 3
          a /= 4
          out y = a
          z = b[0]
          g(x)::c<u, v>
          g<2>(x)::d<u, v>
          for i in (0 to x * 2) {
            a += i
            for j in (i to 3) { out z = j }
          }
          a = 5
        }
        """
    )
    assert lines == [
        "(spindle f<y, z> x)",
        "  (= a (+ x 1))",
        "  (= b (bundle 1 2))",
        "  (+= a 1)",
        "  (-= a 2)",
        "  (*= a 3)",
        "  (/= a 4)",
        "  (out = y a)",
        "  (= z (index b 0))",
        "  (bind c<u, v> (call g x))",
        "  (bind d<u, v> count 2 (call g x))",
        "  (for i 0 (* x 2))",
        "    (+= a i)",
        "    (for j i 3)",
        "      (out = z j)",
        "  (= a 5)",
    ]


def test_loop() -> None:
    spindle = _spindle("spindle f() :: a { for i in (0 to 3) { a = i } }")
    (loop,) = spindle.body
    assert isinstance(loop, For)
    assert loop.span.text == "for i in (0 to 3) { a = i }"
    (inner,) = loop.body
    assert isinstance(inner, Assignment)
    assert (inner.span.text, inner.is_out) == ("a = i", False)


def test_doc_text_belongs_to_the_definition_below_it() -> None:
    spindle = _spindle("/// Turns.\n///   @param x what\n///\n/// @returns more\nspindle f(x) :: a { }")
    assert spindle.doc == "Turns.\n@param x what\n\n@returns more"
    binding = statement("///one\n  a = 1")
    assert isinstance(binding, Binding)
    assert binding.doc == "one"
    call = statement("/// two\nf(x)::a<v>")
    assert isinstance(call, CallBinding)
    assert call.doc == "two"


@pytest.mark.parametrize(
    "text",
    [
        "/// far above\n\na = 1",
        "//// a ruler\na = 1",
        "// a comment\na = 1",
        "/// above a comment\n// here\na = 1",
        "a = /// behind\n1",
    ],
)
def test_what_is_no_doc_text(text: str) -> None:
    binding = statement(text)
    assert isinstance(binding, Binding)
    assert binding.doc is None


def test_doc_text_goes_to_the_nearest_definition_only() -> None:
    assert errors("/// x\na = 1\nb = 2 /// not this\nc = 3") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for i in (0 to 1) { }", ["1:1 misplaced-loop"]),
        ("out a = 1", ["1:1 misplaced-out"]),
        ("a += 1", ["1:3 misplaced-assignment"]),
        ("spindle f() :: a { me<bpm> = 1 }", ["1:20 misplaced-setting"]),
        ("spindle f() :: a { display(1) }", ["1:20 misplaced-output"]),
        ("spindle f() :: a { sin(1) }", ["1:20 not-a-statement"]),
        ("spindle f() :: a { b<v> = 1 }", ["1:21 outputs-in-spindle"]),
        ("spindle f() :: a {\n#fade 1\n}", ["2:1 misplaced-pragma"]),
        ("spindle f() :: a { spindle g() :: b { } }", ["1:20 nested-spindle"]),
        ("spindle f() :: a { out a += 1 }", ["1:26 misplaced-assignment"]),
        ("spindle f(x, x) :: a { }", ["1:14 duplicate-parameter"]),
        ("spindle f() :: <a, a> { }", ["1:20 duplicate-output"]),
        ("spindle f() { }", ["1:11 missing-outputs"]),
    ],
)
def test_what_may_not_stand_where(text: str, expected: list[str]) -> None:
    assert errors(text) == expected


def test_a_misplaced_block_is_read_for_its_errors_too() -> None:
    assert errors("for i in (0 to 1) {\n a = 2 3\n}") == ["1:1 misplaced-loop", "2:6 missing-operator"]
