"""Making expressions from rows of the table of operators: expansion, constants, and what can be left out."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.errors import Span
from weft.ir.expr import Expr, Pool, topological
from weft.ops import OPS, formula
from weft.ops.spec import OpSpec

# The order of their operands is chosen by age, so that a · b and b · a are one expression.
_COMMUTATIVE = frozenset({"add", "mul", "eq", "ne", "and", "or"})


@dataclass(slots=True)
class Constants:
    """The numbers that expressions are known to be, each computed once."""

    _known: dict[Expr, float | None] = field(default_factory=dict)

    def of(self, value: Expr) -> float | None:
        """The number that an expression is at every coordinate, None if it varies. Bits are whole numbers."""
        if value not in self._known:
            for node in topological([value]):
                if node not in self._known:
                    self._known[node] = self._fold(node)
        return self._known[value]

    def _fold(self, node: Expr) -> float | None:
        if node.op in ("const", "bits") and isinstance(node.attr, (float, int)):
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
        first, rest = args[: len(row.params)], args[len(row.params) :]
        made = self.pool.make(name, first, None, self.span)
        for arg in rest:
            made = self.pool.make(name, (made, arg), None, self.span)
        return made

    def constant_of(self, value: Expr, /) -> float | None:
        return self.constants.of(value)

    def simplified(self, name: str, args: tuple[Expr, ...]) -> Expr:
        """A primitive row applied to operands, or something simpler that is the same for every operand."""
        row = OPS[name]
        numbers = [a.attr for a in args if a.op in ("const", "bits") and isinstance(a.attr, (float, int))]
        if args and len(numbers) == len(args):
            return self._number(row, row.fold(*numbers))
        kept = _unchanged(name, args)
        if kept is not None:
            return kept
        if name in _COMMUTATIVE:
            args = tuple(sorted(args, key=lambda a: a.index))
        return self.pool.make(name, args, None, self.span)

    def _number(self, row: OpSpec, value: float) -> Expr:
        return self.bits(int(value)) if row.gives == "bits" else self.const(value)


def _unchanged(name: str, args: tuple[Expr, ...]) -> Expr | None:
    """The operand that an operation gives back as it is, for every value of it, infinities and NaN included. Only the
    sign of a zero may differ, which the language does not promise."""
    match name, args:
        case ("mul", (a, b)) if _is(b, 1.0):
            return a
        case ("mul", (a, b)) if _is(a, 1.0):
            return b
        case ("div", (a, b)) if _is(b, 1.0):
            return a
        case (("add" | "sub"), (a, b)) if _is(b, 0.0):
            return a
        case ("add", (a, b)) if _is(a, 0.0):
            return b
        case "select", (c, a, b):
            if c.op == "const":
                return b if c.attr == 0 else a
            return a if a is b else None
        case ("neg", (a,)) if a.op == "neg":
            return a.args[0]
        case _:
            return None


def _is(node: Expr, value: float) -> bool:
    return node.op == "const" and node.attr == value
