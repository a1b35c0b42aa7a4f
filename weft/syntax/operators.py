"""The operators as the syntax sees them: symbols, precedence and grouping, read from the table in `weft.ops`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from weft.ops import OPS
from weft.ops.spec import OpSpec

# Two of the language's levels have rules of their own: `if` is no row of the table, and comparisons do not chain.
IF_LEVEL = 1
COMPARISON_LEVEL = 5


@dataclass(frozen=True, slots=True)
class Operator:
    """How an operator binds: a larger level binds tighter; `right` groups from the right."""

    symbol: str
    level: int
    right: bool


def _operators(rows: Iterable[OpSpec], operands: int) -> Mapping[str, Operator]:
    return MappingProxyType(
        {
            symbol: Operator(symbol, row.level, row.right)
            for row in rows
            if row.kind == "operator" and len(row.params) == operands
            for symbol in row.symbols
        }
    )


BINARY = _operators(OPS.values(), operands=2)
PREFIX = _operators(OPS.values(), operands=1)
