"""std.color against `colorsys`, against Oklab's definition over XYZ, and there and back again."""

from __future__ import annotations

import colorsys
from collections.abc import Callable

import numpy as np
import pytest

from tests.std.values import Values, line, values

UNIT = np.linspace(0, 1, 13)
THIRDS = (0.0, 0.31, 0.5, 1.0)
C = "c<r, g, b> = <me@x, me@y, me@time>"


def cube() -> Values:
    """All colours that the tests look at, in the order in which `over_cube` gives results."""
    x, y = np.meshgrid(UNIT, UNIT)
    return np.concatenate([np.stack([x, y, np.full_like(x, z)], -1).reshape(-1, 3) for z in THIRDS])


def over_cube(expression: str, before: str = C) -> Values:
    """A colour or a number for every colour of the cube."""
    rows = [np.stack(values("std.color", [expression], UNIT, UNIT, z, before), -1) for z in THIRDS]
    return np.concatenate([row.reshape(-1, row.shape[-1]) for row in rows])


def each(convert: Callable[[float, float, float], tuple[float, float, float]]) -> Values:
    return np.array([convert(*colour) for colour in cube().tolist()])


def hls(l_first: Callable[..., tuple[float, ...]]) -> Callable[[float, float, float], tuple[float, float, float]]:
    """colorsys has lightness before saturation."""

    def swapped(h: float, s: float, l_: float) -> tuple[float, float, float]:
        r, g, b = l_first(h, l_, s)
        return r, g, b

    return swapped


def to_hsl(r: float, g: float, b: float) -> tuple[float, float, float]:
    h, lightness, s = colorsys.rgb_to_hls(r, g, b)
    return h, s, lightness


@pytest.mark.parametrize(
    ("expression", "reference"),
    [
        ("hsv(me@x, me@y, me@time)", colorsys.hsv_to_rgb),
        ("to_hsv(c)", colorsys.rgb_to_hsv),
        ("hsl(me@x, me@y, me@time)", hls(colorsys.hls_to_rgb)),
        ("to_hsl(c)", to_hsl),
    ],
)
def test_is_what_colorsys_says(expression: str, reference: Callable[..., tuple[float, float, float]]) -> None:
    np.testing.assert_allclose(over_cube(expression), each(reference), atol=1e-9)


def test_a_hue_goes_round() -> None:
    (near, far) = (np.stack(values("std.color", [f"hsv(me@x + {n}, 1, 1)"], UNIT)) for n in (0, -7))
    np.testing.assert_allclose(near, far, atol=1e-12)


# Oklab as its author defines it: by way of XYZ under D65, from sRGB's primaries.
XYZ_TO_CONES = np.array(
    [[0.8189330101, 0.3618667424, -0.1288597137], [0.0329845436, 0.9293118715, 0.0361456387],
     [0.0482003018, 0.2643662691, 0.6338517070]]
)  # fmt: skip
CONES_TO_LAB = np.array(
    [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
     [0.0259040371, 0.7827717662, -0.8086757660]]
)  # fmt: skip


def srgb_to_xyz() -> Values:
    """From the chromaticities of red, green, blue and white."""
    places = np.array([[0.64, 0.33], [0.30, 0.60], [0.15, 0.06]])
    primaries = np.stack([places[:, 0] / places[:, 1], np.ones(3), (1 - places.sum(1)) / places[:, 1]])
    white = np.array([0.3127 / 0.3290, 1, (1 - 0.3127 - 0.3290) / 0.3290])
    return primaries * np.linalg.solve(primaries, white)


def light(channels: Values) -> Values:
    """sRGB's curve (IEC 61966-2-1)."""
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(colours: Values) -> Values:
    return np.cbrt(light(colours) @ srgb_to_xyz().T @ XYZ_TO_CONES.T) @ CONES_TO_LAB.T


def test_oklab_is_what_its_definition_says() -> None:
    np.testing.assert_allclose(over_cube("to_oklab(c)"), lab(cube()), atol=2e-4)


