"""Every row in machine code of double precision computes what its fold says, on each family of processors that this one
belongs to."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.ops.operands import EDGES, disagreements, is_about_bits, table_for, types, vector_tolerance
from tests.support.kernels import kernel
from tests.support.tolerances import DOUBLE, EXACT, HALF_TURNS
from weft.backends.launch import Launch, StateMemory
from weft.backends.native import llvm
from weft.backends.native.executor import NativeExecutor
from weft.backends.native.samples import SeriesExecutable
from weft.codegen.bytecode import opcode_of
from weft.codegen.native.target import ISAS
from weft.ir.rates import Rate
from weft.ops import OPS, OpSpec

ROWS = [row for row in OPS.values() if row.expand is None]
REALS = [row for row in ROWS if not is_about_bits(row)]
# Lists of calls, and machine code for vectors of one register.
EXECUTORS = {
    f"{isa.name}, {lanes or 'a list'}": NativeExecutor(llvm.plainest(isa), lanes)
    for isa in ISAS.values()
    if llvm.runs_here(isa)
    for lanes in (None, isa.doubles)
}
EXECUTOR = pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS)

# Beyond 32 bits, around their edges, halves and turns.
HARD = np.array([
    *EDGES, *(sign * 2.0**k + off for k in (31, 32, 33, 52, 53, 54) for sign in (-1, 1) for off in (-1, 0, 1)),
    1e300, -1e300, 1e-300, 5e-324, 0.5 + 2.0**-53, 4503599627370495.5, -0.25, 1e5 + 0.1, 12345678.9, 700, -745, 1024,
])  # fmt: skip


def computed(row: OpSpec, operands: list[np.ndarray], executor, result=()) -> np.ndarray:
    """A row of coordinates, in machine code: arrays of operands in, an array out. `result` is code that runs after
    it."""
    names = [f"operand{at}" for at in range(len(operands))]
    code = []
    for name, kind in zip(names, types(row), strict=False):
        code.append(("LOAD_COORD", name))
        code += [("CALL", "bits_of")] if kind == "u32" else []
    coords = tuple((name, Rate.ELEMENT) for name in names)
    made = kernel([*code, tuple(opcode_of(row)), *result, ("RETURN",)], tick="element", coords=coords, context="audio")
    executable = executor.load(made)
    assert isinstance(executable, SeriesExecutable)
    given = {name: np.asarray(each, np.float64) for name, each in zip(names, operands, strict=True)}
    return np.asarray(executable.planes(StateMemory(()), Launch((1, len(operands[0])), given))[0, 0])


def words(row: OpSpec, operands: list[np.ndarray], executor) -> np.ndarray:
    """The bits that a row gives, from two halves."""
    top = computed(row, operands, executor, [("CALL", "bits_top")])
    low = [("PUSH_BITS", 1 << 24), ("CALL", "bits_mul"), ("CALL", "bits_top")]
    bottom = computed(row, operands, executor, low)
    return (top.astype(np.uint64) << np.uint64(8)) + (bottom.astype(np.uint64) >> np.uint64(16))


def crossed(row: OpSpec) -> list[np.ndarray]:
    """All hard numbers against each other, for the operands that a row has."""
    count = min(2, len(row.params))
    table = [grid.ravel() for grid in np.meshgrid(*[HARD] * count)]
    return [*table, *(np.roll(table[0], 7) for _ in range(len(row.params) - count))]


@EXECUTOR
@pytest.mark.parametrize("row", REALS, ids=lambda row: row.name)
def test_usual_numbers(row, executor):
    operands = table_for(row, np.float64)[: len(row.params)]
    got = computed(row, operands, executor)
    tolerance = HALF_TURNS if row.name in ("sinpi", "cospi") else vector_tolerance(row, np.float64)
    assert not list(disagreements(row, operands, got, np.float64, tolerance))[:5]


@EXECUTOR
@pytest.mark.parametrize("row", REALS, ids=lambda row: row.name)
def test_hard_numbers(row, executor):
    kinds = types(row)[: len(row.params)]
    operands = [
        x if kind == "float" else (x != 0).astype(np.float64) for x, kind in zip(crossed(row), kinds, strict=True)
    ]
    got = computed(row, operands, executor)
    tolerance = HALF_TURNS if row.name in ("sinpi", "cospi") else DOUBLE
    assert not list(disagreements(row, operands, got, np.float64, tolerance))[:5]


@EXECUTOR
@pytest.mark.parametrize("name", ["sinpi", "cospi"])
def test_half_turns_of_any_number(name, executor):
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.uniform(-s, s, 5000) for s in (1, 3, 1e3, 1e9)] + [np.arange(-40, 40) / 4])
    got = computed(OPS[name], [x], executor)
    assert HALF_TURNS.agreement(got, [OPS[name].fold(each) for each in x.tolist()]).all()
    whole = np.abs(np.arange(-9, 9, 0.5) - (0.0 if name == "sinpi" else 0.5)) % 1 == 0
    assert np.abs(computed(OPS[name], [np.arange(-9, 9, 0.5)], executor)[whole]).max() < 1e-15


@EXECUTOR
def test_bits_of_any_whole_number(executor):
    rng = np.random.default_rng(4)
    spread = [rng.uniform(-(2.0**k), 2.0**k, 2000) for k in (20, 31, 32, 40, 60)]
    x = np.floor(np.concatenate([HARD, *spread]))
    expected = [OPS["bits_of"].fold(each) for each in x.tolist()]
    np.testing.assert_array_equal(words(OPS["bits_of"], [x], executor), expected)


@EXECUTOR
@pytest.mark.parametrize("name", ["bits_add", "bits_mul", "bits_xor", "bits_shr"])
def test_operations_on_bits(name, executor):
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 2**32, 500), rng.integers(0, 32 if name == "bits_shr" else 2**32, 500)
    expected = [OPS[name].fold(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(words(OPS[name], [a, b], executor), expected)


@EXECUTOR
def test_top_bits(executor):
    a = np.random.default_rng(6).integers(0, 2**32, 500)
    assert EXACT.agreement(computed(OPS["bits_top"], [a], executor), a >> 8).all()


def test_no_negative_number_has_a_fractional_power():
    row, executor = OPS["power"], NativeExecutor()
    got = computed(row, [np.array([-math.inf, -math.inf, -2.0, -math.inf]), np.array([0.5, -1.5, 0.5, 3.0])], executor)
    np.testing.assert_array_equal(got, [math.nan, math.nan, math.nan, -math.inf])
