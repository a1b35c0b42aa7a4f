"""Operator precedence: turns a row of operands and operators into a tree, with two stacks and no recursion."""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.errors import Report, Span
from weft.syntax.ast import Binary, Expression, If, Unary
from weft.syntax.operators import BINARY, COMPARISON_LEVEL, IF_LEVEL, PREFIX

# Longer texts are not worth repeating in a hint.
_LONGEST_HINT: Final = 60


class Operand(NamedTuple):
    """An expression and the text it covers, which is more than its own span if it stands in parentheses."""

    value: Expression
    span: Span


class _Pending(NamedTuple):
    """An operator that waits for its last operand."""

    symbol: str
    level: int
    span: Span
    is_prefix: bool = False
    choice: tuple[Expression, Expression] | None = None
    """Condition and then-part of an `if`."""
    follows_comparison: bool = False
    chain: tuple[Span, Span] | None = None
    """The comparison that this one wrongly goes on, and the operand between them."""


class Row:
    """One row of operands and operators, fed from left to right."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._operands: list[Operand] = []
        self._pending: list[_Pending] = []

    def operand(self, operand: Operand) -> None:
        self._operands.append(operand)

    def sign(self, symbol: str, span: Span) -> None:
        """A `-` or `not` in front of an operand. `-` may stand behind any operator (`2^-3`)."""
        level = PREFIX[symbol].level
        if level < COMPARISON_LEVEL and self._pending and self._pending[-1].level > level:
            message = f"`{symbol}` cannot follow `{self._pending[-1].symbol}`, which binds tighter"
            self._report.error("not-needs-parentheses", message, span, f"put it in parentheses: ({symbol} …)")
        self._pending.append(_Pending(symbol, level, span, is_prefix=True))

    def choice(self, condition: Expression, then: Expression, span: Span) -> None:
        """An `if` up to its `else`; `span` is that of the word `if`."""
        self._pending.append(_Pending("if", IF_LEVEL, span, is_prefix=True, choice=(condition, then)))

    def operator(self, symbol: str, span: Span) -> None:
        """A binary operator behind an operand."""
        binary = BINARY[symbol]
        loosest_to_reduce = binary.level + binary.right
        follows, chain = False, None
        while self._pending and self._pending[-1].level >= loosest_to_reduce:
            top = self._pending[-1]
            if top.level == binary.level == COMPARISON_LEVEL:
                follows = True
                if not top.follows_comparison:  # a longer chain is one mistake
                    middle = self._operands[-1].span
                    chain = self._operands[-2].span.to(middle), middle
            self._reduce()
        self._pending.append(_Pending(symbol, binary.level, span, follows_comparison=follows, chain=chain))

    def finish(self) -> Operand:
        """The tree of the whole row."""
        while self._pending:
            self._reduce()
        return self._operands.pop()

    def _reduce(self) -> None:
        """Gives the innermost pending operator its last operand."""
        top = self._pending.pop()
        last = self._operands.pop()
        if top.is_prefix:
            span = top.span.to(last.span)
            value: Expression
            if top.choice:
                value = If(*top.choice, last.value, span)
            else:
                value = Unary(top.symbol, last.value, span)
        else:
            first = self._operands.pop()
            span = first.span.to(last.span)
            if top.chain:
                self._report_chain(top, *top.chain, last.span)
            value = Binary(top.symbol, first.value, last.value, span)
        self._operands.append(Operand(value, span))

    def _report_chain(self, second: _Pending, first: Span, middle: Span, last: Span) -> None:
        hint = f"{first.text} and {middle.text} {second.symbol} {last.text}"
        if len(hint) > _LONGEST_HINT or "\n" in hint:
            hint = "a < b and b < c"
        self._report.error("chained-comparison", "comparisons do not chain", second.span, f"write {hint}")
