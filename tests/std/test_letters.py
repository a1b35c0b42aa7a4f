"""std.letters against the letters that text("…") draws."""

from __future__ import annotations

import numpy as np
import pytest

from tests.media.test_letters import shown
from tests.support.together import all_but
from weft.backends.native.executor import NativeExecutor

WIDTH, HEIGHT = 160, 40


def drawn(text: str) -> np.ndarray:
    """What a patch displays: [outputs, height, width]."""
    return np.asarray(shown(f"#use std.letters\n{text}", WIDTH, HEIGHT, NativeExecutor))


def number(call: str, output: str = "v") -> np.ndarray:
    return drawn(f"digits({call}, size: 0.5)::d<v, distance>\ndisplay(d@{output})")[0]


def letters(words: str, output: str = "v") -> np.ndarray:
    return drawn(f'text("{words}", size: 0.5)::t<v, distance>\ndisplay(t@{output})')[0]


@pytest.mark.parametrize(
    ("call", "words"),
    all_but(4, [
        ("12.5", "12.50"), ("-3.14159, 4", "-3.1416"), ("0, 0", "0"), ("1234567, 0", "1234567"), ("0.05, 1", "0.1"),
        ("-0.001, 2", "0.00"), ("99.995, 1", "100.0"), ("0.004, 3", "0.004"), ("0 / 0, 1", "---"),
        ("1 / 0, 0", "-------"), ("12345678, 0", "-------"),
    ]),
)  # fmt: skip
def test_digits_are_those_of_the_same_text(call: str, words: str) -> None:
    expected = letters(words)
    assert expected.max() > 0.9
    # Letters may be half a pixel of their pictures apart, which is a hundredth of an em.
    assert np.abs(number(call) - expected).mean() < 0.02
    assert np.abs(number(call) - expected).max() < 0.5


def test_the_distance_of_digits_grows_beside_them() -> None:
    found, expected = number("8, 0", "distance"), letters("8", "distance")
    assert np.all(np.diff(found[HEIGHT // 2, WIDTH * 3 // 4 :]) > 0)
    near = expected < 0.2
    assert np.abs(found - expected)[near].max() < 0.05


def test_a_line_is_as_wide_as_it_is_asked_to_be() -> None:
    (line,) = drawn("display(outlined(me@y - 0.5, 0.25))")
    assert line[:, 0].sum() / HEIGHT == pytest.approx(0.25, abs=1 / HEIGHT)


def test_light_has_fallen_to_a_third_at_its_reach() -> None:
    places = (np.arange(WIDTH) + 0.5) / WIDTH
    (light,) = drawn("display(glowing(me@x - 0.5, 0.1))")
    assert np.allclose(light[0], np.exp(-np.maximum(places - 0.5, 0) / 0.1), atol=1e-5)


def test_letters_are_put_at_a_place() -> None:
    text = 'text("weft", size: 0.4)::t<v, distance>\n'
    there, moved = drawn(f"{text}display(t@v)"), drawn(f"{text}display(put(t@v, 0.6, 0.25))")
    assert there.max() == 1
    np.testing.assert_allclose(moved[:, :-10, 16:], there[:, 10:, :-16], atol=1e-4)
