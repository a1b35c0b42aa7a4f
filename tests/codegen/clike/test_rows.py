"""Every row of the table of operators and builtins, as a graphics card computes it: over hard operands, against its
fold."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from tests.ops.operands import disagreements, is_about_bits, table_for, types, vector_tolerance
from tests.support.devices import DRAWING, cuda, device, embedded_graphics, executor_on, graphics, opencl, wgpu
from tests.support.exprs import Exprs, image_slot, lowered
from tests.support.kernels import compiled, launch_of
from tests.support.metal.executor import MetalExecutor
from tests.support.tolerances import ANGLE, FUNCTION, POWER, Tolerance
from weft.backends.executors import Executor
from weft.backends.launch import StateMemory
from weft.codegen.kernel import Kernel
from weft.ops import OPS, OpSpec

__all__ = ["cuda", "device", "embedded_graphics", "graphics", "opencl", "wgpu"]

# Sines of up to a turn are the driver's own.
DRIVER = ANGLE.scaled(2)

ROWS = [row for row in OPS.values() if not is_about_bits(row)]


@pytest.fixture(scope="module", params=DRAWING)
def executor(request: pytest.FixtureRequest) -> Executor:
    made = executor_on(request.param, request)
    if isinstance(made, MetalExecutor):
        made.prepare([applying(row.name, len(types(row))) for row in ROWS])
    return made


@cache
def applying(name: str, count: int) -> Kernel:
    """A row, applied to this many operands: they are the last state of each pixel."""
    e = Exprs()
    values = {f"v/{at}": e.state(f"v/{at}", 1) for at in range(count)}
    slots = [image_slot(key) for key in values]
    return compiled(lowered(e(name, *values.values()), slots=slots, updates=values))


def computed(executor: Executor, row: OpSpec, operands: list[np.ndarray]) -> np.ndarray:
    """A row, applied to arrays of operands by a graphics card."""
    kernel = applying(row.name, len(operands))
    shape = (1, len(operands[0]))
    memory = StateMemory(kernel.slots, shape)
    for slot, operand in zip(kernel.slots, operands, strict=True):
        memory.ring(slot.key)[memory.cell(slot.key, 1)] = operand
    return executor.load(kernel).planes(memory, launch_of(shape))[0, 0]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_its_fold(executor: Executor, row: OpSpec) -> None:
    operands = table_for(row, np.float32)
    got = computed(executor, row, operands)
    if row.gives == "bool":
        got = got != 0
    own = {"power": POWER, "pow": POWER, "sinpi": DRIVER, "cospi": DRIVER}
    tolerance = own.get(row.name) or vector_tolerance(row, np.float32)
    assert not list(disagreements(row, operands, got, np.float32, tolerance))[:5]


def reals(seed: int, count: int = 4000) -> np.ndarray:
    """Numbers of all sizes."""
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        return (rng.choice([-1.0, 1.0], count) * 2.0 ** rng.uniform(-120, 120, count)).astype(np.float32)


def folded(row: OpSpec, *operands: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.array([row.fold(*xs) for xs in zip(*(x.tolist() for x in operands), strict=True)], np.float32)


@pytest.mark.parametrize(
    ("name", "limit", "tolerance"),
    [("sin", 1e4, ANGLE), ("cos", 1e4, ANGLE), ("sinpi", 1e6, DRIVER), ("cospi", 1e6, DRIVER),
     ("exp", 88, FUNCTION), ("exp2", 127, FUNCTION), ("log", None, FUNCTION), ("log2", None, FUNCTION)],
)  # fmt: skip
def test_functions_keep_their_digits(executor: Executor, name: str, limit: float | None, tolerance: Tolerance) -> None:
    rng = np.random.default_rng(3)
    x = np.abs(reals(1)) if limit is None else rng.uniform(-limit, limit, 4000).astype(np.float32)
    assert tolerance.agreement(computed(executor, OPS[name], [x]), folded(OPS[name], x)).all()


def test_half_turns_of_huge_numbers(executor: Executor) -> None:
    x = reals(2)
    for name in ("sinpi", "cospi"):
        assert DRIVER.agreement(computed(executor, OPS[name], [x]), folded(OPS[name], x)).all()


@pytest.mark.parametrize("name", ["sin", "cos", "sinpi", "cospi"])
def test_waves_stay_within_one(executor: Executor, name: str) -> None:
    got = computed(executor, OPS[name], [np.concatenate([reals(4), np.float32([math.inf, math.nan])])])
    assert np.isnan(got[-2:]).all()
    assert np.abs(got[:-2]).max() <= 1 + 1e-6


def test_hashes_are_exact(executor: Executor) -> None:
    rng = np.random.default_rng(5)
    places = np.concatenate([reals(6), rng.integers(-(2**24), 2**24, 4000), np.float32([math.inf, math.nan, -0.0])])
    x, y, z = (rng.permutation(places).astype(np.float32) for _ in range(3))
    np.testing.assert_array_equal(computed(executor, OPS["hash"], [x, y, z]), folded(OPS["hash"], x, y, z))


def test_every_primitive_row_has_a_spelling() -> None:
    assert [row.name for row in OPS.values() if (row.clike is None) != (row.expand is not None)] == []


def test_rows_take_as_many_operands_as_the_tests_try() -> None:
    assert max(len(types(row)) for row in ROWS) <= 5
