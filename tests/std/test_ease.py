"""std.ease against its formulas; an `out_` is its `in_` backwards, and an `in_out_` is the two at half size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.std.values import Values, line

# Places that are exact in binary, so that halves and mirror images are too.
T = np.linspace(0, 1, 257)


def fallen(t: Values) -> Values:
    """The usual bounce: four parabolas of the same bend."""
    starts = np.select([t < 1 / 2.75, t < 2 / 2.75, t < 2.5 / 2.75], [0, 1.5, 2.25], 2.625) / 2.75
    lowest = np.select([t < 1 / 2.75, t < 2 / 2.75, t < 2.5 / 2.75], [0, 0.75, 0.9375], 0.984375)
    return 7.5625 * (t - starts) ** 2 + lowest


CURVES: dict[tuple[str, str, str], Callable[[Values], Values]] = {
    ("in_quad", "out_quad", "in_out_quad"): lambda t: t**2,
    ("in_cubic", "out_cubic", "in_out_cubic"): lambda t: t**3,
    ("in_quart", "out_quart", "in_out_quart"): lambda t: t**4,
    ("in_sine", "out_sine", "in_out_sine"): lambda t: 1 - np.sin((1 - t) * np.pi / 2),
    ("in_expo", "out_expo", "in_out_expo"): lambda t: np.expm1(10 * np.log(2) * t) / 1023,
    ("in_circ", "out_circ", "in_out_circ"): lambda t: 1 - np.sin(np.arccos(t)),
    ("in_back", "out_back", "in_out_back"): lambda t: 2.7 * t**3 - 1.7 * t**2,
    ("in_elastic", "out_elastic", "in_out_elastic"): lambda t: (
        np.expm1(10 * np.log(2) * t) / 1023 * np.cos(2 * np.pi * (10 * t - 10) / 3)
    ),
    ("in_bounce", "out_bounce", "in_out_bounce"): lambda t: 1 - fallen(1 - t),
}
ALL = [name for names in CURVES for name in names]
# These turn back on their way.
TURNING = ("back", "elastic", "bounce")


@pytest.mark.parametrize(("names", "formula"), CURVES.items(), ids=[names[0] for names in CURVES])
def test_a_curve_is_its_formula(names: tuple[str, str, str], formula: Callable[[Values], Values]) -> None:
    into, out, both = (line("std.ease", f"{name}(me@x)", T) for name in names)
    np.testing.assert_allclose(into, formula(T), atol=1e-12)
    np.testing.assert_allclose(out, 1 - formula(1 - T), atol=1e-12)
    halves = np.where(T < 0.5, formula(np.minimum(2 * T, 1)) / 2, 1 - formula(np.minimum(2 - 2 * T, 1)) / 2)
    np.testing.assert_allclose(both, halves, atol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_a_curve_goes_from_0_to_1_and_is_held_outside(name: str) -> None:
    ends = line("std.ease", f"{name}(me@x)", [-1e9, -0.5, 0, 1, 1.5, 1e9])
    np.testing.assert_allclose(ends, [0, 0, 0, 1, 1, 1], atol=1e-15)


@pytest.mark.parametrize("name", [name for name in ALL if not name.endswith(TURNING)])
def test_a_curve_never_turns_back(name: str) -> None:
    assert (np.diff(line("std.ease", f"{name}(me@x)", T)) > 0).all()


@pytest.mark.parametrize("name", ALL)
def test_a_curve_has_no_jumps(name: str) -> None:
    fine = np.linspace(0, 1, 20_001)
    assert np.abs(np.diff(line("std.ease", f"{name}(me@x)", fine))).max() < 0.01


@pytest.mark.parametrize("name", ALL)
def test_a_curve_stays_in_the_range_that_it_states(name: str) -> None:
    got = line("std.ease", f"{name}(me@x)", T)
    beyond = {"back": 0.1, "elastic": 0.4}.get(name.rpartition("_")[2], 0)
    assert got.min() >= -beyond
    assert got.max() <= 1 + beyond
