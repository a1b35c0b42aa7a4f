"""Pictures that are shrunk are read at the level at which their pixels are as large as those of the screen."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.support.gl import GlExecutor, Graphics, graphics
from tests.support.tolerances import GENERATED
from weft.backends.executors import Executor
from weft.backends.launch import Launch, StateMemory, picture_coords
from weft.backends.native.executor import NativeExecutor
from weft.backends.vector.machine import VectorExecutor
from weft.backends.vm import ReferenceExecutor
from weft.codegen.kernel import Kernel, content_hash
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.media.sampled import header_of, memory_of, read
from weft.names import is_levels, levels_of
from weft.runtime.compiling.stages import Request, build
from weft.sources import PictureLevels

__all__ = ["graphics"]

Values = NDArray[np.float64]

SIZE = 96
"""Width and height of the picture, in pixels."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a picture of noise."""
    made = tmp_path_factory.mktemp("pictures")
    noise = np.random.default_rng(1).integers(0, 256, (SIZE, SIZE, 3), np.uint8)
    Image.fromarray(noise).save(made / "noise.png")
    return made


def kernel_of(folder: Path, maps: str, before: str = "") -> Kernel:
    text = f'{before}\nload("noise.png")::img<r, g, b>\ndisplay(img{maps})\n'
    (unit,) = build(Request(Source(str(folder / "a.weft"), text), ContextTable(), probe=header_of)).units
    return unit.kernel


def shown(kernel: Kernel, size: int, machine: Executor | None = None, time: float = 0.0) -> Values:
    """The red of what a patch displays with this many pixels in width and height."""
    launch = Launch(
        (size, size), picture_coords(size, size, time), {name: float(size) for name in kernel.uniforms},
        pictures={name: read(name) for name in kernel.pictures},
    )  # fmt: skip
    executable = (machine or ReferenceExecutor()).load(kernel)
    found: Values = executable.planes(StateMemory(kernel.slots, launch.shape, np.float64), launch)[0]
    return found


def red(folder: Path) -> Values:
    with Image.open(folder / "noise.png") as image:
        return np.asarray(image)[..., 0] / 255


def means(values: Values, by: int) -> Values:
    """The means of squares of this many pixels."""
    size = len(values) // by
    found: Values = values.reshape(size, by, size, by).mean((1, 3))
    return found


