"""The table of operators and builtins: one row holds all that any part of weft knows about one of them.

To add a builtin, add a row to the file of its family. Nothing here imports numpy or a device library: a row's vector
form is given numpy by whoever calls it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from weft.ops import arithmetic, exponential, geometry, hashing, logic, noise, rounding, shaping, trigonometry
from weft.ops.spec import OpSpec, OpTable, Param

__all__ = ["BINARY", "BUILTINS", "CONSTANTS", "OPS", "UNARY", "OpSpec", "Param"]

_FAMILIES = (arithmetic, logic, rounding, shaping, geometry, trigonometry, exponential, hashing, noise)


def _table() -> Mapping[str, OpSpec]:
    table = OpTable()
    for family in _FAMILIES:
        for row in family.ROWS:
            table.add(row)
    return table.frozen()


def _index(entries: Iterable[tuple[str, OpSpec]]) -> Mapping[str, OpSpec]:
    index: dict[str, OpSpec] = {}
    for key, row in entries:
        if key in index:
            raise ValueError(f"{key!r} stands for two rows: {index[key].name} and {row.name}")
        index[key] = row
    return MappingProxyType(index)


OPS = _table()
"""Every row, by its name."""

BINARY = _index((symbol, row) for row in OPS.values() if len(row.params) == 2 for symbol in row.symbols)
"""The rows of binary operators, by each way to type them."""

UNARY = _index((symbol, row) for row in OPS.values() if len(row.params) == 1 for symbol in row.symbols)
"""The rows of the operators that stand before their operand."""

BUILTINS = _index((name, row) for row in OPS.values() for name in row.call_names)
"""The rows that a patch may call, by each name that it may use."""

CONSTANTS: Mapping[str, float] = MappingProxyType({"pi": math.pi, "tau": math.tau, "e": math.e})
