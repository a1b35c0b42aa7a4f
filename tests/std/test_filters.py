"""The filters and the feedback of std.picture: each against its formula, on a picture that numpy computes as well."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

from tests.std.values import EXACT, Values, compiled
from tests.support.gl import GlExecutor, graphics
from weft.backends.executors import Executor
from weft.backends.launch import Launch, StateMemory, picture_coords
from weft.backends.native.executor import NativeExecutor
from weft.backends.select import executor_problem
from weft.backends.vector.machine import VectorExecutor
from weft.codegen.kernel import Kernel
from weft.codegen.native.module import emit
from weft.codegen.native.target import ISAS
from weft.ir.rates import Rate

__all__ = ["graphics"]

WIDTH, HEIGHT = 48, 32
X, Y = np.meshgrid((np.arange(WIDTH) + 0.5) / WIDTH, (np.arange(HEIGHT) + 0.5) / HEIGHT)
POINT = "point = me@px == 24 and me@py == 16"


@cache
def kernel_of(text: str) -> Kernel:
    (unit,) = compiled("std.picture", text)
    return unit.kernel


def shown(text: str, size: tuple[int, int] = (WIDTH, HEIGHT), ticks: int = 1, executor: Executor = EXACT) -> Values:
    """What a patch displays in its last tick: [outputs, height, width]."""
    width, height = size
    kernel = kernel_of(text)
    memory = StateMemory(kernel.slots, (height, width), np.float64 if executor is EXACT else np.float32)
    executable = executor.load(kernel)
    uniforms = {name: float({"width": width, "height": height}.get(name, 0)) for name in kernel.uniforms}
    launch = Launch((height, width), picture_coords(width, height), uniforms)
    return np.array([executable.planes(memory, launch) for _ in range(ticks)][-1], np.float64)


def bell(deviation: float, reach: int) -> Values:
    """The weights of a Gaussian over pixels, which are 1 together."""
    weights = np.exp(-((np.arange(-reach, reach + 1) / deviation) ** 2) / 2)
    return np.asarray(weights / weights.sum())


def test_a_blurred_point_is_a_gaussian() -> None:
    (found,) = shown(f"{POINT}\ndisplay(point |> blur(0.08))")
    deviation = 0.08 * HEIGHT
    reach = 2 * int(np.ceil(1.5 * deviation))
    weights = bell(deviation, reach)
    expected = np.zeros((HEIGHT, WIDTH))
    expected[16 - reach : 17 + reach, 24 - reach : 25 + reach] = np.outer(weights, weights)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("radius", [0.02, 0.08, 0.1])
def test_a_blur_is_as_wide_as_it_says(radius: float) -> None:
    """Also where its pairs of pixels are apart."""
    (found,) = shown(f"display((me@py == 200) |> blur({radius}))", (3, 400))
    rows, weights = np.arange(400) - 200.0, found[:, 1]
    assert weights.sum() == pytest.approx(1)
    # A bell that is cut off at three deviations is narrower by 1.4 %.
    assert np.sqrt((rows * rows * weights).sum()) == pytest.approx(radius * 400, rel=0.02)


PICTURES = (
    "(me@px + 0.7 * me@py >= 230)", "(me@px == 131 and me@py == 90)", "hash(me@px, me@py)",
    "(hash(me@py, me@px) < 0.5)", "(me@px < 1 or me@py >= me@height - 1)", "(me@px % 4 < 2)", "(me@py % 2)",
    "(0.5 + 0.5 * sin(tau * me@px / 4.03))",
)  # fmt: skip
"""A slanting edge, a bright pixel, noise of many values and of two, bright borders, and stripes."""


def spread(count: int, deviation: float) -> Values:
    """The share that each pixel in a row of this many gets from each, by a Gaussian; those beyond the edge are as at
    the edge."""
    reach, matrix = math.ceil(5 * deviation), np.zeros((count, count))
    for offset, weight in zip(range(-reach, reach + 1), bell(deviation, reach), strict=True):
        matrix[range(count), np.clip(np.arange(count) + offset, 0, count - 1)] += weight
    return matrix


@pytest.mark.parametrize(
    ("size", "pixels", "pictures", "machines"),
    [
        ((320, 257), 0.4, PICTURES[::2], "native"), ((320, 257), 2.6, PICTURES[1::2], "all"),
        ((320, 257), 8.99, PICTURES[::2], "native"), ((320, 257), 9, PICTURES[::2], "all"),
        ((320, 257), 13.7, PICTURES[1::2], "native"), ((320, 257), 80.3, PICTURES[::2], "native"),
        ((37, 23), 1.9, PICTURES[::2], "all"), ((37, 23), 14, PICTURES[1::2], "all"),
    ],
)
def test_a_blur_is_a_gaussian_at_all_radii(
    size: tuple[int, int], pixels: float, pictures: Sequence[str], machines: str, request: pytest.FixtureRequest
) -> None:
    """Within 2 of 255 levels."""
    across, down = (spread(count, pixels) for count in size)
    makers: list[Callable[[], Executor]] = [NativeExecutor]
    if machines == "all":
        makers += [VectorExecutor, lambda: GlExecutor(request.getfixturevalue("graphics"))]
    for executor in (make() for make in makers):
        bundle = f"pictures = <{', '.join(pictures)}>\n"
        sharp = shown(f"{bundle}display(pictures)", size, executor=executor)
        soft = shown(f"{bundle}display(pictures |> blur({pixels} / me@height))", size, executor=executor)
        np.testing.assert_allclose(soft, down @ sharp @ across.T, atol=1.9 / 255)


@pytest.mark.parametrize("radius", ["0 / 0", "-0.02", "1 / 0", "-1 / 0", "1e30", "1e-30", "0"])
@pytest.mark.parametrize("size", [(1, 1), (5, 300), (260, 261)])
def test_any_radius_is_taken(radius: str, size: tuple[int, int]) -> None:
    """What is no number blurs nothing, and below 0 counts as above."""
    text = f"wild = hash(me@px, me@py)\ndisplay(wild, wild |> blur({radius}), wild |> blur(abs({radius})))"
    sharp, soft, same = shown(text, size, executor=NativeExecutor())
    np.testing.assert_array_equal(soft, same)
    assert np.isfinite(soft).all()
    if radius in ("0 / 0", "1e-30", "0"):
        np.testing.assert_allclose(soft, sharp, atol=1e-6)


@pytest.mark.parametrize("machine", [NativeExecutor, VectorExecutor])
def test_a_radius_may_vary_from_narrow_to_wide(machine: Callable[[], Executor]) -> None:
    wild = "hash(me@px, me@py)"
    found, sharp, soft = shown(
        f"display({wild} |> blur(if me@py < 130 then 0 else 0.05), {wild}, {wild} |> blur(0.05))", (260, 261),
        executor=machine(),
    )
    np.testing.assert_allclose(found[:128], sharp[:128], atol=1e-5)
    np.testing.assert_allclose(found[180:], soft[180:], atol=1e-4)


def test_a_blur_of_nothing_changes_nothing() -> None:
    wild = "hash(me@px, me@py)"
    np.testing.assert_allclose(shown(f"display({wild} |> blur(0))"), shown(f"display({wild})"), atol=1e-12)
    np.testing.assert_allclose(shown("display(0.7 |> blur(0.1))"), 0.7)


def test_a_blur_takes_each_strand_and_keeps_names() -> None:
    text = "img<r, g, b> = <hash(me@px), hash(me@py), me@x>\nsoft = img |> blur(0.05)\n"
    together = shown(text + "display(soft@r, soft@g, soft@b)")
    np.testing.assert_array_equal(together, shown(text + "display(img@r |> blur(0.05), img@g |> blur(0.05), soft[2])"))


def test_a_blur_computes_the_picture_once() -> None:
    noisy = "n = fbm(me@x * 9, me@y * 5)\n"
    blurred, plain = kernel_of(noisy + "display(n |> blur())"), kernel_of(noisy + "display(n)")
    assert sorted(stage.level for stage in blurred.stages) == [0, 0, 2, 2, 2]
    assert sum(map(len, blurred.stages[0].sections)) == pytest.approx(sum(map(len, plain.sections)), abs=2)


def work_of(member: str, word: str) -> tuple[int, int]:
    """How many values a picture with this member computes at each pixel, and how often its machine code looks up each
    lane by itself, where a plain load would serve."""
    kernel = kernel_of(f"display(<sin(me@y * 9 + me@x * 8), {member}, me@x * me@y> |> {word})")
    every = (*kernel.stages, kernel)
    values = sum(1 for each in every for _ in each.section(Rate.ELEMENT).walk())
    return values, sum(emit(each, False, ISAS["avx2"], 8).text.count("x86.avx2.gather") for each in every)


SIMPLE = [*((member, "blur(0.02)") for member in ("me@y", "me@x", "me@time", "0", "1")), ("me@y", "edges()")]


@pytest.mark.long
@pytest.mark.parametrize(("member", "word"), SIMPLE)
def test_what_is_simple_takes_no_more_work(member: str, word: str) -> None:
    """What an image keeps of the coordinates themselves, or of a constant, is not read from it where these are used."""
    values, lookups = work_of(member, word)
    most_values, most_lookups = work_of("me@y + me@x * 0.3", word)
    assert values <= most_values
    assert lookups <= most_lookups


def test_a_radius_may_vary_over_the_picture() -> None:
    wild = "hash(me@px, me@py)"
    (found,) = shown(f"display({wild} |> blur(if me@py < 16 then 0 else 0.05))")
    (sharp,), (soft,) = shown(f"display({wild})"), shown(f"display({wild} |> blur(0.05))")
    np.testing.assert_allclose(found[:16], sharp[:16], atol=1e-12)
    np.testing.assert_allclose(found[26:], soft[26:], atol=1e-12)


def test_bright_parts_shine() -> None:
    wild = "wild = hash(me@px, me@py)\n"
    found, expected = shown(
        wild + "display(wild |> bloom(0.4, 0.05, 1.5), wild + 1.5 * blur(max(wild - 0.4, 0), 0.05), 0)"
    )[:2]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (found >= shown(wild + "display(wild)")[0]).all()


def test_sharp_is_the_contrary_of_blurred() -> None:
    found, wild, soft = shown(
        "wild = hash(me@px, me@py)\ndisplay(wild |> sharpen(2, 0.05), wild, wild |> blur(0.05))"
    )
    np.testing.assert_allclose(found, wild + 2 * (wild - soft), atol=1e-12)


def test_the_edges_of_a_ramp_are_its_slope() -> None:
    (found,) = shown("display((3 * me@px + 4 * me@py) / 100 |> edges(0.5))")
    # The operator of Sobel sees the difference over two pixels, here 0.06 and 0.08.
    np.testing.assert_allclose(found[1:-1, 1:-1], 0.5 * 0.1, atol=1e-9)


def test_an_edge_from_0_to_1_is_1() -> None:
    (found,) = shown("display((me@px >= 20) |> edges())")
    np.testing.assert_allclose(found[0], np.isin(np.arange(WIDTH), (19, 20)), atol=1e-9)
    (wide,) = shown("display((me@py >= 20) |> edges(1, 3))")
    np.testing.assert_allclose(wide[:, 0], np.isin(np.arange(HEIGHT), range(17, 23)), atol=1e-9)


def test_feedback_adds_the_last_frame_larger_and_turned() -> None:
    found = shown("display(0.2 + me@x * 0.3 + me@y * 0.5 |> feedback(1.25, 0.3, 0.6))", ticks=2)[0]
    aspect = WIDTH / HEIGHT
    before = ((X - 0.5) * aspect + 1j * (Y - 0.5)) * np.exp(-0.3j) / 1.25
    x, y = before.real / aspect + 0.5, before.imag + 0.5
    inside = (x > 1 / WIDTH) & (x < 1 - 1 / WIDTH) & (y > 1 / HEIGHT) & (y < 1 - 1 / HEIGHT)
    expected = 0.2 + X * 0.3 + Y * 0.5 + 0.6 * (0.2 + x * 0.3 + y * 0.5)
    assert inside.mean() > 0.9
    np.testing.assert_allclose(found[inside], expected[inside], atol=1e-6)


@pytest.mark.skipif(executor_problem("native") is not None, reason="no machine code here")
def test_machine_code_agrees() -> None:
    text = (
        "img = <hash(me@px, me@py), fbm(me@x * 9, me@y * 5), me@x>\n"
        "o = img |> bloom(0.4, 0.05) |> edges() |> feedback(1.1, 0.1)\ndisplay(o[0], o[1], img[0] |> sharpen(1, 0.03))"
    )
    np.testing.assert_allclose(shown(text, ticks=2, executor=NativeExecutor()), shown(text, ticks=2), atol=2e-5)
