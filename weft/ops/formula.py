"""An algebra in which the expansion of a row is written as a formula.

A `Term` wraps a value of a builder: an expression of the IR, or a plain float. The operators of Python and the
functions of this module apply rows to terms, so that `lambda a, b, t: a + (b - a) * t` is the expansion of `mix` for
every builder. Plain numbers mix in freely, as long as one operand is a term, which has the builder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from weft.ops.spec import OpSpec

V = TypeVar("V")


class TermBuilder(Protocol[V]):
    """Turns rows and operands into its own values."""

    def const(self, value: float, /) -> V:
        """The value of a constant."""

    def bits(self, value: int, /) -> V:
        """The value of an unsigned 32-bit constant."""

    def op(self, name: str, /, *args: V) -> V:
        """The row `name`, applied. The row may have an `expand` of its own, and operands may have other types than the
        row takes: a bool becomes a float by `to_float`, a float becomes a bool by `ne(x, 0)`."""

    def constant_of(self, value: V, /) -> float | None:
        """The number of a float, if it is known."""


class Term:
    """A value together with its builder."""

    __slots__ = ("builder", "value")

    def __init__(self, builder: TermBuilder[Any], value: Any) -> None:
        self.builder = builder
        self.value = value

    def const(self, value: float) -> Term:
        """A constant for the same builder."""
        return Term(self.builder, self.builder.const(float(value)))

    def _apply(self, name: str, other: Operand) -> Term:
        """A row applied to this term and another operand."""
        return Term(self.builder, self.builder.op(name, self.value, _lift(self.builder, other)))

    def _apply_reflected(self, name: str, other: Operand) -> Term:
        return Term(self.builder, self.builder.op(name, _lift(self.builder, other), self.value))

    def __add__(self, other: Operand) -> Term:
        return self._apply("add", other)

    def __radd__(self, other: Operand) -> Term:
        return self._apply_reflected("add", other)

    def __sub__(self, other: Operand) -> Term:
        return self._apply("sub", other)

    def __rsub__(self, other: Operand) -> Term:
        return self._apply_reflected("sub", other)

    def __mul__(self, other: Operand) -> Term:
        return self._apply("mul", other)

    def __rmul__(self, other: Operand) -> Term:
        return self._apply_reflected("mul", other)

    def __truediv__(self, other: Operand) -> Term:
        return self._apply("div", other)

    def __rtruediv__(self, other: Operand) -> Term:
        return self._apply_reflected("div", other)

    def __mod__(self, other: Operand) -> Term:
        return self._apply("mod", other)

    def __rmod__(self, other: Operand) -> Term:
        return self._apply_reflected("mod", other)

    def __neg__(self) -> Term:
        return _call("neg", self)


Operand: TypeAlias = "Term | float"
Bits: TypeAlias = "Term | int"


def expand(row: OpSpec, builder: TermBuilder[V], operands: Sequence[V]) -> V:
    """The row, rewritten into other rows by its `expand`. Raises ValueError if it has none."""
    if row.expand is None:
        raise ValueError(f"{row.name} is a primitive: it has no expansion")
    value: V = _lift(builder, row.expand(*(Term(builder, operand) for operand in operands)))
    return value


def constant_of(x: Operand) -> float | None:
    """The number of x, if it is known."""
    return x.builder.constant_of(x.value) if isinstance(x, Term) else float(x)


def _builder_of(operands: tuple[Operand, ...]) -> TermBuilder[Any]:
    for operand in operands:
        if isinstance(operand, Term):
            return operand.builder
    raise TypeError("a formula needs a term among its operands")


def _lift(builder: TermBuilder[Any], x: Operand) -> Any:
    return x.value if isinstance(x, Term) else builder.const(float(x))


def _call(name: str, *operands: Operand) -> Term:
    builder = _builder_of(operands)
    return Term(builder, builder.op(name, *[_lift(builder, x) for x in operands]))


def _call_bits(name: str, *operands: Bits) -> Term:
    builder = _builder_of(operands)
    values = [x.value if isinstance(x, Term) else builder.bits(x) for x in operands]
    return Term(builder, builder.op(name, *values))


def _unary(name: str) -> Callable[[Operand], Term]:
    return lambda x: _call(name, x)


def _binary(name: str) -> Callable[[Operand, Operand], Term]:
    return lambda a, b: _call(name, a, b)


def _binary_bits(name: str) -> Callable[[Bits, Bits], Term]:
    return lambda a, b: _call_bits(name, a, b)


abs = _unary("abs")
floor = _unary("floor")
sqrt = _unary("sqrt")
exp = _unary("exp")
exp2 = _unary("exp2")
log = _unary("log")
log2 = _unary("log2")
sin = _unary("sin")
cos = _unary("cos")
sinpi = _unary("sinpi")
cospi = _unary("cospi")

min = _binary("min")
max = _binary("max")
power = _binary("power")
atan2 = _binary("atan2")

eq = _binary("eq")
lt = _binary("lt")
le = _binary("le")
and_ = _binary("and")
or_ = _binary("or")
not_ = _unary("not")
to_float = _unary("to_float")

bits_of = _unary("bits_of")
bits_top = _unary("bits_top")
bits_add = _binary_bits("bits_add")
bits_mul = _binary_bits("bits_mul")
bits_xor = _binary_bits("bits_xor")
bits_shr = _binary_bits("bits_shr")


def gt(a: Operand, b: Operand) -> Term:
    return lt(b, a)


def ge(a: Operand, b: Operand) -> Term:
    return le(b, a)


def select(c: Operand, a: Operand, b: Operand) -> Term:
    return _call("select", c, a, b)
