"""The instructions of native forms on numpy arrays: what the forms compute, without machine code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.ops import OpSpec

Array = NDArray[Any]

# The result of a conversion that is undefined. Processors differ here, so a form must not depend on it.
_GARBAGE = 0x5EA1_ED17


class NumpyLanes:
    """Values are arrays: float32, bool or uint32. Raises AssertionError where an instruction gets another type."""

    def __init__(self, fused: bool) -> None:
        self._fused = fused

    @property
    def fused(self) -> bool:
        return self._fused

    digits = 24
    waits = False

    def real(self, value: float, /) -> Array:
        return np.asarray(value, np.float32)

    def where(self, c: Array, make: Callable[[], Array], otherwise: Array, /) -> Array:
        return self.select(c, make(), otherwise) if np.any(c) else otherwise

    def repeat(self, x: Array, goes_on: Callable[[Array], Array], step: Callable[[Array], Array], /) -> Array:
        while np.any(goes_on(x)):
            x = step(x)
        return x

    def known(self, x: Array, /) -> float | None:
        return float(x) if x.ndim == 0 and x.dtype == np.float32 and not np.isnan(x) else None

    def bits(self, value: int, /) -> Array:
        return np.asarray(value & 0xFFFF_FFFF, np.uint32)

    def add(self, a: Array, b: Array, /) -> Array:
        return np.add(*_reals(a, b))

    def sub(self, a: Array, b: Array, /) -> Array:
        return np.subtract(*_reals(a, b))

    def mul(self, a: Array, b: Array, /) -> Array:
        return np.multiply(*_reals(a, b))

    def div(self, a: Array, b: Array, /) -> Array:
        return np.divide(*_reals(a, b))

    def neg(self, x: Array, /) -> Array:
        return np.negative(*_reals(x))

    def abs(self, x: Array, /) -> Array:
        return np.abs(*_reals(x))

    def sqrt(self, x: Array, /) -> Array:
        return np.sqrt(*_reals(x))

    def fma(self, a: Array, b: Array, c: Array, /) -> Array:
        a, b, c = _reals(a, b, c)
        if not self.fused:
            return np.add(np.multiply(a, b), c)
        # The product is exact in double precision, and the sum nearly so.
        wide = np.multiply(a, b, dtype=np.float64) + c
        return np.asarray(wide).astype(np.float32)

    def floor(self, x: Array, /) -> Array:
        return np.floor(*_reals(x))

    def nearest(self, x: Array, /) -> Array:
        return np.rint(*_reals(x))

    def lesser(self, a: Array, b: Array, /) -> Array:
        a, b = _reals(a, b)
        return np.where(a < b, a, b)

    def greater(self, a: Array, b: Array, /) -> Array:
        a, b = _reals(a, b)
        return np.where(a > b, a, b)

    def eq(self, a: Array, b: Array, /) -> Array:
        return np.equal(*_reals(a, b))

    def ne(self, a: Array, b: Array, /) -> Array:
        return np.not_equal(*_reals(a, b))

    def lt(self, a: Array, b: Array, /) -> Array:
        return np.less(*_reals(a, b))

    def le(self, a: Array, b: Array, /) -> Array:
        return np.less_equal(*_reals(a, b))

    def both(self, a: Array, b: Array, /) -> Array:
        return np.logical_and(*_truths(a, b))

    def either(self, a: Array, b: Array, /) -> Array:
        return np.logical_or(*_truths(a, b))

    def negation(self, a: Array, /) -> Array:
        return np.logical_not(*_truths(a))

    def select(self, c: Array, a: Array, b: Array, /) -> Array:
        values = _bits(a, b) if a.dtype == np.uint32 else _reals(a, b)
        return np.where(*_truths(c), *values)

    def bits_add(self, a: Array, b: Array, /) -> Array:
        return np.add(*_bits(a, b))

    def bits_sub(self, a: Array, b: Array, /) -> Array:
        return np.subtract(*_bits(a, b))

    def bits_mul(self, a: Array, b: Array, /) -> Array:
        return np.multiply(*_bits(a, b))

    def bits_and(self, a: Array, b: Array, /) -> Array:
        return np.bitwise_and(*_bits(a, b))

    def bits_or(self, a: Array, b: Array, /) -> Array:
        return np.bitwise_or(*_bits(a, b))

    def bits_xor(self, a: Array, b: Array, /) -> Array:
        return np.bitwise_xor(*_bits(a, b))

    def bits_shl(self, a: Array, n: Array, /) -> Array:
        assert np.all(n < 32)
        return np.left_shift(*_bits(a, n))

    def bits_shr(self, a: Array, n: Array, /) -> Array:
        assert np.all(n < 32)
        return np.right_shift(*_bits(a, n))

    def single(self, x: Array, /) -> Array:
        return _reals(x)[0]

    def bits_in(self, x: Array, /) -> Array:
        return _reals(x)[0].view(np.uint32)

    def real_in(self, a: Array, /) -> Array:
        return _bits(a)[0].view(np.float32)

    def whole(self, x: Array, /) -> Array:
        (x,) = _reals(x)
        fits = (x >= -(2.0**31)) & (x < 2.0**31)
        return np.where(fits, np.where(fits, x, 0).astype(np.int32).view(np.uint32), np.uint32(_GARBAGE))

    def real_of(self, a: Array, /) -> Array:
        return _bits(a)[0].view(np.int32).astype(np.float32)


def _reals(*values: Array) -> tuple[Array, ...]:
    return _all_of(np.float32, values)


def _truths(*values: Array) -> tuple[Array, ...]:
    return _all_of(np.bool_, values)


def _bits(*values: Array) -> tuple[Array, ...]:
    return _all_of(np.uint32, values)


def _all_of(kind: type[np.generic], values: tuple[Array, ...]) -> tuple[Array, ...]:
    arrays = tuple(map(np.asarray, values))  # numpy makes numbers of arrays without axes
    assert all(array.dtype == kind for array in arrays), (kind, [array.dtype for array in arrays])
    return arrays


def native(row: OpSpec, fused: bool, *operands: Array) -> Array:
    """The value of a row by its native form. More operands than the row has are folded from the left."""
    if len(operands) > len(row.params):
        return native(row, fused, native(row, fused, *operands[:-1]), operands[-1])
    lanes = NumpyLanes(fused)
    form = getattr(lanes, row.native) if isinstance(row.native, str) else partial(row.native, lanes)
    with np.errstate(all="ignore"):
        return np.asarray(form(*operands))
