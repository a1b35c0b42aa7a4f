"""Random programs: the vector machine computes what the reference machine does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.support.exprs import EXACT_OPS, SMOOTH_OPS, programs
from tests.support.kernels import compiled, launch_of
from tests.support.together import examples
from tests.support.tolerances import DOUBLE, EXACT
from weft.backends.launch import StateMemory
from weft.backends.vector.machine import VectorExecutor
from weft.backends.vm import ReferenceExecutor
from weft.ir.expr import StrandRef

SHAPES = st.sampled_from([(1, 1), (7, 3), (1, 9), (5, 1), (4, 6)])
NUMBERS = st.sampled_from([0.0, 0.3, -1.25, 2.0, 7.5])

VM = ReferenceExecutor()
VECTORS = {size: VectorExecutor(np.float64, tile_elements=size) for size in (None, 1, 5, 8)}


def inputs(u, v):
    return {
        "uniforms": {"u": u, "v": v},
        "strands": {StrandRef("a", "b"): lambda x, y: x * 0.5 - y},
        "pictures": {"p": np.random.default_rng(3).random((3, 4, 4)).astype(np.float32)},
    }


def played(executor, kernel, shape, launches, threads=1):
    """The outputs of some ticks in a row, and what the state is then."""
    executable, memory = executor.load(kernel), StateMemory(kernel.slots, shape, np.float64)
    planes = [
        executable.planes(memory, launch_of(shape, at / 60, threads=threads, **inputs(u, v)))
        for at, (u, v) in enumerate(launches)
    ]
    return np.concatenate([*(p.reshape(-1) for p in planes), *(memory.ring(key).reshape(-1) for key in memory.slots)])


@pytest.mark.parametrize(
    ("ops", "tolerance"), [(EXACT_OPS, EXACT), (SMOOTH_OPS, DOUBLE.scaled(1e3))], ids=["exact", "smooth"]
)
@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_vector_is_reference(ops, tolerance, data):
    ir = data.draw(programs(ops))
    shape = data.draw(SHAPES)
    launches = data.draw(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=3))
    kernel = compiled(ir, optimise=data.draw(st.booleans()))
    expected = played(VM, kernel, shape, launches)
    vector = VECTORS[data.draw(st.sampled_from(sorted(VECTORS, key=str)))]
    got = played(vector, kernel, shape, launches)
    assert tolerance.agreement(got, expected).all()


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_optimising_changes_nothing(data):
    ir = data.draw(programs(EXACT_OPS))
    shape = data.draw(SHAPES)
    launches = [(0.3, 2.0), (7.5, -1.25)]
    plain, optimised = (played(VM, compiled(ir, optimise), shape, launches) for optimise in (False, True))
    assert EXACT.agreement(optimised, plain).all()


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_pixels_are_the_planes(data):
    ir = data.draw(programs(EXACT_OPS).filter(lambda ir: len(ir.outputs) != 2))
    shape = data.draw(SHAPES)
    kernel = compiled(ir)
    pictures = []
    for executor in (VM, *VECTORS.values()):
        out = np.empty((*shape, 4), np.uint8)
        memory = StateMemory(kernel.slots, shape, np.float64)
        executor.load(kernel).rgba8(memory, launch_of(shape, **inputs(0.3, 2.0)), out)
        pictures.append(out)
    for picture in pictures[1:]:
        np.testing.assert_array_equal(picture, pictures[0])
