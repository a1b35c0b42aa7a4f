"""Loops on each machine: both ends included, fractional bounds, no steps, and the limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.exprs import Exprs, lowered
from tests.support.kernels import MACHINES, agree, compiled, launch_of, run
from weft.backends.launch import StateMemory
from weft.backends.vector.machine import VectorExecutor

MACHINE = pytest.mark.parametrize("machine", MACHINES)

# Bounds that are the same for a whole picture, and bounds that differ from element to element.
PLACE = pytest.mark.parametrize("place", ["uniform", "varying"])


def steps_between(e, place):
    """The number of steps from the uniform `first` to `last`, and the sum of the loop's variable."""
    apart = e.coord("x") * 0 * e.coord("y") if place == "varying" else 0
    return e.loop(
        0, (e.uniform("first") + apart, e.uniform("last") + apart), [0, 0],
        [e.carried(0) + 1, e.carried(0, 1) + e.index(0)],
    )  # fmt: skip


# The first and the last value, how many steps that makes, and what the variable sums up to.
RANGES = {
    "whole": (1, 4, 4, 10),
    "fractional": (0.5, 3.4, 3, 4.5),
    "ends on its last": (0.1, 3.1, 4, 6.4),
    "one step": (2, 2, 1, 2),
    "end below start": (3, 2.9, 0, 0),
    "negative": (-2, 1, 4, -2),
    "NaN first": (math.nan, 3, 0, 0),
    "NaN last": (1, math.nan, 0, 0),
    "infinite": (1, -math.inf, 0, 0),
}


@MACHINE
@PLACE
@pytest.mark.parametrize("bounds", RANGES)
def test_steps(machine, place, bounds):
    first, last, count, total = RANGES[bounds]
    made = compiled(lowered(*steps_between(Exprs(), place)))
    got = run(made, machine, (3, 5), uniforms={"first": first, "last": last})
    assert (got[0] == count).all()
    assert agree(machine, got[1], total)


@pytest.mark.parametrize("place", ["uniform", "varying"])
def test_single_precision_makes_the_same_steps(place):
    made = compiled(lowered(*steps_between(Exprs(), place)))
    launch = launch_of((3, 5), uniforms={"first": 0.1, "last": 3.1})
    got = VectorExecutor().load(made).planes(StateMemory(()), launch)
    assert (got[0] == 4).all()


@MACHINE
@PLACE
@pytest.mark.parametrize("last", [5000, math.inf])
def test_a_loop_stops_at_its_limit(machine, place, last):
    stopped = []
    made = compiled(lowered(*steps_between(Exprs(), place)))
    inputs = {"uniforms": {"first": 1.0, "last": last}, "loop_stopped": lambda: stopped.append(1)}
    got = run(made, machine, (1, 2), **inputs)
    assert (got[0] == 4096).all()
    assert stopped == [1]


@MACHINE
@PLACE
def test_the_last_step_that_is_allowed_is_no_reason_to_warn(machine, place):
    made = compiled(lowered(*steps_between(Exprs(), place)))
    inputs = {"uniforms": {"first": 1.0, "last": 4096.0}, "loop_stopped": lambda: pytest.fail("warns")}
    assert (run(made, machine, (1, 2), **inputs)[0] == 4096).all()


@MACHINE
def test_each_element_stops_at_a_step_of_its_own(machine):
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    (total,) = e.loop(0, (1, x * 10 + y * 3), [0], [e.carried(0) + e.index(0) * y])
    shape = (3, 7)
    got = run(compiled(lowered(total)), machine, shape)[0]
    for row, column in np.ndindex(shape):
        place_y = (row + 0.5) / 3
        last = math.floor((column + 0.5) / 7 * 10 + place_y * 3)
        assert got[row, column] == pytest.approx(sum(range(last + 1)) * place_y)


