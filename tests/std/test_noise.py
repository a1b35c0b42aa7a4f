"""std.noise: what noises promise, and each rebuilt from the slopes, points or octaves that it is made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from tests.std.values import Values, values

# Next to the lattice's lines, and over several cells.
X = np.linspace(-3.37, 4.61, 41)
Y = np.linspace(-2.29, 3.83, 37)
Z = (-1.3, 0.0, 0.25, 2.0)
LATTICE = np.arange(-4, 7)
STEP = 1e-6

NOISES = {
    "perlin(me@x, me@y)": (-1, 1),
    "perlin3(me@x, me@y, me@time)": (-1, 1),
    "perlin_tiled(me@x, me@y, 4, 3)": (-1, 1),
    "perlin_loop(me@x, me@y, me@time, 3)": (-1, 1),
    "simplex2(me@x, me@y)": (-1, 1),
    "fractal(me@x, me@y, me@time, 4, 2.1, 0.6)": (-1, 1),
    "ridged(me@x, me@y, me@time, 4)": (0, 1),
    "turbulence(me@x, me@y, me@time, 4)": (0, 1),
    "billow(me@x, me@y, me@time, 4)": (0, 1),
    "cellular(me@x, me@y, me@time)@f1": (0, 1.15),
    "cellular(me@x, me@y, me@time)@f2": (0, 1.6),
    "cellular(me@x, me@y, me@time)@edge": (0, 1),
    "cellular(me@x, me@y, me@time)@id": (0, 1),
}


def noise(expression: str, x: Values = X, y: Values = Y, z: float = 0.0) -> Values:
    (found,) = values("std.noise", [expression], x, y, z)
    return found


@pytest.mark.parametrize(("expression", "ends"), NOISES.items(), ids=list(NOISES))
def test_a_noise_uses_its_range_and_keeps_to_it(expression: str, ends: tuple[float, float]) -> None:
    fine_x, fine_y = np.linspace(-30, 30, 160), np.linspace(-30, 30, 159)
    got = np.stack([noise(expression, fine_x, fine_y, z) for z in Z])
    low, high = ends
    assert got.min() >= low
    assert got.max() <= high
    assert np.ptp(got) > 0.5 * (high - low)


@pytest.mark.parametrize("expression", [e for e in NOISES if not e.endswith("@id")])
def test_a_noise_has_no_jumps(expression: str) -> None:
    fine = np.linspace(-5, 5, 20_001)
    for y in (0.0, 0.37, 1.0):
        assert np.abs(np.diff(noise(expression, fine, np.array([y]), 0.4))).max() < 0.01


@pytest.mark.parametrize("expression", NOISES)
def test_far_away_a_noise_is_still_a_noise(expression: str) -> None:
    far = noise(expression, X + 1e6, Y - 1e6)
    assert np.isfinite(far).all()
    assert np.ptp(far) > 0.3


def faded(t: Values) -> Values:
    return 6 * t**5 - 15 * t**4 + 10 * t**3


def slopes(expression: str, places: tuple[str, ...]) -> Values:
    """The slopes of a noise at the lattice's points [y, x], along each of some directions."""
    here = noise(expression.format(*["me@x", "me@y"]), LATTICE, LATTICE)
    np.testing.assert_allclose(here, 0, atol=1e-12)
    return np.stack([noise(expression.format(*p.split(";")), LATTICE, LATTICE) / STEP for p in places], -1)


