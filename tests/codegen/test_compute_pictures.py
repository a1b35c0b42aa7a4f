"""Kernels in the languages of devices that compute into buffers show what the reference shows: the pictures of
generated programs, of memory that is kept from tick to tick, and of loops."""

from __future__ import annotations

import os

import pytest

from tests.codegen.test_glsl_pictures import LOOPS, MEMORIES, looping, looping_case, remembering
from tests.support.devices import COMPUTE, cuda, executor_on, opencl, wgpu
from tests.support.parity.cases import case_of, case_of_seed
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


def test_a_strand_may_be_called_as_a_function_is_in_the_language(executor: Executor) -> None:
    text = "least = me@x * 3\nsin_pi = me@y - 0.2\nmost = min(least, 0.3) + max(0.1, sin(me@x * pi * 9 + sin_pi))\n"
    shown = case_of(f"{text}display(least, most, sin_pi * most)\n")
    assert compare(shown, executor).unexplained == ()