def test_oklch_is_oklab_in_polar_coordinates() -> None:
    lightness, chroma, hue = over_cube("to_oklch(c)").T
    expected = lab(cube())
    np.testing.assert_allclose(lightness, expected[:, 0], atol=2e-4)
    np.testing.assert_allclose(chroma * np.cos(2 * np.pi * hue), expected[:, 1], atol=2e-4)
    np.testing.assert_allclose(chroma * np.sin(2 * np.pi * hue), expected[:, 2], atol=2e-4)
    assert hue.min() >= 0
    assert hue.max() < 1


@pytest.mark.parametrize(
    "there_and_back",
    [
        "to_hsv(c)::d<h, s, v>\ne<r, g, b> = hsv(d@h, d@s, d@v)",
        "to_hsl(c)::d<h, s, l>\ne<r, g, b> = hsl(d@h, d@s, d@l)",
        "to_oklab(c)::d<l, a, b>\noklab(d@l, d@a, d@b)::e<r, g, b>",
        "to_oklch(c)::d<l, chroma, h>\ne<r, g, b> = oklch(d@l, d@chroma, d@h)",
        "e<r, g, b> = from_linear(to_linear(c))",
        "e<r, g, b> = hue_shift(hue_shift(c, 0.21), -0.21)",
        "e<r, g, b> = hue_shift(c, 1)",
        "e<r, g, b> = saturation(c, 1)",
        "e<r, g, b> = temperature(c, 0)",
        "e<r, g, b> = mix_oklab(c, <1, 0, 0>, 0)",
        "e<r, g, b> = mix_oklab(<1, 0, 0>, c, 1)",
        "e<r, g, b> = contrast(contrast(c, 4), 0.25)",
        "e<r, g, b> = gamma(gamma(c, 2.2), 1 / 2.2)",
        "e<r, g, b> = exposure(exposure(c, 3), -3)",
        "e<r, g, b> = duotone(<me@x, me@y, me@time>, <0, 0, 0>, <1, 1, 1>)",
    ],
)
def test_there_and_back_is_the_same_colour(there_and_back: str) -> None:
    # At exactly 0 a cube root is so steep that a last digit shows.
    np.testing.assert_allclose(over_cube("e", f"{C}\n{there_and_back}"), cube(), atol=3e-5)


def test_half_way_in_oklab() -> None:
    expected = (lab(cube()) + lab(np.array([[0.2, 0.9, 0.4]]))) / 2
    got = over_cube("mix_oklab(c, <0.2, 0.9, 0.4>, 0.5)")
    inside = ((got >= 0) & (got <= 1)).all(-1)
    assert inside.mean() > 0.8
    np.testing.assert_allclose(lab(got[inside]), expected[inside], atol=5e-4)


def test_luminance_is_the_mean_that_white_and_grey_agree_with() -> None:
    weights = srgb_to_xyz()[1]
    np.testing.assert_allclose(over_cube("luminance(c)")[:, 0], cube() @ weights, atol=2e-4)


def test_saturation_keeps_the_luminance_and_goes_to_grey() -> None:
    np.testing.assert_allclose(over_cube("luminance(saturation(c, 1.7))"), over_cube("luminance(c)"), atol=1e-12)
    grey = over_cube("saturation(c, 0)")
    np.testing.assert_allclose(grey, np.repeat(over_cube("luminance(c)"), 3, 1), atol=1e-12)
    farther, near = over_cube("saturation(c, 2)") - grey, cube() - grey
    np.testing.assert_allclose(farther, 2 * near, atol=1e-12)


def test_a_third_of_a_turn_exchanges_the_channels() -> None:
    np.testing.assert_allclose(over_cube("hue_shift(c, 1 / 3)"), np.roll(cube(), 1, 1), atol=1e-12)
    np.testing.assert_allclose(over_cube("hue_shift(c, 0.2)").sum(1), cube().sum(1), atol=1e-12)
    distance = np.linalg.norm(cube() - cube().mean(1, keepdims=True), axis=1)
    turned = over_cube("hue_shift(c, 0.2)")
    np.testing.assert_allclose(np.linalg.norm(turned - turned.mean(1, keepdims=True), axis=1), distance, atol=1e-12)