@MACHINE
def test_values_for_the_next_step_are_taken_at_once(machine):
    e = Exprs()
    first, second = e.carried(0), e.carried(0, 1)
    rotated = e.loop(0, (1, e.coord("x") * 3), [1, 2, 3], [second, e.carried(0, 2), first])
    fixed = e.loop(0, (1, 3), [1, e.coord("x")], [second, first])
    got = run(compiled(lowered(*rotated, *fixed)), machine, (1, 3))
    assert got[:3, 0].T.tolist() == [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    assert agree(machine, got[3, 0], [1 / 6, 0.5, 5 / 6])


def nest(e, outer_last, inner_last):
    """How many steps an inner loop makes in all, and how many the outer one does."""
    (inner,) = e.loop(1, (1, inner_last), [e.carried(0)], [e.carried(1) + 1])
    return e.loop(0, (1, outer_last), [0, 0], [inner, e.carried(0, 1) + 1])


@MACHINE
@PLACE
def test_nested_loops_share_their_steps(machine, place):
    e = Exprs()
    apart = e.coord("x") * 0 * e.coord("y") if place == "varying" else 0
    stopped = []
    made = compiled(lowered(*nest(e, e.uniform("n") + apart, e.uniform("m"))))
    got = run(
        made, machine, (1, 2), uniforms={"n": 400.0, "m": 1000.0}, loop_stopped=lambda: stopped.append(1)
    )  # fmt: skip
    # 65 outer steps with 1000 inner ones each leave 471 of 65,536; the 66th outer step takes one of these.
    assert got[:, 0, 0].tolist() == [65 * 1000 + 470, 66]
    assert got[:, 0, 1].tolist() == [65 * 1000 + 470, 66]
    assert stopped == [1]


@MACHINE
def test_a_nest_runs_out_where_it_is_long(machine):
    e = Exprs()
    made = compiled(lowered(*nest(e, 4000, e.coord("x") * e.uniform("m"))))
    stopped = []
    got = run(made, machine, (1, 2), uniforms={"m": 40.0}, loop_stopped=lambda: stopped.append(1))
    assert got[:, 0, 0].tolist() == [4000 * 10, 4000]
    # Each outer step takes 31 steps in all; 65,536 = 2114 · 31 + 2.
    assert got[:, 0, 1].tolist() == [2114 * 30 + 1, 2115]
    assert stopped == [1]


@MACHINE
def test_an_element_that_has_left_the_outer_loop_makes_no_steps_in_the_inner(machine):
    e = Exprs()
    left = e("lt", e.coord("x"), 0.5)
    # The left element would exceed the limit in the fifth step of the outer loop, but makes only three.
    counts = nest(e, e("select", left, 3, 9), e("select", left, e.index(0) * 1000, 1))
    inputs = {"loop_stopped": lambda: pytest.fail("warns")}
    assert run(compiled(lowered(*counts)), machine, (1, 2), **inputs)[:, 0].T.tolist() == [[6000, 3], [9, 9]]


@MACHINE
def test_loops_side_by_side_do_not_share(machine):
    e = Exprs()
    counts = [e.loop(0, (1, 4096), [n], [e.carried(0) + 1])[0] for n in range(17)]
    (again,) = nest(e, 60, 1000)[:1]
    inputs = {"loop_stopped": lambda: pytest.fail("warns")}
    got = run(compiled(lowered(*counts, again)), machine, **inputs)
    assert got[:, 0, 0].tolist() == [4096 + n for n in range(17)] + [60_000]


@MACHINE
def test_a_body_may_read_what_is_around_it(machine):
    e = Exprs()
    x, y, i, j = e.coord("x"), e.coord("y"), e.index(0), e.index(1)
    shared = x * y + i
    (inner,) = e.loop(1, (i, i + y * 4), [shared], [e.carried(1) + shared * j + e.carried(0, 1)])
    a, b = e.loop(0, (1, x * 5), [0, y], [e.carried(0) + inner, e.carried(0, 1) + shared])
    ir = lowered(a + b * x, a)
    expected = run(compiled(ir), "vm", (4, 6))
    for optimise in (True, False):
        assert agree(machine, run(compiled(ir, optimise), machine, (4, 6)), expected)


@MACHINE
def test_a_loop_of_the_frame_warns_too(machine):
    e = Exprs()
    (count,) = e.loop(0, (1, e.uniform("n")), [0], [e.carried(0) + 1])
    stopped = []
    got = run(compiled(lowered(count)), machine, uniforms={"n": 1e9}, loop_stopped=lambda: stopped.append(1))
    assert (got.item(), stopped) == (4096, [1])
