"""Kernels in Metal show what the reference shows: the pictures of generated programs, of memory that is kept from tick
to tick, and of loops. Without a Mac they run on the processor, compiled with the freedoms that compilers of Metal
take."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.codegen.test_glsl_pictures import LOOPS, MEMORIES, POINTS, looping, looping_case, remembering
from tests.support.metal.executor import MetalExecutor, device
from tests.support.parity.cases import Case, case_of, case_of_seed
from tests.support.parity.rule import Outcome, compare
from tests.support.parity.shrink import report
from tests.support.together import all_but
from weft.backends.launch import Launch, StateMemory
from weft.backends.vm import ReferenceExecutor
from weft.codegen.kernel import LOOP_STEPS, NEST_STEPS
from weft.contexts import ContextTable
from weft.errors import Source
from weft.names import StrandRef
from weft.runtime.compiling.stages import Request, build

__all__ = ["device"]

ASKED = int(os.environ.get("WEFT_PARITY", "0"))
FIRST, COUNT, CHUNK = (1_000_000, ASKED, 25) if ASKED else (0, 100, 25)


@pytest.mark.parametrize("start", all_but(1, range(FIRST, FIRST + COUNT, CHUNK)))
def test_generated_programs_show_what_the_reference_shows(start: int, device: Any) -> None:
    executor = MetalExecutor(device)
    cases = {seed: case_of_seed(seed) for seed in range(start, start + CHUNK)}
    executor.prepare(
        [case.kernel for case in cases.values()], [case.kernel for case in cases.values() if case.packed]
    )
    failures: list[tuple[int, Case, Outcome]] = []
    for seed, case in cases.items():
        outcome = compare(case, executor)
        if outcome.unexplained:
            failures.append((seed, case, outcome))
    if failures:
        seed, case, outcome = failures[0]
        seeds = [seed for seed, _, _ in failures]
        pytest.fail(f"programs {seeds}\n" + report(case, executor, outcome, f"program {seed} on msl"), pytrace=False)


@pytest.fixture(scope="module")
def prepared(device: Any) -> MetalExecutor:
    """An executor that has compiled what remembers and what has loops."""
    executor = MetalExecutor(device)
    cases = [*map(remembering, MEMORIES.values()), *(looping_case(looping(body)) for body in LOOPS.values())]
    kernels = [case.kernel for case in cases]
    executor.prepare(kernels, kernels)
    return executor


@pytest.mark.parametrize("text", all_but(8, MEMORIES.values()), ids=MEMORIES.keys())
def test_memory(text: str, prepared: MetalExecutor) -> None:
    assert compare(remembering(text), prepared).unexplained == ()


@pytest.mark.parametrize("body", LOOPS.values(), ids=LOOPS.keys())
def test_loops(body: str, prepared: MetalExecutor) -> None:
    assert compare(looping_case(looping(body)), prepared).unexplained == ()


@pytest.mark.parametrize(
    ("body", "steps"),
    [
        ("for i in (0 to 9e9 * x) { o += 1 }", LOOP_STEPS),
        ("for i in (0 to 9e9 * x) { for j in (0 to 9e9 * x) { o += 1 } }", NEST_STEPS),
    ],
    ids=["a loop", "a nest"],
)
def test_a_loop_that_is_stopped_says_so(body: str, steps: int, device: Any) -> None:
    case = case_of(looping(body), shape=(1, 2), moments=(0.0,))
    (launch,) = case.launches
    stopped: list[None] = []
    executable = MetalExecutor(device).load(case.kernel)
    told = replace(launch, loop_stopped=lambda: stopped.append(None))
    found = executable.planes(StateMemory((), launch.shape), told)
    assert len(stopped) == 1
    np.testing.assert_allclose(found, case.expected[0], rtol=1e-3)
    assert found.max() * 10 <= steps


@pytest.mark.parametrize("text", POINTS.values(), ids=POINTS.keys())
def test_points(text: str, device: Any) -> None:
    text = f"{text}display(a)\ncompute(a(me@x ~ 0.25, me@y ~ 0.75))\n"
    made = build(Request(Source("test.weft", text), ContextTable()))
    (unit,) = (unit for unit in made.units if unit.subgraph.context == "visual")
    kernel = unit.points.get(StrandRef("a", "val"))
    if kernel is None:
        (kernel,) = unit.points.values()
    memory = StateMemory(unit.kernel.slots, (5, 7))
    rng = np.random.default_rng(1)
    for slot in unit.kernel.slots:
        memory.ring(slot.key)[...] = rng.random(memory.ring(slot.key).shape)
    count = 100
    coords = {name: rng.uniform(-0.2, 1.2, count) for name in ("x", "y")} | {"abstime": 0.3, "channel": 0.0}
    launch = Launch((1, count), coords, dict.fromkeys(kernel.uniforms, 0.5))
    expected = ReferenceExecutor().load(kernel).planes(memory, launch)
    np.testing.assert_allclose(MetalExecutor(device).load(kernel).planes(memory, launch), expected, atol=1e-5)
