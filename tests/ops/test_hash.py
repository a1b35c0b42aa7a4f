"""The hash looks random: it is flat, has no lattice in it, and every bit of a coordinate reaches every bit of it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.arrays import ArrayBuilder
from weft.ops import OPS
from weft.ops.noise import MASK, X, Y, Z, lattice_hash

SIZE = 512
CORNERS = [(0, 0), (-256, -256), (100_000, 7), (2**31 - 100, -(2**31))]
PLANES = ["xy", "xz", "yz"]


def plane(axes: str, corner: tuple[int, int]) -> np.ndarray:
    """The hash of whole coordinates over a square, one axis along the rows, the other along the columns."""
    coordinates = dict.fromkeys("xyz", np.zeros((1, 1)))
    coordinates[axes[0]] = (corner[0] + np.arange(SIZE, dtype=np.float64))[None, :]
    coordinates[axes[1]] = (corner[1] + np.arange(SIZE, dtype=np.float64))[:, None]
    return ArrayBuilder(np.float64).op("hash", *coordinates.values())


def integer_hash(i, j, k):
    """`lattice_hash` on arrays, one Python integer at a time."""
    return np.array([lattice_hash(*map(int, point)) for point in np.broadcast(i, j, k)], np.uint32)


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("axes", PLANES)
def test_flat(axes, corner):
    values = plane(axes, corner)
    count = values.size
    assert values.min() >= 0
    assert values.max() < 1
    assert abs(values.mean() - 0.5) < 4 / np.sqrt(12 * count)
    assert abs(values.var() * 12 - 1) < 4 * np.sqrt(0.8 / count)
    histogram = np.histogram(values, 256, (0, 1))[0]
    chi_square = ((histogram - count / 256) ** 2 / (count / 256)).sum()
    assert abs(chi_square - 255) < 4 * np.sqrt(2 * 255)


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("axes", PLANES)
def test_no_lattice(axes, corner):
    """No frequency stands out: the power of white noise in n bins has its maximum near ln n."""
    values = (plane(axes, corner) - 0.5) * np.sqrt(12)
    bits = [np.floor(values * 0 + plane(axes, corner) * 2**n) % 2 * 2 - 1 for n in (1, 2, 8)]
    for signal in (values, *bits):
        power = np.abs(np.fft.rfft2(signal)) ** 2 / signal.size
        power[0, 0] = 0
        assert power.max() < np.log(power.size) + 9


@pytest.mark.parametrize("axes", PLANES)
def test_no_pattern_of_four_corners(axes):
    """Hashes that only combine what each axis gives repeat themselves in rectangles: this product shows it."""
    values = (plane(axes, (0, 0)) - 0.5) * np.sqrt(12)
    for dx, dy in ((1, 1), (2, 1), (1, 3), (16, 16), (256, 1)):
        product = values[:-dy, :-dx] * values[dy:, :-dx] * values[:-dy, dx:] * values[dy:, dx:]
        assert abs(product.mean()) < 4.5 * product.std() / np.sqrt(product.size)


@pytest.mark.parametrize("axis", range(3))
def test_avalanche(axis):
    """Changing one bit of a coordinate changes each of the 24 bits that count in about half of all cases."""
    rng = np.random.default_rng(3)
    points = rng.integers(-1000, 1000, (3, 2000))
    before = integer_hash(*points)
    for bit in range(32):
        moved = points.copy()
        moved[axis] ^= 1 << bit
        changed = (integer_hash(*moved) ^ before) >> 8
        shares = np.array([(changed >> n & 1).mean() for n in range(24)])
        assert shares.min() > 0.43
        assert shares.max() < 0.57
        assert abs(shares.mean() - 0.5) < 0.02


@pytest.mark.parametrize("lag", [1, 2, 3, 8])
def test_neighbours_are_independent(lag):
    values = ArrayBuilder(np.float64).op("hash", np.arange(2.0**17), np.float64(0), np.float64(0))
    counts = np.histogram2d(values[:-lag], values[lag:], 32, ((0, 1), (0, 1)))[0]
    expected = counts.sum() / counts.size
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi_square - 1023) < 4.5 * np.sqrt(2 * 1023)


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_integers_agree_in_every_real_type(real):
    x = np.array([0, 1, -1, 7.9, -7.9, 65536, -(2.0**31), 2.0**32, 1e20, np.nan, np.inf], real)
    y = x[::-1].copy()
    got = ArrayBuilder(real).op("hash", x, y, real(3))
    assert got.tolist() == [OPS["hash"].fold(a, b, 3.0) for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def test_defaults_add_nothing():
    for i in range(-3, 4):
        assert lattice_hash(i, 0, 0) != lattice_hash(0, i, 0) or i == 0
        assert OPS["hash"].fold(float(i), 0.0, 0.0) == OPS["hash"].fold(i + 0.5, 0.5, 0.5)


def test_multipliers_are_spread_by_the_generalised_golden_ratio():
    ratio = 1.5
    for _ in range(100):
        ratio = (ratio + 1) ** 0.25
    assert [axis.multiplier for axis in (X, Y, Z)] == [round(2**32 / ratio**n) | 1 for n in (1, 2, 3)]
    assert X.start == round(2**32 * (5**0.5 - 1) / 2)
    assert (Y.start, Z.start) == (0, 0)
    assert X.offset(-1) == (X.start - X.multiplier) & MASK
