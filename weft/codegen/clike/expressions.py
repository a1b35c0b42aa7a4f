"""Expressions as text, with parentheses only where they are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

# How tightly things bind.
PRIMARY, UNARY, CHOICE = 100, 90, 10

_BINARY: Mapping[str, int] = MappingProxyType({
    "*": 80, "/": 80, "%": 80, "+": 70, "-": 70, ">>": 60, "<<": 60, "<": 50, "<=": 50, ">": 50, ">=": 50,
    "==": 45, "!=": 45, "&": 40, "^": 38, "|": 36, "&&": 30, "||": 28,
})  # fmt: skip

# Where (a · b) · c is a · (b · c), to the bit.
_ASSOCIATIVE = frozenset({"&&", "||", "^", "&", "|"})

# Comparisons with a number, which is read more easily behind what it is compared with.
_MIRRORED: Mapping[str, str] = MappingProxyType({"<": ">", "<=": ">=", "==": "==", "!=": "!="})

# Mixed with others of their like, these are put in parentheses: few people know how tightly they bind.
_OBSCURE = frozenset({">>", "<<", "&", "^", "|"})


class ExpressionText(NamedTuple):
    """An expression, and how tightly its outermost operation binds: for an operator between two operands also that, and
    these."""

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
    """An operation, as it is spelled: an operator, or the name of a function."""
    if spelling == "?:":
        condition, then, otherwise = args
        return ExpressionText(
            f"{_within(condition, CHOICE + 1)} ? {_within(then, CHOICE)} : {_within(otherwise, CHOICE)}", CHOICE
        )
    if len(args) == 1 and spelling in ("-", "!"):
        return ExpressionText(f"{spelling}{_within(args[0], PRIMARY)}", UNARY)
    if spelling in _BINARY:
        return _binary(spelling, *args)
    return ExpressionText(f"{spelling}({', '.join(arg.text for arg in args)})")


def _binary(symbol: str, a: ExpressionText, b: ExpressionText) -> ExpressionText:
    if symbol in ("+", "-") and b.text.startswith("-") and b.level in (UNARY, _BINARY["*"]):
        # What is added is a negative number, a value with the other sign, or a product that begins with such a one.
        return _binary("-" if symbol == "+" else "+", a, ExpressionText(b.text[1:], PRIMARY if b.level == UNARY else b.level))
    if symbol in _MIRRORED and a.is_number and not b.is_number:
        return _binary(_MIRRORED[symbol], b, a)
    level = _BINARY[symbol]
    left, right = _operand(symbol, level, a), _operand(symbol, level if symbol in _ASSOCIATIVE else level + 1, b)
    return ExpressionText(f"{left} {symbol} {right}", level, symbol, a.text, b.text)


def assignment(name: str, value: ExpressionText) -> str:
    """`x = e`, or `x += e` where that says the same."""
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