def test_perlin_is_level_ramps_faded_into_each_other() -> None:
    """At a whole place it is 0, and its slope is one of eight; everywhere else it follows from those slopes."""
    found = slopes("perlin({}, {})", (f"me@x + {STEP};me@y", f"me@x;me@y + {STEP}")) / 0.9649
    np.testing.assert_allclose(found, np.round(found), atol=1e-4)
    assert (np.abs(np.round(found)).sum(-1) >= 1).all()
    i, j = np.floor(X).astype(int), np.floor(Y).astype(int)
    (dx, dy), total = np.meshgrid(X - i, Y - j), 0
    for q in (0, 1):
        for p in (0, 1):
            g = np.round(found)[np.ix_(j + q + 4, i + p + 4)]
            weight = (faded(dx) if p else 1 - faded(dx)) * (faded(dy) if q else 1 - faded(dy))
            total = total + weight * (g[..., 0] * (dx - p) + g[..., 1] * (dy - q))
    np.testing.assert_allclose(noise("perlin(me@x, me@y)"), 0.9649 * total, atol=1e-9)


def test_perlin3_has_two_slopes_at_each_lattice_point() -> None:
    for z in (0, 1, -3):
        beside = (f"me@x + {STEP}, me@y, me@time", f"me@x, me@y + {STEP}, me@time", f"me@x, me@y, me@time + {STEP}")
        steep = np.sort([np.abs(noise(f"perlin3({place})", LATTICE, LATTICE, z)) for place in beside], 0) / STEP
        np.testing.assert_allclose(steep[0], 0, atol=1e-4)
        np.testing.assert_allclose(steep[1:], 0.9649, atol=1e-4)


def test_perlin3_on_a_whole_plane_is_faded_from_the_planes_beside_it() -> None:
    np.testing.assert_array_equal(noise("perlin3(me@x, me@y, 0)"), noise("perlin(me@x, me@y)"))
    np.testing.assert_array_equal(noise("perlin3(me@x, me@y, me@time)"), noise("perlin(me@x, me@y)"))
    near, far = noise("perlin3(me@x, me@y, 1 - 0.000000001)"), noise("perlin3(me@x, me@y, 1)")
    np.testing.assert_allclose(near, far, atol=1e-7)


def test_perlin_tiled_repeats_and_is_perlin_within() -> None:
    tiled = noise("perlin_tiled(me@x, me@y, 4, 3)")
    np.testing.assert_allclose(noise("perlin_tiled(me@x + 4, me@y - 6, 4, 3)"), tiled, atol=1e-9)
    np.testing.assert_array_equal(noise("perlin_tiled(me@x, me@y, 0, 0)"), noise("perlin(me@x, me@y)"))
    within_x, within_y = np.linspace(0, 2.99, 20), np.linspace(0, 1.99, 20)
    plain = noise("perlin(me@x, me@y)", within_x, within_y)
    np.testing.assert_array_equal(noise("perlin_tiled(me@x, me@y, 4, 3)", within_x, within_y), plain)


def test_perlin_loop_comes_back_and_changes_in_between() -> None:
    start, between, end = (noise("perlin_loop(me@x, me@y, me@time, 3)", z=z) for z in (0.2, 0.7, 1.2))
    np.testing.assert_allclose(start, end, atol=1e-9)
    assert np.abs(start - between).max() > 0.3
    np.testing.assert_allclose(
        noise("perlin_loop(me@x, me@y, me@time, 3)", z=0.5), noise("perlin3(me@x, me@y, me@time)", z=1.5), atol=1e-12
    )


def test_simplex2_is_round_ramps_around_the_corners_of_triangles() -> None:
    back = (3 - 3**0.5) / 6
    i, j = np.meshgrid(np.arange(-8, 10), np.arange(-8, 10))
    cx, cy = (i - (i + j) * back).ravel(), (j - (i + j) * back).ravel()
    # Around a corner no other counts: there the noise is that corner's ramp, 93 / 16 of its slope.
    slope = _corner_slopes(cx, cy)
    gx, gy = np.meshgrid(np.linspace(-1.3, 1.7, 15), np.linspace(-1.1, 1.9, 14))
    dx, dy = gx[..., None] - cx, gy[..., None] - cy
    expected = (93 * np.maximum(0.5 - dx**2 - dy**2, 0) ** 4 * (slope[:, 0] * dx + slope[:, 1] * dy)).sum(-1)
    np.testing.assert_allclose(noise("simplex2(me@x, me@y)", gx[0], gy[:, 0]), expected, atol=1e-4)
    lengths = np.linalg.norm(slope, axis=1)
    assert lengths.min() > 0.99
    assert lengths.max() < 1.07


