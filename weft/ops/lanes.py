"""What the native forms of rows are written against: arithmetic on vectors of numbers, in single or double precision.

A native form is a function `(lanes, *operands) -> result`. It asks `lanes` for instructions and never looks into the
values it is handed, so that one form serves every processor, and the tests can run it without one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

V = TypeVar("V")


class Lanes(Protocol[V]):
    """Emits instructions on values. A value is, in every lane, a real, a truth or bits (32)."""

    @property
    def fused(self) -> bool:
        """Whether `fma` rounds once. Where it does not, it is a product and a sum."""

    @property
    def digits(self) -> int:
        """How many binary digits reals have: 24 or 53."""

    def real(self, value: float, /) -> V:
        """A constant, rounded to the precision of reals."""

    def bits(self, value: int, /) -> V:
        """A constant of 32 bits; negative ones as their complement."""

    def known(self, x: V, /) -> float | None:
        """The number that a real is, if it is a constant, and not NaN."""

    # Reals.

    def add(self, a: V, b: V, /) -> V: ...
    def sub(self, a: V, b: V, /) -> V: ...
    def mul(self, a: V, b: V, /) -> V: ...
    def div(self, a: V, b: V, /) -> V: ...
    def neg(self, x: V, /) -> V: ...
    def abs(self, x: V, /) -> V: ...
    def sqrt(self, x: V, /) -> V: ...

    def fma(self, a: V, b: V, c: V, /) -> V:
        """`a · b + c`."""

    def library(self, function: str, /, *args: V) -> V:
        """A function of C's library, called for each lane. Only where reals are doubles."""

    def floor(self, x: V, /) -> V: ...

    def nearest(self, x: V, /) -> V:
        """The nearest whole number; of two the even one."""

    def lesser(self, a: V, b: V, /) -> V:
        """`a if a < b else b`: b where either is NaN."""

    def greater(self, a: V, b: V, /) -> V:
        """`a if a > b else b`: b where either is NaN."""

    # Truths.

    def eq(self, a: V, b: V, /) -> V: ...
    def ne(self, a: V, b: V, /) -> V:
        """Also true where either is NaN."""

    def lt(self, a: V, b: V, /) -> V: ...
    def le(self, a: V, b: V, /) -> V: ...
    def both(self, a: V, b: V, /) -> V: ...
    def either(self, a: V, b: V, /) -> V: ...
    def negation(self, a: V, /) -> V: ...

    def select(self, c: V, a: V, b: V, /) -> V:
        """Reals or bits: a where the truth c holds, else b."""

    # What is seldom needed.

    def where(self, c: V, make: Callable[[], V], otherwise: V, /) -> V:
        """Reals: `make()` where the truth c holds, else `otherwise`. If c holds in no lane, what `make` emits is left
        out."""

    def repeat(self, x: V, goes_on: Callable[[V], V], step: Callable[[V], V], /) -> V:
        """A real that becomes `step` of itself in all lanes, for as long as the truth `goes_on` of it holds in any."""

    # Bits.

    def bits_add(self, a: V, b: V, /) -> V: ...
    def bits_sub(self, a: V, b: V, /) -> V: ...
    def bits_mul(self, a: V, b: V, /) -> V: ...
    def bits_and(self, a: V, b: V, /) -> V: ...
    def bits_or(self, a: V, b: V, /) -> V: ...
    def bits_xor(self, a: V, b: V, /) -> V: ...
    def bits_shl(self, a: V, n: V, /) -> V: ...
    def bits_shr(self, a: V, n: V, /) -> V:
        """Zeros come in from the left."""

    # From one to another.

    def single(self, x: V, /) -> V:
        """The nearest real of single precision."""

    def bits_in(self, x: V, /) -> V:
        """The bits by which a real is represented. Only where reals are singles."""

    def real_in(self, a: V, /) -> V:
        """The real that bits represent. Only where reals are singles."""

    def whole(self, x: V, /) -> V:
        """A real without its fraction as a signed number of 32 bits; any bits where x is NaN or does not fit."""

    def real_of(self, a: V, /) -> V:
        """Bits as a signed number, as a real: rounded to nearest."""
