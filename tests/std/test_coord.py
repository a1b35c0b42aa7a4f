"""std.coord: what each does to a point, written with complex numbers; and that there and back is where one was."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.std.values import ASPECT, Values, values

X = np.linspace(-0.93, 0.97, 20)
Y = np.linspace(-0.49, 0.53, 18)
POINTS = (X[None, :] + 1j * Y[:, None]).ravel()
P = "p<x, y> = <me@x, me@y>"


def moved(call: str) -> Values:
    """Where all points go to, as complex numbers."""
    x, y = values("std.coord", [f"q@{axis}" for axis in "xy"], X, Y, before=f"{P}\n{call}::q<x, y>")
    return (x + 1j * y).ravel()


def stirred(z: complex, amount: float, size: float) -> complex:
    return z * cmath.exp(-1j * amount * max(0, 1 - abs(z) / size) ** 2)


def folded(z: complex, angle: float) -> complex:
    turned = z * cmath.exp(-1j * angle)
    return complex(turned.real, abs(turned.imag)) * cmath.exp(1j * angle)


def mirrored(z: complex, n: int) -> complex:
    """Reflects at one mirror after the other until the point lies between the first two."""
    while not -1e-12 <= cmath.phase(z) <= math.pi / n + 1e-12:
        z = z.conjugate() if cmath.phase(z) < 0 else z * cmath.exp(-2j * math.pi / n)
    return z


CASES: list[tuple[str, Callable[[complex], complex]]] = [
    ("translate(p, 0.25, -0.5)", lambda z: z - 0.25 + 0.5j),
    ("rotate(p, 0.7)", lambda z: z * cmath.exp(-0.7j)),
    ("rotate_around(p, 0.7, <0.2, 0.3>)", lambda z: (z - 0.2 - 0.3j) * cmath.exp(-0.7j) + 0.2 + 0.3j),
    ("scale(p, 2.5)", lambda z: z / 2.5),
    ("scale_around(p, 2.5, <0.2, 0.3>)", lambda z: (z - 0.2 - 0.3j) / 2.5 + 0.2 + 0.3j),
    ("stretch(p, 2, -0.5)", lambda z: complex(z.real / 2, z.imag / -0.5)),
    ("twist(p, 8)", lambda z: z * cmath.exp(-8j * abs(z))),
    ("swirl(p, 6, 0.5)", lambda z: stirred(z, 6, 0.5)),
    ("bulge(p, 0.8, 0.5)", lambda z: z * (1 - 0.8 * max(0, 1 - abs(z) / 0.5) ** 2)),
    ("lens(p, 0.7)", lambda z: z + 0.7 * z * z * z.conjugate()),
    ("ripple(p, 0.1, 3, 0.2)", lambda z: z + cmath.rect(0.1 * math.sin(math.tau * (3 * abs(z) - 0.2)), cmath.phase(z))),
    ("wobble(p, 0.1, 3, 0.2)", lambda z: z + complex(0.1 * math.sin(6 * math.pi * (z.imag + 0.2 / 3)),
                                                     0.1 * math.sin(6 * math.pi * (z.real + 0.2 / 3)))),
    ("invert(p, 0.4)", lambda z: 0.16 / z.conjugate()),
    ("fold(p, 0.5)", lambda z: folded(z, 0.5)),
    ("kaleidoscope(p, 5)", lambda z: mirrored(z, 5)),
    ("kaleidoscope(p, 1)", lambda z: mirrored(z, 1)),
    ("pixelate(p, 0.12)", lambda z: complex(*(min((0.12 * k + 0.06 for k in range(-9, 9)), key=lambda m: abs(m - c))
                                               for c in (z.real, z.imag)))),
]  # fmt: skip


@pytest.mark.parametrize(("call", "formula"), CASES, ids=[case[0] for case in CASES])
def test_a_point_goes_where_the_formula_says(call: str, formula: Callable[[complex], complex]) -> None:
    np.testing.assert_allclose(moved(call), [formula(z) for z in POINTS.tolist()], atol=1e-12)


@pytest.mark.parametrize(
    "there_and_back",
    [
        "translate(translate(p, 0.3, 0.1), -0.3, -0.1)",
        "rotate(rotate(p, 1.1), -1.1)",
        "rotate_around(rotate_around(p, 1.1, <0.3, 0>), -1.1, <0.3, 0>)",
        "scale(scale(p, 3), 1 / 3)",
        "scale_around(scale_around(p, 3, <0.3, 0>), 1 / 3, <0.3, 0>)",
        "stretch(stretch(p, 3, -2), 1 / 3, -0.5)",
        "twist(twist(p, 9), -9)",
        "swirl(swirl(p, 5, 0.6), -5, 0.6)",
        "invert(invert(p, 0.4), 0.4)",
        "bulge(p, 0, 0.5)",
        "lens(p, 0)",
        "from_polar(polar(p)@radius, polar(p)@angle)",
    ],
)
def test_there_and_back_is_the_same_point(there_and_back: str) -> None:
    np.testing.assert_allclose(moved(there_and_back), POINTS, atol=1e-12)


def test_what_is_drawn_moves_the_way_the_names_say() -> None:
    """The point that is drawn at (0.2, 0.1) is seen where it is moved to."""
    drawn = 0.2 + 0.1j
    cases = {
        "translate(p, 0.3, 0.2)": drawn + 0.3 + 0.2j,
        "rotate(p, pi / 2)": drawn * 1j,  # clockwise, since y grows downwards
        "scale(p, 3)": drawn * 3,
        "stretch(p, 3, 2)": 0.6 + 0.2j,
        "shear(p, 0.5, 0)": 0.25 + 0.1j,
        "shear(p, 0, 0.5)": 0.2 + 0.2j,
    }
    for call, seen in cases.items():
        x, y = values("std.coord", ["q@x", "q@y"], [seen.real], [seen.imag], before=f"{P}\n{call}::q<x, y>")
        np.testing.assert_allclose(x + 1j * y, drawn, atol=1e-12)


def test_the_middle_of_the_picture_and_back() -> None:
    x, y, bx, by = values(
        "std.coord", ["c@x", "c@y", "b@x", "b@y"], [0, 0.5, 1], [0, 0.5, 1],
        before="centre()::c<x, y>\nuncentre(c)::b<x, y>",
    )  # fmt: skip
    np.testing.assert_allclose(x[0], [-ASPECT / 2, 0, ASPECT / 2])
    np.testing.assert_allclose(y[:, 0], [-0.5, 0, 0.5])
    np.testing.assert_allclose(bx[0], [0, 0.5, 1])
    np.testing.assert_allclose(by[:, 0], [0, 0.5, 1])


def test_at_shows_a_picture_at_other_points() -> None:
    before = (
        "img<r, g, b> = <me@x, me@y, me@x * me@y>\nsame<r, g, b> = at(img, centre())\n"
        "turned<r, g, b> = at(img, rotate(centre(), 0.4))"
    )
    x, y = np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 1, 7))
    found = values("std.coord", ["same", "turned"], x[0], y[:, 0], before=before)
    for got, expected in zip(found[:3], (x, y, x * y), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-12)
    points = ((x - 0.5) * ASPECT + 1j * (y - 0.5)) * np.exp(-0.4j)
    np.testing.assert_allclose(found[3], points.real / ASPECT + 0.5, atol=1e-12)
    np.testing.assert_allclose(found[4], points.imag + 0.5, atol=1e-12)


def test_polar_is_distance_and_direction() -> None:
    radius, angle = values("std.coord", ["polar(p)@radius", "polar(p)@angle"], X, Y, before=P)
    np.testing.assert_allclose(radius.ravel(), np.abs(POINTS), atol=1e-12)
    np.testing.assert_allclose(angle.ravel(), np.angle(POINTS), atol=1e-12)


def test_a_tunnel_goes_once_around_and_into_the_depth() -> None:
    around, depth = values("std.coord", ["tunnel(p)@x", "tunnel(p)@y"], X, Y, before=P)
    np.testing.assert_allclose(np.exp(2j * np.pi * around.ravel()), POINTS / np.abs(POINTS), atol=1e-12)
    np.testing.assert_allclose(depth.ravel() * np.abs(POINTS), 1, atol=1e-12)
    assert around.min() >= 0
    assert around.max() < 1


def tiles(call: str) -> tuple[Values, Values, Values]:
    """The points within their tiles, and the column and row of these."""
    names = ["q@x", "q@y", "q@column", "q@row"]
    x, y, column, row = values("std.coord", names, X, Y, before=f"{P}\n{call}::q<x, y, column, row>")
    return (x + 1j * y).ravel(), column.ravel(), row.ravel()


def nearest(places: Values, points: Values) -> Values:
    return np.array(places[np.abs(points[:, None] - places).argmin(1)])


def test_tiles_lie_around_their_middles() -> None:
    within, column, row = tiles("tile(p, 0.3, 0.2)")
    np.testing.assert_allclose(within + 0.3 * column + 0.2j * row, POINTS, atol=1e-12)
    assert np.abs(within.real).max() <= 0.15 + 1e-12
    assert np.abs(within.imag).max() <= 0.1 + 1e-12
    assert (column == np.round(column)).all()


def test_mirror_tiles_have_no_seams() -> None:
    within, column, row = tiles("mirror_tile(p, 0.3, 0.2)")
    _, plain_column, plain_row = tiles("tile(p, 0.3, 0.2)")
    np.testing.assert_array_equal([column, row], [plain_column, plain_row])
    unfolded = within.real * (-1.0) ** column + 0.3 * column + 1j * (within.imag * (-1.0) ** row + 0.2 * row)
    np.testing.assert_allclose(unfolded, POINTS, atol=1e-12)
    fine = np.linspace(-1, 1, 4001)
    x, y = values("std.coord", ["q@x", "q@y"], fine, fine[::400], before=f"{P}\nmirror_tile(p, 0.3, 0.2)::q<x, y>")
    assert np.abs(np.diff(x)).max() < 1e-3
    assert np.abs(np.diff(y)).max() < 1e-3


def test_each_second_row_of_bricks_is_moved_by_half_a_brick() -> None:
    within, column, row = tiles("brick(p, 0.3, 0.2)")
    np.testing.assert_allclose(within + 0.3 * (column + 0.5 * (row % 2)) + 0.2j * row, POINTS, atol=1e-12)
    assert np.abs(within.real).max() <= 0.15 + 1e-12
    assert np.abs(within.imag).max() <= 0.1 + 1e-12


def test_a_point_belongs_to_the_nearest_middle_of_a_honeycomb() -> None:
    within, column, row = tiles("honeycomb(p, 0.3)")
    a, b = np.meshgrid(np.arange(-12, 13), np.arange(-12, 13))
    middles = 0.3 * (a + b * np.exp(1j * np.pi / 3)).ravel()
    np.testing.assert_allclose(POINTS - within, nearest(middles, POINTS), atol=1e-12)
    np.testing.assert_allclose(0.15 * column + 0.15j * np.sqrt(3) * row, POINTS - within, atol=1e-12)


def test_copies_stand_all_around() -> None:
    names = ["q@x", "q@y", "q@sector"]
    x, y, sector = (v.ravel() for v in values("std.coord", names, X, Y, before=f"{P}\naround(p, 5)::q<x, y, sector>"))
    np.testing.assert_allclose((x + 1j * y) * np.exp(2j * np.pi * sector / 5), POINTS, atol=1e-12)
    assert np.abs(np.angle(x + 1j * y)).max() <= np.pi / 5 + 1e-12
    assert set(sector) == set(range(5))


def test_a_ray_looks_from_the_eye_to_the_target() -> None:
    eye, target = np.array([1.0, -2.0, -3.0]), np.array([0.5, 0.5, 1.0])
    call = "ray(p, <1, -2, -3>, <0.5, 0.5, 1>, 1.5)"
    rays = np.stack(values("std.coord", [f"{call}@{axis}" for axis in "xyz"], [0, 0.4], [0, 0.3], before=P), -1)
    np.testing.assert_allclose(np.linalg.norm(rays, axis=-1), 1, atol=1e-12)
    forward = (target - eye) / np.linalg.norm(target - eye)
    np.testing.assert_allclose(rays[0, 0], forward, atol=1e-12)
    # To the side and down, a picture is flat, upright, and not a mirror image.
    flat = rays / (rays @ forward)[..., None] - forward
    right, down = flat[0, 1], flat[1, 0]
    np.testing.assert_allclose([np.linalg.norm(right), np.linalg.norm(down)], [0.4 / 1.5, 0.3 / 1.5], atol=1e-12)
    assert right[1] == pytest.approx(0, abs=1e-12)
    assert right @ down == pytest.approx(0, abs=1e-12)
    assert down[1] > 0
    np.testing.assert_allclose(np.cross(right, down) / (0.4 * 0.3 / 1.5**2), forward, atol=1e-12)
