"""Numbers of a text that can be tuned while a patch plays. An edit that changes only such numbers changes no shapes.

Elaboration does not look at the values of these numbers. It leaves each one open, and its value is filled in afterwards
(`ir/lower.py`). A value may decide something after all, such as how much a delay remembers. The number is decisive from
then on, and a statement with another value of it is another statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass

from weft.codes.rows import InternalError
from weft.errors import Span
from weft.ops import STATE
from weft.sources import SOURCES
from weft.syntax.ast import (
    Binding, Call, CallBinding, Comprehension, For, Number, OutputStatement, SpindleDefinition, Statement, Walkable,
    children
)

# Memory whose arguments decide what is evaluated. Those of all sources do.
_DECIDING = frozenset(STATE) - {"prev", "integrate", "phasor", "hold", "rises"}


# Calls of memory that keep the value of their first argument. This argument decides nothing.
_KEEPING = frozenset({"image", "delay"})


class StaleError(InternalError):
    """A number that has been tuned turned out to be decisive: what is kept was made for another value."""


@dataclass
class Numbers:
    """The open numbers of a text. `values` has the new values of those tuned since their statements were read."""

    open: set[Number] = field(default_factory=set)
    values: Mapping[Number, float] = field(default_factory=dict)
    _decisive: set[Number] = field(default_factory=set)

    def value(self, number: Number) -> float:
        return self.values.get(number, number.value)

    def decide(self, numbers: Iterable[Number]) -> None:
        """Notes that something follows from the values of open numbers. Raises StaleError if one has been tuned."""
        self._decisive.update(numbers)
        if not self.values.keys().isdisjoint(numbers):
            raise StaleError

    def open_in(self, statement: Statement) -> None:
        """Opens the numbers of a statement that has been read. Those of libraries are never tuned."""
        if isinstance(statement, _EVALUATED) and not statement.span.source.library:
            self.open.update(_open(statement))

    def tuned(self, before: Statement, after: Statement) -> Mapping[Number, float] | None:
        """The new values of the open numbers of a statement, if another one differs from it in these only; else
        None."""
        pairs = _paired(before, after)
        if pairs is None:
            return None
        changed = {one: other.value for one, other in pairs if one.value != other.value}
        return changed if all(each in self.open and each not in self._decisive for each in changed) else None


# The statements that have something to evaluate.
_EVALUATED = (Binding, CallBinding, SpindleDefinition, OutputStatement)


def _open(statement: Binding | CallBinding | SpindleDefinition | OutputStatement) -> Iterator[Number]:
    """The numbers of a statement that may be tuned. Bounds of loops may not, nor arguments that decide what a call
    evaluates."""
    waiting: list[Walkable] = []
    match statement:
        case Binding(value=value) | CallBinding(value=value):
            waiting.append(value)
        case SpindleDefinition(body=body, parameters=parameters):
            waiting += body
            waiting += [each.default for each in parameters if each.default is not None]
        case OutputStatement(args=args):
            waiting += [each.value for each in args]
    while waiting:
        match node := waiting.pop():
            case Number():
                yield node
            case Comprehension(item=item):
                waiting.append(item)
            case For(body=body):
                waiting += body
            case Call() if node.name in _DECIDING or node.name in SOURCES:
                waiting += [arg.value for arg in node.args[:1] if node.name in _KEEPING and arg.label in (None, "e")]
            case _:
                waiting += children(node)


def _paired(one: object, other: object) -> list[tuple[Number, Number]] | None:
    """The numbers of two trees that differ in nothing but numbers and places, in pairs; else None."""
    found: list[tuple[Number, Number]] = []
    waiting: list[tuple[object, object]] = [(one, other)]
    while waiting:
        one, other = waiting.pop()
        if one is other or (isinstance(one, Span) and isinstance(other, Span)):
            continue
        if type(one) is not type(other):
            return None
        if isinstance(one, Number) and isinstance(other, Number):
            found.append((one, other))
        elif isinstance(one, tuple) and isinstance(other, tuple):
            if len(one) != len(other):
                return None
            waiting += zip(one, other, strict=True)
        elif is_dataclass(one):
            waiting += [(getattr(one, each.name), getattr(other, each.name)) for each in fields(one)]
        elif one != other:
            return None
    return found
