"""`weft.codegen.clike.shader.SidePart`: rows of pixels by a product instead of a division."""

from __future__ import annotations

import random

import pytest

from weft.codegen.clike.shader import LaunchExtent, SidePart


def parts(side: int) -> tuple[int, int]:
    factor, shift = (SidePart(LaunchExtent.COLUMNS, part).of(side) for part in ("factor", "shift"))  # type: ignore[arg-type]
    return int(factor), int(shift)


@pytest.mark.parametrize("side", [2, 3, 5, 7, 64, 641, 1279, 1280, 1920, 3840, 4095, 4096, 65535, 65537, 2**22 + 1])
def test_a_product_finds_the_row_of_every_pixel(side: int) -> None:
    factor, shift = parts(side)
    assert 0 <= factor < 2**32
    chance = random.Random(side)
    rows = [*range(3), *(chance.randrange(2**31 // side) for _ in range(300)), 2**31 // side - 1]
    for number in {row * side + at for row in rows for at in (-1, 0, 1, side - 1)} | {2**31 - 1}:
        if 0 <= number < 2**31:
            assert number * factor >> 32 >> shift == number // side, number


def test_a_side_of_one_pixel_has_numbers_that_fit() -> None:
    assert all(0 <= number < 2**32 for number in parts(1))
