"""Expressions as text, with parentheses only where they are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

# How tightly an expression binds.
PRIMARY, UNARY, CHOICE = 100, 90, 10

_BINARY: Mapping[str, int] = MappingProxyType({
    "*": 80, "/": 80, "%": 80, "+": 70, "-": 70, ">>": 60, "<<": 60, "<": 50, "<=": 50, ">": 50, ">=": 50,
    "==": 45, "!=": 45, "&": 40, "^": 38, "|": 36, "&&": 30, "||": 28,
})  # fmt: skip

# Operators for which (a · b) · c is a · (b · c), to the bit.
_ASSOCIATIVE = frozenset({"&&", "||", "^", "&", "|"})

# Mirrored comparisons: a number is read more easily on the right side.
_MIRRORED: Mapping[str, str] = MappingProxyType({"<": ">", "<=": ">=", "==": "==", "!=": "!="})

# These get parentheses where they are mixed with other operators: few people know their precedence.
_OBSCURE = frozenset({">>", "<<", "&", "^", "|"})


class ExpressionText(NamedTuple):
    """An expression, and how tightly its outermost operation binds. For a binary operator, also its symbol and both
    operands."""

    text: str
    level: int = PRIMARY
    symbol: str = ""
    left: str = ""
    right: str = ""
    is_number: bool = False


def literal(text: str) -> ExpressionText:
    """A number."""
    return ExpressionText(text, UNARY if text.startswith("-") else PRIMARY, is_number=True)


def applied(spelling: str, args: Sequence[ExpressionText]) -> ExpressionText:
    """An operation, spelled as an operator or as the name of a function."""
    if len(args) == 1 and spelling in ("-", "!"):
        return prefixed(spelling, args[0])
    if spelling in _BINARY:
        return _binary(spelling, *args)
    return ExpressionText(f"{spelling}({', '.join(arg.text for arg in args)})")


def choice(condition: ExpressionText, then: ExpressionText, otherwise: ExpressionText) -> ExpressionText:
    """One of two values, as C chooses."""
    return ExpressionText(
        f"{_within(condition, CHOICE + 1)} ? {_within(then, CHOICE)} : {_within(otherwise, CHOICE)}", CHOICE
    )


def _binary(symbol: str, a: ExpressionText, b: ExpressionText) -> ExpressionText:
    if symbol in ("+", "-") and b.text.startswith("-") and b.level in (UNARY, _BINARY["*"]):
        # The second operand begins with a minus: a negative number, a negation, or a product that begins with one.
        without_sign = ExpressionText(b.text[1:], PRIMARY if b.level == UNARY else b.level)
        return _binary("-" if symbol == "+" else "+", a, without_sign)
    if symbol in _MIRRORED and a.is_number and not b.is_number:
        return _binary(_MIRRORED[symbol], b, a)
    level = _BINARY[symbol]
    left, right = _operand(symbol, level, a), _operand(symbol, level if symbol in _ASSOCIATIVE else level + 1, b)
    return ExpressionText(f"{left} {symbol} {right}", level, symbol, a.text, b.text)


def prefixed(prefix: str, operand: ExpressionText) -> ExpressionText:
    """An operand after a prefix that binds like a sign, as casts of C do."""
    return ExpressionText(f"{prefix}{_within(operand, PRIMARY)}", UNARY)


def assignment(name: str, value: ExpressionText) -> str:
    """`x = e`, or `x += e` where that means the same."""
    if value.symbol in ("+", "-", "*", "/") and value.left == name:
        return f"{name} {value.symbol}= {value.right}"
    if value.symbol in ("+", "*") and value.right == name:
        return f"{name} {value.symbol}= {value.left}"
    return f"{name} = {value.text}"


def _operand(symbol: str, level: int, operand: ExpressionText) -> str:
    mixed = bool(operand.symbol) and operand.symbol != symbol and bool({operand.symbol, symbol} & _OBSCURE)
    return f"({operand.text})" if mixed else _within(operand, level)


def _within(operand: ExpressionText, level: int) -> str:
    return operand.text if operand.level >= level else f"({operand.text})"
