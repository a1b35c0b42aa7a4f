"""One picture fading into the next: what both weigh, and how long a mixed picture stays."""

from __future__ import annotations

import numpy as np
import pytest

from weft.runtime.transition import PictureFade


def pictures(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    before, after = np.random.default_rng(3).integers(0, 256, (2, *shape), np.uint8)
    return before, after


@pytest.mark.parametrize("shape", [(720, 1280, 4), (1, 1, 4), (3, 70_000, 4), (129, 511, 4)])
@pytest.mark.parametrize("share", [0, 1, 100, 255, 256])
def test_each_weighs_its_share(shape: tuple[int, ...], share: int) -> None:
    before, after = pictures(*shape)
    mixed = PictureFade(before, 5.0, 2.0).mixed(before, after, 5.0 + share / 128)
    expected = (before.astype(int) * (256 - share) + after.astype(int) * share) // 256
    assert mixed.dtype == np.uint8
    np.testing.assert_array_equal(mixed, expected)


def test_a_mixed_picture_stays_for_a_tick() -> None:
    before, after = pictures(48, 64, 4)
    fade = PictureFade(before, 0.0, 1.0)
    first = fade.mixed(before, after, 0.25)
    seen = first.copy()
    second = fade.mixed(before, after, 0.5)
    assert second is not first
    np.testing.assert_array_equal(first, seen)
    assert not (fade.mixed(before, after, 0.75) == second).all()


def test_pictures_of_different_sizes_are_not_mixed() -> None:
    (before, _), (_, after) = pictures(4, 6, 4), pictures(6, 4, 4)
    assert PictureFade(before, 0.0, 1.0).mixed(before, after, 0.5) is after