def test_temperature_moves_red_against_blue_and_keeps_white_as_bright() -> None:
    for amount in (-1, 0.5, 1):
        (r, g, b) = (v[0, 0] for v in values("std.color", [f"temperature(<1, 1, 1>, {amount})"], [0.5]))
        assert np.sign(r - g) == np.sign(g - b) == np.sign(amount)
        (lum,) = values("std.color", [f"luminance(temperature(<1, 1, 1>, {amount}))"], [0.5])
        np.testing.assert_allclose(lum, 1, atol=1e-12)


def test_duotone_goes_from_one_colour_to_the_other() -> None:
    got = np.stack(values("std.color", ["duotone(me@x, <0.1, 0, 0.3>, <1, 0.8, 0.3>)"], UNIT), -1)[0]
    np.testing.assert_allclose(got, np.array([0.1, 0, 0.3]) + UNIT[:, None] * [0.9, 0.8, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("expression", "formula"),
    [
        ("to_linear(me@x)", light),
        ("gamma(me@x, 2.2)", lambda x: x ** (1 / 2.2)),
        ("contrast(me@x, 2)", lambda x: 2 * x - 0.5),
        ("exposure(me@x, -1.5)", lambda x: x / 2**1.5),
        ("levels(me@x, 0.2, 0.7)", lambda x: np.interp(x, [0.2, 0.7], [0, 1])),
        ("levels(me@x, 0.7, 0.2)", lambda x: np.interp(x, [0.2, 0.7], [1, 0])),
        ("tonemap(me@x)", lambda x: 1 - 1 / (1 + x)),
        ("cosine(me@x, 0.4, 0.3, 2, 0.25)", lambda x: 0.4 - 0.3 * np.sin(2 * np.pi * 2 * x)),
    ],
)
def test_one_channel_is_its_formula(expression: str, formula: Callable[[Values], Values]) -> None:
    np.testing.assert_allclose(line("std.color", expression, UNIT), formula(UNIT), atol=1e-12)


def test_light_below_black_stays_a_number() -> None:
    got = [line("std.color", f"{name}(me@x, 2)", [-0.5]) for name in ("gamma", "contrast")]
    got += [line("std.color", f"{name}(me@x)", [-0.5]) for name in ("tonemap", "to_linear", "from_linear")]
    assert np.isfinite(got).all()


@pytest.mark.parametrize("palette", ["rainbow", "sunset", "ocean", "forest", "candy", "neon", "heat", "ice"])
def test_a_palette_is_colours_without_jumps(palette: str) -> None:
    fine = np.linspace(0, 1, 1001)
    got = np.stack(values("std.color", [f"{palette}(me@x)"], fine))
    assert got.min() >= 0
    assert got.max() <= 1
    assert np.abs(np.diff(got)).max() < 0.02
    assert (np.ptp(got, -1) > 0.2).all()


@pytest.mark.parametrize("palette", ["rainbow", "sunset", "ocean", "forest", "candy", "neon"])
def test_a_palette_comes_back(palette: str) -> None:
    first, later = (np.stack(values("std.color", [f"{palette}(me@x + {n})"], UNIT)) for n in (0, 3))
    np.testing.assert_allclose(first, later, atol=1e-9)


def test_heat_and_ice_go_from_black_to_white() -> None:
    for palette in ("heat", "ice"):
        ends = np.stack(values("std.color", [f"{palette}(me@x)"], [0, 1]))
        np.testing.assert_allclose(ends[:, 0], [[0, 1]] * 3)


def test_oklab_steps_that_are_equal_are_equally_bright() -> None:
    """All hues of one lightness have one lightness, and the chroma that the page promises is on the screen."""
    (hues,) = [np.stack(values("std.color", ["oklch(0.75, 0.12, me@x)"], np.linspace(0, 1, 97)), -1)[0]]
    assert hues.min() >= 0
    assert hues.max() <= 1
    np.testing.assert_allclose(lab(hues)[:, 0], 0.75, atol=3e-4)