@pytest.mark.parametrize("by", [2, 4, 8, 16])
def test_a_pixel_shows_the_mean_of_those_that_it_covers(folder: Path, by: int) -> None:
    found = shown(kernel_of(folder, ""), SIZE // by)
    np.testing.assert_allclose(found, means(red(folder), by), atol=1e-6)


@pytest.mark.parametrize(
    "maps",
    [
        "(me@x ~ (me@px + 0.5) / me@width, me@y ~ (me@py + 0.5) / me@height)",
        "(me@x ~ me@x + floor(me@x * me@y), me@y ~ me@y + floor(noise(me@x * 9, me@y * 9) * 0.5))",
    ],
)
def test_floors_that_jump_at_every_pixel_are_steep_and_others_are_level(folder: Path, maps: str) -> None:
    np.testing.assert_allclose(shown(kernel_of(folder, maps), SIZE // 8), means(red(folder), 8), atol=1e-6)


def test_between_two_levels_both_are_mixed(folder: Path) -> None:
    size = 32  # a third: log2(3) is between 1 and 2
    found = shown(kernel_of(folder, ""), size)
    together = np.asarray(read(levels_of(str(folder / "noise.png")))[..., 0], np.float64)
    levels = PictureLevels(SIZE, SIZE)
    halves = [together[levels.top(k) :, 1:][: SIZE >> k, : SIZE >> k] for k in (1, 2)]
    places = (np.arange(size) + 0.5) / size
    sampled = [_linear(half, places) for half in halves]
    share = math.log2(3) - 1
    np.testing.assert_allclose(found, sampled[0] * (1 - share) + sampled[1] * share, atol=1e-6)


def _linear(level: Values, places: Values) -> Values:
    """A level between its pixels, at places 0…1 in both directions."""
    at = np.clip(places * len(level) - 0.5, 0, len(level) - 1)
    across = np.array([np.interp(at, np.arange(len(level)), row) for row in level])
    return np.array([np.interp(at, np.arange(len(level)), column) for column in across.T]).T


@pytest.mark.parametrize(
    "maps",
    [
        "", "(me@x ~ me@x * 0.5, me@y ~ 1 - me@y * 0.9)", "(me@x ~ me@y, me@y ~ me@x)", "(me@x ~ floor(me@x * 9) / 9)",
        "(me@x ~ me@x * sqrt(me@time - 1), me@y ~ me@y * sqrt(me@time - 1))",  # NaN: no step is known
    ],
)  # fmt: skip
def test_what_is_not_shrunk_is_read_as_it_is(folder: Path, maps: str) -> None:
    """To the bit."""
    text = f'load("noise.png")::img<r, g, b>\ndisplay(img{maps})\n'
    # Without sizes nothing is filtered.
    (unit,) = build(Request(Source(str(folder / "a.weft"), text), ContextTable())).units
    assert not any(map(is_levels, unit.kernel.pictures))
    kernel = kernel_of(folder, maps)
    assert any(map(is_levels, kernel.pictures))
    np.testing.assert_array_equal(shown(kernel, SIZE), shown(unit.kernel, SIZE))


def _covered(folder: Path, place: Callable[[Values, Values], tuple[Values, Values]], size: int) -> Values:
    """What a map shows if each pixel is the mean of 16 × 16 places in it."""
    fine = (np.arange(size * 16) + 0.5) / (size * 16)
    u, v = place(*np.meshgrid(fine, fine))
    rows, columns = ((np.clip(each, 0, 0.999999) * SIZE).astype(int) for each in (v, u))
    return means(red(folder)[rows, columns], 16)


@pytest.mark.parametrize(
    ("maps", "place"),
    [
        ("(me@x ~ me@x * c - me@y * s, me@y ~ me@x * s + me@y * c)",
         lambda x, y: (x * math.cos(0.5) - y * math.sin(0.5), x * math.sin(0.5) + y * math.cos(0.5))),
        ("(me@x ~ fract(me@x * 2), me@y ~ abs(me@y - 0.5) * 2)", lambda x, y: ((x * 2) % 1, abs(y - 0.5) * 2)),
        ("(me@x ~ me@x * me@x)", lambda x, y: (x * x, y)),
    ],
)  # fmt: skip
def test_remaps_shimmer_less(
    folder: Path, maps: str, place: Callable[[Values, Values], tuple[Values, Values]]
) -> None:
    """Than without levels: what is read is nearer to the mean of what a pixel covers."""
    before = "me<width> = 640\nc = cos(0.5); s = sin(0.5)"
    kernel, size = kernel_of(folder, maps, before), 16
    expected = _covered(folder, place, size)
    found = shown(kernel, size)
    text = f'{before}\nload("noise.png")::img<r, g, b>\ndisplay(img{maps})\n'
    (unit,) = build(Request(Source(str(folder / "a.weft"), text), ContextTable())).units
    plain = shown(unit.kernel, size)
    assert np.abs(found - expected).mean() < 0.4 * np.abs(plain - expected).mean()


def test_where_steps_differ_from_pixel_to_pixel_it_is_read_as_it_is(folder: Path) -> None:
    kernel = kernel_of(folder, "(me@x ~ me@x * me@y)")
    assert not any(map(is_levels, kernel.pictures))


MACHINES: dict[str, Callable[[], Executor]] = {"vector": VectorExecutor, "native": NativeExecutor}
TURNED = "(me@x ~ me@x * cos(me@time) - me@y * 3, me@y ~ me@x * 2 + me@y * cos(me@time))"


@pytest.mark.parametrize("maps", ["", TURNED, "(me@x ~ me@x * me@x * 3)"])
@pytest.mark.parametrize("machine", MACHINES)
def test_machines_agree(folder: Path, machine: str, maps: str) -> None:
    kernel = kernel_of(folder, maps)
    found, expected = (shown(kernel, 23, each, 0.4) for each in (MACHINES[machine](), None))
    np.testing.assert_allclose(found, expected, atol=100 * GENERATED.absolute)


def test_graphics_agree(folder: Path, graphics: Graphics) -> None:
    kernel = kernel_of(folder, TURNED)
    found, expected = (shown(kernel, 23, each, 0.4) for each in (GlExecutor(graphics), None))
    np.testing.assert_allclose(found, expected, atol=1 / 255)


@pytest.mark.parametrize("size", [(800, 600), (33, 1000), (64, 64), (9, 9), (7, 800), (1, 1)])
def test_levels_stand_below_one_another(size: tuple[int, int]) -> None:
    levels = PictureLevels(*size)
    rows = [(levels.top(k) - 1, levels.top(k) + levels.size(k)[1] + 1) for k in range(1, levels.count + 1)]
    assert [top for top, _ in rows] == [0, *(bottom for _, bottom in rows[:-1])][: levels.count]
    if levels.count:
        assert rows[-1][1] == levels.together[1]
        assert min(levels.size(levels.count)) >= 4
        assert levels.together[0] * levels.together[1] < 0.8 * size[0] * size[1] + 1000


def test_their_memory_is_known(folder: Path) -> None:
    name = levels_of(str(folder / "noise.png"))
    assert memory_of(name) == read(name).nbytes


# --- samples ---

WITH_SAMPLES = {
    "an edge": "display(hypot(me@x - 0.5, me@y - 0.4) < 0.3, me@x * 3 - 1, me@px + me@py > 9)",
    "a loop": "spindle f(x) :: v { v = 0; for i in (0 to 3 + 4 * x) { v += sin(i * x * 9 + me@time) / 4 } }\n"
    "display(f(me@x), f(f(me@y)), 0.25)",
    "memory": "trail = prev(trail) * 0.9 + (me@x > me@y) * 0.3\n"
    "display(trail, prev(trail)(me@x ~ me@x * 0.7), me@x < 0.3)",
    "an image": "i = image(me@x * me@y > 0.2)\ndisplay(i, i(me@x ~ me@x + 0.1), me@x)",
    "nothing that varies": "display(0.3, sin(me@time), 2)",
}


def picture(text: str, samples: int, before: str = "") -> Kernel:
    (unit,) = build(Request(Source("a.weft", f"{before}me<samples> = {samples}\n{text}\n"), ContextTable())).units
    return unit.kernel


def ticks(kernel: Kernel, moved: tuple[float, float] = (0.0, 0.0), machine: Executor | None = None) -> Values:
    """What it displays in two ticks, [ticks, outputs, height, width], with all pixels moved by a part of one."""
    width, height = 11, 7
    coords = picture_coords(width, height)
    places = {"x": coords["x"] + moved[0] / width, "y": coords["y"] + moved[1] / height}
    sizes = {"width": width, "height": height}
    executable = (machine or ReferenceExecutor()).load(kernel)
    memory = StateMemory(kernel.slots, (height, width), np.float64 if machine is None else np.float32)
    return np.stack(
        [
            executable.planes(memory, Launch((height, width), {**coords, **places, "abstime": time},
                              {name: float(sizes.get(name, 0)) for name in kernel.uniforms}))
            for time in (0.2, 0.3)
        ]
    )  # fmt: skip


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("text", [WITH_SAMPLES["an edge"], WITH_SAMPLES["a loop"], WITH_SAMPLES["nothing that varies"]])
def test_a_pixel_is_the_mean_of_its_samples(text: str, count: int) -> None:
    places = [(column, row) for row in range(count) for column in range(count)]
    offsets = [
        ((column + (row + 0.5) / count) / count - 0.5, (row + (count - 0.5 - column) / count) / count - 0.5)
        for column, row in places
    ]
    # Each sample has a row and a column of its own.
    assert all(len({round(offset[axis], 6) for offset in offsets}) == count**2 for axis in (0, 1))
    plain = picture(text, 1)
    mean = np.mean([np.clip(ticks(plain, offset), 0, 1) for offset in offsets], axis=0)
    varies = np.ptp(ticks(plain), axis=(0, 2, 3)) > 0
    found = ticks(picture(text, count))
    np.testing.assert_allclose(found[:, varies], mean[:, varies], atol=1e-9)


def test_what_is_remembered_is_that_of_the_middle() -> None:
    """It advances once a tick: samples only read it."""
    text = "trail = prev(trail) * 0.5 + (me@x > me@y)\ndisplay(prev(trail))"
    plain, sampled = (ticks(picture(text, samples)) for samples in (1, 2))
    assert plain.any()
    np.testing.assert_array_equal(plain, sampled)


@pytest.mark.parametrize("name", WITH_SAMPLES)
def test_one_sample_is_no_loop(name: str) -> None:
    text = WITH_SAMPLES[name]
    (unit,) = build(Request(Source("a.weft", text + "\n"), ContextTable())).units
    assert content_hash(picture(text, 1)) == content_hash(unit.kernel)
    if name not in ("nothing that varies", "an image"):
        assert content_hash(picture(text, 2)) != content_hash(unit.kernel)


@pytest.mark.parametrize("name", WITH_SAMPLES)
@pytest.mark.parametrize("machine", MACHINES)
def test_machines_take_the_same_samples(machine: str, name: str) -> None:
    kernel = picture(WITH_SAMPLES[name], 3)
    np.testing.assert_allclose(ticks(kernel, machine=MACHINES[machine]()), ticks(kernel), atol=100 * GENERATED.absolute)


def test_graphics_take_the_same_samples(graphics: Graphics) -> None:
    kernel = picture(WITH_SAMPLES["a loop"], 2)
    np.testing.assert_allclose(ticks(kernel, machine=GlExecutor(graphics)), ticks(kernel), atol=1 / 255)


def test_nan_is_no_colour() -> None:
    assert np.isnan(ticks(picture("display(sqrt(me@x - 2), 0 / (me@x - me@x), me@x)", 2))[:, :2]).all()


def test_a_shrunk_picture_has_the_level_of_its_samples(folder: Path) -> None:
    """Its pixels are as large as the distance of samples, so that each is counted about once."""
    source = Source(str(folder / "a.weft"), 'me<samples> = 4\nload("noise.png")::img<r, g, b>\ndisplay(img)\n')
    expected = means(red(folder), 16)
    errors = []
    for probe in (header_of, None):  # without sizes, there are no levels
        (unit,) = build(Request(source, ContextTable(), probe=probe)).units
        errors.append(np.abs(shown(unit.kernel, SIZE // 16) - expected).mean())
    assert errors[0] < 0.7 * errors[1]


@pytest.mark.parametrize("count", ["0", "9", "1.5"])
def test_other_numbers_are_told(count: str) -> None:
    with pytest.raises(WeftError) as failure:
        build(Request(Source("a.weft", f"me<samples> = {count}\ndisplay(me@x)\n"), ContextTable()))
    assert failure.value.diagnostics[0].code == "setting-out-of-range"
    assert failure.value.diagnostics[0].span.text == count
