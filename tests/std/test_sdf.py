"""std.sdf against distances to finely drawn outlines, and against what sets and projections say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.std.outlines import polygon, signed_distance, star, turn, turned_solid
from tests.std.values import SETTINGS, Values, line, values

X = np.linspace(-0.83, 0.87, 23)
Y = np.linspace(-0.79, 0.91, 21)
GX, GY = np.meshgrid(X, Y)
Z = (-0.6, -0.13, 0.0, 0.31)

SQUARE = polygon((-0.3, -0.2), (0.3, -0.2), (0.3, 0.2), (-0.3, 0.2))
MIDDLES = ((0.2, 0.1), (-0.2, 0.1), (-0.2, -0.1), (0.2, -0.1))
ROUND = np.concatenate([turn(0.1, k * np.pi / 2, (k + 1) * np.pi / 2, c) for k, c in enumerate(MIDDLES)])
# The upper right arm's end and the corner next to it, clockwise, and the same for the other arms.
CROSS = np.concatenate([np.array([(0.15, 0.15), (0.5, 0.15), (0.5, -0.15)]) @ [[c, -s], [s, c]] for c, s in
                        ((1, 0), (0, 1), (-1, 0), (0, -1))])  # fmt: skip
TOP = -np.pi / 2
HEART = 0.6 / (0.75 + 0.125**0.5)  # size of the heart whose lobes have the middles (±0.25, 0.75)


def band(radius: float, angle: float, width: float) -> Values:
    """The outline of an arc about the top, with round ends."""
    a, b = TOP - angle / 2, TOP + angle / 2
    end_a, end_b = ([radius * np.cos(t), radius * np.sin(t)] for t in (a, b))
    outer, inner = turn(radius + width / 2, a, b), turn(radius - width / 2, b, a)
    far_end, near_end = turn(width / 2, b, b + np.pi, end_b), turn(width / 2, a + np.pi, a + 2 * np.pi, end_a)
    return np.concatenate([outer, far_end, inner, near_end])


def lobes() -> Values:
    """The heart's outline, tip downwards, its middle at half of its height."""
    right = turn(0.125**0.5, -np.pi / 4, 3 * np.pi / 4, (0.25, 0.75))
    left = right[::-1] * [-1, 1]
    up = np.concatenate([[[0, 0]], right, left])
    return np.stack([up[:, 0], 0.5 * (0.75 + 0.125**0.5) - up[:, 1]], -1) * HEART


def slice_of_pie(radius: float, angle: float) -> Values:
    return np.concatenate([[[0, 0]], turn(radius, TOP - angle / 2, TOP + angle / 2)])


FLAT: list[tuple[str, Sequence[Values]]] = [
    ("circle(p, 0.4)", [turn(0.4)]),
    ("ellipse(p, 0.5, 0.3)", [turn(1) * [0.5, 0.3]]),
    ("ellipse(p, 0.2, 0.6)", [turn(1) * [0.2, 0.6]]),
    ("ellipse(p, 0.4, 0.4)", [turn(0.4)]),
    ("box(p, 0.3, 0.2)", [SQUARE]),
    ("rounded_box(p, 0.3, 0.2, 0.1)", [ROUND]),
    ("rounded_box(p, 0.3, 0.2, 0)", [SQUARE]),
    ("rhombus(p, 0.3, 0.5)", [polygon((0.3, 0), (0, 0.5), (-0.3, 0), (0, -0.5))]),
    ("triangle(p, <-0.4, 0.5>, <0.6, 0.1>, <-0.1, -0.4>)", [polygon((-0.4, 0.5), (0.6, 0.1), (-0.1, -0.4))]),
    ("triangle(p, <-0.1, -0.4>, <0.6, 0.1>, <-0.4, 0.5>)", [polygon((-0.4, 0.5), (0.6, 0.1), (-0.1, -0.4))]),
    ("polygon(p, 3, 0.5)", [star(3, 0.5, 0.25)]),
    ("polygon(p, 5, 0.5)", [star(5, 0.5, 0.5 * np.cos(np.pi / 5))]),
    ("star(p, 5, 0.6, 0.2)", [star(5, 0.6, 0.2)]),
    ("star(p, 4, 0.5, 0.45)", [star(4, 0.5, 0.45)]),
    ("ring(p, 0.4, 0.2)", [turn(0.5), turn(0.3)]),
    ("arc(p, 0.4, 2, 0.2)", [band(0.4, 2, 0.2)]),
    ("arc(p, 0.4, 5, 0.1)", [band(0.4, 5, 0.1)]),
    ("pie(p, 0.5, 1.5)", [slice_of_pie(0.5, 1.5)]),
    ("pie(p, 0.5, 4.5)", [slice_of_pie(0.5, 4.5)]),
    ("cross(p, 0.5, 0.3)", [CROSS]),
    ("heart(p, 0.6)", [lobes()]),
]


