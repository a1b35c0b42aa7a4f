"""Characters, white space, comments, literals: what is decided before grammar comes in."""

import pytest

from tests.syntax.trees import errors, expression, tree

WHOLE = ["(binding a (+ 1 2))", "(output display a)"]


@pytest.mark.parametrize(
    "text",
    [
        "a = 1 + 2\ndisplay(a)",
        "\ufeffa = 1 + 2\ndisplay(a)",
        "a = 1 + 2\r\ndisplay(a)\r\n",
        "a = 1 + 2\rdisplay(a)",
        "a=1+2 display(a)",
        "\t a\t=\f1\v+ 2\n\n\ndisplay\u00a0(a)\n\n",
        "a = /* one */ 1 + /* 2 \n lines */ 2 // end\n// line\ndisplay(a) //",
        "a = 1 + 2 /**/ /***/ display(a) /* // */",
        "a = 1 // + 3 /* not open\n+ 2\ndisplay(a)",
    ],
)
def test_white_space_and_comments_mean_nothing(text: str) -> None:
    assert tree(text) == WHOLE


def test_a_digit_is_the_name_of_a_key() -> None:
    assert expression("key@1 + 2") == expression("(key@1) + 2") != expression("key@2 + 1")
    assert [errors(f"a = {text}") for text in ("key@12", "key@1.5", "mouse@1", "monkey@1", "key@ 1")] == [
        ["1:8 missing-name"], ["1:8 missing-name"], ["1:10 missing-name"], ["1:11 missing-name"], ["1:8 missing-name"]
    ]


@pytest.mark.parametrize("text", ["", " ", "\n", "\ufeff", "// only", "/* only */", ";", "\r\n;\r\n", "/// nothing"])
def test_empty_programs(text: str) -> None:
    assert tree(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 2x", ["1:5 glued-number"]),
        ("a = 1e", ["1:5 glued-number"]),
        ("a = .5f", ["1:5 glued-number"]),
        ("a = 1e309", ["1:5 number-overflow"]),
        ('a = "b', ["1:5 unclosed-string"]),
        ('a = "b\\', ["1:5 unclosed-string"]),
        ('a = "b\\x"', ["1:7 bad-escape"]),
        ("a = 1 /* b", ["1:7 unclosed-comment"]),
        ("a = 1 /*/ b", ["1:7 unclosed-comment"]),
        ("a = 1 */", ["1:7 stray-comment-end"]),
        ("a = é", ["1:5 unknown-letter"]),
        ("a = b ¿ c", ["1:7 unknown-character"]),
        ("a = b ¿¿¿ c", ["1:7 unknown-character"]),
        ("a = b \u200b c", ["1:7 unknown-character"]),
        ("a = 1 # b", ["1:7 misplaced-pragma"]),
        ("a = b && !c", ["1:7 foreign-operator", "1:10 foreign-operator"]),
        ("a = “b”", ["1:5 wrong-quotes"]),
        ("a = 1 – 2", ["1:7 typographic-character"]),
        ("a = b ≥ c", ["1:7 typographic-character"]),
    ],
)
def test_lexical_errors_are_all_that_is_said(text: str, expected: list[str]) -> None:
    assert errors(text) == expected


@pytest.mark.parametrize("text", ["a = 1\0", "\x7fELF\x02\x01", "a = \ufffd", "a = \x1b[0m"])
def test_what_is_not_text(text: str) -> None:
    assert [code.split()[1] for code in errors(text)] == ["not-text"]


def test_a_text_that_is_too_long() -> None:
    assert errors("a = 1\n" * 1_000_000) == ["1:1 too-long"]


def test_spacing_tells_operators_apart() -> None:
    assert expression("a<-b") == "(< a (- b))"
    assert expression("a<<b") == "(<< a b)"
    assert expression("a>=-b") == "(>= a (- b))"
    assert expression("a>>b") == "(>> a b)"
    assert errors("a = b > = c") == ["1:7 missing-expression"]
    assert errors("a = b = = c") == ["1:7 misplaced-equals"]


def test_at_most_fifty_errors_are_reported() -> None:
    assert len(errors("a = 1 2\n" * 1000)) == 50
    assert len(errors("? " * 1000)) == 50
    assert len(errors(");" * 1000)) == 50
