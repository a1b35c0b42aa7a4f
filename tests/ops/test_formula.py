"""The algebra in which expansions are written."""

from __future__ import annotations

import pytest

from weft.ops import OPS, formula as f
from weft.ops.formula import Term


class Writer:
    """A builder whose values are the text of the expression."""

    def const(self, value: float, /) -> str:
        return f"{value:g}"

    def bits(self, value: int, /) -> str:
        return f"#{value:x}"

    def op(self, name: str, /, *args: str) -> str:
        return f"{name}({', '.join(args)})"

    def constant_of(self, value: str, /) -> float | None:
        try:
            return float(value)
        except ValueError:
            return None


def x() -> Term:
    return Term(Writer(), "x")


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (x() + 1, "add(x, 1)"),
        (1 + x(), "add(1, x)"),
        (x() - 1, "sub(x, 1)"),
        (1 - x(), "sub(1, x)"),
        (x() * 2, "mul(x, 2)"),
        (2 * x(), "mul(2, x)"),
        (x() / 2, "div(x, 2)"),
        (2 / x(), "div(2, x)"),
        (x() % 2, "mod(x, 2)"),
        (2 % x(), "mod(2, x)"),
        (-x(), "neg(x)"),
        (f.gt(x(), 1), "lt(1, x)"),
        (f.ge(x(), 1), "le(1, x)"),
        (f.select(f.lt(x(), 0), 0, x()), "select(lt(x, 0), 0, x)"),
        (f.bits_xor(f.bits_of(x()), 255), "bits_xor(bits_of(x), #ff)"),
    ],
)
def test_terms_write_themselves(term, text):
    assert term.value == text


@pytest.mark.parametrize(
    ("name", "operands", "text"),
    [
        ("mix", ("a", "b", "t"), "add(a, mul(sub(b, a), t))"),
        ("fract", ("a",), "mod(a, 1)"),
        ("pow", ("a", "0"), "1"),
        ("pow", ("a", "1"), "a"),
        ("pow", ("a", "2"), "mul(a, a)"),
        ("pow", ("a", "-1"), "div(1, a)"),
        ("pow", ("a", "0.5"), "sqrt(a)"),
        ("pow", ("a", "1.5"), "mul(a, sqrt(a))"),
        ("pow", ("a", "1.25"), "power(a, 1.25)"),
        ("pow", ("a", "17"), "power(a, 17)"),
        ("pow", ("2", "b"), "exp2(b)"),
        ("pow", ("a", "b"), "power(a, b)"),
        ("length", ("a",), "abs(a)"),
        ("length", ("a", "b", "c"), "sqrt(add(add(mul(a, a), mul(b, b)), mul(c, c)))"),
    ],
)
def test_expansions(name, operands, text):
    assert f.expand(OPS[name], Writer(), operands) == text


def test_a_formula_needs_a_term():
    with pytest.raises(TypeError, match="needs a term"):
        f.sqrt(2)


def test_constants_are_seen_through():
    assert f.constant_of(3) == 3
    assert f.constant_of(Term(Writer(), "3")) == 3
    assert f.constant_of(x()) is None
