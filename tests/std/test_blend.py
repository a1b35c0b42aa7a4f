"""std.blend against the formulas, written for single channels."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.std.values import values

PLACES = np.array([0, 0.1, 0.25, 0.4, 0.5, 0.625, 0.75, 0.9, 1])


def burn(b: float, t: float) -> float:
    return 1.0 if b == 1 else 1 - min(1, (1 - b) / t) if t else 0.0


def dodge(b: float, t: float) -> float:
    return 1 - burn(1 - b, 1 - t)


def overlay(b: float, t: float) -> float:
    return 2 * b * t if b <= 0.5 else 1 - 2 * (1 - b) * (1 - t)


def soft(b: float, t: float) -> float:
    """As W3C's compositing defines it."""
    bent = 16 * b**3 - 12 * b**2 + 4 * b if b <= 0.25 else math.sqrt(b)
    return b - (1 - 2 * t) * b * (1 - b) if t <= 0.5 else b + (2 * t - 1) * (bent - b)


MODES: dict[str, Callable[[float, float], float]] = {
    "multiply": lambda b, t: b * t,
    "screen": lambda b, t: 1 - (1 - b) * (1 - t),
    "overlay": overlay,
    "hard_light": lambda b, t: overlay(t, b),
    "soft_light": soft,
    "dodge": dodge,
    "burn": burn,
    "vivid_light": lambda b, t: burn(b, 2 * t) if t <= 0.5 else dodge(b, 2 * t - 1),
    "linear_light": lambda b, t: min(max(b + 2 * t - 1, 0), 1),
    "pin_light": lambda b, t: sorted([2 * t - 1, b, 2 * t])[1],
    "hard_mix": lambda b, t: float(b >= 1 - t),
    "linear_burn": lambda b, t: max(0, 1 - (1 - b) - (1 - t)),
    "add": lambda b, t: min(1, b + t),
    "difference": lambda b, t: max(b, t) - min(b, t),
    "exclusion": lambda b, t: b * (1 - t) + t * (1 - b),
    "negation": lambda b, t: b + t if b + t < 1 else 2 - b - t,
    "lighten": max,
    "darken": min,
    "reflect": lambda b, t: min(1, b**2 / (1 - t)) if t < 1 else float(b > 0),
}


@pytest.mark.parametrize(("mode", "formula"), MODES.items(), ids=list(MODES))
def test_a_mode_is_its_formula(mode: str, formula: Callable[[float, float], float]) -> None:
    (got,) = values("std.blend", [f"{mode}(me@x, me@y)"], PLACES, PLACES)
    expected = [[formula(below, above) for below in PLACES.tolist()] for above in PLACES.tolist()]
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_all_channels_of_a_picture_are_blended_at_once() -> None:
    before = "a<r, g, b> = <me@x, 0.5, me@y>\nb<r, g, b> = <me@y, me@x, 0.2>\nc<r, g, b> = screen(a, b)"
    got = values("std.blend", ["c"], PLACES, PLACES, before=before)
    x, y = np.meshgrid(PLACES, PLACES)
    for channel, (below, above) in zip(got, [(x, y), (0.5 + 0 * x, x), (y, 0.2 + 0 * x)], strict=True):
        np.testing.assert_allclose(channel, 1 - (1 - below) * (1 - above), atol=1e-12)


def test_over_is_the_sum_of_what_is_let_through() -> None:
    before = "a<r, g, b, a> = <0.9, me@y, 0.1, me@x>\nb<r, g, b, a> = <me@x, 0.3, 0.7, me@y>"
    got = np.stack(values("std.blend", ["over(a, b)"], PLACES, PLACES, before=before), -1)
    x, y = np.meshgrid(PLACES, PLACES)
    full = np.ones_like(x)
    below = np.stack([0.9 * full, y, 0.1 * full], -1) * x[..., None]
    above = np.stack([x, 0.3 * full, 0.7 * full], -1) * y[..., None]
    light = above + below * (1 - y[..., None])
    np.testing.assert_allclose(got[..., 3], 1 - (1 - x) * (1 - y), atol=1e-12)
    np.testing.assert_allclose(got[..., :3] * got[..., 3:], light, atol=1e-12)
    assert not np.isnan(got).any()