@pytest.mark.parametrize(("shape", "outlines"), FLAT, ids=[shape for shape, _ in FLAT])
def test_a_flat_shape_is_as_far_as_its_outline(shape: str, outlines: Sequence[Values]) -> None:
    (got,) = values("std.sdf", [shape], X, Y, before="p<x, y> = <me@x, me@y>")
    expected = signed_distance(outlines, GX, GY)
    assert (expected < -0.02).any()
    np.testing.assert_allclose(got, expected, atol=1e-3 if shape.startswith("ellipse") else 1e-5)


def test_a_segment_is_as_far_as_its_nearest_point() -> None:
    calls = ["segment(p, <-0.4, 0.5>, <0.6, 0.1>)", "segment(p, <0.2, 0.1>, <0.2, 0.1>)"]
    found = values("std.sdf", calls, X, Y, before="p<x, y> = <me@x, me@y>")
    there_and_back = polygon((-0.4, 0.5), (0.6, 0.1))
    np.testing.assert_allclose(found[0], np.abs(signed_distance([there_and_back], GX, GY)), atol=1e-12)
    np.testing.assert_allclose(found[1], np.hypot(GX - 0.2, GY - 0.1), atol=1e-12)


def boxed(x: Values, y: Values, z: Values, radius: float = 0) -> Values:
    """A box of half sizes 0.5, 0.3 and 0.2, from the nearest point of a smaller one or from the nearest side."""
    point, half = np.stack([x, y, z], -1), np.array([0.5, 0.3, 0.2]) - radius
    outside = np.linalg.norm(point - np.clip(point, -half, half), axis=-1)
    return np.where(outside > 0, outside, -(half - np.abs(point)).min(-1)) - radius


def eight_sided(x: Values, y: Values, z: Values, size: float = 0.5) -> Values:
    """An octahedron is a ball of the norm |x| + |y| + |z|; to project on it, each part is made smaller by the same."""
    point = np.abs(np.stack([x, y, z], -1))
    descending = -np.sort(-point, -1)
    cuts = (np.cumsum(descending, -1) - size) / np.arange(1, 4)
    count = (descending > cuts).sum(-1)
    cut = np.take_along_axis(cuts, count[..., None] - 1, -1)
    away = np.linalg.norm(point - np.maximum(point - np.maximum(cut, 0), 0), axis=-1)
    return np.where(point.sum(-1) > size, away, (point.sum(-1) - size) / np.sqrt(3))


def pill(x: Values, y: Values, z: Values) -> Values:
    """A capsule, in a plane that holds its axis."""
    a, b = np.array([-0.3, 0.2, 0.1]), np.array([0.4, -0.3, 0.3])
    length = np.linalg.norm(b - a)
    offset = np.stack([x, y, z], -1) - a
    along = offset @ (b - a) / length
    beside = np.linalg.norm(offset - along[..., None] * (b - a) / length, axis=-1)
    outline = np.concatenate([turn(0.2, 0, np.pi, (0, length)), turn(0.2, np.pi, 2 * np.pi)])
    return signed_distance([outline], beside, along)


SOLID: list[tuple[str, Callable[[Values, Values, Values], Values]]] = [
    ("sphere(p, 0.4)", turned_solid(turn(0.4))),
    ("box3(p, 0.5, 0.3, 0.2)", boxed),
    ("rounded_box3(p, 0.5, 0.3, 0.2, 0.1)", lambda x, y, z: boxed(x, y, z, 0.1)),
    ("torus(p, 0.4, 0.15)", turned_solid(turn(0.15, centre=(0.4, 0)))),
    ("cylinder(p, 0.3, 0.2)", turned_solid(SQUARE)),
    ("capsule(p, <-0.3, 0.2, 0.1>, <0.4, -0.3, 0.3>, 0.2)", pill),
    ("cone(p, 0.5, 0.4)", turned_solid(polygon((0, -0.4), (0.5, 0.4), (-0.5, 0.4)))),
    ("plane(p, <1, -2, 2>, 0.1)", lambda x, y, z: x / 3 - 2 * y / 3 + 2 * z / 3 - 0.1),
    ("octahedron(p, 0.5)", eight_sided),
    ("extrude(box(p, 0.5, 0.3), p[2], 0.2)", boxed),
]


