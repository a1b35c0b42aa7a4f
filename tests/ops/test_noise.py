"""What the noises promise: their ranges, their smoothness, and that short cuts are no different noises."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.ops.arrays import ArrayBuilder
from weft.ops import OPS
from weft.ops.noise import CELL_MARGIN, LACUNARITY_Z, MASK, OCTAVE_SHIFT, OCTAVES_MAX, SECOND_DRIFT, lattice_hash

COORDINATE = st.floats(-1000, 1000)
NOISE, SIMPLEX, FBM, VORONOI = (OPS[name].fold for name in ("noise", "simplex", "fbm", "voronoi"))

# Largest slopes, from the formulas: 1.5 an axis for the fade; eased by the blend for the others.
SLOPES = {"noise": 1.5 * math.sqrt(3), "simplex": 12, "voronoi": 5, "fbm": 5}


def picture(name: str, size: int, real: type[np.floating], *rest: float) -> np.ndarray:
    """A row over a square of 16 × 16 cells."""
    builder = ArrayBuilder(real)
    steps = np.linspace(-8, 8, size, dtype=real)
    return builder.op(name, steps[None, :], steps[:, None], *map(builder.const, rest))


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "rest", "low", "high"),
    [
        ("noise", (0.3,), 0, 1),
        ("fbm", (0.3, 5), 0, 1),
        ("fbm", (0.0, 8), 0, 1),
        ("simplex", (0.3,), -1, 1),
        ("voronoi", (0.3,), 0, (1 - CELL_MARGIN) * math.sqrt(2)),
        ("voronoi", (0,), 0, (1 - CELL_MARGIN) * math.sqrt(2)),
    ],
)
def test_range_is_kept_and_used(name, rest, low, high, real):
    values = picture(name, 400, real, *rest)
    assert values.min() >= low
    assert values.max() <= high
    used = (values.max() - values.min()) / (high - low)
    assert used > (0.6 if name == "fbm" else 0.75)
    assert abs(values.mean() - (0.5 if name in ("noise", "fbm") else 0 if name == "simplex" else 0.45)) < 0.1


def test_simplex_stays_in_range_at_its_largest():
    """Where the corners weigh most, the best gradients for all of them reach just below 1 (found by a search)."""
    place = np.array([0.666482, 0.000184, -0.166667])
    corners = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]])
    total = 0.0
    for number, corner in enumerate(corners):
        distance = place - corner + number / 6
        two_largest = np.sort(np.abs(distance))[1:].sum()
        total += max(0.5 - (distance**2).sum(), 0) ** 4 * two_largest
    assert 0.99 < total * 76.8 < 1


@pytest.mark.parametrize("name", SLOPES)
@given(place=st.tuples(COORDINATE, COORDINATE, COORDINATE), step=st.tuples(*[st.floats(-1e-3, 1e-3)] * 3))
def test_continuous(name, place, step):
    rest = (1.0,) if name == "fbm" else ()
    there = tuple(a + b for a, b in zip(place, step, strict=True))
    moved = math.hypot(*step)
    assert abs(OPS[name].fold(*there, *rest) - OPS[name].fold(*place, *rest)) <= SLOPES[name] * moved + 1e-9


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["noise", "fbm", "voronoi"])
def test_constant_zero_is_the_plane_of_a_z_that_happens_to_be_zero(name, real):
    builder = ArrayBuilder(real)
    steps = np.linspace(-3, 3, 50, dtype=real)
    rest = (builder.const(4),) if name == "fbm" else ()
    for y, z in ((steps[:, None], np.zeros((1, 1), real)), (np.zeros((1, 1), real), np.zeros((1, 1), real))):
        known = [builder.const(0) if not operand.any() else operand for operand in (y, z)]
        # Four corners are blended in another order than eight.
        np.testing.assert_allclose(
            builder.op(name, steps[None, :], *known, *rest), builder.op(name, steps[None, :], y, z, *rest),
            rtol=0, atol=2 * np.finfo(real).eps,
        )  # fmt: skip


@given(i=st.integers(-(2**20), 2**20), j=st.integers(-(2**20), 2**20), k=st.integers(-(2**20), 2**20))
def test_noise_is_the_hash_at_whole_points(i, j, k):
    assert NOISE(float(i), float(j), float(k)) == (lattice_hash(i & MASK, j & MASK, k & MASK) >> 8) / 2**24


@given(x=COORDINATE, y=COORDINATE, z=COORDINATE)
def test_one_octave_is_noise(x, y, z):
    assert FBM(x, y, z, 1.0) == NOISE(x, y, z)


@pytest.mark.parametrize("octaves", range(1, OCTAVES_MAX))
def test_octaves_fade_in(octaves):
    place = (1.3, -2.7, 0.4)
    fewer, half, more = (FBM(*place, octaves + part) for part in (0, 0.5, 1))
    assert abs(FBM(*place, octaves - 1e-9) - FBM(*place, octaves + 1e-9)) < 1e-8
    assert min(fewer, more) <= half <= max(fewer, more)


@pytest.mark.parametrize(("octaves", "as_if"), [(0, 1), (-5, 1), (math.nan, 1), (8.5, 8), (math.inf, 8)])
def test_octaves_are_clamped(octaves, as_if):
    assert FBM(0.3, 0.7, 0.1, octaves) == FBM(0.3, 0.7, 0.1, as_if)


@pytest.mark.parametrize("octaves", [1, 2.5, 5, 8])
def test_varying_octaves_agree_with_constant_ones(octaves):
    builder = ArrayBuilder(np.float64)
    x = np.linspace(-3, 3, 200)
    varying = builder.op("fbm", x, x * 0.7, x * 0.3, np.full(200, float(octaves)))
    np.testing.assert_allclose(varying, builder.op("fbm", x, x * 0.7, x * 0.3, builder.const(octaves)), atol=1e-14)


def test_no_lattice_lines_of_two_octaves_coincide():
    lines = []
    for octave in range(OCTAVES_MAX):
        shift = OCTAVE_SHIFT if octave else 0
        lines += [(k - shift) / 2**octave for k in range(2**octave)]
    assert len(set(lines)) == len(lines)
    shared = [n for n in range(1, 17) if (n * LACUNARITY_Z).is_integer()]
    assert shared == [8, 16]


@given(x=COORDINATE, y=COORDINATE, z=st.floats(-20, 20))
def test_voronoi_finds_the_nearest_of_all_points(x, y, z):
    def wander(bits: int, turns: float) -> float:
        swing = 2 * (((bits >> 8) / 2**24 + turns) % 1.0) - 1
        return 0.5 + swing * (1 - abs(swing)) * 4 * (0.5 - CELL_MARGIN)

    i, j = math.floor(x), math.floor(y)
    distances = []
    for p in range(i - 3, i + 4):
        for q in range(j - 3, j + 4):
            bits = lattice_hash(p & MASK, q & MASK, 0)
            point = p + wander(bits, z % 1.0), q + wander(bits << 16 & MASK, z * SECOND_DRIFT % 1.0)
            distances.append(math.dist(point, (x, y)))
    assert VORONOI(x, y, z) == pytest.approx(min(distances), abs=1e-9)


def test_voronoi_comes_round_after_sixteen_turns():
    assert VORONOI(0.3, 0.7, 16.0) == VORONOI(0.3, 0.7, 0.0)
    assert len({VORONOI(0.3, 0.7, float(n)) for n in range(16)}) == 16


def test_voronoi_margin_is_what_three_by_three_cells_need():
    assert (1 - CELL_MARGIN) * math.sqrt(2) < 1 + CELL_MARGIN


def test_values_that_the_documentation_states():
    text = (Path(__file__).parents[2] / "docs" / "algorithms.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)\(([^)]*)\)` \| `([^`]+)` \|$", text, re.MULTILINE)
    assert {name for name, _, _ in rows} == {"H", "hash", "noise", "simplex", "fbm", "voronoi"}
    for name, operands, stated in rows:
        numbers = [float(x) for x in operands.split(",")]
        if name == "H":
            assert lattice_hash(*(int(x) & MASK for x in numbers)) == int(stated, 16)
        else:
            assert OPS[name].fold(*numbers) == pytest.approx(float(stated), abs=1e-12)
