"""Making expressions from rows of the table of operators: expansion, constants, and what can be left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from weft.errors import Span
from weft.ir.expr import Expr, Pool, topological
from weft.ops import OPS, formula

# The order of their operands is chosen by age, so that a · b and b · a are one expression.
_COMMUTATIVE = frozenset({"add", "mul", "eq", "ne", "and", "or"})


_NUMBERS = ("const", "bits")

# These are NaN if any of their operands is.
_KEEP_NAN = frozenset({"add", "sub", "mul", "div", "mod"})


@dataclass(slots=True)
class Constants:
    """The numbers that expressions are known to be, each computed once."""

    _known: dict[Expr, float | None] = field(default_factory=dict)

    def of(self, value: Expr) -> float | None:
        """The number that an expression is at every coordinate, None if it varies. Bits are whole numbers."""
        if value not in self._known:
            for node in topological([value], self._known):
                self._known[node] = self._fold(node)
        return self._known[value]

    def _fold(self, node: Expr) -> float | None:
        if node.op in _NUMBERS and isinstance(node.attr, (float, int)):
            return node.attr
        if not node.args or node.op not in OPS:
            return None
        numbers = [self._known[a] for a in node.args]
        known = [n for n in numbers if n is not None]
        return OPS[node.op].fold(*known) if len(known) == len(numbers) else None


@dataclass(slots=True)
class Builder:
    """Makes expressions in a pool. What it makes stands for the text at `span`."""

    pool: Pool
    constants: Constants = field(default_factory=Constants)
    span: Span | None = None

    def at(self, span: Span | None) -> Builder:
        """The same builder, for another place in the text."""
        self.span = span
        return self

    def const(self, value: float, /) -> Expr:
        return self.pool.const(value, self.span)

    def bits(self, value: int, /) -> Expr:
        return self.pool.make("bits", (), value, self.span)

    def op(self, name: str, /, *args: Expr) -> Expr:
        """A row applied to operands; a row that expands is rewritten into primitives."""
        row = OPS[name]
        if row.expand is not None:
            return formula.expand(row, self, args)
        count = len(row.params)
        if len(args) == count:
            return self.pool.make(name, args, None, self.span)
        made = self.pool.make(name, args[:count], None, self.span)
        for arg in args[count:]:
            made = self.pool.make(name, (made, arg), None, self.span)
        return made

    def folded(self, name: str, /, *args: Expr) -> Expr:
        """A primitive row applied to operands, as the pass `fold` would leave it."""
        return self.simplified(name, args) or self.pool.make(name, in_order(name, args), None, self.span)

    def constant_of(self, value: Expr, /) -> float | None:
        return self.constants.of(value)

    def simplified(self, name: str, args: tuple[Expr, ...]) -> Expr | None:
        """Something simpler than a primitive row applied to operands that is the same for every operand; None if there
        is nothing."""
        for arg in args:
            if arg.op not in _NUMBERS:
                return _unchanged(name, args)
        row = OPS[name]
        value = row.fold(*(arg.attr for arg in args))
        return self.bits(int(value)) if row.gives == "bits" else self.const(value)


def expanded_size(name: str, operands: Sequence[float | None]) -> int:
    """About how many expressions a row becomes when it is expanded; `operands` are the numbers that are known."""
    row = OPS[name]
    if row.expand is None:
        return max(1, len(operands) - len(row.params) + 1)
    # What is left at its default, or counts something, is what expansions take short cuts for.
    counts = (
        n if n in _SMALL_COUNTS and k < len(row.params) and row.params[k].default is not None else None
        for k, n in enumerate(operands)
    )
    return _expanded_size(name, tuple(counts))


_SMALL_COUNTS = range(17)


@lru_cache(maxsize=256)
def _expanded_size(name: str, operands: tuple[float | None, ...]) -> int:
    builder = Builder(Pool())
    args = [
        builder.pool.make("coord", (), str(k)) if n is None else builder.const(n) for k, n in enumerate(operands)
    ]
    builder.op(name, *args)
    return max(1, len(builder.pool) - len(operands))


def in_order(name: str, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The operands of a row, in the one order in which they are written if it does not matter."""
    return args[::-1] if name in _COMMUTATIVE and args[0].index > args[1].index else args


def _unchanged(name: str, args: tuple[Expr, ...]) -> Expr | None:
    """The operand that an operation gives back as it is, for every value of it, infinities and NaN included. Only the
    sign of a zero may differ, which the language does not promise."""
    if name in _KEEP_NAN:
        # Compilers of shaders may drop an operation on a NaN that they know.
        lost = next((arg for arg in args if arg.op == "const" and arg.attr != arg.attr), None)
        if lost is not None:
            return lost
    match name:
        case "mul" if _is(args[1], 1.0):
            return args[0]
        case "mul" if _is(args[0], 1.0):
            return args[1]
        case "div" if _is(args[1], 1.0):
            return args[0]
        case "add" | "sub" if _is(args[1], 0.0):
            return args[0]
        case "add" if _is(args[0], 0.0):
            return args[1]
        case "select":
            condition, then, otherwise = args
            if condition.op == "const":
                return otherwise if condition.attr == 0 else then
            return then if then is otherwise else None
        case "neg" if args[0].op == "neg":
            return args[0].args[0]
        case "floor" if args[0].op == "floor":
            return args[0]
        case _:
            return None


def _is(node: Expr, value: float) -> bool:
    return node.op == "const" and node.attr == value
