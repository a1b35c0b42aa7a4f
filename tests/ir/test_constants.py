"""What is known of constants that may be tuned: answers to questions, and what is computed from them."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest

import weft
from weft.ir.expr import Expr, ExprBuilder, Pool
from weft.ir.tunable import Tunable, TunedValues, ask, current, equals, retuned, tune, value_of
from weft.ops.formula import Term


def constant(value: float) -> tuple[Tunable, Expr, ExprBuilder]:
    pool = Pool()
    node = pool.tunable(value)
    assert isinstance(node.attr, Tunable)
    return node.attr, node, ExprBuilder(pool)


def is_small(values: TunedValues, one: Tunable, other: Tunable) -> bool:
    return values.of(one) + values.of(other) < 10


def test_other_values_have_to_give_the_same_answers() -> None:
    one, other = Tunable(2.0), Tunable(3.0)
    assert ask(is_small, one, other)
    assert retuned({one: 6.0}) == {one: 6.0}
    assert retuned({one: 6.0, other: 3.5}) == {one: 6.0, other: 3.5}
    assert retuned({one: 6.0, other: 5.0}) is None
    assert retuned({other: 8.0}) is None
    tune({one: 1.0})
    assert retuned({other: 8.0}) == {other: 8.0}
    assert not equals(one, 2.0)
    assert retuned({one: 2.0}) is None
    assert value_of(one) == 1.0
    assert retuned({one: 1.5}) is None


@pytest.mark.parametrize(
    ("before", "after"), [(0.0, -0.0), (0.0, 5e-324), (math.nan, 0.0), (math.inf, -math.inf), (1e308, math.inf)]
)
def test_a_value_that_was_looked_at_may_not_change(before: float, after: float) -> None:
    one = Tunable(before)
    value_of(one)
    assert retuned({one: after}) is None
    assert retuned({one: before}) == {one: before}


def test_what_is_computed_follows() -> None:
    number, node, builder = constant(3.0)
    doubled = builder.folded("mul", node, builder.const(2.0))
    assert builder.folded("mul", node, builder.const(2.0)) is doubled
    less = builder.folded("sub", doubled, node)
    assert [current(each.attr) for each in (doubled, less) if isinstance(each.attr, Tunable)] == [6.0, 3.0]
    x = builder.pool.make("coord", (), "x")
    assert builder.folded("mul", x, less).op == "mul"  # 3 is not 1
    assert retuned({number: 4.0}) == {number: 4.0, doubled.attr: 8.0, less.attr: 4.0}
    assert retuned({number: 1.0}) is None


def test_what_stays_the_same_does_not_follow() -> None:
    number, node, builder = constant(3.5)
    whole = builder.folded("floor", node)
    assert value_of(whole.attr) == 3.0 if isinstance(whole.attr, Tunable) else False
    assert retuned({number: 3.75}) == {number: 3.75}
    assert retuned({number: 4.0}) is None


def test_equal_ones_are_different_constants() -> None:
    pool = Pool()
    x, one, other = pool.make("coord", (), "x"), pool.tunable(2.0), pool.tunable(2.0)
    assert pool.make("mul", (x, one)) is not pool.make("mul", (x, other))
    assert pool.make("mul", (x, one)).key == pool.make("mul", (x, pool.const(5.0))).key


def test_a_constant_in_an_expansion_is_asked_for() -> None:
    number, node, builder = constant(3.0)
    x = Term(builder, builder.pool.make("coord", (), "x"))
    assert builder.op("pow", x.value, node).op == "mul"
    assert retuned({number: 4.0}) is None


def test_its_value_is_no_condition() -> None:
    with pytest.raises(TypeError):
        bool(Tunable(1.0))


@pytest.mark.long
def test_passes_only_ask() -> None:
    """The value without a question is for what comes after the passes. These may read it."""
    after = {"ir/tunable.py", "ir/literals.py", "ir/dump.py", "codegen/units.py", "codegen/compilation.py",
             "runtime/inspect/elements.py"}  # fmt: skip
    root = Path(weft.__file__).parent
    for path in (path for path in root.rglob("*.py") if str(path.relative_to(root)) not in after):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        imports = [each for each in nodes if isinstance(each, ast.ImportFrom) and each.module == "weft.ir.tunable"]
        if imports:
            assert all(name.name != "current" for each in imports for name in each.names), path
            assert not any(isinstance(each, ast.Attribute) and each.attr == "current" for each in nodes), path
        # Passes do not follow from the number of steps of a loop, which is for a message.
        made = [each for each in nodes if isinstance(each, ast.Call) and ast.unparse(each) == "TunedValues()"]
        assert len(made) <= (path.name == "rates.py"), path