def _corner_slopes(cx: Values, cy: Values) -> Values:
    """The slopes of simplex2 at some places, each along x and y."""
    grid = noise("simplex2(me@x, me@y)", np.concatenate([cx, cx + STEP]), np.concatenate([cy, cy + STEP]))
    n = np.arange(len(cx))
    return np.stack([grid[n, n + len(cx)], grid[n + len(cx), n]], -1) / STEP / (93 / 16)


OCTAVES = range(5)


@cache
def octaves(lacunarity: float, z: float) -> list[Values]:
    """The simplex noises that the sums are made of."""
    return [
        noise(f"simplex(me@x * {lacunarity**i!r} + {i * 17.3!r}, me@y * {lacunarity**i!r} - {i * 9.7!r}, "
              f"me@time * {lacunarity**i!r} + {i * 5.9!r})", z=z)
        for i in OCTAVES
    ]  # fmt: skip


def mean(parts: list[Values], gain: float, count: float) -> Values:
    """The weighted mean of the first parts; a fraction of one counts by its fraction."""
    weights = [gain**i * min(max(count - i, 0), 1) for i in OCTAVES]
    return np.asarray(sum(w * part for w, part in zip(weights, parts, strict=True)) / sum(weights))


def ridges(parts: list[Values]) -> list[Values]:
    return list(np.cumprod([(1 - np.abs(part)) ** 2 for part in parts], axis=0))


SUMS: list[tuple[str, float, float, Callable[[list[Values]], list[Values]]]] = [
    ("fractal(me@x, me@y, me@time, {}, 2.5, 0.7)", 2.5, 0.7, lambda parts: parts),
    ("ridged(me@x, me@y, me@time, {})", 2, 0.5, ridges),
    ("turbulence(me@x, me@y, me@time, {})", 2, 0.5, lambda parts: [abs(p) for p in parts]),
    ("billow(me@x, me@y, me@time, {})", 2, 0.5, lambda parts: [abs(p) * (2 - abs(p)) for p in parts]),
]


@pytest.mark.parametrize(("expression", "lacunarity", "gain", "shaped"), SUMS, ids=[case[0] for case in SUMS])
@pytest.mark.parametrize("count", ["1", "4", "2.25", "2.25 + 0 * mouse@x", "0.3", "0 / 0"])
def test_a_sum_is_the_mean_of_its_octaves(
    expression: str, lacunarity: float, gain: float, shaped: Callable[[list[Values]], list[Values]], count: str
) -> None:
    parts = shaped(octaves(lacunarity, 0.25))
    number = 1.0 if count in ("0.3", "0 / 0") else float(count.partition(" ")[0])
    np.testing.assert_allclose(noise(expression.format(count), z=0.25), mean(parts, gain, number), atol=1e-9)


def test_cells_are_those_of_their_points() -> None:
    wide_x, wide_y = np.linspace(-5, 6, 177), np.linspace(-5.5, 4.5, 161)
    names = ["c@f1", "c@f2", "c@edge", "c@id", "c@cx", "c@cy"]
    for z in (0.0, 1.7):
        f1, f2, edge, cell, cx, cy = values(
            "std.noise", names, wide_x, wide_y, z, before="cellular(me@x, me@y, me@time)::c<f1, f2, edge, id, cx, cy>"
        )
        points, first = np.unique(np.round(cx + 1j * cy, 9), return_index=True)
        here = (wide_x[None, :] + 1j * wide_y[:, None])[32:-32:4, 32:-32:4]
        inner = (slice(32, -32, 4), slice(32, -32, 4))
        away = np.abs(here[..., None] - points)
        order = np.argsort(away, -1)
        nearest = points[order[..., 0]]
        np.testing.assert_allclose(f1[inner], np.sort(away, -1)[..., 0], atol=1e-8)
        np.testing.assert_allclose(f2[inner], np.sort(away, -1)[..., 1], atol=1e-8)
        np.testing.assert_allclose(cell[inner], cell.ravel()[first][order[..., 0]])
        # How far it is to where another point is as near.
        between = points - nearest[..., None]
        with np.errstate(divide="ignore", invalid="ignore"):
            lines = (away**2 - np.abs(here - nearest)[..., None] ** 2) / (2 * np.abs(between))
        np.testing.assert_allclose(edge[inner], np.where(np.abs(between) < 1e-6, np.inf, lines).min(-1), atol=1e-7)
        assert len(np.unique(cell.ravel()[first])) == len(points)


