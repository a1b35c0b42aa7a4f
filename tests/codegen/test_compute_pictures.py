"""Kernels in the languages of devices that compute into buffers show what the reference shows: the pictures of
generated programs, of memory that is kept from tick to tick, and of loops."""

from __future__ import annotations

import os

import pytest

from tests.codegen.test_glsl_pictures import LOOPS, MEMORIES, looping, looping_case, remembering
from tests.support.devices import COMPUTE, cuda, executor_on, opencl, wgpu
from tests.support.parity.cases import SHAPE, case_of, case_of_seed
from tests.support.parity.rule import compare
from tests.support.parity.shrink import report
from tests.support.together import all_but
from weft.backends.executors import Executor

__all__ = ["cuda", "opencl", "wgpu"]

ASKED = int(os.environ.get("WEFT_PARITY", "0"))
FIRST, COUNT = (1_000_000, ASKED) if ASKED else (0, 100)


@pytest.fixture(params=COMPUTE)
def executor(request: pytest.FixtureRequest) -> Executor:
    return executor_on(request.param, request)


@pytest.mark.parametrize("seed", all_but(5, range(FIRST, FIRST + COUNT)))
def test_generated_programs_show_what_the_reference_shows(seed: int, executor: Executor) -> None:
    case = case_of_seed(seed)
    outcome = compare(case, executor)
    if outcome.unexplained:
        pytest.fail(report(case, executor, outcome, f"program {seed} on {executor.name}"), pytrace=False)


@pytest.mark.parametrize("text", all_but(3, MEMORIES.values()), ids=MEMORIES.keys())
def test_memory(text: str, executor: Executor) -> None:
    assert compare(remembering(text), executor).unexplained == ()


@pytest.mark.parametrize("body", all_but(3, LOOPS.values()), ids=LOOPS.keys())
def test_loops(body: str, executor: Executor) -> None:
    assert compare(looping_case(looping(body)), executor).unexplained == ()


# What devices compute by reciprocals of numbers, sliders and values of a launch, or with few turns.
QUOTIENTS = {
    "by a value of a launch, which is 0 once": "k = me@frame - 1\ndisplay(me@x / k, (me@y - 0.5) / k / 7, 0)\n",
    "by a slider": "#slider by<v> = -4, 4, 2.5\ndisplay(me@x / by, floor(me@px / by) / 9, 0)\n",
    "by numbers": "display(me@x / 3, me@y / -0.7 + 1, floor(me@px / 3) / 9)\n",
    # Beyond 2¹²⁶ and below 2⁻¹²⁶ the quotients of some cards are 0, or infinite.
    "by numbers that have no reciprocal": "display(me@x * 2e37 / 8e37, me@x / 1.2e-38 * 1.2e-38, 0)\n",
    "few turns": "display((me@px / 4) % 0.75, (me@x * 9 - 4) % 1.5, ((me@y - 0.5) * 3) % (me@x + 0.25))\n",
    "many turns": "display((me@px * 4000) % 0.75, (me@x * 9e6) % 1.5, (me@y * 3) % (me@x - 0.25))\n",
    "an infinite period": "display(me@x % (1 / 0), (me@x * me@y + 2) % (1 / 0) / 4, abs(me@x - me@y) % (1 / 0))\n",
    "turns of what is no number": "display((me@x / 0 - me@y / 0) % 0.75, sqrt(-me@x) % 3, 0)\n",
    "whole numbers of any size": "display(hash(floor((me@x - 0.5) * 10 ^ floor(me@y * 40)), 1, 2))\n",
}


@pytest.mark.parametrize("text", all_but(2, QUOTIENTS.values()), ids=QUOTIENTS.keys())
def test_quotients_and_turns(text: str, executor: Executor) -> None:
    shape = (40, 37) if "40" in text else SHAPE
    assert compare(case_of(text, shape=shape), executor).unexplained == ()


def test_a_strand_may_be_called_as_a_function_is_in_the_language(executor: Executor) -> None:
    text = "least = me@x * 3\nsin_pi = me@y - 0.2\nmost = min(least, 0.3) + max(0.1, sin(me@x * pi * 9 + sin_pi))\n"
    shown = case_of(f"{text}display(least, most, sin_pi * most)\n")
    assert compare(shown, executor).unexplained == ()


@pytest.mark.parametrize("text", ["max(0, me@x - 0.5)", "min(1 - clamp(me@x, lo: 0, hi: 1), fract(me@y))"])
def test_a_limit_of_a_pixel_is_all_that_is_called(text: str, executor: Executor) -> None:
    assert compare(case_of(f"display({text})\n"), executor).unexplained == ()
