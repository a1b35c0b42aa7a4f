"""Deep and long programs: nesting has a limit, everything else has none."""

import sys
import threading

import pytest

from tests.syntax.trees import errors, expression, program, tree
from weft.syntax.parser import MAX_ERRORS

NESTS = [("(", ")"), ("f(", ")"), ("f(x: ", ")"), ("f(me@x ~ ", ")"), ("f[", "]"), ("<1, f(", ")>"), ("f(x)(", ")")]
CHOICES = [("if ", " then 2 else 3"), ("if 1 then ", " else 3")]


@pytest.mark.parametrize(("opening", "closing"), [*NESTS, *CHOICES])
def test_256_levels_parse_and_257_are_one_error(opening: str, closing: str) -> None:
    assert len(program(f"a = {opening * 256}1{closing * 256}").statements) == 1
    (place,) = errors(f"a = {opening * 257}1{closing * 257}")
    assert place.endswith("too-deep")


def test_blocks_and_expressions_nest_together() -> None:
    head = "spindle f() :: a { " + "for i in (0 to 1) { " * 100
    assert errors(f"{head} a = {'(' * 155}1{')' * 155} {'}' * 101}") == []
    (place,) = errors(f"{head} a = {'(' * 156}1{')' * 156} {'}' * 101}")
    assert place.endswith("too-deep")


def test_the_recursion_limit_is_restored() -> None:
    limit = sys.getrecursionlimit()
    program(f"a = {'(' * 200}1{')' * 200}")
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize("text", ["(" * 100_000, "(" * 100_000 + ")" * 100_000, "a = " + "[" * 100_000])
def test_absurd_nesting_is_one_error(text: str) -> None:
    (place,) = errors(text)
    assert place.endswith("too-deep")


@pytest.mark.parametrize("text", ["{" * 100_000, "a = " + "{" * 100_000, "}" * 100_000, ")" * 100_000])
def test_absurd_brackets_are_few_errors(text: str) -> None:
    assert len(errors(text)) <= MAX_ERRORS


@pytest.mark.parametrize("text", ["a = " + "<1, " * 9999, "a = " + "<" * 9999, "f<" * 9999, "a = " + "f<3>" * 9999])
def test_angle_brackets_do_not_nest_at_all(text: str) -> None:
    assert len(errors(text)) == 1


# Several times what Python's own stack takes.
COUNT = 4 * sys.getrecursionlimit()


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (" + ".join(["x"] * COUNT), "(+ (+ (+ "),
        (" + ".join(["f(x)"] * COUNT), "(+ (+ (+ "),
        ("not " * COUNT + "x", "(not (not (not "),
        ("-" * COUNT + "x", "(- (- (- "),
        ("2 ^ " * COUNT + "x", "(^ 2 (^ 2 (^ 2 "),
        ("if x then y else " * COUNT + "z", "(if x y (if x y (if x y "),
        ("f" + "(m)" * COUNT, "(call (call (call "),
        ("f" + "[0]" * COUNT, "(index (index (index "),
        ("f" + "@r" * COUNT, "f@r@r@r"),
        ("f(" + ", ".join(["x"] * COUNT) + ")", "(call f x x x "),
        ("<" + ", ".join(["x"] * COUNT) + ">", "(bundle x x x "),
    ],
)
def test_long_expressions_are_no_deep_ones(text: str, start: str) -> None:
    assert expression(text).startswith(start)


def test_long_programs() -> None:
    assert len(tree("a = 1\n" * COUNT)) == COUNT
    assert len(tree("spindle f() :: a {" + "a = 1\n" * COUNT + "}")) == COUNT + 1


def test_long_names_stay_out_of_messages() -> None:
    report = errors("n" * 100_000)
    assert report == ["1:1 not-a-statement"]


def test_deep_programs_parse_in_a_thread() -> None:
    found: list[str] = []
    worker = threading.Thread(target=lambda: found.extend(errors(f"a = {'(' * 256}1{')' * 256}") or ["fine"]))
    worker.start()
    worker.join()
    assert found == ["fine"]
