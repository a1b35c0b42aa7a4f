"""How operators group, from the loosest level to the tightest."""

import pytest

from tests.syntax.trees import errors, expression
from weft.ops import BINARY, OPS, UNARY
from weft.syntax.scanner import COMPARISON_LEVEL


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        # Each level against the next one, in both orders.
        ("a or b and c", "(or a (and b c))"),
        ("a and b or c", "(or (and a b) c)"),
        ("not a and b", "(and (not a) b)"),
        ("a and not b", "(and a (not b))"),
        ("not a == b", "(not (== a b))"),
        ("a == b + c", "(== a (+ b c))"),
        ("a + b == c", "(== (+ a b) c)"),
        ("a + b * c", "(+ a (* b c))"),
        ("a * b + c", "(+ (* a b) c)"),
        ("-a * b", "(* (- a) b)"),
        ("a * -b", "(* a (- b))"),
        ("-2^2", "(- (^ 2 2))"),
        ("2^-3", "(^ 2 (- 3))"),
        ("2^-3^2", "(^ 2 (- (^ 3 2)))"),
        ("2^-3 * 4", "(* (^ 2 (- 3)) 4)"),
        ("-a@b", "(- a@b)"),
        ("a^b[0]", "(^ a (index b 0))"),
        ("-f(x)^2", "(- (^ (call f x) 2))"),
        # Grouping within a level.
        ("a - b - c", "(- (- a b) c)"),
        ("a - b + c", "(+ (- a b) c)"),
        ("a / b * c % d", "(% (* (/ a b) c) d)"),
        ("a ^ b ^ c", "(^ a (^ b c))"),
        ("a or b or c", "(or (or a b) c)"),
        # Signs in a row.
        ("--a", "(- (- a))"),
        ("not not a", "(not (not a))"),
        ("a - -b", "(- a (- b))"),
        ("a--b", "(- a (- b))"),
        # Parentheses.
        ("(a + b) * c", "(* (+ a b) c)"),
        ("a * (b + c)", "(* a (+ b c))"),
        ("1 + (not a)", "(+ 1 (not a))"),
        ("(-2)^2", "(^ (- 2) 2)"),
        ("((a))", "a"),
        ("(a == b) == c", "(== (== a b) c)"),
        ("a == (b == c)", "(== a (== b c))"),
    ],
)
def test_groups(text: str, grouped: str) -> None:
    assert expression(text) == grouped


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("if a then b else c", "(if a b c)"),
        ("if a then b else c + 1", "(if a b (+ c 1))"),
        ("if a then b else c or d", "(if a b (or c d))"),
        ("1 + if a then b else c", "(+ 1 (if a b c))"),
        ("1 * if a then b else c + 2", "(* 1 (if a b (+ c 2)))"),
        ("2 ^ -if a then b else c", "(^ 2 (- (if a b c)))"),
        ("not if a then b else c", "(not (if a b c))"),
        ("a == if b then c else d == e", "(== a (if b c (== d e)))"),
        ("if a then b else if c then d else e", "(if a b (if c d e))"),
        ("if a then if b then c else d else e", "(if a (if b c d) e)"),
        ("if if a then b else c then d else e", "(if (if a b c) d e)"),
        ("if a or b then c else d", "(if (or a b) c d)"),
        ("1 + if a then b else not c", "(+ 1 (if a b (not c)))"),
        ("(if a then b else c) + 1", "(+ (if a b c) 1)"),
    ],
)
def test_if_reaches_as_far_right_as_possible(text: str, grouped: str) -> None:
    assert expression(text) == grouped


@pytest.mark.parametrize("symbol", BINARY)
def test_every_binary_operator_of_the_table_parses(symbol: str) -> None:
    assert expression(f"a {symbol} b") == f"({symbol} a b)"
    assert expression(f"f(a) {symbol} (b)") == f"({symbol} (call f a) b)"
    if not symbol.isalpha():
        assert expression(f"a{symbol}b") == f"({symbol} a b)"


def test_levels_and_grouping_come_from_the_table() -> None:
    rows = [row for row in OPS.values() if row.kind == "operator"]
    assert {symbol for row in rows for symbol in row.symbols} == {*BINARY, *UNARY}
    for first, left in BINARY.items():
        for second, right in BINARY.items():
            if left.level == right.level == COMPARISON_LEVEL:
                continue
            left_first = left.level > right.level or (left.level == right.level and not left.right)
            grouped = f"({second} ({first} a b) c)" if left_first else f"({first} a ({second} b c))"
            assert expression(f"a {first} b {second} c") == grouped


@pytest.mark.parametrize(
    ("text", "column"),
    [("a < b < c", 11), ("a == b != c", 12), ("a < b + 1 >= c", 15), ("not a < b < c", 15), ("1 and a<b<c", 14)],
)
def test_comparisons_do_not_chain(text: str, column: int) -> None:
    assert errors(f"a = {text}") == [f"1:{column} chained-comparison"]


def test_a_chain_is_reported_once() -> None:
    assert errors("a = 1 < 2 < 3 < 4 < 5") == ["1:11 chained-comparison"]
    assert errors("a = 1 < 2 and 3 < 4 or 5 < 6") == []


@pytest.mark.parametrize("operator", ["+", "-", "*", "^", "==", "<"])
def test_not_needs_parentheses_behind_a_tighter_operator(operator: str) -> None:
    assert errors(f"a = b {operator} not c") == [f"1:{8 + len(operator)} not-needs-parentheses"]
    assert errors(f"a = b {operator} (not c)") == []
    assert errors("a = -not b") == ["1:6 not-needs-parentheses"]
