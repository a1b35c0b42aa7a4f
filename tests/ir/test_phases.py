"""Phases: what is rewritten and what is left alone, that it means the same, and that days do not show."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.support.exprs import Exprs, lowered, number_slot
from tests.support.kernels import (
    AS_WRITTEN, MACHINES, UP_TO_PHASES, WITHOUT_PHASES, compiled, kernel_by, launch_of, run
)
from tests.support.together import all_but, examples
from tests.support.tolerances import EXACT, PHASE, PIXEL
from tests.support.verify_ir import verify
from weft.backends.launch import Launch, StateMemory
from weft.backends.vector.machine import VectorExecutor
from weft.codegen.bytecode import assemble
from weft.codegen.compilation import compile_points
from weft.codegen.kernel import Kernel
from weft.contexts import COMPUTE, VISUAL
from weft.ir.expr import Lowered, StrandRef
from weft.ir.passes import PassContext, run_passes
from weft.ir.rates import Rate
from weft.ops.formula import Term
from weft.ops.noise import UNIT, lattice_hash

# A day and a frame.
LATE = 86_400 + 1 / 60

TIMES = (0.0, 1 / 60, 2.75, -3.3, 3600.02, LATE)


@pytest.fixture
def e():
    return Exprs()


def passed(e: Exprs, *terms, passes=UP_TO_PHASES, spec=VISUAL, **fields) -> Lowered:
    ir = run_passes(lowered(*terms, context=spec.name, **fields), PassContext(e.pool, spec), passes=passes)
    verify(ir)
    return ir


def touched(e: Exprs, *terms, **fields) -> bool:
    return passed(e, *terms, passes=WITHOUT_PHASES, **fields) != passed(e, *terms, **fields)


def work(kernel: Kernel, section: str) -> list[str]:
    """What a section does besides fetching and keeping values."""
    fetching = ("LOAD_", "STORE_", "PUSH", "RETURN")
    code = assemble(kernel).code(Rate[section.upper()])
    return [str(i.operand if i.op == "CALL" else i.op) for i in code if not i.op.startswith(fetching)]


# --- what is rewritten --------------------------------------------------------------------------------------------


def test_one_sum_is_left_at_the_elements():
    kernel = kernel_by("display(sin(10 * (me@x + me@y) + 0.7 * me@time))", UP_TO_PHASES)
    assert work(kernel, "element") == ["ADD", "sin"]
    assert work(kernel, "column") == ["MUL"]
    assert work(kernel, "row") == ["MUL", "ADD"]
    assert work(kernel, "frame").count("floor") == 1


def test_channels_share_one_reduction():
    kernel = kernel_by("display(sin(me@x * me@y + me@time + <0, 2, 4>))", UP_TO_PHASES)
    assert work(kernel, "frame").count("floor") == 1
    assert sorted(work(kernel, "element")) == ["ADD"] * 3 + ["MUL"] + ["sin"] * 3


@pytest.mark.parametrize(
    "text",
    [
        "sin(me@x * me@y * 3 - me@time * 2)",
        "cos(me@time * 2 - me@x * me@y * 3)",
        "sin(-(me@x * me@y * 3 - me@time * 2) / 3)",
        "sin(20 * (hypot(me@x, me@y) + me@x) + me@time)",
        "(me@x * me@y * 8 + me@time) % 4",
        "(me@x * me@y * 8 + me@time) % 3",
        "fract(me@x * me@y + me@time)",
        "tan(me@x * me@y + me@time)",
        "hash(me@x * me@y * 8 + me@time)",
        "noise(me@x * me@y * 8 + me@time)",
        "noise(me@x * 8 + me@time, me@y * 8 - me@time)",
        "voronoi(me@x * 8 + me@time, me@y * 8 - me@time, me@time)",
        "fbm(me@x * 8 + me@time, me@y * 8 - me@time, me@time)",
    ],
)
def test_the_elements_have_no_more_to_do(text):
    plain, kernel = kernel_by(f"display({text})", WITHOUT_PHASES), kernel_by(f"display({text})", UP_TO_PHASES)
    assert work(plain, "frame") != work(kernel, "frame")
    assert len(work(kernel, "element")) <= len(work(plain, "element"))


def test_what_loops_change_stays_in_them():
    text = """
    spindle waves(n) :: o { for i in (1 to n) { o += sin(me@x * i + 3 * me@y + me@time) / i } }
    display(waves(20))
    """
    kernel = kernel_by(text, UP_TO_PHASES)
    assert work(kernel, "row") == ["MUL", "ADD"]
    assert work(kernel, "frame").count("floor") == 1
    loop = work(kernel, "element")
    assert loop[loop.index("LOOP") : loop.index("NEXT")].count("ADD") == 2


@pytest.mark.parametrize(
    "text",
    [
        "sin(me@x * 10 + 3)",
        "sin(me@x * mouse@x)",
        "sin(me@x * exp(-me@time))",
        "sin(me@time * 3 + 1) * me@x",
        "(me@x + mouse@x) % (1 + mouse@y)",
        "abs(me@x + me@time) + sqrt(me@y + me@time)",
        "floor(me@x * 8) + noise(me@x * 8, me@y * 8, me@time)",
        "sin(abs(me@x + me@time))",
    ],
)
def test_what_has_no_phase_is_left_alone(text):
    assert kernel_by(f"display({text})", UP_TO_PHASES) == kernel_by(f"display({text})", WITHOUT_PHASES)


def test_variables_of_loops_vary(e):
    def summed(own):
        return e.loop(0, (1, 4), [0], [e.carried(0) + e("sin", own)])[0] * e.coord("x")

    time, control = e.coord("abstime"), e.uniform("u")
    assert not touched(e, summed(e.index(0) * control + e.coord("x")))
    assert not touched(e, summed(e.coord("x") * e.index(0) + e.carried(0) * control))
    assert touched(e, summed(e.index(0) * time + e.coord("x")))
    assert touched(e, summed(e.coord("x") * e.index(0) + e.carried(0) * time))
    assert touched(e, summed(e.coord("x") * e.index(0) + time))
    assert touched(e, summed(e.carried(0) + time))


def test_rates_are_those_of_the_context(e):
    x, time, state = e.coord("x"), e.coord("abstime"), e.state("v/n", 1)
    slot = {"slots": [number_slot("v/n")], "updates": {"v/n": e.uniform("u")}}
    assert touched(e, e("sin", x + state), **slot)
    assert touched(e, e("sin", x + e.strand("a@b")))
    assert not touched(e, e("sin", x + e.strand("a@b", e.coord("y"))))
    assert not touched(e, e("sin", x + time), spec=COMPUTE)


def test_what_stays_small_is_not_reduced():
    kernel = kernel_by("display(sin(me@x * me@y * 8 + 3 * sin(me@time) + fract(me@time)))", UP_TO_PHASES)
    assert work(kernel, "frame").count("floor") == 0
    assert work(kernel, "element") == ["MUL", "MUL", "ADD", "sin"]


def test_guards_only_where_something_may_be_infinite():
    def guarded(text):
        return "EQ" in work(kernel_by(f"display(hash({text}))", UP_TO_PHASES), "element")

    assert not guarded("me@x * me@y * 8 + me@time")
    assert not guarded("hypot(me@x - 0.5, me@y) * me@aspect / 3 + me@time")
    assert guarded("me@x / me@y + me@time")
    assert guarded("log(me@x * me@y) + me@time")


# --- what it means ------------------------------------------------------------------------------------------------


def forms(e: Exprs, term: Term) -> list[Term]:
    """Every form of argument that is rewritten."""
    floor = e("floor", term)
    periods = [e("mod", term, period) for period in (1, 3, 4, -2.5)]
    bits = e("bits_top", e("bits_of", floor))
    rounded = [floor, floor * 0.5, e("floor", term / 3), e("ceil", term), bits]
    rounded += [e("hash", floor + 1, 0, 0), e("hash", 0, term, term)]
    return [*(e(name, term) for name in ("sin", "cos", "tan", "fract")), e("noise", term, 0, 0), *periods, *rounded]


SPECIAL = (0.25, -7.75, math.inf, -math.inf, math.nan)


@cache
def plain_and_reduced() -> tuple[Kernel, Kernel]:
    """All forms of some sums, as they are written and as they are reduced."""
    e = Exprs()

    def sums() -> list[Term]:
        a, u, k = e.strand("a@b", e.coord("x"), e.coord("y")), e.strand("u@v"), e.strand("k@v")
        return [a + u + 0.5, (0.5 - (a + u)) * k, (a + u + 0.25) / k, e.coord("x") * 0 + u * k]

    terms = [form for term in sums() for form in forms(e, term)]
    plain, reduced = (compiled(passed(e, *terms, passes=passes)) for passes in (AS_WRITTEN, UP_TO_PHASES))
    return plain, reduced


@pytest.mark.parametrize("varying", all_but(1, SPECIAL))
@pytest.mark.parametrize("steady", SPECIAL)
def test_what_is_not_finite(varying, steady):
    plain, reduced = plain_and_reduced()
    assert plain != reduced
    for factor in (1.0, -4.0, 0.0, math.inf, math.nan):
        given = {"a@b": lambda x, y: x * 0 + varying, "u@v": lambda: steady, "k@v": lambda factor=factor: factor}
        strands = {StrandRef(*name.split("@")): value for name, value in given.items()}
        got, expected = run(reduced, strands=strands), run(plain, strands=strands)
        assert PHASE.scaled(100).agreement(got, expected).all(), factor


@pytest.mark.parametrize("steady", [2.0**31, 2.0**32 + 1, -(2.0**40) - 3, 2.0**60, -1e300])
def test_cells_are_whole_numbers_of_any_size(e, steady):
    kernel = compiled(passed(e, e("hash", e.coord("x") * 4 + e.coord("y") * 0 + e.uniform("u"), 0, 0)))
    got = run(kernel, shape=(1, 2), uniforms={"u": steady})
    expected = [(lattice_hash(int(steady) + cell, 0, 0) >> 8) * UNIT for cell in (1, 3)]
    assert got.reshape(-1).tolist() == expected


def test_small_phases_stay_as_they_are_to_the_bit(e):
    x, y, u = e.coord("x"), e.coord("y"), e.uniform("u")
    terms = [e("sin", x * y + u), e("cos", u - x * y), e("fract", x * y + u), e("mod", x * y + u, 3)]
    kernels = [compiled(passed(e, *terms, passes=passes)) for passes in (AS_WRITTEN, UP_TO_PHASES)]
    for u in (0.0, 1e-300, 0.1, 0.7, 0.999):
        plain, reduced = (run(kernel, shape=(3, 4), uniforms={"u": u}) for kernel in kernels)
        assert EXACT.agreement(reduced, plain).all()


def test_points_have_times_of_their_own(e):
    x, y, time = e.coord("x"), e.coord("y"), e.coord("abstime")
    value = e("sin", x * y + time * 3) + e("noise", x * 4 + time, y, 0)
    fields = {"exposed": {"a@b": value}}
    plain, reduced = (
        compile_points(passed(e, passes=passes, **fields), StrandRef("a", "b"), VISUAL)
        for passes in (AS_WRITTEN, UP_TO_PHASES)
    )
    assert plain != reduced
    places = {"x": np.array([0.1, 0.7, 3.0]), "y": np.array([0.2, -4.0, 9.0]), "abstime": np.array([0.0, 7.25, LATE])}
    launch = Launch((1, 3), places)
    got, expected = (MACHINES["vm"].load(kernel).planes(StateMemory(()), launch) for kernel in (reduced, plain))
    assert PHASE.scaled(LATE).agreement(got, expected).all()


@dataclass
class Sums:
    """Random sums with a bound on their size. `around` is what loops add to the leaves."""

    draw: Callable[[Any], Any]
    e: Exprs
    time: float
    around: tuple[tuple[Term, float], ...] = ()

    def leaf(self) -> tuple[Term, float]:
        e = self.e
        x, y = e.coord("x"), e.coord("y")
        leaves = [(x, 1.0), (y, 1.0), (e("hypot", x, y), 1.5), (x * y, 1.0), (e.uniform("u"), 3.0)]
        leaves += [(e.coord("abstime"), abs(self.time))] * 3 + [(e.number(0.3), 0.3), (e.number(-40.7), 40.7)]
        return self.draw(st.sampled_from([*leaves, *self.around, *self.around]))

    def factor(self) -> tuple[Term, float]:
        number = self.draw(st.sampled_from([-1.0, 0.7, 2.0, -3.1]))
        e = self.e
        factors = [(e.number(number), abs(number)), (e.uniform("u"), 3.0), (e.coord("x"), 1.0)]
        return self.draw(st.sampled_from([*factors, (0.3 - e.coord("y") * e.coord("x"), 0.7)]))

    def sum(self, depth: int) -> tuple[Term, float]:
        if depth == 0:
            return self.leaf()
        a, size = self.sum(depth - 1)
        match self.draw(st.sampled_from(["+", "+", "-", "*", "/", "neg"])):
            case "neg":
                return -a, size
            case "*":
                factor, scale = self.factor()
                return self.draw(st.sampled_from([a * factor, factor * a])), size * scale
            case "/":
                return a / 0.7, size / 0.7
            case sign:
                b, other = self.sum(self.draw(st.integers(0, depth - 1)))
                return a + b if sign == "+" else a - b, size + other

    def wave(self, depth: int = 4) -> tuple[Term, float]:
        """A periodic operation that is continuous, so that what rounding does to its argument stays small."""
        e, (a, size) = self.e, self.sum(depth)
        period = self.draw(st.sampled_from([1.0, 3.0, 4.0, -2.5]))
        rest, cell, turned = e("fract", a), e("floor", a), e("mod", a, period)
        bump = 4 * rest * (1 - rest)
        name = self.draw(st.sampled_from(["sin", "cos", "turn", "noise", "steps", "turns", "hash", "next", "cell"]))
        waves: dict[str, Callable[[], Term]] = {
            "turn": lambda: e("sin", turned * (math.tau / period)),
            "noise": lambda: e("noise", a, a * 0.5, e.coord("y")),
            "steps": lambda: cell + rest * rest * (3 - 2 * rest),
            "turns": lambda: e("floor", a / period) * period + turned,
            "hash": lambda: e("hash", a, 0, 0) * bump,
            "next": lambda: e("hash", cell + 3, 2, 0) * bump,
            "cell": lambda: e("sin", cell * math.tau * 0.3) * bump,
        }
        return waves[name]() if name in waves else e(name, a), size

    def loop(self) -> tuple[Term, float]:
        """Waves of what changes from step to step, summed up; they are bounded by the size of their argument."""
        e = self.e
        inside = ((e.index(0), 3.0), (e.carried(0, 1), 4.0))
        wave, size = Sums(self.draw, e, self.time, inside).wave(3)
        bounded = e("sin", wave * 0.5)
        total, _ = e.loop(0, (1, 3), [0, e.coord("x")], [e.carried(0) + bounded, e.carried(0, 1) + 1])
        return total, 4 * size


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), time=st.sampled_from(TIMES), u=st.sampled_from([0.0, 0.7, -2.3]))
def test_it_means_the_same(data, time, u):
    e = Exprs()
    sums = Sums(data.draw, e, time)
    terms, sizes = zip(*[sums.wave(), sums.wave(), sums.loop()], strict=True)
    plain = compiled(passed(e, *terms, passes=AS_WRITTEN), optimise=False)
    reduced = compiled(passed(e, *terms))
    got, expected = (run(kernel, shape=(2, 3), abstime=time, uniforms={"u": u}) for kernel in (reduced, plain))
    for one, other, size in zip(got, expected, sizes, strict=True):
        assert PHASE.scaled(1 + size).agreement(one, other).all()


# --- what it is for -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "sin(me@x * me@y * 20 + me@time * 3)",
        "cos(10 * (me@x + me@y) - me@time * 7)",
        "fract(me@x * me@y * 4 + me@time * 1.3)",
        "((me@x * me@y * 20 + me@time * 9) % 3) / 3",
        "noise(hypot(me@x, me@y) * 4 + me@time * 9, me@y * 4)",
        "noise(me@x * 4, me@x * me@y - me@time * 8, me@time)",
        "fbm(me@x * me@y * 4 + me@time * 5, me@y, me@time)",
        "voronoi(me@x + me@y + me@time * 4, me@y * 4, me@time)",
        "hash(floor(me@x * me@y * 8 - me@time * 90), 3)",
        "sin(floor(me@x * me@y * 8 + me@time * 9) * 12.9898)",
    ],
)
def test_a_day_does_not_show_in_single_precision(text):
    def pixels(kernel, machine):
        memory = StateMemory(kernel.slots, shape, np.float64 if machine is MACHINES["vm"] else np.float32)
        return machine.load(kernel).planes(memory, launch_of(shape, LATE))

    shape = (9, 13)
    exact = pixels(kernel_by(f"display({text})", AS_WRITTEN), MACHINES["vm"])
    choices = (UP_TO_PHASES, WITHOUT_PHASES)
    with_it, without = (pixels(kernel_by(f"display({text})", passes), VectorExecutor()) for passes in choices)
    assert PIXEL.agreement(with_it, exact).all()
    assert not PIXEL.agreement(without, exact).all()
