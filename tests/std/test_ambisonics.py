"""std.ambisonics against spherical harmonics by their definition, and decoders against published matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from tests.std.values import Values, values

LIBRARY = "std.ambisonics"
DIRECTIONS = [(0, 0), (math.pi / 2, 0), (-2.4, 0.3), (1.1, -1.2), (0.4, math.pi / 2), (3.0, 0.9)]


def legendre(n: int, m: int, x: float) -> float:
    """The associated Legendre function without the phase of Condon and Shortley, by its recurrence."""
    value, before = 1.0, 0.0
    for k in range(1, m + 1):
        value *= (2 * k - 1) * math.sqrt(max(0.0, 1 - x * x))
    for k in range(m + 1, n + 1):
        value, before = ((2 * k - 1) * x * value - (k + m - 1) * before) / (k - m), value
    return value


def harmonic(number: int, azimuth: float, elevation: float) -> float:
    """The harmonic with this ACN, scaled by SN3D: AmbiX, C. Nachbar and others (2011)."""
    n = math.isqrt(number)
    m = number - n * n - n
    scale = math.sqrt((2 - (m == 0)) * math.factorial(n - abs(m)) / math.factorial(n + abs(m)))
    turn = math.cos(m * azimuth) if m >= 0 else math.sin(-m * azimuth)
    return scale * legendre(n, abs(m), math.sin(elevation)) * turn


def members(expression: str, count: int, before: str = "") -> Values:
    """The members of a bundle."""
    found = values(LIBRARY, [f"b[{at}]" for at in range(count)], 0.5, before=f"{before}\nb = {expression}")
    return np.array([each[0, 0] for each in found])


def decibels(found: Values, wanted: Values) -> Values:
    return np.abs(20 * np.log10(np.abs(found) / np.abs(wanted)))


@pytest.mark.parametrize(("azimuth", "elevation"), DIRECTIONS)
def test_a_field_has_the_harmonics_of_a_direction(azimuth: float, elevation: float) -> None:
    wanted = [0.7 * harmonic(number, azimuth, elevation) for number in range(16)]
    np.testing.assert_allclose(members(f"encode(0.7, {azimuth}, {elevation})", 16), wanted, atol=1e-12)


@pytest.mark.parametrize("angle", [0.0, 1.0, -2.5])
def test_a_field_that_is_turned_is_that_of_the_turned_direction(angle: float) -> None:
    turned = members(f"encode(1, 0.4, 0.3) |> yaw({angle})", 16)
    np.testing.assert_allclose(turned, members(f"encode(1, {0.4 + angle}, 0.3)", 16), atol=1e-12)


def rotated(azimuth: float, elevation: float, axis: int, angle: float) -> tuple[float, float]:
    """A direction that is turned around an axis (0 to the front, 1 to the left), by the right hand."""
    flat = math.cos(elevation)
    place = [flat * math.cos(azimuth), flat * math.sin(azimuth), math.sin(elevation)]
    one, other = (axis + 1) % 3, (axis + 2) % 3
    a, b = place[one], place[other]
    place[one], place[other] = a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)
    return math.atan2(place[1], place[0]), math.asin(max(-1, min(place[2], 1)))


@pytest.mark.parametrize(("azimuth", "elevation"), DIRECTIONS[1:4])
@pytest.mark.parametrize("angle", [0.7, -2.0])
def test_a_field_that_is_tipped_or_leans_is_that_of_the_direction(
    azimuth: float, elevation: float, angle: float
) -> None:
    for word, axis, sign in (("lean", 0, 1), ("tip", 1, -1)):
        found = members(f"encode(1, {azimuth}, {elevation}) |> {word}({angle})", 16)
        to = rotated(azimuth, elevation, axis, sign * angle)
        np.testing.assert_allclose(found, [harmonic(number, *to) for number in range(16)], atol=1e-9)
    up = members("encode(1) |> tip(0.5)", 4)
    assert up[2] > 0  # what was in front
    assert members("encode(1, 1.5) |> lean(0.5)", 4)[2] > 0  # and on the left


def matrix(layout: str, speakers: int, focus: float) -> Values:
    """The decoder as a matrix [loudspeakers, 16]."""
    columns = []
    for number in range(16):
        field = ", ".join("1" if at == number else "0" for at in range(16))
        columns.append(members(f"{layout}(field, {focus})", speakers, before=f"field = <{field}>"))
    return np.array(columns).T


# R. W. E. Furse, "First and Second Order Ambisonic Decoding Equations" (1999): the columns W, X, Y and, of the second
# order, U and V, in the scale of Furse and Malham; from the front to the left.
SQUARE = [[0.3536, 0.3536, 0.3536], [0.3536, 0.3536, -0.3536], [0.3536, -0.3536, 0.3536], [0.3536, -0.3536, -0.3536]]
OCTAGON = [
    [0.1768, 0.2310, 0.0957, 0.1768, 0.1768], [0.1768, 0.0957, 0.2310, -0.1768, 0.1768],
    [0.1768, -0.0957, 0.2310, -0.1768, -0.1768], [0.1768, -0.2310, 0.0957, 0.1768, -0.1768],
    [0.1768, -0.2310, -0.0957, 0.1768, 0.1768], [0.1768, -0.0957, -0.2310, -0.1768, 0.1768],
    [0.1768, 0.0957, -0.2310, -0.1768, -0.1768], [0.1768, 0.2310, -0.0957, 0.1768, -0.1768],
]  # fmt: skip
# What a channel of Furse and Malham is of one of AmbiX: W is 3 dB less, U and V are larger by 2 / sqrt(3).
FUMA = {0: math.sqrt(0.5), 3: 1.0, 1: 1.0, 8: 2 / math.sqrt(3), 4: 2 / math.sqrt(3)}


@pytest.mark.parametrize(("layout", "published"), [("to_quad", SQUARE), ("to_octagon", OCTAGON)])
def test_basic_decoders_are_those_of_furse_within_a_tenth_of_a_decibel(
    layout: str, published: Sequence[Sequence[float]]
) -> None:
    table = np.array(published)
    numbers = [*FUMA][: table.shape[1]]
    wanted = table * [FUMA[number] for number in numbers]
    found = matrix(layout, len(table), 0.0)[:, numbers]
    assert (np.sign(found) == np.sign(wanted)).all()
    assert decibels(found, wanted).max() < 0.1


# The third order, and weights for max rE: J. Daniel's thesis (2001), equations for regular polygons and tables of g_m.
DANIEL_3 = (1.0, 0.9239, 0.7071, 0.3827)


@pytest.mark.parametrize(("focus", "gains"), [(0.0, (1.0, 1.0, 1.0, 1.0)), (1.0, DANIEL_3)])
def test_the_third_order_on_an_octagon_is_that_of_daniel(focus: float, gains: Sequence[float]) -> None:
    found = matrix("to_octagon", 8, focus)
    for speaker in range(8):
        angle = (speaker + 0.5) * math.tau / 8
        for degree, gain in enumerate(gains):
            for number, wave in ((degree * (degree + 2), math.cos), (degree * degree, math.sin)):
                # A source on the horizon reaches these harmonics with this scale.
                scale = harmonic(number, 0 if wave is math.cos else math.pi / 2 / max(degree, 1), 0)
                wanted = gain * (2 if degree else 1) * wave(degree * angle) / scale / 8
                if degree == 0 and wave is math.sin:
                    continue
                assert decibels(found[speaker, number], np.float64(wanted)) < 0.1
    # What is above or below says nothing to loudspeakers on the horizon.
    assert not found[:, [2, 5, 6, 7, 10, 11, 12, 13, 14]].any()


def velocity(gains: Values, places: Values, power: int) -> Values:
    """The vectors of Gerzon: of velocity (power 1), and of energy (power 2)."""
    weights = gains**power
    return np.asarray((weights[:, np.newaxis] * places).sum(axis=0) / weights.sum())


def on_circle(count: int, first: float) -> Values:
    angles = first + np.arange(count) * math.tau / count
    return np.array([np.cos(angles), np.sin(angles)]).T


@pytest.mark.parametrize(("layout", "places", "order"), [
    ("to_quad", on_circle(4, math.pi / 4)[[0, 3, 1, 2]], 1), ("to_hexagon", on_circle(6, 0), 2),
    ("to_octagon", on_circle(8, math.pi / 8), 3),
])  # fmt: skip
@pytest.mark.parametrize("azimuth", [0.0, 0.3, 2.0, -1.3])
def test_a_sound_comes_from_its_direction(layout: str, places: Values, order: int, azimuth: float) -> None:
    direction = np.array([math.cos(azimuth), math.sin(azimuth)])
    basic = members(f"encode(1, {azimuth}) |> {layout}(0)", len(places))
    np.testing.assert_allclose(velocity(basic, places, 1), direction, atol=1e-9)
    wide = members(f"encode(1, {azimuth}) |> {layout}()", len(places))
    # The largest length of the vector of energy that this order can have.
    np.testing.assert_allclose(velocity(wide, places, 2), direction * math.cos(math.pi / (2 * order + 2)), atol=1e-9)
    np.testing.assert_allclose(wide.sum(), 1)


SIGNS = [(x, y, z) for z in (-1, 1) for x in (1, -1) for y in (1, -1)]


@pytest.mark.parametrize(("azimuth", "elevation"), DIRECTIONS)
def test_a_cube_has_heights(azimuth: float, elevation: float) -> None:
    places = np.array(SIGNS) / math.sqrt(3)
    flat = math.cos(elevation)
    direction = np.array([flat * math.cos(azimuth), flat * math.sin(azimuth), math.sin(elevation)])
    gains = members(f"encode(1, {azimuth}, {elevation}) |> to_cube(0)", 8)
    np.testing.assert_allclose(velocity(gains, places, 1), direction, atol=1e-9)
    # Published for a cube, in the scale of AmbiX: an eighth of W, and three eighths of X, Y and Z by 1 / sqrt(3).
    found = matrix("to_cube", 8, 0.0)
    for speaker, (x, y, z) in enumerate(SIGNS):
        np.testing.assert_allclose(found[speaker, [0, 1, 2, 3]], [0.125, *(0.2165 * s for s in (y, z, x))], atol=1e-4)


# The corners of a dodecahedron tell the second order apart, and those of a design with 24 points the third.
PHI = (1 + math.sqrt(5)) / 2
DODECAHEDRON = np.array(
    [*((x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)),
     *(turn for a in (-1, 1) for b in (-1, 1) for turn in (
         (0, a / PHI, b * PHI), (a / PHI, b * PHI, 0), (b * PHI, 0, a / PHI)))]
) / math.sqrt(3)  # fmt: skip


@pytest.mark.parametrize(("order", "longest"), [(1, 1 / math.sqrt(3)), (2, math.sqrt(0.6))])
def test_loudspeakers_all_around(order: int, longest: float) -> None:
    azimuth, elevation = 0.7, -0.4
    gains = []
    for x, y, z in DODECAHEDRON:
        at = f"{math.atan2(y, x)}, {math.asin(z)}, 20, {order}"
        gains.append(members(f"<on_sphere(field, {at}), 0>", 2, before=f"field = encode(1, {azimuth}, {elevation})")[0])
    flat = math.cos(elevation)
    direction = np.array([flat * math.cos(azimuth), flat * math.sin(azimuth), math.sin(elevation)])
    np.testing.assert_allclose(velocity(np.array(gains), DODECAHEDRON, 2), direction * longest, atol=1e-9)


def gains_of_max_re(order: int) -> list[float]:
    """By the largest root of the Legendre polynomial that follows: Daniel's thesis, 3.2."""
    roots, _ = np.polynomial.legendre.leggauss(order + 1)
    return [float(np.polynomial.legendre.Legendre.basis(degree)(max(roots))) for degree in range(order + 1)]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_weights_on_a_sphere_are_those_of_daniel(order: int) -> None:
    for degree, gain in enumerate(gains_of_max_re(order)):
        field = ", ".join("1" if at == degree * degree + degree else "0" for at in range(16))
        found = members(f"<on_sphere(field, 0, {math.pi / 2}, 1, {order}), 0>", 2, before=f"field = <{field}>")[0]
        assert decibels(found, np.float64((2 * degree + 1) * gain)) < 0.1


@pytest.mark.parametrize(("expression", "wanted"), [
    ("to_stereo(encode(1, 1.5707963))", (1, 0)), ("to_stereo(encode(1, -1.5707963))", (0, 1)),
    ("to_stereo(encode(1))", (0.5, 0.5)),
])  # fmt: skip
def test_two_loudspeakers(expression: str, wanted: tuple[float, float]) -> None:
    np.testing.assert_allclose(members(expression, 2), wanted, atol=1e-6)


def test_a_ring_of_few_loudspeakers_hears_what_they_can_tell_apart() -> None:
    def used(count: int) -> int:
        found = 0
        for degree, number in ((1, 3), (2, 8), (3, 15)):
            field = ", ".join("1" if at == number else "0" for at in range(16))
            if members(f"<on_ring(field, 0, {count}), 0>", 2, before=f"field = <{field}>")[0]:
                found = degree
        return found

    assert [used(count) for count in (3, 4, 5, 6, 7, 8, 16)] == [1, 1, 2, 2, 3, 3, 3]