def test_the_points_of_cells_wander_and_come_back() -> None:
    start, later, end = (noise("cellular(me@x, me@y, me@time)@f1", z=z) for z in (0.0, 0.3, 16.0))
    np.testing.assert_allclose(start, end, atol=1e-9)
    assert np.abs(start - later).max() > 0.1


def test_a_curl_is_a_quarter_turn_of_a_slope_and_piles_nothing_up() -> None:
    h = 0.01
    before = "curl(me@x, me@y, me@time)::f<dx, dy>"
    dx, dy, right, left, low, high = values(
        "std.noise",
        ["f@dx", "f@dy", f"f@dx(me@x ~ me@x + {h})", f"f@dx(me@x ~ me@x - {h})", f"f@dy(me@y ~ me@y + {h})",
         f"f@dy(me@y ~ me@y - {h})"],
        X, Y, 0.4, before=before,
    )  # fmt: skip
    np.testing.assert_allclose((right - left) + (low - high), 0, atol=1e-9)
    up, down = noise("simplex(me@x, me@y - 0.0001, 0.4)"), noise("simplex(me@x, me@y + 0.0001, 0.4)")
    west, east = noise("simplex(me@x - 0.0001, me@y, 0.4)"), noise("simplex(me@x + 0.0001, me@y, 0.4)")
    np.testing.assert_allclose(dx, (down - up) / 0.0002, atol=0.02)
    np.testing.assert_allclose(dy, (west - east) / 0.0002, atol=0.02)
    assert 4 < np.abs([dx, dy]).max() < 8


def test_warp_pushes_no_farther_than_the_amount() -> None:
    x, y = np.meshgrid(X, Y)
    u, v = values("std.noise", ["w@u", "w@v"], X, Y, 0.4, before="warp(me@x, me@y, me@time, 0.7)::w<u, v>")
    np.testing.assert_allclose(u - x, 0.7 * noise("simplex(me@x, me@y, me@time)", z=0.4), atol=1e-12)
    for push in (u - x, v - y):
        assert 0.2 < np.abs(push).max() <= 0.7
    assert np.abs(np.corrcoef((u - x).ravel(), (v - y).ravel())[0, 1]) < 0.3
    np.testing.assert_array_equal(values("std.noise", ["warp(me@x, me@y, 0, 0)@v"], X, Y)[0], y)


def test_grain_is_another_number_in_every_pixel_of_every_frame() -> None:
    x, y = (np.arange(64) + 0.5) / 64, (np.arange(32) + 0.5) / 32
    frames = [values("std.noise", ["grain()"], x, y, frame=n)[0] for n in (0, 1)]
    again = values("std.noise", ["grain()"], x, y, frame=0)[0]
    np.testing.assert_array_equal(frames[0], again)
    assert (frames[0] != frames[1]).mean() > 0.99
    assert len(np.unique(frames)) > 0.99 * 2 * 64 * 32
    assert np.min(frames) >= 0
    assert np.max(frames) < 1
    np.testing.assert_allclose(np.histogram(frames, 8, (0, 1))[0] / np.size(frames), 1 / 8, atol=0.03)
