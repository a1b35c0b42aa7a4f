"""std.map against formulas of plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.std.values import Values, line

UNIT = np.linspace(0, 1, 33)
WIDE = np.linspace(-3, 3, 97) + 0.001


def turning(x: float, lo: float, hi: float) -> float:
    """Ping-pong as a wave: the arc sine of a sine is a triangle."""
    return lo + (hi - lo) * (0.5 + math.asin(math.sin(math.pi * ((x - lo) / (hi - lo) - 0.5))) / math.pi)


def level(t: float) -> float:
    """Perlin's polynomial."""
    return 10 * t**3 - 15 * t**4 + 6 * t**5


def schlick(x: float, a: float) -> float:
    return x / ((1 / a - 2) * (1 - x) + 1)


CASES: list[tuple[str, Callable[[float], float], Values]] = [
    ("remap(me@x, -1, 2, 10, 4)", lambda x: 10 - 6 * (x + 1) / 3, WIDE),
    ("fit(me@x, -1, 2, 10, 4)", lambda x: 10 - 6 * min(max((x + 1) / 3, 0), 1), WIDE),
    ("fit(me@x, 2, -1, 10, 4)", lambda x: 4 + 6 * min(max((x + 1) / 3, 0), 1), WIDE),
    ("unipolar(me@x)", lambda x: (x + 1) / 2, WIDE),
    ("bipolar(me@x)", lambda x: x - (1 - x), WIDE),
    ("wrap(me@x, 0.5, 1.25)", lambda x: 0.5 + (x - 0.5) % 0.75, WIDE),
    ("mirror(me@x, 0.5, 1.25)", lambda x: turning(x, 0.5, 1.25), WIDE),
    ("quantize(me@x, 5)", lambda x: min((k / 4 for k in range(5)), key=lambda k: (abs(k - x), -k)), UNIT),
    ("stairs(me@x, 4, 0)", lambda x: math.floor(4 * x + 0.5) / 4, WIDE),
    ("bias(me@x, 0.8)", lambda x: schlick(x, 0.8), UNIT),
    ("bias(me@x, 0.5)", lambda x: x, UNIT),
    ("gain(me@x, 0.75)", lambda x: x, UNIT),
    ("gain(me@x, 0.9)", lambda x: schlick(2 * x, 0.2) / 2 if x < 0.5 else 1 - schlick(2 - 2 * x, 0.2) / 2, UNIT),
    ("smootherstep(0.25, 0.75, me@x)", lambda x: level(min(max(2 * x - 0.5, 0), 1)), UNIT),
    ("ramp(me@x, -1, 2)", lambda x: min(max((x + 1) / 2, 0), 1), WIDE),
    ("between(me@x, 0.25, 0.75)", lambda x: float(0.25 <= x < 0.75), UNIT),
    ("bump(me@x, 0.5, 0.2)", lambda x: math.exp(-((x - 0.5) ** 2) / (2 * 0.2**2)), UNIT),
    ("deadzone(me@x, 0.2)", lambda x: math.copysign(max(0, (abs(x) - 0.2) / 0.8), x), WIDE),
    ("curve(me@x, 3)", lambda x: x**3, WIDE),
    ("sigmoid(me@x, 0.5, 2)", lambda x: 1 / (1 + math.exp(-4 * 2 * (x - 0.5))), WIDE),
    ("tri(me@x)", lambda x: turning(2 * x, 0, 1), WIDE),
    ("saw(me@x, 0.25)", lambda x: float(np.interp(x % 1, [0, 0.25, 1], [0, 1, 0])), WIDE),
    ("saw(me@x, 1)", lambda x: x % 1, WIDE),
    ("saw(me@x, 0)", lambda x: 1 - x % 1, WIDE),
    ("pulse(me@x, 0.25)", lambda x: float(x % 1 < 0.25), WIDE),
    ("sine(me@x)", lambda x: math.sin(math.pi * x) ** 2, WIDE),
]


@pytest.mark.parametrize(("expression", "formula", "places"), CASES, ids=[case[0] for case in CASES])
def test_is_its_formula(expression: str, formula: Callable[[float], float], places: Values) -> None:
    got = line("std.map", expression, places)
    np.testing.assert_allclose(got, [formula(x) for x in places.tolist()], atol=1e-12)


def test_the_ends_and_the_amount_of_bias_and_gain() -> None:
    for amount in (0.55, 0.75, 0.95):
        np.testing.assert_allclose(line("std.map", f"bias(me@x, {amount})", [0, 0.5, 1]), [0, amount, 1], atol=1e-12)
        np.testing.assert_allclose(line("std.map", f"bias(me@x, {1 - amount})", [0.5]), [1 - amount], atol=1e-12)
        found = line("std.map", f"gain(me@x, {amount})", [0, 0.25, 0.5, 0.75, 1])
        np.testing.assert_allclose(found, [0, 1 - amount, 0.5, amount, 1], atol=1e-12)
        assert (np.diff(line("std.map", f"gain(me@x, {amount})", UNIT)) > 0).all()


def test_stairs_rise_and_have_no_jumps_where_they_are_soft() -> None:
    fine = np.linspace(-1, 2, 30_001)
    for soft in (0.2, 0.6, 1):
        got = line("std.map", f"stairs(me@x, 4, {soft})", fine)
        assert (np.diff(got) >= 0).all()
        assert np.diff(got).max() < 1e-3 / soft
        whole = line("std.map", f"stairs(me@x, 4, {soft})", np.arange(-4, 9) / 4)
        np.testing.assert_allclose(whole, np.arange(-4, 9) / 4, atol=1e-12)


def test_a_curve_keeps_the_sign_where_a_power_would_not() -> None:
    np.testing.assert_allclose(line("std.map", "curve(me@x, 0.5)", [-0.25, 0, 0.25]), [-0.5, 0, 0.5], atol=1e-12)
