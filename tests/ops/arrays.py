"""A builder whose values are numpy arrays: it applies the vector forms of the rows, and expands the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ops import OPS
from weft.ops.formula import expand
from weft.ops.spec import ValueType


class ArrayBuilder:
    """Computes in one real type. Constants are numpy scalars, and known as such to expansions."""

    def __init__(self, real: type[np.floating[Any]]) -> None:
        self.real = real
        self._types: dict[ValueType, Any] = {"float": real, "bool": np.bool_, "u32": np.uint32}

    def const(self, value: float, /) -> Any:
        return self.real(value)

    def bits(self, value: int, /) -> Any:
        return np.uint32(value)

    def constant_of(self, value: Any, /) -> float | None:
        return float(value) if isinstance(value, np.floating) else None

    def op(self, name: str, /, *args: Any) -> Any:
        row = OPS[name]
        if row.expand is not None:
            return expand(row, self, args)
        if len(args) > len(row.params):
            return self.op(name, self.op(name, *args[:-1]), args[-1])
        operands = [self._as(row.type_of_operand(i), arg) for i, arg in enumerate(args)]
        shape = np.broadcast_shapes(*(np.shape(arg) for arg in operands))
        out = self._dirty(shape, self._types[row.gives])
        temps = [self._dirty(shape, self.real) for _ in range(row.temps)]
        with np.errstate(all="ignore"):
            if isinstance(row.vector, str):
                getattr(np, row.vector)(*operands, out=out)
            elif row.vector is not None:
                row.vector(np, out, *operands, *temps)
        return out

    def _as(self, wanted: ValueType, value: Any) -> Any:
        is_truth = np.asarray(value).dtype == np.bool_
        if wanted == "float" and is_truth:
            return self.op("to_float", value)
        if wanted == "bool" and not is_truth:
            return self.op("ne", value, self.const(0))
        return value

    @staticmethod
    def _dirty(shape: tuple[int, ...], kind: Any) -> Any:
        """Uninitialised memory: full of other data."""
        out = np.empty(shape, kind)
        out.view(np.uint8 if out.itemsize == 1 else f"u{out.itemsize}").fill(0xA5)
        return out
