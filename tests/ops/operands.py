"""Which operands each row is tried with, and how closely its forms must then agree."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np
from hypothesis import strategies as st

from tests.support.tolerances import DOUBLE, EXACT, NOISE_DOUBLE, NOISE_SINGLE, SINGLE, Tolerance, wrapped_difference
from weft.ops import OPS, OpSpec

NAN, INF = math.nan, math.inf
NOISES = ("noise", "simplex", "fbm", "voronoi")

EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 2.0, 3.0, -7.0, 1e-3, 100.0, -1e10, INF, -INF, NAN)

# The largest finite operands in double precision. Beyond, the row itself overflows or has no digits left.
_LIMITS_DOUBLE: Mapping[str, float] = {
    "tan": 1e6, "sinpi": 1, "cospi": 1, "sinh": 700, "cosh": 700, **dict.fromkeys(NOISES, 1e6),
    "hash": 1e300,
}  # fmt: skip

# The same in single precision. Half turns are multiplied by π before numpy takes their sine, and rounded with that.
# Near its poles tan has few digits; where mix cancels, the operands' are lost.
_LIMITS_SINGLE: Mapping[str, float] = {
    "sin": 1e4, "cos": 1e4, "sinpi": 1, "cospi": 1, "tan": 1.4, "exp": 80, "sinh": 80, "cosh": 80, "mix": 10,
    **dict.fromkeys(NOISES, 50),
}  # fmt: skip

_EXACT = {
    "or", "and", "not", "eq", "ne", "lt", "gt", "le", "ge", "select", "to_float", "neg", "abs", "sign", "min", "max",
    "floor", "ceil", "round", "trunc", "fract", "clamp", "saturate", "step", "hash",
}  # fmt: skip


def arity(row: OpSpec) -> int:
    """How many operands to try it with."""
    return len(row.params) + (1 if row.variadic else 0)


def types(row: OpSpec) -> list[str]:
    return [row.type_of_operand(i) for i in range(arity(row))]


def is_about_bits(row: OpSpec) -> bool:
    return "u32" in (*types(row), row.gives)


@cache
def tuples_for(name: str) -> st.SearchStrategy[tuple[float, ...]]:
    """Operands of a row for hypothesis."""
    row = OPS[name]
    limit = _LIMITS_DOUBLE.get(row.name)
    finite = st.floats(-limit, limit) if limit else st.floats(allow_nan=False, allow_infinity=False)
    real = finite | st.floats(-10, 10) | st.sampled_from([x for x in EDGES if _within(x, limit)])
    strategies: list[st.SearchStrategy[float]] = [
        real if t == "float" else st.sampled_from((0.0, 1.0)) for t in types(row)
    ]
    if row.name == "pow":
        strategies[1] |= st.integers(-40, 40).map(lambda n: n / 2)
    if row.name == "mod":
        strategies[1] |= st.integers(-8, 8).map(lambda n: 2.0**n)
    return st.tuples(*strategies)


def table_for(row: OpSpec, real: type[np.floating]) -> list[np.ndarray]:
    """Operands for vector forms, one array an operand: all edges against each other where possible, and many in
    between."""
    limit = (_LIMITS_SINGLE if real is np.float32 else _LIMITS_DOUBLE).get(row.name)
    edges = [x for x in EDGES if _within(x, limit)]
    rng = np.random.default_rng(len(row.name))
    count = arity(row)
    cross = np.array(list(itertools.product(edges, repeat=min(count, 2))))
    mixed = rng.choice(edges, (400, count))
    inner = rng.uniform(-1, 1, (400, count)) * min(limit or 10, 10)
    mixed[::3] = np.where(rng.random(mixed[::3].shape) < 0.5, mixed[::3], inner[: len(mixed[::3])])
    if count <= 2:
        mixed = np.vstack([cross, mixed])
    columns = np.vstack([mixed, inner]).T
    return [c.astype(real) if t == "float" else c > 0 for c, t in zip(columns, types(row), strict=True)]


def remainder_operands(real: type[np.floating], count: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Finite operands of `%`: of all magnitudes against each other, whole numbers, quotients that are nearly whole, and
    what is hardly negative."""
    rng = np.random.default_rng(14)
    info = np.finfo(real)

    def any_size(low: float, high: float) -> np.ndarray:
        with np.errstate(all="ignore"):
            return rng.choice([-1.0, 1.0], count) * rng.uniform(1, 2, count) * 2.0 ** rng.uniform(low, high, count)

    everywhere = info.minexp - info.nmant + 1, info.maxexp - 1
    periods = rng.choice([1, 2, 7, 0.5, 4, 3, 0.1, 1e-3, 100, 2.0**-20, 1.0000001, -7, -1, -4, -0.3], count)
    whole = np.floor(any_size(0, info.nmant + 1))
    turns = rng.integers(-(2**20), 2**20, count)
    pairs = [
        (any_size(*everywhere), any_size(*everywhere)), (any_size(*everywhere), periods), (any_size(-60, 60), periods),
        (whole, np.floor(any_size(0, 14)) + 0.5 * (rng.random(count) < 0.5)), (whole, periods),
        (-any_size(-80, -20), periods), (turns * periods, periods), (turns * np.abs(periods), -periods),
        (np.zeros(count), periods), (-np.zeros(count), periods),
    ]  # fmt: skip
    with np.errstate(all="ignore"):
        a, b = (np.concatenate(each).astype(real) for each in zip(*pairs, strict=True))
    a = np.concatenate([a, np.nextafter(a, real(0)), np.nextafter(a, real(np.inf))])
    b = np.tile(b, 3)
    fine = np.isfinite(a) & np.isfinite(b) & (b != 0)
    return a[fine], b[fine]