@pytest.mark.parametrize(("solid", "distance"), SOLID, ids=[solid for solid, _ in SOLID])
def test_a_solid_is_as_far_as_its_surface(solid: str, distance: Callable[[Values, Values, Values], Values]) -> None:
    found, expected = [], []
    for z in Z:
        found += values("std.sdf", [solid], X, Y, z, before="p<x, y, z> = <me@x, me@y, me@time>")
        expected.append(distance(GX, GY, np.full_like(GX, z)))
    assert (np.stack(expected) < -0.02).any()
    np.testing.assert_allclose(found, expected, atol=1e-5)


TWO = "p<x, y> = <me@x, me@y>\na = circle(p, 0.4)\nb = box(p, 0.6, 0.2)"
A = np.hypot(GX, GY) - 0.4
B = signed_distance([SQUARE * [2, 1]], GX, GY)
JOINED: list[tuple[str, str, Values, Values]] = [
    ("union(a, b)", "smooth_union(a, b, {})", A, B),
    ("intersect(a, b)", "smooth_intersect(a, b, {})", -A, -B),
    ("subtract(a, b)", "smooth_subtract(a, b, {})", -A, B),
]


@pytest.mark.parametrize(("sharp", "soft", "first", "second"), JOINED, ids=[case[0] for case in JOINED])
def test_joining_takes_the_nearer_border(sharp: str, soft: str, first: Values, second: Values) -> None:
    (got,) = values("std.sdf", [sharp], X, Y, before=TWO)
    np.testing.assert_allclose(got, (1 if first is A else -1) * np.minimum(first, second), atol=1e-5)


def test_xor_is_what_lies_in_one_alone() -> None:
    (got,) = values("std.sdf", ["xor(a, b)"], X, Y, before=TWO)
    assert ((got < 0) == ((A < 0) ^ (B < 0))).all()
    np.testing.assert_allclose(np.abs(got), np.minimum(np.abs(A), np.abs(B)), atol=1e-5)


@pytest.mark.parametrize(("sharp", "soft", "first", "second"), JOINED, ids=[case[0] for case in JOINED])
def test_joining_softly_differs_only_where_the_borders_are_near(
    sharp: str, soft: str, first: Values, second: Values
) -> None:
    hard, melted, none = values("std.sdf", [sharp, soft.format(0.2), soft.format(0)], X, Y, before=TWO)
    apart = np.abs(first - second)
    added = (melted - hard) * (-1 if first is A else 1)
    np.testing.assert_allclose(none, hard, atol=1e-6)
    np.testing.assert_allclose(added[apart >= 0.2], 0, atol=1e-12)
    assert (added[apart < 0.19] > 0).all()
    assert added.max() <= 0.2 / 4


def test_rounded_and_onion_move_the_border() -> None:
    found = values("std.sdf", ["rounded(b, 0.1)", "onion(b, 0.1)"], X, Y, before=TWO)
    np.testing.assert_allclose(found[0], B - 0.1, atol=1e-5)
    np.testing.assert_allclose(found[1], np.maximum(B - 0.05, -B - 0.05), atol=1e-5)


D = np.linspace(-1, 1, 401)


def test_fill_is_a_slope_as_wide_as_asked_for_and_at_least_a_pixel() -> None:
    for soft in (0, 0.25):
        width = max(soft, 1 / SETTINGS["height"])
        np.testing.assert_allclose(
            line("std.sdf", f"fill(me@x, {soft})", D), np.interp(D, [-width / 2, width / 2], [1, 0]), atol=1e-12
        )


def test_stroke_fills_both_sides_of_the_border() -> None:
    pixel = 1 / SETTINGS["height"]
    near = [0.1 - pixel / 2, 0.1 + pixel / 2]
    got = line("std.sdf", "stroke(me@x, 0.2, 0)", D)
    np.testing.assert_allclose(got, np.interp(np.abs(D), near, [1, 0]), atol=1e-12)


def test_glow_fades_by_the_same_factor_over_the_same_distance() -> None:
    got = line("std.sdf", "glow(me@x, 0.3)", D)
    assert (got[D <= 0] == 1).all()
    np.testing.assert_allclose(got[D > 0], np.e ** (-D[D > 0] / 0.3), atol=1e-12)


def test_contour_draws_a_line_at_every_multiple() -> None:
    got = line("std.sdf", "contour(me@x, 0.25, 0.1)", D)
    away = np.abs(D[:, None] - 0.25 * np.arange(-5, 6)).min(1)
    pixel = 1 / SETTINGS["height"]
    np.testing.assert_allclose(got, np.interp(away, [0.05 - pixel / 2, 0.05 + pixel / 2], [1, 0]), atol=1e-12)
