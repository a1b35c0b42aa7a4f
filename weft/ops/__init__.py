"""The table of operators and builtins: one row holds all that any part of weft knows about one of them.

To add a builtin, add a row to the file of its family. Nothing here imports numpy or a device library: the caller passes
numpy to a row's vector form.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from weft.ops.arithmetic import ARITHMETIC, EXPONENTIAL, ROUNDING
from weft.ops.curves import GEOMETRY, SHAPING, TRIGONOMETRY
from weft.ops.logic import LOGIC
from weft.ops.noise import HASHING, NOISE
from weft.ops.spec import ConstantSpec, OpSpec, OpTable, Param

__all__ = ["BINARY", "BUILTINS", "CONSTANTS", "CONSTANT_ROWS", "OPS", "UNARY", "ConstantSpec", "OpSpec", "Param"]

_FAMILIES = (ARITHMETIC, LOGIC, ROUNDING, SHAPING, GEOMETRY, TRIGONOMETRY, EXPONENTIAL, HASHING, NOISE)


def _table() -> Mapping[str, OpSpec]:
    table = OpTable()
    for family in _FAMILIES:
        for row in family:
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
"""The rows of binary operators, by each of their symbols."""

UNARY = _index((symbol, row) for row in OPS.values() if len(row.params) == 1 for symbol in row.symbols)
"""The rows of the prefix operators, by their symbols."""

BUILTINS = _index((name, row) for row in OPS.values() for name in row.call_names)
"""The rows that a patch may call, by each name that it may use."""

CONSTANT_ROWS = (
    ConstantSpec("pi", math.pi, "half a turn in radians", "sin(me@x * pi)"),
    ConstantSpec("tau", math.tau, "a whole turn in radians, 2 pi", "sin(me@x * tau)"),
    ConstantSpec("e", math.e, "the base of the natural logarithm", "e ^ (-4 * me@x)"),
)

CONSTANTS: Mapping[str, float] = MappingProxyType({row.name: row.value for row in CONSTANT_ROWS})
"""The constants, by their names."""
