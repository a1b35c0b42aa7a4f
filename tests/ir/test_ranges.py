"""What is said of values beforehand holds when they are computed."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.support.exprs import EXACT_OPS, SMOOTH_OPS, Exprs, Garden, lowered
from tests.support.kernels import compiled, run
from tests.support.together import examples
from weft.ir.rates import Finiteness, bound, remainder_of, remainders_among
from weft.ir.tunable import TunedValues


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_known_is_true(data):
    garden = Garden(data.draw, (*EXACT_OPS, *SMOOTH_OPS), levels=2)
    e = garden.builder
    leaves = [e.coord(name) for name in ("x", "y", "abstime")] + [e.uniform("u")]
    grown = [term for term in garden.grow(leaves, 10) if not reads_more(term)]
    finite = Finiteness(anywhere=False)
    values = run(compiled(lowered(*grown)), shape=(2, 3), abstime=-7.5, uniforms={"u": 0.0})
    for term, value in zip(grown, values, strict=True):
        assert not finite.of(term.value) or np.isfinite(value).all()
        assert (np.abs(value[~np.isnan(value)]) <= bound(term.value, TunedValues())).all()


def reads_more(term) -> bool:
    return any(node.op in ("strand", "picture", "state") for node in lowered(term).nodes)


def test_what_is_finite():
    e, finite = Exprs(), Finiteness(anywhere=False)
    x, u = e.coord("x"), e.uniform("u")
    sure = [x * u - 3, x / 4, u / e.uniform("height"), e("hypot", x, u), e("select", e("lt", 1 / u, 2), x, u),
            e("bits_top", e("bits_of", 1 / u)), e("to_float", e("lt", 1 / u, 2))]  # fmt: skip
    unsure = [1 / u, x / 0, e("sqrt", x), e("exp", u), e("log", x), e.strand("a@b"), x * math.inf, e("sin", 1 / u)]
    assert all(finite.of(term.value) for term in sure)
    assert not any(finite.of(term.value) for term in unsure)
    assert not Finiteness(anywhere=True).of((x * u).value)


def test_how_large_it_gets():
    e = Exprs()
    u = e.uniform("u")
    known = [(3 * e("sin", u) - 2, 5), (e("fract", u) * e("mod", u, 4), 4), (-e("abs", e("cos", u)), 1),
             (e("min", e("sin", u), 7), 7), (e("select", u, 2, e("sin", u)), 2), (u * 0, 0)]  # fmt: skip
    assert [bound(term.value, TunedValues()) for term, _ in known] == [size for _, size in known]
    unbounded = u, e("exp", e("sin", u)), e.number(math.nan)
    assert [bound(term.value, TunedValues()) for term in unbounded] == [math.inf] * 3


def test_remainders():
    e = Exprs()
    u, v = e.uniform("u"), e.uniform("v")

    def period(term):
        found = remainder_of(term.value)
        return found and found.period

    rests = [u - e("floor", u), u - 3 * e("floor", u / 3), u - 4 * e("floor", u * 0.25)]
    assert [period(rest) for rest in rests] == [1, 3, 4]
    others = [u - e("floor", v), u - e("floor", u / 3) * 4, u - e("floor", u / v) * v, u - e("floor", u / 1e9) * 1e9]
    assert [period(term) for term in others] == [None] * 4


def test_remainders_whose_floor_is_there_too():
    e = Exprs()
    u = e.uniform("u")
    rests = [e("mod", u, period) for period in (1, 3, 4, 7, 49)]
    floors = [e("floor", u), e("floor", u / 3), e("floor", u * 0.25), e("floor", u / 49)]
    found = remainders_among([term.value for term in (*rests, *floors, e("mod", u, e.uniform("v")))])
    assert [(found[rest.value].period, found[rest.value].whole) for rest in (*rests[:3], rests[4])] == [
        (period, floor.value) for period, floor in zip((1, 3, 4, 49), floors, strict=True)
    ]
    assert len(found) == 4