def outside_of_period(a: np.ndarray, b: np.ndarray, rest: np.ndarray) -> list[tuple[float, float, float]]:
    """The operands and results of `%` that are not from 0 up to b, without b."""
    inside = np.where(b > 0, (rest >= 0) & (rest < b), (rest <= 0) & (rest > b))
    return list(zip(a[~inside].tolist(), b[~inside].tolist(), rest[~inside].tolist(), strict=True))


def exact_remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The remainders as exactly as the type of the operands can have them."""
    real = a.dtype.type
    rest = np.array([OPS["mod"].fold(*each) for each in zip(a.tolist(), b.tolist(), strict=True)]).astype(real)
    return np.where(rest == b, np.nextafter(b, real(0)), rest)


def _within(x: float, limit: float | None) -> bool:
    return limit is None or not math.isfinite(x) or abs(x) <= limit


def disagreements(
    row: OpSpec, operands: list[np.ndarray], got: np.ndarray, real: type[np.floating], tolerance: Tolerance
) -> Iterator[tuple[tuple[float, ...], float, float]]:
    """Operands, result and expected result wherever `got` is not what `fold` says."""
    tuples = list(zip(*(x.astype(np.float64).tolist() for x in operands), strict=True))
    with np.errstate(all="ignore"):
        expected = np.array([row.fold(*xs) for xs in tuples]).astype(real)
    agree = tolerance.agreement(got, expected)
    for xs, result, wanted, fine in zip(tuples, got.tolist(), expected.tolist(), agree.tolist(), strict=True):
        if not fine and not (row.name == "mod" and _same_turn(xs, result, wanted, tolerance)):
            yield xs, result, wanted


def _same_turn(operands: tuple[float, ...], got: float, expected: float, tolerance: Tolerance) -> bool:
    a, b = operands
    if not all(map(math.isfinite, (a, b, got, expected))) or b == 0:
        return False
    return wrapped_difference(got, expected, b) <= tolerance.relative * (abs(a) + abs(b))


def expansion_tolerance(row: OpSpec) -> Tolerance:
    return EXACT if row.name in _EXACT else NOISE_DOUBLE if row.name in NOISES else DOUBLE


def vector_tolerance(row: OpSpec, real: type[np.floating]) -> Tolerance:
    if row.name in _EXACT:
        return EXACT
    if row.name in NOISES:
        return NOISE_SINGLE if real is np.float32 else NOISE_DOUBLE
    if row.name == "mix":
        return (SINGLE if real is np.float32 else DOUBLE).scaled(10)
    return SINGLE if real is np.float32 else DOUBLE
